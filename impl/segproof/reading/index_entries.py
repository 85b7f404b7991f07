# SPDX-License-Identifier: Apache-2.0
"""The entries of an offset or time index from first to last, read in blocks as numpy arrays.

Upstream: Kafka, OffsetIndex, TimeIndex.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from segproof.files import File

__all__ = ["BLOCK_ENTRIES", "ENTRY_TYPES", "Entries", "count_entries", "genuine_entries"]

ENTRY_TYPES: Final = {
    ".index": np.dtype([("offset", ">i4"), ("position", ">i4")]),
    ".timeindex": np.dtype([("timestamp", ">i8"), ("offset", ">i4")]),
}
"""The layout of an entry; its offset counts from the base offset."""
BLOCK_ENTRIES: Final = 1 << 15

Entries = NDArray[np.void]


def genuine_entries(
    file: File, suffix: str, end: int | None = None
) -> Iterator[tuple[int, Entries]]:
    """Yield the number of its first entry and a block of entries, up to the last that is not zero.

    `end` is where the entries end, in bytes; None: where the file does. Zeros are held back until
    something follows them: they cost no memory, whatever their number.
    """
    dtype = ENTRY_TYPES[suffix]
    zeros = 0
    for number, block in _blocks(file, dtype, end):
        used = np.flatnonzero(block.view(np.uint8).reshape(len(block), -1).any(axis=1))
        if not len(used):
            zeros += len(block)
            continue
        for first in range(number - zeros, number, BLOCK_ENTRIES):
            yield first, np.zeros(min(BLOCK_ENTRIES, number - first), dtype)
        kept = int(used[-1]) + 1
        yield number, block[:kept]
        zeros = len(block) - kept


def count_entries(file: File, suffix: str, end: int | None = None) -> int:
    """Return how many entries come before the zeros at the end."""
    count = 0
    for first, block in genuine_entries(file, suffix, end):
        count = first + len(block)
    return count


def _blocks(
    file: File, dtype: "np.dtype[np.void]", end: int | None
) -> Iterator[tuple[int, Entries]]:
    """Yield all whole entries, with the number of the first in each block."""
    number = 0
    while True:
        most = BLOCK_ENTRIES
        if end is not None:
            most = min(most, -(-end // dtype.itemsize) - number)
        data = file.pread(most * dtype.itemsize, number * dtype.itemsize)
        count = len(data) // dtype.itemsize
        if count:
            yield number, np.frombuffer(data, dtype, count)
        if count < BLOCK_ENTRIES:
            return
        number += count
