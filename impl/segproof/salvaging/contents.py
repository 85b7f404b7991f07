# SPDX-License-Identifier: Apache-2.0
"""The contents of the batches of a partition, to tell a batch from a copy of another one.

Laws: BATCH-3.
"""

from contextlib import closing

import numpy as np

from segproof.files import Files, ReadOnlyFile
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.reading.log_pieces import LogPieces
from segproof.reading.pieces import Int64Array, Piece
from segproof.salvaging.unreadable_blocks import ReadableParts
from segproof.verifying.directory_checks import Partition


class Contents:
    """Checksums and sizes of all batches of a partition, read when first asked for.

    Memory: 8 bytes for each batch. Cost: all logs are read once more.
    """

    def __init__(self, partition: Partition, files: Files) -> None:
        self._partition, self._files = partition, files
        self._keys: Int64Array | None = None

    def is_twice(self, file: ReadOnlyFile, piece: Piece) -> bool:
        """Return whether the partition has the content of a batch twice. Raises: OSError."""
        if self._keys is None:
            self._keys = np.concatenate([np.empty(0, np.int64), *self._all_keys()])
        (key,) = _keys_of(read_batch_headers(file, piece.start, piece.end).table[:1])
        return int(np.count_nonzero(self._keys == key)) > 1

    def _all_keys(self) -> list[Int64Array]:
        keys = []
        for segment in self._partition.segments:
            if ".log" not in segment.suffixes:
                continue
            try:
                log = self._files.open(segment.path(".log"))
            except OSError:
                continue  # the salvage names it: no batch of it is kept
            with closing(ReadableParts(log)) as file:
                keys += [
                    _keys_of(read_batch_headers(file, piece.start, piece.end).table)
                    for piece in LogPieces(file, 0, file.size())
                    if piece.batches
                ]
        return keys


def _keys_of(table: BatchTable) -> Int64Array:
    """Return a number for the content of each batch: its checksum, and its size above that."""
    return table["crc"].astype(np.int64) | (table["size_bytes"].astype(np.int64) & 0x3FFFFFFF) << 32
