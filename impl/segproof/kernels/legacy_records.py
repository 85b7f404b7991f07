# SPDX-License-Identifier: Apache-2.0
"""Inner loops over messages of magic 0 and 1, which lie back to back where a wrapper was inflated.

Layout of a message (big-endian): offset 0:8, size 8:4, CRC-32 12:4, magic 16:1, attributes 17:1,
  (magic 1: timestamp 18:8,) key length 4, key, value length 4, value; length -1 is null.

Arguments, positions and statuses are as in kernels/records.py.

Upstream: Kafka 4.3.1: LegacyRecord, AbstractLegacyRecordBatch, ByteBufferLogInputStream.
Laws: BATCH-1, BATCH-11.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.records import decode_int32, decode_int64

Bytes = bytes | memoryview
LEGACY_ROW = 8
"""Columns of `walk_legacy_messages`: offset, timestamp (-1 in magic 0), key position, key length,
value position, value length, attributes, magic."""

# How a walk over magic 0 and 1 messages ends, and what is wrong with a field of one.
LEGACY_GOOD, LEGACY_BAD_SIZE, LEGACY_FULL = range(3)
FIELD_TOO_LONG = -1
FIELD_NO_ROOM = -2


@kernel
def walk_legacy_positions(
    buffer: Bytes, start: int, end: int, capacity: int, positions: memoryview
) -> tuple[int, int, int]:
    """Fill `positions` with where whole messages begin; return (count, status, where it stopped).

    Only sizes are looked at, so that each position has 26 bytes before `end`. A partial message at
    the end is dropped without a word. LEGACY_FULL asks for more room from the returned position.
    Laws: BATCH-11 (a size below 14 is LEGACY_BAD_SIZE).
    """
    position = start
    count = 0
    while position + 12 <= end:
        size = decode_int32(buffer, position + 8)
        if size < 14:
            return count, LEGACY_BAD_SIZE, position
        limit = position + 12 + size
        if limit > end:
            return count, LEGACY_GOOD, position
        if count == capacity:
            return count, LEGACY_FULL, position
        positions[count] = position
        count += 1
        position = limit
    return count, LEGACY_GOOD, position


@kernel
def legacy_field(buffer: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return (position, length) of a field with an int32 length before it.

    The position is FIELD_TOO_LONG or FIELD_NO_ROOM (for the length itself) where it is bad. Any
    negative length means null, as upstream reads it; the position is then behind the length.
    """
    if position + 4 > end:
        return FIELD_NO_ROOM, 0
    length = decode_int32(buffer, position)
    if length > end - position - 4:
        return FIELD_TOO_LONG, 0
    return position + 4, max(length, -1)


@kernel
def walk_legacy_messages(
    buffer: Bytes, start: int, end: int, capacity: int, rows: memoryview
) -> tuple[int, int, int]:
    """Fill `rows` with magic 0 or 1 messages; return (rows, status, position it stopped).

    A partial message at the end is dropped without a word. A bad key or value is left in its row
    as the negative position of `legacy_field`, and the walk goes on; behind a bad key there is no
    room for a value. A magic other than 0 is read like 1. LEGACY_FULL asks for more rows from the
    returned position. Laws: BATCH-11 (a size below 14 is LEGACY_BAD_SIZE).
    """
    position = start
    row = 0
    while position + 12 <= end:
        size = decode_int32(buffer, position + 8)
        if size < 14:
            return row, LEGACY_BAD_SIZE, position
        limit = position + 12 + size
        if limit > end:
            return row, LEGACY_GOOD, position
        if row == capacity:
            return row, LEGACY_FULL, position
        magic = buffer[position + 16] + 0
        timestamp = -1
        if magic != 0:
            timestamp = decode_int64(buffer, position + 18)
        key, key_length = legacy_field(buffer, position + (18 if magic == 0 else 26), limit)
        value = FIELD_NO_ROOM
        value_length = 0
        if key >= 0:
            value, value_length = legacy_field(buffer, key + max(key_length, 0), limit)
        at = row * LEGACY_ROW
        rows[at] = decode_int64(buffer, position)
        rows[at + 1] = timestamp
        rows[at + 2] = key
        rows[at + 3] = key_length
        rows[at + 4] = value
        rows[at + 5] = value_length
        rows[at + 6] = buffer[position + 17]
        rows[at + 7] = magic
        row += 1
        position = limit
    return row, LEGACY_GOOD, position
