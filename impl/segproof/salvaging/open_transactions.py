# SPDX-License-Identifier: Apache-2.0
"""Batches with which no broker loads a log: a producer sends records outside of its transaction.

A producer has a transaction open from its first transactional batch to its marker. A batch of it
between these that says that it is in no transaction has damaged attributes, or the marker before it
is lost. A broker ends the load of the log there.

Upstream: Kafka 4.3.1: ProducerAppendInfo.appendDataBatch.
Laws: PROD-8.
"""

from itertools import pairwise

import numpy as np

from segproof.files import ReadOnlyFile
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable, read_batch_headers
from segproof.reading.pieces import Piece, PieceKind, piece_of


class OpenTransactions:
    """Follows which producers have an open transaction, from log to log of a partition."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def loadable(
        self, file: ReadOnlyFile, pieces: list[Piece], *, has_transactions: bool
    ) -> list[Piece]:
        """Return the pieces of a log, with each batch that ends a load as an unloadable one.

        `has_transactions` says whether a batch of the log is transactional. Raises: OSError.
        """
        if not (has_transactions or self._open):
            return pieces
        found: list[Piece] = []
        for one in pieces:
            if one.kind is not PieceKind.SOUND:
                found.append(one)
                continue
            table = read_batch_headers(file, one.start, one.end).table
            refused = self._refused(table)
            edges = sorted({0, len(table), *refused, *(row + 1 for row in refused)})
            for start, end in pairwise(edges):
                kind = PieceKind.UNLOADABLE if start in refused else PieceKind.SOUND
                found.append(piece_of(kind, table[start:end]) if refused else one)
        return found

    def _refused(self, table: BatchTable) -> set[int]:
        """Return the rows of batches of a producer outside of its open transaction."""
        refused: set[int] = set()
        attributes, producers = table["attributes"], table["producer_id"]
        of_producers = (table["magic"] == 2) & (producers >= 0)
        if not self._open and not (attributes[of_producers] & TRANSACTIONAL).any():
            return refused
        for row in np.flatnonzero(of_producers).tolist():
            producer, bits = int(producers[row]), int(attributes[row])
            if bits & CONTROL:
                self._open.discard(producer)
            elif bits & TRANSACTIONAL:
                self._open.add(producer)
            elif producer in self._open:
                refused.add(row)
        return refused
