# SPDX-License-Identifier: Apache-2.0
"""The only door to the operating system.

Every structure takes a `Files` and does all its input and output through it; nothing else in
`segproof` calls `os`, `open` or `mmap` on data. So the same structure runs on real files, on files
in memory, and on simulated ones that lose power.

Not covered: Windows, where a mapped file can be neither cut nor removed.
"""

import errno
import fcntl
import mmap
import os
import stat as stat_modes
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from segproof.closing import undone_if_it_fails
from segproof.errors import ProcessLimitError

__all__ = [
    "LINK_TO_NOTHING",
    "NOT_REGULAR",
    "REAL_FILES",
    "File",
    "FileStatus",
    "Files",
    "LinkOutError",
    "Mapping",
    "NamelessFile",
    "ReadOnlyFile",
    "RealFiles",
    "SharedFiles",
    "data_end",
    "first_byte",
    "check_limits",
    "first_byte_of",
    "holds_zeros",
    "nameless_file",
    "own_directory",
    "status_of",
    "unmap",
]

NOT_REGULAR = "not a regular file"
"""What is said of a directory, pipe or device where a file should be."""
LINK_TO_NOTHING = "a symbolic link to nothing"
LIMITS = {
    errno.EMFILE: "this process may not open more files: raise its limit, such as by"
    " `ulimit -n 4096`, and try again",
    errno.ENFILE: "the system may not open more files: end other programs, or raise the limit of"
    " the system (fs.file-max), and try again",
    errno.ENOMEM: "the system has no memory left for this process: end other programs, or give it"
    " more memory, and try again",
    errno.EINTR: "a signal interrupted the process: try again",
}
"""What to do about errors that come from limits, and not from the file that was to be read."""
UNMAP_SECONDS = 60.0
"""How long a file waits for its readers before it is unmapped: longer than any lookup takes."""
PIECE_BYTES = 1 << 20
FIRST_PIECE_BYTES = 1 << 12
"""Mostly what is not zero comes at once."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What is known of a path without opening it."""

    size_bytes: int
    """Length of a regular file."""
    is_directory: bool
    is_regular: bool
    modified_ns: int
    """Modification time in nanoseconds since 1970."""
    identity: tuple[int, int]
    """Device and inode: two paths with one identity are one file."""


class LinkOutError(OSError):
    """A link leads to a file outside of the link's own folder: it is not followed.

    A directory may come from anywhere, and its links could show any file of this machine. Followed
    are links to folders, and links that join RocketMQ's log files of several disks.
    """


def check_limits(error: OSError) -> None:
    """Return if an error is one of the file. Raises: ProcessLimitError for one of a limit."""
    if error.errno in LIMITS:
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        words = f"{where}{error.strerror or os.strerror(error.errno)}"
        raise ProcessLimitError(f"{words}: {LIMITS[error.errno]}") from error


class Mapping(Protocol):
    """A writable mapping of the first bytes of a file, shared or this process's own."""

    def view(self) -> memoryview:
        """Return the mapped bytes, writable. Release it before `close`."""

    def flush(self) -> None:
        """Write changed pages to the device and wait."""

    def close(self) -> None:
        """Unmap. Raises BufferError while a view of the mapping is alive."""


def unmap(view: memoryview, mapping: Mapping | None) -> None:
    """Release the view of a mapping and close it, once no reader is inside.

    Raises: BufferError where one is inside for so long that it can't be a lookup.
    """
    end = time.monotonic() + UNMAP_SECONDS
    while True:
        try:
            view.release()
            if mapping is not None:
                mapping.close()
            return
        except BufferError:
            if time.monotonic() > end:
                raise BufferError(
                    f"not unmapped: for {UNMAP_SECONDS} s something has held a view of the file, "
                    "such as a variable, or the traceback of an error"
                ) from None
            time.sleep(0.0001)


