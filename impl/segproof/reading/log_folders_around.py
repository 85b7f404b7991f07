# SPDX-License-Identifier: Apache-2.0
"""The folders in, beside and above a store in which files of its commit log may lie alone.

A broker may keep its log on several disks, and a person may keep copies of its files beside it.

Upstream: RocketMQ 5.5.1: MultiPathMappedFileQueue.
Laws: RMQDISK-42.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Final

from segproof.files import Files, status_of
from segproof.reading.log_rows import LogFolder, Surroundings, log_folder
from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.rocketmq.message import BLANK_MAGIC_BYTES, MESSAGE_MAGICS

__all__ = ["STORE_NAMES", "is_of_log", "is_same", "log_folders_around", "places_around"]

STORE_NAMES: Final = frozenset({"index", "consumequeue", "checkpoint", "abort", "config", "lock"})
"""What a store has beside its log. A folder of a log alone has none of them."""
USUAL_STORE: Final = "store"
"""A store is usually in a folder with this name."""
LISTED_MAX: Final = 512
"""Folders of one folder that are looked into: more are no disks of one broker."""
LEVELS_UP: Final = 4
"""Folders above a store in which a broker's other disks are looked for."""
DAMAGED_BEGIN_MAX: Final = 1 << 16
"""Bytes of a file with a damaged begin that are searched for a message."""
_DIGITS = re.compile(r"[0-9]+")


def log_folders_around(store: str, is_far: bool, around: Surroundings) -> list[LogFolder]:
    """Return the folders near a store in which a log lies alone, without that of the store.

    `is_far` is as that of `places_around`.
    """
    own = posixpath.realpath(posixpath.join(store, COMMIT_LOG))
    found: dict[str, LogFolder] = {}
    for path in places_around(store, is_far, around):
        folder = around.log(path)
        if folder is None or not _lies_alone(path, around):
            continue
        real = posixpath.realpath(path)
        if real == own or real in found:
            continue
        folder = _without_linked(folder, own, around.files)
        if folder.log_files and is_of_log(folder, around.files):
            found[real] = folder
    return list(found.values())


def _without_linked(folder: LogFolder, own: str, files: Files) -> LogFolder:
    """Return a folder without the files to which links of the own folder lead: these are read."""
    linked = log_folder(own, files)
    if linked is None:
        return folder
    known = {one.start: one for one in linked.log_files}
    kept = (
        one
        for one in folder.log_files
        if one.start not in known or not is_same(one.path, known[one.start].path, files)
    )
    return LogFolder(folder.path, tuple(kept))


def places_around(store: str, is_far: bool, around: Surroundings) -> Iterator[str]:
    """Yield paths in, beside and above a store at which a broker may keep a part of its log.

    `is_far`: names that are not like those on the path of the store are asked two levels above it.
    """
    yield store
    for name in around.names(store)[:LISTED_MAX]:
        if name not in STORE_NAMES and name != COMMIT_LOG:
            yield posixpath.join(store, name)
            yield posixpath.join(store, name, COMMIT_LOG)
    below = posixpath.abspath(store)
    rest: list[str] = []
    for level in range(LEVELS_UP):
        above, name = posixpath.split(below)
        if not name:
            return
        like = _DIGITS.sub("", name)
        for other in around.names(above)[:LISTED_MAX]:
            is_asked = level < 1 + is_far and above != "/"
            if other == name or not (is_asked or _DIGITS.sub("", other) == like):
                continue
            yield from _places_below(posixpath.join(above, other), rest, around)
        rest.insert(0, name)
        below = above


def _places_below(folder: str, rest: Sequence[str], around: Surroundings) -> Iterator[str]:
    """Yield a folder, and the folders below it in which a log may lie.

    `rest` are the names that lead from the store's folder of the same level to the store.
    """
    for name in (*rest, None):
        names = around.names(folder)
        yield folder
        if COMMIT_LOG in names:
            yield posixpath.join(folder, COMMIT_LOG)
        if USUAL_STORE in names:
            yield posixpath.join(folder, USUAL_STORE)
            yield posixpath.join(folder, USUAL_STORE, COMMIT_LOG)
        if name is None or name not in names:
            return
        folder = posixpath.join(folder, name)


def _lies_alone(path: str, around: Surroundings) -> bool:
    """Return whether a folder of a log is no part of a whole store."""
    if posixpath.basename(path) != COMMIT_LOG:
        return True
    return not STORE_NAMES & {*around.names(posixpath.dirname(path))}


def is_of_log(folder: LogFolder, files: Files) -> bool:
    """Return whether files are of a commit log: one with content begins with a record, or the begin
    of the first of these is damaged, and a message follows that has its offset. True without any.
    """
    has_content = False
    for one in sorted(folder.log_files):
        with suppress(OSError), closing(files.open(one.path)) as file:
            head = file.pread(8, 0)
            if not head.strip(b"\0"):
                continue
            if head[4:] in (*MESSAGE_MAGICS, BLANK_MAGIC_BYTES):
                return True
            if not has_content and _has_message(file.pread(DAMAGED_BEGIN_MAX, 0), one.start):
                return True
            has_content = True
    return not has_content


def _has_message(data: bytes, start: int) -> bool:
    """Return whether a message that has its offset is in the begin of a file from an offset on."""
    for magic in MESSAGE_MAGICS:
        at = data.find(magic, 4)
        while at >= 0:
            if data[at + 24 : at + 32] == (start + at - 4).to_bytes(8, "big"):
                return True
            at = data.find(magic, at + 1)
    return False


def is_same(one: str, other: str, files: Files) -> bool:
    """Return whether two paths lead to one folder, or one file."""
    statuses = status_of(files, one), status_of(files, other)
    return None not in statuses and len({each.identity for each in statuses if each}) == 1
