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

from typing import Any

import numpy as np

from segproof.counts import plural
from segproof.findings import Severity
from segproof.hints import Hint, reads
from segproof.reading.offset_distances import FAR
from segproof.reading.rows import Bools, Int64Array, shifted
from segproof.verifying.index_file_checks import EntryWindow, KeyedIndexFile
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.rules import REBUILD, declare

declare("offset-index", Severity.ERROR, REBUILD, "SEG-7")
declare("offset-index", Severity.WARNING,
    REBUILD.after("no record is lost, but each read behind the last entry goes through the log from"
    " there; lawful only if index.interval.bytes was about so large. Else "),
    "DISK-24")  # fmt: skip
declare("time-index", Severity.ERROR, REBUILD, "DISK-9", "DISK-10")

BEHIND_LOG = reads(
    "compare the segment with another replica: the log may have lost its end. Until then keep this"
    " file, which shows what was there"
)
STRETCH_BYTES = 16 << 20
"""What a log may hold behind the last entry; one append has about 1 MiB."""
TIMED_STRETCH_BYTES = 64 << 10
"""The same, where the time index has more than TIMED_ENTRIES entries for it."""
TIMED_ENTRIES = 8
GAPS = 8
"""Distances between entries that a log may go on without one more."""
LOG_APPEND_TIME = 8
"""The attribute bit of timestamps that the broker set."""


class _EntriesCheck(LogCheck):
    """Judges the entries of one index, as the log goes by."""

    def __init__(self, log: LogPass, index: KeyedIndexFile | None, law: str) -> None:
        super().__init__(log)
        assert index is not None
        self._index = index
        self._law = law
        self._window = EntryWindow(index)
        self._base = log.segment.base_offset

    def _broken(
        self,
        where: Bools,
        numbers: Int64Array,
        message: str,
        expected: Int64Array | str,
        actual: Int64Array,
        *,
        hint: Hint | None = None,
        **columns: Any,
    ) -> None:
        """Report some of the entries, in the order of their numbers."""
        rows = np.flatnonzero(where)
        if len(rows):
            self._log.has_odd_entries = True
            rows, positions = rows[np.argsort(numbers[rows])], numbers * self._index.entry_bytes
            report = self._index.report
            report.add_where(
                self._law, rows, positions, message, expected, actual, hint=hint, **columns
            )

    def _hint_behind(self, beyond: Int64Array) -> Hint | None:
        """Return what to do about entries behind the end of a log that may have lost its end.

        `beyond` has the values, in the order of their keys, of the entries that say so of the last
        log by both of their fields. Values that do not rise are of a damaged index.
        """
        is_proof = len(beyond) > 0 and bool((np.diff(beyond) > 0).all())
        following, log = self._segment.next_base_offset, self._log
        is_cut = is_proof if following is None else self._base + log.reach + 1 < following
        return BEHIND_LOG if is_cut and not log.has_other_index else None

    def _not_compared(self, count: int, where: str, number: int | None = None) -> None:
        """Note entries that could not be compared, from a number on if it is known."""
        self._index.report.add(
            self._law,
            f"{plural(count, 'entry')} could not be compared: the log cannot be read {where}, or"
            " the entries are in no order",
            position=None if number is None else number * self._index.entry_bytes,
            actual=count,
            severity=Severity.NOTE,
            hint=reads("see first what else was found, then verify again"),
        )


