# SPDX-License-Identifier: Apache-2.0
"""Inner loops over the batches of a segment: which batch holds an offset, which record a timestamp.

`buffer` holds the bytes of a log from some position on, `filled` of them; `end` is where the log
ends, counted like every position from the start of the buffer, and may lie behind what is filled.
What these loops do not decide, they hand back: SEARCH_MORE asks for bytes behind `filled`,
SEARCH_ODD for the slow way (old compressed messages, damaged headers).

Mirrors: kafka/record_file.py, `search_for_offset_with_size` and `search_for_timestamp`.
Upstream: Kafka 4.3.1: FileRecords.searchForOffsetFromPosition, searchForTimestamp.
Laws: SCAN-17, SCAN-18, SEG-12, SEG-39.
"""

from segproof.kernels.dispatch import kernel
from segproof.kernels.records import (
    add_int64,
    attribute_bit,
    compression_code,
    decode_int32,
    decode_int64,
    next_record,
    plain_record,
)

Bytes = bytes | memoryview
SEARCH_FOUND, SEARCH_NONE, SEARCH_MORE, SEARCH_ODD = range(4)


@kernel
def find_batch(
    buffer: Bytes, start: int, filled: int, end: int, target: int
) -> tuple[int, int, int]:
    """Return (how it ended, position, size in bytes) of the batch from `start` on that holds
    `target`, or the first one behind it. Laws: SCAN-17, SEG-12.
    """
    position = start
    previous = -1
    previous_size = 0
    previous_last = 0
    while position < end - 17:
        if position + 17 > filled:
            return SEARCH_MORE, 0, 0
        size = decode_int32(buffer, position + 8)
        magic = buffer[position + 16] + 0
        if size < 14:
            return SEARCH_ODD, 0, 0
        if position > end - 12 - size:
            break
        if magic > 2 or (magic == 2 and size < 49):
            return SEARCH_ODD, 0, 0
        if position + 27 > filled and position + 12 + size > filled:
            return SEARCH_MORE, 0, 0
        base = decode_int64(buffer, position)
        last = base
        if magic == 2:
            last = add_int64(base, decode_int32(buffer, position + 23))
        elif compression_code(buffer[position + 17] + 0) != 0:
            return SEARCH_ODD, 0, 0
        if base == target:
            return SEARCH_FOUND, position, size + 12
        if base > target:
            if previous >= 0 and previous_last >= target:
                return SEARCH_FOUND, previous, previous_size
            return SEARCH_FOUND, position, size + 12
        previous = position
        previous_size = size + 12
        previous_last = last
        position += size + 12
    if previous >= 0 and previous_last >= target:
        return SEARCH_FOUND, previous, previous_size
    return SEARCH_NONE, 0, 0


@kernel
def find_batches(
    buffer: Bytes,
    filled: int,
    end: int,
    count: int,
    origin: int,
    starts: memoryview,
    targets: memoryview,
    positions: memoryview,
    sizes: memoryview,
) -> tuple[int, int]:
    """Find the batches of many targets; return (how many were decided, how the next one ended).

    `starts` and `positions` count from the beginning of the log; the buffer begins at `origin`. A
    target without a batch gets position and size -1.
    """
    for number in range(count):
        status, position, size = find_batch(
            buffer, starts[number] - origin, filled, end, targets[number]
        )
        if status > SEARCH_NONE:
            return number, status
        if status == SEARCH_FOUND:
            positions[number] = position + origin
            sizes[number] = size
        else:
            positions[number] = -1
            sizes[number] = -1
    return count, SEARCH_NONE


@kernel
def find_in_batch(
    buffer: Bytes, position: int, behind: int, target: int, starting_offset: int
) -> tuple[int, int, int]:
    """Return (how it ended, timestamp, offset) of the first record of one magic 2 batch at or after
    both the timestamp `target` and `starting_offset`.

    The batch lies whole in the buffer, from `position` to `behind`, exclusive. Records behind the
    one that is found are not read. Laws: SCAN-18, SEG-39.
    """
    attributes = buffer[position + 22] + 0
    count = decode_int32(buffer, position + 57)
    if compression_code(attributes) != 0 or count < 0:
        return SEARCH_ODD, 0, 0
    base = decode_int64(buffer, position)
    first_timestamp = decode_int64(buffer, position + 27)
    largest = decode_int64(buffer, position + 35)
    is_log_append = attribute_bit(attributes, 3) == 1
    at = position + 61
    for number in range(count):
        after, delta, offset_delta, _, _, _, _ = plain_record(buffer, at, behind)
        if after == 0:
            after, delta, offset_delta, _, _, _, _, _, _ = next_record(buffer, at, behind)
        at = after
        if at < 0 or (number == count - 1 and at != behind):
            return SEARCH_ODD, 0, 0
        timestamp = largest if is_log_append else add_int64(first_timestamp, delta)
        if timestamp >= target:
            offset = add_int64(base, offset_delta)
            if offset >= starting_offset:
                return SEARCH_FOUND, timestamp, offset
    return SEARCH_NONE, 0, 0


@kernel
def find_time(
    buffer: Bytes, start: int, filled: int, end: int, target: int, starting_offset: int
) -> tuple[int, int, int, int]:
    """Return (how it ended, timestamp, offset, position of the batch) of the first record from
    `start` on at or after both the timestamp `target` and `starting_offset`.

    SEARCH_MORE comes with the bytes wanted from the position on, 0 and the position of the batch
    that was not decided. Laws: SCAN-18, SEG-39.
    """
    position = start
    while position < end - 17:
        if position + 17 > filled:
            return SEARCH_MORE, 61, 0, position
        size = decode_int32(buffer, position + 8)
        if size < 14:
            return SEARCH_ODD, 0, 0, 0
        if position > end - 12 - size:
            break
        if buffer[position + 16] != 2 or size < 49:
            return SEARCH_ODD, 0, 0, 0
        if position + 61 > filled:
            return SEARCH_MORE, 61, 0, position
        behind = position + 12 + size
        largest = decode_int64(buffer, position + 35)
        if largest >= target:
            if behind > filled:
                return SEARCH_MORE, 12 + size, 0, position
            status, timestamp, offset = find_in_batch(
                buffer, position, behind, target, starting_offset
            )
            if status != SEARCH_NONE:
                return status, timestamp, offset, position
        position = behind
    return SEARCH_NONE, 0, 0, 0


@kernel
def find_times(
    buffer: Bytes,
    filled: int,
    end: int,
    count: int,
    origin: int,
    starts: memoryview,
    targets: memoryview,
    starting_offset: int,
    timestamps: memoryview,
    offsets: memoryview,
) -> tuple[int, int]:
    """Find the records of many timestamps; return (how many were decided, how the next one ended).

    As `find_batches`; a timestamp without a record gets -1 and -1.
    """
    for number in range(count):
        status, timestamp, offset, _ = find_time(
            buffer, starts[number] - origin, filled, end, targets[number], starting_offset
        )
        if status > SEARCH_NONE:
            return number, status
        if status == SEARCH_FOUND:
            timestamps[number] = timestamp
            offsets[number] = offset
        else:
            timestamps[number] = -1
            offsets[number] = -1
    return count, SEARCH_NONE
