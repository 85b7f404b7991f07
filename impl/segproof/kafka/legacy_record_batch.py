# SPDX-License-Identifier: Apache-2.0
"""The records of a magic 0 or 1 message: itself, or the messages that a compressed wrapper holds.

A wrapper's value is the compressed concatenation of framed messages. Magic 0 keeps their offsets
absolute, magic 1 relative, so that the last one becomes the wrapper's own offset. There may be
millions of them in a small file, so they are read some thousands at a time: beside the inflated
bytes memory is constant.

Upstream: Kafka 4.3.1: LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator.
Laws: BATCH-8, BATCH-9, BATCH-10, BATCH-11.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.checksums import crc32
from segproof.compression import codec_name, decompress
from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    OutOfBoundsError,
    SegproofError,
)
from segproof.kafka.record import Int64Array, RecordColumns
from segproof.kernels import legacy_records as kernels
from segproof.kernels.records import add_int64, attribute_bit, compression_code
from segproof.layouts import kafka as layouts

_ATTRIBUTES_AT = layouts.MESSAGE_1["attributes"].place
_TIMESTAMP_TYPE_BIT = 3
_ROWS_AT_ONCE = 1 << 12
_STEPPED_BYTES_OF_A_UNIT = 2048
_READ_BYTES_OF_A_UNIT = 512
"""So many bytes, as they are stored, are stepped over or read in one unit of a kernel's work, with
16 or 4 messages of a usual 128 bytes. A small file inflates to millions of messages, and a compiler
beside them takes more memory than they do: it pays for what is large on disk."""

# The head of a message at any byte of the data: stride 1 makes one gather of numpy read them all.
_HEAD = layouts.MESSAGE_1.dtype_within(layouts.LEGACY_MIN_BYTES)
_HEAD_BYTES = np.dtype((np.void, layouts.LEGACY_MIN_BYTES))


class _Messages(NamedTuple):
    """Messages back to back, and what their wrapper says about all of them."""

    data: memoryview
    last: int = 0
    """Where the last one begins."""
    offset_shift: int = 0
    """What is added to the stored offsets, wrapped at 64 bits."""
    append_time: int | None = None
    """The timestamp of the messages of magic 1, where the wrapper has LogAppendTime."""


def legacy_offsets(message: memoryview, limit: int) -> tuple[int, int]:
    """Return the offsets of the first and the last record of one whole framed message.

    Raises: what upstream meets before the first record. Laws: BATCH-9 to BATCH-11.
    """
    inner = _messages(message, limit)
    attributes = inner.data[_ATTRIBUTES_AT]
    if compression_code(attributes) != 0:
        raise _nested_error(attributes)
    offset, shift = layouts.MESSAGE_1["offset"], inner.offset_shift
    return add_int64(offset.of(inner.data), shift), add_int64(
        offset.of(inner.data, inner.last), shift
    )


def legacy_blocks(
    message: memoryview, limit: int, rows_at_once: int | None = _ROWS_AT_ONCE
) -> Iterator[RecordColumns]:
    """Yield the records of one whole framed message, in blocks of at most so many rows.

    No block is empty; None asks for a single one. `limit` bounds the decompressed bytes. Raises,
    behind the records before it, what ends them; what upstream meets before the first record, at
    once. Laws: BATCH-9 to BATCH-11.
    """
    inner = _messages(message, limit)
    data = inner.data
    # A message takes 26 bytes at least, so one row more than these is never filled. numpy leaves
    # the memory untouched, so the rows that there are not cost nothing.
    most = len(data) // layouts.LEGACY_MIN_BYTES + 1
    capacity = min(most, rows_at_once or most)
    position, status = 0, kernels.LEGACY_FULL
    kernels.walk_legacy_messages.announce(len(message) // _READ_BYTES_OF_A_UNIT)
    while status == kernels.LEGACY_FULL:
        rows = np.empty((capacity, kernels.LEGACY_ROW), np.int64)
        count, status, position = kernels.walk_legacy_messages(
            data, position, len(data), capacity, rows.reshape(-1).data
        )
        good = _good_count(rows[:count])
        if good:
            yield _columns(inner, rows[:good])
        if good < count:
            raise _row_error(rows[good].tolist())


def legacy_times(message: memoryview, limit: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield timestamps and offsets of the same records, in blocks; raise what ends them.

    Keys and values are not looked at, so a bad one ends nothing, as in upstream's searches.
    """
    inner = _messages(message, limit)
    places = len(inner.data) - layouts.LEGACY_MIN_BYTES + 1
    all_heads = np.ndarray((places,), _HEAD_BYTES, inner.data, strides=(1,))
    for positions in _positions(inner.data, len(message)):
        heads = all_heads[positions].view(_HEAD)
        count = _plain_count(heads["attributes"])
        plain = heads[:count]
        timestamps = np.where(plain["magic"] == 0, -1, plain["timestamp"].astype(np.int64))
        offsets = plain["offset"].astype(np.int64)
        _apply_wrapper(inner, offsets, timestamps, plain["magic"])
        yield timestamps, offsets
        if count < len(heads):
            raise _nested_error(int(heads["attributes"][count]))


