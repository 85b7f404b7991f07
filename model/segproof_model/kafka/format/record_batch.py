# SPDX-License-Identifier: Apache-2.0
"""Record batches: what a log is made of, in the format of magic 2.

Upstream: Kafka 4.4.0, AbstractRecordBatch, DefaultRecordBatch, FileLogInputStream. Otherwise:
    record_releases, record_file_releases.
Layout: int64 base offset, int32 size of the rest, int32 partition leader epoch, int8 magic 2,
    uint32 CRC-32C of what follows, int16 attributes, int32 last offset - base offset, int64 base
    timestamp, int64 maximum timestamp, int64 producer id, int16 producer epoch, int32 base
    sequence, int32 count of records, records (compressed: as one block). Attributes: bits 0-2
    codec, 8 LogAppendTime, 16 transactional, 32 control, 64 delete horizon.
Laws: BATCH-1 to BATCH-20.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from segproof_model.kafka.format.compression import (
    COMPRESSIONS,
    NO_CODECS,
    BeyondLimitError,
    Codecs,
    crc32c,
    inflate_until_damage,
    opens,
)
from segproof_model.kafka.format.record import (
    NO_SEQUENCE,
    Record,
    RecordBase,
    decode_record,
    decode_records,
    increment_sequence,
)
from segproof_model.language.integers import int64_at, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released, refuse

T = TypeVar("T")
BATCH_HEADER_BYTES = 61
LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 8, 16, 32, 64


class Time(NamedTuple):
    """When a record was made, and its offset."""

    timestamp: int
    offset: int


def attribute(read: Callable[[Any], T]) -> T:
    """Make a property, which a derived class may replace by a plain value, or the other way."""
    return property(read)  # type: ignore[return-value]  # what it gives, to the type checker


def number(position: int, width: int, signed: bool = True) -> int:
    """Make a property: the number at this place of a batch's header."""
    end = position + width

    def read(batch: "RecordBatch") -> int:
        header = batch.header() if batch.in_file else batch.data
        if end > len(header):
            refuse(ErrorKind.INDEX_ERROR)
        return int.from_bytes(header[position:end], "big", signed=signed)

    return attribute(read)


def flag(bit: int) -> bool:
    """Make a property: whether a bit of the attributes is set."""

    def read(batch: "RecordBatch") -> bool:
        return batch.attributes // bit % 2 == 1

    return attribute(read)


