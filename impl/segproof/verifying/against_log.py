# SPDX-License-Identifier: Apache-2.0
"""Offset and time index entries against the batches of their log.

Both take an EntryWindow and go beside the log, block by block; all offsets are distances from the
base offset. An entry that ends inside a loose batch is not judged (see verifying/log_checks.py).

Laws: SEG-7, DISK-9, DISK-10.
"""

import numpy as np
from numpy.typing import NDArray

from segproof.findings import Severity
from segproof.verifying.index_checks import EntryWindow, IndexStream
from segproof.verifying.log_checks import FAR, Block
from segproof.verifying.reporting import Described, Int64Array, Reporter
from segproof.verifying.segments import Segment

__all__ = ["OffsetEntriesCheck", "TimeEntriesCheck"]

Bools = NDArray[np.bool_]
LOG_APPEND_TIME = 8
"""The attribute bit of timestamps that the broker set."""


class OffsetEntriesCheck:
    """Judges where the entries of an offset index point."""

    def __init__(
        self, stream: IndexStream, log_size: int, segment: Segment, reporter: Reporter
    ) -> None:
        self._window = EntryWindow(stream)
        self._stream = stream
        self._log_size = log_size
        self._base = segment.base_offset
        self._reporter = reporter
        # Entries whose offset lies further on than the log has been read: number and offset.
        self._later: tuple[Int64Array, Int64Array] = (np.empty(0, np.int64), np.empty(0, np.int64))
        self._outside(self._window.take(0))

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
            self._report(
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
            self._report(
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
            self._report(
                numbers[~is_key],
                "the entry is for offset {}, which is neither the first nor the last of a batch",
                offsets[~is_key],
                offsets[~is_key],
                "the first or last offset of a batch",
            )

    def finish(self, end_position: int, is_read: bool, is_sound: bool) -> None:
        """Judge the entries that point behind the last batch, once the log is read."""
        behind = self._window.take(self._log_size)
        if is_read:
            self._outside(behind)
        elif len(behind[0]):
            self._out_of_reach(int(behind[0].min()), len(behind[0]), end_position)
        if is_sound:
            self._report(
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
        self._report(
            numbers,
            "the entry for offset {} points at byte {}, where the log holds no batch",
            offsets,
            positions,
            f"0 to {self._log_size - 1}" if self._log_size else "no entry: the log is empty",
        )

    def _out_of_reach(self, number: int | None, count: int, end_position: int) -> None:
        self._reporter.add(
            "SEG-7",
            self._stream.path,
            f"{count} entries could not be compared: the log cannot be read behind byte"
            f" {end_position}, or the entries are in no order",
            position=None if number is None else number * 8,
            actual=count,
            severity=Severity.NOTE,
            hint="mend first what else was found, then verify again",
        )

    def _report(
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

        self._reporter.add_rows("SEG-7", self._stream.path, numbers[order] * 8, describe)


class TimeEntriesCheck:
    """Judges whether each entry of a time index tells where a largest timestamp so far is met."""

    def __init__(self, stream: IndexStream, segment: Segment, reporter: Reporter) -> None:
        self._window = EntryWindow(stream)
        self._stream = stream
        self._segment = segment
        self._base = segment.base_offset
        self._reporter = reporter
        self._largest = -1

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
        self._report(
            numbers, ~held, "no batch holds offset {0}, which the entry gives timestamp {1}",
            offsets, timestamps, "an offset of a batch",
        )  # fmt: skip
        differs = held & (times[rows] != timestamps) & ~block.is_doubtful[rows]
        self._report(
            numbers, differs,
            "the entry gives offset {0} the timestamp {1}; the largest one in the batch of that"
            " offset is {2}",
            offsets, timestamps, times[rows],
        )  # fmt: skip
        smaller = held & ~differs & (earlier[rows] > timestamps)
        self._report(
            numbers, smaller,
            "the entry says that no timestamp up to offset {0} is above {1}; an earlier batch has"
            " {2}",
            offsets, timestamps, earlier[rows],
        )  # fmt: skip
        is_set_by_broker = block.table["attributes"][rows] & LOG_APPEND_TIME != 0
        again = held & (earlier[rows] == timestamps) & (times[rows] == timestamps)
        self._report(
            numbers, again & ~is_set_by_broker & ~block.is_doubtful[rows],
            "the entry gives offset {0} the timestamp {1}, which an earlier batch has too: a search"
            " by time would pass that one over",
            offsets, timestamps, "an offset of the earlier batch",
        )  # fmt: skip

    def finish(self, is_sound: bool, max_timestamp: int) -> None:
        """Judge the entries behind the last batch, and the last entry of a closed segment."""
        numbers, offsets, timestamps = self._window.take(FAR)
        if is_sound:
            self._report(
                numbers, np.ones(len(numbers), np.bool_),
                "no batch holds offset {0}, which the entry gives timestamp {1}",
                offsets, timestamps, "an offset of a batch",
            )  # fmt: skip
        unread = self._window.unread + (0 if is_sound else len(numbers))
        if unread:
            self._reporter.add(
                "DISK-9",
                self._stream.path,
                f"{unread} entries could not be compared: the log cannot be read so far, or the"
                " entries are in no order",
                actual=unread,
                severity=Severity.NOTE,
                hint="mend first what else was found, then verify again",
            )
        elif is_sound and self._segment.is_closed:
            self._check_last(max_timestamp)

    def _check_last(self, max_timestamp: int) -> None:
        count = self._stream.count
        last = self._stream.read(count - 1, 1) if count else self._stream.read(0, 0)
        timestamp = int(last["timestamp"][0]) if len(last) else -1
        if timestamp == max_timestamp or max_timestamp < 0 or (count and not len(last)):
            return
        what = f"its last entry says {timestamp}" if count else "it has no entry"
        self._reporter.add(
            "DISK-10",
            self._stream.path,
            f"the largest timestamp of the segment is {max_timestamp}, and {what}, although"
            f" {self._segment.why_closed}: a search by time would pass this segment over",
            position=max(0, count - 1) * 12,
            expected=max_timestamp,
            actual=timestamp,
        )

    def _report(
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

        self._reporter.add_rows("DISK-9", self._stream.path, numbers[broken] * 12, describe)
