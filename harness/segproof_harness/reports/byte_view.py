# SPDX-License-Identifier: Apache-2.0
"""Some bytes of a file around a place, in hexadecimal digits and ASCII."""

from contextlib import closing
from typing import NamedTuple

from segproof.files import Files

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


def bytes_around(path: str, position: int, files: Files) -> list[ByteRow]:
    """Return ROWS rows, from the row before the one that holds `position` on.

    The list is shorter where the file ends. Raises: OSError.
    """
    start = max(0, position - position % ROW_BYTES - ROW_BYTES)
    with closing(files.open(path)) as file:
        data = file.pread(ROWS * ROW_BYTES, start)
    return [ByteRow(start + at, data[at : at + ROW_BYTES]) for at in range(0, len(data), ROW_BYTES)]
