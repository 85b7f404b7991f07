# SPDX-License-Identifier: Apache-2.0
"""Consume queues made from the messages of a log, each message at its own number.

A consumer asks for numbers, so each message keeps its own. A lost message leaves a number without a
message. In its place stands a unit that a broker passes over without an answer: one of 2^31-1
bytes at the begin of the file of the log before that of the next message. Before a message of the
first file of the log there is no such file: there the unit leads to the next message, which a
consumer is then given more than once.

A number that falls, or rises by more than messages have room before it in the log, is not believed:
its message has no unit. So it is with what an earlier recovery has cut off. A message that says
another offset than that at which it lies has a unit only if its number is the next one: else it may
be of a block that a disk wrote to a wrong place.

Upstream: RocketMQ 4.7.0 to 5.5.1: ConsumeQueue, DefaultMessageStore.getMessage,
CommitLog.rollNextFile.
Laws: RMQCQ-1, RMQDISK-35 to RMQDISK-37.
Not covered: the delivery time of scheduled messages, but where the old queue has it; queues that
  other queues' messages are dispatched to.
"""

import os
import struct
from contextlib import closing
from typing import NamedTuple

from segproof.errors import TooLargeError
from segproof.files import Files
from segproof.integers import INT32_MAX
from segproof.rocketmq.commit_log import LAST_START, log_file_name
from segproof.rocketmq.consume_queue import CONSUME_QUEUE, UNIT_BYTES
from segproof.rocketmq.message import Message, dispatch_request_of

TRANSACTION_BITS = 12
MESSAGE_BYTES_MIN = 91
WAITING_UNITS = 1 << 18
"""So many units of all queues are kept before they are written."""
QUEUES_MAX = 1_000_000
NAME_BYTES_MAX = 255
EXTENSION_MIN = -(1 << 31) - 1
"""A tags code up to here leads to an extension file."""
LOST_TOLD = 10_000
"""So many stretches of lost numbers are told one by one; all of the numbers are counted."""
_UNIT = struct.Struct(">qiq")


class LostNumbers(NamedTuple):
    """Numbers of a queue, between those of two messages that were kept, whose messages are lost."""

    topic: str
    queue_id: int
    first_number: int
    last_number: int
    """Inclusive."""


class _Queue:
    __slots__ = ("folder", "following", "reached", "start", "units")

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


class ConsumeQueueCopy:
    """Takes the messages of a log in order; `close` writes what waits."""

    def __init__(
        self, old_store: str, store: str, file_size: int, log_file_size: int, files: Files
    ) -> None:
        self._old = os.path.join(old_store, CONSUME_QUEUE)
        self._new = os.path.join(store, CONSUME_QUEUE)
        self._file_size = file_size
        self._log_file_size = log_file_size
        self._files = files
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._waiting = 0
        self._paths: set[str] = set()
        self._log_start = 0
        self.stand_ins = 0
        """Units in place of lost messages."""
        self.lost: list[LostNumbers] = []
        """The first LOST_TOLD stretches of them, in the order of the log."""
        self.unqueued = 0
        """Messages without a unit."""

    def __len__(self) -> int:
        return len(self._queues)

    def begin(self, log_start: int) -> None:
        """Say at which offset the new log begins."""
        self._log_start = log_start

    def put(self, message: Message, offset: int) -> bool:
        """Take a message at its offset in the log; return whether its number fits.

        One that no queue is to have fits. Raises: TooLargeError; OSError.
        """
        if message.sys_flag & TRANSACTION_BITS not in (0, 8):
            return True
        number, key = message.queue_offset, (message.topic, message.queue_id)
        queue = self._queues.get(key)
        is_new = queue is None
        if queue is None:
            if not _is_name(message.topic) or not 0 <= message.queue_id <= INT32_MAX:
                self.unqueued += 1
                return False
            is_whole = self._log_start == 0 and 0 <= number <= offset // MESSAGE_BYTES_MIN
            folder = os.path.join(message.topic, str(message.queue_id))
            queue = _Queue(folder, 0 if is_whole else max(0, number))
        lost = number - queue.following
        possible = (offset - queue.reached) // MESSAGE_BYTES_MIN
        if message.physical_offset != offset:
            # The number of the first message of a queue that goes on says nothing.
            possible = -1 if is_new and queue.following else 0
        if not 0 <= lost <= possible or number * UNIT_BYTES > LAST_START:
            self.unqueued += 1
            return False
        if is_new:
            self._begin_queue(key, queue)
        unit = (offset, message.total_size, dispatch_request_of(message).tags_code)
        self.stand_ins += lost
        if lost and len(self.lost) < LOST_TOLD:
            self.lost.append(LostNumbers(*key, queue.following, number - 1))
        stand_in = self._stand_in(unit)
        for done in range(0, lost, WAITING_UNITS):
            self._add(queue, [stand_in] * min(WAITING_UNITS, lost - done))
        self._add(queue, [unit])
        queue.reached = offset
        return True

    def _begin_queue(self, key: tuple[str, int], queue: _Queue) -> None:
        if len(self._queues) >= QUEUES_MAX:
            raise TooLargeError(f"the log has messages of more than {QUEUES_MAX} queues")
        self._queues[key] = queue
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
            tags = self._old_tags(os.path.join(self._old, queue.folder), number, len(part))
            data = b"".join(
                _UNIT.pack(at, size, tags.get((number + place, at, size), code))
                for place, (at, size, code) in enumerate(part)
            )
            self._put(os.path.join(self._new, queue.folder), name, data, number - first)
            done += len(part)
        queue.start += len(queue.units)
        queue.units = []

    def _put(self, folder: str, name: str, data: bytes, place: int) -> None:
        path = os.path.join(folder, name)
        if path not in self._paths:
            self._files.make_directory(folder)
            self._paths.add(path)
        with closing(self._files.open(path, writable=True, create=True)) as file:
            if file.size() < self._file_size:
                file.truncate(self._file_size)
            file.pwrite(data, place * UNIT_BYTES)

    def _old_tags(self, folder: str, number: int, count: int) -> dict[tuple[int, int, int], int]:
        """Return the tags codes that old units have, by number, offset and size.

        A broker may have put another one there than the hash of the tags. Unreadable files tell
        nothing.
        """
        position = number * UNIT_BYTES
        path = os.path.join(folder, log_file_name(position - position % self._file_size))
        try:
            with closing(self._files.open(path)) as file:
                data = file.pread(count * UNIT_BYTES, position % self._file_size)
        except OSError:
            return {}
        whole = data[: len(data) - len(data) % UNIT_BYTES]
        found = enumerate(_UNIT.iter_unpack(whole), number)
        return {
            (place, at, size): code for place, (at, size, code) in found if code > EXTENSION_MIN
        }

    def close(self) -> None:
        """Write what waits; make all files durable. Raises: OSError."""
        self._write_all()
        for path in sorted(self._paths):
            with closing(self._files.open(path, writable=True)) as file:
                file.sync()
            self._files.sync_directory(os.path.dirname(path))


def _is_name(topic: str) -> bool:
    """Return whether a topic can be the name of a folder."""
    is_plain = topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic
    return is_plain and len(topic.encode("utf-8", "replace")) <= NAME_BYTES_MAX