def check_inner_messages(message: memoryview, limit: int) -> list[int]:
    """Check what a whole framed message wraps; return the rows of another magic than its own.

    Those are not checked, nor what lies behind one that is compressed itself.
    Raises: CorruptRecordError for a wrong checksum; what upstream meets before the first record.
    """
    inner = _messages(message, limit)
    foreign: list[int] = []
    row = 0
    for positions in _positions(inner.data, len(message)):
        for position in positions.tolist():
            size = layouts.MESSAGE_1["size"].of(inner.data, position)
            end = position + layouts.LOG_OVERHEAD_BYTES + size
            body = inner.data[position + layouts.MESSAGE_CHECKED_FROM : end]
            if compression_code(body[1]) != 0:
                return foreign
            if body[0] != message[layouts.MESSAGE_1["magic"].place]:
                foreign.append(row)
            elif crc32(body) != layouts.MESSAGE_1["crc"].of(inner.data, position):
                raise CorruptRecordError(
                    f"message {row} inside a compressed one has a wrong checksum", law="BATCH-14"
                )
            row += 1
    return foreign


def inner_problem(message: memoryview, limit: int) -> tuple[str, int]:
    """Return what is wrong inside a whole compressed message, and how many messages have it.

    Empty and 0 if nothing is. Readers that check no checksums get the records nevertheless. Bytes
    after the last whole message are dropped by every reader.
    Raises: what upstream meets before the first record.
    """
    data = _messages(message, limit).data
    wrong = row = end = 0
    first = -1
    for positions in _positions(data, len(message)):
        for position in positions.tolist():
            end = (
                position + layouts.LOG_OVERHEAD_BYTES + layouts.MESSAGE_1["size"].of(data, position)
            )
            checked = data[position + layouts.MESSAGE_CHECKED_FROM : end]
            if crc32(checked) != layouts.MESSAGE_1["crc"].of(data, position):
                wrong += 1
                first = row if first < 0 else first
            row += 1
    if wrong:
        return f"message {first} of {row} inside a compressed one has a wrong checksum", wrong
    if end < len(data):
        return (
            f"{len(data) - end} bytes after message {row - 1}, the last whole one, are dropped",
            1,
        )
    return "", 0


def _messages(message: memoryview, limit: int) -> _Messages:
    """Return the message itself, or the messages that it wraps: one at least, none of a bad size.

    Raises: what upstream meets before the first record.
    """
    codec = compression_code(message[_ATTRIBUTES_AT])
    if codec == 0:
        return _Messages(message)
    row = np.empty(kernels.LEGACY_ROW, np.int64)
    kernels.walk_legacy_messages(message, 0, len(message), 1, row.data)
    outer = row.tolist()
    value = _wrapped_value(message, outer, codec)
    data = decompress(codec_name(codec), value, magic=outer[7], limit=limit)
    last = -1
    for positions in _positions(data, len(message)):
        last = int(positions[-1])
    if last < 0:
        raise InvalidRecordError("a compressed message holds no message", law="BATCH-11")
    if outer[7] == 0:
        return _Messages(data, last)
    shift = _offset_shift(outer[0], layouts.MESSAGE_1["offset"].of(data, last))
    is_append_time = attribute_bit(outer[6], _TIMESTAMP_TYPE_BIT) == 1
    return _Messages(data, last, shift, outer[1] if is_append_time else None)


