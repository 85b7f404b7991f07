# SPDX-License-Identifier: Apache-2.0
"""The files of a table's rows, at or below a path.

In directories the files that a broker would read: segments under right names, in directories that
are not waiting for their removal. A file that is named itself is read if `segproof dump` reads it,
so a misnamed, renamed or deleted one can be looked into too.
"""

import errno
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from segproof.files import Files
from segproof.reading.file_names import NameKind, read_file_name, read_partition_name
from segproof.reading.store_paths import PlaceKind, find_places
from segproof_harness.reading.segment_file_rows import segment_file
from segproof_harness.reading.store_file_rows import files_of as store_files
from segproof_spark.tables.options import Request
from segproof_spark.tables.schemas import TABLES

LEVELS_MAX = 16
_STORE_FOLDERS = frozenset({"commitlog", "consumequeue"})
_UNNAMED = re.compile(r"\.(deleted|cleaned|swap)$")


@dataclass(frozen=True, slots=True)
class Unit:
    """One file of a table, or one segment of the table `segments`. Small: it travels to workers."""

    path: str
    directory: str
    base_offset: int | None = None
    """In its name; None for a file of RocketMQ, and for a directory that cannot be listed."""
    next_base_offset: int | None = None
    """That of the next segment with a log in the directory, as far as known."""
    size_bytes: int = 0
    """Bytes that will be read."""
    suffixes: tuple[str, ...] = ()
    """Of a segment: the files that there are."""
    problem: str = ""
    """Why nothing at `path` can be read."""

    def sibling(self, suffix: str) -> str:
        """Return the path of another file of the same segment."""
        bare = _UNNAMED.sub("", self.path)
        added = self.path[len(bare) :]
        return bare[: bare.rindex(".")] + suffix + added


def units_below(path: str, request: Request, files: Files) -> Iterator[Unit]:
    """Yield the files at or below a path that may have rows, in the order of the names.

    What cannot be listed below the path is a unit with a problem, except for files of RocketMQ,
    whose folders are passed over as `segproof verify` reports them.
    Raises: OSError where `path` itself cannot be read.
    """
    status = files.status(path)
    if status is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if request.table == "rocketmq_entries":
        found = _index_files(path, files)
    elif status.is_directory:
        found = _in_directory(path, files.list_directory(path), request, files, _Seen())
    else:
        found = _single(path, status.size_bytes, request)
    for unit in found:
        if unit.problem or _may_have_rows(unit, request):
            yield unit


def _index_files(path: str, files: Files) -> Iterator[Unit]:
    for place in find_places(path, files):
        for file in store_files(place, files):
            if file.kind is PlaceKind.INDEX_FILE:
                status = files.status(file.path)
                size = 0 if status is None else status.size_bytes
                yield Unit(file.path, posixpath.dirname(file.path), size_bytes=size)


def _single(path: str, size_bytes: int, request: Request) -> Iterator[Unit]:
    """Yield the unit of a file that is named itself, if it is one of the table's."""
    file = segment_file(path)
    suffixes = TABLES[request.table].suffixes
    if file is not None and file.suffix in suffixes:
        yield Unit(
            path,
            posixpath.dirname(path),
            file.base_offset,
            size_bytes=size_bytes,
            suffixes=(file.suffix,),
        )


def is_foreign(path: str, request: Request, files: Files) -> bool:
    """Return whether a path is a file in which the table can never have rows."""
    status = files.status(path)
    if status is None or status.is_directory:
        return False
    if request.table == "rocketmq_entries":
        return not list(_index_files(path, files))
    return not list(_single(path, status.size_bytes, request))


class _Seen:
    """The directories that were looked into: links may lead in a circle."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def enters(self, path: str, files: Files) -> bool:
        """Return whether this is a directory that was not looked into before."""
        status = files.status(path)
        if status is None or not status.is_directory or status.identity in self._seen:
            return False
        self._seen.add(status.identity)
        return True


def _in_directory(
    path: str, names: list[str], request: Request, files: Files, seen: _Seen, level: int = 0
) -> Iterator[Unit]:
    segments: dict[int, list[str]] = {}
    for name in names:
        known = read_file_name(name)
        if known.kind is NameKind.SEGMENT:
            segments.setdefault(known.base_offset, []).append(known.suffix)
    if segments:
        yield from _of_partition(path, segments, request, files)
        return
    if level == LEVELS_MAX or not _STORE_FOLDERS.isdisjoint(names):
        return
    for name in names:
        partition = read_partition_name(name)
        full = posixpath.join(path, name)
        if partition is not None and partition.state == "delete":
            continue
        try:
            if not seen.enters(full, files):
                continue
            inner = files.list_directory(full)
        except OSError as error:
            yield Unit(full, path, problem=f"it cannot be listed: {error.strerror or error}")
            continue
        yield from _in_directory(full, inner, request, files, seen, level + 1)


def _of_partition(
    directory: str, segments: dict[int, list[str]], request: Request, files: Files
) -> Iterator[Unit]:
    following = dict(pairwise(sorted(base for base in segments if ".log" in segments[base])))
    for base in sorted(segments):
        suffixes = [one for one in TABLES[request.table].suffixes if one in segments[base]]
        groups = [suffixes] if request.table == "segments" else [[one] for one in suffixes]
        for group in groups:
            if group:
                path = posixpath.join(directory, f"{base:020d}{group[0]}")
                size = sum(_size(f"{path[: -len(group[0])]}{one}", files) for one in group)
                yield Unit(path, directory, base, following.get(base), size, tuple(group))


def _size(path: str, files: Files) -> int:
    """Return the length of a file; 0 for a file that can't be read."""
    try:
        status = files.status(path)
    except OSError:
        return 0
    return 0 if status is None else status.size_bytes


def _may_have_rows(unit: Unit, request: Request) -> bool:
    """Return whether a row of the unit may pass the pushed filters, by its names.

    The name of a log is believed: no offset is in it below its own base offset, nor from the next
    one's on.
    """
    filters = request.filters
    if not filters.passes("path", unit.path) or not filters.passes("directory", unit.directory):
        return False
    base = unit.base_offset
    if base is None:
        return True
    if not filters.range("segment_base_offset").meets(base, base):
        return False
    last = (1 << 63) - 1 if unit.next_base_offset is None else unit.next_base_offset - 1
    columns = TABLES[request.table].offset_columns
    return all(filters.range(column).meets(base, last) for column in columns)
