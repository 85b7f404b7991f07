# SPDX-License-Identifier: Apache-2.0
"""One consume queue by itself: its files in order, and the units in them, which lead upwards.

Laws: RMQDISK-35, RMQDISK-36.
"""

import posixpath
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, first_byte_of
from segproof.findings import Severity
from segproof.reading.folder_names import names_of
from segproof.reading.rows import Int64Array, shifted
from segproof.rocketmq.commit_log import named_offset
from segproof.rocketmq.consume_queue import UNIT_BYTES, UNITS
from segproof.wording.reporting import Reporter
from segproof.wording.rules import REMAKE_STORE, declare
from segproof.wording.segment_files import FILE_SIZE_MAX_BYTES

declare("index-service", Severity.ERROR, REMAKE_STORE, "RMQDISK-35", "RMQDISK-36")

PIECE_UNITS = 1 << 18
FILLER_SIZE = (1 << 31) - 1
Units = NDArray[Any]


@dataclass(slots=True)
class QueueFile:
    """One file of a queue."""

    start: int
    """Place of its first byte in the queue."""
    path: str
    size_bytes: int
    units: int = 0
    """Before the first place that holds none."""
    seen: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Which of them a record of the log has accounted for."""

    @property
    def first(self) -> int:
        """The queue offset of the first unit."""
        return self.start // UNIT_BYTES

    @property
    def stop(self) -> int:
        """The queue offset behind the last unit."""
        return self.first + self.units


@dataclass(slots=True)
class Queue:
    """One queue of one topic."""

    topic: str
    queue_id: int
    folder: str
    queue_files: list[QueueFile] = field(default_factory=list)
    is_whole: bool = True
    """Whether each file of the queue could be read."""
    furthest: int = -1
    """The largest offset in the log that a unit leads to."""
    elsewhere: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By unit: offset and size of the record of its place, where that is another one."""
    lacking: int = 0
    """Records whose units lie behind the last one, or before the first."""
    lacks: tuple[int, int] | None = None
    """Queue offset, and offset in the log, of the first of those behind the last unit."""
    lacks_before: int = -1
    """Offset in the log of the last of those before the first unit."""

    firsts: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    stops: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each file the queue offset of the first unit, and the one behind the last."""

    @property
    def first(self) -> int:
        """The queue offset of the first unit."""
        return int(self.firsts[0]) if len(self.firsts) else 0

    @property
    def stop(self) -> int:
        """The queue offset behind the last unit."""
        return int(self.stops.max(initial=self.first, where=self.stops > self.firsts))


def check_queue_file(path: str, files: Files, reporter: Reporter) -> None:
    """Judge one file of a queue by itself."""
    status = files.status(path)
    size = 0 if status is None else status.size_bytes
    name = posixpath.basename(path)
    Walk(Queue("", 0, "", [QueueFile(int(name), path, size)]), files, reporter).check()


class Walk:
    """Reads the units of one queue once."""

    def __init__(self, queue: Queue, files: Files, reporter: Reporter) -> None:
        self._queue = queue
        self._files = files
        self._reporter = reporter
        self._last = -1

    def check(self) -> None:
        """Judge all files; sets the number of units of each."""
        queue = self._queue
        for before, after in pairwise(queue.queue_files):
            if after.start != before.start + before.size_bytes:
                self._report(
                    "RMQDISK-35", after.path,
                    f"it begins at byte {after.start} of the queue, and the file before ends at"
                    f" {before.start + before.size_bytes}", 0,
                )  # fmt: skip
        for one in queue.queue_files:
            if one.size_bytes > FILE_SIZE_MAX_BYTES or one.size_bytes % UNIT_BYTES:
                words = f"its {one.size_bytes} bytes are no whole units of {UNIT_BYTES}"
                if one.size_bytes > FILE_SIZE_MAX_BYTES:
                    words = f"it has {one.size_bytes} bytes, more than 31 bits can address"
                    one.size_bytes = FILE_SIZE_MAX_BYTES
                place = one.size_bytes // UNIT_BYTES * UNIT_BYTES
                self._report("RMQDISK-35", one.path, words, place)
            try:
                one.units = self._file(one, one is queue.queue_files[-1])
            except OSError as error:
                self._reporter.at(one.path, shown_by=one.path).failed(error)
                queue.is_whole = False

    def _file(self, one: QueueFile, is_last: bool) -> int:
        """Return how many units stand before the zeros of one file."""
        count, ended = 0, False
        for first, units in pieces(one, self._files):
            is_valid = are_units(units)
            ended = not is_valid.all()
            stop = int(np.argmin(is_valid)) if ended else len(units)
            following = (
                units[stop : stop + 1] if ended else _unit(one.path, first + stop, self._files)
            )
            self._rises(one, first, units[:stop], following)
            count += stop
            if ended:
                break
        at = first_byte_of(self._files, one.path, count * UNIT_BYTES, one.size_bytes)
        if ended and at is not None and not _is_unit_now(one.path, count, self._files):
            self._report(
                "RMQDISK-35", one.path, "this is no unit, and no zeros behind the last one",
                at // UNIT_BYTES * UNIT_BYTES,
            )  # fmt: skip
        elif ended and at is None and not is_last:
            self._report(
                "RMQDISK-35", one.path, "the units end here, and a later file follows",
                count * UNIT_BYTES,
            )  # fmt: skip
        return count

    def _rises(self, one: QueueFile, first: int, units: Units, following: Units) -> None:
        offsets = units["commit_log_offset"].astype(np.int64)
        kept = np.flatnonzero(~are_stand_ins(units, following))
        offsets = offsets[kept]
        if not len(offsets):
            return
        before = shifted(offsets, self._last)
        self._last = int(offsets[-1])
        self._queue.furthest = max(self._queue.furthest, int(offsets.max()))
        self._reporter.at(one.path).add_where(
            "RMQDISK-36", offsets <= before, (kept + first) * UNIT_BYTES,
            "the unit leads to offset {offset}, and the one before to {before}", "above {before}",
            offsets, offset=offsets, before=before,
        )  # fmt: skip

    def _report(self, law: str, path: str, words: str, position: int) -> None:
        self._reporter.at(path).add(law, words, position=position)


def _is_unit_now(path: str, place: int, files: Files) -> bool:
    """Return whether a unit stands where none was a moment ago: a broker is writing it."""
    return bool(are_units(_unit(path, place, files)).all())


def _unit(path: str, place: int, files: Files) -> Units:
    """Return the unit at a place of a file; after the end of the file, a unit of zeros."""
    with closing(files.open(path)) as file:
        unit = file.pread(UNIT_BYTES, place * UNIT_BYTES).ljust(UNIT_BYTES, b"\0")
    return np.frombuffer(unit, UNITS)


def has_unit_now(queue: Queue, queue_offset: int, files: Files) -> bool:
    """Return whether a queue has a unit where none was when it was read. Raises: never."""
    names = ((named_offset(name), name) for name in names_of(queue.folder, files))
    place = queue_offset * UNIT_BYTES
    found = [(start, name) for start, name in names if start is not None and start <= place]
    if not found:
        return False
    start, name = max(found)
    path = posixpath.join(queue.folder, name)
    try:
        return _is_unit_now(path, (place - start) // UNIT_BYTES, files)
    except OSError:
        return False


def are_units(units: Units) -> NDArray[np.bool_]:
    """Return which of them count."""
    found: NDArray[np.bool_] = (units["commit_log_offset"] >= 0) & (units["size"] > 0)
    return found


def leads(units: Units) -> NDArray[np.bool_]:
    """Return which units lead to a message: all but those that fill the place before a queue."""
    are_leading: NDArray[np.bool_] = (units["size"] != FILLER_SIZE) | (
        units["commit_log_offset"] != 0
    )
    return are_leading


def are_stand_ins(units: Units, following: Units) -> NDArray[np.bool_]:
    """Return which units may stand for a lost message, or fill the place before a queue.

    They have a filler's size, or lead where the next unit leads; `following` is that of the last.
    """
    behind = np.concatenate([units[1:], following[:1]])
    is_alike = (units["commit_log_offset"] == behind["commit_log_offset"]) & (
        units["size"] == behind["size"]
    )
    found: NDArray[np.bool_] = is_alike | (units["size"] == FILLER_SIZE)
    return found


def pieces(one: QueueFile, files: Files) -> Iterator[tuple[int, Units]]:
    """Yield the number of the first unit and a piece of a file."""
    with closing(files.open(one.path)) as file:
        for first in range(0, one.size_bytes // UNIT_BYTES, PIECE_UNITS):
            data = file.pread(PIECE_UNITS * UNIT_BYTES, first * UNIT_BYTES)
            units: Units = np.frombuffer(data[: len(data) // UNIT_BYTES * UNIT_BYTES], UNITS)
            if not len(units):
                return
            yield first, units
