# SPDX-License-Identifier: Apache-2.0
"""Messages of magic 0 and 1 as bytes: reading one, splitting many, writing.

Upstream: Kafka 4.4.0, LegacyRecord.
Layout: int64 offset, int32 size of the rest, uint32 CRC-32 of what follows, int8 magic, int8
    attributes, int64 timestamp (magic 1), int32 length and key, int32 length and value. A negative
    length is null.
Laws: BATCH-1, BATCH-2, BATCH-6, BATCH-11.
"""

from dataclasses import dataclass

from segproof_model.kafka.format.compression import crc32
from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

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
    def crc(self) -> int:
        """The stored checksum."""
        return int.from_bytes(self.entry[12:16], "big")

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
    def key_position(self) -> int:
        """Where the length of the key is."""
        return 18 if self.magic == 0 else 26

    @property
    def key(self) -> bytes | None:
        """The key; a length beyond the message is an invalid argument."""
        return self._sized(self.key_position)

    @property
    def value(self) -> bytes | None:
        """The value; no room for its length is an index error."""
        length = int32_at(self.entry, self.key_position)
        return self._sized(self.key_position + 4 + max(0, length))

    def is_valid(self) -> bool:
        """Return whether the checksum is right (BATCH-2)."""
        return crc32(self.entry[16:]) == self.crc

    def _sized(self, position: int) -> bytes | None:
        if position + 4 > len(self.entry):
            refuse(ErrorKind.INDEX_ERROR)
        size = int32_at(self.entry, position)
        if size > len(self.entry) - position - 4:
            refuse(ErrorKind.INVALID_ARGUMENT)
        return None if size < 0 else self.entry[position + 4 : position + 4 + size]


def split_messages(data: bytes) -> list[LegacyRecord]:
    """Return the messages that lie back to back; one that the end cuts is dropped (BATCH-11)."""
    messages = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        size = int32_at(data, position + 8)
        end = position + LOG_OVERHEAD + size
        if size < MIN_MESSAGE_BYTES:
            refuse(ErrorKind.CORRUPT_RECORD)
        if end > len(data):
            break
        messages.append(LegacyRecord(data[position:end]))
        position = end
    return messages


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


def _with_length(data: bytes | None) -> bytes:
    return int32_bytes(-1) if data is None else int32_bytes(len(data)) + data
