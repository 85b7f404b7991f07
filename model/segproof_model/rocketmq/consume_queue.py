# SPDX-License-Identifier: Apache-2.0
"""The consume queue: where in the log each message of a queue lies, in the order of the queue.

Mirrors: impl/segproof/rocketmq/consume_queue.py.
Upstream: RocketMQ ConsumeQueue and MappedFileQueue (4.7.0 to 5.5.1).
Layout: `<store>/consumequeue/<topic>/<queue>/<20 digits>`: the position of the file's first byte in
    the queue. Unit n is bytes 20n..20n+19: int64 offset in the log, int32 size, int64 tags code.
Laws: RMQCQ-1 to RMQCQ-3.
Not covered: the extension files; a negative place in the queue; deleting what has expired; looking
    up a unit whose size no record has, which raises upstream.
Used by: message_store, the harness.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.language.integers import (
    INT32_MAX,
    int32_at,
    int32_bytes,
    int64_at,
    int64_bytes,
    wrap64,
)
from segproof_model.language.outcomes import Step
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.commit_log import CommitLog, log_file_name, path_in
from segproof_model.values import replace

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

        >>> ConsumeQueueUnit(1, 2, -1).to_bytes().hex()
        '000000000000000100000002ffffffffffffffff'
        """
        return (int64_bytes(self.commit_log_offset) + int32_bytes(self.size)) + int64_bytes(
            self.tags_code
        )


BLANK_UNIT = ConsumeQueueUnit(0, INT32_MAX, 0)
"""What fills a file up to the first unit of a queue that does not begin at 0."""


def read_units(data: bytes) -> list[ConsumeQueueUnit]:
    """Return the whole units of a file's bytes, the invalid ones too (RMQCQ-1)."""
    return [
        ConsumeQueueUnit(int64_at(data, at), int32_at(data, at + 8), int64_at(data, at + 12))
        for at in range(0, len(data) - UNIT_SIZE + 1, UNIT_SIZE)
    ]


