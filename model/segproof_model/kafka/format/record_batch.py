# SPDX-License-Identifier: Apache-2.0
"""Record batches: what a log is made of. Here what all formats share, and magic 2.

Mirrors: impl/segproof/kafka/record_batch.py.
Upstream: Kafka 4.4.0, AbstractRecordBatch, DefaultRecordBatch, FileLogInputStream. Otherwise:
    record_releases.
Layout: int64 base offset, int32 size of the rest, int32 partition leader epoch, int8 magic 2,
    uint32 CRC-32C of what follows, int16 attributes, int32 last offset - base offset, int64 base
    timestamp, int64 maximum timestamp, int64 producer id, int16 producer epoch, int32 base
    sequence, int32 count of records, records (compressed: as one block). Attributes: bits 0-2
    codec, 8 LogAppendTime, 16 transactional, 32 control, 64 delete horizon.
Laws: BATCH-1 to BATCH-20.
Used by: legacy_record_batch, memory_records, record_file, and whoever asks a batch.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

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

__all__ = ["BATCH_HEADER_BYTES", "DefaultRecordBatch", "RecordBatch", "Time"]

BATCH_HEADER_BYTES = 61
LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 8, 16, 32, 64


class Time(NamedTuple):
    """When a record was made, and its offset."""

    timestamp: int
    offset: int


def number(position: int, width: int, signed: bool = True) -> Any:
    """Return a property: the number at this place of a batch's header."""
    end = position + width

    def read(batch: "RecordBatch") -> int:
        header = batch.header()
        if end > len(header):
            refuse(ErrorKind.INDEX_ERROR)
        return int.from_bytes(header[position:end], "big", signed=signed)

    return property(read)


def flag(bit: int) -> Any:
    """Return a property: whether a bit of the attributes is set."""
    return property(lambda batch: batch.attributes // bit % 2 == 1)


class RecordBatch(Released):
    """A batch as it lies in memory or in a file, of any format: a value, which nobody changes.

    What cannot be read is refused: a field beyond a batch in memory with an index error, a field
    beyond the end of the file with the Kafka error (SCAN-10).
    """

    is_legacy: ClassVar[bool]
    """Whether it is read as a message of magic 0 or 1 (SCAN-4)."""
    smallest_bytes: ClassVar[int]
    """The size of the smallest valid batch."""
    invalid_kind: ClassVar = ErrorKind.CORRUPT_RECORD
    """The error of a batch that is not valid."""
    codec_names: ClassVar[tuple[str, ...]] = COMPRESSIONS
    """The codecs that are known."""

    crc: int
    """The stored checksum."""
    attributes: int
    """The stored attributes, an int8 or int16; only the low byte has a meaning."""
    base_timestamp: int | None
    """What timestamps are relative to, or the delete horizon; None before magic 2."""
    partition_leader_epoch: int
    """The leader's epoch; -1 if there is none."""
    producer_id: int
    """The producer's id; -1 if there is none."""
    producer_epoch: int
    """The producer's epoch; -1 if there is none."""
    base_sequence: int
    """The first sequence number; -1 if there is none."""
    record_count: int | None
    """The stored count; None before magic 2, which does not store it (BATCH-12)."""
    is_transactional: bool
    """Whether it belongs to a transaction."""
    is_control: bool
    """Whether it holds a control record (BATCH-19)."""
    has_delete_horizon: bool
    """Whether the base timestamp says when tombstones may go (BATCH-15)."""

    def __init__(
        self,
        data: bytes,
        position: int,
        size_bytes: int,
        in_file: bool = False,
        codecs: Codecs = NO_CODECS,
    ) -> None:
        self.data = data
        """The batch; in a file all that can be read from its first byte on, up to the larger of
        `size_bytes` and the header's size, so shorter than the batch where the file is."""
        self.position = position
        """Where it begins, in bytes from the beginning of what was read."""
        self.size_bytes = size_bytes
        """12 + its size field (BATCH-1)."""
        self.in_file, self.codecs = in_file, codecs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordBatch) or type(self) is not type(other):
            return False
        places = (self.position, self.size_bytes, self.in_file)
        others = (other.position, other.size_bytes, other.in_file)
        return places == others and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.data, self.position))

    # --- the header ----------------------------------------------------------------------------

    @property
    def magic(self) -> int:
        """The format; only 0, 1 and 2 are written, a file may hold any."""
        return int.from_bytes(self.data[16:17], "big", signed=True)

    @property
    def base_offset(self) -> int:
        """The first offset."""
        raise NotImplementedError

    @property
    def last_offset(self) -> int:
        """The last offset (BATCH-4), also where compaction has removed its record."""
        raise NotImplementedError

    @property
    def timestamp_type(self) -> str:
        """NoTimestampType (magic 0), CreateTime or LogAppendTime."""
        raise NotImplementedError

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp; -1 in magic 0."""
        raise NotImplementedError

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last offset (BATCH-5); -1 if there is none."""
        raise NotImplementedError

    @property
    def next_offset(self) -> int:
        """The offset behind the last one."""
        return wrap64(self.last_offset + 1)

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
        raise NotImplementedError

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
        """Return the checksum of the bytes of a batch of this format (BATCH-2, -3)."""
        raise NotImplementedError

    def records(self) -> Iterator[Record]:
        """Yield every record, until one cannot be read (BATCH-16)."""
        raise NotImplementedError

    def times(self) -> Iterator[Time]:
        """Yield timestamp and offset of the same records."""
        raise NotImplementedError

    def streamed_times(self) -> Iterator[Time]:
        """Yield the same, also those before damage in what is compressed."""
        raise NotImplementedError


