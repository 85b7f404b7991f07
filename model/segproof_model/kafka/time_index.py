# SPDX-License-Identifier: Apache-2.0
"""The time index: from which offset on to look for a timestamp.

Mirrors: impl/segproof/kafka/time_index.py.
Upstream: Kafka, TimeIndex (since 1.1.1).
Layout: entry i is bytes 12i..12i+11: int64 timestamp in ms, int32 offset - base offset.
Laws: TIMEIDX-1 to TIMEIDX-19.
Not covered: whether a timestamp is that of a batch; that needs the log.
Used by: log_segment, the harness.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.kafka.abstract_index import (
    INDEX_ERROR,
    INVALID_ARGUMENT,
    READ_ONLY,
    UNMAPPED,
    AbstractIndex,
    open_file,
)
from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

BUFFER_OVERFLOW = Raised(ErrorKind.BUFFER_OVERFLOW)


class TimestampOffset(NamedTuple):
    """The largest timestamp up to an offset, in ms since 1970."""

    timestamp: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimeIndex(AbstractIndex):
    """The state of a time index.

    >>> index = TimeIndex.open("0.timeindex", 100, 36).after
    >>> index = index.maybe_append(1000, 105).after
    >>> index.lookup(1001), index.lookup(999)
    (TimestampOffset(timestamp=1000, offset=105), TimestampOffset(timestamp=-1, offset=100))
    """

    ENTRY_SIZE: ClassVar[int] = 12

    remembered_entry: TimestampOffset
    """The last entry, or (-1, base offset), as it was when it was stored or read last."""

    @classmethod
    def open(
        cls,
        file: str,
        base_offset: int,
        max_index_size_bytes: int = -1,
        writable: bool = True,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
    ) -> "Step[TimeIndex | Directory]":
        """Open or create the file; after a failure only the directory is left (ABSIDX-1 to -4)."""
        writable = writable or not profile.opens_read_only
        found = open_file(directory, file, max_index_size_bytes, cls.ENTRY_SIZE, writable, profile)
        if found.outcome is not None:
            return Step(found.directory, found.outcome)
        length = len(found.directory.read(file) or b"")
        return Step(
            cls(
                profile=profile,
                base_offset=base_offset,
                max_index_size_bytes=max_index_size_bytes,
                writable=writable,
                name=file,
                opened_name=file,
                directory=found.directory,
                length=length,
                max_entries=length // cls.ENTRY_SIZE,
                entries=found.entries,
                position=found.entries * cls.ENTRY_SIZE,
                is_mapped=True,
                remembered_entry=TimestampOffset(-1, base_offset),
            ).with_last_entry()
        )

    @property
    def is_full(self) -> bool:
        """Whether an append is refused; one slot is kept for the final entry (TIMEIDX-2)."""
        return self.entries >= self.max_entries - 1

    def with_last_entry(self) -> Self:
        """Return the same state with the remembered last entry read from the file."""
        empty = TimestampOffset(-1, self.base_offset)
        last = self._entry(self.entries - 1) if self.entries else empty
        return replace(self, remembered_entry=last)

    @property
    def last_entry(self) -> TimestampOffset | Raised:
        """The last entry, or (-1, base offset) (TIMEIDX-9); old releases read it from the file."""
        if self.profile.last_entry_remembered:
            return self.remembered_entry
        if self.entries == 0:
            return TimestampOffset(-1, self.base_offset)
        if not self.is_mapped:
            return UNMAPPED
        return INDEX_ERROR if self.size_in_bytes > self.length else self._entry(self.entries - 1)

    def resize(self, new_size: int) -> Step[Self]:
        """Set the file length to whole entries and read the last entry again (TIMEIDX-13)."""
        step = AbstractIndex.resize(self, new_size)
        if step.outcome is not True:
            return step
        if step.after.size_in_bytes > step.after.length:
            # Behind a failed resize the last entry may lie outside the file: resized, then refused.
            return Step(step.after, INDEX_ERROR)
        return Step(step.after.with_last_entry(), True)

    def keys(self) -> list[int]:
        """The timestamps of the slots that are entries and that the file really has."""
        return [int64_at(self.slot(n), 0) for n in range(min(self.entries, self.length // 12))]

    def values(self) -> list[int]:
        """The relative offsets of the same slots."""
        return [int32_at(self.slot(n), 8) for n in range(min(self.entries, self.length // 12))]

    def relative_offsets(self) -> list[int]:
        """The values are offsets."""
        return self.values()

    def entries_list(self) -> list[TimestampOffset]:
        """Every entry, with absolute offsets, in the order of the file."""
        return [self._entry(number) for number in range(len(self.keys()))]

    def _entry(self, number: int) -> TimestampOffset:
        slot = self.slot(number)
        return TimestampOffset(int64_at(slot, 0), self.base_offset + int32_at(slot, 8))

    def lookup(self, target_timestamp: int) -> TimestampOffset | Raised:
        """Return the entry with the greatest timestamp <= target, or (-1, base) (TIMEIDX-10)."""
        if not self.is_mapped:
            return UNMAPPED
        slot = self.largest_lower_bound(self.keys(), target_timestamp)
        if isinstance(slot, Raised):
            return slot
        return TimestampOffset(-1, self.base_offset) if slot < 0 else self._entry(slot)

    def entry(self, n: int) -> TimestampOffset | Raised:
        """Return entry `n`, counted from 0 (OFFIDX-13, OFFIDX-14 hold here too)."""
        refused = self.no_entry(n)
        if refused is not None:
            return refused
        found = self._entry(n)
        shift = 0 if self.profile.absolute_entry else self.base_offset
        return TimestampOffset(found.timestamp, found.offset - shift)

    def maybe_append(
        self, timestamp: int, offset: int, skip_full_check: bool = False
    ) -> Step[Self]:
        """Add an entry if the timestamp grew (TIMEIDX-3 to -8, -14 to -16)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.is_full and not skip_full_check:
            return Step(self, INVALID_ARGUMENT)
        last = self.last_entry
        if isinstance(last, Raised):
            return Step(self, last)
        if self.entries and offset < last.offset:
            return Step(self, Raised(ErrorKind.INVALID_OFFSET))
        if self.entries and timestamp < last.timestamp:
            return Step(self, Raised(ErrorKind.ILLEGAL_STATE))
        if timestamp <= last.timestamp:
            return Step(self)
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        if not self.writable:
            return Step(self, READ_ONLY)
        return self._write(timestamp, offset)

    def _write(self, timestamp: int, offset: int) -> Step[Self]:
        """Write the timestamp, then the offset; what fails between leaves half an entry."""
        relative = self.relative_offset(offset)
        room = self.length - self.position
        if room < 8:
            return Step(self, BUFFER_OVERFLOW)
        half = self._put(int64_bytes(timestamp))
        if self.profile.checks_before_changing:
            half = self
        if isinstance(relative, Raised) and self.profile.check_relative_offset:
            return Step(half, relative)
        if room < 12:
            return Step(half, BUFFER_OVERFLOW)
        written = replace(
            self._put(int64_bytes(timestamp) + int32_bytes(offset - self.base_offset)),
            entries=self.entries + 1,
            remembered_entry=TimestampOffset(timestamp, offset),
        )
        if written.position != written.size_in_bytes:
            return Step(written, Raised(self.profile.mismatch_kind))
        return Step(written)

    def _put(self, written: bytes) -> Self:
        end = self.position + len(written)
        image = self.image[: self.position] + written + self.image[end:]
        return replace(self, directory=self.directory.write(self.name, image), position=end)

    def sanity_check(self) -> None | Raised:
        """Raise the corrupt-index error for a broken file (TIMEIDX-17)."""
        if self.is_refused or (self.entries and not self.is_mapped):
            return UNMAPPED
        last, broken = self.last_entry, Raised(self.profile.sanity_kind)
        if isinstance(last, Raised):
            return last
        if self.measured_length % 12:
            return broken
        if self.entries and self.length == 0:
            return INDEX_ERROR
        if self.profile.sanity_checks_all and not self.all_are_sane():
            return broken
        if self.entries and last.timestamp < int64_at(self.slot(0), 0):
            return broken
        if self.entries and last.offset < self.base_offset:
            return broken
        return None
