# SPDX-License-Identifier: Apache-2.0
"""A message as the commit log holds it, and what is passed on to the index.

Upstream: RocketMQ 5.5.1, CommitLog.checkMessageAndReturnSize, MessageDecoder, MessageExtEncoder,
    DispatchRequest. Otherwise: message_releases, message_deviations.
Layout: int32 total size, magic, body checksum, queue id, flag; int64 queue offset, physical offset;
    int32 system flag; int64 born timestamp, born host (8 or 20 bytes), int64 store timestamp, store
    host, int32 reconsume times, int64 prepared transaction offset; int32 length and body; int8 (V2:
    int16) length and topic; int16 length and properties. Big-endian; lengths are signed.
Laws: RMQLOG-1, RMQLOG-2, RMQLOG-3, RMQLOG-4, RMQLOG-5, RMQLOG-6.
Not covered: the delivery time of a scheduled message as its tags code; the checksum of the whole
    record, which only a setting has verified; duplicate information; the buffer that is kept from
    one record to the next, by which damage may be told as the total size and not as -1.
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import ClassVar, NamedTuple

from segproof_model.language.integers import int32_at, int32_bytes, int64_bytes, parsed_int
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released, refuse
from segproof_model.rocketmq.format.key_hash import hash_code

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
BLANK_MAGIC = -875286124
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HEAD = Struct(">5i2qiq")
"""The fields of a record up to the born timestamp."""
Head = tuple[int, int, int, int, int, int, int, int, int]
INT16 = range(-(2**15), 2**15)


class DispatchRequest(NamedTuple):
    """What the log passes on for a message."""

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


class CheckResult(NamedTuple):
    """What stands at a position of the log."""

    success: bool
    size: int
    """The record's size; 0 at a blank tail; -1 or the stored size for damage."""
    message: "Message | None"


FAILED = CheckResult(False, -1, None)
BLANK = CheckResult(True, 0, None)


