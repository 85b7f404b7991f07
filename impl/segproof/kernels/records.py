# SPDX-License-Identifier: Apache-2.0
"""Inner loops over record batches: scanning, header fields, varints, records, sequences.

Layout of a magic 2 batch (big-endian): offset 0:8, size 8:4, leader epoch 12:4, magic 16:1,
  CRC-32C 17:4, attributes 21:2, last offset delta 23:4, base timestamp 27:8, max timestamp 35:8,
  producer id 43:8, producer epoch 51:2, base sequence 53:4, count 57:4, records 61.
Layout of magic 0 and 1: see kernels/legacy_records.py; their headers are decoded here too.

`buffer` is always bytes or a memoryview of bytes; `rows` a memoryview of int64, filled row by row.
A kernel never raises on bad data and never reads outside the limits it is given: it returns a
status, and the callers make errors of it. Positions count from the start of `buffer`.

Upstream: Kafka 4.3.1: DefaultRecord, DefaultRecordBatch, LegacyRecord, FileLogInputStream.
Laws: BATCH-1, 4, 5, 7, 16 to 18; SCAN-1, 2, 4 to 6, 10.
"""

from segproof.kernels.dispatch import kernel

Bytes = bytes | memoryview
BATCH_ROW = 2
"""Columns of `walk_batches`: position, size in bytes."""
RECORD_ROW = 8
"""Columns of `walk_records`: timestamp delta, offset delta, key position, key length (-1: null),
value position, value length (-1: null), position of the first header, header count."""
SUMMARY_ROW = 6
"""Columns of `summarise_batches`: status, position of the fault, records read, last offset delta
(-1: no record), 1 if the offset deltas rise and none is negative, largest timestamp delta."""
HEADER_ROW = 4
"""Columns of `read_headers`: key position, key length, value position, value length (-1: null)."""
HEADER_FIELDS = 14
"""Values of `decode_batch_header`: base offset, last offset, magic, attributes, checksum, base
timestamp, max timestamp, producer id, producer epoch, base sequence, leader epoch, record count,
last offset delta, size in bytes."""

# How a varint fails; both are negative, so that no position can be mistaken for them.
OVERLONG = -1
TRUNCATED = -2

# How `walk_batches` stops.
SCAN_END, SCAN_BAD_SIZE, SCAN_BAD_MAGIC, SCAN_SHORT_HEADER, SCAN_MORE, SCAN_FULL = range(6)

# How a walk over records ends; 0 is success.
(
    RECORDS_GOOD, RECORDS_OVERLONG_LENGTH, RECORDS_TRUNCATED, RECORDS_BAD_LENGTH,
    RECORDS_BAD_VARINT, RECORDS_BAD_HEADER_COUNT, RECORDS_BAD_HEADER_KEY, RECORDS_NOT_CONSUMED,
    RECORDS_LEFT_OVER, RECORDS_NEGATIVE_COUNT, RECORDS_SKIPPED,
) = range(11)  # fmt: skip


@kernel
def decode_int16(buffer: Bytes, position: int) -> int:
    """Return the signed big-endian int16 at `position`."""
    value = buffer[position] * 256 + buffer[position + 1]
    return value - 65536 if value >= 32768 else value


@kernel
def decode_int32(buffer: Bytes, position: int) -> int:
    """Return the signed big-endian int32 at `position`."""
    value = (
        buffer[position] * 16777216
        + buffer[position + 1] * 65536
        + buffer[position + 2] * 256
        + buffer[position + 3]
    )
    return value - 4294967296 if value >= 2147483648 else value


@kernel
def decode_int64(buffer: Bytes, position: int) -> int:
    """Return the signed big-endian int64 at `position`."""
    high = decode_int32(buffer, position)
    low = decode_int32(buffer, position + 4)
    return high * 4294967296 + (low + 4294967296 if low < 0 else low)


@kernel
def add_int64(one: int, other: int) -> int:
    """Return the sum of two int64, wrapped at 64 bits."""
    # Each case subtracts in steps that stay inside 64 bits, so that compiled code agrees.
    if other > 0 and one > 9223372036854775807 - other:
        return one - 9223372036854775807 - 1 + other - 9223372036854775807 - 1
    if other < 0 and one < -9223372036854775807 - 1 - other:
        return one + 9223372036854775807 + 1 + other + 9223372036854775807 + 1
    return one + other


