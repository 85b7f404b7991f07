# SPDX-License-Identifier: Apache-2.0
"""Inner loops over the records of a RocketMQ commit log: their fields, and the texts of their keys.

`buffer` is bytes or a memoryview of bytes; `rows` and `bounds` are memoryviews of int64. A kernel
never raises on bad data and never reads outside the limits it is given. Only records that lie whole
in the buffer and whose length is the sum of their fields become rows; what is wrong with another
one is said by rocketmq/message.py. Body checksums are the caller's.

Mirrors: segproof_model/rocketmq/message.py, its fields and properties.
Layout: see rocketmq/message.py.
Upstream: RocketMQ 5.5.1: CommitLog.checkMessageAndReturnSize, MessageDecoder, IndexService.
Laws: RMQLOG-1, RMQLOG-3, RMQLOG-4, RMQSVC-13 to RMQSVC-15.
Used by: rebuilding/rocketmq_index.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.records import decode_int16, decode_int32, decode_int64

__all__ = [
    "MESSAGE_ROW",
    "WALK_BLANK",
    "WALK_FULL",
    "WALK_OTHER",
    "copy_bytes",
    "find_properties",
    "join_keys",
    "read_message",
    "is_name",
    "walk_messages",
]

Bytes = bytes | bytearray | memoryview

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
    at = position + 48 + (20 if flags & 16 else 8)
    body_at = at + 8 + (20 if flags & 32 else 8) + 12
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
def copy_bytes(buffer: Bytes, start: int, end: int, texts: memoryview, position: int) -> int:
    """Copy a range of bytes into `texts`; return the position behind it."""
    for number in range(start, end):
        texts[position] = buffer[number] + 0
        position += 1
    return position


@kernel
def join_keys(
    buffer: Bytes,
    rows: memoryview,
    with_tags: int,
    texts: memoryview,
    bounds: memoryview,
    messages: memoryview,
) -> int:
    """Write the texts that the index has of each record, in its order; return how many.

    Text n is texts[bounds[n]:bounds[n + 1]], of the record messages[n]: topic, `#` and the unique
    key; then one for each key; with tags then topic, `#T#` and the tags. A record that is rolled
    back has none. The room must suffice: see `rebuilding/rocketmq_index.py`.
    Laws: RMQSVC-13, RMQSVC-14, RMQSVC-15.
    """
    count = 0
    at = 0
    bounds[0] = 0
    for message in range(len(rows) // 16):
        row = message * 16
        if (rows[row + 4] // 4) % 4 == 3:
            continue
        topic = rows[row + 8]
        topic_end = topic + rows[row + 9]
        for column in range(3):
            # The unique key comes first, which is the second of the columns.
            which = 12 if column == 0 else (10 if column == 1 else 14)
            start = rows[row + which]
            stop = start + rows[row + which + 1]
            if rows[row + which + 1] <= 0 or (which == 14 and with_tags == 0):
                continue
            while start < stop:
                end = stop
                if which == 10:
                    end = start
                    while end < stop and buffer[end] != 32:
                        end += 1
                if end > start:
                    at = copy_bytes(buffer, topic, topic_end, texts, at)
                    texts[at] = 35
                    at += 1
                    if which == 14:
                        texts[at] = 84
                        texts[at + 1] = 35
                        at += 2
                    at = copy_bytes(buffer, start, end, texts, at)
                    messages[count] = message
                    count += 1
                    bounds[count] = at
                start = end + 1
    return count
