# SPDX-License-Identifier: Apache-2.0
"""Offset and time index entries against the batches of their log.

All offsets are distances from the base offset. An entry for an offset inside a loose batch is not
judged (see verifying/log_blocks.py).

An offset index that was emptied or cut short has no wrong entry. What tells is the log behind its
last entry: how much of it a broker leaves without an entry, and how many entries the time index has
for it.

Upstream: Kafka since 0.11.0: LogSegment.append writes both indexes, LogSegment.recover too.
Laws: SEG-7, DISK-9, DISK-10, DISK-24.
"""

from typing import TypeVar

import numpy as np

from segproof.findings import Severity
from segproof.reading.sound_batches import FAR
from segproof.verifying.index_file_checks import EntryWindow, OffsetIndexFile, TimeIndexFile
from segproof.verifying.log_blocks import Block, Bools
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.reporting import Described, Int64Array
from segproof.verifying.rules import REBUILD, declare

__all__ = ["IndexEndCheck", "OffsetEntriesCheck", "TimeEntriesCheck"]

declare("offset-index", Severity.ERROR, REBUILD, "SEG-7")
declare("offset-index", Severity.WARNING,
    "no record is lost, but each read behind the last entry goes through the log from there;"
    " lawful only if index.interval.bytes was about so large. Else " + REBUILD,
    "DISK-24")  # fmt: skip
declare("time-index", Severity.ERROR, REBUILD, "DISK-9", "DISK-10")

STRETCH_BYTES = 16 << 20
"""What a log may hold behind the last entry; one append has about 1 MiB."""
TIMED_STRETCH_BYTES = 64 << 10
"""The same, where the time index has more than TIMED_ENTRIES entries for it."""
TIMED_ENTRIES = 8
GAPS = 8
"""Distances between entries that a log may go on without one more."""
LOG_APPEND_TIME = 8
"""The attribute bit of timestamps that the broker set."""


class OffsetEntriesCheck(LogCheck):
    """Judges where the entries of an offset index point."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._index = _there(log.offsets)
        self._window = EntryWindow(self._index)
        self._base = log.segment.base_offset
        # Entries whose offset lies further on than the log has been read: number and offset.
        self._later: tuple[Int64Array, Int64Array] = (np.empty(0, np.int64), np.empty(0, np.int64))
        self._outside(self._window.take(0))

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether the index can be read."""
        return log.offsets is not None

    def check(self, block: Block) -> None:
        """Judge the entries that point into the block."""
        numbers, positions, offsets = self._window.take(block.end_position)
        # What comes too late is out of order, which DISK-8 has said already.
        is_late = (positions >= 0) & (positions < block.table["position"][0])
        if is_late.any():
            numbers, positions = numbers[~is_late], positions[~is_late]
            offsets = offsets[~is_late]
        rows = np.searchsorted(block.table["position"], positions)
        starts = rows < len(block.table)
        starts[starts] = block.table["position"][rows[starts]] == positions[starts]
        if not starts.all():
            self._broken(
                numbers[~starts],
                "the entry for offset {} points at byte {}, where no batch begins",
                offsets[~starts],
                positions[~starts],
                "the first byte of a batch",
            )
            numbers, offsets = numbers[starts], offsets[starts]
            rows, positions = rows[starts], positions[starts]
        passed = block.before[rows] >= offsets
        if passed.any():
            self._broken(
                numbers[passed],
                "the entry for offset {} points at byte {}, and a batch before that byte ends at"
                " or behind this offset: a read would miss it",
                offsets[passed],
                positions[passed],
                "the batch of the offset, or one before it",
            )
            numbers, offsets = numbers[~passed], offsets[~passed]
        self._check_held(block, numbers, offsets)

    def _check_held(self, block: Block, numbers: Int64Array, offsets: Int64Array) -> None:
        """Judge whether the offsets are the first or last of a batch, as far as it is read."""
        numbers = np.concatenate((self._later[0], numbers))
        offsets = np.concatenate((self._later[1], offsets))
        is_read = offsets <= block.reach[-1]
        self._later = numbers[~is_read], offsets[~is_read]
        numbers, offsets = numbers[is_read], offsets[is_read]
        rows = np.searchsorted(block.reach, offsets)
        is_key = (block.last[rows] == offsets) | block.is_doubtful[rows]
        is_key |= block.first[rows] == offsets
        # Which offset a compressed message of magic 0 or 1 begins with is not known here.
        is_key |= (block.table["record_count"][rows] < 0) & (block.table["magic"][rows] < 2)
        if not is_key.all():
            self._broken(
                numbers[~is_key],
                "the entry is for offset {}, which is neither the first nor the last of a batch",
                offsets[~is_key],
                offsets[~is_key],
                "the first or last offset of a batch",
            )

    def finish(self) -> None:
        """Judge the entries that point behind the last batch."""
        log, end_position = self._log, self._log.scan.end_position
        behind = self._window.take(log.size)
        if log.is_read:
            self._outside(behind)
        elif len(behind[0]):
            self._out_of_reach(int(behind[0].min()), len(behind[0]), end_position)
        if log.is_read and log.is_sound:
            self._broken(
                self._later[0],
                "the entry is for offset {}, which no batch at or behind its position ends with",
                self._later[1],
                self._later[1],
                "the first or last offset of a batch",
            )
        self._outside(self._window.take(FAR))
        if self._window.unread:
            self._out_of_reach(None, self._window.unread, end_position)

    def _outside(self, taken: tuple[Int64Array, Int64Array, Int64Array]) -> None:
        numbers, positions, offsets = taken
        self._broken(
            numbers,
            "the entry for offset {} points at byte {}, where the log holds no batch",
            offsets,
            positions,
            f"0 to {self._log.size - 1}" if self._log.size else "no entry: the log is empty",
        )

    def _out_of_reach(self, number: int | None, count: int, end_position: int) -> None:
        self._index.report.add(
            "SEG-7",
            f"{count} entries could not be compared: the log cannot be read behind byte"
            f" {end_position}, or the entries are in no order",
            position=None if number is None else number * self._index.entry_bytes,
            actual=count,
            severity=Severity.NOTE,
            hint="mend first what else was found, then verify again",
        )

    def _broken(
        self, numbers: Int64Array, words: str, offsets: Int64Array, actual: Int64Array, what: str
    ) -> None:
        if not len(numbers):
            return
        order = np.argsort(numbers)

        def describe(row: int) -> Described:
            at = order[row]
            offset = self._base + int(offsets[at])
            shown = int(actual[at]) if "{}, where" in words or "byte {}" in words else offset
            return Described(words.format(offset, shown), what, shown)

        self._index.report.add_rows("SEG-7", numbers[order] * self._index.entry_bytes, describe)


