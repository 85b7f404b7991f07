# SPDX-License-Identifier: Apache-2.0
"""One record of a commit log: read, checked, written, and turned into what the index is told.

Layout: MESSAGE of layouts/rocketmq.py, then the body, topic length (1, or 2 in the second version),
  topic, properties length 2, properties.
Upstream: RocketMQ 5.5.1: CommitLog.checkMessageAndReturnSize, MessageDecoder, MessageExtEncoder.
Laws: RMQLOG-1 to RMQLOG-4, RMQLOG-6.
Not covered: the checksum over a whole record (property __CRC32#), which is off by default; the
  delivery time of scheduled messages as tags code.
"""

import re
import struct
import zlib
from dataclasses import dataclass
from typing import Final, NamedTuple

from segproof.errors import InvalidArgumentError
from segproof.integers import INT32_MAX
from segproof.layouts.rocketmq import MESSAGE
from segproof.rocketmq.key_hash import hash_code

MAGIC_V1: Final = -626843481
MAGIC_V2: Final = -626843477
BLANK_MAGIC: Final = -875286124
MESSAGE_MAGICS: Final = tuple(one.to_bytes(4, "big", signed=True) for one in (MAGIC_V1, MAGIC_V2))
"""The bytes 4 to 7 of a message, in both versions."""
BLANK_MAGIC_BYTES: Final = BLANK_MAGIC.to_bytes(4, "big", signed=True)
"""The bytes 4 to 7 of the blank end of a file."""
BORN_HOST_V6: Final = 0x10
STORE_HOST_V6: Final = 0x20
INNER_BATCH: Final = 1 << 7
"""The flag of a message that contains a batch. The batch has a place in the queue for each of its
messages."""
ROLLED_BACK: Final = 12
"""The bits of `sys_flag` that say what a message is in a transaction; with both it was rolled
back."""
CRC_MASK: Final = 0x7FFFFFFF
BLANK_BYTES: Final = 8
NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"
KEYS, UNIQ_KEY, TAGS = "KEYS", "UNIQ_KEY", "TAGS"
"""The properties that the index is made of."""
SCHEDULE_TOPIC, DELAY = "SCHEDULE_TOPIC_XXXX", "DELAY"
"""The topic in which a broker keeps delayed messages, and the property with their delay level."""

_START = MESSAGE.struct("total_size", "magic")
_HEAD = MESSAGE.struct("body_crc", "born_timestamp")
"""From the body CRC on to the born timestamp."""
_INT64 = struct.Struct(">q")
_MIDDLE = MESSAGE.struct("reconsume_times")
"""From the times consumed again on to the body length."""
_INT16 = struct.Struct(">h")
_INT8 = struct.Struct(">b")
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


@dataclass(frozen=True, slots=True)
class Message:
    """One record, as it is stored."""

    total_size: int
    """Length of the record in bytes."""
    magic: int
    body_crc: int
    """CRC-32 of the body, without its highest bit."""
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    """Where the record says that it lies in the log."""
    sys_flag: int
    """Bits: 4 and 8 transaction, 0x10 and 0x20 IPv6 hosts."""
    born_timestamp: int
    """Milliseconds, of the producer."""
    born_host: bytes
    """Address and port (int32): 8 or 20 bytes."""
    store_timestamp: int
    """Milliseconds, of the broker."""
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    topic: str
    properties: str


class CheckResult(NamedTuple):
    """What a look at one place of a commit log found."""

    success: bool
    size: int
    """Bytes of the record; 0 for the blank end of a file; -1 or the stored size for a failure."""
    message: Message | None
    """The record, if there is one."""


class DispatchRequest(NamedTuple):
    """What the index is told of one record."""

    topic: str | None
    commit_log_offset: int
    msg_size: int
    tags_code: int
    store_timestamp: int
    consume_queue_offset: int
    keys: str | None
    """Keys with spaces between; empty without any property, None without this one."""
    uniq_key: str | None
    sys_flag: int
    prepared_transaction_offset: int
    properties_map: tuple[tuple[str, str], ...] | None
    """All properties, each name once; None without any."""


