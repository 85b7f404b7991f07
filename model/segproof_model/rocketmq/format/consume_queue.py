# SPDX-License-Identifier: Apache-2.0
"""The consume queue: where in the log each message of a queue lies, in the order of the queue.

Upstream: RocketMQ 5.5.1, ConsumeQueue. Otherwise: consume_queue_releases.
Layout: `<store>/consumequeue/<topic>/<queue>/<20 digits>`: the position of the file's first byte in
    the queue. Unit n is bytes 20n..20n+19: int64 offset in the log, int32 size, int64 tags code.
Laws: RMQCQ-1 to RMQCQ-3.
Not covered: the extension files; a negative place in the queue; deleting what has expired; looking
    up a unit whose size no record has, which raises upstream.
"""

from typing import Literal, NamedTuple

from segproof_model.language.files import Files
from segproof_model.language.integers import (
    INT32_MAX,
    int32_at,
    int32_bytes,
    int64_at,
    int64_bytes,
    wrap64,
)
from segproof_model.language.states import Released
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.mapped_file_queue import MappedFileQueue

CONSUME_QUEUE = "consumequeue"
UNIT_SIZE = 20
MAPPED_FILE_SIZE = 300_000 * UNIT_SIZE
RECOVERED_FILES = 3
"""So many files at the end are read when a queue is opened."""
Boundary = Literal["lower", "upper"]


class ConsumeQueueUnit(NamedTuple):
    """One message of the queue."""

    commit_log_offset: int
    size: int
    tags_code: int

    @property
    def is_valid(self) -> bool:
        """Whether it stands for a message (RMQCQ-1)."""
        return self.commit_log_offset >= 0 and self.size > 0

    def to_bytes(self) -> bytes:
        """Return the bytes of the unit (RMQCQ-1).

        >>> ConsumeQueueUnit(1, 2, -1).to_bytes().hex(" ", 4)
        '00000000 00000001 00000002 ffffffff ffffffff'
        """
        offset, tags_code = int64_bytes(self.commit_log_offset), int64_bytes(self.tags_code)
        return offset + int32_bytes(self.size) + tags_code


BLANK_UNIT = ConsumeQueueUnit(0, INT32_MAX, 0)
"""What fills a file up to the first unit of a queue that does not begin at 0."""


def read_units(data: bytes) -> list[ConsumeQueueUnit]:
    """Return the whole units of a file's bytes, the invalid ones too (RMQCQ-1)."""
    return [
        ConsumeQueueUnit(int64_at(data, at), int32_at(data, at + 8), int64_at(data, at + 12))
        for at in range(0, len(data) - UNIT_SIZE + 1, UNIT_SIZE)
    ]


