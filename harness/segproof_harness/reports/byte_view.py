# SPDX-License-Identifier: Apache-2.0
"""Some bytes of a file around a place, in hexadecimal digits and ASCII, and the fields in them."""

import os
from contextlib import closing
from typing import NamedTuple

from segproof.files import Files
from segproof.layouts.kafka import BATCH, INDEX_ENTRIES

ROW_BYTES = 16
ROWS = 8


class ByteRow(NamedTuple):
    """Up to ROW_BYTES bytes of a file."""

    position: int
    data: bytes

    @property
    def ascii_text(self) -> str:
        """The bytes as ASCII, with a dot for each that is not printable."""
        return "".join(chr(one) if 32 <= one < 127 else "." for one in self.data)


class ByteField(NamedTuple):
    """A field that lies in the bytes [start, end) of a file."""

    name: str
    start: int
    end: int
    value: int


def bytes_around(path: str, position: int, files: Files) -> list[ByteRow]:
    """Return ROWS rows, from the row before the one that holds `position` on.

    The list is shorter where the file ends. Raises: OSError.
    """
    start = max(0, position - position % ROW_BYTES - ROW_BYTES)
    with closing(files.open(path)) as file:
        data = file.pread(ROWS * ROW_BYTES, start)
    return [ByteRow(start + at, data[at : at + ROW_BYTES]) for at in range(0, len(data), ROW_BYTES)]


def fields_at(path: str, position: int, files: Files) -> list[ByteField]:
    """Return the fields of the index entry, or of the header of a magic 2 batch, at `position`.

    Empty where there is no whole one, and for other files. Raises: OSError.
    """
    suffix = os.path.splitext(path)[1]
    layout = BATCH if suffix == ".log" else INDEX_ENTRIES.get(suffix)
    if layout is None or (suffix != ".log" and position % layout.size):
        return []
    with closing(files.open(path)) as file:
        data = file.pread(layout.size, position)
    if len(data) < layout.size or (suffix == ".log" and BATCH["magic"].of(data) != 2):
        return []
    return [
        ByteField(one.name, position + one.place, position + one.end, one.of(data))
        for one in layout.fields
    ]
