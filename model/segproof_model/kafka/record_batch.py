# SPDX-License-Identifier: Apache-2.0
"""Record batches: what a log is made of, in all three formats.

Mirrors: impl/segproof/kafka/record_batch.py.
Upstream: Kafka, DefaultRecordBatch, AbstractLegacyRecordBatch, FileLogInputStream,
MemoryRecordsBuilder (since 0.11.0).
Layout: int64 base offset, int32 size of the rest, int32 partition leader epoch, int8 magic 2,
uint32 CRC-32C of what follows, int16 attributes, int32 last offset - base offset, int64 base
timestamp, int64 maximum timestamp, int64 producer id, int16 producer epoch, int32 base sequence,
int32 count of records, records (compressed: as one block). Attributes: bits 0-2 codec, 8
LogAppendTime, 16 transactional, 32 control, 64 delete horizon. Magic 0 and 1: legacy_record.
Laws: BATCH-1 to BATCH-20.
Not covered: conversion between formats; what the broker asks of a producer's batch.
Used by: record_file, log_segment, the harness.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from segproof_model.kafka.batch_writing import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    TIMESTAMP_TYPES,
    TRANSACTIONAL_BIT,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.kafka.compression import (
    COMPRESSIONS,
    NO_CODECS,
    BeyondLimitError,
    Codecs,
    crc32,
    crc32c,
    inflate_until_error,
    is_known,
    opens,
)
from segproof_model.kafka.legacy_record import (
    LOG_OVERHEAD,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    LegacyRecord,
    Messages,
    read_messages,
    read_records,
)
from segproof_model.kafka.record import (
    INVALID_ARGUMENT,
    NO_SEQUENCE,
    EndTransactionMarker,
    Record,
    RecordBase,
    RecordHeader,
    Records,
    control_record_type,
    decode_inflated_records,
    decode_records,
    decrement_sequence,
    end_transaction_marker,
    increment_sequence,
)
from segproof_model.kafka.varint import (
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
)
from segproof_model.language.integers import INT32_MAX, int32_at, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

__all__ = [
    "Codecs",
    "EndTransactionMarker",
    "Record",
    "RecordBatch",
    "RecordHeader",
    "control_record_type",
    "decode_varint",
    "decode_varlong",
    "decrement_sequence",
    "encode_varint",
    "encode_varlong",
    "end_transaction_marker",
    "increment_sequence",
    "read_batch",
    "write_batch",
    "write_empty_batch",
    "write_end_transaction_marker",
]

HEADER_UP_TO_MAGIC_BYTES = 17
BATCH_HEADER_BYTES = 61
LEGACY_HEADER_BYTES = {0: 18, 1: 26}


class Time(NamedTuple):
    """When a record was made, and its offset."""

    timestamp: int
    offset: int


class Times(NamedTuple):
    """The timestamps of one record after another, and the error that ended reading them."""

    times: tuple[Time, ...] = ()
    error: Raised | None = None


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch as it lies in memory or in a file; of magic 0 and 1, one message.

    What cannot be read is `Raised`: a field beyond a batch in memory is an index error, a field
    beyond the end of the file the Kafka error (SCAN-10).
    """

    data: bytes
    """The batch; in a file all that can be read from its first byte on, up to the larger of
    `size_bytes` and the header's size, so shorter than the batch where the file is."""
    position: int
    """Where it begins, in bytes from the beginning of what was read."""
    size_bytes: int
    """12 + its size field (BATCH-1)."""
    in_file: bool = False
    codecs: Codecs = field(default=NO_CODECS, compare=False, repr=False)
    profile: Profile = field(default=NEWEST_KAFKA, repr=False)

    @property
    def magic(self) -> int:
        """The format; only 0, 1 and 2 are written, a file may hold any."""
        return self._at(16, 1)

    @property
    def is_legacy(self) -> bool:
        """Whether it is read as a message of magic 0 or 1 (SCAN-4)."""
        return self.magic < 2

    @property
    def base_offset(self) -> int | Raised:
        """The first offset; of a message, that of its first record, which must be read for it."""
        if not self.is_legacy:
            return self._at(0, 8)
        found = self.times_until_error()
        return (
            found.times[0].offset if found.times else found.error or Raised(ErrorKind.INDEX_ERROR)
        )

    @property
    def last_offset(self) -> int | Raised:
        """The last offset (BATCH-4), also where compaction has removed its record."""
        if self.is_legacy:
            return self._at(0, 8)
        delta = self._number(23, 4)
        return delta if isinstance(delta, Raised) else wrap64(self._at(0, 8) + delta)

    @property
    def next_offset(self) -> int | Raised:
        """The offset behind the last one."""
        last = self.last_offset
        return last if isinstance(last, Raised) else wrap64(last + 1)

    @property
    def crc(self) -> int | Raised:
        """The stored checksum."""
        return self._number(12 if self.is_legacy else 17, 4, signed=False)

    @property
    def attributes(self) -> int | Raised:
        """The stored attributes, an int8 or int16; only the low byte has a meaning."""
        return self._number(17, 1) if self.is_legacy else self._number(21, 2)

    @property
    def compression(self) -> str | Raised:
        """The codec's name; an unknown codec raises invalid-argument (BATCH-18)."""
        attributes = self.attributes
        if isinstance(attributes, Raised):
            return attributes
        codec = attributes % 8
        return COMPRESSIONS[codec] if is_known(codec, self.profile) else INVALID_ARGUMENT

    @property
    def timestamp_type(self) -> str | Raised:
        """NoTimestampType (magic 0), CreateTime or LogAppendTime."""
        is_log_append = self._flag(LOG_APPEND_TIME_BIT)
        if isinstance(is_log_append, Raised):
            return is_log_append
        if self.magic == 0:
            return TIMESTAMP_TYPES[0]
        return TIMESTAMP_TYPES[2 if is_log_append else 1]

    @property
    def base_timestamp(self) -> int | None | Raised:
        """What timestamps are relative to, or the delete horizon; None before magic 2."""
        return None if self.is_legacy else self._number(27, 8)

    @property
    def max_timestamp(self) -> int | Raised:
        """The largest timestamp; -1 in magic 0."""
        if self.magic == 0:
            header = self._header()
            return header if isinstance(header, Raised) else NO_TIMESTAMP
        return self._number(18, 8) if self.is_legacy else self._number(35, 8)

    @property
    def partition_leader_epoch(self) -> int | Raised:
        """The leader's epoch; -1 if there is none."""
        return -1 if self.is_legacy else self._number(12, 4)

    @property
    def producer_id(self) -> int | Raised:
        """The producer's id; -1 if there is none."""
        return -1 if self.is_legacy else self._number(43, 8)

    @property
    def producer_epoch(self) -> int | Raised:
        """The producer's epoch; -1 if there is none."""
        return -1 if self.is_legacy else self._number(51, 2)

    @property
    def base_sequence(self) -> int | Raised:
        """The first sequence number; -1 if there is none."""
        return NO_SEQUENCE if self.is_legacy else self._number(53, 4)

    @property
    def last_sequence(self) -> int | Raised:
        """The sequence number of the last offset (BATCH-5); -1 if there is none."""
        base = self.base_sequence
        if base == NO_SEQUENCE or isinstance(base, Raised):
            return base
        delta = self._number(23, 4)
        return delta if isinstance(delta, Raised) else increment_sequence(base, delta)

    @property
    def record_count(self) -> int | None | Raised:
        """The stored count; None before magic 2, which does not store it (BATCH-12)."""
        return None if self.is_legacy else self._number(57, 4)

    @property
    def is_transactional(self) -> bool | Raised:
        """Whether it belongs to a transaction."""
        return False if self.is_legacy else self._flag(TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool | Raised:
        """Whether it holds a control record (BATCH-19)."""
        return False if self.is_legacy else self._flag(CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool | Raised:
        """Whether the base timestamp says when tombstones may go; unknown before 3.1."""
        if self.is_legacy or not self.profile.delete_horizon_known:
            return False
        return self._flag(DELETE_HORIZON_BIT)

    def is_valid(self) -> bool | Raised:
        """Return whether the size is not too small and the checksum is right (BATCH-14)."""
        whole = self.loaded()
        if isinstance(whole, Raised):
            return whole
        if self.is_legacy:
            return self.size_bytes >= LOG_OVERHEAD + MIN_MESSAGE_BYTES and self.crc_of(
                whole.data
            ) == int.from_bytes(whole.data[12:16], "big")
        return self.size_bytes >= BATCH_HEADER_BYTES and self.crc_of(whole.data) == whole.crc

    def crc_of(self, data: bytes) -> int:
        """Return the checksum of the bytes of a batch of this format (BATCH-2, -3)."""
        return crc32(data[16:]) if self.is_legacy else crc32c(data[21:])

    def ensure_valid(self) -> None | Raised:
        """Raise corrupt-record unless it is valid; no record is looked at."""
        valid = self.is_valid()
        if isinstance(valid, Raised):
            return valid
        return None if valid else Raised(self.profile.ensure_valid_kind)

    def records(self) -> tuple[Record, ...] | Raised:
        """Return every record, or the error that reading them ends with (BATCH-16)."""
        found = self.records_until_error()
        return found.records if found.error is None else found.error

    def records_until_error(self) -> Records:
        """Return the records that an iteration hands out, and its error.

        A compressed batch is read as a whole first, so it hands out none before an error, and the
        profile says what a bad length in it is (BATCH-18).
        """
        whole = self.loaded()
        if isinstance(whole, Raised):
            return Records(error=whole)
        return read_records(whole._messages()) if self.is_legacy else whole._records_of_magic_2()

    def times_until_error(self, is_streamed: bool = False) -> Times:
        """Return timestamp and offset of the same records; streamed, of those before an error in a
        compressed batch, too.

        Those of a message of magic 0 and 1 can be read where its key or value can't.
        """
        whole = self.loaded()
        if isinstance(whole, Raised):
            return Times(error=whole)
        if self.is_legacy:
            messages, error = whole._messages()
            return Times(tuple(Time(one.timestamp, one.offset) for one in messages), error)
        found = whole._records_of_magic_2(is_streamed)
        return Times(tuple(Time(one.timestamp, one.offset) for one in found.records), found.error)

    def _messages(self) -> Messages:
        return read_messages(LegacyRecord(self.data), self.codecs, self.profile)

    def _records_of_magic_2(self, is_streamed: bool = False) -> Records:
        count, compression = self.record_count, self.compression
        if isinstance(count, Raised) or count is None:
            return Records(error=count)
        if count == 0 and (not is_streamed or compression == "none"):
            return Records()
        if isinstance(compression, Raised):
            return Records(error=compression)
        base = RecordBase(
            self._at(0, 8),
            self._at(27, 8),
            self._at(53, 4),
            self._at(35, 8) if self.timestamp_type == "LogAppendTime" else None,
        )
        stored = self.data[BATCH_HEADER_BYTES:]
        if compression == "none" and len(stored) > self.codecs.limit_bytes:
            raise BeyondLimitError(self.codecs.limit_bytes)
        if compression == "none":
            return decode_records(stored, count, base, self.profile)
        codec = COMPRESSIONS.index(compression)
        inflated, ended = inflate_until_error(codec, stored, 2, self.codecs)
        if count == 0:
            return Records(error=None if opens(codec, stored, 2, self.codecs) else ended)
        if ended is not None and not is_streamed:
            return Records(error=ended)
        found = decode_inflated_records(inflated, count, base, self.profile, ended)
        return found if found.error is None or is_streamed else Records(error=found.error)

    def _at(self, position: int, width: int) -> int:
        return int.from_bytes(self.data[position : position + width], "big", signed=True)

    def _number(self, position: int, width: int, signed: bool = True) -> int | Raised:
        header = self._header()
        if isinstance(header, Raised):
            return header
        if position + width > len(header):
            return Raised(ErrorKind.INDEX_ERROR)
        return int.from_bytes(header[position : position + width], "big", signed=signed)

    def _flag(self, bit: int) -> bool | Raised:
        attributes = self.attributes
        return attributes if isinstance(attributes, Raised) else attributes // bit % 2 == 1

    def _header(self) -> bytes | Raised:
        """Return the bytes that fields are read from; a file has to have the whole header."""
        if not self.in_file:
            return self.data
        if not self.profile.header_is_read_alone:
            whole = self.loaded()
            return whole if isinstance(whole, Raised) else whole.data
        if self.magic < 0:
            return INVALID_ARGUMENT
        needed = LEGACY_HEADER_BYTES.get(self.magic, BATCH_HEADER_BYTES)
        if len(self.data) < needed:
            return Raised(ErrorKind.KAFKA_ERROR)
        return self.data[:needed]

    def loaded(self) -> "RecordBatch | Raised":
        """Return the batch in memory, where no following byte can be read.

        One that only fits where limits wrap has a negative size, or nearly 2 GiB.
        """
        wraps = self.size_bytes < 0 or self.position + self.size_bytes > INT32_MAX
        if wraps and self.in_file and not self.profile.header_is_read_alone:
            return Raised(ErrorKind.OUT_OF_MEMORY)
        if self.size_bytes < 0:
            return INVALID_ARGUMENT
        if len(self.data) < self.size_bytes:
            return Raised(ErrorKind.KAFKA_ERROR)
        return replace(self, data=self.data[: self.size_bytes], in_file=False)


def read_batch(
    data: bytes,
    position: int = 0,
    *,
    codecs: Codecs = NO_CODECS,
    profile: Profile = NEWEST_KAFKA,
) -> RecordBatch | Raised:
    """Return the batch that begins at `position`.

    Fewer bytes than its size says, a size below 14 or a magic outside 0..2 raise corrupt-record; a
    size near 2^31 may raise invalid-argument (SCAN-9).
    """
    available = len(data) - position
    if position < 0 or available < HEADER_UP_TO_MAGIC_BYTES:
        return Raised(ErrorKind.CORRUPT_RECORD)
    size = int32_at(data, position + 8)
    has_magic = data[position + 16] < 3 or not profile.memory_scanner_checks_magic_first
    if profile.memory_scanner_wraps and LOG_OVERHEAD + size > INT32_MAX and has_magic:
        return INVALID_ARGUMENT
    if size < MIN_MESSAGE_BYTES or LOG_OVERHEAD + size > available or data[position + 16] > 2:
        return Raised(ErrorKind.CORRUPT_RECORD)
    whole = data[position : position + LOG_OVERHEAD + size]
    return RecordBatch(whole, position, len(whole), codecs=codecs, profile=profile)
