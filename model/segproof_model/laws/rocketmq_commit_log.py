# SPDX-License-Identifier: Apache-2.0
"""The laws of the records of the commit log, and of what an index is made of.

All are `pure`: they take bytes, or what a call was given, and what came of it.

Used by: the harness, the generated pages.
"""

import re
import zlib
from collections.abc import Mapping

from segproof_model.language.outcomes import Raised
from segproof_model.laws.registry import law
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.index_service import IndexService
from segproof_model.rocketmq.message import CheckResult, DispatchRequest, Message

STRUCTURE = "index-service"
RECORD = "RocketMQ CommitLog.checkMessageAndReturnSize, 4.0.0 to 5.5.1"
DECODER = "RocketMQ MessageDecoder.string2messageProperties, 4.0.0 to 5.5.1"
V1, V2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
SHORT_HOST, LONG_HOST = 8, 20


def _int(data: bytes, position: int, size: int, signed: bool = True) -> int:
    return int.from_bytes(data[position : position + size], "big", signed=signed)


def _hosts(flags: int) -> tuple[int, int]:
    """Return the sizes of the born host and of the store host."""
    born, stored = (LONG_HOST if flags & bit else SHORT_HOST for bit in (0x10, 0x20))
    return born, stored


def _store_time_at(flags: int) -> int:
    """Return where a record keeps its store timestamp."""
    return 56 if _hosts(flags)[0] == SHORT_HOST else 68


def _body_at(flags: int) -> int:
    """Return where a record keeps the length of its body."""
    return 48 + sum(_hosts(flags)) + 8 + 4 + 8


@law("RMQLOG-1", structure=STRUCTURE, scope="pure", source=RECORD)
def record_is_laid_out(record: bytes, message: Message) -> bool:
    """A record is laid out as in the table of its module; with an IPv4 born host the store
    timestamp is at byte 56, with IPv6, which releases before 4.6.0 do not know, at 68.

    `message` is what was read of the bytes of one whole record, whose texts are well-formed.
    """
    flags = _int(record, 36, 4)
    numbers = [_int(record, position, 4) for position in (0, 4, 8, 12, 16)]
    known = [message.total_size, message.magic, message.body_crc, message.queue_id, message.flag]
    longs = [_int(record, position, 8) for position in (20, 28, 40, _store_time_at(flags))]
    times = [message.queue_offset, message.physical_offset]
    times += [message.born_timestamp, message.store_timestamp]
    body_at = _body_at(flags)
    born, stored = _hosts(flags)
    hosts = record[48 : 48 + born] + record[56 + born : 56 + born + stored]
    between = [_int(record, body_at - 12, 4), _int(record, body_at - 8, 8)]
    width = 2 if _int(record, 4, 4, signed=False) == V2 else 1
    topic, text = message.topic.encode(), message.properties.encode()
    tail = message.body + len(topic).to_bytes(width, "big") + topic
    tail += len(text).to_bytes(2, "big") + text
    size = max(_int(record, body_at, 4), 0)
    return (
        (numbers, longs, flags) == (known, times, message.sys_flag)
        and hosts == message.born_host + message.store_host
        and between == [message.reconsume_times, message.prepared_transaction_offset]
        and record[body_at + 4 :] == tail
        and size == len(message.body)
    )


@law("RMQLOG-2", structure=STRUCTURE, scope="pure", source=RECORD)
def body_has_its_checksum(record: bytes, check_crc: bool, result: CheckResult) -> bool:
    """The body checksum is CRC-32 & 0x7FFFFFFF and is not checked for a body length <= 0.

    `record` is one whole record, sound but for its checksum.
    """
    body_at = _body_at(_int(record, 36, 4))
    length = _int(record, body_at, 4)
    body = record[body_at + 4 : body_at + 4 + max(length, 0)]
    fits = _int(record, 8, 4) == zlib.crc32(body) & 0x7FFFFFFF
    return result.success is (fits or length <= 0 or not check_crc)