class DefaultRecordBatch(RecordBatch):
    """A batch of magic 2, or of a later one, which nobody writes."""

    is_legacy = False
    smallest_bytes = header_bytes = BATCH_HEADER_BYTES

    partition_leader_epoch = number(12, 4)
    crc = number(17, 4, signed=False)
    attributes = number(21, 2)
    last_offset_delta = number(23, 4)
    base_timestamp = number(27, 8)
    max_timestamp = number(35, 8)
    producer_id = number(43, 8)
    producer_epoch = number(51, 2)
    base_sequence = number(53, 4)
    record_count = number(57, 4)
    is_transactional = flag(TRANSACTIONAL_BIT)
    is_control = flag(CONTROL_BIT)
    has_delete_horizon = flag(DELETE_HORIZON_BIT)

    @property
    def base_offset(self) -> int:
        """The first offset."""
        return int64_at(self.data, 0)

    @property
    def last_offset(self) -> int:
        """The last offset (BATCH-4)."""
        return wrap64(int64_at(self.data, 0) + self.last_offset_delta)

    @property
    def timestamp_type(self) -> str:
        """CreateTime or LogAppendTime."""
        return "LogAppendTime" if self.attributes & LOG_APPEND_TIME_BIT else "CreateTime"

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last offset (BATCH-5)."""
        base = self.base_sequence
        return base if base == NO_SEQUENCE else increment_sequence(base, self.last_offset_delta)

    def crc_of(self, data: bytes) -> int:
        """Return the checksum of what follows it (BATCH-3)."""
        return crc32c(data[21:])

    def records(self) -> Iterator[Record]:
        """Yield every record; a compressed batch is read as a whole first (BATCH-16, -18)."""
        whole = self.loaded()
        if whole.record_count != 0:
            streamed = whole.streamed_records()
            yield from streamed if whole.compression == "none" else list(streamed)

    def streamed_records(self) -> Iterator[Record]:
        """Yield every record, also those before damage in what is compressed."""
        whole = self.loaded()
        count = whole.record_count
        if whole.compression != "none":
            yield from whole.inflated_records(count)
        elif count != 0:
            yield from whole.stored_records(count)

    def times(self) -> Iterator[Time]:
        """Yield timestamp and offset of each record."""
        return (Time(record.timestamp, record.offset) for record in self.records())

    def streamed_times(self) -> Iterator[Time]:
        """Yield the same, also those before damage in what is compressed."""
        return (Time(record.timestamp, record.offset) for record in self.streamed_records())

    # --- reading the records of a batch in memory -----------------------------------------------

    @property
    def record_base(self) -> RecordBase:
        """What the header says about each record."""
        is_given = self.timestamp_type == "LogAppendTime"
        return RecordBase(
            self.base_offset,
            self.base_timestamp,
            self.base_sequence,
            self.max_timestamp if is_given else None,
        )

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
        """Return a record that was not compressed, and the position behind it."""
        return decode_record(data, position, base)

    def inflated_record(
        self, data: bytes, base: RecordBase, position: int, is_last: bool
    ) -> tuple[Record, int]:
        """Return a record of an inflated block; whatever is wrong, it is an invalid record."""
        try:
            return decode_record(data, position, base)
        except Refused:
            refuse(ErrorKind.INVALID_RECORD)
