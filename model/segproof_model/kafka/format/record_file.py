# SPDX-License-Identifier: Apache-2.0
"""The record file: batches back to back, the logical end, slices, and searches by scanning.

Upstream: Kafka 4.4.0, FileRecords, FileLogInputStream. Otherwise: record_file_releases,
    record_deviations.
Layout: batches back to back (record_batch); behind the logical end a preallocated tail.
Laws: SCAN-1 to SCAN-8, SCAN-10 to SCAN-20.
Not covered: changing the file through a slice; sending to a socket; files of 2 GiB and more.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.legacy_record import LOG_OVERHEAD, MIN_MESSAGE_BYTES
from segproof_model.kafka.format.memory_records import AbstractRecords
from segproof_model.kafka.format.record_batch import BATCH_HEADER_BYTES, RecordBatch, Time
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, int32_at, wrap32
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

NO_TIMESTAMP = -1
NO_OFFSET = -1


class LogOffsetPosition(NamedTuple):
    """Where a batch was found."""

    offset: int
    """Its base offset."""
    position: int
    size_bytes: int


class TimestampAndOffset(NamedTuple):
    """A timestamp, the offset of the record or batch that has it, and its leader epoch if any."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class RecordRange(AbstractRecords):
    """Records in a range of a file: how they are read.

    Kafka's FileRecords is both classes below: a file, and a slice.
    """

    start: int
    """Where the range begins in the file; 0 for the file itself."""
    size: int
    """Logical size in bytes; the file may be longer."""
    image: bytes
    """The exact bytes of the file, a preallocated tail included; none if it is gone."""
    is_open: bool
    eof_kind: ClassVar = ErrorKind.CORRUPT_RECORD
    """The error of a file that is shorter than believed (SCAN-7)."""

    @property
    def end(self) -> int:
        """Where the range ends logically, in bytes from the file's beginning; exclusive."""
        return wrap32(self.start + self.size)

    def size_in_bytes(self) -> int:
        """Return the logical size in bytes."""
        return self.size

    def read(self) -> bytes:
        """Return the bytes from the start to the logical end (SCAN-20)."""
        return self.image[self.start : self.end]

    def slice(self, position: int, size: int) -> "FileSlice":
        """Return `size` bytes from `position` on, or what there is (SCAN-14, SCAN-16).

        `position` counts from this file's or slice's own start.
        """
        if position < 0 or size < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.check_slice(position)
        start = wrap32(self.start + position)
        end = wrap32(start + size)
        if end < 0 or end > self.end:
            end = self.end
        size = wrap32(end - start)
        return self.kind(FileSlice)(self.image, start, size, self.is_open, self.codecs)

    def check_slice(self, position: int) -> None:
        """Refuse a slice that begins beyond the end."""
        if position > self.size:
            refuse(ErrorKind.INVALID_ARGUMENT)

    # --- scanning ------------------------------------------------------------------------------

    def batches(self, start: int | None = None) -> Iterator[RecordBatch]:
        """Yield each batch from `start` on, a position in the file (SCAN-1 to -8).

        Without `start`: from the beginning of this file or slice.
        """
        position, end, image = self.start if start is None else start, self.end, self.image
        while (batch := self.next_batch(position, end, image)) is not None:
            yield batch
            position += batch.size_bytes

    def next_batch(self, position: int, end: int, image: bytes) -> RecordBatch | None:
        """Return the batch at `position`, or None if the range ends before it does (SCAN-1)."""
        if position >= end - self.head_bytes:
            return None
        size = self.size_at(position, image)
        if position > end - LOG_OVERHEAD - size:
            return None
        return self.batch_at(position, LOG_OVERHEAD + size, image)

    def size_at(self, position: int, image: bytes) -> int:
        """Return the size field of the batch at `position`."""
        if position < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if not self.is_open:
            refuse(ErrorKind.KAFKA_ERROR)
        if position + self.head_bytes > len(image):
            refuse(self.eof_kind)
        size = int32_at(image, position + 8)
        return size if size >= MIN_MESSAGE_BYTES else refuse(ErrorKind.CORRUPT_RECORD)

    def batch_at(self, position: int, size_bytes: int, image: bytes) -> RecordBatch:
        """Return the batch at `position`, whatever its magic."""
        readable = image[position : position + max(size_bytes, BATCH_HEADER_BYTES)]
        return self.batch_of(readable, position, size_bytes, in_file=True)

    # --- searching -----------------------------------------------------------------------------

    def search_for_offset_with_size(
        self, target_offset: int, starting_position: int = 0
    ) -> LogOffsetPosition | None:
        """Return where a reader of the target begins, or None (SCAN-17).

        At the batch that begins at the target; else at the batch before the first that begins
        beyond it, if that reaches the target; else at that first one. Behind all: at the last
        batch, if it reaches. Where batches rise: at the first whose last offset is not below the
        target.
        """
        previous: RecordBatch | None = None
        for batch in self.batches(starting_position):
            base_offset = batch.base_offset
            if base_offset == target_offset:
                return self.place_of(batch)
            if base_offset > target_offset:
                reaches_target = previous is not None and previous.last_offset >= target_offset
                return self.place_of(previous if previous and reaches_target else batch)
            previous = batch
        if previous is None or previous.last_offset < target_offset:
            return None
        return self.place_of(previous)

    def place_of(self, batch: RecordBatch) -> LogOffsetPosition:
        """Return where a batch is, by its base offset."""
        return LogOffsetPosition(batch.base_offset, batch.position, batch.size_bytes)

    def search_for_timestamp(
        self, target_timestamp: int, starting_position: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record at or after both the timestamp and the offset (SCAN-18).

        Batches whose largest timestamp is below the target are not read.
        """
        for batch in self.batches(starting_position):
            if batch.max_timestamp < target_timestamp:
                continue
            for timestamp, offset in self.times_of(batch):
                if timestamp >= target_timestamp and offset >= starting_offset:
                    return self.found(timestamp, offset, batch)
        return None

    def times_of(self, batch: RecordBatch) -> Iterator[Time]:
        """Return the times that a search looks at: it reads only up to its answer."""
        return batch.streamed_times()

    def largest_timestamp_after(self, starting_position: int) -> TimestampAndOffset:
        """Return the largest batch timestamp with that batch's last offset (SCAN-19).

        The earliest batch wins a tie; without batches the answer is (-1, -1).
        """
        largest = TimestampAndOffset(NO_TIMESTAMP, NO_OFFSET, None)
        for batch in self.batches(starting_position):
            max_timestamp, last_offset = batch.max_timestamp, batch.last_offset
            if max_timestamp > largest.timestamp:
                largest = self.found(max_timestamp, last_offset, batch)
        return largest

    def found(self, timestamp: int, offset: int, batch: RecordBatch) -> TimestampAndOffset:
        """Return the answer of a search by time, with the epoch of the batch."""
        epoch = batch.partition_leader_epoch
        return TimestampAndOffset(timestamp, offset, None if epoch == -1 else epoch)


@dataclass
class FileSlice(RecordRange):
    """A range of a file, with the bytes that the file had: a value.

    A slice of Kafka's reads through the channel of its file: it sees later writes, truncations and
    a close. This one does not.
    """

    image: bytes
    start: int
    size: int
    is_open: bool = True
    codecs: Codecs = field(default=NO_CODECS, compare=False, repr=False)


class RecordFile(RecordRange, State):
    """Batches back to back up to the logical end; behind it a preallocated tail.

    >>> log = RecordFile(Files(), "0.log")
    >>> log.append(b"0123456789"), log.slice(4, 100).read()
    (10, b'456789')
    >>> log.truncate_to(3), log.image
    (7, b'012')
    """

    not_compared: ClassVar = frozenset({"codecs"})
    start = 0

    def __init__(
        self,
        files: Files,
        name: str,
        mutable: bool = True,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        *,
        codecs: Codecs = NO_CODECS,
        modified_ms: int | None = None,
    ) -> None:
        """Open or create the file.

        One that is new and preallocated has `init_file_size` bytes and the logical size 0; any
        other is believed to its physical end. `modified_ms`: when a file that was there had last
        changed; None: now.
        """
        self.files, self.name, self.writable, self.is_open = files, name, mutable, True
        self.codecs = codecs
        if name not in files and not mutable:
            refuse(ErrorKind.FILE_NOT_FOUND)
        is_new = preallocate and not file_already_exists
        was_there = name in files and not is_new
        if is_new and mutable:
            self.preallocate(init_file_size)
        else:
            files.write(name, self.image)
        self.size = 0 if is_new else len(self.image)
        """Logical size in bytes; the file may be longer."""
        self.modified_ms = modified_ms if was_there and modified_ms is not None else files.now_ms
        """When the bytes last changed."""

    def preallocate(self, size: int) -> None:
        """Give the file as many bytes as it is to have."""
        self.files.write(self.name, self.image)  # the file is there even if it then fails
        if size < 0:
            refuse(ErrorKind.IO_ERROR)
        self.files.write(self.name, self.image[:size].ljust(size, b"\0"))

    @property
    def image(self) -> bytes:  # type: ignore[override]  # a slice keeps its own
        """The exact bytes of the file, a preallocated tail included; none if it is gone."""
        return self.files.image(self.name)

    # --- changing ------------------------------------------------------------------------------

    def append(self, records: bytes) -> int:
        """Write at the logical end; return the number of bytes (SCAN-11)."""
        if len(records) > INT32_MAX - self.size:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if records:
            self.check_writable()
            before, image = self.image[: self.size].ljust(self.size, b"\0"), self.image
            self.write(before + records + image[self.size + len(records) :])
            self.size += len(records)
        return len(records)

    def truncate_to(self, target_size: int) -> int:
        """Cut the file; return by how many bytes the logical size falls (SCAN-12)."""
        if target_size > self.size or target_size < 0:
            refuse(ErrorKind.KAFKA_ERROR)
        self.check_open()
        fallen = self.size - target_size
        if target_size < len(self.image):
            self.check_writable()
            self.write(self.image[:target_size])
            self.size = target_size
        return fallen

    def trim(self) -> None:
        """Cut what lies behind the logical end (SCAN-13)."""
        self.truncate_to(self.size)

    def write(self, image: bytes) -> None:
        """Let the file hold these bytes, changed now."""
        self.files.write(self.name, image)
        self.modified_ms = self.files.now_ms

    def check_open(self) -> None:
        """Refuse the use of a file that was closed."""
        if not self.is_open:
            refuse(ErrorKind.IO_ERROR)

    def check_writable(self) -> None:
        """Refuse a change of a file that was closed, or opened for reading only."""
        if not (self.is_open and self.writable):
            refuse(ErrorKind.IO_ERROR)

    # --- the file as a file --------------------------------------------------------------------

    def flush(self) -> None:
        """Make what was written durable."""
        self.check_open()

    def close(self) -> None:
        """End the use of the file (SCAN-13).

        Nothing is trimmed: the log manager does that before.
        """
        self.is_open = False

    def delete_if_exists(self) -> bool:
        """End the use of the file, remove it, return whether there was one."""
        self.is_open = False
        return self.files.remove(self.name)

    def rename_to(self, file: str) -> None:
        """Move the file, over an existing one too."""
        was, self.name = self.name, file
        if not self.files.rename(was, file):
            refuse(ErrorKind.FILE_NOT_FOUND)
