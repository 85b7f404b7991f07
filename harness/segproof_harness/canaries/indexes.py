# SPDX-License-Identifier: Apache-2.0
"""Planted defects of the offset index and the time index."""

import struct
from typing import Any

from segproof.errors import CorruptIndexError
from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof_harness.canaries.register import canary

STEPS_MAX = 200
"""A search that takes more steps will never end; stopping it is not part of the defect."""


@canary("K-01", "offset-index", "ABSIDX-13")
class K01OffsetIndex(OffsetIndex):
    """Reset removes what truncate_to(base offset) finds."""

    def reset(self) -> None:
        """Remove what a search for the base offset finds, then take the maximum size."""
        if not self.writable or self.max_index_size_bytes < 0:
            super().reset()
            return
        self.truncate_to(self.base_offset)
        self.resize(self.max_index_size_bytes)


class StepBudgetError(Exception):
    """A search took more steps than any search may."""


@canary("K-04", "offset-index", "ABSIDX-25")
class K04OffsetIndex(OffsetIndex):
    """The midpoint of the search rounds down, so that it may never end."""

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the entry with the greatest offset <= the target, or never return."""
        self._current()
        keys = [entry.offset for entry in self]
        if not keys or keys[0] > target_offset:
            return OffsetPosition(self.base_offset, 0)
        low, high = 0, len(keys) - 1
        for _ in range(STEPS_MAX):
            if low >= high:
                return self.entry(low)
            middle = (low + high) // 2
            if keys[middle] > target_offset:
                high = middle - 1
            elif keys[middle] < target_offset:
                low = middle
            else:
                return self.entry(middle)
        raise StepBudgetError("the search does not end")


@canary("K-05", "offset-index", "OFFIDX-20")
class K05OffsetIndex(OffsetIndex):
    """sanity_check refuses a last offset that equals the base offset."""

    def sanity_check(self) -> None:
        """Refuse a last offset that equals the base offset."""
        super().sanity_check()
        if self.entries and self.last_offset <= self.base_offset:
            raise CorruptIndexError("the last offset is not above the base offset")


@canary("K-14", "offset-index", "OFFIDX-6")
class K14OffsetIndex(OffsetIndex):
    """An offset too far from the base is cut to 32 bits."""

    def append(self, offset: int, position: int) -> None:
        """Append, cutting what 31 bits do not hold."""
        is_far = not self.can_append_offset(offset)
        is_next = not self.entries or offset > self.last_offset
        if not (is_far and is_next and self.writable and not self.is_full):
            super().append(offset, position)
            return
        view, entries = self._current()
        struct.pack_into(">Ii", view, entries * 8, (offset - self.base_offset) % 2**32, position)
        self.last_offset = offset
        self._publish(view, entries + 1)


@canary("K-51", "offset-index", "ABSIDX-8")
class K51OffsetIndex(OffsetIndex):
    """max_entries is computed at construction only."""

    _max_entries_at_open: int | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._max_entries_at_open = super().max_entries

    @property
    def max_entries(self) -> int:
        """How many entries the file had room for when it was opened."""
        known = self._max_entries_at_open
        return super().max_entries if known is None else known


@canary("K-55", "time-index", "TIMEIDX-2", "TIMEIDX-18")
class K55TimeIndex(TimeIndex):
    """No slot is kept for the final entry."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Append into the last slot too."""
        has_room = self.entries < self.max_entries
        super().maybe_append(timestamp, offset, skip_full_check or has_room)


@canary("K-57", "time-index", "TIMEIDX-11")
class K57TimeIndex(TimeIndex):
    """The time index is truncated by timestamp instead of offset."""

    def truncate_to(self, offset: int) -> None:
        """Keep the entries with a timestamp below `offset`."""
        self._current()
        self._keep_entries(sum(entry.timestamp < offset for entry in self))


@canary("K-58", "time-index", "TIMEIDX-6")
class K58TimeIndex(TimeIndex):
    """An equal timestamp is appended again."""

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Append also what has the last timestamp."""
        last, entries = self.last_entry, self.entries
        super().maybe_append(timestamp, offset, skip_full_check)
        is_repeated = entries > 0 and timestamp == last.timestamp and self.writable
        if is_repeated and self.entries == entries and entries < self.max_entries:
            view, _ = self._current()
            distance = self.relative_offset(offset)
            struct.pack_into(">qi", view, entries * 12, timestamp, distance)
            self.last_entry = TimestampOffset(timestamp, offset)
            self._publish(view, entries + 1)
