# SPDX-License-Identifier: Apache-2.0
"""Where sound batches go on behind damage, and how far offsets lie from a base."""

import numpy as np
from numpy.typing import NDArray

from segproof.files import File
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import HEADER_UP_TO_MAGIC_BYTES

Int64Array = NDArray[np.int64]
FAR = 1 << 40
"""Stands for every distance from the base offset that 31 bits can't hold."""
MAX_DISTANCE = (1 << 31) - 1
MAX_CRC_BYTES = 32 << 20
"""The most bytes that are read to check checksums: of one batch, and behind one damaged place."""
MIN_MESSAGE_BYTES = 14
"""The least value, in bytes, of a size field."""
SEARCH_BYTES = 16 << 20
"""How many bytes behind damage a sound batch is looked for; a batch has about 1 MiB at most."""
SEARCH_PIECE_BYTES = 1 << 20
"""Bytes that the search reads at once."""


def distances(offsets: Int64Array, base_offset: int) -> Int64Array:
    """Return offset - base, with FAR or -FAR for what lies outside of 31 bits."""
    offsets = np.ascontiguousarray(offsets)
    if len(offsets) and int(offsets.min()) >= base_offset >= 0:
        # Nothing wraps, and there are no passes for it: nearly every log.
        apart = offsets - base_offset
        return apart if int(apart.max()) <= FAR else np.minimum(apart, FAR)
    base = np.int64(base_offset)
    with np.errstate(over="ignore"):
        apart = offsets - base
    wrapped = (apart < 0) != (offsets < base)
    apart = np.where(wrapped, np.where(offsets < base, -FAR, FAR), apart)
    return np.asarray(np.clip(apart, -FAR, FAR), np.int64)


def next_sound_batch(
    file: File, start: int, end: int, reached: int
) -> tuple[tuple[int, int] | None, int]:
    """Return position and offset of the first sound batch in [start, end), and the search's end.

    Its offset is above `reached`: the value of a record may hold a whole batch. The search ends
    before `end` if the first SEARCH_BYTES hold no sound batch, or if too much looks like one.
    Raises: OSError.
    """
    to_read = MAX_CRC_BYTES
    for at in range(start, min(end, start + SEARCH_BYTES), SEARCH_PIECE_BYTES):
        data = file.pread(SEARCH_PIECE_BYTES + HEADER_UP_TO_MAGIC_BYTES - 1, at)
        count = len(data) - HEADER_UP_TO_MAGIC_BYTES + 1
        if count <= 0:
            break
        # Each byte may be the first one of a batch.
        offsets = np.ndarray((count,), ">i8", data, 0, (1,))
        sizes = np.ndarray((count,), ">i4", data, 8, (1,))
        magics = np.frombuffer(data, np.uint8, count, HEADER_UP_TO_MAGIC_BYTES - 1)
        rows = np.flatnonzero((magics <= 2) & (sizes >= MIN_MESSAGE_BYTES))
        apart = distances(offsets[rows].astype(np.int64), reached)
        fits = (apart > 0) & (apart <= MAX_DISTANCE) & (at + rows + 12 + sizes[rows] <= end)
        for row in rows[fits].tolist():
            size = int(sizes[row]) + 12
            to_read -= size
            if to_read < 0:
                return None, at + row
            batch = RecordBatch(file, at + row, size, int(magics[row]), in_file=True)
            if batch.is_valid():
                return (at + row, int(offsets[row])), at + row
    return None, min(end, start + SEARCH_BYTES)
