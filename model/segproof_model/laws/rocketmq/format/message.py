# SPDX-License-Identifier: Apache-2.0
"""The laws of the records of the commit log, and of their dispatch requests to the index.

They take bytes, or the arguments and the result of a call; `kind` is the message class of a
release.
"""

import re
import struct
import zlib
from collections.abc import Mapping

from segproof_model.language.integers import int32_at
from segproof_model.laws.register import has, law
from segproof_model.rocketmq.format import message_releases as older
from segproof_model.rocketmq.format.message import CheckResult, DispatchRequest, Message

RECORD = "RocketMQ CommitLog.checkMessageAndReturnSize, 4.0.0 to 5.5.1"
DECODER = "RocketMQ MessageDecoder, 4.0.0 to 5.5.1"
V2, BLANK = 0xDAA320AB - 2**32, 0xCBD43194 - 2**32
FAILED = (False, -1, None)


@law("RMQLOG-1", Message, RECORD)
def record_is_laid_out(record: bytes, message: Message) -> bool:
    """A record is laid out as in the table of its module; with an IPv4 born host the store
    timestamp is at byte 56, with IPv6, which releases before 4.6.0 do not know, at 68.

    `message` is what was read of the bytes of one whole record, whose texts are well-formed.
    """
    born, stored = (20 if message.sys_flag & bit else 8 for bit in (0x10, 0x20))
    head = struct.pack(f">5i2qiq{born}sq{stored}siq", *[*vars(message).values()][:14])
    length = len(message.body) or min(int32_at(record, len(head)), 0)
    body = length.to_bytes(4, "big", signed=True) + message.body
    topic, properties = message.topic.encode(), message.properties.encode()
    topic = len(topic).to_bytes(2 if message.magic == V2 else 1, "big") + topic
    return record == head + body + topic + len(properties).to_bytes(2, "big") + properties


@law("RMQLOG-2", Message, RECORD)
def body_has_its_checksum(record: bytes, check_crc: bool, result: CheckResult) -> bool:
    """The body checksum is CRC-32 & 0x7FFFFFFF and is not checked for a body length <= 0.

    `record` is one whole record, sound but for its checksum.
    """
    flag = int32_at(record, 36)
    start = 84 + 12 * bool(flag & 0x10) + 12 * bool(flag & 0x20)
    length = max(int32_at(record, start), 0)
    checksum = zlib.crc32(record[start + 4 : start + 4 + length]) & 0x7FFFFFFF
    return result.success is (not check_crc or length == 0 or int32_at(record, 8) == checksum)


@law("RMQLOG-3", Message, RECORD)
def scan_tells_end_and_damage(
    data: bytes, position: int, result: CheckResult, kind: type[Message] = Message
) -> bool:
    """Scanning yields (success, 0) at the blank magic, (fail, -1) for a bad magic, a bad checksum
    or an exception, (fail, total size) when the computed length differs from the stored one.

    If fewer bytes are left than the stored size, releases that check it yield (fail, -1).
    """
    left = len(data) - position
    size, magic = (int32_at(data, place) for place in (position, position + 4))
    if left < 8 or (size > left and not has(kind, older.RecordRoomIsNotAsked)):
        return result == FAILED
    if magic == BLANK:
        return result == (True, 0, None) or (size < 0 and result == FAILED)
    if result.success and result.message is not None:
        return magic in kind.magics and result.size == size == result.message.total_size <= left
    is_known = magic in kind.magics and result.size == size
    return not result.success and result.message is None and (is_known or result.size == -1)


@law("RMQLOG-4", Message, DECODER)
def properties_have_name_and_value(
    text: str, found: Mapping[str, str], kind: type[Message] = Message
) -> bool:
    """A properties segment is kept only if it is at least 3 characters long and its first separator
    lies strictly inside it; a later duplicate name wins.

    Up to 4.7.1 a segment that splits into two parts is kept, without empty parts at the end.
    """
    is_split = has(kind, older.PropertiesAreSplit)
    pattern = "([^\x01]*)\x01([^\x01]+)\x01*" if is_split else "([^\x01]+)\x01(.+)"
    segments = [re.fullmatch(pattern, segment, re.DOTALL) for segment in text.split("\x02")]
    return dict(found) == {whole[1]: whole[2] for whole in segments if whole}


@law("RMQLOG-5", Message, RECORD)
def index_is_told_what_record_says(
    message: Message, properties: Mapping[str, str] | None, request: DispatchRequest
) -> bool:
    """Rebuilding an index from a log passes, for each good record in order, topic, KEYS, UNIQ_KEY,
    the record's own physical offset field, store timestamp and flag to build_index.

    `properties` are those of the record, None if it has none: then the keys are an empty text.
    """
    known = {"KEYS": ""} if properties is None else properties
    pairs = None if properties is None else tuple(properties.items())
    told = (request.topic, request.keys, request.uniq_key, request.properties_map)
    numbers = (request.commit_log_offset, request.store_timestamp, request.sys_flag)
    is_told = told == (message.topic, known.get("KEYS"), known.get("UNIQ_KEY"), pairs)
    said = (message.physical_offset, message.store_timestamp, message.sys_flag)
    return is_told and numbers == said


@law("RMQLOG-6", Message, "Java String(byte[], UTF_8)")
def encoded_surrogate_is_one_character(data: bytes, text: str) -> bool:
    """Strings are decoded as the JVM decodes UTF-8: an encoded surrogate becomes one U+FFFD."""
    parts = re.split(rb"\xed[\xa0-\xbf][\x80-\xbf]?", data)
    return text == "\ufffd".join(part.decode(errors="replace") for part in parts)
