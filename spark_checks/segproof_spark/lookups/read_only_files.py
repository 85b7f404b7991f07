# SPDX-License-Identifier: Apache-2.0
"""Files that are never changed, below structures that open theirs for writing.

A mapping is a private copy in memory; every call that would change a file or directory is refused.
"""

import errno
from collections.abc import Callable
from contextlib import closing
from typing import Any, NoReturn, cast

from segproof.files import Files

READING = {"path", "size", "pread", "pread_into", "data_ranges", "status", "list_directory"}
WITHOUT_EFFECT = {"sync", "sync_directory"}
CHANGING = {
    "link", "make_directory", "pwrite", "remove", "remove_directory", "rename",
    "set_modified", "truncate",
}  # fmt: skip


def shorter(path: str) -> OSError:
    """Return the error of a file that ends before bytes that were there."""
    return OSError(errno.EIO, "the file became shorter while it was read", path)


def read_only(files: Files) -> Files:
    """Return a file system that is only read."""
    return cast(Files, _ReadOnly(files))


def read_file(files: Files, path: str, limit: int) -> bytes | None:
    """Return the bytes of a file, or None if there are more than a limit. Raises: OSError."""
    with closing(files.open(path)) as file:
        size = file.size()
        return file.pread(size, 0) if size <= limit else None


class _ReadOnly:
    """A file, or a file system."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name in READING:
            return getattr(self._inner, name)
        if name in CHANGING:
            return self._refuse
        if name in WITHOUT_EFFECT:
            return _nothing
        raise AttributeError(name)

    def _refuse(self, *arguments: Any) -> NoReturn:
        path = getattr(self._inner, "path", arguments[0] if arguments else "")
        raise OSError(errno.EROFS, "these files are only read", path)

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> "_ReadOnly":
        """Open a file for reading, whatever is asked."""
        return _ReadOnly(self._inner.open(path))

    def close(self) -> None:
        """Close the file."""
        self._inner.close()

    def create_new(self, path: str) -> None:
        """Return None if the file exists. Raises: OSError if it is missing."""
        if self._inner.status(path) is None:
            self._refuse(path)

    def map(self, size: int) -> "_Copy":
        """Return a private copy of the first bytes of the file."""
        data = bytearray(size)
        if size and self._inner.pread_into(memoryview(data), 0) < size:
            raise shorter(self._inner.path)
        return _Copy(data)

    def map_copy(self, size: int) -> "_Copy":
        """Return a private copy of the first bytes of the file."""
        return self.map(size)


def _nothing(*_: object) -> None:
    """Nothing was written."""


class _Copy:
    """A mapping of a file's bytes that is kept in memory."""

    flush: Callable[..., None] = staticmethod(_nothing)

    def __init__(self, data: bytearray) -> None:
        self._data = data

    def view(self) -> memoryview:
        """Return the bytes."""
        return memoryview(self._data)

    def close(self) -> None:
        """Release the bytes."""
        self._data = bytearray()
