# SPDX-License-Identifier: Apache-2.0
"""Folders with files of a commit log, and whether those of several make one row without a gap.

A row that several folders make speaks for one log where no queue does: queues may be in RocksDB.

Layout: a message has its offset in the log at byte 28, flags at 36, and its store time at byte 56,
  or at 68 if its born host is of IPv6. The address of the broker that stored it follows.
Upstream: RocketMQ 5.5.1: MultiPathMappedFileQueue, MessageDecoder.
Laws: RMQDISK-42.
"""

import posixpath
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from typing import NamedTuple

from segproof.counts import plural, verb
from segproof.errors import SegproofError
from segproof.files import Files, status_of
from segproof.layouts.rocketmq import IPV6_BYTES, MESSAGE
from segproof.reading.folder_names import names_of
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, inferred_size, named_offset
from segproof.rocketmq.message import BLANK_MAGIC_BYTES, BORN_HOST_V6, MESSAGE_MAGICS, STORE_HOST_V6
from segproof.stretches.rocketmq.message_blocks import LogReader

__all__ = [
    "LogFolder",
    "Surroundings",
    "begins",
    "first_stored",
    "is_filled",
    "linked_folders",
    "log_folder",
    "log_in_store",
    "rows_with",
    "words_of_log_in_store",
]


HELD_NAMES_MAX = 1 << 12
"""Names of a folder that are held in memory: 400 KiB with usual lengths."""


class LogFolder(NamedTuple):
    """A folder with files of a commit log."""

    path: str
    log_files: tuple[LogFile, ...]


class FirstStored(NamedTuple):
    """When and by which broker the first message of a file was stored."""

    milliseconds: int
    host: bytes
    """Address and port (int32): 8 or 20 bytes."""


def log_folder(path: str, files: Files) -> LogFolder | None:
    """Return a folder with files that are named as those of a log; None without any."""
    return _log_of(path, names_of(path, files), files)


def _log_of(path: str, names: Iterable[str], files: Files) -> LogFolder | None:
    found = []
    for name in names:
        start = named_offset(name)
        full = posixpath.join(path, name)
        status = None if start is None else status_of(files, full)
        if start is not None and status is not None and status.is_regular:
            found.append(LogFile(start, full, status.size_bytes))
    return LogFolder(path, tuple(found)) if found else None


class Surroundings:
    """The folders around the stores of a pass: each is listed once for all of these.

    What a broker makes there meanwhile is not seen, nor what it writes into files that were read.
    Memory: their names; a folder with more than HELD_NAMES_MAX is listed again each time.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self._names: dict[str, list[str]] = {}
        self._logs: dict[str, LogFolder | None] = {}
        self.zeros: dict[LogFile, bool] = {}
        """What `same_log.is_zeros` answered."""
        self.copies: dict[tuple[LogFolder, LogFolder], bool | None] = {}
        """What `same_log.is_copy_of` answered."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if it can't be listed."""
        found = self._names.get(folder)
        if found is None:
            found = names_of(folder, self.files)
            if len(found) <= HELD_NAMES_MAX:
                self._names[folder] = found
        return found

    def log(self, path: str) -> LogFolder | None:
        """Return what `log_folder` does."""
        if path not in self._logs:
            self._logs[path] = _log_of(path, self.names(path), self.files)
        return self._logs[path]


def linked_folders(log: CommitLog) -> list[str]:
    """Return the folders outside of its own to which links lead from the files of a log."""
    paths = [posixpath.realpath(one.path) for one in log.log_files]
    own = posixpath.realpath(posixpath.join(log.store_path, COMMIT_LOG))
    return sorted({posixpath.dirname(path) for path in paths} - {own})


def log_in_store(store: str, files: Files) -> LogFolder | None:
    """Return the files of a commit log that lie in the store itself, outside of its folder; None
    without any. A file counts if it begins with a message, or the blank end of a file.
    """
    folder = log_folder(store, files)
    found = [] if folder is None else [one for one in folder.log_files if _is_log_file(one, files)]
    return LogFolder(store, tuple(found)) if found else None


