# SPDX-License-Identifier: Apache-2.0
"""A file on a broken disk: blocks that can't be read are zeros, and are counted."""

import errno
from collections.abc import Iterator

from segproof.files import ReadOnlyFile

BLOCK_BYTES = 4096
"""What a disk fails to read is a multiple of this, at a multiple of it."""


class ReadableParts:
    """A file to read from, in which an unreadable block holds zeros.

    Any error but EIO is raised, as the file raises it.
    """

    def __init__(self, file: ReadOnlyFile) -> None:
        self._file = file
        self.path = file.path
        self.unreadable: set[int] = set()
        """Where the blocks begin that could not be read."""

    @property
    def unreadable_bytes(self) -> int:
        """Bytes of the blocks that could not be read."""
        return len(self.unreadable) * BLOCK_BYTES

    def size(self) -> int:
        """Return the length in bytes."""
        return self._file.size()

    def pread(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`; fewer only where the file ends."""
        try:
            return self._file.pread(size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        end = min(position + size, self.size())
        return b"".join(self._blocks(position, end))

    def _blocks(self, position: int, end: int) -> Iterator[bytes]:
        while position < end:
            behind = min(end, position - position % BLOCK_BYTES + BLOCK_BYTES)
            try:
                data = self._file.pread(behind - position, position)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                self.unreadable.add(position - position % BLOCK_BYTES)
                data = bytes(behind - position)
            yield data
            position = behind

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the bytes read, fewer only where the file ends."""
        try:
            return self._file.pread_into(buffer, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of [start, end) that may hold something else than zeros."""
        return self._file.data_ranges(start, end)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
