# SPDX-License-Identifier: Apache-2.0
"""The contents of the batches of a partition, to tell a batch from a copy of another one.

Laws: BATCH-3.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress

import numpy as np

from segproof.files import Files, ReadOnlyFile, holds_zeros
from segproof.inventory.partitions import Partition
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.reading.log_pieces import LogPieces
from segproof.reading.pieces import Int64Array, Piece, PieceKind
from segproof.salvaging.gaps import Gap
from segproof.stretches.unreadable_blocks import ReadableParts


class Contents:
    """Checksums, sizes and last offsets of all batches of a partition, read when first asked for.

    Memory: 16 bytes for each batch. Cost: all logs are read once more.
    """

    def __init__(self, partition: Partition, files: Files) -> None:
        self._partition, self._files = partition, files
        self._rows: Int64Array | None = None

    def is_twice(self, file: ReadOnlyFile, piece: Piece) -> bool:
        """Return whether the partition has the content of a batch twice. Raises: OSError."""
        ((key, _),) = _rows_of(read_batch_headers(file, piece.start, piece.end).table[:1])
        return int(np.count_nonzero(self._all_rows()[:, 0] == key)) > 1

    def gaps_at_end(self, pending: Iterable[Gap], sound_end: int) -> list[Gap]:
        """Return what is not sound at the end of the partition, but zeros, with what it costs.

        Copies cost no offset: they follow the last sound batch at once, and are whole batches up to
        zeros or the end of the log, and the partition has each twice, at the same offsets.
        """
        return [self._judged(one, sound_end) for one in pending if one.kind != PieceKind.ZEROS]

    def copies_in(self, gaps: Sequence[Gap]) -> int:
        """Return the number of batches in gaps that hold nothing but copies; else 0."""
        counts = [self._copies_in(one) for one in gaps]
        return sum(counts) if all(counts) else 0

    def _judged(self, gap: Gap, sound_end: int) -> Gap:
        if gap.position == sound_end and self._copies_in(gap, is_end=True):
            return gap._replace(last_lost_offset=gap.first_lost_offset - 1)
        return gap

    def _copies_in(self, gap: Gap, *, is_end: bool = False) -> int:
        """Return the number of copies that fill a gap; 0 if it holds something else.

        `is_end`: only zeros may follow in the log.
        """
        if gap.kind != PieceKind.MISPLACED:
            return 0
        end = gap.position + gap.size_bytes
        with suppress(OSError), closing(self._files.open(gap.path)) as file:
            table = read_batch_headers(file, gap.position, end).table
            is_whole = len(table) and int(table["size_bytes"].sum()) == gap.size_bytes
            is_last = not is_end or holds_zeros(file, end, file.size())
            if is_whole and is_last and self._are_twice(table):
                return len(table)
        return 0

    def _are_twice(self, table: BatchTable) -> bool:
        rows = np.concatenate([_rows_of(table), self._all_rows()])
        _, numbers, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        return bool((counts[numbers.ravel()[: len(table)]] > 2).all())

    def _all_rows(self) -> Int64Array:
        if self._rows is None:
            self._rows = np.concatenate([np.empty((0, 2), np.int64), *self._read_rows()])
        return self._rows

    def _read_rows(self) -> list[Int64Array]:
        rows = []
        for segment in self._partition.segments:
            if ".log" not in segment.suffixes:
                continue
            try:
                log = self._files.open(segment.path(".log"))
            except OSError:
                continue  # the salvage names it: no batch of it is kept
            with closing(ReadableParts(log)) as file:
                rows += [
                    _rows_of(read_batch_headers(file, piece.start, piece.end).table)
                    for piece in LogPieces(file, 0, file.size())
                    if piece.batches
                ]
        return rows


def _rows_of(table: BatchTable) -> Int64Array:
    """Return two numbers for each batch: one for its checksum and size, and its last offset."""
    sizes = table["size_bytes"].astype(np.int64) & 0x3FFFFFFF
    return np.stack([table["crc"].astype(np.int64) | sizes << 32, table["last_offset"]], axis=1)
