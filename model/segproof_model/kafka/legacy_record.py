# SPDX-License-Identifier: Apache-2.0
"""Messages of magic 0 and 1, and the wrappers that hold them compressed.

Upstream: Kafka, LegacyRecord, AbstractLegacyRecordBatch (since 0.11.0).
Layout: int64 offset, int32 size of the rest, uint32 CRC-32 of what follows, int8 magic, int8
attributes, int64 timestamp (magic 1), int32 length and key, int32 length and value. A negative
length is null. A wrapper's value is the compressed concatenation of such messages.
Laws: BATCH-1, BATCH-2, BATCH-6, BATCH-9, BATCH-10, BATCH-11.
Not covered: an inner magic that differs from its wrapper's is read by its own rules.
Used by: record_batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from segproof_model.kafka.compression import (
    GZIP,
    NONE,
    ZSTD,
    Codecs,
    crc32,
    deflate,
    inflate,
    is_known,
)
from segproof_model.kafka.record import INVALID_ARGUMENT, INVALID_RECORD, Record, Records
from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import Profile

LOG_OVERHEAD = 12
"""Bytes of offset and size, in front of every batch and message."""
MIN_MESSAGE_BYTES = 14
"""The size field of the smallest message: magic 0, no key, no value."""
TIMESTAMP_TYPE_BIT = 8
NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class LegacyRecord:
    """A message of magic 0 or 1; `entry` is all of it, from its offset on."""

    entry: bytes

    @property
    def offset(self) -> int:
        """The framed offset: absolute, or inside a wrapper of magic 1 relative."""
        return int64_at(self.entry, 0)

    @property
    def magic(self) -> int:
        """The format; a file may hold any byte here, and a negative one is read like 1."""
        return int.from_bytes(self.entry[16:17], "big", signed=True)

    @property
    def codec(self) -> int:
        """The codec number; not 0 in a wrapper."""
        return self.entry[17] % 8

    @property
    def timestamp(self) -> int:
        """Milliseconds; -1 in magic 0."""
        return NO_TIMESTAMP if self.magic == 0 else int64_at(self.entry, 18)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker gave the timestamp."""
        return self.magic != 0 and bool(self.entry[17] & TIMESTAMP_TYPE_BIT)

    @property
    def key(self) -> bytes | None | Raised:
        """The key; a length beyond the message raises invalid-argument."""
        return self._sized(self._key_position)

    @property
    def value(self) -> bytes | None | Raised:
        """The value; no room for its length raises an index error."""
        length = int32_at(self.entry, self._key_position)
        return self._sized(self._key_position + 4 + max(0, length))

    @property
    def _key_position(self) -> int:
        return 18 if self.magic == 0 else 26

    def _sized(self, position: int) -> bytes | None | Raised:
        if position + 4 > len(self.entry):
            return Raised(ErrorKind.INDEX_ERROR)
        size = int32_at(self.entry, position)
        if size > len(self.entry) - position - 4:
            return INVALID_ARGUMENT
        return None if size < 0 else self.entry[position + 4 : position + 4 + size]


class Message(NamedTuple):
    """A message with the offset and timestamp that count; its key and value are not read yet."""

    offset: int
    timestamp: int
    stored: LegacyRecord


class Messages(NamedTuple):
    """What reading one message after another gives: some, and the error that ended it."""

    messages: tuple[Message, ...] = ()
    error: Raised | None = None


def encode_message(
    magic: int,
    offset: int,
    timestamp: int,
    attributes: int,
    key: bytes | None,
    value: bytes | None,
) -> bytes:
    """Return one message of magic 0 or 1; magic 0 has no place for the timestamp."""
    body = (
        bytes([magic, attributes])
        + (int64_bytes(timestamp) if magic == 1 else b"")
        + _with_length(key)
        + _with_length(value)
    )
    return int64_bytes(offset) + int32_bytes(4 + len(body)) + crc32(body).to_bytes(4, "big") + body


