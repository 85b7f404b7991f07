# SPDX-License-Identifier: Apache-2.0
"""Consume queues made from the messages of a log, each message at its own number.

A consumer asks for numbers, so each message keeps its own. A lost message leaves a number without a
message. In its place stands a unit that a broker passes over without an answer: one of 2^31-1
bytes at the begin of the file of the log before that of the next message. Before a message of the
first file of the log there is no such file: there the unit leads to the next message, which a
consumer is then given more than once.

A number that falls, or rises by more than messages have room before it in the log, is not believed:
its message has no unit. So it is with what an earlier recovery has cut off. No checksum covers
numbers, topics and queue ids. So a number that rises is believed if the old queue has the message
there, or if the next message goes on behind it; the last one if a gap has room for what is between.
Where two messages have one number, the old queue tells whose it is, else the first has it.

Upstream: RocketMQ 4.7.0 to 5.5.1: ConsumeQueue, DefaultMessageStore.getMessage,
CommitLog.rollNextFile.
Laws: RMQCQ-1, RMQDISK-35 to RMQDISK-37.
Not covered: the delivery time of scheduled messages, but where the old queue has it; queues that
  other queues' messages are dispatched to; queues of batches, which are copied or left out whole.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from typing import NamedTuple

import numpy as np

from segproof.errors import SegproofError, TooLargeError
from segproof.files import Files
from segproof.integers import INT32_MAX
from segproof.layouts.rocketmq import MESSAGE_BYTES_MIN, QUEUE_UNIT
from segproof.reading.batch_queues import batch_topics
from segproof.reading.folder_names import has_folder
from segproof.reading.queue_units import units_of_queue
from segproof.rebuilding.safe_places import make_directory
from segproof.rocketmq.commit_log import LAST_START, CommitLog, log_file_name
from segproof.rocketmq.consume_queue import (
    CONSUME_QUEUE,
    EXTENSION_MAX,
    MAPPED_FILE_BYTES,
    UNIT_BYTES,
    folders_in,
    read_units,
)
from segproof.rocketmq.message import (
    INNER_BATCH,
    SCHEDULE_TOPIC,
    Message,
    dispatch_request_of,
    has_queue_place,
)

WAITING_UNITS = 1 << 18
"""So many units of all queues are kept before they are written."""
QUEUES_MAX = 1_000_000
QUEUE_ID_MAX = 999_999_999
"""A folder with a longer name is no queue: a flipped bit makes such ids."""
NAME_BYTES_MAX = 255
QUEUE_FILES_ASKED = 1000
"""The lengths of this many old files of queues tell that of the new ones."""
BEGINS_TRIED = 32
"""Units that are tried to find where an old queue begins: a damaged sector holds 25 of them."""
LOST_TOLD = 10_000
"""Stretches of lost numbers that are listed, at most. All numbers are counted."""


class LostNumbers(NamedTuple):
    """Numbers of a queue, between those of two messages that were kept, whose messages are lost."""

    topic: str
    queue_id: int
    first_number: int
    last_number: int
    """Inclusive."""


class _Numbered(NamedTuple):
    """A message with a number."""

    number: int
    unit: tuple[int, int, int]
    gap_bytes: int
    """Bytes of all gaps in the log before it."""


class _Begin(NamedTuple):
    """The first unit of an old queue that leads to its message, at a place of the log or after."""

    number: int
    offset: int


class _Queue:
    __slots__ = (
        "doubted", "folder", "following", "gap_bytes", "is_begun", "reached", "start", "units",
        "unqueued_before",
    )  # fmt: skip

    def __init__(self, folder: str, first: int) -> None:
        self.folder = folder
        """Below the folder of all queues."""
        self.start = first
        """The number of the first unit that waits to be written."""
        self.following = first
        """The number of the next message."""
        self.units: list[tuple[int, int, int]] = []
        self.reached = 0
        """The offset in the log of the last message."""
        self.gap_bytes = 0
        """Bytes of all gaps in the log before that."""
        self.unqueued_before = 0
        """Messages of all queues without a unit, when the last one was taken."""
        self.is_begun = False
        """Whether it has a message."""
        self.doubted: _Numbered | None = None
        """The last message, where its number does not go on: the next one shows what it is."""


class ConsumeQueueCopy:
    """Takes the messages of a log in order; `close` writes what waits."""

    def __init__(self, old_log: CommitLog, store: str, file_size: int, files: Files) -> None:
        self._old_log = old_log
        self._old = os.path.join(old_log.store_path, CONSUME_QUEUE)
        self._new = os.path.join(store, CONSUME_QUEUE)
        self._file_size = file_size
        self._log_file_size = old_log.mapped_file_size
        self._files = files
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._old_begins: dict[tuple[str, int], _Begin | None] = {}
        self._waiting = 0
        self._paths: set[str] = set()
        self._folders: set[str] = set()
        """Directories whose names, or those in them, are to be made durable."""
        self._log_start = 0
        self._gap_bytes = 0
        self.stand_ins = 0
        """Units in place of lost messages."""
        self.lost: list[LostNumbers] = []
        """The first LOST_TOLD stretches of them, in the order of the log."""
        self.unqueued = 0
        """Messages without a unit."""
        self._of_batches: set[tuple[str, int]] = set()
        """Queues with a message that has several numbers."""
        self._without_queues = batch_topics(old_log.store_path, files).topics
        """Topics whose queues are queues of batches: no queue is made for them."""

    def __len__(self) -> int:
        return len(self._queues)

    def begin(self, log_start: int) -> None:
        """Say at which offset the new log begins."""
        self._log_start = log_start

    def lose(self, size_bytes: int) -> None:
        """Take the bytes of a gap in the log, before the message that follows."""
        self._gap_bytes += size_bytes

    def end_of(self, topic: str, queue_id: int, *, are_some_lost: bool) -> int | None:
        """Return the number that the next message of a queue gets; None if it is not known.

        It is 0 for a queue without a message if the old store has a folder for it. It is
        not known for a queue that neither store has, which may be of a topic that was deleted,
        unless messages are lost (`are_some_lost`); and for queues of batches.
        """
        is_left = topic in self._without_queues or (topic, queue_id) in self._of_batches
        if is_left or not _is_name(topic):
            return None
        queue = self._queues.get((topic, queue_id))
        if queue is not None:
            return queue.following
        was_there = has_folder(os.path.join(self._old, topic), str(queue_id), self._files)
        return 0 if was_there or are_some_lost else None

    def put(self, message: Message, offset: int) -> None:
        """Take a message at its offset in the log, whatever offset it says.

        Raises: TooLargeError; OSError.
        """
        if not has_queue_place(message.sys_flag) or message.topic in self._without_queues:
            return
        key = (message.topic, message.queue_id)
        if message.sys_flag & INNER_BATCH:
            self._of_batches.add(key)
        if not _is_name(message.topic) or not 0 <= message.queue_id <= QUEUE_ID_MAX:
            self.unqueued += 1
            return
        unit = (offset, message.total_size, dispatch_request_of(message).tags_code)
        one = _Numbered(message.queue_offset, unit, self._gap_bytes)
        queue = self._queues.get(key)
        if queue is not None and queue.doubted is not None:
            queue = self._resolve(key, queue, queue.doubted, one)
        if queue is None and self._is_before_old_begin(key, one):
            self.unqueued += 1
            return
        if queue is None:
            queue = self._new_queue(key, one)
        self._take(key, queue, one)

    def _resolve(
        self, key: tuple[str, int], queue: _Queue, doubted: _Numbered, one: _Numbered
    ) -> _Queue | None:
        """Judge a doubted number by that of the next message; return None for a queue that is gone.

        It is right if the next number lies behind it, and wrong if that fits before it. Of two
        messages with one number the first has it, unless the old queue has the second there.
        """
        is_taken = one.number == doubted.number and self._is_old_unit(queue, one)
        if one.number >= doubted.number and not is_taken:
            self._add_numbered(key, queue, doubted)
        elif one.number >= queue.following or not queue.is_begun:
            queue.doubted = None
            self._leave_out(key, queue)
        return self._queues.get(key)

    def _leave_out(self, key: tuple[str, int], queue: _Queue) -> None:
        """Count a message without a unit; forget its queue if that has no other one."""
        self.unqueued += 1
        if not queue.is_begun and queue.doubted is None:
            del self._queues[key]

    def _is_before_old_begin(self, key: tuple[str, int], one: _Numbered) -> bool:
        """Return whether the first messages of the old queue lie after this one in the log, and
        its number rules out theirs: it is of another store, or of a topic that was deleted."""
        offset = one.unit[0]
        if key not in self._old_begins:
            self._old_begins[key] = self._old_begin(key, one)
        begin = self._old_begins[key]
        if begin is None or begin.offset <= offset:
            return False
        return not 0 < begin.number - one.number <= (begin.offset - offset) // MESSAGE_BYTES_MIN

    def _old_begin(self, key: tuple[str, int], one: _Numbered) -> _Begin | None:
        """Return where the old queue begins after a message; None if that is its own, or not known:
        of BEGINS_TRIED units none leads to its message."""
        folder, offset = os.path.join(self._old, key[0], str(key[1])), one.unit[0]
        if (one.number, *one.unit[:2]) in self._old_tags(folder, one.number, 1):
            return None
        with suppress(OSError, SegproofError):
            found = islice(_units_behind(folder, offset, self._files), BEGINS_TRIED)
            for number, at, size in found:
                there = self._old_log.look_message(at)
                if there is not None and (number, at, size, *key) == (
                    there.queue_offset, there.physical_offset, there.total_size,
                    there.topic, there.queue_id,
                ):  # fmt: skip
                    return _Begin(number, at)
        return None

    def _new_queue(self, key: tuple[str, int], one: _Numbered) -> _Queue:
        if len(self._queues) >= QUEUES_MAX:
            raise TooLargeError(f"the log has messages of more than {QUEUES_MAX} queues")
        is_whole = self._log_start == 0 and 0 <= one.number <= one.unit[0] // MESSAGE_BYTES_MIN
        queue = _Queue(os.path.join(key[0], str(key[1])), 0 if is_whole else max(0, one.number))
        self._queues[key] = queue
        return queue

    def _take(self, key: tuple[str, int], queue: _Queue, one: _Numbered) -> None:
        lost = one.number - queue.following
        fits = 0 <= lost <= (one.unit[0] - queue.reached) // MESSAGE_BYTES_MIN
        if not fits or one.number * UNIT_BYTES > LAST_START:
            if lost >= 0 or not self._replace(queue, one):
                self._leave_out(key, queue)
            return
        is_first = not queue.is_begun and (lost or queue.following)
        if (lost or is_first) and not self._is_old_unit(queue, one):
            queue.doubted = one
        else:
            self._add_numbered(key, queue, one)

    def _is_old_unit(self, queue: _Queue, one: _Numbered) -> bool:
        """Return whether the old queue leads to a message at its number."""
        offset, size, _ = one.unit
        folder = os.path.join(self._old, queue.folder)
        return (one.number, offset, size) in self._old_tags(folder, one.number, 1)

    def _replace(self, queue: _Queue, one: _Numbered) -> bool:
        """Give a number that another message has taken to the one that the old queue has there."""
        place, units = one.number - queue.start, queue.units
        if not 0 <= place < len(units) or not self._is_old_unit(queue, one):
            return False
        is_shared = place + 1 < len(units) and units[place][0] == units[place + 1][0]
        if is_shared or units[place][1] == INT32_MAX:  # it stands in for a lost message
            return False
        units[place] = one.unit
        self.unqueued += 1
        return True

    def _add_numbered(self, key: tuple[str, int], queue: _Queue, one: _Numbered) -> None:
        queue.doubted = None
        if not queue.is_begun:
            self._begin_queue(queue)
        lost = one.number - queue.following
        self.stand_ins += lost
        if lost and len(self.lost) < LOST_TOLD:
            self.lost.append(LostNumbers(*key, queue.following, one.number - 1))
        stand_in = self._stand_in(one.unit)
        for done in range(0, lost, WAITING_UNITS):
            self._add(queue, [stand_in] * min(WAITING_UNITS, lost - done))
        self._add(queue, [one.unit])
        queue.reached, queue.gap_bytes = one.unit[0], one.gap_bytes
        queue.unqueued_before = self.unqueued

    def _judge_last(self) -> None:
        """Judge the numbers that no message follows.

        Gaps must have room for what lies between, or messages without a unit.
        """
        begun_last = sorted(self._queues.items(), key=lambda each: each[1].is_begun)
        for key, queue in begun_last:
            if (one := queue.doubted) is None:
                continue
            unqueued = self.unqueued - queue.unqueued_before
            lost = one.number - queue.following - unqueued
            if lost * MESSAGE_BYTES_MIN <= one.gap_bytes - queue.gap_bytes:
                self._add_numbered(key, queue, one)
                continue
            queue.doubted = None
            self._leave_out(key, queue)

    def _begin_queue(self, queue: _Queue) -> None:
        queue.is_begun = True
        units_of_file = self._file_size // UNIT_BYTES
        if before := queue.following % units_of_file:
            queue.start = queue.following = queue.following - before
            self._add(queue, [(0, INT32_MAX, 0)] * before)

    def _stand_in(self, following: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the unit of a lost message; `following` is that of the next one."""
        file_start = following[0] - following[0] % self._log_file_size
        if file_start - self._log_file_size < self._log_start:
            return following
        return file_start - self._log_file_size, INT32_MAX, 0

    def _add(self, queue: _Queue, units: "list[tuple[int, int, int]]") -> None:
        queue.units += units
        queue.following += len(units)
        self._waiting += len(units)
        if self._waiting >= WAITING_UNITS:
            self._write_all()

    def _write_all(self) -> None:
        for queue in self._queues.values():
            self._write(queue)
        self._waiting = 0

    def _write(self, queue: _Queue) -> None:
        units_of_file = self._file_size // UNIT_BYTES
        done = 0
        while done < len(queue.units):
            number = queue.start + done
            first = number - number % units_of_file
            part = queue.units[done : done + first + units_of_file - number]
            name = log_file_name(first * UNIT_BYTES)
            folder, tags = os.path.join(self._old, queue.folder), {}
            if os.path.dirname(queue.folder) == SCHEDULE_TOPIC:
                tags = self._old_tags(folder, number, len(part))
            data = QUEUE_UNIT.pack_all(
                (at, size, tags.get((number + place, at, size), code))
                for place, (at, size, code) in enumerate(part)
            )
            self._put(os.path.join(self._new, queue.folder), name, data, number - first)
            done += len(part)
        queue.start += len(queue.units)
        queue.units = []

    def _put(self, folder: str, name: str, data: bytes, place: int) -> None:
        path = os.path.join(folder, name)
        if path not in self._paths:
            self._folders |= make_directory(folder, self._new, self._files)
            self._paths.add(path)
        with closing(self._files.open(path, writable=True, create=True)) as file:
            if file.size() < self._file_size:
                file.truncate(self._file_size)
            file.pwrite(data, place * UNIT_BYTES)

    def _old_tags(self, folder: str, number: int, count: int) -> dict[tuple[int, int, int], int]:
        """Return the tags codes that old units have, by number, offset and size.

        The unit of a delayed message has the time of its delivery. Unreadable files tell nothing.
        """
        position = number * UNIT_BYTES
        path = os.path.join(folder, log_file_name(position - position % self._file_size))
        try:
            with closing(self._files.open(path)) as file:
                data = file.pread(count * UNIT_BYTES, position % self._file_size)
        except OSError:
            return {}
        found = enumerate(read_units(data), number)
        return {
            (place, at, size): code for place, (at, size, code) in found if code > EXTENSION_MAX
        }

    def close(self) -> None:
        """Write what waits; make all files durable. Raises: OSError."""
        self._judge_last()
        self._write_all()
        for path in sorted(self._paths):
            with closing(self._files.open(path, writable=True)) as file:
                file.sync()
        for made in sorted(self._folders, reverse=True):
            self._files.sync_directory(made)


