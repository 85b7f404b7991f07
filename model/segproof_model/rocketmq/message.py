# SPDX-License-Identifier: Apache-2.0
"""A message as the commit log holds it, and what is passed on to the index.

Mirrors: impl/segproof/rocketmq/message.py.
Upstream: RocketMQ CommitLog.checkMessageAndReturnSize, MessageDecoder and MessageExtEncoder
    (4.7.0 to 5.5.1).
Layout: int32 total size, magic, body checksum, queue id, flag; int64 queue offset, physical offset;
    int32 system flag; int64 born timestamp, born host (8 or 20 bytes), int64 store timestamp, store
    host, int32 reconsume times, int64 prepared transaction offset; int32 length and body; int8 (V2:
    int16) length and topic; int16 length and properties. Big-endian; lengths are signed.
Laws: RMQLOG-1, RMQLOG-2, RMQLOG-3, RMQLOG-4, RMQLOG-6.
Not covered: the delivery time of a scheduled message as its tags code; the checksum of the whole
    record, which only a setting has verified; duplicate information; a size in older releases that
    memory would not hold; the buffer that newer ones keep, by which damage may be told as the total
    size and not as -1.
Used by: commit_log, index_service, message_store, the harness.
"""

import re
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from segproof_model.kafka.checkpoint_file import parsed_int
from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes, wrap32
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.key_hash import hash_code

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
BLANK_MAGIC = -875286124
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)


@dataclass(frozen=True, slots=True)
class Message:
    """One record of the commit log; `total_size` and `body_crc` are what the record says."""

    total_size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    """Where the record says that it lies in the log."""
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    """Address and int32 port: 8 bytes, or 20 with flag 0x10."""
    store_timestamp: int
    store_host: bytes
    """Address and int32 port: 8 bytes, or 20 with flag 0x20."""
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    topic: str
    properties: str
    """Empty for a record without properties."""


class CheckResult(NamedTuple):
    """What stands at a position of the log."""

    success: bool
    size: int
    """The record's size; 0 at a blank tail; -1 or the stored size for damage."""
    message: Message | None


FAILED = CheckResult(False, -1, None)
BLANK = CheckResult(True, 0, None)


class DispatchRequest(NamedTuple):
    """What the log passes on for each message."""

    topic: str | None
    commit_log_offset: int
    msg_size: int
    tags_code: int
    store_timestamp: int
    consume_queue_offset: int
    keys: str | None
    """Keys with spaces between them; empty for a message without properties."""
    uniq_key: str | None
    sys_flag: int
    prepared_transaction_offset: int
    properties_map: tuple[tuple[str, str], ...] | None
    """None for a message without properties."""


class _OutOfBoundsError(Exception):
    """More bytes are asked for than there are."""


class _Reader:
    """Reads forward through the bytes of one record."""

    def __init__(self, data: bytes, position: int, array_size: int) -> None:
        self.data, self.position, self.array_size = data, position, array_size

    def take(self, size: int) -> bytes:
        """Return the next bytes. Raises _OutOfBoundsError beyond the end."""
        if size < 0 or self.position + size > len(self.data):
            raise _OutOfBoundsError
        self.position += size
        return self.data[self.position - size : self.position]

    def text_bytes(self, size: int) -> bytes:
        """Return bytes that upstream copies to an array of the record's size."""
        if size > self.array_size:
            raise _OutOfBoundsError
        return self.take(size)

    def int16(self) -> int:
        """Return the next int16."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Return the next int32."""
        return int32_at(self.take(4), 0)

    def int64(self) -> int:
        """Return the next int64."""
        return int64_at(self.take(8), 0)


def decode_text(data: bytes) -> str:
    """Return the text as the JVM decodes UTF-8 (RMQLOG-6).

    An encoded surrogate becomes one replacement character, not one for each byte.

    >>> decode_text(b"caf\\xc3\\xa9 \\xed\\xa0\\xbd \\xff")
    'caf\xe9 \ufffd \ufffd'
    """
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", data).decode("utf-8", "replace")


