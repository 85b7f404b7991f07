# SPDX-License-Identifier: Apache-2.0
"""The commit log of a store, read only: its files, its records in order, one record.

Files are read by `pread` in pieces and never mapped: another process may cut them.

Upstream: RocketMQ 5.5.1: CommitLog, MappedFileQueue.
Laws: RMQLOG-1 to RMQLOG-3.
Not covered: writing; names that are not 20 digits, or in which not all bytes of a file would have
  an offset of 63 bits: no store gives them.
"""

import errno
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Final, NamedTuple, Self

from segproof.counts import plural
from segproof.errors import InvalidArgumentError, TooLargeError
from segproof.files import NOT_REGULAR, REAL_FILES, Files, ReadOnlyFile
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.layouts.rocketmq import IPV6_BYTES, MESSAGE
from segproof.rocketmq.message import (
    BORN_HOST_V6,
    FAILED,
    CheckResult,
    Message,
    check_message_and_return_size,
)

COMMIT_LOG: Final = "commitlog"
MAPPED_FILE_BYTES: Final = 1 << 30
"""Length of a file where nothing says another one."""
RECORD_LIMIT_BYTES: Final = 64 << 20
"""A longer record is not taken into memory."""
CHUNK_BYTES: Final = 1 << 20
TEXT_BYTES: Final = 70_000
"""At least what topic and properties take, with the fields before and between."""
NAME_DIGITS: Final = 20
STORE_TIME_V4: Final = MESSAGE["store_timestamp"].place
STORE_TIME_V6: Final = STORE_TIME_V4 + IPV6_BYTES
"""Where a record has its store time, with the producer's address in 4 or 16 bytes."""
LAST_START: Final = INT64_MAX - INT32_MAX
"""Behind it not all bytes of the longest file have an offset."""


class LogFile(NamedTuple):
    """One file of a commit log."""

    start: int
    """Offset of its first byte in the log."""
    path: str
    size_bytes: int
    """So much of it belongs to the log."""


def log_file_name(start: int) -> str:
    """Return the name of the file that begins at an offset."""
    return f"{start:0{NAME_DIGITS}d}"


def named_offset(name: str) -> int | None:
    """Return the offset that a name of 20 digits says, or None for a name that no store gives."""
    is_name = len(name) == NAME_DIGITS and name.isascii() and name.isdigit()
    return int(name) if is_name and int(name) <= LAST_START else None