@kernel
def decode_varint(buffer: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return (value, position behind it) of a zigzag varint that lies before `end`.

    The second number is OVERLONG after five bytes that all continue, TRUNCATED at `end`. Bits
    above 32 in the fifth byte are dropped, as upstream's shift drops them. Laws: BATCH-7.
    """
    if position < end:
        # Nearly every varint of a record is one byte.
        byte = buffer[position] + 0
        if byte < 128:
            return (byte // 2 if byte % 2 == 0 else -(byte // 2) - 1), position + 1
    raw = 0
    scale = 1
    for _ in range(5):
        if position >= end:
            return 0, TRUNCATED
        byte = buffer[position] + 0
        position += 1
        raw += (byte % 128) * scale
        if byte < 128:
            raw %= 4294967296
            return (raw // 2 if raw % 2 == 0 else -(raw // 2) - 1), position
        scale *= 128
    return 0, OVERLONG


@kernel
def decode_varlong(buffer: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return (value, position behind it) of a zigzag varlong that lies before `end`.

    As `decode_varint`, with ten bytes and 64 bits. Bit 63 is held apart, so that no number here
    needs more than 63 bits. Laws: BATCH-7.
    """
    if position < end:
        byte = buffer[position] + 0
        if byte < 128:
            return (byte // 2 if byte % 2 == 0 else -(byte // 2) - 1), position + 1
    raw = 0
    scale = 1
    for index in range(10):
        if position >= end:
            return 0, TRUNCATED
        byte = buffer[position] + 0
        position += 1
        if index < 9:
            raw += (byte % 128) * scale
        if byte < 128:
            half = raw // 2
            if index == 9:
                half += (byte % 2) * 4611686018427387904
            return (half if raw % 2 == 0 else -half - 1), position
        if index < 8:
            scale *= 128
    return 0, OVERLONG


@kernel
def compression_code(attributes: int) -> int:
    """Return bits 0 to 2 of the attributes: none, gzip, snappy, lz4, zstd; 5 to 7 are unknown."""
    return attributes % 8


@kernel
def attribute_bit(attributes: int, bit: int) -> int:
    """Return one bit: 3 timestamp type, 4 transactional, 5 control, 6 delete horizon."""
    for _ in range(bit):
        attributes //= 2
    return attributes % 2


@kernel
def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence `increment` later; 2147483647 is followed by 0. Laws: BATCH-5.

    `increment` may be negative (a record's offset delta); then it wraps at 32 bits like upstream.
    """
    limit = 2147483647 - increment
    if limit >= 2147483648:
        limit -= 4294967296
    if sequence > limit:
        following = increment - (2147483647 - sequence) - 1
    else:
        following = sequence + increment
    return following + 4294967296 if following < -2147483648 else following


@kernel
def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence `decrement` earlier; 0 follows 2147483647. Laws: BATCH-5."""
    if sequence < decrement:
        return 2147483647 - (decrement - sequence) + 1
    return sequence - decrement


@kernel
def decode_batch_header(buffer: Bytes, position: int, fields: memoryview) -> None:
    """Decode the header at `position` into HEADER_FIELDS int64 values.

    61 bytes must be there for magic 2, else 26 (18 for magic 0). A magic 0 or 1 message has no
    base offset of its own: it gets the last one, with count 1, or -1 where it is compressed.
    Laws: BATCH-1, BATCH-4, BATCH-12.
    """
    magic = buffer[position + 16] + 0
    offset = decode_int64(buffer, position)
    fields[0] = offset
    fields[13] = decode_int32(buffer, position + 8) + 12
    if magic == 2:
        delta = decode_int32(buffer, position + 23)
        fields[1] = add_int64(offset, delta)
        fields[3] = decode_int16(buffer, position + 21)
        checksum = decode_int32(buffer, position + 17)
        fields[5] = decode_int64(buffer, position + 27)
        fields[6] = decode_int64(buffer, position + 35)
        fields[7] = decode_int64(buffer, position + 43)
        fields[8] = decode_int16(buffer, position + 51)
        fields[9] = decode_int32(buffer, position + 53)
        fields[10] = decode_int32(buffer, position + 12)
        fields[11] = decode_int32(buffer, position + 57)
        fields[12] = delta
    else:
        attributes = buffer[position + 17] + 0
        fields[1] = offset
        fields[3] = attributes - 256 if attributes >= 128 else attributes
        checksum = decode_int32(buffer, position + 12)
        timestamp = -1
        if magic == 1:
            timestamp = decode_int64(buffer, position + 18)
        fields[5] = timestamp
        fields[6] = timestamp
        fields[7] = -1
        fields[8] = -1
        fields[9] = -1
        fields[10] = -1
        fields[11] = 1 if compression_code(attributes) == 0 else -1
        fields[12] = 0
    fields[2] = magic - 256 if magic >= 128 else magic
    fields[4] = checksum + 4294967296 if checksum < 0 else checksum


@kernel
def walk_batches(
    buffer: Bytes, start: int, filled: int, end: int, whole: int, capacity: int, rows: memoryview
) -> tuple[int, int, int]:
    """Fill `rows` with the batches from `start`; return (count, next position, how it stopped).

    `filled` bytes of the buffer are read; the scanned range ends at `end`, which may lie behind
    them. With `whole` 1 a batch counts when all of it is in the buffer, with 0 when its header is.
    Stops: SCAN_END, SCAN_BAD_SIZE, SCAN_BAD_MAGIC and SCAN_SHORT_HEADER end the scan; SCAN_MORE
    and SCAN_FULL ask for more bytes or rows, from the returned position. Laws: SCAN-1, 2, 4, 5,
    6, 10 (a magic outside 0..2 is refused, which upstream's file scanner does not do).
    """
    position = start
    count = 0
    while True:
        if position >= end - 17:
            return count, position, SCAN_END
        if position + 17 > filled:
            return count, position, SCAN_MORE
        size = decode_int32(buffer, position + 8)
        if size < 14:
            return count, position, SCAN_BAD_SIZE
        if position > end - 12 - size:
            return count, position, SCAN_END
        magic = buffer[position + 16] + 0
        if magic > 2:
            return count, position, SCAN_BAD_MAGIC
        header = 61 if magic == 2 else 26
        if position + header > end:
            return count, position, SCAN_SHORT_HEADER
        if position + header > filled or (whole == 1 and position + 12 + size > filled):
            return count, position, SCAN_MORE
        if count == capacity:
            return count, position, SCAN_FULL
        rows[count * BATCH_ROW] = position
        rows[count * BATCH_ROW + 1] = size + 12
        count += 1
        position += size + 12


@kernel
def next_header(buffer: Bytes, position: int, end: int) -> tuple[int, int, int, int, int]:
    """Return the position behind the header (a fault: minus the status), key and value slices."""
    key_length, key = decode_varint(buffer, position, end)
    if key < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0
    if key_length < 0:
        return -RECORDS_BAD_HEADER_KEY, 0, 0, 0, 0
    if key_length > end - key:
        return -RECORDS_TRUNCATED, 0, 0, 0, 0
    value_length, value = decode_varint(buffer, key + key_length, end)
    if value < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0
    if value_length > end - value:
        return -RECORDS_TRUNCATED, 0, 0, 0, 0
    if value_length < 0:
        return value, key, key_length, value, -1
    return value + value_length, key, key_length, value, value_length


@kernel
def read_headers(
    buffer: Bytes, end: int, records: memoryview, count: int, capacity: int, rows: memoryview
) -> int:
    """Fill `rows` with the headers of records, one behind the other; return how many they are.

    `records` says of each of `count` records where its first header begins, and how many it has.
    At a fault, or where more than `capacity` would be filled, nothing more is read.
    """
    filled = 0
    for index in range(count):
        position = records[2 * index]
        for _ in range(records[2 * index + 1]):
            after, key, key_length, value, value_length = next_header(buffer, position, end)
            if after < 0 or filled == capacity:
                return filled
            at = filled * HEADER_ROW
            rows[at] = key
            rows[at + 1] = key_length
            rows[at + 2] = value
            rows[at + 3] = value_length
            filled += 1
            position = after
    return filled


@kernel
def next_record(
    buffer: Bytes, position: int, end: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Return the position behind the record, then the RECORD_ROW values; a fault: minus the status.

    Any negative key or value length means null, as upstream reads it. Laws: BATCH-16, BATCH-18.
    """
    length, body = decode_varint(buffer, position, end)
    if body == OVERLONG:
        return -RECORDS_OVERLONG_LENGTH, 0, 0, 0, 0, 0, 0, 0, 0
    if body < 0:
        return -RECORDS_TRUNCATED, 0, 0, 0, 0, 0, 0, 0, 0
    if length < 0 or length > end - body:
        return -RECORDS_BAD_LENGTH, 0, 0, 0, 0, 0, 0, 0, 0
    limit = body + length
    timestamp_delta, after = decode_varlong(buffer, body + 1, limit)
    if after < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0, 0, 0, 0, 0
    offset_delta, after = decode_varint(buffer, after, limit)
    if after < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0, 0, 0, 0, 0
    key_length, key = decode_varint(buffer, after, limit)
    if key < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0, 0, 0, 0, 0
    if key_length > limit - key:
        return -RECORDS_TRUNCATED, 0, 0, 0, 0, 0, 0, 0, 0
    if key_length < 0:
        key_length = -1
    value_length, value = decode_varint(buffer, key + max(key_length, 0), limit)
    if value < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0, 0, 0, 0, 0
    if value_length > limit - value:
        return -RECORDS_TRUNCATED, 0, 0, 0, 0, 0, 0, 0, 0
    if value_length < 0:
        value_length = -1
    header_count, first_header = decode_varint(buffer, value + max(value_length, 0), limit)
    if first_header < 0:
        return -RECORDS_BAD_VARINT, 0, 0, 0, 0, 0, 0, 0, 0
    if header_count < 0 or header_count > limit - first_header:
        return -RECORDS_BAD_HEADER_COUNT, 0, 0, 0, 0, 0, 0, 0, 0
    after = first_header
    for _ in range(header_count):
        after = next_header(buffer, after, limit)[0]
        if after < 0:
            return after, 0, 0, 0, 0, 0, 0, 0, 0
    if after != limit:
        return -RECORDS_NOT_CONSUMED, 0, 0, 0, 0, 0, 0, 0, 0
    return (
        limit, timestamp_delta, offset_delta, key, key_length, value, value_length,
        first_header, header_count,
    )  # fmt: skip


@kernel
def walk_records(
    buffer: Bytes, start: int, end: int, count: int, capacity: int, rows: memoryview
) -> tuple[int, int, int]:
    """Fill `rows` with the records of a magic 2 block; return (rows, status, position it stopped).

    `count` is what the batch header says; at most `capacity` rows are written, and a block that
    holds more records than that returns RECORDS_GOOD with `capacity` rows for the caller to go on.
    The last record counts only if nothing is left behind it. With count 0 nothing is read.
    Laws: BATCH-16, BATCH-17, BATCH-18.
    """
    if count < 0:
        return 0, RECORDS_NEGATIVE_COUNT, start
    position = start
    for row in range(min(count, capacity)):
        (
            after, timestamp_delta, offset_delta, key, key_length, value, value_length,
            headers, header_count,
        ) = next_record(buffer, position, end)  # fmt: skip
        if after < 0:
            return row, -after, position
        if row == count - 1 and after != end:
            return row, RECORDS_LEFT_OVER, after
        at = row * RECORD_ROW
        rows[at] = timestamp_delta
        rows[at + 1] = offset_delta
        rows[at + 2] = key
        rows[at + 3] = key_length
        rows[at + 4] = value
        rows[at + 5] = value_length
        rows[at + 6] = headers
        rows[at + 7] = header_count
        position = after
    return min(count, capacity), RECORDS_GOOD, position


@kernel
def short_varint(buffer: Bytes, position: int) -> tuple[int, int]:
    """Return (value, position behind it) of a varint of one or two bytes; position 0: it is longer.

    Both bytes must be there.
    """
    first = buffer[position] + 0
    if first < 128:
        return first // 2 - (first % 2) * (first // 2 * 2 + 1), position + 1
    second = buffer[position + 1] + 0
    if second < 128:
        raw = first - 128 + second * 128
        return raw // 2 - (raw % 2) * (raw // 2 * 2 + 1), position + 2
    return 0, 0


@kernel
def plain_record(
    buffer: Bytes, position: int, end: int
) -> tuple[int, int, int, int, int, int, int]:
    """Return what `next_record` does but for the headers; only 0 where a record is left to it.

    These are records with a fault, with headers, with a longer varint, and very short ones. All
    others are read here, two and a half times as fast.
    """
    if position + 9 > end:
        return 0, 0, 0, 0, 0, 0, 0
    length, body = short_varint(buffer, position)
    limit = body + length
    # The deltas and the key's length end 7 bytes behind `body` at the latest.
    if body == 0 or length < 7 or limit > end:
        return 0, 0, 0, 0, 0, 0, 0
    timestamp_delta, at = short_varint(buffer, body + 1)
    if at == 0:
        return 0, 0, 0, 0, 0, 0, 0
    offset_delta, at = short_varint(buffer, at)
    if at == 0:
        return 0, 0, 0, 0, 0, 0, 0
    key_length, key = short_varint(buffer, at)
    if key == 0:
        return 0, 0, 0, 0, 0, 0, 0
    key_length = max(key_length, -1)
    at = key + max(key_length, 0)
    if at + 2 > limit:
        return 0, 0, 0, 0, 0, 0, 0
    value_length, value = short_varint(buffer, at)
    if value == 0:
        return 0, 0, 0, 0, 0, 0, 0
    value_length = max(value_length, -1)
    at = value + max(value_length, 0)
    if at + 1 != limit or buffer[at] != 0:
        return 0, 0, 0, 0, 0, 0, 0
    return limit, timestamp_delta, offset_delta, key, key_length, value, value_length


@kernel
def read_batches(
    buffer: Bytes, batches: memoryview, count: int, capacity: int, columns: memoryview
) -> tuple[int, int]:
    """Read the records of uncompressed magic 2 batches that lie whole in the buffer.

    `batches` holds `count` rows of `walk_batches`, none below 61 bytes. `columns` gets those of
    RECORD_ROW, `capacity` numbers each, one behind the other. Return how many batches were read
    and how many records they have: fewer than `count` where the next one has a fault, or more
    records than there is room for. Laws: BATCH-16, BATCH-17, BATCH-18.
    """
    filled = 0
    for index in range(count):
        position = batches[index * BATCH_ROW]
        end = position + batches[index * BATCH_ROW + 1]
        records = decode_int32(buffer, position + 57)
        if records < 0 or records > capacity - filled:
            return index, filled
        position += 61
        for row in range(filled, filled + records):
            after, timestamp_delta, offset_delta, key, key_length, value, value_length = (
                plain_record(buffer, position, end)
            )
            headers, header_count = after, 0
            if after == 0:
                (
                    after, timestamp_delta, offset_delta, key, key_length, value, value_length,
                    headers, header_count,
                ) = next_record(buffer, position, end)  # fmt: skip
            if after < 0:
                return index, filled
            columns[row] = timestamp_delta
            columns[capacity + row] = offset_delta
            columns[2 * capacity + row] = key
            columns[3 * capacity + row] = key_length
            columns[4 * capacity + row] = value
            columns[5 * capacity + row] = value_length
            columns[6 * capacity + row] = headers
            columns[7 * capacity + row] = header_count
            position = after
        if records > 0 and position != end:
            return index, filled
        filled += records
    return count, filled


@kernel
def summarise_records(
    buffer: Bytes, start: int, end: int, count: int, rows: memoryview, at: int
) -> None:
    """Walk the records of one magic 2 block and write its SUMMARY_ROW at `rows[at]`."""
    status = RECORDS_GOOD if count >= 0 else RECORDS_NEGATIVE_COUNT
    position = start
    seen = 0
    last_delta = -1
    rising = 1
    largest = -9223372036854775807 - 1
    while status == RECORDS_GOOD and seen < count:
        after, timestamp_delta, offset_delta, _, _, _, _ = plain_record(buffer, position, end)
        if after == 0:
            after, timestamp_delta, offset_delta, _, _, _, _, _, _ = next_record(
                buffer, position, end
            )
        if after < 0:
            status = -after
        else:
            if offset_delta <= last_delta:
                rising = 0
            last_delta = offset_delta
            largest = max(largest, timestamp_delta)
            position = after
            seen += 1
            if seen == count and after != end:
                status = RECORDS_LEFT_OVER
    rows[at] = status
    rows[at + 1] = position
    rows[at + 2] = seen
    rows[at + 3] = last_delta
    rows[at + 4] = rising
    rows[at + 5] = largest


@kernel
def summarise_batches(buffer: Bytes, batches: memoryview, count: int, rows: memoryview) -> None:
    """Walk every record of the uncompressed magic 2 batches that lie whole in the buffer.

    `batches` holds `count` rows of `walk_batches`. One SUMMARY_ROW is written for each; its status
    is RECORDS_SKIPPED for magic 0 and 1, for compressed batches and for those below 61 bytes.
    """
    for index in range(count):
        position = batches[index * BATCH_ROW]
        size = batches[index * BATCH_ROW + 1]
        at = index * SUMMARY_ROW
        if buffer[position + 16] != 2 or size < 61 or buffer[position + 22] % 8 != 0:
            for column in range(SUMMARY_ROW):
                rows[at + column] = 0
            rows[at] = RECORDS_SKIPPED
        else:
            records = decode_int32(buffer, position + 57)
            summarise_records(buffer, position + 61, position + size, records, rows, at)