def words_of_log_in_store(folder: LogFolder) -> str:
    """Return in words which files of a commit log lie in the store itself."""
    count, first = len(folder.log_files), posixpath.basename(folder.log_files[0].path)
    files = f"{plural(count, 'file')} of a commit log {verb(count, 'lies', 'lie')}"
    return f"{files} in the store itself, {first}{' and later ones' * (count > 1)}"


def _is_log_file(one: LogFile, files: Files) -> bool:
    try:
        with closing(files.open(one.path)) as file:
            return file.pread(4, 4) in (*MESSAGE_MAGICS, BLANK_MAGIC_BYTES)
    except OSError:
        return False


def begins(one: LogFile, files: Files) -> bool:
    """Return whether something is written at the begin of a file."""
    try:
        with closing(files.open(one.path)) as file:
            return bool(file.pread(8, 0).strip(b"\0"))
    except OSError:
        return True


def rows_with(own: LogFolder, others: Sequence[LogFolder], files: Files) -> list[LogFolder]:
    """Return the folders whose files make one row with those of a log: all that may, or one.

    None of their files is there twice, but for one that is new; each message that begins a file
    says its offset, and none of them was stored before that of the file before.
    """
    asked = [one for one in others if _is_row([own, one], files, has_gaps=True)]
    for some in (asked, *([one] for one in asked)):
        if some and _is_row([own, *some], files) and _is_filled([own, *some], files):
            return list(some)
    return []


def _is_filled(folders: Sequence[LogFolder], files: Files) -> bool:
    """Return whether the first file that another folder's file follows may end there.

    A broker fills a file before it goes on in the next one: its messages end with a blank end. With
    damage before its end nothing is known. Cost: this one file is read.
    """
    row = sorted((one, folder.path) for folder in folders for one in folder.log_files)
    border = next((one for (one, here), (_, then) in pairwise(row) if here != then), None)
    return border is None or is_filled(border, inferred_size([one for one, _ in row]), files)


def is_filled(border: LogFile, size: int, files: Files) -> bool:
    """Return whether a file of a log may end with its last message: a broker goes on in the next
    one. With damage before its end nothing is known. Cost: this one file is read.
    """
    log = CommitLog("", size, (border,), files)
    with suppress(OSError, SegproofError), closing(files.open(border.path)) as file:
        reader = LogReader(log, files)
        for _ in reader.blocks_of(file, border):
            pass
        position = reader.end_offset - border.start
        return reader.end_result is None or bool(file.pread(8, position).strip(b"\0"))
    return True


def _is_row(folders: Sequence[LogFolder], files: Files, *, has_gaps: bool = False) -> bool:
    """Return whether the written files of folders follow each other."""
    written: list[LogFile] = []
    for folder in folders:
        mine = [one for one in folder.log_files if begins(one, files)]
        if not mine or len(folder.log_files) - len(mine) > 1:
            return False
        written += mine
    written.sort()
    size = inferred_size(written)
    steps = [after.start - before.start for before, after in pairwise(written)]
    if any(step < size or step % size or (step > size and not has_gaps) for step in steps):
        return False
    stored = [first_stored(one, files) for one in written]
    times = [one.milliseconds for one in stored if one is not None]
    return len(times) == len(stored) and times == sorted(times)


def first_stored(one: LogFile, files: Files) -> FirstStored | None:
    """Return what the first message of a file says; None if it is no message of this file."""
    with suppress(OSError), closing(files.open(one.path)) as file:
        head = file.pread(96, 0)
        head = head.ljust(96, b"\0")
        if head[4:8] in MESSAGE_MAGICS and MESSAGE["physical_offset"].of(head) == one.start:
            flags, host = MESSAGE["sys_flag"].of(head), MESSAGE["store_host"]
            shift = IPV6_BYTES if flags & BORN_HOST_V6 else 0
            end = host.end + shift + (IPV6_BYTES if flags & STORE_HOST_V6 else 0)
            stored = MESSAGE["store_timestamp"].of(head, shift)
            return FirstStored(stored, head[host.place + shift : end])
    return None