def _units_behind(folder: str, offset: int, files: Files) -> Iterator[tuple[int, int, int]]:
    """Yield number, offset and size of the units of a queue that lead behind an offset."""
    for numbers, units in units_of_queue(folder, files):
        for at in np.flatnonzero(units["commit_log_offset"] > offset).tolist():
            yield int(numbers[at]), int(units[at][0]), int(units[at][1])


def _is_name(topic: str) -> bool:
    """Return whether a topic can be the name of a folder."""
    is_plain = topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic
    return is_plain and len(topic.encode("utf-8", "replace")) <= NAME_BYTES_MAX


def queue_file_size(store: str, files: Files) -> int:
    """Return the length that most of the old files of queues have, else the usual one."""
    sizes: Counter[int] = Counter()
    with suppress(OSError):
        for topic in folders_in(os.path.join(store, CONSUME_QUEUE), files):
            for queue in folders_in(topic, files):
                for name in files.list_directory(queue):
                    status = files.status(os.path.join(queue, name))
                    if status is not None and status.is_regular:
                        sizes[status.size_bytes] += 1
                if sizes.total() >= QUEUE_FILES_ASKED:
                    break
    usable = {size: count for size, count in sizes.items() if 0 < size <= INT32_MAX}
    usable = {size: count for size, count in usable.items() if size % UNIT_BYTES == 0}
    return max(usable, key=lambda size: (usable[size], size), default=MAPPED_FILE_BYTES)
