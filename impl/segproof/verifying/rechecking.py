# SPDX-License-Identifier: Apache-2.0
"""Checking a segment that a broker may be changing meanwhile: what is found is looked at twice.

No order of reading keeps the files of a segment as of one moment: a broker appends to the last one,
truncates, and puts compacted files in the place of others. So defects of a segment that is open, or
whose files are no longer those that were listed, are reported only if a second look, with the
directory listed anew, finds them too.

Laws: DISK-2.
Used by: verifying/running.py.
"""

from collections.abc import Iterator

from segproof.files import Files
from segproof.findings import Finding
from segproof.verifying.directory_checks import ALL_FILES, list_again
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.segment_checks import LogCarry, SegmentCheck
from segproof.verifying.segments import Segment, report_vanished

__all__ = ["SteadyCheck", "key_of"]

OF_NAMES = frozenset({"DISK-25"})
"""Laws that a closed segment breaks by which names its directory showed: a listing may miss a file
that is made meanwhile."""
Key = tuple[str, str, int | None, int | str | None]


class SteadyCheck:
    """Checks one segment; iterate `run` to the end, then `findings` and `carry` are there."""

    def __init__(self, segment: Segment, wanted: Wanted, files: Files) -> None:
        self._segment = segment
        self._wanted = wanted
        self._files = files
        self.findings: list[Finding] = []
        self.carry = LogCarry()

    def run(self) -> Iterator[int]:
        """Do all checks, twice where it takes that; yield the bytes read since the last time."""
        yield from self._look(self._segment)
        first, carry = self.findings, self.carry
        is_sound = not any(finding.is_defect for finding in first) and not _misses(carry)
        is_closed = self._segment.is_closed and not any(one.law in OF_NAMES for one in first)
        if is_sound or (is_closed and self._is_unchanged(self._segment)):
            return
        segment = list_again(self._segment, self._files)
        if segment is None:
            reporter = _reporter(self._segment, self._wanted)
            for suffix in sorted(self._segment.suffixes):
                report_vanished(self._segment.path(suffix), reporter, "log-segment")
            self.findings, self.carry = reporter.finish(), LogCarry()
            return
        yield from self._look(segment)
        if not (segment.is_closed and self._is_unchanged(segment)):
            self._keep_what_both_found(first, carry)
        if self._segment.is_closed or any(finding.is_defect for finding in self.findings):
            # A closed file has no reason to shrink; elsewhere it explains what else was found.
            shrunk = [one for one in first if one.law == "DISK-2" and one.position is not None]
            self.findings += [one for one in shrunk if one not in self.findings]

    def _look(self, segment: Segment) -> Iterator[int]:
        reporter = _reporter(segment, self._wanted)
        check = SegmentCheck(segment, reporter, self._files)
        yield from check.run()
        self.findings, self.carry = reporter.finish(), check.carry

    def _is_unchanged(self, segment: Segment) -> bool:
        return segment.seen == segment.look(self._files)

    def _keep_what_both_found(self, first: list[Finding], carry: LogCarry) -> None:
        """Drop the defects that only the second look found; say that there were some."""
        known = {key_of(finding) for finding in first}
        kept = [one for one in self.findings if not one.is_defect or key_of(one) in known]
        dropped = [one for one in self.findings if one.is_defect and key_of(one) not in known]
        self.findings = kept
        if dropped:
            reporter = _reporter(self._segment, self._wanted)
            reporter.add(
                "DISK-2",
                dropped[0].path,
                f"the segment changed while it was read: {len(dropped)} findings, the first of"
                f" {dropped[0].law}, were not the same at a second look",
                actual=len(dropped),
            )
            self.findings += reporter.finish()
        ended = self.carry.transactions.ended
        for producer_id, (offset, position, is_missing) in ended.items():
            is_both = is_missing and carry.transactions.ended.get(producer_id) == ended[producer_id]
            ended[producer_id] = offset, position, is_both


def key_of(finding: Finding) -> Key:
    """Return what two findings of one place have in common; the words tell sizes, which grow."""
    return finding.law, finding.path, finding.position, finding.expected


def _misses(carry: LogCarry) -> bool:
    return any(is_missing for _, _, is_missing in carry.transactions.ended.values())


def _reporter(segment: Segment, wanted: Wanted) -> Reporter:
    """Return a reporter that takes findings of the judged files only."""
    if segment.judged == ALL_FILES:
        return Reporter(wanted)
    return Reporter(wanted, frozenset(segment.path(suffix) for suffix in segment.judged))
