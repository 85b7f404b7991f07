# SPDX-License-Identifier: Apache-2.0
"""The first 40 bytes of an index file: what time and which part of the log its entries span.

Upstream: RocketMQ IndexHeader (4.7.1 to 5.5.1).
Layout: INDEX_HEADER of layouts/rocketmq.py.
Laws: RMQIDX-2, RMQIDX-6 to RMQIDX-8, RMQIDX-23 to RMQIDX-25.
"""

import struct
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, Self

from segproof.integers import INT32_MAX, INT32_MIN
from segproof.kernels.rocketmq_index import HEADER_BYTES
from segproof.layouts.rocketmq import INDEX_HEADER

HEADER: Final = INDEX_HEADER.struct()
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_BEGIN_TIME, _END_TIME, _BEGIN_OFFSET, _END_OFFSET, _SLOTS, _COUNT = (
    one.place for one in INDEX_HEADER.fields
)


class StoredHeader(NamedTuple):
    """The six fields of the header as the file has them; `IndexHeader` says what they mean."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int
    """0 in a file that was never written."""


class IndexHeader:
    """The six numbers of a header, in memory and in the first bytes of a file.

    A new one has an index count of 1, which is stored with the first entry (RMQIDX-6). What is set
    is stored at once (RMQIDX-8).
    """

    SIZE: ClassVar[int] = HEADER_BYTES
    POSITIONS: ClassVar[dict[str, int]] = {one.name: one.place for one in INDEX_HEADER.fields}
    """Where each field is stored, in the order of the file."""
    __slots__ = ("_view", *StoredHeader._fields)

    begin_timestamp: int
    """Store time in milliseconds of the first entry's message."""
    end_timestamp: int
    """Store time in milliseconds of the last entry's message; earlier ones may be later."""
    begin_phy_offset: int
    """Offset in the commit log of the first entry's message."""
    end_phy_offset: int
    """Offset in the commit log of the last entry's message."""
    hash_slot_count: int
    """How many slots have entries, as far as puts could tell."""
    index_count: int
    """Number of the next entry; numbers begin at 1."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self.keep((0, 0, 0, 0, 0, 1))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Self:
        """Return what is stored in at least 40 bytes, exactly, over a copy of them (RMQIDX-2)."""
        copy = memoryview(bytearray(data[:HEADER_BYTES]))
        header = cls(copy)
        header.keep(HEADER.unpack_from(copy))
        return header

    def to_bytes(self) -> bytes:
        """Return the numbers in memory as 40 bytes (RMQIDX-2)."""
        return HEADER.pack(*self.values())

    def values(self) -> tuple[int, ...]:
        """Return the numbers in memory, in the order in which they are stored."""
        return (
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_phy_offset,
            self.end_phy_offset,
            self.hash_slot_count,
            self.index_count,
        )

    def keep(self, values: Sequence[int]) -> None:
        """Take numbers into memory which are stored already."""
        self.begin_timestamp, self.end_timestamp = values[0], values[1]
        self.begin_phy_offset, self.end_phy_offset = values[2], values[3]
        self.hash_slot_count, self.index_count = values[4], values[5]

    def load(self) -> None:
        """Take the numbers from the file; an index count below 1 is 1 in memory (RMQIDX-7)."""
        self.keep(HEADER.unpack_from(self._view))
        if self.index_count <= 0:
            self.index_count = 1

    def update_byte_buffer(self) -> None:
        """Store the numbers as they are in memory."""
        HEADER.pack_into(self._view, 0, *self.values())

    def begin_with(self, phy_offset: int, store_timestamp: int) -> None:
        """Set where the file begins: that of its first entry (RMQIDX-23)."""
        self.begin_phy_offset = phy_offset
        _INT64.pack_into(self._view, _BEGIN_OFFSET, phy_offset)
        self.begin_timestamp = store_timestamp
        _INT64.pack_into(self._view, _BEGIN_TIME, store_timestamp)

    def count_entry(self, is_slot_new: bool, phy_offset: int, store_timestamp: int) -> None:
        """Count an entry, and its slot if it had none before; set where the file ends.

        Laws: RMQIDX-24, RMQIDX-25.
        """
        view = self._view
        if is_slot_new:
            count = self.hash_slot_count
            self.hash_slot_count = count + 1 if count < INT32_MAX else INT32_MIN
            _INT32.pack_into(view, _SLOTS, self.hash_slot_count)
        self.index_count = index_count = self.index_count + 1
        _INT32.pack_into(view, _COUNT, index_count)
        self.end_phy_offset = phy_offset
        _INT64.pack_into(view, _END_OFFSET, phy_offset)
        self.end_timestamp = store_timestamp
        _INT64.pack_into(view, _END_TIME, store_timestamp)

    def continue_from(self, end_phy_offset: int, end_timestamp: int) -> None:
        """Begin and end where the file before ended; numbers <= 0 are left out (RMQIDX-12)."""
        if end_phy_offset > 0:
            self.begin_phy_offset = self.end_phy_offset = end_phy_offset
            _INT64.pack_into(self._view, _BEGIN_OFFSET, end_phy_offset)
            _INT64.pack_into(self._view, _END_OFFSET, end_phy_offset)
        if end_timestamp > 0:
            self.begin_timestamp = self.end_timestamp = end_timestamp
            _INT64.pack_into(self._view, _BEGIN_TIME, end_timestamp)
            _INT64.pack_into(self._view, _END_TIME, end_timestamp)
