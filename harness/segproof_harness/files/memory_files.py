# SPDX-License-Identifier: Apache-2.0
"""Files in memory that behave as real ones: shared inodes, live mappings, the same errors.

Mirrors: segproof.files.RealFiles; a test holds the two against each other.
An open handle and a mapping go on working after rename and removal, and what is written through a
mapping is seen by `pread`. The storage of an inode never moves: it is address space reserved once,
of which the kernel gives memory only where something was written.
Not covered: permissions; a mapping read behind a cut (real files kill the process, here it is 0).
"""

import ctypes
import errno
import mmap
import os
import posixpath
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import lru_cache

from segproof.files import File, Files, FileStatus, Mapping

CAPACITY_BYTES = 1 << 26
"""The largest file; beyond it, the device is full."""


def _failure(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class _Inode:
    """The bytes of a file, whatever its names."""

    def __init__(
        self, number: int, capacity_bytes: int, clock_ms: Callable[[], int] | None
    ) -> None:
        self.number = number
        self.size = 0
        self.modified = 0
        """Nanoseconds of the clock at the last change; without a clock, how many there were."""
        self._clock_ms = clock_ms
        if clock_ms is not None:
            self.touch()
        self.capacity = capacity_bytes
        self.storage: mmap.mmap | None = None

    def reserve(self) -> mmap.mmap:
        """Return the storage; the first call makes it."""
        if self.storage is None:
            self.storage = mmap.mmap(-1, self.capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return self.storage

    def touch(self) -> None:
        """Note that the file changes now."""
        self.modified = self.modified + 1 if self._clock_ms is None else self._clock_ms() * 10**6

    def set_size(self, size: int, path: str) -> None:
        """Cut or grow; whatever lay behind the smaller of the two sizes is zero."""
        if size < 0:
            raise _failure(errno.EINVAL, path)
        if size > self.capacity:
            raise _failure(errno.ENOSPC, path)
        kept = min(size, self.size)
        storage = self.reserve()
        changed = max(size, self.size)
        storage[kept:changed] = bytes(changed - kept)
        self.size = size
        self.touch()

    def image(self) -> bytes:
        """Return all bytes."""
        return b"" if self.storage is None else self.storage[: self.size]


class _MemoryMapping:
    """A window on the storage of an inode."""

    def __init__(self, inode: _Inode, size: int) -> None:
        self._inode = inode
        self._size = size
        self._windows: list[weakref.ref[ctypes.Array[ctypes.c_char]]] = []
        self._closed = False

    def view(self) -> memoryview:
        if self._closed:
            raise ValueError("mmap closed or invalid")
        if self._size == 0:
            return memoryview(bytearray())
        # Every view of the window, and each slice of it, keeps this array alive and nothing else
        # does: so close knows whether there is one, as mmap does.
        window = (ctypes.c_char * self._size).from_buffer(self._inode.reserve())
        self._windows.append(weakref.ref(window))
        return memoryview(window).cast("B")

    def flush(self) -> None:
        if self._closed:
            raise ValueError("mmap closed or invalid")

    def close(self) -> None:
        if any(window() is not None for window in self._windows):
            raise BufferError("cannot close exported pointers exist")
        self._windows.clear()
        self._closed = True


class _CopiedBytes:
    """A mapping whose bytes are this process's own."""

    def __init__(self, data: bytes) -> None:
        self._data = bytearray(data)

    def view(self) -> memoryview:
        return memoryview(self._data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._data.clear()  # BufferError while there is a view


class _MemoryFile:
    """An open file."""

    def __init__(self, files: "MemoryFiles", inode: _Inode, path: str, writable: bool) -> None:
        self.path = path
        self._files = files
        self._inode: _Inode | None = inode
        self._writable = writable

    def _opened(self) -> _Inode:
        if self._inode is None:
            raise _failure(errno.EBADF, self.path)
        return self._inode

    def size(self) -> int:
        return self._opened().size

    def pread(self, size: int, position: int) -> bytes:
        inode = self._opened()
        if size < 0 or position < 0:
            raise _failure(errno.EINVAL, self.path)
        with self._files.lock:
            if inode.storage is None:
                return b""
            return inode.storage[position : min(position + size, inode.size)]

    def pread_into(self, buffer: memoryview, position: int) -> int:
        if not len(buffer):
            return 0
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        if start < min(end, self.size()):
            yield start, min(end, self.size())

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        written = memoryview(data).cast("B") if isinstance(data, memoryview) else data
        if not len(written):
            return
        inode = self._opened()
        if not self._writable:
            raise _failure(errno.EBADF, self.path)
        if position < 0:
            raise _failure(errno.EINVAL, self.path)
        end = position + len(written)
        with self._files.lock:
            if end > inode.size:
                inode.set_size(end, self.path)
            inode.reserve()[position:end] = bytes(written)
            inode.touch()

    def truncate(self, size: int) -> None:
        inode = self._opened()
        if not self._writable:
            raise _failure(errno.EINVAL, self.path)
        with self._files.lock:
            inode.set_size(size, self.path)

    def map_copy(self, size: int) -> Mapping:
        if size > self.size():
            raise ValueError("mmap length is greater than file size")
        return _CopiedBytes(self.pread(size, 0))

    def map(self, size: int) -> Mapping:
        inode = self._opened()
        if size < 0:
            raise OverflowError("memory mapped length must be positive")
        if size > inode.size:
            raise ValueError("mmap length is greater than file size")
        if size and not self._writable:
            raise _failure(errno.EACCES, self.path)
        return _MemoryMapping(inode, size)

    def sync(self) -> None:
        if self._inode is None:
            raise ValueError("file descriptor cannot be a negative integer (-1)")

    def close(self) -> None:
        self._inode = None


class MemoryFiles:
    """A file system in memory; `files.make_directory("/a")` before the first file in it.

    `clock_ms` tells the time, in ms since 1970, from which files have their modification time;
    without it that time only counts changes. A write through a mapping does not set it.
    """

    def __init__(
        self, capacity_bytes: int = CAPACITY_BYTES, *, clock_ms: Callable[[], int] | None = None
    ) -> None:
        self.lock = threading.RLock()
        self._clock_ms = clock_ms
        self._capacity_bytes = capacity_bytes
        self._names: dict[str, _Inode] = {}
        self._directories = {"/"}
        self._inodes = 0

    def make_directory(self, path: str) -> None:
        """Make a directory, and those above it; a file in its place or above is in the way."""
        path = self._normal(path)
        with self.lock:
            if path in self._names:
                raise _failure(errno.EEXIST, path)
            made, above = set(), path
            while above not in self._directories:
                if above in self._names:
                    raise _failure(errno.ENOTDIR, path)
                made.add(above)
                above = posixpath.dirname(above)
            self._directories |= made

    def take_access(self, path: str, source: str) -> None:
        """Do nothing but refuse what is not there: nobody owns a file here."""
        for each in (path, source):
            if self.status(each) is None:
                raise _failure(errno.ENOENT, each)

    def lock_file(self, path: str) -> File | None:
        """Open the file: there is no other process here."""
        return self.open(path, writable=True)

    def images(self, directory: str, *, with_folders: bool = False) -> dict[str, bytes]:
        """Return the bytes of each file in a directory, by name, sorted.

        With `with_folders` those in the folders below it too, as `folder/name`.
        """
        prefix = self._normal(directory).rstrip("/") + "/"
        with self.lock:
            found = [
                (path[len(prefix) :], inode.image())
                for path, inode in self._names.items()
                if path.startswith(prefix) and (with_folders or "/" not in path[len(prefix) :])
            ]
        return dict(sorted(found))

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a regular file; with `create` a missing one is made, empty."""
        path = self._normal(path)
        with self.lock:
            if path in self._directories:
                # Linux refuses to write to a directory; RealFiles refuses to read one.
                raise _failure(errno.EISDIR, path)
            inode = self._names.get(path)
            if inode is None:
                if not create:
                    raise _failure(errno.ENOENT, path)
                inode = self._make(path)
            return _MemoryFile(self, inode, path, writable)

    def create_new(self, path: str) -> File | None:
        """Create and open an empty file, or return None if the path exists."""
        path = self._normal(path)
        with self.lock:
            if path in self._names or path in self._directories:
                return None
            return _MemoryFile(self, self._make(path), path, True)

    def _make(self, path: str) -> _Inode:
        if posixpath.dirname(path) not in self._directories:
            raise _failure(errno.ENOENT, path)
        self._inodes += 1
        inode = self._names[path] = _Inode(self._inodes, self._capacity_bytes, self._clock_ms)
        return inode

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, or None if there is nothing."""
        path = self._normal(path)
        with self.lock:
            if path in self._directories:
                return FileStatus(0, True, False, 0, (0, -1))
            inode = self._names.get(path)
            if inode is None:
                return None
            return FileStatus(inode.size, False, True, inode.modified, (0, inode.number))

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        path = self._normal(path)
        with self.lock:
            self._check_directory(path)
            inside = [name for name in (*self._names, *self._directories) if name != "/"]
            return sorted(
                posixpath.basename(name) for name in inside if posixpath.dirname(name) == path
            )

    def rename(self, source: str, target: str) -> None:
        """Move `source` over `target`, atomically; two names of one file both stay."""
        source, target = self._normal(source), self._normal(target)
        with self.lock:
            inode = self._found(source)
            if posixpath.dirname(target) not in self._directories:
                raise _failure(errno.ENOENT, target)
            if target in self._directories:
                raise _failure(errno.EISDIR, target)
            if self._names.get(target) is not inode:
                self._names[target] = inode
                del self._names[source]

    def link(self, source: str, target: str) -> None:
        """Give the file a second name."""
        source, target = self._normal(source), self._normal(target)
        with self.lock:
            inode = self._found(source)
            if target in self._names or target in self._directories:
                raise _failure(errno.EEXIST, target)
            if posixpath.dirname(target) not in self._directories:
                raise _failure(errno.ENOENT, target)
            self._names[target] = inode

    def _found(self, path: str) -> _Inode:
        if path in self._directories:
            raise _failure(errno.EPERM, path)
        if path not in self._names:
            raise _failure(errno.ENOENT, path)
        return self._names[path]

    def remove(self, path: str) -> bool:
        """Remove a file; return whether there was one."""
        path = self._normal(path)
        with self.lock:
            if path in self._directories:
                raise _failure(errno.EISDIR, path)
            return self._names.pop(path, None) is not None

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Set the modification time, in nanoseconds since 1970; a directory has none here."""
        path = self._normal(path)
        with self.lock:
            if path in self._directories:
                return
            if path not in self._names:
                raise _failure(errno.ENOENT, path)
            self._names[path].modified = modified_ns

    def sync_directory(self, path: str) -> None:
        """Do nothing but refuse what is no directory."""
        path = self._normal(path)
        self._check_directory(path)

    def _check_directory(self, path: str) -> None:
        if path in self._names:
            raise _failure(errno.ENOTDIR, path)
        if path not in self._directories:
            raise _failure(errno.ENOENT, path)

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory; return False if it is not empty."""
        path = self._normal(path)
        with self.lock:
            if self.list_directory(path):
                return False
            self._directories.discard(path)
            return True

    @staticmethod
    @lru_cache(maxsize=4096)
    def _normal(path: str) -> str:
        return posixpath.normpath(posixpath.join("/", path))


def write_file(files: Files, path: str, data: bytes) -> None:
    """Let a file hold exactly these bytes; what folders it needs are made."""
    files.make_directory(posixpath.dirname(path))
    with closing(files.open(path, writable=True, create=True)) as file:
        file.truncate(0)
        file.pwrite(data, 0)
