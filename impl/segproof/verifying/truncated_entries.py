# SPDX-License-Identifier: Apache-2.0
"""Tell index entries that a truncation left from damaged entries.

A broker counts its entries in memory. When it truncates, it lowers the count and leaves the bytes;
the file of the last segment keeps its full size. So behind the counted entries there may be entries
of batches that were cut off, until new entries are written over them. Closing a segment trims them,
and recovery makes the index new.

This check looks only at an index with a preallocated tail, in a segment that is not closed. If the
entries from one on up to the last are broken, all before them are sound, and the log after the
sound ones is no longer than a broker leaves without an entry, then the findings of each law become
one. It is a note if the log went on after a truncation: its batches have times at or above those of
the left entries. It is a warning if entries lead to zeros, or beyond the end of a log that did not
go on: the log held batches there.

Upstream: Kafka since 0.11.0: AbstractIndex.truncateToEntries, resize, trimToValidSize.
Laws: ABSIDX-20; SEG-7, OFFIDX-2, DISK-8; DISK-9, TIMEIDX-7.
"""

import numpy as np

from segproof.findings import Severity
from segproof.hints import reads, writes
from segproof.verifying.index_file_checks import KeyedIndexFile, OffsetIndexFile
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import LogCarry

LAWS = {".index": ("SEG-7", "OFFIDX-2", "DISK-8"), ".timeindex": ("DISK-9", "TIMEIDX-7")}
"""Laws that truncated entries break; the first compares an entry with the log."""
WITHOUT_ENTRY_BYTES = 2 << 20
"""What a follower may append at once, and so without an entry inside it, twice."""
GAPS = 8
"""Distances between entries that a log may go on without one more."""
TRUNCATED_HINT = writes(
    "nothing, while or before a broker runs on this directory: it writes over these entries or"
    " makes the index new; elsewhere make it new with `segproof rebuild DIR --out DIR2`"
)
LOST_HINT = writes(
    "copy this directory away before a broker starts here, and compare the segment with another"
    " replica: the broker takes the log to end before the zeros"
)
BEYOND_HINT = reads(
    "nothing, if a broker runs here and its log has just followed a new leader: it writes over"
    " these entries. Else keep the index files, and compare the end of the log with another replica"
    " before a broker starts here: it takes the log to end where it ends now"
)


class TruncatedEntriesCheck(LogCheck):
    """Puts one finding in the place of each law's findings, if a truncation explains them all."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._is_explained = False
        """Whether the entries that lead beyond the end of the log are those of a truncation."""

    def finish(self) -> None:
        """Look at both indexes."""
        for index in (self._log.offsets, self._log.times):
            if index is not None:
                self._soften(index)

    def hand_on(self, carry: LogCarry) -> None:
        """Say that the log has not lost its end, where a truncation explains the entries."""
        carry.is_pointed_beyond &= not self._is_explained

    def _soften(self, index: KeyedIndexFile) -> None:
        """Report the findings of one index as one for each law."""
        segment = self._segment
        log_end = self._log.scan.end_position
        laws = LAWS[index.suffix]
        broken = {law: index.report.broken(law) for law in laws}
        is_kept_by_a_broker = not segment.is_closed and index.count < index.slots
        if not is_kept_by_a_broker or index.is_damaged:
            return
        if not any(each.places for each in broken.values()):
            return
        entry_bytes = index.entry_bytes
        first = min(each.first for each in broken.values() if each.places) // entry_bytes
        beside = broken[laws[0]]
        if beside.places * 2 < index.count - beside.first // entry_bytes and beside.places:
            return  # sound entries follow, so it was no truncation
        if isinstance(index, OffsetIndexFile) and self._is_other(index, first):
            return
        why, hint = "they were left by a truncation, or are damaged", TRUNCATED_HINT
        severity = Severity.NOTE
        if self._leads_to_zeros(index, first):
            why = f"there are zeros from byte {log_end} on, and batches when these were written"
            hint, severity = LOST_HINT, Severity.WARNING
        elif (beyond := self._beyond(index, first)) is not None:
            if self._went_on():
                self._is_explained = True
            else:
                reach = segment.base_offset + self._log.reach + 1
                why = (
                    f"the log ends before offset {reach}, and it held offset {beyond} when these"
                    " were written. A follower that truncates its log leaves such entries; else"
                    " the log has lost its end"
                )
                hint, severity = BEYOND_HINT, Severity.WARNING
        for law, each in broken.items():
            if not each.places:
                continue
            index.report.retract(law)
            number = each.first // entry_bytes
            index.report.add(
                law,
                f"entries from number {number} on, of {index.count}, do not fit the log, up to the"
                f" last one: {why}",
                position=each.first,
                actual=each.places,
                severity=severity,
                hint=hint,
            )

    def _is_other(self, index: OffsetIndexFile, first: int) -> bool:
        """Return whether the log is too long for the index, or is not the one of the index."""
        log_end = self._log.scan.end_position
        return _goes_on(index, first, log_end) or self._log.has_other_index

    def _leads_to_zeros(self, index: KeyedIndexFile, first: int) -> bool:
        """Return whether an entry leads to zeros that follow the last batch."""
        log_end = self._log.scan.end_position
        zeros_end = self._log.size if self._log.tail_is_empty else log_end
        if not isinstance(index, OffsetIndexFile):
            return False
        at = index.read(first, 1)["position"].astype(np.int64)
        return bool(((at >= log_end) & (at < zeros_end)).any())

    def _beyond(self, index: KeyedIndexFile, first: int) -> int | None:
        """Return the largest offset of the entries from `first` on, if it is beyond the log."""
        largest = -1
        for start, block in index.blocks():
            offsets = block["offset"][max(0, first - start) :].astype(np.int64)
            largest = max(largest, int(offsets.max(initial=-1)))
        return self._segment.base_offset + largest if largest > self._log.reach else None

    def _went_on(self) -> bool:
        """Return whether batches were appended after the entries for offsets beyond the log.

        A time entry holds the largest timestamp up to its offset. So in a log that lost its end, an
        entry for an offset beyond the end has a larger timestamp than every batch that is left.
        """
        if self._log.times is None:
            return False
        largest = -1
        for _, block in self._log.times.blocks():
            is_beyond = block["offset"].astype(np.int64) > self._log.reach
            largest = max(largest, int(block["timestamp"][is_beyond].max(initial=-1)))
        return 0 <= largest <= self._log.max_timestamp


def _goes_on(index: KeyedIndexFile, first: int, log_end: int) -> bool:
    """Return whether the log is much longer behind entry `first` - 1 than without an entry."""
    if not first:
        return log_end > WITHOUT_ENTRY_BYTES
    last, widest = 0, 0
    for start, block in index.blocks():
        positions = block["position"][: max(0, first - start)].astype(np.int64)
        if not len(positions):
            break
        widest = max(widest, int(np.diff(positions, prepend=last).max()))
        last = int(positions[-1])
    return log_end - last > max(WITHOUT_ENTRY_BYTES, GAPS * widest)
