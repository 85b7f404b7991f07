# SPDX-License-Identifier: Apache-2.0
"""The headers of a segment's batches of magic 2, read by numpy beside the implementation.

The walk ends as Kafka's reader of files does: behind the last batch that is there as a whole.
Upstream: Kafka 4.3.1: FileLogInputStream.nextBatch, DefaultRecordBatch.
"""

import errno
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.files import File
from segproof_spark.lookups.drawing import Int64Array

__all__ = ["HEADER_DTYPE", "Headers", "shorter", "walk_headers"]

HEADER_DTYPE: np.dtype[Any] = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
"""A batch of magic 2 up to its records: 61 bytes."""
OVERHEAD = 12
"""Bytes of a batch that its length does not count."""
TO_MAGIC = 17
LENGTH_LEAST = 14
CHUNK_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Headers:
    """What the headers of a segment say."""

    columns: Int64Array
    """A column for each batch: position, size in bytes, last offset, largest timestamp in ms."""
    end_position: int
    """Exclusive: behind the last of these batches."""
    reason: str
    """Why the batches behind are not told; empty: there are none."""


class _OlderMagicError(Exception):
    """A message of magic 0 or 1."""


def shorter(path: str) -> OSError:
    """Return the error of a file that ends before bytes that were there."""
    return OSError(errno.EIO, "the file became shorter while it was read", path)


def walk_headers(file: File, limit: int) -> Headers | None:
    """Return the headers up to a limit of their number, or None where a message is older.

    Raises: OSError.
    """
    size, position, count, reason = file.size(), 0, 0, ""
    parts = [np.empty((4, 0), np.int64)]
    try:
        while not reason and size - position > TO_MAGIC:
            data = file.pread(min(CHUNK_BYTES, size - position), position)
            if len(data) < min(CHUNK_BYTES, size - position):
                raise shorter(file.path)
            starts, reached, reason = _starts(data, size - position, limit - count)
            if not starts:
                break
            parts.append(_columns(data, starts, position))
            count += len(starts)
            position += reached
    except _OlderMagicError:
        return None
    return Headers(np.concatenate(parts, axis=1), position, reason)


def _starts(data: bytes, left: int, limit: int) -> tuple[list[int], int, str]:
    """Return where whole headers begin, where the batch behind begins, and why none follows.

    `left` bytes of the file begin with `data`. Raises: _OlderMagicError.
    """
    starts: list[int] = []
    at = 0
    while left - at > TO_MAGIC:
        if len(data) - at < HEADER_DTYPE.itemsize and len(data) < left:
            break  # of the next chunk
        if len(starts) >= limit:
            return starts, at, "enough batches"
        length = int.from_bytes(data[at + 8 : at + OVERHEAD], "big", signed=True)
        if length < LENGTH_LEAST:
            return starts, at, f"a length of {length}"
        if length + OVERHEAD > left - at:
            break  # the file ends inside
        magic = int.from_bytes(data[at + TO_MAGIC - 1 : at + TO_MAGIC], "big", signed=True)
        if magic in (0, 1):
            raise _OlderMagicError
        if magic != 2 or length + OVERHEAD < HEADER_DTYPE.itemsize:
            return starts, at, f"magic {magic}, a length of {length}"
        starts.append(at)
        at += length + OVERHEAD
    return starts, at, ""


def _columns(data: bytes, starts: list[int], position: int) -> Int64Array:
    places = np.array(starts, np.int64)
    raw: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    rows = raw[places[:, None] + np.arange(HEADER_DTYPE.itemsize)].view(HEADER_DTYPE).ravel()
    lengths, deltas = rows["length"].astype(np.int64), rows["last_offset_delta"].astype(np.int64)
    last_offsets = rows["base_offset"].astype(np.int64) + deltas
    times = rows["max_timestamp"].astype(np.int64)
    return np.stack([places + position, lengths + OVERHEAD, last_offsets, times])
