# SPDX-License-Identifier: Apache-2.0
"""The headers of a segment's batches of magic 2, read by numpy beside the implementation.

The walk ends like Kafka's reader of files, after the last whole batch. Upstream: Kafka 4.3.1:
FileLogInputStream.nextBatch, DefaultRecordBatch.
"""

import struct
from dataclasses import dataclass

import numpy as np

from segproof.files import File
from segproof_spark.lookups.random_numbers import Int64Array
from segproof_spark.lookups.read_only_files import shorter

HEADER_BYTES = 61
"""A batch of magic 2 up to its records."""
HEADER = np.dtype(
    {
        "names": ["base_offset", "length", "last_offset_delta", "max_timestamp"],
        "formats": [">i8", ">i4", ">i4", ">i8"],
        "offsets": [0, 8, 23, 35],
        "itemsize": HEADER_BYTES,
    }
)
OVERHEAD = 12
"""Bytes of a batch that its length does not count."""
TO_MAGIC = 17
LENGTH_AND_MAGIC = struct.Struct(">8xi4xb")
LENGTH_LEAST = 14


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers of a segment."""

    columns: Int64Array
    """A column for each batch: position, size in bytes, last offset, largest timestamp in ms."""
    end_position: int
    """Exclusive: after the last of these batches."""
    reason: str
    """Why the walk ended before the end of the file; empty if it did not."""


def walk_headers(file: File, limit: int) -> Headers | None:
    """Return the headers up to a limit of their number, or None where a message is older.

    Raises: OSError.
    """
    size, position, reason = file.size(), 0, ""
    starts: list[int] = []
    headers: list[bytes] = []
    while size - position > TO_MAGIC:
        if len(starts) >= limit:
            reason = "enough batches"
            break
        header = file.pread(HEADER_BYTES, position)
        if len(header) < min(HEADER_BYTES, size - position):
            raise shorter(file.path)
        length, magic = LENGTH_AND_MAGIC.unpack_from(header)
        if length < LENGTH_LEAST:
            reason = f"a length of {length}"
            break
        if length + OVERHEAD > size - position:
            break  # the file ends inside
        if magic in (0, 1):
            return None
        if magic != 2 or length + OVERHEAD < HEADER_BYTES:
            reason = f"magic {magic}, a length of {length}"
            break
        starts.append(position)
        headers.append(header)
        position += length + OVERHEAD
    rows = np.frombuffer(b"".join(headers), HEADER)
    names = ("length", "base_offset", "last_offset_delta", "max_timestamp")
    lengths, bases, deltas, times = (rows[name].astype(np.int64) for name in names)
    columns = [np.array(starts, np.int64), lengths + OVERHEAD, bases + deltas, times]
    return Headers(np.stack(columns), position, reason)
