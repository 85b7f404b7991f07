# SPDX-License-Identifier: Apache-2.0
"""Contracts of the time index: entries, fullness, the append rule, the cases of truncate_to.

Mirrors: model/segproof_model/kafka/format/time_index.py, impl/segproof/kafka/time_index.py.
"""

import struct

from segproof.kafka import time_index
from segproof.kernels.index_rules import (
    kept_entries,
)
from segproof_model.kafka.format.time_index import TimeIndex, TimestampOffset
from segproof_model.language.files import Files
from segproof_model.language.integers import int32_at, int64_at, wrap32, wrap64
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

RULES = "segproof.kernels.index_rules"

ENTRY = time_index._ENTRY.format
"""The layout by which the index reads and writes an entry."""

_kept_entries = kept_entries.interpreted


class _Index(SEGPROOF.kind(TimeIndex)):  # type: ignore[misc]  # a class that was made
    """The model's index in any state; CrossHair follows how it reads its entries."""

    def __init__(
        self, data: bytes, entries: int, base_offset: int = 0, last: tuple[int, int] = (-1, 0)
    ) -> None:
        self.files, self.name, self.base_offset = Files({"x": data}), "x", base_offset
        self.writable = self.is_mapped = True
        self.length, self.max_entries = len(data), len(data) // 12
        self.entries, self.position = entries, entries * 12
        self.remembered_entry = TimestampOffset(*last)

    def keys(self) -> list[int]:
        """Return the timestamps."""
        return [int64_at(self.image, 12 * number) for number in range(self.entries)]

    def values(self) -> list[int]:
        """Return the relative offsets."""
        return [int32_at(self.image, 12 * number + 8) for number in range(self.entries)]


@contract(
    "segproof.kafka.time_index:_ENTRY",
    "TIMEIDX-1",
    "any 12 raw bytes, any base offset",
    Mutant("TIME_ENTRY.struct()", '__import__("struct").Struct("<qi")', "*"),
)
def entry_decode(data: bytes, base_offset: int) -> bool:
    """Read the second of two entries.

    pre: len(data) == 24
    post: _
    """
    timestamp, relative = struct.unpack_from(ENTRY, data, 12)
    expected = TimestampOffset(timestamp, base_offset + relative)
    return bool(_Index(data, 2, base_offset).stored(1) == expected)


@contract(
    "segproof.kafka.time_index:_ENTRY",
    "TIMEIDX-1",
    "every int64 timestamp, every distance of 31 bits",
    Mutant("TIME_ENTRY.struct()", '__import__("struct").Struct("<qi")', "*"),
)
def entry_encode(timestamp: int, relative: int) -> bool:
    """Write an entry, byte for byte; the model's wraps leave its numbers as they are.

    pre: -(2**63) <= timestamp < 2**63
    pre: 0 <= relative < 2**31
    post: _
    """
    if wrap64(timestamp) != timestamp or wrap32(relative) != relative:
        return False
    # The model's int64_bytes and int32_bytes without their wraps, which would hide the bytes.
    written = timestamp.to_bytes(8, "big", signed=True) + relative.to_bytes(4, "big", signed=True)
    return written == struct.pack(ENTRY, timestamp, relative)


@contract(
    f"{RULES}:kept_entries",
    "TIMEIDX-11 TIMEIDX-12",
    "any 2 raw entries, offsets in any order, any offset",
    Mutant("slot < 0", "slot <= 0"),
)
def truncate_to_cases(data: bytes, offset: int) -> bool:
    """Keep none, those before a match, or those up to the lower slot; offsets may repeat.

    pre: len(data) == 24
    post: _
    """
    index = _Index(data, 2)
    index.truncate_to(offset)
    return bool(_kept_entries(data, 12, 8, 2, offset, 682) == index.entries)
