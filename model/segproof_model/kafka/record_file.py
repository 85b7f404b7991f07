# SPDX-License-Identifier: Apache-2.0
"""The record file: batches back to back, the logical end, slices, and searches by scanning.

Mirrors: impl/segproof/kafka/record_file.py.
Upstream: Kafka, FileRecords, FileLogInputStream, ByteBufferLogInputStream (since 0.11.0).
Layout: batches back to back (record_batch); behind the logical end a preallocated tail.
Laws: SCAN-1 to SCAN-20.
Not covered: changing the file through a slice, which is a view here and refuses it; conversion
between formats; sending to a socket; files of 2 GiB and more.
Used by: log_segment, the harness.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from segproof_model.directory import Directory
from segproof_model.kafka.compression import NO_CODECS, Codecs
from segproof_model.kafka.legacy_record import LOG_OVERHEAD, MIN_MESSAGE_BYTES
from segproof_model.kafka.record_batch import (
    BATCH_HEADER_BYTES,
    HEADER_UP_TO_MAGIC_BYTES,
    RecordBatch,
)
from segproof_model.language.integers import INT32_MAX, int32_at, wrap32
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
INDEX_ERROR = Raised(ErrorKind.INDEX_ERROR)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
IO_ERROR = Raised(ErrorKind.IO_ERROR)
NO_TIMESTAMP = -1
NO_OFFSET = -1


class LogOffsetPosition(NamedTuple):
    """Where a batch was found."""

    offset: int
    """Its base offset; up to 3.9 its last offset."""
    position: int
    size_bytes: int


class TimestampAndOffset(NamedTuple):
    """A timestamp, the offset of the record or batch that has it, and its leader epoch if any.

    Up to 2.1 there is no epoch.
    """

    timestamp: int
    offset: int
    leader_epoch: int | None


class Scan(NamedTuple):
    """The batches that a scan hands out, and the error that ends it."""

    batches: tuple[RecordBatch, ...]
    error: Raised | None


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The state of a record file, or of a slice of one.

    >>> log = RecordFile.open("0.log").after
    >>> log = log.append(b"0123456789").after
    >>> log.slice(4, 100).read(), log.truncate_to(3).after.to_bytes()
    (b'456789', b'012')
    """

    profile: Profile = field(repr=False)
    directory: Directory = field(repr=False)
    name: str
    size: int
    """Logical size in bytes; the file may be longer."""
    start: int = 0
    """Where a slice begins in the file; 0 for the file itself."""
    is_slice: bool = False
    writable: bool = True
    is_open: bool = True
    codecs: Codecs = field(default=NO_CODECS, compare=False, repr=False)

    @classmethod
    def open(
        cls,
        file: str,
        mutable: bool = True,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
        codecs: Codecs = NO_CODECS,
    ) -> "Step[RecordFile | Directory]":
        """Open or create the file; after a failure only the directory is left.

        A file that is new and preallocated has `init_file_size` bytes and the logical size 0; any
        other is believed to its physical end.
        """
        found = directory.read(file)
        if found is None and not mutable:
            return Step(directory, Raised(ErrorKind.FILE_NOT_FOUND))
        image = found or b""
        is_preallocated = mutable and preallocate and not file_already_exists
        if profile.checks_before_changing and is_preallocated and init_file_size > INT32_MAX:
            return Step(directory, INVALID_ARGUMENT)
        if is_preallocated and init_file_size < 0:
            return Step(directory.write(file, image), IO_ERROR)
        if is_preallocated:
            image = image[:init_file_size].ljust(init_file_size, b"\0")
        is_new = preallocate and not file_already_exists
        return Step(
            cls(
                profile,
                directory.write(file, image),
                file,
                0 if is_new else len(image),
                writable=mutable,
                codecs=codecs,
            )
        )

    @property
    def image(self) -> bytes:
        """The exact bytes of the file, a preallocated tail included; none if it is gone."""
        return self.directory.read(self.name) or b""

    @property
    def end(self) -> int:
        """Where the file or slice ends logically, in bytes from the file's beginning; exclusive."""
        return wrap32(self.start + self.size)

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file."""
        return self.image

    def size_in_bytes(self) -> int:
        """Return the logical size in bytes."""
        return self.size

    def read(self) -> bytes | Raised:
        """Return the bytes from the start to the logical end (SCAN-20).

        A slice that begins below 0, as old releases make them, raises invalid-argument.
        """
        if self.start < 0:
            return INVALID_ARGUMENT
        return self.image[self.start : self.start + max(0, self.size)]

    def append(self, records: bytes) -> Step["RecordFile"]:
        """Write at the logical end; return the number of bytes (SCAN-11)."""
        if len(records) > INT32_MAX - self.size:
            return Step(self, INVALID_ARGUMENT)
        refused = self._refusal(is_needed=bool(records))
        if refused is not None:
            return Step(self, refused)
        if not records:
            return Step(self, 0)
        before = self.image[: self.size].ljust(self.size, b"\0")
        image = before + records + self.image[self.size + len(records) :]
        return Step(replace(self._with(image), size=self.size + len(records)), len(records))

    def truncate_to(self, target_size: int) -> Step["RecordFile"]:
        """Cut the file; return by how many bytes the logical size fell (SCAN-12)."""
        if target_size > self.size or target_size < 0:
            return Step(self, KAFKA_ERROR)
        if not self.is_open:
            return Step(self, INVALID_ARGUMENT if self.is_slice else IO_ERROR)
        refused = self._refusal(is_needed=target_size < len(self.image))
        if refused is not None:
            return Step(self, refused)
        if target_size >= len(self.image):
            return Step(self, self.size - target_size)
        cut = replace(self._with(self.image[:target_size]), size=target_size)
        return Step(cut, self.size - target_size)

    def trim(self) -> Step["RecordFile"]:
        """Cut what lies behind the logical end (SCAN-13)."""
        step = self.truncate_to(self.size)
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else None)

    def flush(self) -> Step["RecordFile"]:
        """Make what was written durable; the model has no other storage."""
        return Step(self, None if self.is_open else IO_ERROR)

    def close(self) -> Step["RecordFile"]:
        """Flush and trim, up to 4.3 (SCAN-13), and end the use of the file, which stays closed.

        A slice has nothing to close.
        """
        if not self.is_open:
            return Step(self, IO_ERROR if self.profile.second_close_fails else None)
        if self.is_slice:
            return Step(self)
        is_left = self.profile.empty_change_is_refused and not self.writable
        if is_left or not self.profile.close_writes:
            return Step(replace(self, is_open=False))
        trimmed = self.trim()
        if isinstance(trimmed.outcome, Raised):
            return trimmed
        return Step(replace(trimmed.after, is_open=False))

    def slice(self, position: int, size: int) -> "RecordFile | Raised":
        """Return a view of `size` bytes from `position` on, or of what there is (SCAN-14, -16).

        `position` counts from this file's or slice's own start.
        """
        largest_position = self.size - (self.start if self.profile.slice_start_refused else 0)
        if position < 0 or size < 0:
            return INVALID_ARGUMENT
        if self.profile.slice_start_checked and position > largest_position:
            return INVALID_ARGUMENT
        start = wrap32(self.start + position)
        end, limit = wrap32(start + size), self.size if self.profile.slice_end_is_size else self.end
        if end < 0 or end > limit:
            end = limit
        return replace(self, start=start, size=wrap32(end - start), is_slice=True)

    def batches(self, start: int | None = None) -> Scan:
        """Return the batches from `start` on, a position in the file (SCAN-1 to -8).

        Without `start`: from the beginning of this file or slice.
        """
        position = self.start if start is None else start
        image = self.image
        found: list[RecordBatch] = []
        while True:
            batch = self._batch_at(position, image)
            if not isinstance(batch, RecordBatch):
                return Scan(tuple(found), batch)
            found.append(batch)
            position += batch.size_bytes
            if self.profile.scanner_limits_wrap:
                position = wrap32(position)

    def search_for_offset_with_size(
        self, target_offset: int, starting_position: int = 0
    ) -> LogOffsetPosition | None | Raised:
        """Return where the first batch is whose last offset is not below the target (SCAN-17)."""
        if self.profile.search_compares_base_offsets:
            return self._search_by_base_offset(target_offset, starting_position)
        scan = self.batches(starting_position)
        for batch in scan.batches:
            last_offset = batch.last_offset
            if isinstance(last_offset, Raised):
                return last_offset
            if last_offset >= target_offset:
                return self._answer(batch)
        return scan.error

    def search_for_timestamp(
        self, target_timestamp: int, starting_position: int, starting_offset: int
    ) -> TimestampAndOffset | None | Raised:
        """Return the first record at or after both the timestamp and the offset (SCAN-18).

        Batches whose largest timestamp is below the target are not read.
        """
        scan = self.batches(starting_position)
        for batch in scan.batches:
            max_timestamp = batch.max_timestamp
            if isinstance(max_timestamp, Raised):
                return max_timestamp
            if max_timestamp < target_timestamp:
                continue
            found = batch.times_until_error(self.profile.time_search_is_streamed)
            has_start = self.profile.time_search_has_start
            for timestamp, offset in found.times:
                reaches_start = offset >= starting_offset or not has_start
                if timestamp >= target_timestamp and reaches_start:
                    return _with_epoch(timestamp, offset, batch)
            if found.error is not None:
                return found.error
            if not has_start:
                return Raised(ErrorKind.ILLEGAL_STATE)
        return scan.error

    def largest_timestamp_after(self, starting_position: int) -> TimestampAndOffset | Raised:
        """Return the largest batch timestamp with that batch's last offset (SCAN-19).

        The earliest batch wins a tie; without batches the answer is (-1, -1).
        """
        scan = self.batches(starting_position)
        largest: TimestampAndOffset | Raised = TimestampAndOffset(NO_TIMESTAMP, NO_OFFSET, None)
        for batch in scan.batches:
            max_timestamp, last_offset = batch.max_timestamp, batch.last_offset
            if isinstance(max_timestamp, Raised):
                return max_timestamp
            if isinstance(last_offset, Raised):
                return last_offset
            if not isinstance(largest, Raised) and max_timestamp > largest.timestamp:
                largest = _with_epoch(max_timestamp, last_offset, batch)
        return largest if scan.error is None else scan.error

    def _search_by_base_offset(
        self, target_offset: int, starting_position: int
    ) -> LogOffsetPosition | None | Raised:
        """Search as the newest releases do: the batch before the first that begins too late."""
        scan = self.batches(starting_position)
        previous: RecordBatch | None = None
        for batch in scan.batches:
            base_offset = batch.base_offset
            if isinstance(base_offset, Raised):
                return base_offset
            if base_offset == target_offset:
                return self._answer(batch)
            if base_offset > target_offset:
                return self._holder(previous, target_offset, otherwise=batch)
            previous = batch
        if scan.error is not None:
            return scan.error
        return self._holder(previous, target_offset, otherwise=None)

    def _holder(
        self, batch: RecordBatch | None, target_offset: int, otherwise: RecordBatch | None
    ) -> LogOffsetPosition | None | Raised:
        """Answer `batch` if it reaches the target, else the other one."""
        last_offset = None if batch is None else batch.last_offset
        if isinstance(last_offset, Raised):
            return last_offset
        if batch is not None and last_offset is not None and last_offset >= target_offset:
            return self._answer(batch)
        return None if otherwise is None else self._answer(otherwise)

    def _answer(self, batch: RecordBatch) -> LogOffsetPosition | Raised:
        base = self.profile.search_answers_base_offset
        offset = batch.base_offset if base else batch.last_offset
        if isinstance(offset, Raised):
            return offset
        return LogOffsetPosition(offset, batch.position, batch.size_bytes)

    def _batch_at(self, position: int, image: bytes) -> RecordBatch | None | Raised:
        """Return the batch at `position`, None at the end of the range, or the error (SCAN-1)."""
        limit = wrap32 if self.profile.scanner_limits_wrap else _exactly
        needed = HEADER_UP_TO_MAGIC_BYTES if self.profile.scanner_reads_magic else LOG_OVERHEAD
        if limit(position + needed) >= self.end:
            return None
        if position < 0:
            return INVALID_ARGUMENT
        if not self.is_open:
            return KAFKA_ERROR
        header = image[position : position + needed]
        if len(header) < needed:
            return Raised(self.profile.scanner_eof_kind)
        size = int32_at(header, 8)
        if size < MIN_MESSAGE_BYTES:
            return CORRUPT_RECORD
        if limit(position + LOG_OVERHEAD + size) > self.end:
            return None
        if self.profile.magic_checked_in_files and header[16] > 2:
            return CORRUPT_RECORD
        size_bytes = limit(LOG_OVERHEAD + size)
        readable = image[position : position + max(size_bytes, BATCH_HEADER_BYTES)]
        return RecordBatch(readable, position, size_bytes, True, self.codecs, self.profile)

    def _refusal(self, is_needed: bool = True) -> Raised | None:
        """Why the file cannot be changed through this object, if so.

        `is_needed` says whether a change is to be made, or nothing has to.
        """
        if self.is_slice:
            return INVALID_ARGUMENT
        if not is_needed and not self.profile.empty_change_is_refused:
            return None
        return None if self.is_open and self.writable else IO_ERROR

    def _with(self, image: bytes) -> "RecordFile":
        return replace(self, directory=self.directory.write(self.name, image))


def scan_memory(
    data: bytes,
    max_message_size_bytes: int = INT32_MAX,
    *,
    codecs: Codecs = NO_CODECS,
    profile: Profile = NEWEST_KAFKA,
) -> Scan:
    """Return the batches of `data` as the scanner of records in memory finds them (SCAN-9)."""
    found: list[RecordBatch] = []
    position = 0
    while True:
        remaining = len(data) - position
        if remaining < LOG_OVERHEAD:
            return Scan(tuple(found), None)
        size = int32_at(data, position + 8)
        if size < MIN_MESSAGE_BYTES or size > max_message_size_bytes:
            return Scan(tuple(found), CORRUPT_RECORD)
        wraps = profile.memory_scanner_wraps and LOG_OVERHEAD + size > INT32_MAX
        is_partial = remaining < LOG_OVERHEAD + size and not wraps
        if not profile.memory_scanner_checks_magic_first and (is_partial or wraps):
            has_magic = remaining >= HEADER_UP_TO_MAGIC_BYTES
            asks_no_more = has_magic or not profile.scanner_reads_magic
            wrong = INVALID_ARGUMENT if asks_no_more else INDEX_ERROR
            return Scan(tuple(found), wrong if wraps else None)
        if remaining < HEADER_UP_TO_MAGIC_BYTES:
            return Scan(tuple(found), None)
        if data[position + 16] > 2:
            return Scan(tuple(found), CORRUPT_RECORD)
        if wraps:
            return Scan(tuple(found), INVALID_ARGUMENT)
        if is_partial:
            return Scan(tuple(found), None)
        whole = data[position : position + LOG_OVERHEAD + size]
        found.append(RecordBatch(whole, position, len(whole), codecs=codecs, profile=profile))
        position += len(whole)


def _exactly(value: int) -> int:
    return value


def _with_epoch(timestamp: int, offset: int, batch: RecordBatch) -> TimestampAndOffset | Raised:
    if not batch.profile.found_time_has_epoch:
        return TimestampAndOffset(timestamp, offset, None)
    epoch = batch.partition_leader_epoch
    if isinstance(epoch, Raised):
        return epoch
    return TimestampAndOffset(timestamp, offset, None if epoch == -1 else epoch)
