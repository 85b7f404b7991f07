# SPDX-License-Identifier: Apache-2.0
"""The consume queues of a store: their units, in order, and against the commit log.

A broker that runs, or was killed, may not have entered the newest messages yet. It enters them in
the order of the log. So each message before one that a queue or the index knows must be entered.

Cost: one byte of memory for each unit that is there, where the log is at hand; names of LOST_MAX
  queues, and as many topics, that are in the log alone.
Laws: RMQDISK-35 to RMQDISK-37, RMQDISK-39.
Not covered: queues that other queues' messages are dispatched to (names with %LMQ%), whose units
  lead to messages of other topics; the extension files of queues; queues kept in RocksDB; a topic
  without any queue beside others, as one that was deleted, is only noted.
"""

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural, verb
from segproof.files import Files, first_byte_of, status_of
from segproof.findings import Severity
from segproof.hints import reads
from segproof.verifying.reporting import Described, Reporter, Wanted
from segproof.verifying.rocketmq.log_kinship import WRONG_TIMES, Kin, Kinship
from segproof.verifying.rocketmq.log_records import (
    BEFORE_LOG,
    BEFORE_LOG_HINT,
    EMPTY_FILE,
    LogBlock,
    LogRecords,
)
from segproof.verifying.rocketmq.lost_end import LedBeyond
from segproof.verifying.rocketmq.store_checks import (
    Inside,
    is_folder,
    look_inside,
    numbered_files,
    report_stray,
)
from segproof.verifying.rocketmq.tags_checks import check_tags_codes
from segproof.verifying.rows import Int64Array, shifted
from segproof.verifying.rules import DECLARED, REMAKE_STORE, declare
from segproof.verifying.segment_files import FILE_SIZE_MAX_BYTES

declare("index-service", Severity.ERROR,
    REMAKE_STORE, "RMQDISK-35", "RMQDISK-36", "RMQDISK-37")  # fmt: skip

UNIT_BYTES = 20
UNIT = np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
PIECE_UNITS = 1 << 18
NEAR_UNITS = 64
"""Units that lie no further apart are read together."""
FILLER_SIZE = (1 << 31) - 1
PLACES_MAX = 1000
"""Wrong units of one queue whose right record is kept, so that a finding can name it."""
LOST_MAX = 10_000
"""Queues without a folder, and topics without any queue, that are told apart; the messages of
further ones are counted together."""
NAME_MAX = 127
"""Characters of a topic that are shown."""
TRANSACTION_BITS = 12
SPOKEN_FOR_OTHERS = "%LMQ%"
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
    """Whether each of its files could be read."""
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
    _Walk(Queue("", 0, "", [QueueFile(int(name), path, size)]), files, reporter).check()


class _Walk:
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
        for first, units in _pieces(one, self._files):
            is_valid = _are_units(units)
            ended = not is_valid.all()
            stop = int(np.argmin(is_valid)) if ended else len(units)
            following = units[stop : stop + 1] if ended else self._unit(one, first + stop)
            self._rises(one, first, units[:stop], following)
            count += stop
            if ended:
                break
        at = first_byte_of(self._files, one.path, count * UNIT_BYTES, one.size_bytes)
        if ended and at is not None and not self._is_unit_now(one, count):
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

    def _is_unit_now(self, one: QueueFile, place: int) -> bool:
        """Return whether a unit stands where none was a moment ago: a broker is writing it."""
        return bool(_are_units(self._unit(one, place)).all())

    def _unit(self, one: QueueFile, place: int) -> Units:
        """Return the unit at a place; zeros behind the end of the file."""
        with closing(self._files.open(one.path)) as file:
            unit = file.pread(UNIT_BYTES, place * UNIT_BYTES).ljust(UNIT_BYTES, b"\0")
        return np.frombuffer(unit, UNIT)

    def _rises(self, one: QueueFile, first: int, units: Units, following: Units) -> None:
        offsets = units["offset"].astype(np.int64)
        kept = np.flatnonzero(~_are_stand_ins(units, following))
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


def _are_units(units: Units) -> NDArray[np.bool_]:
    """Return which of them count."""
    are_units: NDArray[np.bool_] = (units["offset"] >= 0) & (units["size"] > 0)
    return are_units