def own_directory(path: str) -> bool:
    """Make a directory for this user alone, if it is missing.

    Return whether it is this user's and nobody else can change it, or anything in it.
    Raises: OSError.
    """
    os.makedirs(path, 0o700, exist_ok=True)
    if not _is_own(path) or not all(map(_is_kept, Path(os.path.realpath(path)).parents)):
        return False
    below = os.walk(path) if os.stat(path).st_mode & 0o077 else ()  # else nobody gets there
    return all(
        _is_own(os.path.join(place, name))
        for place, folders, files in below
        for name in (*folders, *files)
    )


def _is_kept(folder: Path) -> bool:
    """Return whether nobody but this user and the superuser can rename what another put there."""
    status = os.stat(folder)
    is_shared = status.st_mode & 0o022 and not status.st_mode & stat_modes.S_ISVTX
    return status.st_uid in (0, os.geteuid()) and not is_shared


def _is_own(path: str) -> bool:
    status = os.stat(path)
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


class ReadOnlyFile(Protocol):
    """One open file, as far as it is read."""

    path: str

    def size(self) -> int:
        """Return the present length in bytes."""

    def pread(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`; fewer only where the file ends."""

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the bytes read, fewer only where the file ends."""

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield, rising, the ranges of [start, end) that may hold other bytes than zeros."""

    def close(self) -> None:
        """Close; a second close does nothing."""


class File(ReadOnlyFile, Protocol):
    """One open file."""

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        """Write all of `data` at `position`."""

    def truncate(self, size: int) -> None:
        """Set the length; grown bytes are zero."""

    def map(self, size: int) -> Mapping:
        """Map the first `size` bytes, which must exist; `size` 0 is allowed.

        Holes among them get room on the device first: a write into a hole that finds none kills the
        process. Raises: OSError where there is no room.
        """

    def map_copy(self, size: int) -> Mapping:
        """Map the first `size` bytes, which must exist, of a file that is open for reading.

        What is written to the view stays in this process. A file that is cut kills it, as `map`.
        """

    def sync(self) -> None:
        """Write contents and length to the device and wait."""


def data_end(file: ReadOnlyFile) -> int:
    """Return where the bytes of a file end that may not be zero. Cost: its holes, not its size."""
    return max((end for _, end in file.data_ranges(0, file.size())), default=0)


def first_byte(file: ReadOnlyFile, start: int, end: int) -> int | None:
    """Return where the first byte of [start, end) lies that is not zero, or None."""
    for begin, behind in file.data_ranges(start, end):
        position, piece_bytes = begin, FIRST_PIECE_BYTES
        while position < behind:
            data = file.pread(min(piece_bytes, behind - position), position)
            if data.count(0) != len(data):
                return position + len(data) - len(data.lstrip(b"\0"))
            position, piece_bytes = position + piece_bytes, PIECE_BYTES
    return None


def holds_zeros(file: ReadOnlyFile, start: int, end: int) -> bool:
    """Return whether all of [start, end) is there and nothing but zeros."""
    return first_byte(file, start, end) is None and file.size() >= end


def first_byte_of(files: "Files", path: str, start: int, end: int) -> int | None:
    """Return what `first_byte` does, for a path."""
    with closing(files.open(path)) as file:
        return first_byte(file, start, end)


def status_of(files: "Files", path: str) -> "FileStatus | None":
    """Return the status of a path; None if it is not there, or can't be looked at."""
    try:
        return files.status(path)
    except OSError:
        return None


class NamelessFile(File, Protocol):
    """A file without a name."""

    def again(self) -> File:
        """Return the same file opened once more."""


class Files(Protocol):
    """A file system, as far as the structures need one."""

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a regular file. With `create` a missing one is made, empty.

        A symbolic link is followed for reading only.
        Raises: FileNotFoundError, PermissionError, OSError.
        """

    def create_new(self, path: str) -> File | None:
        """Create and open an empty file for writing, or return None if the path exists."""

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path (links followed), or None if there is nothing."""

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def rename(self, source: str, target: str) -> None:
        """Move `source` over `target`, atomically."""

    def link(self, source: str, target: str) -> None:
        """Give the file a second name. Raises FileExistsError, OSError."""

    def remove(self, path: str) -> bool:
        """Remove a file; return whether there was one."""

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Set the modification time, in nanoseconds since 1970. Raises FileNotFoundError."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def make_directory(self, path: str) -> None:
        """Make a directory, and those above it; one that exists is no error."""

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory; return False, with nothing changed, if it is not empty."""


class SharedFiles(Files, Protocol):
    """A file system with owners and locks, for who changes files that a broker uses."""

    def take_access(self, path: str, source: str) -> None:
        """Give the file at `path` the owner, the group and the rights of `source`.

        Raises: PermissionError where this process may not.
        """

    def lock_file(self, path: str) -> File | None:
        """Lock an existing file as a JVM does, until the returned file is closed.

        None if another process has it locked.
        """


class _RealMapping:
    __slots__ = ("_map",)

    def __init__(self, descriptor: int, size: int, access: int = mmap.ACCESS_WRITE) -> None:
        # mmap refuses length 0 (it would mean "the whole file"), so nothing is mapped then.
        self._map = mmap.mmap(descriptor, size, access=access) if size else None

    def view(self) -> memoryview:
        return memoryview(bytearray()) if self._map is None else memoryview(self._map)

    def flush(self) -> None:
        if self._map is not None:
            self._map.flush()

    def close(self) -> None:
        if self._map is not None:
            self._map.close()


class _Naming:
    """Lets an error of a descriptor, which has no name, tell the path."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = self._path


class _RealFile:
    __slots__ = ("_descriptor", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.path = path

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing = size - len(data)
        while missing and (data := os.pread(self._descriptor, missing, position + size - missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        if position < 0 and len(buffer):  # preadv takes -1 for the handle's own position
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.path)
        done = 0
        while done < len(buffer):
            count = os.preadv(self._descriptor, [buffer[done:]], position + done)
            if count == 0:
                break
            done += count
        return done

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        while start < end:
            try:
                begin = os.lseek(self._descriptor, start, os.SEEK_DATA)
                behind = os.lseek(self._descriptor, begin, os.SEEK_HOLE)
            except OSError as error:
                if error.errno != errno.ENXIO:  # ENXIO: nothing more; else holes are not told
                    yield start, end
                return
            if begin < end:
                yield begin, min(behind, end)
            start = behind

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        rest = memoryview(data)
        with _Naming(self.path):
            while len(rest):
                count = os.pwrite(self._descriptor, rest, position)
                position += count
                rest = rest[count:]

    def truncate(self, size: int) -> None:
        with _Naming(self.path):
            os.ftruncate(self._descriptor, size)

    def _mapped(self, size: int, access: int) -> _RealMapping:
        if self._descriptor < 0:  # mmap takes -1 for memory without a file
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return _RealMapping(self._descriptor, size, access)

    def map_copy(self, size: int) -> Mapping:
        with _Naming(self.path):
            return self._mapped(size, mmap.ACCESS_COPY)

    def map(self, size: int) -> Mapping:
        with _Naming(self.path):
            mapping = self._mapped(size, mmap.ACCESS_WRITE)
            with undone_if_it_fails(mapping.close):
                self._reserve(size)
        return mapping

    def _reserve(self, size: int) -> None:
        """Get room on the device for each of the first bytes, which stay what they are."""
        try:
            if size:
                os.posix_fallocate(self._descriptor, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            for position in range(0, size, PIECE_BYTES):
                self.pwrite(self.pread(min(PIECE_BYTES, size - position), position), position)

    def sync(self) -> None:
        with _Naming(self.path):
            os.fsync(self._descriptor)

    def again(self) -> "_RealFile":
        """Return the same file opened once more."""
        return _RealFile(os.dup(self._descriptor), self.path)

    def lock(self) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def nameless_file(path: str, *, in_memory: bool) -> NamelessFile:
    """Return a new, empty file without a name, which is gone when all of its handles are closed.

    It lies in memory, or on the device of temporary files (TMPDIR); `path` is only what errors
    name. Where the system has no files in memory, it is a temporary one. Raises: OSError.
    """
    if in_memory and hasattr(os, "memfd_create"):
        return _RealFile(os.memfd_create("segproof", os.MFD_CLOEXEC), path)
    with tempfile.TemporaryFile() as file:
        return _RealFile(os.dup(file.fileno()), path)


def _open_link(path: str, flags: int) -> int:
    """Open what a link leads to, in its own folder. Raises: OSError."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, LINK_TO_NOTHING, path) from None
    if not stat_modes.S_ISREG(mode):
        raise IsADirectoryError(errno.EISDIR, NOT_REGULAR, path)
    target = os.path.realpath(path)
    folder, name = os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path)
    # A log file of RocketMQ's: no other file of a machine has a name of 20 digits.
    is_log = len(name) == 20 and name.isdecimal() and os.path.basename(target) == name
    if not is_log and os.path.commonpath((folder, target)) != folder:
        words = "a link out of its folder is not read; give the path that it leads to"
        raise LinkOutError(errno.ELOOP, f"{words}, {target}", path)
    return os.open(target, flags)


class RealFiles:
    """The files of the operating system."""

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a regular file; directories and devices are refused, for writing links too.

        Raises: LinkOutError; ProcessLimitError where only reading was asked for.
        """
        # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        if is_written := writable or create:
            # A link may lead out of the directory, to a file that a recovery would cut to nothing.
            flags |= (os.O_RDWR if writable else 0) | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            is_link = error.errno == errno.ELOOP and os.path.islink(path)
            if is_link and is_written:
                raise OSError(errno.ELOOP, "a symbolic link is not written through", path) from None
            if not is_link and not is_written:
                check_limits(error)
            if not is_link:
                raise
            descriptor = _open_link(path, flags)
        if not stat_modes.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, NOT_REGULAR, path)
        return _RealFile(descriptor, path)

    def create_new(self, path: str) -> File | None:
        """Create and open an empty file, or return None if the path exists."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return None
        return _RealFile(descriptor, path)

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, or None if there is nothing."""
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            check_limits(error)
            raise
        return FileStatus(
            size_bytes=status.st_size,
            is_directory=stat_modes.S_ISDIR(status.st_mode),
            is_regular=stat_modes.S_ISREG(status.st_mode),
            modified_ns=status.st_mtime_ns,
            identity=(status.st_dev, status.st_ino),
        )

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            check_limits(error)
            raise

    def rename(self, source: str, target: str) -> None:
        """Move `source` over `target`, atomically."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """Give the file a second name."""
        os.link(source, target)

    def remove(self, path: str) -> bool:
        """Remove a file; return whether there was one."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Set the modification time, and the access time with it."""
        os.utime(path, ns=(modified_ns, modified_ns))

    def take_access(self, path: str, source: str) -> None:
        """Give a file the owner, the group and the rights of another one."""
        wanted, found = os.stat(source), os.stat(path)
        if (wanted.st_uid, wanted.st_gid) != (found.st_uid, found.st_gid):
            os.chown(path, wanted.st_uid, wanted.st_gid)
        os.chmod(path, stat_modes.S_IMODE(wanted.st_mode))

    def lock_file(self, path: str) -> File | None:
        """Lock a file as a JVM does: a record lock on all of it."""
        file = _RealFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK), path)
        try:
            with undone_if_it_fails(file.close):
                file.lock()
        except (BlockingIOError, PermissionError):
            return None
        return file

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_directory(self, path: str) -> None:
        """Make a directory, and those above it."""
        os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory; return False if it is not empty."""
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        return True


REAL_FILES = RealFiles()
"""The default of every `files` argument."""