class TimeEntriesCheck(LogCheck):
    """Judges whether each time index entry has the largest timestamp up to its offset."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._index = _there(log.times)
        self._window = EntryWindow(self._index)
        self._base = log.segment.base_offset
        self._largest = -1

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether the index can be read."""
        return log.times is not None

    def check(self, block: Block) -> None:
        """Judge the entries whose offsets the block reaches."""
        is_sound = block.crc_valid
        times = np.where(is_sound, block.table["max_timestamp"], -1)
        up_to = np.maximum(np.maximum.accumulate(times), self._largest)
        earlier = np.empty(len(times), np.int64)
        earlier[0], earlier[1:] = self._largest, up_to[:-1]
        self._largest = int(up_to[-1])
        numbers, offsets, timestamps = self._window.take(int(block.reach[-1]) + 1)
        # What comes too late is out of order, which TIMEIDX-7 has said already.
        is_late = (offsets >= 0) & (offsets <= block.before[0])
        if is_late.any():
            numbers, offsets = numbers[~is_late], offsets[~is_late]
            timestamps = timestamps[~is_late]
        if not len(numbers):
            return
        rows = np.searchsorted(block.reach, offsets)
        held = (block.first[rows] <= offsets) | block.is_doubtful[rows]
        self._broken(
            numbers, ~held, "no batch holds offset {0}, which the entry gives timestamp {1}",
            offsets, timestamps, "an offset of a batch",
        )  # fmt: skip
        differs = held & (times[rows] != timestamps) & ~block.is_doubtful[rows]
        self._broken(
            numbers, differs,
            "the entry gives offset {0} the timestamp {1}; the largest one in the batch of that"
            " offset is {2}",
            offsets, timestamps, times[rows],
        )  # fmt: skip
        smaller = held & ~differs & (earlier[rows] > timestamps)
        self._broken(
            numbers, smaller,
            "the entry says that no timestamp up to offset {0} is above {1}; an earlier batch has"
            " {2}",
            offsets, timestamps, earlier[rows],
        )  # fmt: skip
        is_set_by_broker = block.table["attributes"][rows] & LOG_APPEND_TIME != 0
        again = held & (earlier[rows] == timestamps) & (times[rows] == timestamps)
        self._broken(
            numbers, again & ~is_set_by_broker & ~block.is_doubtful[rows],
            "the entry gives offset {0} the timestamp {1}, which an earlier batch has too: a search"
            " by time would pass that one over",
            offsets, timestamps, "an offset of the earlier batch",
        )  # fmt: skip

    def finish(self) -> None:
        """Judge the entries behind the last batch, and the last entry of a closed segment."""
        is_sound = self._log.is_read and self._log.is_sound
        numbers, offsets, timestamps = self._window.take(FAR)
        if is_sound:
            self._broken(
                numbers, np.ones(len(numbers), np.bool_),
                "no batch holds offset {0}, which the entry gives timestamp {1}",
                offsets, timestamps, "an offset of a batch",
            )  # fmt: skip
        unread = self._window.unread + (0 if is_sound else len(numbers))
        if unread:
            self._index.report.add(
                "DISK-9",
                f"{unread} entries could not be compared: the log cannot be read so far, or the"
                " entries are in no order",
                actual=unread,
                severity=Severity.NOTE,
                hint="mend first what else was found, then verify again",
            )
        elif is_sound and self._segment.is_closed:
            self._check_last()

    def _check_last(self) -> None:
        max_timestamp = self._log.max_timestamp
        count = self._index.count
        last = self._index.read(count - 1, 1) if count else self._index.read(0, 0)
        timestamp = int(last["timestamp"][0]) if len(last) else -1
        if timestamp == max_timestamp or max_timestamp < 0 or (count and not len(last)):
            return
        what = f"its last entry says {timestamp}" if count else "it has no entry"
        self._index.report.add(
            "DISK-10",
            f"the largest timestamp of the segment is {max_timestamp}, and {what}, although"
            f" {self._segment.why_closed}: a search by time would pass this segment over",
            position=max(0, count - 1) * self._index.entry_bytes,
            expected=max_timestamp,
            actual=timestamp,
        )

    def _broken(
        self,
        numbers: Int64Array,
        is_broken: Bools,
        words: str,
        offsets: Int64Array,
        timestamps: Int64Array,
        expected: Int64Array | str,
    ) -> None:
        broken = np.flatnonzero(is_broken)
        if not len(broken):
            return
        broken = broken[np.argsort(numbers[broken])]

        def describe(row: int) -> Described:
            at = broken[row]
            offset, timestamp = self._base + int(offsets[at]), int(timestamps[at])
            other = expected if isinstance(expected, str) else int(expected[at])
            return Described(words.format(offset, timestamp, other), other, timestamp)

        self._index.report.add_rows("DISK-9", numbers[broken] * self._index.entry_bytes, describe)


