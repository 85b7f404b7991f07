# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that lie inside of the folder `commitlog`, and not where a broker reads.

Such a file is in a folder there, or has another name than its offset: one that was packed, or moved
aside. Its first message says where in the log it belongs.

Layout: a message has a magic at byte 4 and its offset in the log at byte 28.
Upstream: RocketMQ 5.5.1: MappedFileQueue.load.
Laws: RMQDISK-39.
Not covered: files that begin with damage and have another name; what is packed is known by its name
  alone.
"""

import posixpath
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final, NamedTuple

from segproof.files import Files, status_of
from segproof.reading.folder_names import names_of
from segproof.reading.log_rows import BLANK, MAGICS
from segproof.rocketmq.commit_log import named_offset

__all__ = ["LogFileInside", "log_files_inside"]

LEVELS: Final = 4
"""Folders below each other that are looked into."""
FOUND_MAX: Final = 10_000
_PACKED = re.compile(r"([0-9]{20})(\.(?:gz|bz2|xz|zst|lz4|zip))", re.ASCII)


class LogFileInside(NamedTuple):
    """A file of a commit log that no broker reads there."""

    path: str
    start: int
    """Where in the log it belongs."""
    packed: str = ""
    """The end of its name, if it is packed."""


def log_files_inside(path: str, files: Files, levels: int = LEVELS) -> list[LogFileInside]:
    """Return the files of a log at a path: itself, or those in the folder."""
    found = []
    for one in _inside(path, files, levels):
        found.append(one)
        if len(found) >= FOUND_MAX:
            break
    return sorted(found, key=lambda one: (one.start, one.path))


def _inside(path: str, files: Files, levels: int) -> Iterator[LogFileInside]:
    status = status_of(files, path)
    if status is None:
        return
    if status.is_directory:
        for name in names_of(path, files) if levels else ():
            yield from _inside(posixpath.join(path, name), files, levels - 1)
    elif status.is_regular and status.size_bytes:
        name = posixpath.basename(path)
        packed = _PACKED.fullmatch(name)
        if packed is not None:
            yield LogFileInside(path, int(packed[1]), packed[2])
        elif (start := _start(path, name, files)) is not None:
            yield LogFileInside(path, start)


def _start(path: str, name: str, files: Files) -> int | None:
    """Return where a file belongs in a log, by its first message, or its name; None if nowhere."""
    named = named_offset(name)
    with suppress(OSError), closing(files.open(path)) as file:
        head = file.pread(36, 0)
        if head[4:8] in MAGICS and len(head) == 36:
            told = int.from_bytes(head[28:36], "big", signed=True)
            return told if named is None and told >= 0 else named
        if head[4:8] == BLANK or any(head):
            return named
    return None
