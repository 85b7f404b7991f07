# SPDX-License-Identifier: Apache-2.0
"""All records of a RocketMQ commit log in blocks: what an index is made of, read once.

Upstream: RocketMQ 5.5.1: CommitLog.checkMessageAndReturnSize, IndexService.buildIndex.
Laws: RMQLOG-1 to RMQLOG-6, RMQSVC-13 to RMQSVC-15.
"""

import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, ReadOnlyFile, data_end
from segproof.kernels import rocketmq_records as kernels
from segproof.layouts.rocketmq import MESSAGE
from segproof.rocketmq.commit_log import CommitLog, LogFile, LogFileRecords
from segproof.rocketmq.message import (
    CRC_MASK,
    FAILED,
    CheckResult,
    DispatchRequest,
    Message,
    check_message_and_return_size,
    decode_text,
    dispatch_request_of,
)

CHUNK_BYTES = 4 << 20
ROWS = 8192
SMALL_BODY_BYTES = 4096
UNITS_OF_A_MESSAGE = 10
"""So many units of a kernel's work is it to read a message, and as many to hash its keys."""
USUAL_MESSAGE_BYTES = 1024
_HEAD = MESSAGE.dtype_within(MESSAGE["born_timestamp"].end)
_NAMES = b"KEYSUNIQ_KEYTAGS"
PLACE, SIZE, SAID, TIME, FLAGS, BODY_AT, BODY_BYTES, BODY_CRC, TOPIC_AT, TOPIC_BYTES = range(10)
KEYS_BYTES = 11
"""Columns of `MessageBlock.rows`, as `kernels.MESSAGE_ROW` tells them."""
_TEXTS = ((8, 9), (10, 11), (12, 13), (14, 15))
"""Columns of position and length: topic, keys, unique key, tags."""

Int64Array = NDArray[np.int64]


def numbers_at(data: bytes, positions: Int64Array, kind: str) -> Int64Array:
    """Return the number of a numpy type that begins at each position of some bytes."""
    count = max(0, len(data) - np.dtype(kind).itemsize + 1)
    found: Int64Array = np.ndarray((count,), kind, data, 0, (1,))[positions].astype(np.int64)
    return found


class Entries(NamedTuple):
    """What the index gets of some messages, one row for each entry, in order."""

    hashes: Int64Array
    phy_offsets: Int64Array
    store_timestamps: Int64Array
    messages: Int64Array
    """The number in the block of the message of each; they never fall."""

    @property
    def last_message(self) -> int:
        """The number in the block of the last message that has an entry; -1 for none."""
        return int(self.messages[-1]) if len(self.messages) else -1


class MessageBlock(NamedTuple):
    """Some intact messages that follow each other in one file."""

    data: bytes
    rows: Int64Array
    """A row of MESSAGE_ROW columns for each."""
    offset: int = 0
    """The offset in the log of the first byte of `data`."""

    @property
    def lies_at(self) -> Int64Array:
        """Where each message lies in the log."""
        return self.positions + self.offset

    @property
    def ends_at(self) -> Int64Array:
        """The offset in the log behind each message, by where it lies."""
        return self.lies_at + self.sizes

    @property
    def positions(self) -> Int64Array:
        """Where each message begins in `data`."""
        return self.rows[:, PLACE]

    @property
    def span(self) -> tuple[int, int]:
        """Where the messages begin and end in `data`."""
        return int(self.rows[0, PLACE]), int(self.rows[-1, PLACE] + self.rows[-1, SIZE])

    @property
    def sizes(self) -> Int64Array:
        """How many bytes each message has."""
        return self.rows[:, SIZE]

    @property
    def flags(self) -> Int64Array:
        """The `sys_flag` of each message."""
        return self.rows[:, FLAGS]

    @property
    def phy_offsets(self) -> Int64Array:
        """Where each message says that it lies in the log."""
        return self.rows[:, SAID]

    def at_own_offsets(self) -> "MessageBlock":
        """Return those of the messages that say the offset at which they lie."""
        return self._replace(rows=self.rows[self.phy_offsets == self.lies_at])

    @property
    def lacks_body(self) -> NDArray[np.bool_]:
        """Whether each message has no body, and the checksum of one."""
        lacks: NDArray[np.bool_] = (self.rows[:, BODY_BYTES] == 0) & (self.rows[:, BODY_CRC] != 0)
        return lacks

    @property
    def store_timestamps(self) -> Int64Array:
        """When each message was stored."""
        return self.rows[:, TIME]

    def born_timestamps(self, numbers: Int64Array) -> Int64Array:
        """Return when some of the messages were made, by the clocks of their producers."""
        return self._field("born_timestamp", numbers)

    def numbers(self) -> tuple[Int64Array, Int64Array]:
        """Return for each message the number of its queue, and its own number in that."""
        return self._field("queue_id"), self._field("queue_offset")

    def _field(self, name: str, numbers: Any = slice(None)) -> Int64Array:
        """Return a field of some messages; only fields up to the born timestamp are known."""
        count = max(0, len(self.data) - _HEAD.itemsize + 1)
        heads: NDArray[Any] = np.ndarray((count,), _HEAD, self.data, 0, (1,))
        found: Int64Array = heads[name][self.rows[numbers, PLACE]].astype(np.int64)
        return found

    def message(self, number: int) -> Message:
        """Return one of the messages."""
        position = int(self.rows[number, PLACE])
        message = check_message_and_return_size(self.data, position, False).message
        assert message is not None
        return message

    def requests(self) -> Iterator[DispatchRequest]:
        """Yield what the index is told of each message."""
        for number in range(len(self.rows)):
            request = dispatch_request_of(self.message(number))
            yield request._replace(store_timestamp=int(self.store_timestamps[number]))

    def entries(self, index_tags: bool) -> Entries:
        """Return what the index gets of the messages."""
        hashes, messages = _hashes(self.data, self.rows, index_tags)
        for message in np.unique(messages[hashes < 0]).tolist():
            hashes[messages == message] = _hashes_of_decoded(
                self.data, self.rows[message], index_tags
            )
        return Entries(hashes, self.rows[messages, SAID], self.rows[messages, TIME], messages)