class IndexEndCheck(LogCheck):
    """Judges where the offset index ends."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._offsets = _there(log.offsets)
        self._position = 0
        self._reach = -1

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether the index can be read."""
        return log.offsets is not None

    def check(self, block: Block) -> None:
        """Take in where the last batch of the block begins."""
        rows = int(np.searchsorted(block.table["position"], self._log.known_bytes))
        if rows:
            self._position = int(block.table["position"][rows - 1])
            self._reach = int(block.reach[rows - 1])

    def finish(self) -> None:
        """Judge the index."""
        offsets = self._offsets
        stretch = self._position - offsets.last_position
        if stretch <= TIMED_STRETCH_BYTES:
            return
        allowed = max(STRETCH_BYTES, GAPS * offsets.widest_gap)
        timed = self._timed()
        also = ""
        if timed > TIMED_ENTRIES:
            allowed = TIMED_STRETCH_BYTES
            also = f", while {timed} entries of the time index are for offsets there"
        if stretch <= allowed:
            return
        count = offsets.count
        last = f"its last of {count} entries points at byte {offsets.last_position}"
        offsets.report.add(
            "DISK-24",
            f"{last if count else 'it has no entry'}, and the log goes on for {stretch} bytes to a"
            f" batch at byte {self._position}{also}: the index was emptied or cut short",
            position=count * offsets.entry_bytes,
            expected=allowed,
            actual=stretch,
        )

    def _timed(self) -> int:
        """Return how many entries of the time index are for offsets behind the last entry."""
        if self._log.times is None:
            return 0
        count = 0
        for _, block in self._log.times.blocks():
            distances = block["offset"].astype(np.int64)
            is_there = (distances > self._offsets.last_offset) & (distances <= self._reach)
            count += int(np.count_nonzero(is_there))
        return count


Index = TypeVar("Index", OffsetIndexFile, TimeIndexFile)


def _there(index: Index | None) -> Index:
    assert index is not None
    return index
