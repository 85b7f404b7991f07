# SPDX-License-Identifier: Apache-2.0
"""Files and arrays in which CrossHair sees whole numbers, where the code under proof has bytes."""

import struct
from typing import Any

__all__ = ["Cells", "Layout", "Numbers", "array_of"]

Cells = dict[int, int]
"""A file that has whole numbers by their position, in place of bytes."""


class Layout:
    """A struct.Struct of which CrossHair sees the bytes, or which writes and reads cells."""

    def __init__(self, layout: struct.Struct) -> None:
        self.format, self.size = layout.format, layout.size
        ends = range(1, len(self.format))
        self.places = [struct.calcsize(self.format[:end]) for end in ends]
        """Where each number begins."""

    def pack_into(self, data: Cells, position: int, *values: int) -> None:
        """Write numbers."""
        for place, value in zip(self.places, values, strict=True):
            data[position + place] = value

    def unpack_from(self, data: Cells | list[int], position: int = 0) -> tuple[int, ...]:
        """Read numbers."""
        if isinstance(data, dict):
            return tuple(data[position + place] for place in self.places)
        return struct.unpack(self.format, bytes(data[position : position + self.size]))


class Numbers(list[int]):
    """An array of numbers, or a memoryview of one, of which CrossHair sees the numbers."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return Numbers(found) if isinstance(place, slice) else found

    def tolist(self) -> list[int]:
        """Return the numbers."""
        return list(self)


def array_of(_: str, values: Any) -> Numbers:
    """Return an array as the class makes it: of so many zero bytes, or of numbers."""
    return Numbers([0] * (len(values) // 8) if isinstance(values, bytes) else values)