class RecordReader:
    """Reads forward through the bytes of one record; it refuses where the JVM would raise."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position
        self.total_size = int32_at(data, position)

    def take(self, size: int) -> bytes:
        """Return the next bytes, if there are so many."""
        if size < 0 or self.position + size > len(self.data):
            refuse(ErrorKind.INDEX_ERROR)
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, size: int) -> int:
        """Return the next number of so many bytes."""
        return int.from_bytes(self.take(size), "big", signed=True)

    def array(self, size: int) -> bytes:
        """Return the next bytes, copied to an array as long as the record says it is."""
        if size > self.total_size:
            refuse(ErrorKind.INDEX_ERROR)
        return self.take(size)


@dataclass(frozen=True)
class Message(Released):
    """One record of the commit log; `total_size` and `body_crc` are what the record says."""

    magics: ClassVar[tuple[int, ...]] = (MAGIC_V1, MAGIC_V2)
    """What a record may begin with."""

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

    # --- reading -------------------------------------------------------------------------------

    @classmethod
    def check_message_and_return_size(
        cls, data: bytes, position: int, check_crc: bool = True
    ) -> CheckResult:
        """Return what stands at `position` of a log file's bytes (RMQLOG-1 to RMQLOG-3).

        (True, 0) is a blank tail; (False, -1) is a bad magic or checksum, or what ends too early;
        (False, total size) is a record whose parts don't add up to its size.
        """
        left = len(data) - position
        if left < 8 or not cls.has_room(int32_at(data, position), left):
            return FAILED
        if int32_at(data, position + 4) == BLANK_MAGIC:
            return BLANK
        record = RecordReader(data, position)
        try:
            message = cls.read(record)
        except Refused:
            return FAILED
        if not message.is_sound(check_crc):
            return FAILED
        if record.position - position != message.total_size:
            return CheckResult(False, message.total_size, None)
        return CheckResult(True, message.total_size, message) if message.has_batch() else FAILED

    @staticmethod
    def has_room(total_size: int, left: int) -> bool:
        """Return whether the bytes that are left may hold a record of this size."""
        return 0 <= total_size <= left

    @staticmethod
    def host_size(sys_flag: int, bit: int) -> int:
        """Return how many bytes a host of a record takes, by its bit of the system flag."""
        return 20 if sys_flag & bit else 8

    @classmethod
    def read(cls, record: RecordReader) -> "Message":
        """Return the record; an unknown magic is refused, and what ends too early."""
        head: Head = HEAD.unpack(record.take(HEAD.size))
        magic, sys_flag = head[1], head[7]
        if magic not in cls.magics:
            refuse(ErrorKind.CORRUPT_RECORD)
        return cls(
            *head,
            born_host=record.array(cls.host_size(sys_flag, BORN_HOST_V6)),
            store_timestamp=record.number(8),
            store_host=record.array(cls.host_size(sys_flag, STORE_HOST_V6)),
            reconsume_times=record.number(4),
            prepared_transaction_offset=record.number(8),
            body=record.array(max(record.number(4), 0)),
            topic=decode_text(record.array(record.number(2 if magic == MAGIC_V2 else 1))),
            properties=decode_text(record.array(max(record.number(2), 0))),
        )

    def is_sound(self, check_crc: bool) -> bool:
        """Return whether checksum and delay level, which are checked before the size, are right."""
        return (self.has_checksum() or not check_crc) and self.has_delay_level()

    def has_checksum(self) -> bool:
        """Return whether the sum is that of the body, which is not asked if empty (RMQLOG-2)."""
        return not self.body or body_checksum(self.body) == self.body_crc

    def has_delay_level(self) -> bool:
        """Return whether a scheduled message's delay, if it has one, is a number."""
        if self.topic != SCHEDULE_TOPIC:
            return True
        delay = (self.properties_map or {}).get("DELAY")
        return delay is None or parsed_int(delay, 32) is not None

    def has_batch(self) -> bool:
        """Return whether the base and the count of a batch, if it has both, are numbers."""
        properties = self.properties_map or {}
        base, count = properties.get("INNER_BASE"), properties.get("INNER_NUM")
        if base is None or count is None:
            return True
        number = parsed_int(count, 32)
        return parsed_int(base, 64) is not None and number is not None and number in INT16

    # --- properties ----------------------------------------------------------------------------

    @staticmethod
    def string_to_message_properties(text: str) -> dict[str, str]:
        """Return the properties by name; of a name that stands twice the last counts (RMQLOG-4).

        >>> Message.string_to_message_properties("KEYS\\x01a b\\x02x\\x02TAGS\\x01t")
        {'KEYS': 'a b', 'TAGS': 't'}
        """
        found = {}
        for segment in text.split(PROPERTY_SEPARATOR):
            name, _, value = segment.partition(NAME_VALUE_SEPARATOR)
            if name and value:
                found[name] = value
        return found

    @property
    def properties_map(self) -> Mapping[str, str] | None:
        """The properties by name; None without any text of properties."""
        return self.string_to_message_properties(self.properties) if self.properties else None

    def dispatch_request(self) -> DispatchRequest:
        """Return the dispatch request; its offset is the one stored in the record (RMQLOG-5)."""
        properties = self.properties_map
        known = properties or {}
        return DispatchRequest(
            self.topic,
            self.physical_offset,
            self.total_size,
            hash_code(known.get("TAGS", "")),
            self.store_timestamp,
            self.queue_offset,
            "" if properties is None else known.get("KEYS"),
            known.get("UNIQ_KEY"),
            self.sys_flag,
            self.prepared_transaction_offset,
            None if properties is None else tuple(properties.items()),
        )

    # --- writing -------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the record; its total size and its body checksum are computed (RMQLOG-1, -2).

        A text too long for its length field, and a host of another length than its flag says, are
        invalid arguments.
        """
        topic, properties = encode_text(self.topic), encode_text(self.properties)
        length_size = 2 if self.magic == MAGIC_V2 else 1
        hosts = (self.born_host, BORN_HOST_V6), (self.store_host, STORE_HOST_V6)
        if any(len(host) != self.host_size(self.sys_flag, bit) for host, bit in hosts):
            refuse(ErrorKind.INVALID_ARGUMENT)
        if len(topic) >= 2 ** (8 * length_size - 1) or len(properties) not in INT16:
            refuse(ErrorKind.INVALID_ARGUMENT)
        head = (self.magic, body_checksum(self.body), self.queue_id, self.flag)
        record = b"".join((
            *map(int32_bytes, head),
            *map(int64_bytes, (self.queue_offset, self.physical_offset)),
            int32_bytes(self.sys_flag), int64_bytes(self.born_timestamp), self.born_host,
            int64_bytes(self.store_timestamp), self.store_host,
            int32_bytes(self.reconsume_times), int64_bytes(self.prepared_transaction_offset),
            int32_bytes(len(self.body)), self.body,
            len(topic).to_bytes(length_size, "big"), topic,
            len(properties).to_bytes(2, "big"), properties,
        ))  # fmt: skip
        return int32_bytes(len(record) + 4) + record


def body_checksum(body: bytes) -> int:
    """Return the checksum of a body (RMQLOG-2).

    >>> body_checksum(b"a")
    1756872259
    """
    return zlib.crc32(body) & 0x7FFFFFFF


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


def blank_tail(remaining: int) -> bytes:
    """Return what a writer leaves in the last `remaining` bytes of a log file, 8 or more.

    >>> blank_tail(9).hex()
    '00000009cbd4319400'
    """
    if remaining < 8:
        refuse(ErrorKind.INVALID_ARGUMENT)
    return int32_bytes(remaining) + int32_bytes(BLANK_MAGIC) + bytes(remaining - 8)
