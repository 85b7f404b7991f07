# SPDX-License-Identifier: Apache-2.0
"""The offset index: which byte of the log to start reading at for an offset.

Mirrors: impl/segproof/kafka/offset_index.py.
Upstream: Kafka, OffsetIndex (since 1.1.1).
Layout: entry i is bytes 8i..8i+7: int32 offset - base offset, int32 position in the log.
Laws: OFFIDX-1 to OFFIDX-23.
Not covered: whether a position is the start of a batch; that needs the log.
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
from segproof_model.language.integers import int32_at, int32_bytes, wrap32
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace


class OffsetPosition(NamedTuple):
    """An offset, and the position in the log from which to read for it."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class OffsetIndex(AbstractIndex):
    """The state of an offset index.

    >>> index = OffsetIndex.open("0.index", 100, 80).after
    >>> index = index.append(105, 10).after.append(110, 20).after
    >>> index.lookup(107), index.lookup(104)
    (OffsetPosition(offset=105, position=10), OffsetPosition(offset=100, position=0))
    """

    ENTRY_SIZE: ClassVar[int] = 8

    last_offset: int
    """Offset of the last entry, or the base offset (OFFIDX-3)."""

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
    ) -> "Step[OffsetIndex | Directory]":
        """Open or create the file; after a failure only the directory is left (ABSIDX-1 to -4)."""
        writable = writable or not profile.opens_read_only
        found = open_file(directory, file, max_index_size_bytes, cls.ENTRY_SIZE, writable, profile)
        if found.outcome is not None:
            return Step(found.directory, found.outcome)
        length = len(found.directory.read(file) or b"")
        return Step(
            cls(
                profile,
                base_offset,
                max_index_size_bytes,
                writable,
                file,
                file,
                found.directory,
                length,
                length // 8,
                found.entries,
                found.entries * 8,
                True,
                base_offset,
            ).with_last_entry()
        )

    def with_last_entry(self) -> Self:
        """Return the same state with the remembered last offset read from the file."""
        last = self.keys()[self.entries - 1] if self.entries else 0
        return replace(self, last_offset=self.base_offset + last)

    def keys(self) -> list[int]:
        """The relative offsets of the slots that are entries and that the file really has."""
        return [int32_at(self.slot(n), 0) for n in range(min(self.entries, self.length // 8))]

    def values(self) -> list[int]:
        """The positions of the same slots."""
        return [int32_at(self.slot(n), 4) for n in range(min(self.entries, self.length // 8))]

    def relative_offsets(self) -> list[int]:
        """The keys are offsets."""
        return self.keys()

    def entries_list(self) -> list[OffsetPosition]:
        """Every entry, with absolute offsets, in the order of the file."""
        return [self._entry(number) for number in range(len(self.keys()))]

    def _entry(self, number: int) -> OffsetPosition:
        slot = self.slot(number)
        return OffsetPosition(self.base_offset + int32_at(slot, 0), int32_at(slot, 4))

    def lookup(self, target_offset: int) -> OffsetPosition | Raised:
        """Return the entry with the greatest offset <= target (OFFIDX-11).

        Below the first entry: the base offset and position 0.
        """
        if not self.is_mapped:
            return UNMAPPED
        slot = self.largest_lower_bound(self.keys(), target_offset - self.base_offset)
        if isinstance(slot, Raised):
            return slot
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self._entry(slot)

    def entry(self, n: int) -> OffsetPosition | Raised:
        """Return entry `n`, counted from 0 (OFFIDX-13, OFFIDX-14)."""
        refused = self.no_entry(n)
        if refused is not None:
            return refused
        found = self._entry(n)
        absolute = self.profile.absolute_entry
        return (
            found if absolute else OffsetPosition(found.offset - self.base_offset, found.position)
        )

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size: int
    ) -> OffsetPosition | None | Raised:
        """Return the first entry at or behind a fetch of `fetch_size` bytes (OFFIDX-15, -16)."""
        if not self.is_mapped:
            return UNMAPPED
        target = fetch_offset.position + fetch_size
        slot = self.smallest_upper_bound(
            self.values(), target if self.profile.upper_bound_exact else wrap32(target)
        )
        if isinstance(slot, Raised):
            return slot
        if slot * 8 >= self.length:  # Behind a failed resize the file may end before the count.
            return INDEX_ERROR
        return None if slot < 0 else self._entry(slot)

    def append(self, offset: int, position: int) -> Step[Self]:
        """Add an entry behind the last one (OFFIDX-2 to OFFIDX-9, OFFIDX-23)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.is_full:
            return Step(self, INVALID_ARGUMENT)
        if self.entries and offset <= self.last_offset:
            return Step(self, Raised(ErrorKind.INVALID_OFFSET))
        relative = self.relative_offset(offset)
        if isinstance(relative, Raised) and self.profile.check_relative_offset:
            return Step(self, relative)
        if not self.is_mapped:
            return Step(self, UNMAPPED)
        if not self.writable:
            return Step(self, READ_ONLY)
        written = int32_bytes(offset - self.base_offset) + int32_bytes(position)
        image = self.image[: self.position] + written + self.image[self.position + 8 :]
        grown = replace(
            self,
            directory=self.directory.write(self.name, image),
            entries=self.entries + 1,
            position=self.position + 8,
            last_offset=offset,
        )
        # Behind a failed resize the position is not that of the count: written, then refused.
        mismatch = grown.position != grown.size_in_bytes
        return Step(grown, Raised(self.profile.mismatch_kind) if mismatch else None)

    def sanity_check(self) -> None | Raised:
        """Raise the corrupt-index error for a broken file (OFFIDX-20); segproof tests all.

        Old releases call it an invalid argument.
        """
        if self.is_refused:
            return UNMAPPED
        broken = Raised(self.profile.sanity_kind)
        if self.measured_length % 8 or not self._last_is_sane():
            return broken
        if self.profile.sanity_checks_all and not self.all_are_sane():
            return broken
        return None

    def _last_is_sane(self) -> bool:
        if self.profile.sanity_allows_base:
            return not self.entries or self.last_offset >= self.base_offset
        return not self.entries or self.last_offset > self.base_offset
