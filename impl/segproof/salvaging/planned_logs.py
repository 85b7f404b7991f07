# SPDX-License-Identifier: Apache-2.0
"""The new logs of a salvage before they are written: pieces of the old logs, read as files."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from typing import cast

from segproof.files import File, Files, FileStatus, ReadOnlyFile
from segproof.rebuilding.dry_files import DryFiles
from segproof.stretches.unreadable_blocks import ReadableParts


class PlannedFiles(DryFiles):
    """All files can be read. One that is opened for writing notes what is copied into it."""

    def __init__(self, files: Files) -> None:
        super().__init__(files, in_memory=True)
        self._plans: dict[str, _PlannedFile] = {}

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file, or one that is only planned."""
        if path not in self._plans:
            if not create:
                return super().open(path, writable=writable)
            self._plans[path] = _PlannedFile(path, self._files)
        return cast(File, self._plans[path])

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path."""
        plan = self._plans.get(path)
        if plan is None:
            return super().status(path)
        return FileStatus(plan.size(), False, True, 0, (0, id(plan)))

    def copy(self, old: ReadOnlyFile, start: int, end: int, new: File, position: int) -> None:
        """Note that the bytes [start, end) of a file come to the end of a planned one."""
        self._plans[new.path].add(old.path, start, end)


class _PlannedFile:
    """Pieces of other files, one behind the other, and the bytes that are written over them."""

    def __init__(self, path: str, files: Files) -> None:
        self.path, self._files = path, files
        self._begins, self._size = list[int](), 0
        self._pieces = list[tuple[str, int, int]]()
        """Of each the path of its file, and its bytes there."""
        self._written: dict[int, bytes] = {}

    def add(self, path: str, start: int, end: int) -> None:
        if end > start:
            self._begins.append(self._size)
            self._pieces.append((path, start, end))
            self._size += end - start

    def size(self) -> int:
        return self._size

    def pread(self, size: int, position: int) -> bytes:
        end = min(position + size, self._size)
        data = bytearray(b"".join(self._read(position, end)))
        for at, written in self._written.items():
            first, last = max(at, position), min(at + len(written), end)
            if first < last:
                data[first - position : last - position] = written[first - at : last - at]
        return bytes(data)

    def _read(self, position: int, end: int) -> Iterator[bytes]:
        while position < end:
            number = bisect_right(self._begins, position) - 1
            path, start, stop = self._pieces[number]
            at = start + position - self._begins[number]
            count = min(stop - at, end - position)
            with closing(ReadableParts(self._files.open(path))) as file:
                data = file.pread(count, at)
            yield data + bytes(count - len(data))  # it may have become shorter meanwhile
            position += count

    def pread_into(self, buffer: memoryview, position: int) -> int:
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        yield start, min(end, self._size)

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        self._written[position] = bytes(data)

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass
