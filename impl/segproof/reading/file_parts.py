# SPDX-License-Identifier: Apache-2.0
"""A part of a file, read as a file; and the messages after the length of a log file.

Laws: RMQDISK-23.
"""

from collections.abc import Iterator
from typing import NamedTuple

from segproof.files import Files, ReadOnlyFile
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import BLANK_BYTES
from segproof.stretches.rocketmq.framing import LogReading


class FilePart:
    """A part of a file: `size` bytes from `begin` on."""

    def __init__(self, file: ReadOnlyFile, path: str, begin: int, size: int) -> None:
        self.path = path
        self._file = file
        self._begin = begin
        self._size = size

    def size(self) -> int:
        """Return the length in bytes."""
        return self._size

    def pread(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`; fewer only where the part ends."""
        size = max(0, min(size, self._size - position))
        return self._file.pread(size, self._begin + position)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the bytes read, fewer only where the part ends."""
        size = max(0, min(len(buffer), self._size - position))
        return self._file.pread_into(buffer[:size], self._begin + position)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield, rising, the ranges of [start, end) that may hold other bytes than zeros."""
        ranges = self._file.data_ranges(self._begin + start, self._begin + min(end, self._size))
        for first, stop in ranges:
            yield first - self._begin, stop - self._begin

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Rest(NamedTuple):
    """The sound messages after the length of a file of a log."""

    messages: int = 0
    size_bytes: int = 0
    first_offset: int = -1
    """What the first one says; -1 without any."""
    last_offset: int = -1


def rest_of(path: str, begin: int, end: int, files: Files) -> Rest:
    """Return the sound messages in the bytes [begin, end) of a file. Raises: OSError.

    Cost: these bytes are read once, damaged ones a few times.
    """
    found, size = Rest(), end - begin
    alone = CommitLog("", size + BLANK_BYTES, (LogFile(0, path, size),), files)
    framed = LogReading(
        alone, files, open_file=lambda name: FilePart(files.open(name), name, begin, size)
    )
    for block in framed.blocks():
        says = block.phy_offsets
        found = Rest(
            found.messages + len(says), found.size_bytes + int(block.sizes.sum()),
            found.first_offset if found.messages else int(says[0]), int(says[-1]),
        )  # fmt: skip
    return found