def _leads(units: Units) -> NDArray[np.bool_]:
    """Return which units lead to a message: all but those that fill the place before a queue."""
    are_leading: NDArray[np.bool_] = (units["size"] != FILLER_SIZE) | (units["offset"] != 0)
    return are_leading


def _are_stand_ins(units: Units, following: Units) -> NDArray[np.bool_]:
    """Return which units may stand for a lost message, or fill the place before a queue.

    They have a filler's size, or lead where the next unit leads; `following` is that of the last.
    """
    behind = np.concatenate([units[1:], following[:1]])
    is_alike = (units["offset"] == behind["offset"]) & (units["size"] == behind["size"])
    are_stand_ins: NDArray[np.bool_] = is_alike | (units["size"] == FILLER_SIZE)
    return are_stand_ins


def _pieces(one: QueueFile, files: Files) -> Iterator[tuple[int, Units]]:
    """Yield the number of the first unit and a piece of a file."""
    with closing(files.open(one.path)) as file:
        for first in range(0, one.size_bytes // UNIT_BYTES, PIECE_UNITS):
            data = file.pread(PIECE_UNITS * UNIT_BYTES, first * UNIT_BYTES)
            units: Units = np.frombuffer(data[: len(data) // UNIT_BYTES * UNIT_BYTES], UNIT)
            if not len(units):
                return
            yield first, units


class QueueChecks:
    """All queues of a store; takes the blocks of the log, if there is one."""

    def __init__(self, store: str, files: Files, reporter: Reporter, is_running: bool) -> None:
        self._folder = posixpath.join(store, "consumequeue")
        self._files = files
        self._reporter = reporter
        self._is_running = is_running
        self.is_whole = True
        """Whether each folder that should be there could be looked into."""
        self._has_queues = False
        self._listed: set[str] = set()
        """The folders of topics when the reading began."""
        self._queues: dict[tuple[str, int], Queue] = {}
        self._topics: dict[str, str] = {}
        """The folders of the topics that have a queue."""
        self.furthest = -1
        """The largest offset in the log that a unit of any queue leads to."""
        self._reached = -1
        """The same of queues and index."""
        self._records: LogRecords | None = None
        self._time = 0
        """The checkpoint's time for queues."""
        self._folderless = 0
        """Queues without a folder beside others of their topic."""
        self._lost: Counter[str] = Counter()
        """The messages of each topic that has no queue; those of too many under no name."""
        self._last_lost = -1
        """The offset of the last of them."""
        self._lengths: dict[str, int] = {}
        """Of each file of a queue."""
        self.kinship = Kinship()
        """How many units that lead into the log are right; known at the end."""
        self.beyond = LedBeyond()
        self.wrong_inside = 0
        """Units that lead into the log, and to no record of their place."""
        self._expired = 0
        """Units that lead to what lies before the log."""

    def check(self, with_log: bool) -> None:
        """Find all queues and judge them by themselves."""
        for topic in self._folders(self._folder):
            self._listed.add(topic.name)
            for one in self._folders(topic.path):
                if one.name.isascii() and one.name.isdigit() and len(one.name) <= 9:
                    self._queue(Queue(topic.name, int(one.name), one.path), topic.path, with_log)
                else:
                    words = "RocketMQ passes over a folder that is no number"
                    report_stray(one.path, self._reporter, words, Severity.WARNING)
        times = Counter(self._lengths.values())
        usual = max(times, key=lambda size: (times[size], size), default=0)
        for path, size in self._lengths.items():
            if not size:
                self._report_empty(path)
            elif size != usual:
                self._reporter.at(path).add(
                    "RMQDISK-35",
                    f"it has {size} bytes and the other files of queues have {usual}: RocketMQ"
                    " loads files of one length, and ends its start at another",
                    position=min(size, usual),
                    expected=usual,
                    actual=size,
                )

    def _report_empty(self, path: str) -> None:
        """Report a file of 0 bytes, unless a broker has given it its length meanwhile."""
        status = status_of(self._files, path)
        if status is not None and not status.size_bytes:
            self._reporter.at(path).add(
                "RMQDISK-35",
                f"it has 0 bytes: {EMPTY_FILE}",
                position=0,
                severity=Severity.WARNING,
                hint=REMAKE_STORE.after(
                    "nothing for 5.1.4 and later, if it is the last file of its queue and each"
                    " message has its unit (RMQDISK-37); else "
                ),
            )

    def _folders(self, path: str) -> list[Inside]:
        """Return the folders in a folder; report what else is there."""
        found = []
        for one in look_inside(path, self._files, self._reporter):
            if one.status is not None and one.status.is_regular:
                words = "RocketMQ passes over a file beside folders"
                report_stray(one.path, self._reporter, words, Severity.WARNING)
            elif is_folder(one, self._reporter):
                found.append(one)
            else:
                self.is_whole = False
        return found

    def _queue(self, queue: Queue, topic_folder: str, with_log: bool) -> None:
        self._walk(queue, self._reporter)
        self._has_queues = True
        self._lengths |= {one.path: one.size_bytes for one in queue.queue_files}
        self.furthest = max(self.furthest, queue.furthest)
        if not with_log or SPOKEN_FOR_OTHERS in queue.topic:
            return
        for one in queue.queue_files:
            one.seen = np.zeros(one.units, np.bool_)
        self._queues[queue.topic, queue.queue_id] = queue
        self._topics[queue.topic] = topic_folder

    def _walk(self, queue: Queue, reporter: Reporter) -> None:
        found, unread = numbered_files(queue.folder, self._files, reporter)
        queue.queue_files = [QueueFile(*one) for one in found]
        queue.is_whole = not unread
        _Walk(queue, self._files, reporter).check()
        queue.firsts = np.array([one.first for one in queue.queue_files], np.int64)
        queue.stops = np.array([one.stop for one in queue.queue_files], np.int64)

    def compare_with(self, records: LogRecords, time: int, reached: int) -> None:
        """Say what `add` and `finish` will compare the queues with.

        `time` is the checkpoint's for queues; `reached` the last offset that queues or index know.
        """
        self._records, self._time, self._reached = records, time, reached

    def add(self, block: LogBlock) -> None:
        """Compare the records of a block with their units."""
        places: dict[tuple[str, int], list[int]] = defaultdict(list)
        for place, request in enumerate(block.requests):
            if request.sys_flag & TRANSACTION_BITS in (0, 8):
                places[request.topic or "", block.queue_ids[place]].append(place)
        for key, rows in places.items():
            queue = self._queues.get(key)
            if queue is None and key[0] in self._topics and self._folderless < LOST_MAX:
                folder = posixpath.join(self._topics[key[0]], str(key[1]))
                queue = self._queues[key] = Queue(*key, folder)
                self._folderless += 1
            if queue is not None:
                self._compare(queue, block, rows)
            elif SPOKEN_FOR_OTHERS not in key[0]:
                self._lose(key[0], [block.offsets[row] for row in rows])

    def _lose(self, topic: str, offsets: list[int]) -> None:
        """Count records without a queue; for the newest ones a broker that runs may make it yet."""
        lost = [one for one in offsets if one < self._reached or not self._is_running]
        if lost:
            is_named = topic in self._lost or len(self._lost) < LOST_MAX
            self._lost[topic if is_named else ""] += len(lost)
            self._last_lost = lost[-1]

    def _compare(self, queue: Queue, block: LogBlock, rows: list[int]) -> None:
        wanted = np.array([block.requests[row].consume_queue_offset for row in rows], np.int64)
        offsets = np.array([block.offsets[row] for row in rows], np.int64)
        sizes = np.array([block.requests[row].msg_size for row in rows], np.int64)
        self._lacking(queue, wanted, offsets)
        requests = [block.requests[row] for row in rows]
        order = np.argsort(wanted, kind="stable")
        wanted, offsets, sizes = wanted[order], offsets[order], sizes[order]
        lows, highs = np.searchsorted(wanted, queue.firsts), np.searchsorted(wanted, queue.stops)
        for at in np.flatnonzero(lows < highs).tolist():
            one, inside = queue.queue_files[at], slice(lows[at], highs[at])
            places = wanted[inside] - one.first
            units = self._read(one, places)
            is_right = (units["offset"] == offsets[inside]) & (units["size"] == sizes[inside])
            one.seen[places[is_right]] = True
            own = order[inside][is_right]
            check_tags_codes(
                one.path, one.first, places[is_right], units["tags_code"][is_right],
                [requests[row] for row in own], self._reporter,
            )  # fmt: skip
            for row in np.flatnonzero(~is_right)[: PLACES_MAX - len(queue.elsewhere)].tolist():
                record = int(offsets[inside][row]), int(sizes[inside][row])
                queue.elsewhere[int(wanted[inside][row])] = record

    def _lacking(self, queue: Queue, wanted: Int64Array, offsets: Int64Array) -> None:
        """Count the records that lie outside the queue."""
        is_before = wanted < queue.first
        behind = np.flatnonzero(wanted >= queue.stop)
        queue.lacking += int(np.count_nonzero(is_before)) + len(behind)
        if len(behind) and queue.lacks is None:
            queue.lacks = int(wanted[behind[0]]), int(offsets[behind[0]])
        if is_before.any():
            queue.lacks_before = int(offsets[is_before].max())

    def _read(self, one: QueueFile, places: Int64Array) -> Units:
        """Return units of a file by their places, which rise; zeros where it was cut meanwhile."""
        found = np.zeros(len(places), UNIT)
        with closing(self._files.open(one.path)) as file:
            done = 0
            for near in np.split(places, np.flatnonzero(np.diff(places) > NEAR_UNITS) + 1):
                first, count = int(near[0]), int(near[-1] - near[0]) + 1
                data = file.pread(count * UNIT_BYTES, first * UNIT_BYTES)
                data = data.ljust(count * UNIT_BYTES, b"\0")
                found[done : done + len(near)] = np.frombuffer(data, UNIT)[near - first]
                done += len(near)
        return found

    def finish(self) -> None:
        """Report units that no record has accounted for, and records without a unit."""
        records = self._records
        assert records is not None
        self.kinship = self._compared(records)
        if self.kinship.kin is Kin.OTHER:
            return
        if self.is_whole:
            self._report_lost(records, self._time)
        for queue in self._queues.values():
            if queue.is_whole and queue.lacking:
                self._report_lacking(queue, records)
            for one in queue.queue_files:
                for first in range(0, one.units, PIECE_UNITS):
                    part = one.seen[first : first + PIECE_UNITS]
                    self._unseen(queue, one, np.flatnonzero(~part) + first, records)
        if self._expired:
            self._reporter.at(self._folder).add(
                "RMQDISK-37",
                f"{plural(self._expired, 'unit', 'leads', 'lead')} to messages before the first one"
                f" of the commit log, {BEFORE_LOG}",
                actual=self._expired,
                severity=Severity.NOTE,
                hint=reads(f"nothing where log files expire: a file of a queue {BEFORE_LOG_HINT}"),
            )

    def _compared(self, records: LogRecords) -> Kinship:
        """Return how many units that lead into the log are right."""
        found = Kinship()
        files = [(queue, one) for queue in self._queues.values() for one in queue.queue_files]
        found.right = sum(int(np.count_nonzero(one.seen)) for _, one in files)
        if sum(one.units for _, one in files) <= (WRONG_TIMES + 1) * found.right:
            return found
        for queue, one in files:
            for first in range(0, one.units, PIECE_UNITS):
                places = np.flatnonzero(~one.seen[first : first + PIECE_UNITS]) + first
                if len(places):
                    units = self._read(one, places)
                    wrong = self._wrong(queue, one, places, units, records)
                    is_beyond = wrong & (units["offset"] >= records.end)
                    found.inside += int(np.count_nonzero(wrong & ~is_beyond))
                    found.beyond += int(np.count_nonzero(is_beyond))
        return found

    def _report_lost(self, records: LogRecords, time: int) -> None:
        """Report records whose topics have no queue, or that the store has no queue at all."""
        if self._is_running and self._listed:  # some may have been made meanwhile
            for topic in set(self._files.list_directory(self._folder)) - self._listed:
                self._lost.pop(topic, None)
        is_there = bool(self._lost) and self._last_lost >= records.first_now()
        which = "these topics were" if self._has_queues else "every topic was"
        hint = DECLARED["RMQDISK-37"].hint.after(
            f"nothing if {which} deleted: a broker removes the queues, and the messages go with"
            " the files of the log; else "
        )
        if not self._has_queues and (time > 0 or is_there):
            are = plural(self._lost.total(), "message", "is", "are")
            words = f"{are} in the commit log, and no queue is here"
            if time > 0:
                words = f"the checkpoint calls queues durable up to {time}, and there are none"
            self._reporter.at(self._folder).add(
                "RMQDISK-37",
                f"{words}: no message of the log can be consumed until they are made new",
                actual=time,
                severity=Severity.WARNING,
                hint=hint,
            )
        elif is_there:
            names = ", ".join(one[:NAME_MAX] for one in sorted(self._lost)[:3] if one)
            self._reporter.at(self._folder).add(
                "RMQDISK-37",
                f"{plural(self._lost.total(), 'message', 'is', 'are')} in the commit log, and no"
                f" queue of their topics is here; these are {len(self._lost)}, such as {names}",
                actual=self._lost.total(),
                severity=Severity.NOTE,
                hint=hint,
            )

    def _report_lacking(self, queue: Queue, records: LogRecords) -> None:
        """Report records without a unit, but for those that expired while the log was read."""
        if queue.lacks is None and queue.lacks_before < records.first_now():
            return
        is_late = self._is_running and queue.lacks_before < records.first_now()
        if is_late and queue.lacks is not None and queue.lacks[1] < self._reached:
            again = Queue(queue.topic, queue.queue_id, queue.folder)
            self._walk(again, Reporter(Wanted()))
            is_late = again.stop > queue.lacks[0]
        path = queue.queue_files[-1].path if queue.queue_files else queue.folder
        are, have = verb(queue.lacking, "is", "are"), verb(queue.lacking, "has", "have")
        self._reporter.at(path).add(
            "RMQDISK-37",
            f"{plural(queue.lacking, 'message')} of this queue {are} in the commit log, and {have}"
            " no unit here" + (": the broker makes them when it runs" if is_late else ""),
            actual=queue.lacking,
            severity=Severity.NOTE if is_late else Severity.WARNING,
        )

    def _are_lost(
        self, queue: Queue, one: QueueFile, places: Int64Array, units: Units
    ) -> NDArray[np.bool_]:
        """Return which units stand for a message that the log does not have."""
        if len(queue.elsewhere) >= PLACES_MAX:  # no more places are known
            return np.zeros(len(places), np.bool_)
        behind = self._read(one, np.minimum(places + 1, one.units - 1))
        is_alike = (units["offset"] == behind["offset"]) & (units["size"] == behind["size"])
        is_alike &= places + 1 < one.units
        has_record = np.isin(places + one.first, list(queue.elsewhere))
        are_lost: NDArray[np.bool_] = (is_alike | (units["size"] == FILLER_SIZE)) & ~has_record
        return are_lost

    def _wrong(
        self, queue: Queue, one: QueueFile, places: Int64Array, units: Units, records: LogRecords
    ) -> NDArray[np.bool_]:
        """Return which units lead into the log, and to no record of their place."""
        offsets = units["offset"].astype(np.int64)
        are_wrong: NDArray[np.bool_] = _leads(units) & ~self._are_lost(queue, one, places, units)
        are_wrong &= (offsets >= records.log.min_offset) & ~records.is_dark(offsets)
        return are_wrong

    def _unseen(
        self, queue: Queue, one: QueueFile, places: Int64Array, records: LogRecords
    ) -> None:
        """Report units that lead to no record of their place, as far as the log can tell."""
        if not len(places):
            return
        units = self._read(one, places)
        offsets = units["offset"].astype(np.int64)
        self._expired += int(np.count_nonzero(_leads(units) & (offsets < records.log.min_offset)))
        wrong = np.flatnonzero(self._wrong(queue, one, places, units, records))
        self.beyond.add(offsets[wrong][offsets[wrong] >= records.end])
        self.wrong_inside += int(np.count_nonzero(offsets[wrong] < records.end))

        def describe(row: int) -> Described:
            number, offset = one.first + int(places[wrong[row]]), int(offsets[wrong[row]])
            wanted = queue.elsewhere.get(number)
            record = "no record of this queue is there"
            if wanted is not None:
                record = f"the record of this place lies at {wanted[0]} and has {wanted[1]} bytes"
            return Described(
                f"the unit {number} leads to {int(units['size'][wrong[row]])} bytes at offset"
                f" {offset}, and {record}",
                None if wanted is None else wanted[0],
                offset,
            )

        self._reporter.at(one.path).add_rows("RMQDISK-37", places[wrong] * UNIT_BYTES, describe)
