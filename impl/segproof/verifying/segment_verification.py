# SPDX-License-Identifier: Apache-2.0
"""Verify a segment that a broker may be changing: look again before a defect is reported.

The files of a segment can't be read as of one moment: a broker appends to the last segment,
truncates it, and replaces files by compacted ones. A defect of a closed, unchanged segment is
reported at once; a defect of its names, once the directory was listed again and shows the same.
Of an open or changed segment it is reported only if two looks in a row find it; each look lists the
directory again, and there are a few looks at most. Where a file was changed a moment ago, the
broker may be between two files of one step; then a defect must outlast several pauses.

Laws: DISK-2.
"""

from collections.abc import Iterator

from segproof.files import Files, FileStatus
from segproof.findings import Finding, Severity
from segproof.hints import reads
from segproof.inventory.segment_listing import ALL_FILES, Listings
from segproof.inventory.segments import FileState, Segment, state_of
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.live_writer import STEP_PAUSES_SECONDS, wait_for_a_step
from segproof.reading.live_writer import has_rested as is_at_rest
from segproof.reading.packed_segments import with_unpacked
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.segment_checks import Scanning, SegmentCheck
from segproof.wording.reporting import Reporter, Wanted
from segproof.wording.segment_files import hint_of

OF_NAMES = frozenset({"DISK-4", "DISK-5", "DISK-25"})
"""Laws that a closed segment breaks by which names its directory showed: a listing may miss a file
that is made or renamed meanwhile."""
Key = tuple[str, str, int | None, str | None]


