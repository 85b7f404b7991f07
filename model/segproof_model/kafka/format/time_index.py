# SPDX-License-Identifier: Apache-2.0
"""The time index: from which offset on to look for a timestamp.

Upstream: Kafka 4.4.0, TimeIndex. Otherwise: index_releases, index_deviations.
Layout: entry i is bytes 12i..12i+11: int64 timestamp in ms, int32 offset - base offset.
Laws: TIMEIDX-1 to TIMEIDX-19.
Not covered: whether a timestamp is that of a batch; that needs the log.
"""

from struct import Struct
from typing import NamedTuple

from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class TimestampOffset(NamedTuple):
    """The largest timestamp up to an offset, in ms since 1970."""

    timestamp: int
    offset: int


class TimeIndex(AbstractIndex):
    """A time index.

    >>> from segproof_model.language.files import Files
    >>> index = TimeIndex(Files(), "0.timeindex", 100, 36)
    >>> index.maybe_append(1000, 105)
    >>> index.lookup(1001), index.lookup(999)
    (TimestampOffset(timestamp=1000, offset=105), TimestampOffset(timestamp=-1, offset=100))
    """

    layout, entry_size = Struct(">qi"), 12

    @property
    def is_full(self) -> bool:
        """Whether an append is refused; one slot is kept for the final entry (TIMEIDX-2)."""
        return self.entries >= self.max_entries - 1

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry, or (-1, base offset) (TIMEIDX-9).

        It is `remembered_entry` by another name: a behaviour may read the file here.
        """
        return self.remembered_entry

    @property
    def no_entry(self) -> TimestampOffset:
        """What stands for the entry before the first one."""
        return TimestampOffset(-1, self.base_offset)

    def relative_offsets(self) -> list[int]:
        """Return the values: they are offsets."""
        return self.values()

    def remember_last_entry(self) -> None:
        """Take the last entry from the file."""
        self.remembered_entry = self.stored(self.entries - 1) if self.entries else self.no_entry

    def stored(self, number: int) -> TimestampOffset:
        """Return what lies in a slot."""
        slot = self.slot(number)
        return TimestampOffset(int64_at(slot, 0), self.base_offset + int32_at(slot, 8))

    def lookup(self, target_timestamp: int) -> TimestampOffset:
        """Return the entry with the greatest timestamp <= target, or (-1, base) (TIMEIDX-10)."""
        self.check_mapped()
        slot, _ = self.slots(self.keys(), target_timestamp)
        return self.no_entry if slot < 0 else self.stored(slot)

    def entry(self, n: int) -> TimestampOffset:
        """Return entry `n`, counted from 0 (OFFIDX-13, OFFIDX-14 hold here too)."""
        self.check_entry(n)
        return self.stored(n)

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Add an entry if the timestamp grew (TIMEIDX-3 to -8, -14 to -16).

        A full index refuses first, also what would add nothing.
        Timestamp and offset are written one after the other: what fails between leaves half.
        """
        if self.is_full and not skip_full_check:
            refuse(ErrorKind.INVALID_ARGUMENT)
        last = self.last_entry
        if self.entries and offset < last.offset:
            refuse(ErrorKind.INVALID_OFFSET)
        if self.entries and timestamp < last.timestamp:
            refuse(ErrorKind.ILLEGAL_STATE)
        if timestamp <= last.timestamp:
            return
        self.check_mapped()
        if not self.writable:
            refuse(ErrorKind.READ_ONLY)
        self.check_room(8)
        self.put(int64_bytes(timestamp))
        self.check_distance(offset)
        self.check_room(4)
        self.put(int32_bytes(offset - self.base_offset))
        self.entries += 1
        self.remembered_entry = TimestampOffset(timestamp, offset)
        self.check_appended()

    def check_room(self, size: int) -> None:
        """Refuse to write behind the end of the file."""
        if self.length - self.position < size:
            refuse(ErrorKind.BUFFER_OVERFLOW)

    def resize(self, new_size: int) -> bool | None:
        """Set the file length to whole entries and read the last entry again (TIMEIDX-13)."""
        changed = super().resize(new_size)
        if changed:
            if self.size_in_bytes > self.length:  # behind a failed resize: resized, then refused
                refuse(ErrorKind.INDEX_ERROR)
            self.remember_last_entry()
        return changed

    def sanity_check(self) -> None:
        """Refuse a file that can't be a time index (TIMEIDX-17)."""
        if self.entries:
            self.check_mapped()
        last = self.last_entry
        self.check_length()
        if self.entries and self.length == 0:
            refuse(ErrorKind.INDEX_ERROR)
        if not self.is_sane(last):
            refuse(self.corrupt_kind)

    def is_sane(self, last: TimestampOffset) -> bool:
        """Return whether the last entry can be one of this index, behind the first one."""
        if not self.entries:
            return True
        return last.timestamp >= self.stored(0).timestamp and last.offset >= self.base_offset
