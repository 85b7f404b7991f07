# SPDX-License-Identifier: Apache-2.0
"""The consume queues of a store: their units, in order, and against the commit log.

Cost: one byte of memory for each unit where the log is at hand.
Laws: RMQDISK-35 to RMQDISK-37.
Not covered: queues that other queues' messages are dispatched to (names with %LMQ%), whose units
  lead to messages of other topics; the extension files of queues.
Used by: verifying/rocketmq/running.py.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, data_end
from segproof.findings import Severity
from segproof.verifying.reporting import Described, Reporter
from segproof.verifying.rocketmq.log_records import LogBlock, LogRecords
from segproof.verifying.rocketmq.places import LOG_NAME
from segproof.verifying.segments import report_unreadable

__all__ = ["UNIT_BYTES", "QueueChecks", "check_queue_file"]

SERVICE = "index-service"
UNIT_BYTES = 20
UNIT = np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
PIECE_UNITS = 1 << 18
FILLER_SIZE = (1 << 31) - 1
PLACES_MAX = 1000
"""Units of one queue of which the record that should be there is remembered, for its words."""
TRANSACTION_BITS = 12
SPOKEN_FOR_OTHERS = "%LMQ%"
Units = NDArray[Any]


class QueueFile(NamedTuple):
    """One file of a queue."""

    start: int
    """Place of its first byte in the queue."""
    path: str
    size_bytes: int


@dataclass(slots=True)
class Queue:
    """One queue of one topic."""

    topic: str
    queue_id: int
    queue_files: list[QueueFile]
    units: int = 0
    """Behind the last valid unit, counted from the first file's first one."""
    seen: NDArray[np.bool_] | None = None
    """Which units a record of the log has accounted for."""
    valid: list[tuple[int, int]] = field(default_factory=list)
    """Of each file the first unit, and the one behind the last valid one."""
    elsewhere: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By unit: offset and size of the record of its place, where that is another one."""
    lacking: int = 0
    """Records whose units lie behind the last one."""

    @property
    def first(self) -> int:
        """The queue offset of the first unit."""
        return self.queue_files[0].start // UNIT_BYTES if self.queue_files else 0


def check_queue_file(path: str, files: Files, reporter: Reporter) -> None:
    """Judge one file of a queue by itself."""
    status = files.status(path)
    size = 0 if status is None else status.size_bytes
    name = posixpath.basename(path)
    queue = Queue("", 0, [QueueFile(int(name), path, size)])
    _Walk(queue, files, reporter).check()


class _Walk:
    """Reads the units of one queue once."""

    def __init__(self, queue: Queue, files: Files, reporter: Reporter) -> None:
        self._queue = queue
        self._files = files
        self._reporter = reporter
        self._last = -1

    def check(self) -> None:
        """Judge all files; sets the number of units."""
        queue = self._queue
        for before, after in pairwise(queue.queue_files):
            if after.start != before.start + before.size_bytes:
                self._report(
                    "RMQDISK-35", after.path,
                    f"it begins at byte {after.start} of the queue, and the file before ends at"
                    f" {before.start + before.size_bytes}", 0,
                )  # fmt: skip
        base = queue.queue_files[0].start
        for number, one in enumerate(queue.queue_files):
            if one.size_bytes % UNIT_BYTES:
                words = f"its {one.size_bytes} bytes are no whole units of {UNIT_BYTES}"
                place = one.size_bytes // UNIT_BYTES * UNIT_BYTES
                self._report("RMQDISK-35", one.path, words, place)
            try:
                count = self._file(one, number == len(queue.queue_files) - 1)
            except OSError as error:
                report_unreadable(one.path, error, self._reporter, SERVICE)
                continue
            first = (one.start - base) // UNIT_BYTES
            queue.valid.append((first, first + count))
            if count:
                queue.units = first + count

    def _file(self, one: QueueFile, is_last: bool) -> int:
        """Return how many units stand before the zeros of one file."""
        count, ended = 0, False
        for first, units in _pieces(one, self._files):
            is_valid = (units["offset"] >= 0) & (units["size"] > 0)
            stop = len(units)
            if not ended and not is_valid.all():
                stop = int(np.argmin(is_valid))
                ended = True
            elif ended:
                stop = 0
            self._rises(one, first, units[:stop])
            count += stop
            rest = units[stop:]
            if len(rest) and rest.tobytes().strip(b"\0"):
                at = (
                    first
                    + stop
                    + int(np.argmax([bool(one.tobytes().strip(b"\0")) for one in rest]))
                )
                self._report(
                    "RMQDISK-35", one.path, "this is no unit, and no zeros behind the last one",
                    at * UNIT_BYTES,
                )  # fmt: skip
                return count
        if ended and not is_last:
            self._report(
                "RMQDISK-35", one.path, "the units end here, and a later file follows",
                count * UNIT_BYTES,
            )  # fmt: skip
        return count

    def _rises(self, one: QueueFile, first: int, units: Units) -> None:
        offsets = units["offset"].astype(np.int64)
        is_filler = (offsets == 0) & (units["size"] == FILLER_SIZE)
        kept = np.flatnonzero(~is_filler)
        offsets = offsets[kept]
        if not len(offsets):
            return
        before = np.empty_like(offsets)
        before[0], before[1:] = self._last, offsets[:-1]
        wrong = np.flatnonzero(offsets <= before)
        self._last = int(offsets[-1])

        def describe(row: int) -> Described:
            at = wrong[row]
            return Described(
                f"the unit leads to offset {int(offsets[at])}, and the one before to"
                f" {int(before[at])}",
                f"above {int(before[at])}",
                int(offsets[at]),
            )

        self._reporter.add_rows(
            "RMQDISK-36", one.path, (kept[wrong] + first) * UNIT_BYTES, describe
        )

    def _report(self, law: str, path: str, words: str, position: int) -> None:
        self._reporter.add(law, path, words, position=position)


def _pieces(one: QueueFile, files: Files) -> Iterator[tuple[int, Units]]:
    """Yield the number of the first unit and a piece of a file."""
    file = files.open(one.path)
    try:
        # What lies in a hole is as the first zeros of it, which end the queue.
        end = min(one.size_bytes, data_end(file) + PIECE_UNITS * UNIT_BYTES)
        for first in range(0, end // UNIT_BYTES, PIECE_UNITS):
            data = file.pread(PIECE_UNITS * UNIT_BYTES, first * UNIT_BYTES)
            units: Units = np.frombuffer(data[: len(data) // UNIT_BYTES * UNIT_BYTES], UNIT)
            if not len(units):
                return
            yield first, units
    finally:
        file.close()


class QueueChecks:
    """All queues of a store; takes the blocks of the log, if there is one."""

    def __init__(self, store: str, files: Files, reporter: Reporter) -> None:
        self._store = store
        self._files = files
        self._reporter = reporter
        self._queues: dict[tuple[str, int], Queue] = {}

    def check(self, with_log: bool) -> None:
        """Find all queues and judge them by themselves."""
        root = posixpath.join(self._store, "consumequeue")
        for topic in self._names(root):
            for name in self._names(posixpath.join(root, topic)):
                if not name.isascii() or not name.isdigit() or len(name) > 9:
                    continue
                found = self._queue_files(posixpath.join(root, topic, name))
                if not found:
                    continue
                queue = Queue(topic, int(name), found)
                _Walk(queue, self._files, self._reporter).check()
                if with_log and SPOKEN_FOR_OTHERS not in topic:
                    queue.seen = np.zeros(queue.units, np.bool_)
                    self._queues[topic, queue.queue_id] = queue

    def _names(self, path: str) -> list[str]:
        try:
            status = self._files.status(path)
            if status is None or not status.is_directory:
                return []
            return self._files.list_directory(path)
        except OSError as error:
            report_unreadable(path, error, self._reporter, SERVICE, reproduce_path=self._store)
            return []

    def _queue_files(self, folder: str) -> list[QueueFile]:
        found = []
        for name in self._names(folder):
            path = posixpath.join(folder, name)
            status = self._files.status(path) if LOG_NAME.fullmatch(name) else None
            if status is not None and status.is_regular:
                found.append(QueueFile(int(name), path, status.size_bytes))
        return found

    def add(self, block: LogBlock) -> None:
        """Compare the records of a block with their units."""
        places: dict[tuple[str, int], list[int]] = defaultdict(list)
        for place, request in enumerate(block.requests):
            if request.sys_flag & TRANSACTION_BITS in (0, 8):
                places[request.topic or "", block.queue_ids[place]].append(place)
        for key, rows in places.items():
            queue = self._queues.get(key)
            if queue is not None:
                self._records(queue, block, rows)

    def _records(self, queue: Queue, block: LogBlock, rows: list[int]) -> None:
        assert queue.seen is not None
        wanted = np.array([block.requests[row].consume_queue_offset for row in rows], np.int64)
        wanted -= queue.first
        queue.lacking += int(np.count_nonzero(wanted >= queue.units))
        inside = np.flatnonzero((wanted >= 0) & (wanted < queue.units))
        if not len(inside):
            return
        low, high = int(wanted[inside].min()), int(wanted[inside].max())
        if high - low > PIECE_UNITS:
            return  # numbers that no writer gives in one stretch of the log: the end tells
        units = self._read(queue, low, high + 1)
        for at in inside.tolist():
            unit = units.get(int(wanted[at]))
            offset, size = block.offsets[rows[at]], block.requests[rows[at]].msg_size
            if unit == (offset, size):
                queue.seen[wanted[at]] = True
            elif unit is not None and len(queue.elsewhere) < PLACES_MAX:
                queue.elsewhere[int(wanted[at])] = (offset, size)

    def _read(self, queue: Queue, first: int, stop: int) -> dict[int, tuple[int, int]]:
        """Return offset and size of units, by their number in the queue's files."""
        found: dict[int, tuple[int, int]] = {}
        base = queue.queue_files[0].start
        for one in queue.queue_files:
            begin = (one.start - base) // UNIT_BYTES
            low, high = max(first, begin), min(stop, begin + one.size_bytes // UNIT_BYTES)
            if low >= high:
                continue
            file = self._files.open(one.path)
            try:
                data = file.pread((high - low) * UNIT_BYTES, (low - begin) * UNIT_BYTES)
            finally:
                file.close()
            units: Units = np.frombuffer(data[: len(data) // UNIT_BYTES * UNIT_BYTES], UNIT)
            pairs = zip(units["offset"].tolist(), units["size"].tolist(), strict=True)
            found |= {low + number: pair for number, pair in enumerate(pairs)}
        return found

    def _report(
        self, queue: Queue, number: int, unit: tuple[int, int], wanted: tuple[int, int] | None
    ) -> None:
        base = queue.queue_files[0].start
        place = base + number * UNIT_BYTES
        one = next(each for each in reversed(queue.queue_files) if each.start <= place)
        record = "no record of this queue is there"
        if wanted is not None:
            record = f"the record of this place lies at {wanted[0]} and has {wanted[1]} bytes"
        self._reporter.add(
            "RMQDISK-37",
            one.path,
            f"the unit {number + queue.first} leads to {unit[1]} bytes at offset {unit[0]}, and"
            f" {record}",
            position=place - one.start,
            expected=None if wanted is None else wanted[0],
            actual=unit[0],
            reproduce_path=self._store,
        )

    def finish(self, records: LogRecords, is_running: bool) -> None:
        """Report units that no record has accounted for, and records without a unit."""
        for queue in self._queues.values():
            if queue.lacking:
                self._reporter.add(
                    "RMQDISK-37",
                    queue.queue_files[-1].path,
                    f"{queue.lacking} messages of this queue are in the commit log, and have no"
                    " unit here" + (": the broker makes them when it runs" if is_running else ""),
                    actual=queue.lacking,
                    severity=Severity.NOTE if is_running else Severity.WARNING,
                    reproduce_path=self._store,
                )
            assert queue.seen is not None
            for number in np.flatnonzero(~queue.seen).tolist():
                unit = self._read(queue, number, number + 1).get(number)
                if unit is None or unit[1] == FILLER_SIZE or unit[0] < records.log.min_offset:
                    continue
                if not any(first <= number < stop for first, stop in queue.valid):
                    continue  # RMQDISK-35
                if not records.is_dark(unit[0]):
                    self._report(queue, number, unit, queue.elsewhere.get(number))
