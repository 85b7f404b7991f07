# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that lie inside of the folder `commitlog`, and not where a broker reads.

Such a file is in a folder there, or has another name than its offset: one that was packed, or moved
aside. It belongs where its first message says, also if it is packed. A name of 20 digits alone says
nothing: files of queues have such names too.

Layout: a message has a magic at byte 4 and its offset in the log at byte 28.
Upstream: RocketMQ 5.5.1: MappedFileQueue.load.
Laws: RMQDISK-39.
Not covered: the first message of files that begin with damage, or are packed by zstd, lz4 or zip.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Final, NamedTuple

from segproof.errors import NumberFormatError
from segproof.files import Files, status_of
from segproof.integers import parse_int
from segproof.layouts.rocketmq import MESSAGE
from segproof.reading.file_names import COMPRESSED_SUFFIXES
from segproof.reading.folder_names import names_of
from segproof.reading.log_file_shares import sound_messages
from segproof.reading.log_rows import is_filled
from segproof.reading.packed_log_files import PackedFile
from segproof.rocketmq.commit_log import (
    LAST_START,
    MAPPED_FILE_BYTES,
    LogFile,
    inferred_size,
    named_offset,
)
from segproof.rocketmq.message import MESSAGE_MAGICS
from segproof.stretches.rocketmq.candidates import HEAD_BYTES

__all__ = ["LogFileInside", "files_that_lack", "length_of_files", "log_files_inside"]

LEVELS: Final = 4
"""Folders below each other that are looked into."""
FOUND_MAX: Final = 10_000
_PACKED = re.compile(rf"([0-9]{{20}})({'|'.join(map(re.escape, COMPRESSED_SUFFIXES))})", re.ASCII)


class LogFileInside(NamedTuple):
    """What may be a file of a commit log that no broker reads there."""

    path: str
    start: int
    """Where in the log it belongs."""
    size_bytes: int
    packed: str = ""
    """The end of its name, if it is packed."""
    is_told: bool = True
    """Whether its first message says so; else only its name does, or both say different offsets."""
    is_denied: bool = False
    """Whether both say different offsets."""

    def is_partial(self, size: int) -> bool:
        """Return whether it is plain and shorter than `size`, the length of the log's files."""
        return not self.packed and self.size_bytes < size


def log_files_inside(path: str, files: Files, levels: int = LEVELS) -> list[LogFileInside]:
    """Return what may be files of a log at a path: itself, or those in the folder.

    The folder around it is not entered again, nor any folder twice: links may lead back.
    """
    around = status_of(files, posixpath.dirname(path))
    seen = set() if around is None else {around.identity}
    found = []
    for one in _inside(path, files, levels, seen):
        found.append(one)
        if len(found) >= FOUND_MAX:
            break
    return sorted(found, key=lambda one: (one.start, one.path))


def length_of_files(found: Sequence[LogFileInside], log_files: Sequence[LogFile]) -> int:
    """Return the length of the files of a log: what its own say, else plain ones inside.

    0: unknown, since all that is found is packed.
    """
    told = {one.start: one.size_bytes for one in found if one.is_told and not one.packed}
    plain = [LogFile(start, "", length) for start, length in sorted(told.items())]
    return inferred_size(sorted(log_files) or plain) if log_files or plain else 0


def files_that_lack(
    found: Sequence[LogFileInside],
    log_files: Sequence[LogFile],
    unread: Sequence[int],
    files: Files,
) -> dict[int, LogFileInside]:
    """Return the files that the log lacks, one for each offset: those that fill a gap in it, or
    lead on to its first file or from its last one. Plain ones of the length of the log's files come
    first, then packed ones, then shorter ones, which no broker loads; of several, the one with the
    most sound messages, then the longest.

    `unread`: where files of the log begin that can't be read. Cost: the last file of the log is
    read, if one follows it, and each plain file of an offset that has several.
    """
    told = [one for one in found if one.is_told]
    row = sorted(log_files)
    size = length_of_files(found, row) or MAPPED_FILE_BYTES
    starts = [one.start for one in row] + list(unread)
    step = max((start % size for start in starts), default=told[0].start % size if told else 0)
    if any(start % size != step for start in starts):
        return {}
    best: dict[int, LogFileInside] = {}
    copies = Counter(one.start for one in told if not one.packed and one.start not in starts)

    def rank(one: LogFileInside) -> tuple[bool, bool, int, int, str]:
        sound = 0
        if not one.packed and copies[one.start] > 1:
            with suppress(OSError):
                copy = LogFile(one.start, one.path, one.size_bytes)
                sound = sound_messages(copy, size, files)
        is_partial = one.is_partial(size)
        return is_partial, bool(one.packed), -sound, -one.size_bytes, one.path

    for one in sorted(told, key=rank):
        fits = one.start % size == step and one.start not in starts
        if fits and (one.packed or one.size_bytes <= size):
            best.setdefault(one.start, one)
    if not starts:
        return best
    first, last = min(starts), max(starts)
    while first - size in best and (first not in best or not best[first].is_partial(size)):
        first -= size
    if last + size in best and last not in unread and is_filled(row[-1], size, files):
        while last + size in best and (last not in best or not best[last].is_partial(size)):
            last += size
    return {start: one for start, one in best.items() if first <= start <= last}


def _inside(
    path: str, files: Files, levels: int, seen: set[tuple[int, int]]
) -> Iterator[LogFileInside]:
    status = status_of(files, path)
    if status is None or status.identity in seen:
        return
    if status.is_directory:
        seen.add(status.identity)
        for name in names_of(path, files) if levels else ():
            yield from _inside(posixpath.join(path, name), files, levels - 1, seen)
    elif status.is_regular and status.size_bytes:
        name = posixpath.basename(path)
        packed = _PACKED.fullmatch(name)
        named = named_offset(packed[1] if packed else name)
        told = _told_start(path, packed[2] if packed else "", files)
        start = told if named is None else named
        if start is not None:
            end = packed[2] if packed else ""
            yield LogFileInside(
                path, start, status.size_bytes, end, told == start, told not in (None, start)
            )


def _told_start(path: str, packed: str, files: Files) -> int | None:
    """Return the offset that the first message of a file says; None without one."""
    with suppress(OSError), closing(files.open(path)) as file:
        unpacked = PackedFile(file, path, packed, HEAD_BYTES) if packed else file
        head = unpacked.pread(HEAD_BYTES, 0)
        if head[4:8] in MESSAGE_MAGICS and len(head) == HEAD_BYTES:
            told = MESSAGE["physical_offset"].of(head)
            return told if 0 <= told <= LAST_START else None
    return None


def is_loaded(name: str) -> bool:
    """Return whether RocketMQ loads a file of this name: one that is a long to Java."""
    try:
        parse_int(name, 64)
    except NumberFormatError:
        return False
    return True
