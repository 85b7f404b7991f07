# SPDX-License-Identifier: Apache-2.0
"""The record file (`.log`): batches back to back, the logical end, slices, searches by scanning.

Upstream: Kafka 4.3.1: FileRecords, FileLogInputStream, ByteBufferLogInputStream.
Layout: batches (see kafka/record_batch.py); behind the logical end a preallocated tail.
Laws: SCAN-1 to SCAN-20; a magic outside 0..2 is refused, which upstream's file scanner does not do.
Not covered: changing the file through a slice; conversion between formats; sockets.
"""

import errno
import os
from collections.abc import Iterator
from operator import index as to_int
from typing import NamedTuple, Self

from segproof.closing import told_state, undone_if_it_fails
from segproof.compression import UNCOMPRESSED_LIMIT_BYTES
from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    OffsetOutOfRangeError,
    ReadOnlyFileError,
    SegproofError,
)
from segproof.files import REAL_FILES, File, Files, holds_zeros
from segproof.integers import INT32_MAX
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.layouts.kafka import (
    BATCH,
    BATCH_HEADER_BYTES,
    HEADER_UP_TO_MAGIC_BYTES,
    LEGACY_MIN_BYTES,
    LOG_OVERHEAD_BYTES,
)

__all__ = [
    "LogAsFound",
    "LogOffsetPosition",
    "RecordFile",
    "TimestampAndOffset",
    "scan_memory",
]

MAX_FILE_BYTES = INT32_MAX
"""Kafka addresses a log with an int32."""


class LogOffsetPosition(NamedTuple):
    """Where a batch was found."""

    offset: int
    """Its base offset."""
    position: int
    size_bytes: int


