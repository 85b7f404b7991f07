# SPDX-License-Identifier: Apache-2.0
"""The records of a magic 0 or 1 message: itself, or the messages that a compressed wrapper holds.

A wrapper's value is the compressed concatenation of framed messages. Magic 0 keeps their offsets
absolute, magic 1 relative, so that the last one becomes the wrapper's own offset.

Upstream: Kafka 4.3.1: LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator.
Laws: BATCH-8, BATCH-9, BATCH-10, BATCH-11.
Used by: kafka/record_batch.py.
"""

import numpy as np

from segproof.compression import COMPRESSION_NAMES, decompress
from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    OutOfBoundsError,
    SegproofError,
)
from segproof.kafka.records import Int64Array, RecordColumns
from segproof.kernels import records as kernels

__all__ = ["legacy_columns", "legacy_times"]

MIN_MESSAGE_BYTES = 26
"""Offset, size, and a magic 0 message without key and value."""
_TIMESTAMP_TYPE_BIT = 3


def legacy_columns(message: memoryview, limit: int) -> tuple[RecordColumns, SegproofError | None]:
    """Return the records of one whole framed message, and the error that ended them, if any.

    `limit` bounds the decompressed bytes. Errors that upstream meets before the first record come
    with no records. Laws: BATCH-9 to BATCH-11.
    """
    data, rows, error = _rows(message, limit)
    return _columns(data, rows, error)


def legacy_times(
    message: memoryview, limit: int
) -> tuple[Int64Array, Int64Array, SegproofError | None]:
    """Return timestamps and offsets of the same records, and the error that ended them.

    Keys and values are not looked at, so a bad one ends nothing, as in upstream's searches.
    """
    _, rows, error = _rows(message, limit)
    return rows[:, 1], rows[:, 0], error


def _rows(message: memoryview, limit: int) -> tuple[memoryview, Int64Array, SegproofError | None]:
    """Return the rows of the records, the bytes they point into, and the error behind them."""
    (outer,), _ = _walk(message)
    codec = kernels.compression_code(int(outer[6]))
    if codec == 0:
        return message, outer[np.newaxis, :], None
    try:
        value = _wrapped_value(message, outer, codec)
        data = decompress(COMPRESSION_NAMES[codec], value, magic=int(outer[7]), limit=limit)
        rows, is_good = _walk(data)
        if not is_good:
            raise CorruptRecordError(
                "a message inside a compressed one has a size below 14", law="BATCH-11"
            )
        _unwrap(outer, rows)
    except SegproofError as error:
        return message, np.empty((0, kernels.LEGACY_ROW), np.int64), error
    is_compressed = rows[:, 6] % 8 != 0
    if is_compressed.any():
        first = int(is_compressed.argmax())
        return data, rows[:first], _nested_error(int(rows[first, 6]) % 8)
    return data, rows, None


def _walk(data: memoryview) -> tuple[Int64Array, bool]:
    """Return the rows of `walk_legacy_messages` and whether it met no bad size."""
    # A message takes 26 bytes at least, so one row more than these is never filled. numpy leaves
    # the memory untouched, so the rows that there are not cost nothing.
    rows = np.empty((len(data) // MIN_MESSAGE_BYTES + 1, kernels.LEGACY_ROW), np.int64)
    count, status, _ = kernels.walk_legacy_messages(
        data, 0, len(data), len(rows), rows.reshape(-1).data
    )
    return rows[:count], status == kernels.LEGACY_GOOD


def _wrapped_value(message: memoryview, outer: Int64Array, codec: int) -> memoryview:
    if codec >= len(COMPRESSION_NAMES):
        raise InvalidArgumentError(f"{codec} is no codec", law="BATCH-18", actual=codec)
    if COMPRESSION_NAMES[codec] == "zstd":
        raise InvalidRecordError("zstd needs magic 2", law="BATCH-11")
    position, length = int(outer[4]), int(outer[5])
    if position < 0:
        raise _field_error(position)
    if length < 0:
        raise InvalidRecordError("a compressed message has a null value", law="BATCH-11")
    return message[position : position + length]


def _unwrap(outer: Int64Array, rows: Int64Array) -> None:
    """Give the inner messages the offsets and timestamps that their wrapper means."""
    if len(rows) == 0:
        raise InvalidRecordError("a compressed message holds no message", law="BATCH-11")
    if outer[7] == 0:
        return
    last_inner = int(rows[-1, 0])
    offset = int(outer[0])
    if offset != 0:
        if offset < last_inner:
            raise InvalidRecordError(
                "the offset of a compressed message is below its last inner offset",
                law="BATCH-10",
                expected=f"at least {last_inner}",
                actual=offset,
            )
        rows[:, 0] += rows.dtype.type(offset) - rows[-1, 0]
    if kernels.attribute_bit(int(outer[6]), _TIMESTAMP_TYPE_BIT):
        rows[rows[:, 7] == 1, 1] = outer[1]


def _columns(
    data: memoryview, rows: Int64Array, error: SegproofError | None
) -> tuple[RecordColumns, SegproofError | None]:
    is_bad = (rows[:, 2] < 0) | (rows[:, 4] < 0)
    if is_bad.any():
        first = int(is_bad.argmax())
        key, value = int(rows[first, 2]), int(rows[first, 4])
        error = _field_error(key if key < 0 else value)
        rows = rows[:first]
    none = np.full(len(rows), -1, np.int64)
    zero = np.zeros(len(rows), np.int64)
    columns = RecordColumns(
        data, rows[:, 0], rows[:, 1], none, rows[:, 2], rows[:, 3], rows[:, 4], rows[:, 5],
        zero, zero,
    )  # fmt: skip
    return columns, error


def _nested_error(codec: int) -> SegproofError:
    if codec >= len(COMPRESSION_NAMES):
        return InvalidArgumentError(f"{codec} is no codec", law="BATCH-18", actual=codec)
    return InvalidRecordError("a message inside another is compressed", law="BATCH-11")


def _field_error(position: int) -> SegproofError:
    if position == kernels.FIELD_NO_ROOM:
        return OutOfBoundsError("a message ends before the length of its key or value")
    return InvalidArgumentError("the key or value of a message is longer than the message")
