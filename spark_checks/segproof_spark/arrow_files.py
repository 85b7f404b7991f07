# SPDX-License-Identifier: Apache-2.0
"""Read-only files behind a URL: object stores and other file systems of Arrow.

A place on the command line is a path, or a URL that `pyarrow.fs.FileSystem.from_uri` takes:
`s3://BUCKET/KEY?endpoint_override=HOST:PORT&scheme=http`, `gs://...`, `abfss://...`, `hdfs://...`,
`file:///...`. Inside, every path is the URL without its query and without a password, so that
findings can be shown to anyone; names in it are quoted as URLs quote them.

Data are read by ranges and kept in a cache of constant size. Sequential reads are read ahead, up to
`AHEAD_BYTES` at a time; scattered reads fetch small units.

Not covered: writing (`OSError`, EROFS); modification times finer than the store's.
"""

import contextlib
import errno
import fnmatch
import glob
import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, unquote, urlsplit

from segproof.files import REAL_FILES, File, Files, FileStatus

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileInfo, FileSystem


UNIT_BYTES = 1 << 18
"""The smallest read, and the unit of the cache."""
AHEAD_BYTES = 1 << 23
"""The largest range read of a sequentially read file."""
CACHE_BYTES = 1 << 26
"""The size of the cache of all open files together."""

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
SAFE = "/:=@!$&'()+,;~"
"""Characters that stay as they are in the path of a URL, besides letters, digits and `_.-`."""


def is_url(place: str) -> bool:
    """Return whether a place is a URL rather than a path.

    >>> is_url("s3://bucket/key"), is_url("/var/lib/kafka")
    (True, False)
    """
    return SCHEME.match(place) is not None


def files_of(place: str) -> tuple[Files, str]:
    """Return the file system of a place, and the path of the place in it.

    Raises: OSError where the URL or its options are wrong.
    """
    if not is_url(place):
        return REAL_FILES, os.path.abspath(place)
    files = ArrowFiles(place)
    return files, files.root


def expand(places: Sequence[str]) -> list[str]:
    """Return the places with `*`, `?` and `[...]` replaced by what they match, sorted.

    In a URL, `?` only begins the query. An existing file of that exact name is not matched. Raises:
    FileNotFoundError for a pattern that matches nothing; OSError.
    """
    found: list[str] = []
    for place in places:
        matches = _matches_in_url(place) if is_url(place) else _matches(place)
        if not matches:
            name = shown(place) if is_url(place) else place
            raise FileNotFoundError(errno.ENOENT, "nothing matches", name)
        found += matches
    return found


def _matches(place: str) -> list[str]:
    if not glob.has_magic(place) or os.path.lexists(place):
        return [place]
    return sorted(glob.glob(place))


def _matches_in_url(place: str) -> list[str]:
    path, mark, query = place.partition("?")
    scheme, rest = path.split("://", 1)
    authority, *names = rest.split("/")
    first = next((at for at, name in enumerate(names) if re.search(r"[*\[]", name)), None)
    if first is None:
        return [place]
    base = "/".join([f"{scheme}://{authority}", *names[:first]])
    files = ArrowFiles(base + mark + query)
    found = [files.root]
    for pattern in names[first:]:
        found = [one for folder in found for one in _named(files, folder, unquote(pattern))]
    # The first part of what was found is shown without a password, which opening it needs.
    return [base + one.removeprefix(files.root) + mark + query for one in found]


def _named(files: "ArrowFiles", folder: str, pattern: str) -> list[str]:
    """Return the matching names in a folder; nothing if it is not a folder."""
    if not pattern:
        return [folder]
    status = files.status(folder)
    if status is None or not status.is_directory:
        return []
    names = files.list_directory(folder)
    return [f"{folder}/{name}" for name in names if fnmatch.fnmatchcase(unquote(name), pattern)]


