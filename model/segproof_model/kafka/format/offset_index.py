# SPDX-License-Identifier: Apache-2.0
"""The offset index: which byte of the log to start reading at for an offset.

Upstream: Kafka 4.4.0, OffsetIndex. Otherwise: index_releases, index_deviations.
Layout: entry i is bytes 8i..8i+7: int32 offset - base offset, int32 position in the log.
Laws: OFFIDX-1 to OFFIDX-23.
Not covered: whether a position is the start of a batch; that needs the log.
"""

from struct import Struct
from typing import NamedTuple

from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.language.integers import int32_at, int32_bytes, wrap32
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class OffsetPosition(NamedTuple):
    """An offset, and the position in the log from which to read for it."""

    offset: int
    position: int


class OffsetIndex(AbstractIndex):
    """An offset index.

    >>> from segproof_model.language.files import Files
    >>> index = OffsetIndex(Files(), "0.index", 100, 80)
    >>> index.append(105, 10)
    >>> index.append(110, 20)
    >>> index.lookup(107), index.lookup(104)
    (OffsetPosition(offset=105, position=10), OffsetPosition(offset=100, position=0))
    """

    layout, entry_size = Struct(">ii"), 8

    def relative_offsets(self) -> list[int]:
        """Return the keys: they are offsets."""
        return self.keys()

    def remember_last_entry(self) -> None:
        """Take the offset of the last entry, or the base offset (OFFIDX-3)."""
        self.last_offset = self.base_offset + (self.keys()[self.entries - 1] if self.entries else 0)

    def stored(self, number: int) -> OffsetPosition:
        """Return what lies in a slot."""
        slot = self.slot(number)
        return OffsetPosition(self.base_offset + int32_at(slot, 0), int32_at(slot, 4))

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Return the entry with the greatest offset <= target (OFFIDX-11).

        Below the first entry: the base offset and position 0.
        """
        self.check_mapped()
        slot, _ = self.slots(self.keys(), target_offset - self.base_offset)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self.stored(slot)

    def entry(self, n: int) -> OffsetPosition:
        """Return entry `n`, counted from 0 (OFFIDX-13, OFFIDX-14)."""
        self.check_entry(n)
        return self.stored(n)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size: int
    ) -> OffsetPosition | None:
        """Return the first entry at or behind a fetch of this many bytes (OFFIDX-15, -16)."""
        self.check_mapped()
        _, slot = self.slots(self.values(), self.end_of(fetch_offset, fetch_size))
        if slot < 0:
            return None
        if slot * self.entry_size >= self.length:  # behind a failed resize
            refuse(ErrorKind.INDEX_ERROR)
        return self.stored(slot)

    def end_of(self, fetch_offset: OffsetPosition, fetch_size: int) -> int:
        """Return where a fetch ends: a position of 32 bits."""
        return wrap32(fetch_offset.position + fetch_size)

    def append(self, offset: int, position: int) -> None:
        """Add an entry behind the last one (OFFIDX-2 to OFFIDX-9, OFFIDX-23)."""
        if self.is_full:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if self.entries and offset <= self.last_offset:
            refuse(ErrorKind.INVALID_OFFSET)
        self.check_distance(offset)
        self.check_mapped()
        if not self.writable:
            refuse(ErrorKind.READ_ONLY)
        self.put(int32_bytes(offset - self.base_offset) + int32_bytes(position))
        self.entries += 1
        self.last_offset = offset
        self.check_appended()

    def sanity_check(self) -> None:
        """Refuse a broken length, or a last offset below the base (OFFIDX-20)."""
        self.check_length()
        if not self.is_sane():
            refuse(self.corrupt_kind)

    def is_sane(self) -> bool:
        """Return whether the last offset can be one of this index."""
        return not self.entries or self.last_offset >= self.base_offset
