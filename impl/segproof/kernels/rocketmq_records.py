# SPDX-License-Identifier: Apache-2.0
"""Inner loops over the records of a RocketMQ commit log: their fields, the hashes of their keys.

`buffer` is bytes or a memoryview of bytes; the others are memoryviews of int64. A kernel
never raises on bad data and never reads outside the limits it is given. Only records that lie whole
in the buffer and whose length is the sum of their fields become rows; what is wrong with another
one is said by rocketmq/message.py. Body checksums are the caller's.

Mirrors: segproof_model/rocketmq/format/message.py, its fields and properties.
Layout: see rocketmq/message.py.
Upstream: RocketMQ 5.5.1: CommitLog.checkMessageAndReturnSize, MessageDecoder, IndexService.
Laws: RMQLOG-1, RMQLOG-3, RMQLOG-4, RMQSVC-13 to RMQSVC-15.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.records import decode_int16, decode_int32, decode_int64
from segproof.kernels.rocketmq_index import absolute_hash, add_unit, utf8_character

Bytes = bytes | memoryview

MESSAGE_ROW = 16
"""Columns of `walk_messages`: position, total size, physical offset, store timestamp, flags, body
position, body length, body CRC, topic position, topic length, then position and length of the
values of KEYS, UNIQ_KEY and TAGS. A length is -1 where there is no such property, and KEYS has
length 0 in a record without any property."""
WALK_OTHER, WALK_BLANK, WALK_FULL = range(3)
"""How `walk_messages` stops: at what is no record that lies whole in the buffer, at the blank end
of a file, or as the rows are full."""


@kernel
def is_name(buffer: Bytes, start: int, end: int, names: Bytes, first: int, last: int) -> bool:
    """Return whether the bytes from `start` to `end` are names[first:last]."""
    if end - start != last - first:
        return False
    for number in range(last - first):
        if buffer[start + number] != names[first + number]:
            return False
    return True


@kernel
def find_properties(
    buffer: Bytes, start: int, end: int, names: Bytes, row: int, rows: memoryview
) -> int:
    """Write position and length of three values to rows[row + 10:]; return how many parts count.

    `names` is b"KEYSUNIQ_KEYTAGS". Law: RMQLOG-4.
    """
    count = 0
    part = start
    while part < end:
        separator = -1
        stop = part
        while stop < end and buffer[stop] != 2:
            if separator < 0 and buffer[stop] == 1:
                separator = stop
            stop += 1
        if part < separator < stop - 1:
            count += 1
            column = -1
            if is_name(buffer, part, separator, names, 0, 4):
                column = 10
            elif is_name(buffer, part, separator, names, 4, 12):
                column = 12
            elif is_name(buffer, part, separator, names, 12, 16):
                column = 14
            if column >= 0:
                rows[row + column] = separator + 1
                rows[row + column + 1] = stop - separator - 1
        part = stop + 1
    return count


@kernel
def read_message(
    buffer: Bytes, position: int, end: int, names: Bytes, row: int, rows: memoryview
) -> int:
    """Write the fields of a record to rows[row:]; return its size, or -1 if it is not sound.

    The first eight bytes lie in the buffer, the magic is right. Laws: RMQLOG-1, RMQLOG-3.
    """
    total_size = decode_int32(buffer, position)
    stop = position + total_size
    if total_size < 91 or stop > end:
        return -1
    flags = decode_int32(buffer, position + 36)
    at = position + 48 + (20 if flags // 16 % 2 else 8)
    body_at = at + 8 + (20 if flags // 32 % 2 else 8) + 12
    if body_at + 4 > stop:
        return -1
    rows[row] = position
    rows[row + 1] = total_size
    rows[row + 2] = decode_int64(buffer, position + 28)
    rows[row + 3] = decode_int64(buffer, at)
    rows[row + 4] = flags
    body_length = max(decode_int32(buffer, body_at), 0)
    at = body_at + 4
    rows[row + 5] = at
    rows[row + 6] = body_length
    rows[row + 7] = decode_int32(buffer, position + 8)
    at += body_length
    if at + 2 > stop:
        return -1
    if buffer[position + 7] == 167:
        topic_length = buffer[at] - 256 if buffer[at] >= 128 else buffer[at] + 0
        at += 1
    else:
        topic_length = decode_int16(buffer, at)
        at += 2
    rows[row + 8] = at
    rows[row + 9] = topic_length
    at += topic_length
    if topic_length < 0 or at + 2 > stop:
        return -1
    properties_length = max(decode_int16(buffer, at), 0)
    at += 2
    if at + properties_length != stop:
        return -1
    for column in range(10, 16):
        rows[row + column] = -1
    if properties_length == 0:
        rows[row + 11] = 0
    else:
        find_properties(buffer, at, stop, names, row, rows)
    return total_size


@kernel
def walk_messages(
    buffer: Bytes, position: int, end: int, names: Bytes, rows: memoryview
) -> tuple[int, int, int]:
    """Write a row of MESSAGE_ROW for each record from `position`.

    Return (how many, where it stopped, how it stopped).
    """
    count = 0
    while True:
        if (count + 1) * 16 > len(rows):
            return count, position, WALK_FULL
        if position + 8 > end:
            return count, position, WALK_OTHER
        magic = decode_int32(buffer, position + 4)
        if magic == -875286124 and 0 <= decode_int32(buffer, position) <= end - position:
            return count, position, WALK_BLANK
        if magic != -626843481 and magic != -626843477:
            return count, position, WALK_OTHER
        size = read_message(buffer, position, end, names, count * 16, rows)
        if size < 0:
            return count, position, WALK_OTHER
        position += size
        count += 1


@kernel
def extend_hash(buffer: Bytes, start: int, end: int, hashed: int) -> int:
    """Return the hash, 0..2^32-1, with the characters of these bytes behind it; -1: no UTF-8."""
    position = start
    while position < end:
        byte = buffer[position] + 0
        if byte < 128:
            hashed = (hashed * 31 + byte) & 4294967295
            position += 1
            continue
        character = utf8_character(buffer, position, end, 0)
        if character < 0:
            return -1
        code = character // 8
        position += character % 8
        if code >= 65536:
            hashed = add_unit(hashed, 55296 + (code - 65536) // 1024)
            code = 56320 + code % 1024
        hashed = add_unit(hashed, code)
    return hashed


@kernel
def key_hash(buffer: Bytes, start: int, end: int, topic_hash: int) -> int:
    """Return what an entry keeps of a topic and a key, 0..2^31-1; -1 if one is not UTF-8."""
    if topic_hash < 0:
        return -1
    hashed = extend_hash(buffer, start, end, topic_hash)
    return -1 if hashed < 0 else absolute_hash(hashed)


@kernel
def hash_keys(
    buffer: Bytes, rows: memoryview, with_tags: int, hashes: memoryview, messages: memoryview
) -> int:
    """Write the hash of each entry that the index has of the records, in order; return how many.

    Hash n is of the record messages[n], and -1 where its bytes are not UTF-8: first that of the
    unique key, then one for each key, then with tags that of the tags. A record that is rolled back
    has none. One hash for every two bytes of keys, and two for each record, have room.
    Laws: RMQSVC-13, RMQSVC-14, RMQSVC-15.
    """
    count = 0
    for message in range(len(rows) // 16):
        row = message * 16
        if (rows[row + 4] // 4) % 4 == 3:
            continue
        topic_hash = extend_hash(buffer, rows[row + 8], rows[row + 8] + rows[row + 9], 0)
        if topic_hash >= 0:
            topic_hash = add_unit(topic_hash, 35)
        if rows[row + 13] >= 0:
            start = rows[row + 12]
            hashes[count] = key_hash(buffer, start, start + rows[row + 13], topic_hash)
            messages[count] = message
            count += 1
        start = rows[row + 10]
        stop = start + rows[row + 11]
        while start < stop:
            end = start
            while end < stop and buffer[end] != 32:
                end += 1
            if end > start:
                hashes[count] = key_hash(buffer, start, end, topic_hash)
                messages[count] = message
                count += 1
            start = end + 1
        if with_tags != 0 and rows[row + 15] > 0:
            start = rows[row + 14]
            if topic_hash >= 0:
                topic_hash = add_unit(add_unit(topic_hash, 84), 35)
            hashes[count] = key_hash(buffer, start, start + rows[row + 15], topic_hash)
            messages[count] = message
            count += 1
    return count
