# SPDX-License-Identifier: Apache-2.0
"""Files that are read and never changed, under structures that open theirs for writing.

A mapping is a private copy in memory; what would change a file or a directory is refused.
"""

import errno
from collections.abc import Iterator
from typing import NoReturn

from segproof.files import File, Files, FileStatus, Mapping

__all__ = ["ReadOnlyFiles"]


def _refused(path: str) -> OSError:
    return OSError(errno.EROFS, "these files are only read", path)


class _Copy:
    """A private copy of the first bytes of a file."""

    def __init__(self, data: bytearray) -> None:
        self._data = data

    def view(self) -> memoryview:
        return memoryview(self._data)

    def flush(self) -> None:
        """Do nothing: nothing was written."""

    def close(self) -> None:
        self._data = bytearray()


class _ReadOnlyFile:
    """An open file."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.path = file.path

    def size(self) -> int:
        return self._file.size()

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(size, position)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        return self._file.pread_into(buffer, position)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        return self._file.data_ranges(start, end)

    def pwrite(self, data: bytes | memoryview, position: int) -> NoReturn:
        raise _refused(self.path)

    def truncate(self, size: int) -> NoReturn:
        raise _refused(self.path)

    def map(self, size: int) -> Mapping:
        data = bytearray(size)
        if size and self._file.pread_into(memoryview(data), 0) < size:
            raise OSError(errno.EIO, "the file became shorter while it was read", self.path)
        return _Copy(data)

    def sync(self) -> None:
        """Do nothing: nothing was written."""

    def close(self) -> None:
        self._file.close()


class ReadOnlyFiles:
    """A file system that is only read."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file for reading, whatever is asked."""
        return _ReadOnlyFile(self._files.open(path))

    def create_new(self, path: str) -> File | None:
        """Return None where there is a file. Raises: OSError where there is none."""
        if self._files.status(path) is not None:
            return None
        raise _refused(path)

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, or None if there is nothing."""
        return self._files.status(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return self._files.list_directory(path)

    def rename(self, source: str, target: str) -> NoReturn:
        """Refuse."""
        raise _refused(source)

    def link(self, source: str, target: str) -> NoReturn:
        """Refuse."""
        raise _refused(source)

    def remove(self, path: str) -> NoReturn:
        """Refuse."""
        raise _refused(path)

    def set_modified(self, path: str, modified_ns: int) -> NoReturn:
        """Refuse."""
        raise _refused(path)

    def sync_directory(self, path: str) -> None:
        """Do nothing: nothing was written."""

    def make_directory(self, path: str) -> NoReturn:
        """Refuse."""
        raise _refused(path)

    def remove_directory(self, path: str) -> NoReturn:
        """Refuse."""
        raise _refused(path)