class OffsetEntriesCheck(_EntriesCheck):
    """Judges where the entries of an offset index point."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log, log.offsets, "SEG-7")
        # Entries whose offset lies further on than the log has been read: number and offset.
        self._later: tuple[Int64Array, Int64Array] = (np.empty(0, np.int64), np.empty(0, np.int64))
        self._is_pointed_beyond = False
        self._outside(self._window.take(0))

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether the index can be read."""
        return log.offsets is not None

    def check(self, block: Block) -> None:
        """Judge the entries that point into the block."""
        numbers, positions, offsets = self._window.take(block.end_position)
        starts = block.table["position"]
        # What comes too late is out of order, which DISK-8 has said already.
        judged = (positions < 0) | (positions >= starts[0])
        rows = np.searchsorted(starts, positions)
        leads = rows < len(starts)
        leads[leads] = starts[rows[leads]] == positions[leads]
        counted = self._log.offset_entries
        counted.right += int(np.count_nonzero(judged & leads))
        counted.wrong += int(np.count_nonzero(judged & ~leads))
        columns: dict[str, Any] = {"offset": offsets + self._base, "position": positions}
        self._broken(
            judged & ~leads, numbers,
            "the entry for offset {offset} points at byte {position}, where no batch begins",
            "the first byte of a batch", positions, **columns,
        )  # fmt: skip
        judged &= leads
        passed = judged.copy()
        passed[judged] = block.before[rows[judged]] >= offsets[judged]
        self._broken(
            passed, numbers,
            "the entry for offset {offset} points at byte {position}, and a batch before that byte"
            " ends at or behind this offset: a read would miss it",
            "the batch of the offset, or one before it", positions, **columns,
        )  # fmt: skip
        judged &= ~passed
        self._check_held(block, numbers[judged], offsets[judged])

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
        shown = offsets + self._base
        self._broken(
            ~is_key, numbers,
            "the entry is for offset {offset}, which is neither the first nor the last of a batch",
            "the first or last offset of a batch", shown, offset=shown,
        )  # fmt: skip

    def finish(self) -> None:
        """Judge the entries that point behind the last batch."""
        log = self._log
        unread = f"behind byte {log.scan.end_position}"
        behind = self._window.take(log.size)
        if log.is_read:
            self._outside(behind)
        elif len(behind[0]):
            self._not_compared(len(behind[0]), unread, int(behind[0].min()))
        if log.is_read and log.is_sound:
            numbers, shown = self._later[0], self._later[1] + self._base
            self._broken(
                np.ones(len(numbers), np.bool_), numbers,
                "the entry is for offset {offset}, which no batch at or behind its position ends"
                " with", "the first or last offset of a batch", shown, offset=shown,
            )  # fmt: skip
        self._outside(self._window.take(FAR))
        if self._window.unread:
            self._not_compared(self._window.unread, unread)

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on whether an entry points behind the end of the log."""
        is_beyond = self._is_pointed_beyond and not self._log.has_other_index
        carry.is_pointed_beyond = is_beyond

    def _outside(self, taken: tuple[Int64Array, Int64Array, Int64Array]) -> None:
        numbers, positions, offsets = taken
        if not len(numbers):
            return
        size = self._log.size
        self._is_pointed_beyond |= bool((positions >= size).any())
        self._broken(
            np.ones(len(numbers), np.bool_), numbers,
            "the entry for offset {offset} points at byte {position}, where the log holds no batch",
            f"0 to {size - 1}" if size else "no entry: the log is empty", positions,
            hint=self._hint_behind(offsets[(positions >= size) & (offsets > self._log.reach)]),
            offset=offsets + self._base, position=positions,
        )  # fmt: skip


class TimeEntriesCheck(_EntriesCheck):
    """Judges whether each time index entry has the largest timestamp up to its offset."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log, log.times, "DISK-9")
        self._largest = -1
        self._least: int | None = None
        self._unheld: list[Int64Array] = []
        """Timestamps of entries for offsets that no batch holds."""

    @classmethod
    def applies(cls, log: LogPass) -> bool:
        """Return whether the index can be read."""
        return log.times is not None

    def check(self, block: Block) -> None:
        """Judge the entries whose offsets the block reaches."""
        times = np.where(block.crc_valid, block.table["max_timestamp"], -1)
        up_to = np.maximum(np.maximum.accumulate(times), self._largest)
        earlier = shifted(up_to, self._largest)
        self._largest = int(up_to[-1])
        sound = times[block.crc_valid]
        if len(sound):
            least = int(sound.min())
            self._least = least if self._least is None else min(self._least, least)
        numbers, offsets, timestamps = self._window.take(int(block.reach[-1]) + 1)
        if not len(numbers):
            return
        # What comes too late is out of order, which TIMEIDX-7 has said already.
        judged = (offsets < 0) | (offsets > block.before[0])
        rows = np.searchsorted(block.reach, offsets)
        own, before = times[rows], earlier[rows]
        is_sure = ~block.is_doubtful[rows]
        held = judged & ((block.first[rows] <= offsets) | ~is_sure)
        self._misplaced(judged & ~held, numbers, offsets, timestamps)
        self._unheld.append(timestamps[judged & ~held])
        counted = self._log.time_entries
        counted.right += int(np.count_nonzero(held & (own == timestamps)))
        counted.wrong += int(np.count_nonzero(held & (own != timestamps)))
        columns: dict[str, Any] = {
            "offset": offsets + self._base,
            "timestamp": timestamps,
            "own": own,
            "before": before,
        }
        differs = held & (own != timestamps) & is_sure
        self._broken(
            differs, numbers,
            "the entry gives offset {offset} the timestamp {timestamp}; the largest one in the"
            " batch of that offset is {own}", own, timestamps, **columns,
        )  # fmt: skip
        self._broken(
            held & ~differs & (before > timestamps), numbers,
            "the entry says that no timestamp up to offset {offset} is above {timestamp}; an"
            " earlier batch has {before}", before, timestamps, **columns,
        )  # fmt: skip
        is_set_by_broker = block.table["attributes"][rows] & LOG_APPEND_TIME != 0
        again = held & (before == timestamps) & (own == timestamps)
        self._broken(
            again & ~is_set_by_broker & is_sure, numbers,
            "the entry gives offset {offset} the timestamp {timestamp}, which an earlier batch has"
            " too: a search by time would pass that one over",
            "an offset of the earlier batch", timestamps, **columns,
        )  # fmt: skip

    def _misplaced(
        self, where: Bools, numbers: Int64Array, offsets: Int64Array, timestamps: Int64Array,
        hint: Hint | None = None,
    ) -> None:  # fmt: skip
        self._broken(
            where, numbers, "no batch holds offset {offset}, which the entry gives timestamp"
            " {timestamp}", "an offset of a batch", timestamps,
            hint=hint, offset=offsets + self._base, timestamp=timestamps,
        )  # fmt: skip

    def finish(self) -> None:
        """Judge the entries behind the last batch, and the last entry of a closed segment."""
        is_sound = self._log.is_read and self._log.is_sound
        numbers, offsets, timestamps = self._window.take(FAR)
        if self._least is not None:
            # One of another time is of another log; compaction may have taken the others.
            times = np.concatenate((*self._unheld, timestamps))
            is_other = (times < self._least) | (times > self._largest)
            self._log.time_entries.wrong += int(np.count_nonzero(is_other))
        if is_sound:
            hint = self._hint_behind(timestamps[timestamps > self._log.max_timestamp])
            self._misplaced(np.ones(len(numbers), np.bool_), numbers, offsets, timestamps, hint)
        unread = self._window.unread + (0 if is_sound else len(numbers))
        if unread:
            self._not_compared(unread, "so far")
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


def report_beyond_torn(log: LogPass, indexed_end: int) -> None:
    """Report that a time index says how far a log went whose end is damaged."""
    if log.times is not None:
        log.times.report.add(
            "DISK-9",
            f"the end of the log is damaged, and the log held offset {indexed_end - 1} when the"
            " last entry was written: more is lost than the damaged batch",
            expected=f"an offset up to {log.segment.base_offset + log.reach}",
            actual=indexed_end - 1,
            severity=Severity.WARNING,
            hint=BEHIND_LOG,
        )


class IndexEndCheck(LogCheck):
    """Judges where the offset index ends."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        assert log.offsets is not None
        self._offsets = log.offsets
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
        last = f"its last of {plural(count, 'entry')} points at byte {offsets.last_position}"
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