@dataclass
class RecordBatch(Released):
    """A batch of magic 2, in memory or in a file: a value, which nobody changes.

    What cannot be read is refused: a field beyond a batch in memory with an index error, a field
    beyond the end of the file with the Kafka error (SCAN-10). A later magic is read as 2.
    """

    data: bytes
    """The batch; in a file all that can be read from its first byte on, up to the larger of
    `size_bytes` and the header's size, so shorter than the batch where the file is. (A size field
    may be as small as 14: then the header is read into what follows, as upstream's is.)"""
    position: int
    """Where it begins, in bytes from the beginning of what was read."""
    size_bytes: int
    """12 + its size field (BATCH-1)."""
    in_file: bool = False
    codecs: Codecs = field(default=NO_CODECS, compare=False, repr=False)

    is_legacy: ClassVar = False
    """Whether it is a message of magic 0 or 1 (SCAN-4)."""
    smallest_bytes: ClassVar = BATCH_HEADER_BYTES
    """The size of the smallest valid batch."""
    codec_names: ClassVar[tuple[str, ...]] = COMPRESSIONS
    """The codecs that are known."""
    invalid_kind: ClassVar = ErrorKind.CORRUPT_RECORD
    """The error of a batch that is not valid."""

    # --- the header ----------------------------------------------------------------------------

    partition_leader_epoch = number(12, 4)
    """The leader's epoch; -1 if there is none."""
    crc = number(17, 4, signed=False)
    """The stored checksum."""
    attributes = number(21, 2)
    """The stored attributes, of which only the low byte has a meaning."""
    last_offset_delta = number(23, 4)
    """Last offset - base offset."""
    base_timestamp = number(27, 8)
    """What timestamps are relative to, or the delete horizon; None before magic 2."""
    max_timestamp = number(35, 8)
    """The largest timestamp; -1 in magic 0."""
    producer_id = number(43, 8)
    """The producer's id; -1 if there is none."""
    producer_epoch = number(51, 2)
    """The producer's epoch; -1 if there is none."""
    base_sequence = number(53, 4)
    """The first sequence number; -1 if there is none."""
    record_count = number(57, 4)
    """The stored count; None before magic 2, which does not store it (BATCH-12)."""
    is_transactional = flag(TRANSACTIONAL_BIT)
    """Whether it belongs to a transaction."""
    is_control = flag(CONTROL_BIT)
    """Whether it holds a control record (BATCH-19)."""
    has_delete_horizon = flag(DELETE_HORIZON_BIT)
    """Whether the base timestamp says when tombstones may go (BATCH-15)."""

    @property
    def magic(self) -> int:
        """The format; only 0, 1 and 2 are written, a file may hold any."""
        return int.from_bytes(self.data[16:17], "big", signed=True)

    @property
    def base_offset(self) -> int:
        """The first offset."""
        return int64_at(self.data, 0)

    @property
    def last_offset(self) -> int:
        """The last offset (BATCH-4), also where compaction has removed its record."""
        return wrap64(int64_at(self.data, 0) + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        """The offset behind the last one."""
        return wrap64(self.last_offset + 1)

    @attribute
    def last_sequence(self) -> int:
        """The sequence number of the last offset (BATCH-5); -1 if there is none."""
        base = self.base_sequence
        return base if base == NO_SEQUENCE else increment_sequence(base, self.last_offset_delta)

    @property
    def timestamp_type(self) -> str:
        """NoTimestampType (magic 0), CreateTime or LogAppendTime."""
        return "LogAppendTime" if self.attributes // LOG_APPEND_TIME_BIT % 2 else "CreateTime"

    @property
    def compression(self) -> str:
        """The codec's name; an unknown codec is an invalid argument (BATCH-18)."""
        codec = self.attributes % 8
        if codec >= len(self.codec_names):
            refuse(ErrorKind.INVALID_ARGUMENT)
        return self.codec_names[codec]

    @property
    def header_bytes(self) -> int:
        """The size of its header."""
        return BATCH_HEADER_BYTES

    def header(self) -> bytes:
        """Return the bytes that fields are read from; a file has to have the whole header."""
        if self.in_file and len(self.data) < self.header_bytes:
            refuse(ErrorKind.KAFKA_ERROR)
        return self.data

    # --- the whole batch -----------------------------------------------------------------------

    def loaded(self) -> Self:
        """Return the batch in memory, where no following byte can be read."""
        if not self.in_file:
            return self
        if len(self.data) < self.size_bytes:
            refuse(ErrorKind.KAFKA_ERROR)
        data = self.data[: self.size_bytes]
        return type(self)(data, self.position, self.size_bytes, codecs=self.codecs)

    def is_valid(self) -> bool:
        """Return whether the size is not too small and the checksum is right (BATCH-14)."""
        whole = self.loaded()
        return self.size_bytes >= self.smallest_bytes and self.crc_of(whole.data) == whole.crc

    def ensure_valid(self) -> None:
        """Refuse a batch that is not valid; no record is looked at."""
        if not self.is_valid():
            refuse(self.invalid_kind)

    def crc_of(self, data: bytes) -> int:
        """Return the checksum of the bytes of a batch of this format (BATCH-3)."""
        return crc32c(data[21:])

    def records(self) -> Iterator[Record]:
        """Yield every record, as Java's iterator does, until one cannot be read (BATCH-16).

        A compressed batch is made a list first, so damage hides all of it (BATCH-18). A count of 0
        opens no stream.
        """
        whole = self.loaded()
        if whole.record_count != 0:
            streamed = whole.streamed_records()
            yield from streamed if whole.compression == "none" else list(streamed)

    def streamed_records(self) -> Iterator[Record]:
        """Yield every record, as Java's streamingIterator does: also those before damage.

        Of a compressed batch a count of 0 opens the stream, which may fail.
        """
        whole = self.loaded()
        count = whole.record_count
        if whole.compression != "none":
            yield from whole.inflated_records(count)
        elif count != 0:
            yield from whole.stored_records(count)

    def times(self) -> Iterator[Time]:
        """Yield timestamp and offset of each of the `records`."""
        return (Time(record.timestamp, record.offset) for record in self.records())

    def streamed_times(self) -> Iterator[Time]:
        """Yield timestamp and offset of each of the `streamed_records`."""
        return (Time(record.timestamp, record.offset) for record in self.streamed_records())

    # --- reading the records of a batch in memory -----------------------------------------------

    @property
    def record_base(self) -> RecordBase:
        """What the header says about each record."""
        given = self.max_timestamp if self.timestamp_type == "LogAppendTime" else None
        return RecordBase(self.base_offset, self.base_timestamp, self.base_sequence, given)

    def stored_records(self, count: int) -> Iterator[Record]:
        """Yield the records of a batch that is not compressed."""
        stored = self.data[BATCH_HEADER_BYTES:]
        if len(stored) > self.codecs.limit_bytes:
            raise BeyondLimitError(self.codecs.limit_bytes)
        decode = partial(self.stored_record, stored, self.record_base)
        return decode_records(stored, count, decode, is_whole=True)

    def inflated_records(self, count: int) -> Iterator[Record]:
        """Yield the records of a compressed batch; damage is the error of all that it hides.

        Of a batch without records no more is read than the head of its block.
        """
        codec, stored = self.attributes % 8, self.data[BATCH_HEADER_BYTES:]
        inflated, is_damaged = inflate_until_damage(codec, stored, 2, self.codecs)
        if count == 0:
            if is_damaged and not opens(codec, stored, 2, self.codecs):
                refuse(ErrorKind.KAFKA_ERROR)
            return
        decode = partial(self.inflated_record, inflated, self.record_base)
        try:
            yield from decode_records(inflated, count, decode, is_whole=not is_damaged)
        except Refused as error:
            refuse(ErrorKind.KAFKA_ERROR if is_damaged else error.kind)

    def stored_record(
        self, data: bytes, base: RecordBase, position: int, is_last: bool
    ) -> tuple[Record, int]:
        """Return a record that was not compressed, and the position behind it.

        `is_last` is for behaviours: nothing here asks.
        """
        return decode_record(data, position, base)

    def inflated_record(
        self, data: bytes, base: RecordBase, position: int, is_last: bool
    ) -> tuple[Record, int]:
        """Return a record of an inflated block; any damage is an invalid record."""
        try:
            return decode_record(data, position, base)
        except Refused:
            refuse(ErrorKind.INVALID_RECORD)