@dataclass(frozen=True, slots=True)
class ConsumeQueue:
    """The state of a consume queue.

    >>> queue = ConsumeQueue.open("", "T", 0, 200).after
    >>> queue = queue.put_message_position_info(0, 100, 7, 0).after
    >>> queue.units(), queue.put_message_position_info(0, 100, 7, 1).outcome
    ([ConsumeQueueUnit(commit_log_offset=0, size=100, tags_code=7)], True)
    """

    profile: Profile
    folder: str
    mapped_file_size: int
    """Bytes of each file, a multiple of 20."""
    directory: Directory
    end: int = 0
    """Position behind the last unit, in bytes of the queue."""
    max_physic_offset: int = -1
    """The end in the log of the last message of the queue; -1 without any."""
    min_logic_offset: int = 0
    """Position of the first unit that stands for a message, in bytes of the queue."""

    @classmethod
    def open(
        cls,
        store_path: str,
        topic: str,
        queue_id: int,
        mapped_file_size: int = MAPPED_FILE_SIZE,
        *,
        directory: Directory = Directory(),
        profile: Profile = ROCKETMQ_5_5_1,
    ) -> "Step[ConsumeQueue]":
        """Open a queue, and cut it behind the last valid unit of its last three files.

        Files behind that are deleted.
        """
        folder = path_in(store_path, CONSUME_QUEUE, topic, str(queue_id))
        queue = cls.read(folder, mapped_file_size, directory=directory, profile=profile)
        for start in queue.starts():
            if start > queue.end:
                queue = replace(queue, directory=queue.directory.remove(queue.path(start)))
        return Step(queue)

    @classmethod
    def read(
        cls, folder: str, mapped_file_size: int, *, directory: Directory, profile: Profile
    ) -> "ConsumeQueue":
        """Return the queue in a folder, up to its last valid unit; no file is deleted."""
        queue = cls(profile, folder, mapped_file_size, directory)
        for start in queue.starts()[-RECOVERED_FILES:]:
            units = read_units(queue.file(start)[:mapped_file_size])
            valid = next((n for n, unit in enumerate(units) if not unit.is_valid), len(units))
            known = queue.reached_by(units[valid - 1]) if valid else queue.max_physic_offset
            queue = replace(queue, end=start + valid * UNIT_SIZE, max_physic_offset=known)
            if valid * UNIT_SIZE < mapped_file_size:
                break
        return queue

    def reached_by(self, unit: ConsumeQueueUnit) -> int:
        """Return what is reached of the log with the message of a unit: its end, or its begin."""
        size = unit.size if self.profile.rmq_queue_knows_end else 0
        return wrap64(unit.commit_log_offset + size)

    def path(self, start: int) -> str:
        """Return the name of the file that begins at a position."""
        return f"{self.folder}/{log_file_name(start)}"

    def file(self, start: int) -> bytes:
        """Return the bytes of the file that begins at a position."""
        return self.directory.read(self.path(start)) or b""

    def starts(self) -> list[int]:
        """Return the positions at which files begin, in order."""
        pattern = re.escape(self.folder) + "/([0-9]{20})"
        matches = (re.fullmatch(pattern, name) for name in self.directory)
        return [int(match[1]) for match in matches if match is not None]

    def written(self, start: int) -> bytes:
        """Return the written part of the file that begins at a position."""
        return self.file(start)[: max(0, min(self.end - start, self.mapped_file_size))]

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
    ) -> Step[Self]:
        """Add a unit for the message at `offset` of the log, number `cq_offset` of the queue.

        True, also where nothing is written: for a message whose end the queue has reached, and
        for a number that it has passed (RMQCQ-2). A number beyond the next one is taken as it.
        Only a queue without files may begin at another number than 0: it is filled up to there.
        """
        unit = ConsumeQueueUnit(offset, size, tags_code)
        if self.reached_by(unit) <= self.max_physic_offset:
            return Step(self, True)
        position = cq_offset * UNIT_SIZE
        queue = self._with_room(position)
        if cq_offset != 0 and position < queue.end:
            return Step(queue, True)
        return Step(replace(queue._with(unit), max_physic_offset=self.reached_by(unit)), True)

    def _with_room(self, position: int) -> Self:
        """Return the queue with a file for the next unit, which is to be at `position`."""
        starts = self.starts()
        if starts and self.end < starts[-1] + self.mapped_file_size:
            return self
        first = position - position % self.mapped_file_size
        start = starts[-1] + self.mapped_file_size if starts else first
        made = self.directory.write(self.path(start), bytes(self.mapped_file_size))
        queue = replace(self, directory=made, end=start)
        if starts or position == 0:
            return queue
        while queue.end < position:
            queue = queue._with(BLANK_UNIT)
        return replace(queue, min_logic_offset=position)

    def _with(self, unit: ConsumeQueueUnit) -> Self:
        """Return the queue with one unit more in its last file."""
        start = self.starts()[-1]
        data, at = self.file(start), self.end - start
        changed = data[:at] + unit.to_bytes() + data[at + UNIT_SIZE :]
        written = self.directory.write(self.path(start), changed)
        return replace(self, directory=written, end=self.end + UNIT_SIZE)

    def get_offset_in_queue_by_time(
        self,
        timestamp: int,
        commit_log: CommitLog,
        boundary_type: Boundary = "lower",
        *,
        modified_ms: Mapping[int, int] | None = None,
    ) -> int:
        """Return the number of the unit that a lookup by store time finds (RMQCQ-3).

        `modified_ms` is when each file was modified, by the position at which it begins; only the
        rule `nearest` asks for it, and it knows no boundary.
        """
        nearest = self.profile.rmq_queue_lookup == "nearest"
        if nearest:
            known = modified_ms or {}
            starts = self.starts()
            fitting = [start for start in starts if known.get(start, 0) >= timestamp]
            chosen = [*fitting, *starts[-1:]][:1]
        else:
            chosen = self._file_by_time(timestamp, commit_log, boundary_type)
        for start in chosen:
            search = _Search(self, start, timestamp, commit_log)
            if search.units:
                return search.nearest() if nearest else search.boundary(boundary_type)
        return 0

    def _file_by_time(
        self, timestamp: int, commit_log: CommitLog, boundary_type: Boundary
    ) -> list[int]:
        """Return the position of the file that a boundary lies in, or none."""
        starts = self.starts()
        if boundary_type == "upper":
            for start in reversed(starts):
                if self._time_of(self.written(start)[:UNIT_SIZE], commit_log) <= timestamp:
                    return [start]
            return []
        for start in starts[:-1]:
            if self._time_of(self.written(start)[-UNIT_SIZE:], commit_log) >= timestamp:
                return [start]
        return starts[-1:]

    def _time_of(self, data: bytes, commit_log: CommitLog) -> int:
        """Return the store time of the message of a unit's bytes; -1 where it is not above 0."""
        units = read_units(data)
        time = commit_log.pickup_store_timestamp(*units[0][:2]) if units else -1
        return time if time > 0 else -1


class _Search:
    """A lookup by time in one file; positions are numbers of units, from 0 for the file's first."""

    def __init__(
        self, queue: ConsumeQueue, start: int, timestamp: int, commit_log: CommitLog
    ) -> None:
        self.units = read_units(queue.written(start))
        self.base = start // UNIT_SIZE
        self.floor = max(0, queue.min_offset_in_queue - self.base)
        self.timestamp, self.commit_log = timestamp, commit_log
        self.left: int | None = None
        self.right: int | None = None
        self.left_time: int | None = None
        self.right_time: int | None = None

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
                high, self.right, self.right_time = middle - 1, middle, time
            else:
                low, self.left, self.left_time = middle + 1, middle, time
        return None

    def answer(self, position: int | None) -> int:
        """Return the number in the queue; without a position what upstream's -1 comes to."""
        return self.base + position if position is not None else max(0, self.base - 1)

    def nearest(self) -> int:
        """Return the unit that is nearest in time, the earlier one of two."""
        target = self.target()
        if target is not None:
            return 0 if target < 0 else self.answer(target)
        if self.left_time is None or self.right_time is None:
            return self.answer(self.right if self.left_time is None else self.left)
        after = abs(self.timestamp - self.left_time) > abs(self.timestamp - self.right_time)
        return self.answer(self.right if after else self.left)

    def boundary(self, boundary_type: Boundary) -> int:
        """Return the first unit at or after the time, or the last one at or before it."""
        lower, last = boundary_type == "lower", len(self.units) - 1
        if self.time(last) < self.timestamp:
            return self.answer(last + 1 if lower else last)
        if self.time(self.floor) > self.timestamp:
            return self.base if lower else 0
        target = self.target()
        if target is None:
            return self.answer(self.right if lower else self.left)
        if target < 0:
            return 0
        step = -1 if lower else 1
        while self.floor <= target + step <= last and self.time(target + step) == self.timestamp:
            target += step
        return self.answer(target)