def _positions(data: memoryview, stored_bytes: int) -> Iterator[Int64Array]:
    """Yield where the messages begin, thousands at a time, each time in the same array.

    `stored_bytes` is what they take in their file. Raises: CorruptRecordError for a size below 14,
    behind the messages before it.
    """
    positions = np.empty(min(_ROWS_AT_ONCE, len(data) // layouts.LEGACY_MIN_BYTES + 1), np.int64)
    position, status = 0, kernels.LEGACY_FULL
    kernels.walk_legacy_positions.announce(stored_bytes // _STEPPED_BYTES_OF_A_UNIT)
    while status == kernels.LEGACY_FULL:
        count, status, position = kernels.walk_legacy_positions(
            data, position, len(data), len(positions), positions.data
        )
        if count:
            yield positions[:count]
    if status == kernels.LEGACY_BAD_SIZE:
        raise CorruptRecordError(
            "a message inside a compressed one has a size below 14", law="BATCH-11"
        )


def _wrapped_value(message: memoryview, outer: list[int], codec: int) -> memoryview:
    if codec_name(codec) == "zstd":
        raise InvalidRecordError("zstd needs magic 2", law="BATCH-11")
    position, length = outer[4], outer[5]
    if position < 0:
        raise _field_error(position)
    if length < 0:
        raise InvalidRecordError("a compressed message has a null value", law="BATCH-11")
    return message[position : position + length]


def _offset_shift(offset: int, last_inner: int) -> int:
    """Return what makes the last inner offset that of the wrapper, wrapped at 64 bits."""
    if offset == 0:
        return 0
    if offset < last_inner:
        raise InvalidRecordError(
            "the offset of a compressed message is below its last inner offset",
            law="BATCH-10",
            expected=f"at least {last_inner}",
            actual=offset,
        )
    return (offset - last_inner + 2**63) % 2**64 - 2**63


def _good_count(rows: Int64Array) -> int:
    """Return how many rows lie before the first that is compressed itself or has a bad field."""
    is_bad = (rows[:, 2] < 0) | (rows[:, 4] < 0) | (rows[:, 6] % 8 != 0)
    return int(is_bad.argmax()) if is_bad.any() else len(rows)


def _row_error(row: list[int]) -> SegproofError:
    if compression_code(row[6]) != 0:
        return _nested_error(row[6])
    return _field_error(row[2] if row[2] < 0 else row[4])


def _plain_count(attributes: NDArray[np.integer]) -> int:
    """Return how many messages lie before the first that is compressed itself."""
    is_compressed = attributes % 8 != 0
    return int(is_compressed.argmax()) if is_compressed.any() else len(attributes)


def _apply_wrapper(
    inner: _Messages,
    offsets: Int64Array,
    timestamps: Int64Array,
    magics: NDArray[np.integer],
) -> None:
    """Give inner messages the offsets and timestamps that their wrapper means."""
    offsets += np.int64(inner.offset_shift)
    if inner.append_time is not None:
        timestamps[magics == 1] = inner.append_time


def _columns(inner: _Messages, rows: Int64Array) -> RecordColumns:
    _apply_wrapper(inner, rows[:, 0], rows[:, 1], rows[:, 7])
    none = np.full(len(rows), -1, np.int64)
    zero = np.zeros(len(rows), np.int64)
    return RecordColumns(
        inner.data, rows[:, 0], rows[:, 1], none, rows[:, 2], rows[:, 3], rows[:, 4], rows[:, 5],
        zero, zero,
    )  # fmt: skip


def _nested_error(attributes: int) -> SegproofError:
    codec_name(compression_code(attributes))
    return InvalidRecordError("a message inside another is compressed", law="BATCH-11")


def _field_error(position: int) -> SegproofError:
    if position == kernels.FIELD_NO_ROOM:
        return OutOfBoundsError("a message ends before the length of its key or value")
    return InvalidArgumentError("the key or value of a message is longer than the message")