class SteadyCheck:
    """Verifies one segment; iterate `run` to the end, then read `findings` and `carry`.

    `scan` serves the first look only; later looks read the log themselves. `listings` may be those
    of other segments of these files.
    """

    def __init__(
        self,
        segment: Segment,
        wanted: Wanted,
        files: Files,
        scan: Scanning | None = None,
        listings: Listings | None = None,
    ) -> None:
        self._segment = segment
        self._wanted = wanted
        self._files = with_unpacked(files)
        self._scan = scan
        self._listings = listings or Listings(self._files)
        self._next_seen = self._next_log(segment)
        self._first_status: FileStatus | None = None
        """What the log was before the first look, if nothing had changed it a moment before."""
        self.findings: list[Finding] = []
        self.carry = LogCarry()

    def run(self) -> Iterator[int]:
        """Look, and look again where needed; yield the bytes read since the last time."""
        status = self._log_status()
        self._first_status = status if status is not None and is_at_rest(status) else None
        yield from self._look(self._segment, self._scan)
        first = self.findings
        is_named = not any(one.law in OF_NAMES for one in first)
        if (is_named and self._is_certain(self._segment)) or not self._has_defects(first):
            return
        segment, dropped = self._segment, 0
        for pause in STEP_PAUSES_SECONDS:
            has_rested = not self._wait_for_a_step(pause)
            before, ended = self.findings, dict(self.carry.transactions.ended)
            again = self._listings.again(self._segment)
            if again is None:
                self._report_gone()
                return
            if has_rested and again == self._segment and self._is_certain(again):
                return
            segment = again
            yield from self._look(segment)
            kept, dropped = self.findings, 0
            if not self._is_certain(segment):
                kept, dropped = self._found_twice(before, ended)
            # A file that vanishes twice was made again between; a link to nothing stays.
            is_same = not dropped and not any(is_vanished(one) for one in kept)
            if is_same and (has_rested or not self._has_defects(kept)):
                break
        self.findings = kept
        if dropped:
            self._report_unsteady(dropped)
        self._explain_by_shrinking(first, segment)

    def _look(self, segment: Segment, scan: Scanning | None = None) -> Iterator[int]:
        reporter, known = _reporter(segment, self._wanted), self._first_status
        framed = self.carry.framed if known is not None and known == self._log_status() else None
        check = SegmentCheck(segment, reporter, self._files, scan, framed)
        yield from check.run()
        self.findings, self.carry = reporter.finish(), check.carry
        self.carry.status = known

    def _log_status(self) -> FileStatus | None:
        try:
            return self._files.status(self._segment.path(".log"))
        except OSError:
            return None

    def _is_certain(self, segment: Segment) -> bool:
        """Return whether a segment is closed and has not changed since it was listed.

        Where the log behind it is gone, it was cut between the names of the directory and the sizes
        of its files, and is the last segment now.
        """
        behind = self._next_state(segment)
        is_followed = behind is None or behind.size_bytes >= 0
        return is_followed and segment.is_closed and segment.is_unchanged(self._files)

    def _next_log(self, segment: Segment) -> tuple[int | None, tuple[int, int]]:
        """Return which segment follows, and which file its log is."""
        state = self._next_state(segment)
        return segment.next_base_offset, (0, 0) if state is None else state.identity

    def _next_state(self, segment: Segment) -> FileState | None:
        """Return what the log of the segment that follows is now; None if none does."""
        if segment.next_base_offset is None:
            return None
        log = f"{segment.directory}/{segment_file_name(segment.next_base_offset, '.log')}"
        return state_of(self._files, log)

    def _has_defects(self, found: list[Finding]) -> bool:
        return any(one.is_defect for one in found) or _misses(self.carry)

    def _wait_for_a_step(self, pause_seconds: float) -> bool:
        """Wait if a broker may be in the middle of a step; return whether so."""
        if self._segment.is_stopped:
            return False
        names = map(self._segment.path, sorted(self._segment.suffixes))
        return wait_for_a_step([self._segment.directory, *names], self._files, pause_seconds)

    def _found_twice(
        self, before: list[Finding], ended: dict[int, tuple[int, int, bool]]
    ) -> tuple[list[Finding], int]:
        """Return the notes, and the defects that the look before found too; how many it did not."""
        known = {key_of(finding) for finding in before}
        kept = [one for one in self.findings if not one.is_defect or key_of(one) in known]
        now = self.carry.transactions.ended
        for producer_id, (offset, position, is_missing) in now.items():
            is_both = is_missing and ended.get(producer_id) == now[producer_id]
            now[producer_id] = offset, position, is_both
        return kept, len(self.findings) - len(kept)

    def _report_gone(self) -> None:
        """Say that the segment was removed, which is no defect of what is left."""
        reporter = _reporter(self._segment, self._wanted)
        suffix = min(self._segment.suffixes & self._segment.judged, default=".log")
        reporter.at(
            self._segment.path(".log" if ".log" in self._segment.judged else suffix), "log-segment"
        ).add(
            "DISK-2",
            "the segment was removed while the directory was read",
            severity=Severity.NOTE,
            hint=reads("nothing: retention, a truncation or compaction removes whole segments"),
        )
        self.findings, self.carry = reporter.finish(), LogCarry()

    def _report_unsteady(self, dropped: int) -> None:
        """Say that the last two looks found different defects."""
        reporter = _reporter(self._segment, self._wanted)
        reporter.at(self._segment.path(min(self._segment.judged & self._segment.suffixes))).add(
            "DISK-2",
            f"the segment changed while it was read: {dropped} findings were not the same at each"
            f" of {len(STEP_PAUSES_SECONDS) + 1} looks",
            actual=dropped,
        )
        self.findings += reporter.finish()

    def _explain_by_shrinking(self, first: list[Finding], segment: Segment) -> None:
        """Keep the finding that a file became shorter, if no work of a broker explains it.

        A broker cuts the last segment, and a segment that it closes. If another segment became
        shorter, or other defects were found, the finding is kept. A segment that was cut, appended
        to and closed again is followed by another file than before.
        """
        was_closed = self._segment.is_closed and segment.is_closed
        is_cut = was_closed and self._next_seen == self._next_log(segment)
        if is_cut or any(finding.is_defect for finding in self.findings):
            shrunk = [one for one in first if one.law == "DISK-2" and one.position is not None]
            self.findings += [one for one in shrunk if one not in self.findings]


def key_of(finding: Finding) -> Key:
    """Return what two findings of one defect share; their words may differ in sizes that grow."""
    return finding.law, finding.path, finding.position, finding.expected


def is_vanished(finding: Finding) -> bool:
    """Return whether the finding is that a listed file is gone."""
    return finding.law == "DISK-2" and finding.position is None and finding.is_defect


def _misses(carry: LogCarry) -> bool:
    return any(is_missing for _, _, is_missing in carry.transactions.ended.values())


def _reporter(segment: Segment, wanted: Wanted) -> Reporter:
    """Return a reporter that takes findings of the judged files only."""
    if segment.judged == ALL_FILES:
        return Reporter(wanted, hint=hint_of(segment))
    paths = frozenset(segment.path(suffix) for suffix in segment.judged)
    return Reporter(wanted, paths, hint=hint_of(segment))
