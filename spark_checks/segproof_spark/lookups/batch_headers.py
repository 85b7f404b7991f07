# SPDX-License-Identifier: Apache-2.0
"""The headers of a segment's batches of magic 2, read by numpy beside the implementation.

The walk ends like Kafka's reader of files, after the last whole batch. Upstream: Kafka 4.3.1:
FileLogInputStream.nextBatch, DefaultRecordBatch.
"""

from dataclasses import dataclass

import numpy as np

from segproof.files import File
from segproof.layouts.kafka import (
    BATCH,
    BATCH_HEADER_BYTES,
    HEADER_UP_TO_MAGIC_BYTES,
    LEGACY_MIN_BYTES,
    LOG_OVERHEAD_BYTES,
)
from segproof_spark.lookups.random_numbers import Int64Array
from segproof_spark.lookups.read_only_files import shorter

SIZE_AND_MAGIC = BATCH.struct(only=("size", "magic"))


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
    while size - position > HEADER_UP_TO_MAGIC_BYTES:
        if len(starts) >= limit:
            reason = "enough batches"
            break
        header = file.pread(BATCH_HEADER_BYTES, position)
        if len(header) < min(BATCH_HEADER_BYTES, size - position):
            raise shorter(file.path)
        length, magic = SIZE_AND_MAGIC.unpack_from(header)
        if length + LOG_OVERHEAD_BYTES < LEGACY_MIN_BYTES:
            reason = f"a length of {length}"
            break
        if length + LOG_OVERHEAD_BYTES > size - position:
            break  # the file ends inside
        if magic in (0, 1):
            return None
        if magic != 2 or length + LOG_OVERHEAD_BYTES < BATCH_HEADER_BYTES:
            reason = f"magic {magic}, a length of {length}"
            break
        starts.append(position)
        headers.append(header)
        position += length + LOG_OVERHEAD_BYTES
    rows = np.frombuffer(b"".join(headers), BATCH.dtype)
    names = ("size", "base_offset", "last_offset_delta", "max_timestamp")
    lengths, bases, deltas, times = (rows[name].astype(np.int64) for name in names)
    columns = [np.array(starts, np.int64), lengths + LOG_OVERHEAD_BYTES, bases + deltas, times]
    return Headers(np.stack(columns), position, reason)
