# SPDX-License-Identifier: Apache-2.0
"""The first 40 bytes of an index file: what time and which part of the log its entries span.

Upstream: RocketMQ 5.5.1, IndexHeader.
Layout: int64 begin timestamp @0, end timestamp @8, begin offset @16, end offset @24; int32 slot
    count @32, index count @36.
Laws: RMQIDX-2.
"""

from typing import NamedTuple, Self

from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes

HEADER_SIZE = 40
POSITIONS = {
    "begin_timestamp": 0,
    "end_timestamp": 8,
    "begin_phy_offset": 16,
    "end_phy_offset": 24,
    "hash_slot_count": 32,
    "index_count": 36,
}
"""Where each field is stored, in the order of reading and writing all of them."""


class IndexHeader(NamedTuple):
    """The six numbers of a header.

    >>> header = IndexHeader(begin_timestamp=1000, end_timestamp=2000)
    >>> IndexHeader.from_bytes(header.to_bytes()) == header
    True
    """

    begin_timestamp: int = 0
    """Store time in milliseconds of the first entry's message."""
    end_timestamp: int = 0
    """Store time in milliseconds of the last entry's message, earlier ones may be later."""
    begin_phy_offset: int = 0
    """Offset in the commit log of the first entry's message."""
    end_phy_offset: int = 0
    """Offset in the commit log of the last entry's message."""
    hash_slot_count: int = 0
    """How many slots have entries, as far as puts could tell."""
    index_count: int = 1
    """Number of the next entry; numbers begin at 1."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return what is stored in at least 40 bytes, exactly (RMQIDX-2)."""
        begin, end = int64_at(data, 0), int64_at(data, 8)
        first, last = int64_at(data, 16), int64_at(data, 24)
        return cls(begin, end, first, last, int32_at(data, 32), int32_at(data, 36))

    def to_bytes(self) -> bytes:
        """Return the header as 40 bytes (RMQIDX-2)."""
        return b"".join(map(int64_bytes, self[:4])) + b"".join(map(int32_bytes, self[4:]))

    def stored(self, name: str) -> bytes:
        """Return the bytes of one field."""
        value = getattr(self, name)
        return int64_bytes(value) if POSITIONS[name] < 32 else int32_bytes(value)
