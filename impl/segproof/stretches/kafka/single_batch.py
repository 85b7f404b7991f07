# SPDX-License-Identifier: Apache-2.0
"""The batch at one position of a log. Nothing else of the log is read.

Laws: BATCH-2, BATCH-3, BATCH-14, BATCH-19.
"""

from typing import NamedTuple

import numpy as np

from segproof.errors import SegproofError
from segproof.files import ReadOnlyFile
from segproof.kafka.batch_table import BatchTable, check_batches
from segproof.kafka.record_batch import RecordBatch
from segproof.stretches.kafka.header_rows import first_offsets, may_not_load
from segproof.stretches.kafka.mending import end_at, is_loadable

KEYS_ASKED = 32
"""Batches of one log whose records are asked for keys."""


class OneBatch(NamedTuple):
    """A batch with a right checksum whose offsets rise; the fields mean what those of a row do."""

    start: int
    end: int
    first: int
    """Of a compressed message of magic 0 or 1 only the last offset is known: it stands here too."""
    last: int
    max_time: int
    is_loadable: bool

    def has(self, offset: int) -> bool:
        """Return whether an offset is one of the batch's."""
        return self.first <= offset <= self.last


def header_at(file: ReadOnlyFile, position: int, end: int) -> BatchTable | None:
    """Return the header of the batch that has exactly the bytes [position, end), as a table.

    None without one, and if its checksum is wrong. Raises: OSError.
    """
    for checked in check_batches(file, position, end):
        table = checked.table
        is_one = len(table) == 1 and table["position"][0] + table["size_bytes"][0] == end
        return table if is_one and checked.crc_valid[0] else None
    return None


def batch_at(file: ReadOnlyFile, position: int, limit: int) -> OneBatch | None:
    """Return the batch at a position, if its checksum is right and its offsets rise; else None.

    It ends at byte `limit` of the log at the latest. Raises: OSError.
    """
    if not 0 <= position < limit:
        return None
    end = end_at(file, position)
    table = header_at(file, position, end) if position < end <= limit else None
    if table is None:
        return None
    first, last = int(first_offsets(table)[0]), int(table["last_offset"][0])
    is_loaded = not may_not_load(table)[0] or is_loadable(record_batch(file, table[0]))
    time = int(table["max_timestamp"][0])
    return OneBatch(position, end, first, last, time, is_loaded) if first <= last else None


def record_batch(file: ReadOnlyFile, header: np.void) -> RecordBatch:
    """Return the batch of a row of a table of headers, which was read from the file."""
    position, size, magic = (int(header[name]) for name in ("position", "size_bytes", "magic"))
    return RecordBatch(file, position, size, magic, in_file=True)


def lacks_key(batch: RecordBatch, limit: int) -> bool:
    """Return whether a batch can be read and has a record without a key: no compaction took it.

    A batch of more than `limit` bytes is not read.
    """
    if batch.size_bytes > limit:
        return False
    try:
        return sum(record.key is None for record in batch.records(limit=limit)) > 0
    except SegproofError:
        return False