class ArrowFiles:
    """The file system of a URL, read-only; it travels to workers as its URL.

    `filesystem` is used instead of the one that Arrow opens for the URL.
    Raises: OSError where the URL is wrong.
    """

    def __init__(self, url: str, filesystem: "FileSystem | None" = None) -> None:
        parts = urlsplit(url)
        if parts.fragment:
            raise OSError(errno.EINVAL, "a URL of files has no part behind #", shown(url))
        self._url = url
        self._given = filesystem
        self._filesystem, path = open_filesystem(url) if filesystem is None else (filesystem, None)
        inner = unquote(parts.path).strip("/")
        if path is None:
            path = parts.netloc + "/" + inner if parts.netloc else inner
        self._base = f"{parts.scheme}://{_without_secret(parts.scheme, parts.netloc)}/"
        self._inner_base = path.rstrip("/").removesuffix(inner) if inner else path
        if self._inner_base and not self._inner_base.endswith("/"):
            self._inner_base += "/"
        self.root = (self._base + quote(inner, SAFE)).rstrip("/")
        self.cache = _Cache(CACHE_BYTES)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrowFiles, (self._url, self._given)

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file for reading."""
        if writable or create:
            _refuse(path)
        with errors_name(path):
            return _ArrowFile(self._filesystem.open_input_file(self._inner(path)), path, self.cache)

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, or None if there is nothing."""
        from pyarrow.fs import FileType

        with errors_name(path):
            info: FileInfo = self._filesystem.get_file_info(self._inner(path))
        if info.type == FileType.NotFound:
            return None
        return FileStatus(
            size_bytes=info.size or 0,
            is_directory=info.type == FileType.Directory,
            is_regular=info.type == FileType.File,
            modified_ns=info.mtime_ns or 0,
            identity=_identity(path),
        )

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, quoted as in a URL, sorted."""
        from pyarrow.fs import FileSelector

        with errors_name(path):
            found = self._filesystem.get_file_info(FileSelector(self._inner(path)))
        return sorted(quote(one.base_name, SAFE) for one in found)

    def refuse(self, path: str, *others: Any) -> NoReturn:
        """Refuse to change anything: files behind a URL are read only."""
        _refuse(path)

    create_new = rename = link = remove = set_modified = refuse
    sync_directory = make_directory = remove_directory = refuse

    def _inner(self, path: str) -> str:
        """Return the path as the file system calls it."""
        rest = (path + "/").removeprefix(self._base).strip("/")
        return (self._inner_base + unquote(rest)).rstrip("/") or "/"


class _Cache:
    """The units of files that were read last, up to a number of bytes."""

    def __init__(self, size_max: int) -> None:
        self._units: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._size = 0
        self._size_max = size_max
        self._files = 0
        self._lock = threading.Lock()

    def new_file(self) -> int:
        """Return a number for a file that was opened."""
        with self._lock:
            self._files += 1
            return self._files

    def get(self, file: int, unit: int) -> bytes | None:
        """Return a unit of a file, if it is kept."""
        with self._lock:
            data = self._units.get((file, unit))
            if data is not None:
                self._units.move_to_end((file, unit))
            return data

    def put(self, file: int, unit: int, data: bytes) -> None:
        """Keep a unit, and forget the oldest ones where there are too many."""
        with self._lock:
            self._size += len(data) - len(self._units.pop((file, unit), b""))
            self._units[file, unit] = data
            while self._size > self._size_max:
                self._size -= len(self._units.popitem(last=False)[1])

    def forget(self, file: int) -> None:
        """Forget a file that was closed."""
        with self._lock:
            for key in [key for key in self._units if key[0] == file]:
                self._size -= len(self._units.pop(key))


class _ArrowFile:
    """One open file, with the length that it had at its opening."""

    def __init__(self, source: "pa.NativeFile", path: str, cache: _Cache) -> None:
        self.path = path
        self._source = source
        self._size: int = source.size()
        self._cache = cache
        self._number = cache.new_file()
        self._lock = threading.Lock()
        self._next_unit = 0
        """The unit after the last one that was read from the source."""
        self._ahead = 1
        """Units that the next read fetches if it continues at the end of the last one."""

    def size(self) -> int:
        """Return the length in bytes."""
        return self._size

    def pread(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`; fewer only where the file ends."""
        buffer = bytearray(max(0, min(size, self._size - position)))
        done = self.pread_into(memoryview(buffer), position)
        return bytes(memoryview(buffer)[:done])

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the bytes read."""
        if position < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.path)
        buffer = buffer.cast("B")
        end = min(position + len(buffer), self._size)
        at = position
        while at < end:
            unit, skipped = divmod(at, UNIT_BYTES)
            data = self._unit(unit)
            part = memoryview(data)[skipped : skipped + end - at]
            if not part:  # the file is shorter by now
                break
            buffer[at - position : at - position + len(part)] = part
            at += len(part)
        return max(0, at - position)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the whole file: an object store reports no holes."""
        if start < min(end, self._size):
            yield start, min(end, self._size)

    def refuse(self, *unused: Any) -> NoReturn:
        """Refuse to change or map the file."""
        _refuse(self.path)

    pwrite = truncate = map = map_copy = sync = refuse

    def close(self) -> None:
        """Close; a second close does nothing."""
        self._source.close()
        self._cache.forget(self._number)

    def _unit(self, unit: int) -> bytes:
        """Return a unit, from the cache or from the source with those behind it."""
        kept = self._cache.get(self._number, unit)
        if kept is not None:
            return kept
        with self._lock:
            goes_on = unit == self._next_unit and unit
            self._ahead = min(self._ahead * 2, AHEAD_BYTES // UNIT_BYTES) if goes_on else 1
            start = unit * UNIT_BYTES
            size = min(self._ahead * UNIT_BYTES, self._size - start)
            with errors_name(self.path):
                self._source.seek(start)
                data: bytes = self._source.read(size)
            self._next_unit = unit + self._ahead
            for at in range(0, max(len(data), 1), UNIT_BYTES):
                piece = data[at : at + UNIT_BYTES]
                self._cache.put(self._number, unit + at // UNIT_BYTES, piece)
            return data[:UNIT_BYTES]


def open_filesystem(url: str) -> "tuple[FileSystem, str]":
    """Return Arrow's file system of a URL, and the path in it. Raises: OSError."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem

    try:
        with errors_name(shown(url)):
            filesystem, path = FileSystem.from_uri(url)
    except (ArrowException, ValueError) as error:
        first = str(error).splitlines()[0].replace(url, shown(url))
        raise OSError(errno.EINVAL, first, shown(url)) from None
    return filesystem, str(path)


def shown(url: str) -> str:
    """Return a URL as it may be shown: without its query and without a secret.

    >>> shown("s3://key:secret@bucket/a?region=eu")
    's3://bucket/a'
    """
    scheme, rest = url.partition("?")[0].split("://", 1)
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{_without_secret(scheme, authority)}{slash}{path}"


def _without_secret(scheme: str, authority: str) -> str:
    """Return the place of a URL without a password, and for S3 without the key in front of it."""
    user, at, place = authority.rpartition("@")
    user = "" if scheme == "s3" else user.partition(":")[0]
    return user + at + place if user else place


def _identity(path: str) -> tuple[int, int]:
    """Return numbers unique to this path; stores have no inodes."""
    digest = hashlib.blake2b(path.rstrip("/").encode(), digest_size=7).digest()
    return 0, int.from_bytes(digest) + 1


def _refuse(path: str) -> NoReturn:
    raise OSError(errno.EROFS, "files behind a URL are read only", path)


@contextlib.contextmanager
def errors_name(path: str) -> Iterator[None]:
    """Let errors of Arrow carry the path and a number, as those of the operating system do."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        number = error.errno or _number_of(error)
        words = str(error).splitlines()[0] if error.errno is None else os.strerror(number)
        raise OSError(number, words, path) from error


def _number_of(error: OSError) -> int:
    """Return the error number of an error of Arrow, by its class or words."""
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT
    if isinstance(error, NotADirectoryError):
        return errno.ENOTDIR
    words = str(error)
    if "is a directory" in words:
        return errno.EISDIR
    denied = isinstance(error, PermissionError) or "ACCESS_DENIED" in words
    return errno.EACCES if denied else errno.EIO
