# SPDX-License-Identifier: Apache-2.0
"""The consume queue: where in the log each message of a queue lies, in the order of the queue.

Upstream: RocketMQ 5.5.1: ConsumeQueue, MappedFileQueue.
Layout: `<store>/consumequeue/<topic>/<queue>/<20 digits>`: the position of the file's first byte in
  the queue. Unit n is bytes 20n..20n+19: QUEUE_UNIT of layouts/rocketmq.py.
Laws: RMQCQ-1 to RMQCQ-3.
Not covered: the extension files; a negative place in the queue; deleting what has expired; the
  lookup by time of releases up to 5.1.0.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Final, Literal, NamedTuple, Self

import numpy as np

from segproof.closing import Closing, told_state
from segproof.errors import (
    IndexClosedError,
    InvalidArgumentError,
    NumberFormatError,
    ReadOnlyError,
)
from segproof.files import REAL_FILES, Files
from segproof.integers import INT32_MAX, parse_int
from segproof.layouts.rocketmq import QUEUE_UNIT
from segproof.rocketmq.commit_log import CommitLog, log_file_name, named_offset

CONSUME_QUEUE: Final = "consumequeue"
SPOKEN_FOR_OTHERS: Final = "%LMQ%"
"""The name of each light queue contains this. A light queue is no queue of a topic."""
QUEUE_DIGITS: Final = 9
"""Digits of the largest number of a queue."""
UNIT_BYTES: Final = QUEUE_UNIT.size
MAPPED_FILE_BYTES: Final = 300_000 * UNIT_BYTES
RECOVERED_FILES: Final = 3
"""So many files at the end are read when a queue is opened."""
READ_BYTES: Final = 50_000 * UNIT_BYTES
Boundary = Literal["lower", "upper"]

_UNIT = QUEUE_UNIT.struct()
EXTENSION_MAX = -(1 << 31) - 1
"""A tags code up to this one is an address in the extension file of the queue."""
UNITS = QUEUE_UNIT.dtype


class ConsumeQueueUnit(NamedTuple):
    """One message of the queue."""

    commit_log_offset: int
    size: int
    tags_code: int

    @property
    def is_valid(self) -> bool:
        """Whether it stands for a message. Laws: RMQCQ-1."""
        return self.commit_log_offset >= 0 and self.size > 0


BLANK_UNIT: Final = ConsumeQueueUnit(0, INT32_MAX, 0)
"""What fills a file up to the first unit of a queue that does not begin at 0."""


def read_units(data: bytes | memoryview) -> list[ConsumeQueueUnit]:
    """Return the whole units of a file's bytes, the invalid ones too. Laws: RMQCQ-1."""
    whole = memoryview(data)[: len(data) - len(data) % UNIT_BYTES]
    return [ConsumeQueueUnit(*values) for values in _UNIT.iter_unpack(whole)]