def encode_text(text: str) -> bytes:
    """Return UTF-8; a lone surrogate becomes a question mark, as the JVM writes it."""
    return text.encode("utf-8", "replace")


def _java_split(text: str, separator: str) -> list[str]:
    """Return the parts; empty ones at the end do not count."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def string_to_message_properties(text: str, *, profile: Profile = ROCKETMQ_5_5_1) -> dict[str, str]:
    """Return the properties by name; of a name that stands twice the last counts (RMQLOG-4).

    >>> string_to_message_properties("KEYS\\x01a b\\x02x\\x02TAGS\\x01t")
    {'KEYS': 'a b', 'TAGS': 't'}
    """
    found: dict[str, str] = {}
    for segment in text.split(PROPERTY_SEPARATOR):
        if profile.rmq_properties_split:
            parts = _java_split(segment, NAME_VALUE_SEPARATOR)
            if len(parts) == 2:
                found[parts[0]] = parts[1]
        elif 0 < segment.find(NAME_VALUE_SEPARATOR) < len(segment) - 1:
            name, _, value = segment.partition(NAME_VALUE_SEPARATOR)
            found[name] = value
    return found


def properties_of(message: Message, *, profile: Profile = ROCKETMQ_5_5_1) -> dict[str, str] | None:
    """Return the properties of a message by name, or None if it has none at all."""
    if not message.properties:
        return None
    return string_to_message_properties(message.properties, profile=profile)


def host_size(sys_flag: int, bit: int, profile: Profile) -> int:
    """Return how many bytes a host of a record takes, by its bit of the system flag."""
    return 20 if sys_flag & bit and profile.rmq_hosts_v6 else 8


def _read(reader: _Reader, total_size: int, magic: int, profile: Profile) -> Message:
    """Return the record whose first two fields are read."""
    body_crc, queue_id, flag = reader.int32(), reader.int32(), reader.int32()
    queue_offset, physical_offset = reader.int64(), reader.int64()
    sys_flag, born_timestamp = reader.int32(), reader.int64()
    born_host = reader.text_bytes(host_size(sys_flag, BORN_HOST_V6, profile))
    store_timestamp = reader.int64()
    store_host = reader.text_bytes(host_size(sys_flag, STORE_HOST_V6, profile))
    reconsume_times, prepared_offset = reader.int32(), reader.int64()
    body = reader.text_bytes(max(reader.int32(), 0))
    topic_size = (
        reader.int16() if magic == MAGIC_V2 else int.from_bytes(reader.take(1), "big", signed=True)
    )
    topic = decode_text(reader.text_bytes(topic_size))
    properties = decode_text(reader.text_bytes(max(reader.int16(), 0)))
    return Message(
        total_size,
        magic,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_offset,
        body,
        topic,
        properties,
    )


def body_checksum(body: bytes) -> int:
    """Return the checksum of a body (RMQLOG-2).

    >>> body_checksum(b"a")
    1756872259
    """
    return zlib.crc32(body) & 0x7FFFFFFF


def _has_delay_level(message: Message, profile: Profile) -> bool:
    """Return whether a scheduled message's delay, if it has one, is a number."""
    delay = (properties_of(message, profile=profile) or {}).get("DELAY")
    if profile.rmq_property_numbers == "none":
        return True
    return message.topic != SCHEDULE_TOPIC or delay is None or parsed_int(delay, 32) is not None


def _has_batch_numbers(message: Message, profile: Profile) -> bool:
    """Return whether the base and the count of a batch, if it has both, are numbers."""
    properties = properties_of(message, profile=profile) or {}
    base, count = properties.get("INNER_BASE"), properties.get("INNER_NUM")
    if base is None or count is None or profile.rmq_property_numbers != "batch":
        return True
    number = parsed_int(count, 32)
    return parsed_int(base, 64) is not None and number is not None and -(2**15) <= number < 2**15


def _has_room(total_size: int, remaining: int, profile: Profile) -> bool:
    """Return whether the bytes that are left may hold a record of this size."""
    if profile.rmq_record_room == "wrapped":
        return wrap32(total_size - 4) <= remaining - 4
    return profile.rmq_record_room == "none" or 0 <= total_size <= remaining