class BlankEnd(NamedTuple):
    """Where the records of a file end, by a blank end."""

    log_file: LogFile
    position: int
    """In the file."""


def _hashes(data: bytes, rows: Int64Array, index_tags: bool) -> tuple[Int64Array, Int64Array]:
    room = 2 * len(rows) + int(np.maximum(rows[:, KEYS_BYTES] + 1, 0).sum()) // 2 + len(rows)
    hashes, messages = np.empty(room, np.int64), np.empty(room, np.int64)
    flat = np.ascontiguousarray(rows).reshape(-1)
    kernels.hash_keys.announce(len(rows) * UNITS_OF_A_MESSAGE)
    count = kernels.hash_keys(data, flat.data, int(index_tags), hashes.data, messages.data)
    return hashes[:count], messages[:count]


def _hashes_of_decoded(data: bytes, row: Int64Array, index_tags: bool) -> Int64Array:
    """Return the hashes of a message with bytes that are not UTF-8, as a JVM decodes them.

    Separators are ASCII, which no decoding swallows: so the keys are as many as in the bytes.
    """
    decoded = row.copy()
    parts: list[bytes] = []
    at = 0
    for position, length in _TEXTS:
        if row[length] > 0:
            part = decode_text(data[int(row[position]) : int(row[position] + row[length])]).encode()
            decoded[position], decoded[length] = at, len(part)
            parts.append(part)
            at += len(part)
    return _hashes(b"".join(parts), decoded.reshape(1, -1), index_tags)[0]


def _announce(log_bytes: int) -> None:
    """Say how many bytes will be read: what pays to be compiled is compiled now."""
    for kernel in (kernels.walk_messages, kernels.hash_keys):
        kernel.announce(log_bytes // USUAL_MESSAGE_BYTES * UNITS_OF_A_MESSAGE)


class LogReader:
    """Reads a commit log once; iterate `blocks`, then what ended it is known."""

    def __init__(self, log: CommitLog, files: Files) -> None:
        self._log = log
        self._files = files
        self.end_offset = max(log.min_offset, 0)
        """Offset of the log behind what was read."""
        self.end_result: CheckResult | None = None
        """The failure that ended it; None at the blank end of the last file."""
        self.blank_ends: list[BlankEnd] = []
        """Those that `blocks` has passed."""
        self._rows = np.empty((ROWS, kernels.MESSAGE_ROW), np.int64)

    def blocks(self) -> Iterator[MessageBlock]:
        """Yield the messages up to the first failure. Raises: TooLargeError; OSError.

        Memory: 4 MiB, or one message. A block holds until the next one is asked for.
        """
        for log_file in self._log.log_files:
            self.end_offset = log_file.start
            with closing(self._files.open(log_file.path)) as file:
                _announce(data_end(file))
                yield from self.blocks_of(file, log_file)
            if self.end_result is not None:
                return
            self.blank_ends.append(BlankEnd(log_file, self.end_offset - log_file.start))

    def blocks_of(
        self,
        file: ReadOnlyFile,
        log_file: LogFile,
        position: int = 0,
        first_bytes: int | None = None,
    ) -> Iterator[MessageBlock]:
        """Yield the messages of one file from a position on, up to its blank end or a failure.

        `first_bytes` are read first, and each time twice as much: few where a failure may be near.
        Raises: as `blocks`.
        """
        self.end_offset, self.end_result = log_file.start + position, None
        size = first_bytes or CHUNK_BYTES
        while True:
            data = file.pread(max(0, min(size, log_file.size_bytes - position)), position)
            size = min(CHUNK_BYTES, 2 * size)
            done = 0
            how = kernels.WALK_FULL
            while how == kernels.WALK_FULL:
                count, stop, how = kernels.walk_messages(
                    data, done, len(data), _NAMES, self._rows.reshape(-1).data
                )
                kernels.walk_messages.announce(count * UNITS_OF_A_MESSAGE)
                intact = self._intact(data, count)
                self.end_offset = log_file.start + position + (stop if intact == count else 0)
                if intact:
                    yield MessageBlock(data, self._rows[:intact], log_file.start + position)
                if intact < count:
                    self.end_offset += int(self._rows[intact, PLACE])
                    self.end_result = FAILED
                    return
                done = stop
            if how == kernels.WALK_BLANK:
                return
            position += done
            if done == 0:
                # No whole sound record here: a long one, a blank end, or a failure.
                records = LogFileRecords(file, log_file, min(size, CHUNK_BYTES))
                result = records.check(position, check_crc=True)
                if not result.success:
                    self.end_result = result
                if not result.success or result.size == 0:
                    return
                size = max(size, result.size)
                assert size > len(data), "a sound record was not read"

    def _intact(self, data: bytes, count: int) -> int:
        """Return how many of the first rows have bodies with the right checksum."""
        starts, lengths, stored = self._rows[:count, BODY_AT : BODY_CRC + 1].T
        # Cutting bytes out of bytes takes less than a view of them while they are few.
        is_small = count == 0 or int(lengths.max()) < SMALL_BODY_BYTES
        source, crc32 = data if is_small else memoryview(data), zlib.crc32
        places = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        found = np.array([crc32(source[start:end]) for start, end in places], np.int64)
        is_bad = ((found & CRC_MASK) != stored) & (lengths > 0)
        return int(is_bad.argmax()) if is_bad.any() else count
