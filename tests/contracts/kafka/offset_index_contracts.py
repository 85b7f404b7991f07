# SPDX-License-Identifier: Apache-2.0
"""Contracts of the offset index: entries, fullness, the append rule, the cases of truncate_to.

Mirrors: model/segproof_model/kafka/format/offset_index.py, impl/segproof/kafka/offset_index.py.
"""

import struct

from segproof.kafka import offset_index
from segproof.kernels.index_rules import (
    kept_entries,
)
from segproof_model.kafka.format.offset_index import OffsetIndex, OffsetPosition
from segproof_model.language.files import Files
from segproof_model.language.integers import int32_at
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

RULES = "segproof.kernels.index_rules"

ENTRY = offset_index._ENTRY.format
"""The layout by which the index reads and writes an entry."""

_kept_entries = kept_entries.interpreted


class _Index(SEGPROOF.kind(OffsetIndex)):  # type: ignore[misc]  # a class that was made
    """The model's index in any state; CrossHair follows how it reads its entries."""

    def __init__(self, data: bytes, entries: int, base_offset: int, last_offset: int) -> None:
        self.files, self.name, self.base_offset = Files({"x": data}), "x", base_offset
        self.writable = self.is_mapped = True
        self.length, self.max_entries = len(data), len(data) // 8
        self.entries, self.position, self.last_offset = entries, entries * 8, last_offset

    def keys(self) -> list[int]:
        """Return the relative offsets."""
        return [int32_at(self.image, 8 * number) for number in range(self.entries)]


@contract(
    "segproof.kafka.offset_index:_ENTRY",
    "OFFIDX-1",
    "any 8 raw bytes, any base offset",
    Mutant("OFFSET_ENTRY.struct()", '__import__("struct").Struct("<ii")', "*"),
)
def entry_decode(data: bytes, base_offset: int) -> bool:
    """Read the second of two entries.

    pre: len(data) == 16
    post: _
    """
    relative, position = struct.unpack_from(ENTRY, data, 8)
    expected = OffsetPosition(base_offset + relative, position)
    return bool(_Index(data, 2, base_offset, 0).stored(1) == expected)


@contract(
    "segproof.kafka.offset_index:_ENTRY",
    "OFFIDX-1 OFFIDX-9",
    "every distance of 31 bits, every int32 position",
    Mutant("OFFSET_ENTRY.struct()", '__import__("struct").Struct("<ii")', "*"),
)
def entry_encode(relative: int, position: int) -> bool:
    """Write an entry, byte for byte.

    pre: 0 <= relative < 2**31
    pre: -(2**31) <= position < 2**31
    post: _
    """
    index = _Index(bytes(8), 0, 0, 0)
    index.append(relative, position)
    return bool(index.image == struct.pack(ENTRY, relative, position))


@contract(
    f"{RULES}:kept_entries",
    "OFFIDX-17",
    "any 3 raw entries, keys in any order, any offset",
    Mutant("return slot + 1", "return slot"),
)
def truncate_to_cases(data: bytes, offset: int) -> bool:
    """Keep none, those before a match, or those up to the lower slot; keys may repeat or fall.

    pre: len(data) == 24
    post: _
    """
    index = _Index(data, 3, 0, 0)
    index.truncate_to(offset)
    return bool(_kept_entries(data, 8, 0, 3, offset, 1024) == index.entries)
