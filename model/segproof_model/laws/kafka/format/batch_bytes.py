# SPDX-License-Identifier: Apache-2.0
"""How the laws read batches: their own decoding of headers, records and wrappers."""

import struct
import zlib
from collections import namedtuple
from typing import Any

from segproof_model.kafka.format.compression import ZSTD, crc32c, inflate
from segproof_model.kafka.format.legacy_record import LegacyRecord
from segproof_model.kafka.format.record import Record
from segproof_model.language.integers import int32_at, int64_at
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kept_answers import kept

HEADER = struct.Struct(">q4xibIhiqqqhii")
Header = namedtuple(
    "Header",
    "base_offset partition_leader_epoch magic crc attributes last_offset_delta base_timestamp"
    " max_timestamp producer_id producer_epoch base_sequence record_count",
)


def is_there(batch: Any) -> bool:
    """Return whether every byte of the batch can be read, and they could be a message at least."""
    return bool(26 <= batch.size_bytes <= len(batch.data))


@kept
def header_of(batch: Any) -> Any:
    """Return the header of a batch of magic 2; None for any other batch."""
    if batch.is_legacy or not is_there(batch) or batch.size_bytes < HEADER.size:
        return None
    return Header._make(HEADER.unpack_from(batch.data))


def entries_of(data: bytes) -> list[bytes]:
    """Return the batches back to back, up to the first that is too small or incomplete."""
    entries, position = [], 0
    while position + 12 <= len(data):
        end = position + 12 + int32_at(data, position + 8)
        if not position + 26 <= end <= len(data):
            break
        entries.append(data[position:end])
        position = end
    return entries


def has_right_checksum(entry: bytes) -> bool:
    """Return whether the checksum of a batch is right."""
    if 2 <= entry[16] < 128:
        return int.from_bytes(entry[17:21], "big") == crc32c(entry[21:])
    return int.from_bytes(entry[12:16], "big") == zlib.crc32(entry[16:])


def number_at(data: bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """Return the varint at a position, and the position after it. Raises: IndexError if it has no
    end
    """
    if (first := data[position]) < 128:
        return first >> 1 ^ -(first & 1), position + 1
    value = 0
    for n, byte in enumerate(data[position : position + bits // 7 + 1]):
        value += byte % 128 << 7 * n
        if byte < 128:
            value %= 2**bits
            return value >> 1 ^ -(value & 1), position + n + 1
    raise IndexError


def _skipped(record: bytes, position: int, *, may_be_null: bool = True) -> int:
    """Return the position after a length and as many bytes."""
    size, position = number_at(record, position)
    if size < 0 and not may_be_null:
        raise IndexError
    return position + max(size, 0)


def _timestamp_in(record: bytes) -> int:
    """Return a record's distance from the base timestamp, if the bytes are exactly a record."""
    timestamp, position = number_at(record, 1, 64)
    _, position = number_at(record, position)
    count, position = number_at(record, _skipped(record, _skipped(record, position)))
    for _ in range(count):
        position = _skipped(record, _skipped(record, position, may_be_null=False))
    if count < 0 or position != len(record):
        raise IndexError
    return timestamp


@kept
def timestamps_in(stored: bytes, count: int) -> list[int] | None:
    """Return that of each record; None if the bytes are other than that many whole records."""
    timestamps, position = [], 0
    try:
        for _ in range(count):
            size, position = number_at(stored, position)
            timestamps.append(_timestamp_in(stored[position : position + max(size, 0)]))
            position += size
    except IndexError:
        return None
    return timestamps if position == len(stored) and count > 0 else None


@kept
def stored_in(batch: Any) -> bytes | None:
    """Return the bytes of the records of a batch of magic 2, if they are known."""
    head = header_of(batch)
    if head is None or head.record_count == 0 or isinstance(asked(batch, "compression"), Raised):
        return None
    codec, stored = head.attributes % 8, batch.data[HEADER.size : batch.size_bytes]
    found = outcome_of(inflate, codec, stored, 2, batch.codecs) if codec else stored
    return None if isinstance(found, Raised) else found


def asked(batch: Any, name: str) -> Any:
    """Return a field of a batch, or the refusal."""
    return outcome_of(getattr, batch, name)


@kept
def records_of(batch: Any) -> list[Record] | Raised:
    """Return all records of a batch, or the error."""
    return outcome_of(lambda: list(batch.records()))


@kept
def inner_of(batch: Any) -> bytes | None:
    """Return the inner messages of a wrapper of magic 0 or 1; None for another or a damaged batch.

    A wrapper without a value, or with codec zstd, has none.
    """
    if not batch.is_legacy or not is_there(batch):
        return None
    message = LegacyRecord(batch.data[: batch.size_bytes])
    if message.magic not in (0, 1) or not 0 < message.codec <= ZSTD:
        return None
    value = None if message.codec == ZSTD else outcome_of(lambda: message.value)
    if value is None:
        return b""
    if not isinstance(value, Raised):
        value = outcome_of(inflate, message.codec, value, message.magic, batch.codecs)
    return None if isinstance(value, Raised) else value


def has_small_entry(data: bytes) -> bool:
    """Return whether the bytes after the whole entries claim a size too small for an entry."""
    rest = data[sum(map(len, entries_of(data))) :]
    return len(rest) >= 12 and int32_at(rest, 8) < 14


def relative_offsets(batch: Any) -> list[int]:
    """Return the offsets in a wrapper as they are stored; none unless its messages can be read."""
    inner = inner_of(batch)
    if inner is None or has_small_entry(inner):
        return []
    messages = entries_of(inner)
    is_plain = all(message[17] % 8 == 0 for message in messages)
    return [int64_at(message, 0) for message in messages] if is_plain else []


def offsets_of(batch: Any) -> Any:
    """Return the offset of each record, or the error; no key and no value is read."""
    return outcome_of(lambda: [time.offset for time in batch.times()])