def check_message_and_return_size(
    data: bytes, position: int, check_crc: bool = True, *, profile: Profile = ROCKETMQ_5_5_1
) -> CheckResult:
    """Return what stands at `position` of a log file's bytes (RMQLOG-1 to RMQLOG-3).

    (True, 0) is a blank tail; (False, -1) is a bad magic or checksum, or what ends too early;
    (False, total size) is a record whose parts don't add up to its size.
    """
    remaining = len(data) - position
    if remaining < 8:
        return FAILED
    total_size = int32_at(data, position)
    if not _has_room(total_size, remaining, profile):
        return FAILED
    reader = _Reader(data, position + 4, total_size)
    try:
        magic = reader.int32()
        if magic == BLANK_MAGIC:
            return BLANK
        if magic != MAGIC_V1 and not (profile.rmq_magic_v2 and magic == MAGIC_V2):
            return FAILED
        message = _read(reader, total_size, magic, profile)
    except _OutOfBoundsError:
        return FAILED
    if check_crc and message.body and body_checksum(message.body) != message.body_crc:
        return FAILED
    if not _has_delay_level(message, profile):
        return FAILED
    if reader.position - position != total_size:
        return CheckResult(False, total_size, None)
    if not _has_batch_numbers(message, profile):
        return FAILED
    return CheckResult(True, total_size, message)


def encode_message(message: Message) -> bytes | Raised:
    """Return the record; its total size and its body checksum are computed (RMQLOG-1, -2).

    A text too long for its length field, and a host of another length than its flag says, are
    invalid arguments.
    """
    topic, properties = encode_text(message.topic), encode_text(message.properties)
    length_size = 2 if message.magic == MAGIC_V2 else 1
    hosts = ((message.born_host, BORN_HOST_V6), (message.store_host, STORE_HOST_V6))
    if any(len(host) != (20 if message.sys_flag & bit else 8) for host, bit in hosts):
        return INVALID_ARGUMENT
    if len(topic) >= 2 ** (8 * length_size - 1) or len(properties) >= 2**15:
        return INVALID_ARGUMENT
    record = b"".join(
        (
            int32_bytes(message.magic),
            int32_bytes(body_checksum(message.body)),
            int32_bytes(message.queue_id),
            int32_bytes(message.flag),
            int64_bytes(message.queue_offset),
            int64_bytes(message.physical_offset),
            int32_bytes(message.sys_flag),
            int64_bytes(message.born_timestamp),
            message.born_host,
            int64_bytes(message.store_timestamp),
            message.store_host,
            int32_bytes(message.reconsume_times),
            int64_bytes(message.prepared_transaction_offset),
            int32_bytes(len(message.body)),
            message.body,
            len(topic).to_bytes(length_size, "big", signed=True),
            topic,
            len(properties).to_bytes(2, "big", signed=True),
            properties,
        )
    )
    return int32_bytes(len(record) + 4) + record


def blank_tail(remaining: int) -> bytes | Raised:
    """Return what a writer leaves in the last `remaining` bytes of a log file, 8 or more.

    >>> blank_tail(9).hex(), blank_tail(7).kind.value
    ('00000009cbd4319400', 'invalid-argument')
    """
    if remaining < 8:
        return INVALID_ARGUMENT
    return int32_bytes(remaining) + int32_bytes(BLANK_MAGIC) + bytes(remaining - 8)


def dispatch_request_of(message: Message, *, profile: Profile = ROCKETMQ_5_5_1) -> DispatchRequest:
    """Return what is passed on for a message (RMQLOG-5): the offset is the one the record says."""
    properties = properties_of(message, profile=profile)
    return DispatchRequest(
        message.topic,
        message.physical_offset,
        message.total_size,
        hash_code((properties or {}).get("TAGS", "")),
        message.store_timestamp,
        message.queue_offset,
        "" if properties is None else properties.get("KEYS"),
        None if properties is None else properties.get("UNIQ_KEY"),
        message.sys_flag,
        message.prepared_transaction_offset,
        None if properties is None else tuple(properties.items()),
    )
