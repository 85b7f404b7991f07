# SPDX-License-Identifier: Apache-2.0
"""The files of a table's rows, at or below a path.

In directories the files that a broker would read: segments under right names, in directories that
are not waiting for their removal, and copies of segments that were in tiered storage. A file that
is named itself is read if `segproof dump` reads it, so a misnamed, renamed or deleted one can be
looked into too.
"""

import errno
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from segproof.errors import SegproofError
from segproof.files import Files, FileStatus
from segproof.integers import INT64_MAX
from segproof.inventory.stores import find_places, take_stores
from segproof.inventory.walk import (
    TOO_DEEP,
    DataDirectory,
    Listed,
    NotListed,
    PassedOver,
    take_inventory,
)
from segproof.reading.directory_kinds import STRAY, holds_partitions
from segproof.reading.file_names import (
    FileName,
    NameKind,
    is_of_cache,
    name_in_segment,
    read_file_name,
    read_remote_name,
    segment_file,
)
from segproof.reading.log_extents import possible_offsets, said_first_offset, unread_logs
from segproof.reading.log_order import NamedLog
from segproof.reading.packed_segments import INDEXES_SUFFIX, with_unpacked
from segproof.reading.store_paths import Place, regular_size
from segproof.reading.store_reader import index_files_of
from segproof.reading.waiting_logs import REPLACES_OTHERS
from segproof.tables.options import Range, Request, refused
from segproof.tables.schemas import TABLES

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
    offsets: tuple[int, int] | None = None
    """The offsets that a log can hold, the second exclusive, where a filter asks for offsets.
    None if each can be in it, as where names and contents do not agree."""

    def sibling(self, suffix: str) -> str:
        """Return the path of another file of the same segment."""
        bare = _UNNAMED.sub("", self.path)
        added = self.path[len(bare) :]
        return bare[: bare.rindex(".")] + suffix + added


def units_below(path: str, request: Request, files: Files) -> Iterator[Unit]:
    """Yield the files at or below a path that may have rows, in the order of the names.

    What cannot be listed below the path, and what a broker would put in the place of other files,
    is a unit with a problem.
    Raises: OSError where `path` itself cannot be read.
    """
    files = with_unpacked(files)
    status = existing(path, files)
    if request.table == "rocketmq_entries":
        found = _index_files(path, files)
    elif status.is_directory:
        found = _in_directory(path, request, files)
    else:
        found = _single(path, status.size_bytes, request, files)
    for unit in found:
        is_unlisted = unit.problem and unit.base_offset is None
        if is_unlisted or _may_have_rows(unit, request):
            yield unit


def existing(path: str, files: Files) -> FileStatus:
    """Return the status of what is at a path. Raises: FileNotFoundError, OSError."""
    status = files.status(path)
    if status is None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
    return status


def _index_files(path: str, files: Files) -> Iterator[Unit]:
    unlisted = list[Unit]()
    for item in take_stores(path, files):
        if not isinstance(item, Place):
            unlisted += _unlisted(item)
            continue
        for file in index_files_of(item, files):
            yield Unit(file, posixpath.dirname(file), size_bytes=regular_size(file, files))
    yield from unlisted


def _unlisted(item: NotListed | PassedOver) -> Iterator[Unit]:
    """Yield as a problem what could not be looked into; what was met before is none."""
    folder = posixpath.dirname(item.path)
    if isinstance(item, NotListed):
        words = f"it cannot be listed: {item.error.strerror or item.error}"
        yield Unit(item.path, folder, problem=words)
    elif item.earlier is None:
        yield Unit(item.path, folder, problem=TOO_DEEP)


def _single(path: str, size_bytes: int, request: Request, files: Files) -> Iterator[Unit]:
    """Yield the unit of a file that is named itself, if it is one of the table's."""
    file = segment_file(path)
    suffixes = TABLES[request.table].suffixes
    if file is None or file.suffix not in suffixes:
        return
    offsets = None
    if asks_for_offsets(request):
        first = said_first_offset(path, files)
        base = file.base_offset
        offsets = (base if first is None else min(base, first), INT64_MAX + 1)
    yield Unit(
        path,
        posixpath.dirname(path),
        file.base_offset,
        size_bytes=size_bytes,
        suffixes=(file.suffix,),
        offsets=offsets,
    )


def asks_for_offsets(request: Request) -> bool:
    """Return whether the filters bound the offsets of the table's rows."""
    columns = TABLES[request.table].offset_columns
    return any(request.filters.range(column) != Range() for column in columns)


def refuse_foreign(places: Sequence[tuple[Files, str]], request: Request) -> None:
    """Refuse paths at which nothing is of the table: files of other kinds, or the other system's.

    Raises: InvalidArgumentError, which names the tables of the first path, unless one of the paths
    has files of the table, or is a directory without files of Kafka and RocketMQ; OSError.
    """
    if all(_is_foreign(path, request.table, files) for files, path in places):
        files, path = places[0]
        names = [name for name in TABLES if _has_table(path, name, files)]
        if names or find_places(path, files):
            names.append("findings")
        fitting = f"; its tables: {', '.join(names)}" if names else ""
        raise refused("path", f"{path}: no file of table {request.table}{fitting}")


def _has_table(path: str, table: str, files: Files) -> bool:
    return any(True for _ in units_below(path, Request(table, ()), files))