FAILED: Final = CheckResult(False, -1, None)
_BLANK: Final = CheckResult(True, 0, None)


def decode_text(data: bytes | memoryview) -> str:
    """Return the text of UTF-8 bytes as a JVM decodes them: bad ones become U+FFFD.

    An encoded surrogate is one U+FFFD, not one for each byte. Laws: RMQLOG-6.
    """
    raw = bytes(data)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(b"\xff", raw).decode("utf-8", "replace")


def encode_text(text: str) -> bytes:
    """Return the UTF-8 bytes of a text; a lone surrogate is a question mark, as in a JVM."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        units = text.encode("utf-16-be", "surrogatepass")  # two halves of a pair become one
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "replace")


def string_to_message_properties(text: str) -> dict[str, str]:
    """Return names and values of a properties text; a later value of a name wins.

    A part counts if the first separator in it has something on both sides. Laws: RMQLOG-4.
    """
    found: dict[str, str] = {}
    for part in text.split(PROPERTY_SEPARATOR):
        name, separator, value = part.partition(NAME_VALUE_SEPARATOR)
        if name and separator and value:
            found[name] = value
    return found


def dispatch_request_of(message: Message) -> DispatchRequest:
    """Return what the index is told of a record. Laws: RMQLOG-5."""
    keys: str | None = ""
    uniq_key, tags_code = None, 0
    pairs: tuple[tuple[str, str], ...] | None = None
    if message.properties:
        found = string_to_message_properties(message.properties)
        pairs = tuple(found.items())
        keys, uniq_key = found.get(KEYS), found.get(UNIQ_KEY)
        tags_code = hash_code(found[TAGS]) if TAGS in found else 0
    return DispatchRequest(
        message.topic,
        message.physical_offset,
        message.total_size,
        tags_code,
        message.store_timestamp,
        message.queue_offset,
        keys,
        uniq_key,
        message.sys_flag,
        message.prepared_transaction_offset,
        pairs,
    )


def has_queue_place(sys_flag: int) -> bool:
    """Return whether a message is in a queue by its flags: neither prepared nor rolled back."""
    return sys_flag & ROLLED_BACK in (0, 8)


def lacks_body(message: Message) -> bool:
    """Return whether a message has no body, and the checksum of one. A broker writes 0 then."""
    return not message.body and message.body_crc != 0


def is_delayed(request: DispatchRequest) -> bool:
    """Return whether the unit of a message has the time of its delivery in place of a tags code."""
    if request.topic != SCHEDULE_TOPIC:
        return False
    return any(name == DELAY for name, _ in request.properties_map or ())


class _Reader:
    """The fields of one record in turn; a field behind the end raises struct.error."""

    def __init__(self, data: bytes | memoryview, position: int, total_size: int) -> None:
        self._data = data
        self._total_size = total_size
        self.position = position

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Return the next big-endian numbers."""
        values = layout.unpack_from(self._data, self.position)
        self.position += layout.size
        return values

    def take(self, size: int) -> memoryview:
        """Return the next bytes: no more than the whole record says that it has."""
        end = self.position + size
        if not 0 <= size <= self._total_size or end > len(self._data):
            raise struct.error
        part = memoryview(self._data)[self.position : end]
        self.position = end
        return part


def check_message_and_return_size(
    data: bytes | memoryview, position: int, check_crc: bool = True
) -> CheckResult:
    """Check the record at `position`; what may follow up to the end of `data` belongs to the file.

    The blank end of a file is a success of size 0. A bad magic or checksum, and a field that does
    not fit, is a failure of size -1; a length that is not the sum of the fields is a failure with
    that length. Nothing is allocated that the data does not hold.
    Laws: RMQLOG-1 to RMQLOG-3.
    """
    left = len(data) - position
    if position < 0 or left < BLANK_BYTES:
        return FAILED
    total_size, magic = _START.unpack_from(data, position)
    if not 0 <= total_size <= left:
        return FAILED
    if magic == BLANK_MAGIC:
        return _BLANK
    if magic not in (MAGIC_V1, MAGIC_V2):
        return FAILED
    reader = _Reader(data, position + BLANK_BYTES, total_size)
    try:
        message = _read_message(reader, total_size, magic, check_crc)
    except struct.error:
        return FAILED
    if message is None:
        return FAILED
    if reader.position - position != total_size:
        return CheckResult(False, total_size, None)
    return CheckResult(True, total_size, message)