def encode_messages(
    records: Sequence[Record],
    magic: int,
    codec: int,
    base_offset: int,
    is_create_time: bool,
    log_append_time: int | None,
    codecs: Codecs,
) -> bytes | Raised:
    """Return the records as messages, or as one wrapper of them where there is a codec."""
    attributes = 0 if is_create_time or magic == 0 else TIMESTAMP_TYPE_BIT
    relative_to = base_offset if codec != NONE and magic == 1 else 0

    def timestamp_of(record: Record) -> int:
        return record.timestamp if log_append_time is None else log_append_time

    messages = b"".join(
        encode_message(
            magic,
            record.offset - relative_to,
            timestamp_of(record),
            attributes,
            record.key,
            record.value,
        )
        for record in records
    )
    if codec == NONE:
        return messages
    largest_timestamp = max(timestamp_of(record) for record in records)
    value = deflate(codec, messages, magic, codecs)
    if isinstance(value, Raised):
        return value
    wrapped = attributes + codec
    return encode_message(magic, records[-1].offset, largest_timestamp, wrapped, None, value)


def read_messages(outer: LegacyRecord, codecs: Codecs, profile: Profile) -> Messages:
    """Return the message itself, or the messages that it wraps (BATCH-9 to -11)."""
    if outer.codec == NONE:
        return Messages((Message(outer.offset, outer.timestamp, outer),))
    if not is_known(outer.codec, profile):
        return Messages(error=INVALID_ARGUMENT)
    if outer.codec == ZSTD or outer.magic not in (0, 1):
        return Messages(error=INVALID_RECORD)
    value = outer.value
    if isinstance(value, Raised) or value is None:
        return Messages(error=value or _error_of_no_value(outer, profile))
    inflated = inflate(outer.codec, value, outer.magic, codecs)
    if isinstance(inflated, Raised):
        return Messages(error=inflated)
    inner = inner_messages(inflated)
    if isinstance(inner, Raised):
        return Messages(error=inner)
    return _unwrapped(outer, inner, profile) if inner else _without_messages(outer, profile)


def _error_of_no_value(outer: LegacyRecord, profile: Profile) -> Raised:
    """Return what a wrapper without a value raises; where none is looked for, its codec does."""
    if profile.wrapper_is_checked:
        return INVALID_RECORD
    return Raised(ErrorKind.NULL if outer.codec == GZIP else ErrorKind.KAFKA_ERROR)


def _without_messages(outer: LegacyRecord, profile: Profile) -> Messages:
    """Return what a wrapper around nothing gives; in magic 1 its last message is looked for."""
    if profile.wrapper_is_checked:
        return Messages(error=INVALID_RECORD)
    return Messages(error=Raised(ErrorKind.INDEX_ERROR) if outer.magic == 1 else None)


def read_records(messages: Messages) -> Records:
    """Return the messages with their keys and values, up to the first that has none to read."""
    records: list[Record] = []
    for offset, timestamp, stored in messages.messages:
        key, value = stored.key, stored.value
        if isinstance(key, Raised):
            return Records(tuple(records), key)
        if isinstance(value, Raised):
            return Records(tuple(records), value)
        records.append(Record(offset, timestamp, key, value))
    return Records(tuple(records), messages.error)


def inner_messages(data: bytes) -> list[LegacyRecord] | Raised:
    """Split what a wrapper inflates to; a message that the end cuts is dropped (BATCH-11)."""
    messages = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        size = int32_at(data, position + 8)
        end = position + LOG_OVERHEAD + size
        if size < MIN_MESSAGE_BYTES:
            return Raised(ErrorKind.CORRUPT_RECORD)
        if end > len(data):
            break
        messages.append(LegacyRecord(data[position:end]))
        position = end
    return messages


def _unwrapped(outer: LegacyRecord, inner: list[LegacyRecord], profile: Profile) -> Messages:
    """Return the inner messages with the offsets and timestamps that the wrapper gives them."""
    base = 0
    if outer.magic == 1 and not profile.wrapper_is_checked:
        base = max(0, wrap64(outer.offset - inner[-1].offset))
    elif outer.magic == 1 and outer.offset != 0:
        base = wrap64(outer.offset - inner[-1].offset)
        if outer.offset < inner[-1].offset:
            return Messages(error=INVALID_RECORD)
    messages: list[Message] = []
    for stored in inner:
        if stored.codec != NONE:
            known = is_known(stored.codec, profile)
            return Messages(tuple(messages), INVALID_RECORD if known else INVALID_ARGUMENT)
        is_given = outer.is_log_append_time and stored.magic == 1
        timestamp = outer.timestamp if is_given else stored.timestamp
        messages.append(Message(wrap64(base + stored.offset), timestamp, stored))
    return Messages(tuple(messages))


def _with_length(data: bytes | None) -> bytes:
    return int32_bytes(-1) if data is None else int32_bytes(len(data)) + data