class ConsumeQueue(MappedFileQueue):
    """A consume queue; `mapped_file_size` is a multiple of 20.

    >>> queue = ConsumeQueue(Files(), "consumequeue/T/0", 200)
    >>> queue.put_message_position_info(0, 100, 7, 0)
    True
    >>> queue.units(), queue.max_physic_offset
    ([ConsumeQueueUnit(commit_log_offset=0, size=100, tags_code=7)], 100)
    """

    def __init__(self, files: Files, folder: str, mapped_file_size: int = MAPPED_FILE_SIZE) -> None:
        """Open a queue up to the last valid unit of its last three files."""
        super().__init__(files, folder, mapped_file_size)
        self.end = 0
        """Position behind the last unit, in bytes of the queue."""
        self.max_physic_offset = -1
        """The end in the log of the last message of the queue; -1 without any."""
        self.min_logic_offset = 0
        """Position of the first unit that stands for a message, in bytes of the queue."""
        self.recover()

    def recover(self) -> None:
        """Find the end of the queue."""
        for start in self.starts()[-RECOVERED_FILES:]:
            units = read_units(self.mapped(start))
            valid = next((n for n, unit in enumerate(units) if not unit.is_valid), len(units))
            self.end = start + valid * UNIT_SIZE
            if valid:
                self.max_physic_offset = self.reached_by(units[valid - 1])
            if self.end < start + self.mapped_file_size:
                return

    def truncate_dirty_files(self) -> None:
        """Remove the files behind the end."""
        for start in self.starts():
            if start > self.end:
                self.files.remove(self.path(start))

    def reached_by(self, unit: ConsumeQueueUnit) -> int:
        """Return the offset in the log behind the message of a unit."""
        return wrap64(unit.commit_log_offset + unit.size)

    # --- units ---------------------------------------------------------------------------------

    def written(self, start: int) -> bytes:
        """Return the written part of the file that begins at a position."""
        return self.mapped(start)[: max(0, self.end - start)]

    def units(self) -> list[ConsumeQueueUnit]:
        """Return every unit, fillers included, in the order of the queue."""
        return [unit for start in self.starts() for unit in read_units(self.written(start))]

    @property
    def min_offset_in_queue(self) -> int:
        """The number of the first unit that stands for a message."""
        return self.min_logic_offset // UNIT_SIZE

    @property
    def max_offset_in_queue(self) -> int:
        """The number of the next unit."""
        return self.end // UNIT_SIZE

    def put_message_position_info(
        self, offset: int, size: int, tags_code: int, cq_offset: int
    ) -> bool:
        """Add a unit for the message at `offset` of the log, number `cq_offset` of the queue.

        True, also where nothing is written: for a message whose end the queue has reached, and
        for a number that it has passed (RMQCQ-2). A number beyond the next one is taken as it.
        Only a queue without files may begin at another number than 0: it is filled up to there.
        """
        unit = ConsumeQueueUnit(offset, size, tags_code)
        if self.reached_by(unit) <= self.max_physic_offset:
            return True
        position = cq_offset * UNIT_SIZE
        self.make_room(position)
        if cq_offset == 0 or position >= self.end:
            self.append(unit)
            self.max_physic_offset = self.reached_by(unit)
        return True

    def make_room(self, position: int) -> None:
        """Make a file for the next unit, which is to be at `position`, if the last one is full."""
        starts = self.starts()
        if starts and self.end < starts[-1] + self.mapped_file_size:
            return
        first = position - position % self.mapped_file_size
        self.end = starts[-1] + self.mapped_file_size if starts else first
        self.files.write(self.path(self.end), bytes(self.mapped_file_size))
        if not starts:
            while self.end < position:
                self.append(BLANK_UNIT)
            self.min_logic_offset = position

    def append(self, unit: ConsumeQueueUnit) -> None:
        """Write a unit at the end, in the last file."""
        start = self.starts()[-1]
        data, at = self.image(start), self.end - start
        self.files.write(self.path(start), data[:at] + unit.to_bytes() + data[at + UNIT_SIZE :])
        self.end += UNIT_SIZE

    # --- searching by time ---------------------------------------------------------------------

    def get_offset_in_queue_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary = "lower"
    ) -> int:
        """Return the number of the unit that a lookup by store time finds (RMQCQ-3).

        `lower` is the first one at or after the time, `upper` the last one at or before it.
        """
        start = self.file_by_time(timestamp, commit_log, boundary_type)
        if start is None:
            return 0
        return self.kind(TimeSearch)(self, start, timestamp, commit_log).found(boundary_type)

    def file_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary
    ) -> int | None:
        """Return the position of the file that a boundary lies in, or None."""
        starts = self.starts()
        if boundary_type == "upper":
            for start in reversed(starts):
                if time_of(self.written(start)[:UNIT_SIZE], commit_log) <= timestamp:
                    return start
            return None
        for start in starts[:-1]:
            if time_of(self.written(start)[-UNIT_SIZE:], commit_log) >= timestamp:
                return start
        return starts[-1] if starts else None


def time_of(data: bytes, commit_log: CommitLog) -> int:
    """Return the store time of the message of a unit's bytes; -1 where it is not above 0."""
    for unit in read_units(data):
        time = commit_log.pickup_store_timestamp(unit.commit_log_offset, unit.size)
        return time if time > 0 else -1
    return -1


class TimeSearch(Released):
    """A lookup by time in one file; positions are numbers of units, from 0 for the file's first."""

    def __init__(
        self, queue: ConsumeQueue, start: int, timestamp: int, commit_log: CommitLog
    ) -> None:
        self.units = read_units(queue.written(start))
        self.base = start // UNIT_SIZE
        self.floor = max(0, queue.min_offset_in_queue - self.base)
        self.timestamp, self.commit_log = timestamp, commit_log
        self.left: int | None = None
        """The last position that lay before the time, or has been deleted from the log."""
        self.right: int | None = None
        """The last position that lay after the time."""

    def time(self, position: int) -> int:
        """Return the store time of the message of a unit; -1 if the log does not have it."""
        unit = self.units[position]
        return self.commit_log.pickup_store_timestamp(unit.commit_log_offset, unit.size)

    def target(self) -> int | None:
        """Narrow down to the neighbours, or return the first exact hit; -1 for a lost message."""
        low, high = self.floor, len(self.units) - 1
        while low <= high:
            middle = (low + high) // 2
            if self.units[middle].commit_log_offset < self.commit_log.min_offset:
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

    def number(self, position: int | None) -> int:
        """Return the number in the queue; without a position what upstream's -1 comes to."""
        return self.base + position if position is not None else max(0, self.base - 1)

    def found(self, boundary_type: Boundary) -> int:
        """Return the first unit at or after the time, or the last one at or before it."""
        lower, last = boundary_type == "lower", len(self.units) - 1
        if last < 0:
            return 0
        if self.time(last) < self.timestamp:
            return self.number(last + 1 if lower else last)
        if self.time(self.floor) > self.timestamp:
            return self.base if lower else 0
        target = self.target()
        if target is None:
            return self.number(self.right if lower else self.left)
        return 0 if target < 0 else self.number(self.last_equal(target, lower))

    def last_equal(self, position: int, lower: bool) -> int:
        """Return the last position, going down or up, whose message has the time."""
        step = -1 if lower else 1
        while (
            self.floor <= position + step < len(self.units)
            and self.time(position + step) == self.timestamp
        ):
            position += step
        return position
