# SPDX-License-Identifier: Apache-2.0
"""The table `rocketmq_entries`: the entries of RocketMQ's index files.

Upstream: RocketMQ 5.5.1: IndexFile, IndexHeader.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from segproof.errors import CorruptIndexError
from segproof.files import Files
from segproof.reading.store_reader import geometry_of, slots_untold
from segproof.rocketmq.index_header import StoredHeader
from segproof.rocketmq.index_table import (
    Geometry,
    entry_blocks,
    read_stored_header,
    refuse_missing_entries,
)
from segproof.tables.columns import batch_of
from segproof.tables.files_below import Unit
from segproof.tables.options import Request

PIECE_ENTRIES = 1 << 16


def rocketmq_entries(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the entries of an index file, from 1 to before the count in its header.

    Raises: OSError; CorruptIndexError for a file that is no index, or whose number of slots cannot
    be told or does not fit, and where the file ends before the count, behind the entries before.
    """
    with closing(files.open(unit.path)) as file:
        header = read_stored_header(file)
        if header is None:
            raise CorruptIndexError("it is shorter than a header", law="RMQDISK-1", path=unit.path)
        if header.index_count <= 1:
            return
        geometry = geometry_of(unit.path, request.hash_slots, files, "the option hash_slots")
        if geometry is None:
            raise slots_untold(unit.path, "the option hash_slots")
        stop = min(header.index_count, geometry.index_num)
        index = 1
        for first, block in entry_blocks(file, geometry, 1, stop):
            for at in range(0, len(block), PIECE_ENTRIES):
                piece = block[at : at + PIECE_ENTRIES]
                yield _block(request, unit, first + at, piece, (geometry, header))
            index = first + len(block)
        refuse_missing_entries(header.index_count, index, geometry, unit.path)


def _block(
    request: Request,
    unit: Unit,
    first: int,
    block: NDArray[Any],
    file: tuple[Geometry, StoredHeader],
) -> Any:
    geometry, header = file
    count = len(block)

    def slots() -> Any:
        hashes = block["key_hash"].astype(np.int64)
        return pa.array((hashes % geometry.hash_slot_num).astype(np.int32), mask=hashes < 0)

    makers = {
        "slot": slots,
        "index": lambda: np.arange(first, first + count, dtype=np.int32),
        "begin_timestamp": lambda: np.full(count, header.begin_timestamp, np.int64),
    }
    return batch_of(request, unit, count, makers, block)