def _read_message(reader: _Reader, total_size: int, magic: int, check_crc: bool) -> Message | None:
    """Return the record, or None for a body with another checksum. Raises: struct.error."""
    body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born = reader.numbers(_HEAD)
    born_host = bytes(reader.take(20 if sys_flag & BORN_HOST_V6 else 8))
    (stored,) = reader.numbers(_INT64)
    store_host = bytes(reader.take(20 if sys_flag & STORE_HOST_V6 else 8))
    reconsumed, prepared, body_length = reader.numbers(_MIDDLE)
    body = reader.take(max(0, body_length))
    if check_crc and body_length > 0 and zlib.crc32(body) & CRC_MASK != body_crc:
        return None
    (topic_length,) = reader.numbers(_INT8 if magic == MAGIC_V1 else _INT16)
    topic = reader.take(topic_length)
    (properties_length,) = reader.numbers(_INT16)
    properties = reader.take(max(0, properties_length))
    return Message(
        total_size, magic, body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born,
        born_host, stored, store_host, reconsumed, prepared, bytes(body), decode_text(topic),
        decode_text(properties),
    )  # fmt: skip


def encode_message(message: Message) -> bytes:
    """Return the bytes of a record; its total size and body CRC are those that belong to it.

    Raises: InvalidArgumentError for a host or text that has no place in the layout.
    """
    topic, properties = encode_text(message.topic), encode_text(message.properties)
    is_old = message.magic == MAGIC_V1
    for what, length, limit in (
        ("topic", len(topic), 127 if is_old else 32767),
        ("properties", len(properties), 32767),
    ):
        if length > limit:
            raise InvalidArgumentError(f"the {what} has {length} bytes; {limit} fit")
    for host, bit in ((message.born_host, BORN_HOST_V6), (message.store_host, STORE_HOST_V6)):
        if len(host) != (20 if message.sys_flag & bit else 8):
            raise InvalidArgumentError("a host has another length than its flag says")
    rest = b"".join(
        (
            _HEAD.pack(
                zlib.crc32(message.body) & CRC_MASK, message.queue_id, message.flag,
                message.queue_offset, message.physical_offset, message.sys_flag,
                message.born_timestamp,
            ),
            message.born_host,
            _INT64.pack(message.store_timestamp),
            message.store_host,
            _MIDDLE.pack(
                message.reconsume_times, message.prepared_transaction_offset, len(message.body)
            ),
            message.body,
            (_INT8 if is_old else _INT16).pack(len(topic)),
            topic,
            _INT16.pack(len(properties)),
            properties,
        )
    )  # fmt: skip
    return _START.pack(BLANK_BYTES + len(rest), message.magic) + rest


def blank_head(remaining: int) -> bytes:
    """Return the first 8 bytes of what a writer leaves in the last `remaining` bytes of a file.

    Raises: InvalidArgumentError for fewer than 8 bytes, or 2^31 and more, which no writer leaves.
    """
    if not BLANK_BYTES <= remaining <= INT32_MAX:
        raise InvalidArgumentError(
            f"{BLANK_BYTES} bytes or more are left, and fewer than 2^31", actual=remaining
        )
    return _START.pack(remaining, BLANK_MAGIC)


def blank_tail(remaining: int) -> bytes:
    """Return what a writer leaves in the last `remaining` bytes of a file, all of them.

    Raises: InvalidArgumentError as for `blank_head`.
    """
    return blank_head(remaining) + bytes(remaining - BLANK_BYTES)