class TimestampAndOffset(NamedTuple):
    """A timestamp in milliseconds, the offset that has it, and its leader epoch if any."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class RecordFile:
    """One record file, or a slice of one, which is a view that only reads.

    One writer and any number of readers: an append writes behind the logical end first and moves
    it then, so a reader sees whole batches only.
    """

    def __init__(
        self,
        file: File,
        size: int,
        *,
        start: int = 0,
        is_slice: bool = False,
        writable: bool = False,
    ) -> None:
        self._file = file
        self._size = to_int(size)
        self.start = to_int(start)
        """Where a slice begins in the file; 0 for the file itself."""
        self.is_slice = is_slice
        self.writable = writable
        self.is_open = True
        self.cuts = 0
        """How often bytes were cut off; what a slice showed may have become other bytes since."""
        self._sliced: tuple[RecordFile, int] | None = None
        """Of a slice: the file, and its cuts when the slice was made."""

    @classmethod
    def open(
        cls,
        file: str | os.PathLike[str],
        *,
        writable: bool = False,
        create: bool = False,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        files: Files = REAL_FILES,
    ) -> Self:
        """Open the file for reading.

        With `writable=True` it may be appended to and cut. With `create=True` it is writable, and a
        missing file is made. A file that is new and preallocated has `init_file_size` bytes and the
        logical size 0; any other is believed to its physical end. With `create` and `preallocate` a
        file counts as new unless `file_already_exists` says otherwise.

        Raises: FileNotFoundError, OSError; SegproofError above 2147483647 bytes, and
        InvalidArgumentError, with nothing changed, where the preallocated ones would be more.
        """
        path, init_file_size = os.fspath(file), to_int(init_file_size)
        is_new = preallocate and not file_already_exists
        if is_new and create and init_file_size > MAX_FILE_BYTES:
            raise InvalidArgumentError(
                "a log segment cannot be so large",
                path=path,
                expected=f"at most {MAX_FILE_BYTES} bytes",
                actual=init_file_size,
            )
        is_writable = writable or create
        handle = files.open(path, writable=is_writable, create=create)
        with undone_if_it_fails(handle.close):
            if is_new and create:
                if init_file_size < 0:
                    raise OSError(errno.EINVAL, f"a file cannot have {init_file_size} bytes", path)
                handle.truncate(init_file_size)
            size = 0 if is_new else handle.size()
            if size > MAX_FILE_BYTES:
                raise SegproofError(
                    "the file is too large for a log segment",
                    path=path,
                    expected=f"at most {MAX_FILE_BYTES} bytes",
                    actual=size,
                )
            return cls(handle, size, writable=is_writable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open and not self.is_slice:
            self.close()

    def __iter__(self) -> Iterator[RecordBatch]:
        return self.batches()

    def __repr__(self) -> str:
        content = f"bytes {self.start} to {self.end}" if self.is_slice else f"{self._size} bytes"
        state = told_state(content, is_open=self.is_open, writable=self.writable)
        return f"{type(self).__name__}({self.name!r}, {state})"

    @property
    def name(self) -> str:
        """The path of the file."""
        return self._file.path

    @property
    def file(self) -> File:
        """The open file, for the bulk readers of kafka/batch_table.py."""
        return self._file

    @property
    def end(self) -> int:
        """Where the file or slice ends logically, in bytes from the file's beginning; exclusive."""
        return self.start + self._size

    def size_in_bytes(self) -> int:
        """Return the logical size in bytes."""
        return self._size

    def read(self) -> bytes:
        """Return the bytes from the start to the logical end. Laws: SCAN-20.

        Raises: OffsetOutOfRangeError for a slice of a file that was cut or closed since.
        """
        data = self._file.pread(self._size, self.start)
        self._check_uncut()
        return data

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file, a preallocated tail included."""
        return self._file.pread(self._file.size(), 0)

    # --- changing

    def append(self, records: bytes) -> int:
        """Write at the logical end; return the number of bytes.

        Raises: InvalidArgumentError above 2147483647 bytes, and nothing is written. Laws: SCAN-11.
        """
        if len(records) > MAX_FILE_BYTES - self._size:
            raise InvalidArgumentError(
                "the file would become too large",
                law="SCAN-11",
                path=self.name,
                expected=f"at most {MAX_FILE_BYTES - self._size} bytes more",
                actual=len(records),
            )
        self._check_writable()
        self._file.pwrite(records, self._size)
        self._size += len(records)
        return len(records)

    def truncate_to(self, target_size: int) -> int:
        """Cut the file; return by how many bytes the logical size fell.

        A file that is physically shorter already is left alone.

        Raises: SegproofError, the Kafka error, for a size below 0 or above the logical size.
        Laws: SCAN-12.
        """
        size, target_size = self._size, to_int(target_size)
        if target_size > size or target_size < 0:
            raise SegproofError(
                "a record file is only cut",
                law="SCAN-12",
                path=self.name,
                expected=f"0 to {size} bytes",
                actual=target_size,
            )
        self._check_writable()
        if target_size < self._file.size():
            self._cut(target_size)
        return size - target_size

    def _cut(self, target_size: int) -> None:
        """Cut the file, and let readers know before a byte goes.

        The end first, then the count: who sees the old count when it begins will see another one
        when it ends, and who sees the new one sees the new end.
        """
        size = self._size
        self._size = target_size
        self.cuts += target_size < size
        try:
            self._file.truncate(target_size)
        except BaseException:
            self._size = size
            raise

    def trim(self) -> None:
        """Cut what lies behind the logical end. Laws: SCAN-13."""
        self.truncate_to(self._size)

    def preallocate(self, size: int) -> None:
        """Let the file have `size` bytes, not below the logical end, with zeros behind that end."""
        self._file.truncate(size)

    def flush(self) -> None:
        """Make what was written durable."""
        self._check_open()
        self._file.sync()

    def close(self) -> None:
        """Flush, trim, and end the use of the file. Laws: SCAN-13.

        A slice has nothing to close; a second close does nothing.
        """
        if self.is_slice or not self.is_open:
            return
        if self.writable:
            self._file.sync()
            self.trim()
        self.is_open = False
        self._file.close()

    # --- reading

    def slice(self, position: int, size: int) -> "RecordFile":
        """Return a view of `size` bytes from `position` on, or of what there is.

        `position` counts from this file's or slice's own start. A later append does not widen it;
        once the file was cut or closed, it refuses to be read.

        Raises: InvalidArgumentError for a negative number or a position beyond the end.
        Laws: SCAN-14, SCAN-15, SCAN-16.
        """
        sliced = self._sliced or (self, self.cuts)  # before the size, see `_cut`
        position, size, available = to_int(position), to_int(size), self._size
        if position < 0 or size < 0 or position > available:
            raise InvalidArgumentError(
                "a slice begins outside of the file or has a negative size",
                law="SCAN-14",
                path=self.name,
                expected=f"a position of 0 to {available}",
                actual=(position, size),
            )
        size = min(size, available - position)
        view = RecordFile(self._file, size, start=self.start + position, is_slice=True)
        view.is_open = self.is_open
        view._sliced = sliced
        return view

    def batches(
        self, start: int | None = None, *, limit: int = UNCOMPRESSED_LIMIT_BYTES
    ) -> Iterator[RecordBatch]:
        """Yield the batches from `start` on, a position in the file; default: this one's start.

        The records of each may inflate to `limit` bytes.

        Raises: CorruptRecordError for a size below 14, a magic outside 0..2, and a file that is
        shorter than believed. Laws: SCAN-1 to SCAN-8.
        """
        position = self.start if start is None else to_int(start)
        while (batch := self._batch_at(position, limit)) is not None:
            yield batch
            position += batch.size_bytes

    def search_for_offset_with_size(
        self, target_offset: int, starting_position: int = 0
    ) -> LogOffsetPosition | None:
        """Return where the first batch is whose last offset is not below the target.

        Base offsets are compared, one batch back, so that last offsets are read once or twice.
        Raises: as `batches`. Laws: SCAN-17.
        """
        target_offset = to_int(target_offset)
        previous: RecordBatch | None = None
        following: RecordBatch | None = None
        for batch in self.batches(starting_position):
            base_offset = batch.base_offset
            if base_offset == target_offset:
                return LogOffsetPosition(base_offset, batch.position, batch.size_bytes)
            if base_offset > target_offset:
                following = batch
                break
            previous = batch
        holder = following
        if previous is not None and previous.last_offset >= target_offset:
            holder = previous
        if holder is None:
            return None
        return LogOffsetPosition(holder.base_offset, holder.position, holder.size_bytes)

    def search_for_timestamp(
        self, target_timestamp: int, starting_position: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record at or after both the timestamp and the offset.

        Batches whose largest timestamp is below the target are not read.
        Raises: as `batches` and `RecordBatch.times`. Laws: SCAN-18.
        """
        target_timestamp, starting_offset = to_int(target_timestamp), to_int(starting_offset)
        for batch in self.batches(starting_position):
            if batch.max_timestamp < target_timestamp:
                continue
            for timestamp, offset in batch.times():
                if timestamp >= target_timestamp and offset >= starting_offset:
                    return _with_epoch(timestamp, offset, batch)
        return None

    def largest_timestamp_after(self, starting_position: int) -> TimestampAndOffset:
        """Return the largest batch timestamp with that batch's last offset; the earliest on a tie.

        Without batches the answer is (-1, -1). Raises: as `batches`. Laws: SCAN-19.
        """
        largest = TimestampAndOffset(-1, -1, None)
        for batch in self.batches(starting_position):
            max_timestamp, last_offset = batch.max_timestamp, batch.last_offset
            if max_timestamp > largest.timestamp:
                largest = _with_epoch(max_timestamp, last_offset, batch)
        return largest

    # --- inside

    def _batch_at(self, position: int, limit: int) -> RecordBatch | None:
        """Return the batch at `position`, or None where the scan ends."""
        end = self.end
        if position >= end - HEADER_UP_TO_MAGIC_BYTES:
            return None
        if position < 0:
            raise InvalidArgumentError("a scan from a negative position", path=self.name)
        if not self.is_open:
            raise SegproofError("the record file is closed", path=self.name)
        # One read serves the scanner and, nearly always, the fields of the batch.
        header = self._file.pread(BATCH_HEADER_BYTES, position)
        self._check_uncut()
        if len(header) < HEADER_UP_TO_MAGIC_BYTES:
            raise self._corrupt(
                "the file is shorter than it was", "SCAN-7", position, f"{end} bytes", None
            )
        size = BATCH["size"].of(header)
        if size < LEGACY_MIN_BYTES - LOG_OVERHEAD_BYTES:
            raise self._corrupt("a size field is too small", "SCAN-2", position, "14 or more", size)
        if position > end - LOG_OVERHEAD_BYTES - size:
            return None
        magic = header[BATCH["magic"].place]
        if magic > 2:
            raise self._corrupt(f"no magic {magic}", "SCAN-4", position, "0, 1 or 2", magic)
        size_bytes = LOG_OVERHEAD_BYTES + size
        return RecordBatch(
            self._file, position, size_bytes, magic, in_file=True, header=header, limit=limit
        )

    def _corrupt(
        self, message: str, law: str, position: int, expected: str, actual: int | None
    ) -> CorruptRecordError:
        return CorruptRecordError(
            message, law=law, path=self.name, position=position, expected=expected, actual=actual
        )

    def _check_uncut(self) -> None:
        """Return if what was just read of a slice is what the slice is a view of."""
        if self._sliced is not None:
            source, cuts = self._sliced
            if source.cuts != cuts or not source.is_open:
                raise OffsetOutOfRangeError(
                    "the log was cut or closed since this was read from it",
                    path=self.name,
                    position=self.start,
                    hint="read again",
                )

    def _check_open(self) -> None:
        if not self.is_open:
            raise OSError(errno.EBADF, "the record file is closed", self.name)

    def _check_writable(self) -> None:
        if self.is_slice:
            raise InvalidArgumentError("a slice only reads", path=self.name)
        self._check_open()
        if not self.writable:
            raise ReadOnlyFileError(
                "the record file was opened for reading",
                path=self.name,
                hint="open it with writable=True",
            )


