# SPDX-License-Identifier: Apache-2.0
"""The entries of an index file, read in blocks as numpy arrays.

Memory is constant for any size of a file: the end of the entries is looked for from the file's end.

Upstream: Kafka, OffsetIndex, TimeIndex, TransactionIndex.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from segproof.files import ReadOnlyFile, data_end
from segproof.layouts.kafka import ABORTED_TXN, INDEX_ENTRIES, OFFSET_ENTRY, TIME_ENTRY

ENTRY_TYPES: Final = {".index": OFFSET_ENTRY.dtype, ".timeindex": TIME_ENTRY.dtype}
"""The type of an entry; its offset counts from the base offset."""
TRANSACTION_ENTRY: Final = ABORTED_TXN.dtype
"""The type of an entry of a `.txnindex` file."""
ENTRY_BYTES: Final = {suffix: layout.size for suffix, layout in INDEX_ENTRIES.items()}
BLOCK_ENTRIES: Final = 1 << 15

Entries = NDArray[np.void]


class EntryFile:
    """An open index file with `slots` whole entries. Raises: OSError, in all methods."""

    def __init__(self, file: ReadOnlyFile, dtype: "np.dtype[np.void]", slots: int) -> None:
        self.file = file
        self.dtype = dtype
        self.entry_bytes = dtype.itemsize
        self.slots = slots
        self.count = slots
        """Genuine entries, once `find_end` is through: without the zeros at the end."""

    def read(self, start: int, count: int) -> Entries:
        """Return entries [start, start + count), fewer if the file has become shorter."""
        position = start * self.entry_bytes
        data = self.file.pread(count * self.entry_bytes, position)
        if len(data) < count * self.entry_bytes:
            self.ends_at(position + len(data))
        return np.frombuffer(data, self.dtype, len(data) // self.entry_bytes)

    def last(self) -> Entries:
        """Return the last genuine entry, once `find_end` is through; none without any."""
        return self.read(max(0, self.count - 1), min(1, self.count))

    def ends_at(self, position: int) -> None:
        """Take that the file has become shorter: it ends at or before this byte."""

    def find_end(self) -> Iterator[int]:
        """Find the last entry that is not all zero; yield the bytes read."""
        end = min(self.slots, -(-data_end(self.file) // self.entry_bytes))
        while end > 0:
            start = max(0, end - BLOCK_ENTRIES)
            ranges = self.file.data_ranges(start * self.entry_bytes, end * self.entry_bytes)
            if next(ranges, None) is None:  # a hole: zeros that nobody reads
                end = start
                continue
            block = self.read(start, end - start)
            data = block.tobytes()
            used = 0 if data.count(0) == len(data) else len(data.rstrip(b"\0"))
            yield len(data)
            if used or len(block) < end - start:
                end = start - (-used // self.entry_bytes)
                break
            end = start
        self.count = end

    def blocks(self) -> Iterator[tuple[int, Entries]]:
        """Yield the number of its first entry and a block, up to the last genuine entry."""
        for start in range(0, self.count, BLOCK_ENTRIES):
            wanted = min(BLOCK_ENTRIES, self.count - start)
            block = self.read(start, wanted)
            yield start, block
            if len(block) < wanted:
                return


def entries_found(file: ReadOnlyFile, suffix: str, end: int | None = None) -> EntryFile:
    """Return the entries of an open index, whose last one that is not all zero was looked for.

    `end` is where the entries end, in bytes; None if they end with the file. Raises: OSError.
    """
    dtype, size = ENTRY_TYPES[suffix], file.size()
    shown = size if end is None else -(-end // dtype.itemsize) * dtype.itemsize
    entries = EntryFile(file, dtype, min(size, shown) // dtype.itemsize)
    for _ in entries.find_end():
        pass
    return entries


def genuine_entries(
    file: ReadOnlyFile, suffix: str, end: int | None = None
) -> Iterator[tuple[int, Entries]]:
    """Yield the number of its first entry and a block of entries, up to the last that is not zero.

    `end` is as for `entries_found`.
    """
    return entries_found(file, suffix, end).blocks()


def count_entries(file: ReadOnlyFile, suffix: str, end: int | None = None) -> int:
    """Return how many entries come before the zeros at the end. Cost: only these are read."""
    return entries_found(file, suffix, end).count
