# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that are longer than the files of the log: two that were joined, say.

What lies behind the length of a file is read as a file of its own: at the offset that follows if
the log has no file there, else behind the last file. Its messages say where they belong.

Laws: RMQDISK-23.
Not covered: a message across the length of its file; its bytes are told as a gap.
"""

import os
from collections.abc import Iterator
from typing import cast

from segproof.files import File, Files, ReadOnlyFile, first_byte_of
from segproof.rebuilding.dry_files import DryFiles
from segproof.rocketmq.commit_log import CommitLog, LogFile, log_file_name


class RestsOfFiles(DryFiles):
    """Reads files, and what lies behind the length of oversized files of a log as files."""

    def __init__(self, log: CommitLog, files: Files) -> None:
        super().__init__(files, in_memory=False)
        self._real = files
        self._rests: dict[str, tuple[str, int, int]] = {}
        """By path of a rest: the path of its file, where it begins there, and its size."""
        rests, size = [], log.mapped_file_size
        taken, behind = {one.start for one in log.log_files}, log.max_offset
        for one in log.log_files:
            status = files.status(one.path)
            length = 0 if status is None else status.size_bytes
            for at in range(size, length, size):
                end = min(at + size, length)
                if first_byte_of(files, one.path, at, end) is None:
                    continue
                start = one.start + at
                while start in taken:
                    start, behind = behind, behind + size
                taken.add(start)
                path = os.path.join(os.path.dirname(one.path), log_file_name(start))
                rests.append(LogFile(start, path, end - at))
                self._rests[path] = one.path, at, end - at
        in_order = tuple(sorted([*log.log_files, *rests], key=lambda each: each.start))
        self.log = CommitLog(log.store_path, size, in_order, files) if rests else log
        """The log with a file for each rest that is not zeros alone."""

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file or a rest, for reading only."""
        if path not in self._rests:
            return super().open(path, writable=writable, create=create)
        name, begin, size = self._rests[path]
        return cast(File, _Rest(self._real.open(name), path, begin, size))

    def place_of(self, path: str, position: int) -> tuple[str, int]:
        """Return in which file on disk a position lies, and where."""
        name, begin, _ = self._rests.get(path, (path, 0, 0))
        return name, begin + position


class _Rest:
    """A part of a file."""

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