def _is_foreign(path: str, table: str, files: Files) -> bool:
    if _has_table(path, table, files):
        return False
    if not existing(path, files).is_directory:
        return True
    is_for_kafka = table != "rocketmq_entries"
    return bool(find_places(path, files)) if is_for_kafka else _has_table(path, "segments", files)


def problem_of(error: OSError | SegproofError) -> str:
    """Return in words why a file cannot be read on."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.strerror else str(error)
    return str(error)


def _in_directory(path: str, request: Request, files: Files) -> Iterator[Unit]:
    """Yield the units of what lies in a directory. Raises: OSError where it can't be listed."""
    for item in take_inventory(path, files, with_segments=False):
        if isinstance(item, Listed):
            directory = item.partition.directory
            yield from _unread(directory, item.kinds, request, files)
            yield from _of_partition(directory, _segments(item), request, files)
        elif isinstance(item, DataDirectory):
            if holds_partitions(item.path, item.names, files):
                yield from _strays(item, request)
            else:
                kinds = {name: read_file_name(name) for name in item.names}
                yield from _unread(item.path, kinds, request, files)
        elif isinstance(item, NotListed | PassedOver):
            yield from _unlisted(item)


def _strays(item: DataDirectory, request: Request) -> Iterator[Unit]:
    """Yield as problems the files beside partitions that are of a segment."""
    for name in sorted(item.strays.names):
        known = read_file_name(name)
        if known.suffix in TABLES[request.table].suffixes:
            problem = f"{STRAY} (to read its rows, name the file)"
            yield Unit(
                posixpath.join(item.path, name), item.path, known.base_offset, problem=problem
            )


def _unread(
    path: str, kinds: Mapping[str, FileName], request: Request, files: Files
) -> Iterator[Unit]:
    """Yield as problems what may have rows and is not read.

    These are the files that a starting broker would put in the place of others, logs that no broker
    reads by their names, and files of indexes in tiered storage that are compressed or encrypted.
    """
    for log in (
        unread_logs(path, list(kinds), files) if ".log" in TABLES[request.table].suffixes else ()
    ):
        offsets = (log.first, log.end)
        yield Unit(log.path, path, log.base_offset, problem=log.problem, offsets=offsets)
    has_indexes = any(suffix != ".log" for suffix in TABLES[request.table].suffixes)
    for name, known in kinds.items():
        is_swap = known.kind is NameKind.PENDING and name.endswith(".swap")
        if is_swap and known.suffix in TABLES[request.table].suffixes:
            full = posixpath.join(path, name)
            yield Unit(full, path, known.base_offset, problem=REPLACES_OTHERS)
        remote = read_remote_name(name)
        is_packed = remote is not None and remote.suffix == INDEXES_SUFFIX and not remote.passing
        if remote is not None and is_packed and has_indexes:
            problem = "the indexes in this file are packed in a way that is not read"
            yield Unit(posixpath.join(path, name), path, remote.base_offset, problem=problem)


def _segments(item: Listed) -> dict[tuple[int, str], list[str]]:
    """Return the suffixes of the segments in a directory, by base offset and stem.

    Copies of segments in tiered storage have a stem; a broker's cache of their indexes is left out.
    """
    segments: dict[tuple[int, str], list[str]] = {}
    for known in () if item.is_remote else item.kinds.values():
        if known.kind is NameKind.SEGMENT:
            segments.setdefault((known.base_offset, ""), []).append(known.suffix)
    for remote in filter(None, map(read_remote_name, item.kinds if item.is_remote else ())):
        if not (remote.passing or is_of_cache(remote.stem)):
            segments.setdefault(remote[:2], []).append(remote.suffix)
    return segments


def _of_partition(
    directory: str, segments: dict[tuple[int, str], list[str]], request: Request, files: Files
) -> Iterator[Unit]:
    logs = sorted(base for (base, stem), found in segments.items() if ".log" in found and not stem)
    following = dict(pairwise(logs))
    possible: dict[str, tuple[int, int]] | None = {}
    if asks_for_offsets(request):
        named = (NamedLog(posixpath.join(directory, name_in_segment(one, ".log")), one)
                 for one in logs)  # fmt: skip
        possible = possible_offsets(list(named), files)
    for (base, stem), found in sorted(segments.items()):
        suffixes = [one for one in TABLES[request.table].suffixes if one in found]
        groups = [suffixes] if request.table == "segments" else [[one] for one in suffixes]
        for group in groups:
            if group:
                path = posixpath.join(directory, name_in_segment(base, group[0], stem))
                size = sum(regular_size(f"{path[: -len(group[0])]}{one}", files) for one in group)
                offsets = None if possible is None else possible.get(path, (base, INT64_MAX + 1))
                after = following.get(base)
                yield Unit(path, directory, base, after, size, tuple(group), offsets=offsets)


def _may_have_rows(unit: Unit, request: Request) -> bool:
    """Return whether a row of the unit may pass the pushed filters, by its names and `offsets`."""
    filters = request.filters
    if not filters.passes("path", unit.path) or not filters.passes("directory", unit.directory):
        return False
    base = unit.base_offset
    if base is None:
        return True
    if not filters.range("segment_base_offset").meets(base, base):
        return False
    if unit.offsets is None:
        return True
    first, end = unit.offsets
    columns = TABLES[request.table].offset_columns
    return all(filters.range(column).meets(first, end - 1) for column in columns)