@law("RMQLOG-3", structure=STRUCTURE, scope="pure", source=RECORD)
def scan_tells_end_and_damage(
    data: bytes, position: int, result: CheckResult, profile: Profile = ROCKETMQ_5_5_1
) -> bool:
    """Scanning yields (success, 0) at the blank magic, (fail, -1) for a bad magic, a bad checksum
    or an exception, (fail, total size) when the computed length differs from the stored one.

    Where less is left than the stored size it is (fail, -1) in releases that look.
    """
    left = len(data) - position
    size, magic = _int(data, position, 4), _int(data, position + 4, 4, signed=False)
    known = (V1, V2) if profile.rmq_magic_v2 else (V1,)
    if left < 8 or (profile.rmq_record_room == "all" and not 0 <= size <= left):
        return result == (False, -1, None)
    if profile.rmq_record_room == "wrapped" and size > left:
        return result == (False, -1, None)
    if magic == BLANK and (size >= 0 or profile.rmq_record_room == "none"):
        return result == (True, 0, None)
    if magic not in known and magic != BLANK:
        return result == (False, -1, None)
    if result.success and result.size > 0:
        message = result.message
        return message is not None and result.size == size == message.total_size <= left
    return result.success or (result.message is None and result.size in (-1, size))


@law(
    "RMQLOG-4", structure=STRUCTURE, scope="pure", source="RocketMQ MessageDecoder, 4.0.0 to 5.5.1"
)
def properties_have_name_and_value(
    text: str, found: Mapping[str, str], profile: Profile = ROCKETMQ_5_5_1
) -> bool:
    """A properties segment is kept only if it is at least 3 characters long and its first separator
    lies strictly inside it; a later duplicate name wins.

    Up to 4.7.1 what splits into two parts is kept, without empty ones at the end.
    """
    expected = {}
    for segment in re.split("\x02", text):
        whole = re.fullmatch("([^\x01]+)\x01(.+)", segment, re.DOTALL)
        if profile.rmq_properties_split:
            whole = re.fullmatch("([^\x01]*)\x01([^\x01]+)\x01*", segment)
        if whole is not None:
            expected[whole[1]] = whole[2]
    return expected == dict(found)


@law("RMQLOG-5", structure=STRUCTURE, scope="pure", source=RECORD)
def index_is_told_what_record_says(
    message: Message, properties: Mapping[str, str] | None, request: DispatchRequest
) -> bool:
    """Rebuilding an index from a log passes, for each good record in order, topic, KEYS, UNIQ_KEY,
    the record's own physical offset field, store timestamp and flag to build_index.

    `properties` are those of the record, None if it has none: then the keys are an empty text.
    """
    keys = "" if properties is None else properties.get("KEYS")
    own = None if properties is None else properties.get("UNIQ_KEY")
    told = (request.topic, request.keys, request.uniq_key)
    numbers = (request.commit_log_offset, request.store_timestamp, request.sys_flag)
    said = (message.physical_offset, message.store_timestamp, message.sys_flag)
    pairs = None if properties is None else dict(properties)
    given = None if request.properties_map is None else dict(request.properties_map)
    return told == (message.topic, keys, own) and numbers == said and pairs == given


@law("RMQLOG-6", structure=STRUCTURE, scope="pure", source="Java String(byte[], UTF_8)")
def encoded_surrogate_is_one_character(data: bytes, text: str) -> bool:
    """Strings are decoded as the JVM decodes UTF-8: an encoded surrogate becomes one U+FFFD."""
    parts = re.split(rb"\xed[\xa0-\xbf][\x80-\xbf]?", data)
    return text == "\ufffd".join(part.decode(errors="replace") for part in parts)


@law("RMQLOG-7", structure=STRUCTURE, scope="pure", source="RocketMQ IndexService, 4.0.0 to 5.5.1")
def rebuilt_index_is_the_same(fed: IndexService | Raised, rebuilt: IndexService | Raised) -> bool:
    """An index rebuilt from a complete log by an empty service has, file by file in order, the same
    bytes as that of a service fed the same records from empty without a restart; only the file
    names differ."""
    if isinstance(fed, Raised) or isinstance(rebuilt, Raised):
        return fed == rebuilt
    images = [[file.to_bytes() for file in one.index_files] for one in (fed, rebuilt)]
    return images[0] == images[1]
