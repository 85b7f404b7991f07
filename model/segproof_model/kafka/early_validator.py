# SPDX-License-Identifier: Apache-2.0
"""What a leader of the oldest releases asks of messages, and what it writes into them.

Upstream: Kafka, LogValidator, MemoryRecordsBuilder, ByteBufferLogInputStream (0.10.2).
Laws: LOG-9, LOG-10.
Not covered: another message.format.version than that of magic 1; a log that wants a codec of its
    own, but for none.
Used by: partition_appending.
"""

from collections.abc import Sequence
from typing import NamedTuple

from segproof_model.kafka.compression import COMPRESSIONS, Codecs, crc32, deflate
from segproof_model.kafka.legacy_record import (
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    LegacyRecord,
    encode_message,
    read_messages,
)
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_validator import Validated
from segproof_model.kafka.record import INVALID_ARGUMENT, INVALID_RECORD
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.language.integers import int32_at, int64_bytes, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import Profile

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INDEX_ERROR = Raised(ErrorKind.INDEX_ERROR)
INVALID_TIMESTAMP = Raised(ErrorKind.INVALID_TIMESTAMP)
FORMAT = 1
"""The magic of what a leader writes."""


class _Message(NamedTuple):
    """A message as its wrapper shows it, if it has one."""

    offset: int
    timestamp: int
    is_given: bool
    """Whether its log gave it its timestamp."""
    stored: LegacyRecord


def early_validated(
    batches: Sequence[RecordBatch],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    codecs: Codecs,
    profile: Profile,
) -> Validated | Raised:
    """Check the messages that a leader is given, and give them offsets and timestamps.

    What is not compressed, and stays so, is written into where it is, but if one message is of
    magic 0: then those are written anew. What is compressed keeps its first wrapper if its
    messages count from 0; otherwise one wrapper, or none, is written anew of all.
    """
    compressions = [batch.compression for batch in batches]
    source = next((one for one in reversed(compressions) if one != "none"), "none")
    assert not isinstance(source, Raised)
    target = {"producer": source, "uncompressed": "none"}.get(
        config.compression_type, config.compression_type
    )
    shallow = [LegacyRecord(batch.data) for batch in batches]
    if any(one.magic not in (0, FORMAT) for one in shallow):
        return INVALID_ARGUMENT
    if source == target == "none":
        write = _placed if all(one.magic == FORMAT for one in shallow) else _converted
        return write([_shown(one) for one in shallow], first_offset, now_ms, config, profile)
    messages = _unwrapped(shallow, now_ms, config, codecs, profile)
    if isinstance(messages, Raised):
        return messages
    counted = [(number, FORMAT) for number in range(len(messages))]
    if source == target and [(one.offset, one.stored.magic) for one in messages] == counted:
        return _in_its_wrapper(shallow, messages, first_offset, now_ms, config)
    return _rewrapped(messages, target, first_offset, now_ms, config, codecs)


def _shown(stored: LegacyRecord) -> _Message:
    return _Message(stored.offset, stored.timestamp, stored.is_log_append_time, stored)


# --- checks --------------------------------------------------------------------------------------


def _refusal(message: _Message, now_ms: int, config: LogConfig, profile: Profile) -> Raised | None:
    """Why a message is not taken, if so: its key first, then its time."""
    return _key_refusal(message, config) or _time_refusal(message, now_ms, config, profile)


def _key_refusal(message: _Message, config: LogConfig) -> Raised | None:
    """Why a compacted log does not take a message: it has no key."""
    if "compact" not in config.cleanup_policy:
        return None
    entry = message.stored.entry
    position = 18 if message.stored.magic == 0 else 26
    if position + 4 > len(entry):
        return INDEX_ERROR
    return CORRUPT_RECORD if int32_at(entry, position) < 0 else None


def _time_refusal(
    message: _Message, now_ms: int, config: LogConfig, profile: Profile
) -> Raised | None:
    """Why the timestamp of a message is not taken: too far from now, or given by a log."""
    is_exempt = profile.missing_time_is_taken and message.timestamp == NO_TIMESTAMP
    distance = abs(wrap64(message.timestamp - now_ms))
    is_far = wrap64(distance) > config.message_timestamp_before_max_ms
    if config.message_timestamp_type == "CreateTime" and is_far and not is_exempt:
        return INVALID_TIMESTAMP
    return INVALID_TIMESTAMP if message.is_given else None


# --- what is not compressed ----------------------------------------------------------------------


def _placed(
    messages: Sequence[_Message],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    profile: Profile,
) -> Validated | Raised:
    """Write offsets into the messages, and timestamps where the log gives them."""
    is_given = config.message_timestamp_type == "LogAppendTime"
    written, largest, offset_of_largest = b"", NO_TIMESTAMP, -1
    for offset, message in enumerate(messages, first_offset):
        refused = _refusal(message, now_ms, config, profile)
        if refused is not None:
            return refused
        entry = int64_bytes(offset) + message.stored.entry[8:]
        written += _timed(entry, now_ms, is_given=True) if is_given else entry
        if message.timestamp > largest:
            largest, offset_of_largest = message.timestamp, offset
    if is_given:
        largest, offset_of_largest = now_ms, first_offset
    end = first_offset + len(messages) - 1
    return Validated(written, end, largest, offset_of_largest, is_rewritten=False)


def _timed(entry: bytes, timestamp: int, *, is_given: bool) -> bytes:
    """Return a message of magic 1 with this timestamp, its kind, and a new checksum."""
    attributes = entry[17] & ~TIMESTAMP_TYPE_BIT | (TIMESTAMP_TYPE_BIT if is_given else 0)
    checked = entry[16:17] + bytes([attributes]) + int64_bytes(timestamp) + entry[26:]
    return entry[:12] + crc32(checked).to_bytes(4, "big") + checked