class ConsumeQueue(Closing):
    """One queue of a topic; positions are bytes of the queue, offsets numbers of units.

    Made by `open`, for reading, or for writing where that was asked for. It can be iterated, and
    closed, after which it refuses to be used; no file stays open between two calls.
    """

    def __init__(
        self,
        folder: str,
        mapped_file_size: int,
        files: Files,
        *,
        writable: bool = False,
        create: bool = False,
    ) -> None:
        self.folder = folder
        self.writable = writable or create
        """Whether units may be added."""
        self._may_create = create
        self._is_closed = False
        self.mapped_file_size = mapped_file_size
        self.end = 0
        """Position behind the last unit."""
        self.max_physic_offset = -1
        """The end in the log of the last message of the queue; -1 without any."""
        self.min_logic_offset = 0
        """Position of the first unit that stands for a message."""
        self._files = files
        self._starts = _starts(folder, files)

    @classmethod
    def open(
        cls,
        store_path: str | os.PathLike[str],
        topic: str,
        queue_id: int,
        mapped_file_size: int = MAPPED_FILE_BYTES,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> Self:
        """Open a queue up to the last valid unit of its last three files.

        Files behind that are left out; with `writable=True` they are removed, and units may be
        added. Without a folder the queue is empty, and nothing is made; with `create=True` it is
        writable, and the first unit makes the folder.
        Raises: InvalidArgumentError for a size that is no multiple of 20, or a topic that is no
        name of a folder; OSError.
        """
        if not 0 < mapped_file_size <= INT32_MAX or mapped_file_size % UNIT_BYTES:
            raise InvalidArgumentError("a file holds whole units", actual=mapped_file_size)
        if topic in ("", ".", "..") or "/" in topic or "\0" in topic:
            raise InvalidArgumentError("a topic is the name of a folder", actual=topic)
        folder = os.path.join(os.fspath(store_path), CONSUME_QUEUE, topic, str(queue_id))
        queue = cls(folder, mapped_file_size, files, writable=writable, create=create)
        queue._find_end()
        for start in [one for one in queue._starts if one > queue.end]:
            if queue.writable:
                files.remove(queue._path(start))
            queue._starts.remove(start)
        return queue

    def close(self) -> None:
        """End the use of the queue; a second call does nothing."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise IndexClosedError("the queue is closed", path=self.folder)

    def _check_writable(self) -> None:
        self._check_open()
        if not self.writable:
            raise ReadOnlyError(
                "the queue was opened for reading",
                path=self.folder,
                hint="open it with writable=True",
            )
        if not (self._starts or self._may_create) and self._files.status(self.folder) is None:
            raise FileNotFoundError(
                errno.ENOENT, "there is no such queue; create=True makes it", self.folder
            )

    def __repr__(self) -> str:
        units = f"units {self.min_offset_in_queue} to {self.max_offset_in_queue}"
        state = told_state(units, is_open=not self._is_closed, writable=self.writable)
        return f"ConsumeQueue({self.folder!r}, {state})"

    def __iter__(self) -> Iterator[ConsumeQueueUnit]:
        """Yield every unit, fillers included, in the order of the queue.

        Memory: a piece of a file. Raises: IndexClosedError; OSError.
        """
        self._check_open()
        for start in self._starts:
            end = self.written_units(start) * UNIT_BYTES
            for position in range(0, end, READ_BYTES):
                yield from read_units(self._read(start, position, min(READ_BYTES, end - position)))

    def _find_end(self) -> None:
        for start in self._starts[-RECOVERED_FILES:]:
            count, last = self._valid_units(start)
            self.end = start + count * UNIT_BYTES
            if last is not None:
                self.max_physic_offset = last.commit_log_offset + last.size
            if self.end - start < self.mapped_file_size:
                break

    def _valid_units(self, start: int) -> tuple[int, ConsumeQueueUnit | None]:
        """Return how many valid units a file begins with, and the last of them."""
        count = 0
        last: ConsumeQueueUnit | None = None
        while count * UNIT_BYTES < self.mapped_file_size:
            data = self._read(start, count * UNIT_BYTES, READ_BYTES)
            table = np.frombuffer(data, UNITS, len(data) // UNIT_BYTES)
            is_bad = (table["commit_log_offset"] < 0) | (table["size"] <= 0)
            valid = int(is_bad.argmax()) if is_bad.any() else len(table)
            if valid:
                count += valid
                last = read_units(data[(valid - 1) * UNIT_BYTES : valid * UNIT_BYTES])[0]
            if valid < len(table) or not valid:
                break
        return count, last

    def _path(self, start: int) -> str:
        return os.path.join(self.folder, log_file_name(start))

    def _read(self, start: int, position: int, size: int) -> bytes:
        """Return bytes of the file that begins at `start`, none behind its part of the queue."""
        self._check_open()
        with closing(self._files.open(self._path(start))) as file:
            return file.pread(min(size, self.mapped_file_size - position), position)

    def written_units(self, start: int) -> int:
        """Return how many units the file that begins at `start` holds."""
        return max(0, min(self.end - start, self.mapped_file_size)) // UNIT_BYTES

    def inferred_file_size(self) -> int:
        """Return the length of the first file, in whole units; the usual one without files."""
        status = self._files.status(self._path(self._starts[0])) if self._starts else None
        size = MAPPED_FILE_BYTES if status is None else min(status.size_bytes, INT32_MAX)
        return max(UNIT_BYTES, size - size % UNIT_BYTES)

    def units(self) -> list[ConsumeQueueUnit]:
        """Return every unit, fillers included, in the order of the queue."""
        return list(self)

    @property
    def min_offset_in_queue(self) -> int:
        """The number of the first unit that stands for a message."""
        return self.min_logic_offset // UNIT_BYTES

    @property
    def max_offset_in_queue(self) -> int:
        """The number of the next unit."""
        return self.end // UNIT_BYTES

    # --- adding

    def put_message_position_info(
        self, offset: int, size: int, tags_code: int, cq_offset: int
    ) -> bool:
        """Add a unit for the message at `offset` of the log, number `cq_offset` of the queue.

        True, also where nothing is written: for a message whose end the queue has reached, and
        for a number that it has passed. A number beyond the next one is taken as it. Only a queue
        without files may begin at another number than 0: it is filled up to there.
        Laws: RMQCQ-2. Raises: OSError; InvalidArgumentError for a number outside 64 bits;
        ReadOnlyError, IndexClosedError.
        """
        self._check_writable()
        if offset + size <= self.max_physic_offset:
            return True
        try:
            unit = _UNIT.pack(offset, size, tags_code)
        except struct.error as error:
            raise InvalidArgumentError("a unit has numbers of 64, 32 and 64 bits") from error
        position = cq_offset * UNIT_BYTES
        self._make_room(position)
        if cq_offset != 0 and position < self.end:
            return True
        self._append(unit)
        self.max_physic_offset = offset + size
        return True

    def _make_room(self, position: int) -> None:
        """Have a file for the next unit, which is to be at `position`."""
        starts = self._starts
        if starts and self.end < starts[-1] + self.mapped_file_size:
            return
        first = position - position % self.mapped_file_size
        start = starts[-1] + self.mapped_file_size if starts else first
        self._files.make_directory(self.folder)
        with closing(self._files.open(self._path(start), writable=True, create=True)) as file:
            file.truncate(self.mapped_file_size)
        had_files = bool(starts)
        starts.append(start)
        self.end = start
        if had_files or position == 0:
            return
        blank = _UNIT.pack(*BLANK_UNIT)
        while self.end < position:
            self._append(blank * min((position - self.end) // UNIT_BYTES, READ_BYTES // UNIT_BYTES))
        self.min_logic_offset = position

    def _append(self, units: bytes) -> None:
        start = self._starts[-1]
        with closing(self._files.open(self._path(start), writable=True)) as file:
            file.pwrite(units, self.end - start)
        self.end += len(units)

    # --- searching

    def get_offset_in_queue_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary = "lower"
    ) -> int:
        """Return the number of the unit at a boundary of a store time, in milliseconds.

        `lower` is the first unit at or after the time, `upper` the last one at or before it.
        Laws: RMQCQ-3. Raises: IndexClosedError; OSError.
        """
        self._check_open()
        start = self._file_by_time(timestamp, commit_log, boundary_type)
        if start is None or not self.written_units(start):
            return 0
        return _Search(self, start, timestamp, commit_log).boundary(boundary_type)

    def _file_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary
    ) -> int | None:
        """Return the position of the file that a boundary lies in, or None."""
        if boundary_type == "upper":
            for start in reversed(self._starts):
                if self._time_above_zero(start, 0, commit_log) <= timestamp:
                    return start
            return None
        for start in self._starts[:-1]:
            if self._time_above_zero(start, self.written_units(start) - 1, commit_log) >= timestamp:
                return start
        return self._starts[-1] if self._starts else None

    def _time_above_zero(self, start: int, number: int, commit_log: CommitLog) -> int:
        """Return the store time of the message of a unit; -1 where it is not above 0."""
        if not 0 <= number < self.written_units(start):
            return -1
        unit = self.unit(start, number)
        time = commit_log.pickup_store_timestamp(unit.commit_log_offset, unit.size)
        return time if time > 0 else -1

    def unit(self, start: int, number: int) -> ConsumeQueueUnit:
        """Return unit `number` of the file that begins at `start`."""
        return read_units(self._read(start, number * UNIT_BYTES, UNIT_BYTES))[0]


class _Search:
    """A lookup by time in one file; positions are numbers of units, from 0 for the file's first."""

    def __init__(
        self, queue: ConsumeQueue, start: int, timestamp: int, commit_log: CommitLog
    ) -> None:
        self.queue, self.start = queue, start
        self.base = start // UNIT_BYTES
        self.floor = max(0, queue.min_offset_in_queue - self.base)
        self.last = queue.written_units(start) - 1
        self.timestamp, self.commit_log = timestamp, commit_log
        self.left: int | None = None
        self.right: int | None = None

    def time(self, position: int) -> int:
        """Return the store time of the message of a unit; -1 if the log does not have it."""
        unit = self.queue.unit(self.start, position)
        return self.commit_log.pickup_store_timestamp(unit.commit_log_offset, unit.size)

    def boundary(self, boundary_type: Boundary) -> int:
        """Return the first unit at or after the time, or the last one at or before it."""
        is_lower = boundary_type == "lower"
        if self.time(self.last) < self.timestamp:
            return self._answer(self.last + 1 if is_lower else self.last)
        if self.time(self.floor) > self.timestamp:
            return self.base if is_lower else 0
        target = self._target()
        if target is None:
            return self._answer(self.right if is_lower else self.left)
        if target < 0:
            return 0
        step = -1 if is_lower else 1
        while self.floor <= target + step <= self.last:
            if self.time(target + step) != self.timestamp:
                break
            target += step
        return self._answer(target)

    def _target(self) -> int | None:
        """Narrow down to the neighbours, or return the first exact hit; -1 for a lost message."""
        low, high = self.floor, self.last
        while low <= high:
            middle = (low + high) // 2
            unit = self.queue.unit(self.start, middle)
            if unit.commit_log_offset < self.commit_log.min_offset:
                low, self.left = middle + 1, middle
                continue
            time = self.time(middle)
            if time < 0:
                return -1
            if time == self.timestamp:
                return middle
            if time > self.timestamp:
                high, self.right = middle - 1, middle
            else:
                low, self.left = middle + 1, middle
        return None

    def _answer(self, position: int | None) -> int:
        """Return the number in the queue; without a position what upstream's -1 comes to."""
        return self.base + position if position is not None else max(0, self.base - 1)


def max_physic_offset(store_path: str, files: Files = REAL_FILES) -> int:
    """Return where in the log the queues of a store end together; -1 without a message.

    Nothing is changed. Raises: OSError.
    """
    furthest = -1
    top = os.path.join(store_path, CONSUME_QUEUE)
    for topic in folders_in(top, files):
        for path in folders_in(topic, files):
            if not is_queue_name(os.path.basename(path)):
                continue
            queue = ConsumeQueue(path, MAPPED_FILE_BYTES, files)
            queue.mapped_file_size = queue.inferred_file_size()
            queue._find_end()
            furthest = max(furthest, queue.max_physic_offset)
    return furthest


def queue_number(name: str) -> int | None:
    """Return the number that a broker reads from the name of a queue's folder; None: it reads none.

    It opens the folder whose name is that number, which need not be this one: see `is_queue_name`.
    Numbers of more than QUEUE_DIGITS digits, and those below 0, count as none.
    """
    try:
        number = parse_int(name, 32)
    except NumberFormatError:
        return None
    return number if 0 <= number < 10**QUEUE_DIGITS else None


def is_queue_name(name: str) -> bool:
    """Return whether a broker opens a queue by this name: a number without zeros before it."""
    return name == str(queue_number(name))


def folders_in(path: str, files: Files) -> list[str]:
    """Return the paths of the folders in a folder; none if it is none itself."""
    status = files.status(path)
    if status is None or not status.is_directory:
        return []
    found = []
    for name in files.list_directory(path):
        below = files.status(os.path.join(path, name))
        if below is not None and below.is_directory:
            found.append(os.path.join(path, name))
    return found


def _starts(folder: str, files: Files) -> list[int]:
    """Return the positions at which the files of a folder begin, in order."""
    status = files.status(folder)
    if status is None or not status.is_directory:
        return []
    named = (named_offset(name) for name in files.list_directory(folder))
    return sorted(start for start in named if start is not None)
