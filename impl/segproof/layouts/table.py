# SPDX-License-Identifier: Apache-2.0
"""A format as a table of its fields, and what is made of the table: numpy types, reads, writes.

Numbers are big-endian, two's complement unless the type begins with `uint`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from struct import Struct
from typing import Any, Final

import numpy as np

from segproof.files import ReadOnlyFile

__all__ = ["Field", "Layout"]

_CODES: Final = {
    "int8": "b", "uint8": "B", "int16": "h", "int32": "i", "uint32": "I", "int64": "q",
    "8 bytes": "8s",
}  # fmt: skip
"""Each type of a field, with its code in `struct`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a file format: its name, place, type and meaning."""

    name: str
    """Its words, joined by underscores."""
    place: int
    """Position of its first byte, from the first byte of the whole."""
    kind: str
    """Its type: a key of `_CODES`."""
    meaning: str
    law: str = ""
    """The law that states more about the field; empty if no law does."""
    _number: Struct = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_number", Struct(f">{_CODES[self.kind]}"))

    @property
    def end(self) -> int:
        """Position after its last byte."""
        return self.place + self._number.size

    def of(self, data: Any, start: int = 0) -> int:
        """Return the number that the field has in what begins at byte `start` of `data`.

        Raises: struct.error if `data` ends before the field does.
        """
        number: int = self._number.unpack_from(data, start + self.place)[0]
        return number

    def read(self, file: ReadOnlyFile, start: int = 0) -> int:
        """Return the number that the field has in what begins at byte `start` of an open file.

        Bytes after the end of the file count as zeros. Raises: OSError.
        """
        data = file.pread(self._number.size, start + self.place)
        number: int = self._number.unpack(data.ljust(self._number.size, b"\0"))[0]
        return number

    def put(self, data: bytearray | memoryview, number: int, start: int = 0) -> None:
        """Write a number into the field of what begins at byte `start` of `data`.

        Raises: struct.error for a number that the type can't hold.
        """
        self._number.pack_into(data, start + self.place, number)


class Layout:
    """A format whose fields have fixed positions: a header, or an entry of a file."""

    def __init__(self, name: str, *fields: Field, size: int | None = None) -> None:
        self.name = name
        """What has these fields, in words."""
        self.fields = fields
        self.size = fields[-1].end if size is None else size
        """Bytes of the whole; more than the fields take if the rest has no use."""
        self._by_name = {one.name: one for one in fields}
        self._whole = self.struct()

    def pack(self, *numbers: int) -> bytes:
        """Return the bytes of the fields with these numbers. Raises: struct.error."""
        return self._whole.pack(*numbers)

    def pack_all(self, rows: Iterable[Iterable[int]]) -> bytes:
        """Return the bytes of several of them, back to back. Raises: struct.error."""
        return b"".join(self._whole.pack(*row) for row in rows)

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """For each field that is a number its place and its bytes."""
        return tuple((one.place, one.end - one.place) for one in self.fields if "int" in one.kind)

    def __getitem__(self, name: str) -> Field:
        return self._by_name[name]

    @cached_property
    def dtype(self) -> "np.dtype[np.void]":
        """The type of numpy with all fields."""
        return self.dtype_within(self.size)

    def dtype_within(self, size: int) -> "np.dtype[np.void]":
        """Return the type of numpy with all fields that end within `size` bytes, of this size."""
        fields = [one for one in self.fields if one.end <= size]
        return np.dtype(
            {
                "names": [one.name for one in fields],
                "formats": [f">{_CODES[one.kind]}".replace("8s", "V8") for one in fields],
                "offsets": [one.place for one in fields],
                "itemsize": size,
            }
        )

    def struct(self, first: str = "", last: str = "", *, only: tuple[str, ...] = ()) -> Struct:
        """Return the `Struct` of the fields from `first` to `last`, both inclusive.

        Without these names it begins with the first field and ends with the last one. If `only`
        names fields, the `Struct` counts from the first byte of the whole, and the bytes of other
        fields are skipped, or written as zeros.
        """
        names = list(self._by_name)
        if only:
            code, at = ">", 0
            for one in map(self._by_name.__getitem__, only):
                code += f"{one.place - at}x{_CODES[one.kind]}"
                at = one.end
            return Struct(code)
        start = names.index(first) if first else 0
        stop = names.index(last) + 1 if last else len(names)
        return Struct(">" + "".join(_CODES[one.kind] for one in self.fields[start:stop]))