class LogAsFound(RecordFile):
    """A log that is read as it lies there, and may never have been closed.

    Zeros up to the end are the tail of a preallocated file: they end a scan and are no damage.
    """

    _zeros_from = MAX_FILE_BYTES

    def _batch_at(self, position: int, limit: int) -> RecordBatch | None:
        try:
            return super()._batch_at(position, limit)
        except CorruptRecordError:
            if position < self._zeros_from and not holds_zeros(self._file, position, self.end):
                raise
            self._zeros_from = min(position, self._zeros_from)
            return None


def scan_memory(data: bytes, max_message_size_bytes: int = MAX_FILE_BYTES) -> Iterator[RecordBatch]:
    """Yield the batches of `data` as the scanner of records in memory finds them.

    Raises: CorruptRecordError for a size below 14 or above the limit, and for a magic outside
    0..2. Laws: SCAN-9.
    """
    position = 0
    while len(data) - position >= LOG_OVERHEAD_BYTES:
        size = BATCH["size"].of(data, position)
        if size < LEGACY_MIN_BYTES - LOG_OVERHEAD_BYTES or size > max_message_size_bytes:
            raise CorruptRecordError(
                "a size field is out of range",
                law="SCAN-9",
                position=position,
                expected=f"14 to {max_message_size_bytes}",
                actual=size,
            )
        remaining = len(data) - position
        if remaining < HEADER_UP_TO_MAGIC_BYTES:
            return
        if remaining < LOG_OVERHEAD_BYTES + size and data[position + BATCH["magic"].place] <= 2:
            return
        yield read_batch(data, position)
        position += LOG_OVERHEAD_BYTES + size


def _with_epoch(timestamp: int, offset: int, batch: RecordBatch) -> TimestampAndOffset:
    epoch = batch.partition_leader_epoch
    return TimestampAndOffset(timestamp, offset, None if epoch == -1 else epoch)