def _converted(
    messages: Sequence[_Message],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    profile: Profile,
) -> Validated | Raised:
    """Write messages of magic 0 anew; the others get an offset, and keep their timestamps."""
    is_given = config.message_timestamp_type == "LogAppendTime"
    written, timed = b"", []
    for offset, message in enumerate(messages, first_offset):
        refused = _refusal(message, now_ms, config, profile)
        if refused is not None:
            return refused
        is_new = message.stored.magic != FORMAT
        timestamp = now_ms if is_given and is_new else message.timestamp
        body = _with_format(message.stored, timestamp, is_given=is_given)
        if isinstance(body, Raised):
            return body
        written += int64_bytes(offset) + body
        timed.append((timestamp, offset))
    return _told(written, timed, now_ms, config, is_wrapped=False)


def _with_format(stored: LegacyRecord, timestamp: int, *, is_given: bool) -> bytes | Raised:
    """Return a message without its offset, written anew if it is not of the format."""
    if stored.magic == FORMAT:
        return stored.entry[8:]
    key, value = stored.key, stored.value
    if isinstance(key, Raised):
        return key
    if isinstance(value, Raised):
        return value
    attributes = TIMESTAMP_TYPE_BIT if is_given else 0
    return encode_message(FORMAT, 0, timestamp, attributes, key, value)[8:]


def _told(
    written: bytes,
    timed: Sequence[tuple[int, int]],
    now_ms: int,
    config: LogConfig,
    *,
    is_wrapped: bool,
) -> Validated:
    """Return what was written anew, and what is told of (timestamp, offset) of its messages."""
    end = timed[-1][1]
    largest = max(timestamp for timestamp, _ in timed)
    offset = next(offset for timestamp, offset in timed if timestamp == largest)
    if largest <= NO_TIMESTAMP:
        largest, offset = NO_TIMESTAMP, end
    if config.message_timestamp_type == "LogAppendTime":
        largest, offset = now_ms, end
    return Validated(written, end, largest, end if is_wrapped else offset, is_rewritten=True)


# --- what is compressed --------------------------------------------------------------------------


def _unwrapped(
    shallow: Sequence[LegacyRecord],
    now_ms: int,
    config: LogConfig,
    codecs: Codecs,
    profile: Profile,
) -> list[_Message] | Raised:
    """Return all messages, checked, whether they were wrapped or not."""
    found: list[_Message] = []
    for outer in shallow:
        wrapped = read_messages(outer, codecs, profile)
        if any(one.stored.magic != outer.magic for one in wrapped.messages):
            return INVALID_RECORD
        for offset, timestamp, stored in wrapped.messages:
            kind = stored if stored is outer else outer
            message = _Message(offset, timestamp, kind.is_log_append_time, stored)
            refused = _key_refusal(message, config)
            if refused is None and stored.magic > 0:
                refused = _time_refusal(message, now_ms, config, profile)
            body = refused or _with_format(stored, timestamp, is_given=False)
            if isinstance(body, Raised):
                return body
            found.append(message)
        if wrapped.error is not None or not wrapped.messages:
            return wrapped.error or INDEX_ERROR
    return found


def _in_its_wrapper(
    shallow: Sequence[LegacyRecord],
    messages: Sequence[_Message],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
) -> Validated | Raised:
    """Write the last offset and the largest timestamp into the first wrapper.

    What follows that stays as it was given.
    """
    for message in messages:
        entry = message.stored.entry
        if crc32(entry[16:]).to_bytes(4, "big") != entry[12:16]:
            return INVALID_RECORD
    is_given = config.message_timestamp_type == "LogAppendTime"
    largest = max(NO_TIMESTAMP, *(message.timestamp for message in messages))
    timestamp = now_ms if is_given else largest
    end = first_offset + len(messages) - 1
    first, *rest = shallow
    entry = int64_bytes(end) + first.entry[8:]
    if is_given or first.is_log_append_time or first.timestamp != timestamp:
        entry = _timed(entry, timestamp, is_given=is_given)
    written = entry + b"".join(one.entry for one in rest)
    return Validated(written, end, timestamp, end, is_rewritten=False)


def _rewrapped(
    messages: Sequence[_Message],
    compression: str,
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    codecs: Codecs,
) -> Validated | Raised:
    """Write all messages anew, in one wrapper if they are compressed."""
    if not messages:
        return INVALID_ARGUMENT
    is_wrapped = compression != "none"
    inner, timed = b"", []
    for number, message in enumerate(messages):
        body = _with_format(message.stored, message.timestamp, is_given=False)
        if isinstance(body, Raised):
            return body
        inner += int64_bytes(number if is_wrapped else first_offset + number) + body
        timed.append((message.timestamp, first_offset + number))
    told = _told(inner, timed, now_ms, config, is_wrapped=is_wrapped)
    if not is_wrapped:
        return told
    codec = COMPRESSIONS.index(compression)
    value = deflate(codec, inner, FORMAT, codecs)
    if isinstance(value, Raised):
        return value
    is_given = config.message_timestamp_type == "LogAppendTime"
    attributes = codec + (TIMESTAMP_TYPE_BIT if is_given else 0)
    wrapper = encode_message(FORMAT, told.last_offset, told.max_timestamp, attributes, None, value)
    return told._replace(records=wrapper)


__all__ = ["early_validated"]
