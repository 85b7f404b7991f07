# SPDX-License-Identifier: Apache-2.0
"""Tell index entries that a truncation left from damaged entries.

A broker counts its entries in memory. When it truncates, it lowers the count and leaves the bytes;
the file of the last segment keeps its full size. So behind the counted entries there may be entries
of batches that were cut off, until new entries are written over them. Closing a segment trims them,
and recovery makes the index new.

This check looks only at an index with a preallocated tail, in a segment that is not closed. If the
entries from one on up to the last are broken, all before them are sound, and the log behind the
sound ones is no longer than a broker leaves without an entry, then the findings of each law become
one note. It is a warning if entries lead to zeros: there were batches, and they are lost.

Upstream: Kafka since 0.11.0: AbstractIndex.truncateToEntries, resize, trimToValidSize.
Laws: ABSIDX-20; SEG-7, OFFIDX-2, DISK-8; DISK-9, TIMEIDX-7.
"""

import numpy as np

from segproof.findings import Severity
from segproof.verifying.index_file_checks import KeyedIndexFile, OffsetIndexFile
from segproof.verifying.log_check import LogCheck

LAWS = {".index": ("SEG-7", "OFFIDX-2", "DISK-8"), ".timeindex": ("DISK-9", "TIMEIDX-7")}
"""Laws that truncated entries break; the first compares an entry with the log."""
WITHOUT_ENTRY_BYTES = 2 << 20
"""What a follower may append at once, and so without an entry inside it, twice."""
GAPS = 8
"""Distances between entries that a log may go on without one more."""
TRUNCATED_HINT = (
    "nothing, while or before a broker runs on this directory: it writes over these entries or"
    " makes the index new; elsewhere make it new with `segproof rebuild`"
)
LOST_HINT = (
    "copy the segment from another replica before a broker starts here: it takes the log to end"
    " before the zeros"
)


class TruncatedEntriesCheck(LogCheck):
    """Puts a note in the place of each law's findings, if a truncation explains them all."""

    def finish(self) -> None:
        """Look at both indexes."""
        for index in (self._log.offsets, self._log.times):
            if index is not None:
                self._soften(index)

    def _soften(self, index: KeyedIndexFile) -> None:
        """Soften the findings of one index; entries that lead to zeros are a warning."""
        segment = self._segment
        log_end = self._log.scan.end_position
        zeros_end = self._log.size if self._log.tail_is_empty else log_end
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
        if isinstance(index, OffsetIndexFile) and _goes_on(index, first, log_end):
            return
        are_lost = False
        if isinstance(index, OffsetIndexFile):
            at = index.read(first, 1)["position"].astype(np.int64)
            are_lost = bool(((at >= log_end) & (at < zeros_end)).any())
        why = "they were left by a truncation, or are damaged"
        hint = TRUNCATED_HINT
        if are_lost:
            why = f"there are zeros from byte {log_end} on, and batches when these were written"
            hint = LOST_HINT
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
                severity=Severity.WARNING if are_lost else Severity.NOTE,
                hint=hint,
            )


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
