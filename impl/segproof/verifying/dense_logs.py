# SPDX-License-Identifier: Apache-2.0
"""Closed segments that lack offsets, without an index that would show whether they were there.

Laws: DISK-63.
"""

from collections.abc import Iterable

from segproof.counts import plural
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import reads
from segproof.inventory.held_beside import HINT_OF_HELD, HeldBeside
from segproof.inventory.partitions import Partition, segments_in_doubt
from segproof.inventory.segments import Segment
from segproof.reading.cleaner_traces import UP_TO, Cleaning
from segproof.reading.dense_logs import Extent, doubt_about
from segproof.reading.keyless_records import KeylessEnds
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

declare("partition-log", Severity.WARNING,
    reads("look at cleanup.policy of the topic. If it says compact, compaction may have left the"
    " gap; else compare the segment with another replica before an index is made new: that one"
    " says no more of what is gone. Look for the missing files under other names, in the other log"
    " directories and in lost+found (verify of that folder tells which logs are in it)"),
    "DISK-63")  # fmt: skip

WHY = {
    Cleaning.EXCLUDED: "Records here have no keys, so compaction has not taken them",
    Cleaning.UNKNOWN: "They are lost, unless the topic is compacted (cleanup.policy): whether"
    " records are lost is not known",
    Cleaning.SHOWN: "Compaction may have taken them: whether records are lost is not known",
}


class DenseLog:
    """Takes the segments of a partition in order; then `report` judges what they lack."""

    def __init__(self, partition: Partition, snapshots: Iterable[int], files: Files) -> None:
        self._partition = partition
        self._snapshots = sorted(snapshots)
        self._extents: list[Extent] = []
        self._is_last_taken = False
        """Whether the last segment is among the extents."""
        self._files = files
        self._ends = KeylessEnds(files)
        self._reach = 0
        """The offset after the last batch so far."""
        self.lost: set[str] = set()
        """The logs behind whose end offsets are lost, as is proven."""

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Take the next segment, if nothing else was reported of its end."""
        self._ends.add(segment.path(".log"), carry.ends)
        if carry.end_offset is None:
            if self._is_last_taken:
                self._extents.pop()  # what follows it is reported as lost
            self._is_last_taken = False
            return
        self._is_last_taken = False
        following = segment.next_base_offset
        missing = self._missing(segment, carry)
        if missing is None:
            return
        self._reach = max(self._reach, carry.end_offset)
        doubt = ""
        if following is not None and missing and not segment.is_swap:
            doubt = doubt_about(
                segment.suffixes, carry.batches, (carry.end_offset, following), self._snapshots
            )
        lacks_index = not {".index", ".timeindex"} <= segment.suffixes
        missing_at_end = 0 if following is None else max(0, following - carry.end_offset)
        self._is_last_taken = True
        self._extents.append(
            Extent(
                segment.path(".log"),
                segment.base_offset,
                following,
                carry.batches,
                missing,
                carry.end_position,
                lacks_index,
                doubt,
                missing_at_end,
                self._ends.first_keyless() if missing_at_end else None,
            )
        )

    def _missing(self, segment: Segment, carry: LogCarry) -> int | None:
        """Return how many offsets a segment lacks; None if that can't be judged here.

        Of a damaged log, only what follows its last batch is judged: it is sound, and the damage
        counts what is lost before it.
        """
        if not carry.is_read or carry.is_gap_told or carry.cut_outs or carry.end_offset is None:
            return None
        missing, following = carry.missing_offsets, segment.next_base_offset
        if carry.damage is not None:
            if carry.damage.ends_broken or carry.has_sound_gap:
                return None
            missing = 0 if following is None else max(0, following - carry.end_offset)
        # A log whose name is too low lacks nothing that the log before holds.
        return max(0, missing - max(0, self._reach - segment.base_offset))

    def report(self, reporter: Reporter) -> None:
        """Report the segments that lack offsets, without proof of what they held."""
        partition = self._partition
        logs = [one.path for one in self._extents]
        beside = HeldBeside(partition.directory, self._files)
        for one, known in segments_in_doubt(partition, self._extents, logs, self._files):
            lost = f"{'' if known is Cleaning.EXCLUDED else UP_TO}{one.missing}"
            where = f"from the base offset {one.base_offset}"
            if one.is_never_cleaned:
                where = f"from {(one.next_base_offset or 0) - one.missing_at_end}"
            first = one.base_offset
            if one.missing == one.missing_at_end and one.next_base_offset is not None:
                first = one.next_base_offset - one.missing_at_end
            held = beside.words(first, one.next_base_offset or first)
            if one.missing_at_end and known is Cleaning.EXCLUDED:
                self.lost.add(one.path)
            severity = Severity.NOTE if known is Cleaning.SHOWN else None
            hint = HINT_OF_HELD if held else None
            if hint is not None and known is not Cleaning.EXCLUDED:
                hint = hint.after("nothing, if compaction took them (see cleanup.policy); else ")
            reporter.at(one.path, shown_by=partition.directory).add(
                "DISK-63",
                f"{plural(one.missing, 'offset', 'is', 'are')} in no batch, {where} up to the next"
                f" segment, which begins at {one.next_base_offset}, and {one.doubt}. {WHY[known]}"
                + (f". {held}" if held else ""),
                position=one.end_position,
                expected=0,
                actual=lost,
                severity=severity,
                hint=hint,
            )
