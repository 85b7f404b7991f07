# SPDX-License-Identifier: Apache-2.0
"""The commit log of a store: its files, and the messages in them in order.

Mirrors: impl/segproof/rocketmq/commit_log.py.
Upstream: RocketMQ CommitLog and MappedFileQueue (4.7.0 to 5.5.1).
Layout: `<store>/commitlog/<20 digits>`: the offset of the file's first byte in the log. A record
    does not cross the end of a file; what is left there begins with a size and the blank magic.
Laws: RMQLOG-1 to RMQLOG-3.
Not covered: writing; files that are no regular ones; a name that is not 20 digits, or in which not
    all bytes of a file would have an offset of 63 bits.
Used by: message_store, the harness.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from segproof_model.directory import Directory
from segproof_model.language.integers import INT32_MAX, INT64_MAX, int32_at, int64_at
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.message import (
    BORN_HOST_V6,
    FAILED,
    CheckResult,
    Message,
    check_message_and_return_size,
    host_size,
)

COMMIT_LOG = "commitlog"
STORE_TIME_END = 76
"""Where the store time of any record ends at the latest."""
LAST_START = INT64_MAX - INT32_MAX
"""Behind it not all bytes of the longest file have an offset."""
MAPPED_FILE_SIZE = 1 << 30
"""Length of a file where nothing says another one."""


def path_in(store_path: str, *parts: str) -> str:
    """Return the name of a file of a store in a directory's flat names.

    >>> path_in("", "checkpoint"), path_in("store", "index", "1")
    ('checkpoint', 'store/index/1')
    """
    return "/".join(part for part in (store_path, *parts) if part)


def log_file_name(start: int) -> str:
    """Return the name of the file that begins at an offset.

    >>> log_file_name(65536)
    '00000000000000065536'
    """
    return f"{start:020d}"


class LogFile(NamedTuple):
    """One file of a commit log."""

    start: int
    """Offset of its first byte in the log."""
    data: bytes
    """What of it belongs to the log."""


@dataclass(frozen=True, slots=True)
class CommitLog:
    """The files of a commit log.

    >>> log = CommitLog.open("", directory=Directory().write("commitlog/" + "0" * 20, bytes(99)))
    >>> log.after.mapped_file_size, list(log.after.scan())
    (99, [(0, CheckResult(success=False, size=-1, message=None))])
    """

    profile: Profile
    store_path: str
    mapped_file_size: int
    """How many bytes of the log each file takes."""
    directory: Directory

    @classmethod
    def open(
        cls,
        store_path: str,
        mapped_file_size: int | None = None,
        *,
        directory: Directory = Directory(),
        profile: Profile = ROCKETMQ_5_5_1,
    ) -> "Step[CommitLog] | Step[Directory]":
        """Name the log; nothing is made.

        Without a size it is the one that most lengths of files, and steps from one to the next,
        have; of several the smallest. A size outside 1..2^31-1 is an invalid argument.
        """
        if mapped_file_size is not None and not 0 < mapped_file_size <= INT32_MAX:
            return Step(directory, Raised(ErrorKind.INVALID_ARGUMENT))
        size = _inferred_size(_found(store_path, directory))
        return Step(cls(profile, store_path, mapped_file_size or size, directory))

    @property
    def files(self) -> tuple[LogFile, ...]:
        """The files by offset."""
        size = self.mapped_file_size
        found = _found(self.store_path, self.directory)
        return tuple(LogFile(start, data[:size]) for start, data in found)

    @property
    def min_offset(self) -> int:
        """The offset of the first byte; -1 without files."""
        return min((file.start for file in self.files), default=-1)

    @property
    def max_offset(self) -> int:
        """The offset behind the last file, whatever it holds; 0 without files."""
        return max((file.start + self.mapped_file_size for file in self.files), default=0)

    def file_of(self, phy_offset: int) -> LogFile | None:
        """Return the file that takes an offset, or None."""
        for file in self.files:
            if file.start <= phy_offset < file.start + self.mapped_file_size:
                return file
        return None

    def scan(self, phy_offset: int | None = None) -> Iterator[tuple[int, CheckResult]]:
        """Yield (offset, result) from a record on, the first one for None (RMQLOG-3).

        A blank tail leads to the next file and is not told; the first failure is told last. An
        offset that no file takes gives nothing.
        """
        first = self.min_offset if phy_offset is None else phy_offset
        if self.file_of(first) is None:
            return
        for start, data in self.files:
            position = max(0, first - start)
            while start + self.mapped_file_size > first:
                result = check_message_and_return_size(data, position, profile=self.profile)
                if result.success and result.size == 0:
                    break
                yield start + position, result
                if not result.success:
                    return
                position += result.size

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Return what stands at an offset."""
        file = self.file_of(phy_offset)
        if file is None:
            return FAILED
        position = phy_offset - file.start
        return check_message_and_return_size(file.data, position, check_crc, profile=self.profile)

    def look_message(self, phy_offset: int) -> Message | None:
        """Return the record at an offset, whatever its checksum; None if there is none."""
        return self.check(phy_offset, check_crc=False).message

    def pickup_store_timestamp(self, phy_offset: int, size: int) -> int:
        """Return the store time of a record of `size` bytes, unchecked; -1 where none can lie.

        A size that is too small for a record is -1 too; upstream it raises the index error.
        """
        file = self.file_of(phy_offset)
        record = file.data[phy_offset - file.start :][:size] if file is not None else b""
        if file is None or not STORE_TIME_END <= size <= len(record):
            return -1
        return int64_at(record, 48 + host_size(int32_at(record, 36), BORN_HOST_V6, self.profile))


def _found(store_path: str, directory: Directory) -> tuple[LogFile, ...]:
    """Return the files whose names are offsets, by offset, with all their bytes."""
    pattern = re.escape(path_in(store_path, COMMIT_LOG)) + "/([0-9]{20})"
    matches = [(re.fullmatch(pattern, name), data) for name, data in directory.files]
    found = [LogFile(int(match[1]), data) for match, data in matches if match is not None]
    return tuple(sorted(file for file in found if file.start <= LAST_START))


def _inferred_size(files: tuple[LogFile, ...]) -> int:
    steps = [after.start - before.start for before, after in pairwise(files)]
    sizes = steps + [len(file.data) for file in files]
    lawful = sorted(size for size in sizes if 0 < size <= INT32_MAX)
    return max(lawful, key=lawful.count, default=MAPPED_FILE_SIZE)
