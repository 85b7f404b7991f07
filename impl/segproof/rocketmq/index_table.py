# SPDX-License-Identifier: Apache-2.0
"""One index file as arrays, read by `pread` into private memory, for who looks at all of it.

Layout: INDEX_HEADER; slots of 4 bytes; entries: INDEX_ENTRY of layouts/rocketmq.py.
Upstream: RocketMQ 5.5.1: IndexFile, IndexHeader.
Laws: RMQIDX-1, RMQIDX-2, RMQIDX-3.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import CorruptIndexError
from segproof.files import File
from segproof.kernels.rocketmq_index import HEADER_BYTES
from segproof.layouts.rocketmq import INDEX_ENTRY
from segproof.rocketmq.index_header import HEADER, StoredHeader

SLOT_BYTES: Final = 4
ENTRY_BYTES: Final = INDEX_ENTRY.size
BLOCK_ENTRIES: Final = 1 << 18
ENTRY: Final = INDEX_ENTRY.struct()
ENTRY_DTYPE: Final = INDEX_ENTRY.dtype

Block = NDArray[np.void]


class Geometry(NamedTuple):
    """How many slots and entries an index file has room for; the file itself does not say."""

    hash_slot_num: int
    index_num: int
    """With entry 0, which is never used."""

    @property
    def file_size(self) -> int:
        """Length of such a file in bytes."""
        return HEADER_BYTES + SLOT_BYTES * self.hash_slot_num + ENTRY_BYTES * self.index_num

    @property
    def entries_position(self) -> int:
        """Byte at which entry 0 begins."""
        return HEADER_BYTES + SLOT_BYTES * self.hash_slot_num

    def position_of(self, index: int) -> int:
        """Return the byte at which an entry begins."""
        return self.entries_position + ENTRY_BYTES * index


def read_stored_header(file: File) -> StoredHeader | None:
    """Return the header, or None of a file that is shorter than that."""
    data = file.pread(HEADER_BYTES, 0)
    return StoredHeader(*HEADER.unpack(data)) if len(data) == HEADER_BYTES else None


def read_slots(file: File, geometry: Geometry) -> NDArray[np.int32]:
    """Return the slots; those behind the end of the file are zero.

    Cost: 4 bytes a slot.
    """
    slots = np.zeros(geometry.hash_slot_num, np.int32)
    step = 1 << 20
    for first in range(0, geometry.hash_slot_num, step):
        count = min(step, geometry.hash_slot_num - first)
        data = file.pread(count * SLOT_BYTES, HEADER_BYTES + first * SLOT_BYTES)
        part = np.frombuffer(data[: len(data) // SLOT_BYTES * SLOT_BYTES], ">i4")
        slots[first : first + len(part)] = part
        if len(part) < count:
            break
    return slots


def entry_blocks(
    file: File, geometry: Geometry, first: int, stop: int, size: int = BLOCK_ENTRIES
) -> Iterator[tuple[int, Block]]:
    """Yield the index of its first entry and a block of entries, from `first` to before `stop`.

    Ends early where the file does. Cost: memory for one block, of `size` entries.
    """
    for index in range(first, stop, size):
        count = min(size, stop - index)
        data = file.pread(count * ENTRY_BYTES, geometry.position_of(index))
        block: Any = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], ENTRY_DTYPE)
        if len(block):
            yield index, block
        if len(block) < count:
            return


def refuse_missing_entries(index_count: int, index: int, geometry: Geometry, path: str) -> None:
    """Raise CorruptIndexError if the entries end before the count in the header, at `index`."""
    if index < index_count:
        raise CorruptIndexError(
            f"the header counts {index_count - 1} entries; there are {index - 1}",
            law="RMQDISK-1",
            path=path,
            position=geometry.position_of(index),
        )