class CommitLog:
    """The files of `<store>/commitlog`, as they were when it was opened."""

    def __init__(
        self, store_path: str, mapped_file_size: int, log_files: tuple[LogFile, ...], files: Files
    ) -> None:
        self.store_path = store_path
        self.mapped_file_size = mapped_file_size
        """Bytes of the log that each file takes."""
        self.log_files = log_files
        """By offset."""
        self._files = files
        self._starts = [one.start for one in log_files]

    @classmethod
    def open(
        cls,
        store_path: str | os.PathLike[str],
        mapped_file_size: int | None = None,
        *,
        files: Files = REAL_FILES,
    ) -> Self:
        """List the files of a commit log: none without a folder.

        Where None is given their size is the one that most of their lengths and of the steps from
        one name to the next have, the smallest of these: so a file that is missing or cut changes
        nothing. Raises: InvalidArgumentError for a size outside 1..2^31-1; OSError, also where one
        of them is no regular file.
        """
        if mapped_file_size is not None and not 0 < mapped_file_size <= INT32_MAX:
            raise InvalidArgumentError(
                f"a file of a commit log has 1 to {INT32_MAX} bytes", actual=mapped_file_size
            )
        store = os.fspath(store_path)
        folder = os.path.join(store, COMMIT_LOG)
        status = files.status(folder)
        found = _found_files(folder, files) if status is not None and status.is_directory else []
        size = inferred_size(found) if mapped_file_size is None else mapped_file_size
        log_files = tuple(one._replace(size_bytes=min(one.size_bytes, size)) for one in found)
        return cls(store, size, log_files, files)

    def __repr__(self) -> str:
        files = plural(len(self.log_files), "file")
        offsets = f"offsets {self.min_offset} to {self.max_offset}"
        return f"CommitLog({self.store_path!r}, {files}, {offsets}, read-only)"

    @property
    def min_offset(self) -> int:
        """The offset of the first byte; -1 without files."""
        return self._starts[0] if self._starts else -1

    @property
    def max_offset(self) -> int:
        """The offset behind the last file, whatever it holds; 0 without files."""
        return self._starts[-1] + self.mapped_file_size if self._starts else 0

    def file_of(self, phy_offset: int) -> LogFile | None:
        """Return the file that holds an offset."""
        place = bisect_right(self._starts, phy_offset) - 1
        if place < 0:
            return None
        found = self.log_files[place]
        return found if phy_offset < found.start + self.mapped_file_size else None

    def scan(self, phy_offset: int | None = None) -> Iterator[tuple[int, CheckResult]]:
        """Yield (offset, result) of each record from an offset on, the first of the log for None.

        The blank end of a file leads to the next file and is not told. The first failure is told
        last: so a scan without one ended at the blank end of the last file. Nothing comes from an
        offset that no file holds.
        Memory: one record, and a piece of the file. Laws: RMQLOG-3.
        Raises: TooLargeError for a record of more than 64 MiB; OSError.
        """
        first = self.min_offset if phy_offset is None else phy_offset
        start = self.file_of(first)
        if start is None:
            return
        for log_file in self.log_files[bisect_right(self._starts, first) - 1 :]:
            with closing(self._files.open(log_file.path)) as file:
                records = LogFileRecords(file, log_file)
                position = max(0, first - log_file.start)
                while True:
                    result = records.check(position, check_crc=True)
                    if result.success and result.size == 0:
                        break
                    yield log_file.start + position, result
                    if not result.success:
                        return
                    position += result.size

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Return what a look at one offset finds. Raises: as `scan`."""
        log_file = self.file_of(phy_offset)
        if log_file is None:
            return FAILED
        with closing(self._files.open(log_file.path)) as file:
            return LogFileRecords(file, log_file).check(phy_offset - log_file.start, check_crc)

    def look_message(self, phy_offset: int) -> Message | None:
        """Return the record at an offset, whatever its checksum; None if there is no record.

        Raises: as `scan`.
        """
        return self.check(phy_offset, check_crc=False).message

    def pickup_store_timestamp(self, phy_offset: int, size: int) -> int:
        """Return the store time of a record of `size` bytes, unchecked; -1 where none can lie.

        Raises: OSError.
        """
        log_file = self.file_of(phy_offset)
        if log_file is None or size < STORE_TIME_V6 + 8:
            return -1
        position = phy_offset - log_file.start
        if position + size > log_file.size_bytes:
            return -1
        with closing(self._files.open(log_file.path)) as file:
            record = file.pread(STORE_TIME_V6 + 8, position)
        is_v6 = MESSAGE["sys_flag"].of(record) & BORN_HOST_V6
        return MESSAGE["store_timestamp"].of(record, IPV6_BYTES if is_v6 else 0)


class LogFileRecords:
    """The records of one open file of a log."""

    def __init__(
        self, file: ReadOnlyFile, log_file: LogFile, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self._file = file
        self._chunk_bytes = chunk_bytes
        """So many are read at least, as far as there are."""
        self._size = log_file.size_bytes
        self._chunk = b""
        self._chunk_position = 0

    def check(self, position: int, check_crc: bool) -> CheckResult:
        """Return what a look at a position of the file finds. Raises: as `CommitLog.scan`."""
        head = self._window(position, 8)
        total_size = int.from_bytes(self._chunk[head : head + 4], "big", signed=True)
        if total_size > self._size - position:
            return FAILED
        if total_size > RECORD_LIMIT_BYTES:
            raise TooLargeError(
                f"a record of {total_size} bytes", path=self._file.path, position=position
            )
        here = self._window(position, total_size)
        result = check_message_and_return_size(self._chunk, here, check_crc)
        if result.success or self._chunk_position + len(self._chunk) >= self._size:
            return result
        # Which failure it is may depend on bytes behind the stored length.
        here = self._window(position, 2 * max(total_size, 0) + TEXT_BYTES)
        return check_message_and_return_size(self._chunk, here, check_crc)

    def _window(self, position: int, size: int) -> int:
        """Have `size` bytes from `position` in the chunk, fewer at the end; return where."""
        end = min(position + size, self._size)
        begin = self._chunk_position
        if not begin <= position <= end <= begin + len(self._chunk):
            wanted = min(max(size, self._chunk_bytes), self._size - position)
            self._chunk = self._file.pread(max(wanted, 0), position)
            self._chunk_position = position
        return position - self._chunk_position


def _found_files(folder: str, files: Files) -> list[LogFile]:
    found = []
    for name in files.list_directory(folder):
        start = named_offset(name)
        if start is None:
            continue
        path = os.path.join(folder, name)
        status = files.status(path)
        if status is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if not status.is_regular:
            raise IsADirectoryError(errno.EISDIR, NOT_REGULAR, path)
        found.append(LogFile(start, path, status.size_bytes))
    return found


def inferred_size(found: Sequence[LogFile]) -> int:
    """Return the size that most lengths and steps say: some files may be missing, or cut.

    Of those that are said as often, the smallest one that no file is longer than and whose
    multiples the steps are, else the smallest.
    """
    lengths = [one.size_bytes for one in found]
    steps = [after.start - before.start for before, after in pairwise(found)]
    times = Counter(size for size in lengths + steps if 0 < size <= INT32_MAX)

    def rank(size: int) -> tuple[int, bool, int]:
        fits = size >= max(lengths) and not any(step % size for step in steps)
        return times[size], fits, -size

    return max(times, key=rank, default=MAPPED_FILE_BYTES)
