# SPDX-License-Identifier: Apache-2.0
"""Whether the two indexes of a segment were made of the log beside them, or of another one.

Where a log of another topic or segment lies under the name, its batches are sound, and almost
every entry of both indexes is wrong. A rotten index is in no order, or leaves the other one right.
A log that holds each offset from its name to the next one is taken for the right one.

Laws: DISK-69.
"""

import numpy as np

from segproof.findings import Severity
from segproof.hints import writes
from segproof.verifying.index_file_checks import KeyedIndexFile
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.rules import declare

declare("log-segment", Severity.ERROR,
    writes("look for the log that belongs here: on another replica, in lost+found and under other"
    " names. Keep both index files until then, which show what was here, and make no new ones."
    " `segproof salvage DIR --out DIR2` saves the other logs, and this one if another index here is"
    " of it; else it sets its batches aside"), "DISK-69")  # fmt: skip

WRONG_MIN = 8
"""With fewer wrong entries in both indexes, each is reported by itself."""
WRONG_TIMES = 3
"""Wrong entries for each right one of the same index, from which on it is of another log."""


class ForeignLogCheck(LogCheck):
    """Judges by what the checks of both indexes have counted."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._has_gap = False
        self._end: int | None = None
        """The offset up to which the log of the indexes went, if that is another one."""
        self._is_sound = True
        self._first: int | None = None
        """Distance of the first offset of the log."""

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether both indexes can be read."""
        return log.offsets is not None and log.times is not None

    def check(self, block: Block) -> None:
        """Take note of offsets that no batch holds, or two do."""
        if self._first is None:
            self._first = int(block.first[0])
        self._is_sound &= bool(block.crc_valid.all())
        self._has_gap |= bool((block.first != block.before + 1).any())

    def finish(self) -> None:
        """Judge a log that was read whole."""
        log, offsets, times = self._log, self._log.offset_entries, self._log.time_entries
        if not (log.is_read and self._is_sound) or offsets.wrong + times.wrong < WRONG_MIN:
            return
        is_other = all(one.wrong > WRONG_TIMES * one.right for one in (offsets, times))
        if not is_other or not _rise(log.offsets) or not _rise(log.times):
            return
        base, following = self._segment.base_offset, self._segment.next_base_offset
        if following == base + log.reach + 1 and not self._has_gap:
            return
        if self._may_be_truncated():
            return
        if self._first and log.begins_elsewhere(base):
            return  # the log that belongs here has another name
        if log.has_other_index:
            return  # it shows nothing of this log
        end = base + _reach(log.offsets) + 1 if following is None else following
        self._end = end = self._first_held(end)
        self._report.add(
            "DISK-69",
            "this log is not the one that its indexes were made of:"
            f" {_counted(offsets.wrong, offsets.right, 'offset index')} lead to no batch, and"
            f" {_counted(times.wrong, times.right, 'time index')} have the time of no batch here,"
            " though the log is whole and both indexes are in order. It was put over the right log,"
            f" whose records, of the offsets {base} to {end - 1}, are gone; or both indexes are of"
            " another log",
            position=0,
            expected=base,
            actual=end,
        )

    def _first_held(self, end: int) -> int:
        """Return the first offset of the log if it is of this partition; else `end`.

        The log begins between its name and `end`, and goes on to the next segment, or the index of
        another segment is of it: what it holds is not gone.
        """
        log, base = self._log, self._segment.base_offset
        first = base + (self._first or 0)
        if not base < first < end:
            return end
        is_joined = base + log.reach + 1 == self._segment.next_base_offset
        return first if is_joined or log.is_of_other_index(log) else end

    def _may_be_truncated(self) -> bool:
        """Return whether a truncation may have left the entries in the indexes of a broker at work.

        The log goes on after it with batches that are not earlier.
        """
        offsets, times = self._log.offsets, self._log.times
        if offsets is None or times is None or self._segment.is_closed or (self._first or 0) < 0:
            return False
        if offsets.count == offsets.slots or not times.count:
            return False
        return int(times.read(times.count - 1, 1)["timestamp"][0]) <= self._log.max_timestamp

    def hand_on(self, carry: LogCarry) -> None:
        """Say that the lost offsets of the segment were told, and up to which."""
        carry.is_gap_told |= self._end is not None
        carry.foreign_end = self._end


def _counted(wrong: int, right: int, name: str) -> str:
    return f"of {wrong + right} entries of the {name}, {wrong}"


def _rise(index: KeyedIndexFile | None) -> bool:
    """Return whether the entries are in order: only offsets in a time index may be the same."""
    before: np.void | None = None
    for _, block in () if index is None else index.blocks():
        names = block.dtype.names or ()
        for name in names:
            values = block[name].astype(np.int64)
            if before is not None:
                values = np.concatenate(([int(before[name])], values))
            is_strict = name == "timestamp" or "position" in names
            if (np.diff(values) < is_strict).any():
                return False
        if len(block):
            before = block[-1].copy()
    return True


def _reach(index: KeyedIndexFile | None) -> int:
    """Return the distance of the largest offset of an index."""
    blocks = () if index is None else index.blocks()
    return max((int(block["offset"].max(initial=-1)) for _, block in blocks), default=-1)
