# SPDX-License-Identifier: Apache-2.0
"""Messages of magic 0 and 1 as batches: each is one, and a wrapper holds many, compressed.

Upstream: Kafka 4.4.0, AbstractLegacyRecordBatch. Otherwise: record_releases.
Layout: see legacy_record. A wrapper's value is the compressed concatenation of such messages.
Laws: BATCH-1, BATCH-2, BATCH-4, BATCH-6, BATCH-9, BATCH-10, BATCH-11, BATCH-14.
Not covered: an inner magic that differs from its wrapper's is read by its own rules.
"""

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from segproof_model.kafka.format.compression import NONE, ZSTD, crc32, inflate
from segproof_model.kafka.format.legacy_record import (
    LOG_OVERHEAD,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    LegacyRecord,
    split_messages,
)
from segproof_model.kafka.format.record import NO_SEQUENCE, Record
from segproof_model.kafka.format.record_batch import RecordBatch, Time, attribute, number
from segproof_model.language.integers import int64_at, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

HEADER_BYTES = {0: 18, 1: 26}


class Message(NamedTuple):
    """A message with the offset and timestamp that count; its key and value are not read yet."""

    offset: int
    timestamp: int
    stored: LegacyRecord


class LegacyRecordBatch(RecordBatch):
    """A message, perhaps around others. It says nothing of producers, transactions and epochs."""

    is_legacy = True
    smallest_bytes = LOG_OVERHEAD + MIN_MESSAGE_BYTES

    crc = number(12, 4, signed=False)
    attributes = number(17, 1)
    stored_timestamp = number(18, 8)
    base_timestamp = record_count = None  # type: ignore[assignment]  # it has no place for them
    partition_leader_epoch = producer_id = producer_epoch = -1
    base_sequence = last_sequence = NO_SEQUENCE
    is_transactional = is_control = has_delete_horizon = False

    @property
    def header_bytes(self) -> int:
        """The size of its header, of which there is none for a negative magic."""
        return HEADER_BYTES[self.magic] if self.magic >= 0 else refuse(ErrorKind.INVALID_ARGUMENT)

    @property
    def base_offset(self) -> int:
        """The offset of the first record, which must be read for it."""
        for message in self.messages():
            return message.offset
        return refuse(ErrorKind.INDEX_ERROR)

    @property
    def last_offset(self) -> int:
        """The framed offset: that of the last record (BATCH-4)."""
        return int64_at(self.data, 0)

    @attribute
    def max_timestamp(self) -> int:
        """The timestamp of the message, the largest of those that it wraps; -1 in magic 0."""
        if self.magic == 0:
            self.header()
            return NO_TIMESTAMP
        return self.stored_timestamp

    @property
    def timestamp_type(self) -> str:
        """NoTimestampType (magic 0), CreateTime or LogAppendTime."""
        found = super().timestamp_type
        return "NoTimestampType" if self.magic == 0 else found

    def crc_of(self, data: bytes) -> int:
        """Return the checksum of what follows it (BATCH-2)."""
        return crc32(data[16:])

    def records(self) -> Iterator[Record]:
        """Yield the messages with their keys and values, until one has none to read."""
        for offset, timestamp, stored in self.messages():
            yield Record(offset, timestamp, stored.key, stored.value)

    def times(self) -> Iterator[Time]:
        """Yield timestamp and offset of each, also where its key or value can't be read."""
        return (Time(message.timestamp, message.offset) for message in self.messages())

    def streamed_times(self) -> Iterator[Time]:
        """Yield the same as `times`: a wrapper is always read as a whole."""
        return self.times()

    # --- messages ------------------------------------------------------------------------------

    def messages(self) -> Iterator[Message]:
        """Yield the message itself, or the messages that it wraps (BATCH-9 to -11)."""
        outer = LegacyRecord(self.loaded().data)
        if outer.codec == NONE:
            yield Message(outer.offset, outer.timestamp, outer)
            return
        inner = self.wrapped(outer)
        base = self.base_of(outer, inner)
        for stored in inner:
            if stored.codec != NONE:
                self.refuse_codec(stored.codec)
            is_given = outer.is_log_append_time and stored.magic == 1
            timestamp = outer.timestamp if is_given else stored.timestamp
            yield Message(wrap64(base + stored.offset), timestamp, stored)

    def wrapped(self, outer: LegacyRecord) -> list[LegacyRecord]:
        """Return the messages inside a wrapper as they are stored."""
        if outer.codec >= ZSTD or outer.magic not in (0, 1):
            self.refuse_codec(outer.codec)
        value = outer.value
        if value is None:
            self.refuse_missing_value(outer)
        return split_messages(inflate(outer.codec, value, outer.magic, self.codecs))

    def refuse_codec(self, codec: int) -> NoReturn:
        """Refuse a codec that is unknown, or known and out of place."""
        is_known = codec < len(self.codec_names)
        refuse(ErrorKind.INVALID_RECORD if is_known else ErrorKind.INVALID_ARGUMENT)

    def refuse_missing_value(self, outer: LegacyRecord) -> NoReturn:
        """Refuse a wrapper without a value (BATCH-11)."""
        refuse(ErrorKind.INVALID_RECORD)

    def base_of(self, outer: LegacyRecord, inner: list[LegacyRecord]) -> int:
        """Return what the offsets inside a wrapper are relative to (BATCH-10)."""
        if not inner:
            refuse(ErrorKind.INVALID_RECORD)
        if outer.magic == 0 or outer.offset == 0:
            return 0
        if outer.offset < inner[-1].offset:
            refuse(ErrorKind.INVALID_RECORD)
        return wrap64(outer.offset - inner[-1].offset)
