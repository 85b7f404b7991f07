# SPDX-License-Identifier: Apache-2.0
"""The transactions of a partition, as far as its transaction indexes need them.

Only where transactions begin and end is told to the producer state: the other batches, and all of a
producer without transactions, change nothing in an index, and a log has millions of them.

Upstream: Kafka 4.3.1: ProducerStateManager, UnifiedLog.rebuildProducerState, LogSegment.recover.
Laws: SEG-30, PROD-10, PROD-11, PROD-14.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from segproof.errors import CorruptSnapshotError, SegproofError
from segproof.files import File, Files
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable
from segproof.kafka.producer_snapshot import ProducerStateEntry, read_snapshot_file
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.segments.segment_recovery import append_aborted_txn
from segproof.kafka.transaction_index import TransactionIndex
from segproof.layouts.kafka import BATCH_HEADER_BYTES
from segproof.rebuilding.old_indexes import old_aborted_txns


def state_of_snapshot(segment: Segment, files: Files) -> ProducerStateManager | None:
    """Return the producer state at the base of a segment by its snapshot; None without a sound one.

    Nothing is changed: a corrupt snapshot stays where it is.
    """
    try:
        entries = read_snapshot_file(segment.path(".snapshot"), files=files)
    except (CorruptSnapshotError, OSError):
        return None
    return _state(segment, entries, files)


def begun_before(first: Segment, segments: Iterable[Segment], files: Files) -> ProducerStateManager:
    """Return the producer state at the beginning of a log that no snapshot tells.

    Of transactions that were open there, those that were aborted later are known from the old
    transaction indexes that are sound: their first offset lies before the log.
    """
    found: dict[int, int] = {}
    if first.base_offset > 0:
        for segment in segments:
            for txn in old_aborted_txns(segment, files) or ():
                if 0 <= txn.first_offset < first.base_offset:
                    found.setdefault(txn.producer_id, txn.first_offset)
    entries = (
        ProducerStateEntry(producer_id, current_txn_first_offset=first_offset)
        for producer_id, first_offset in found.items()
    )
    return _state(first, entries, files)


def _state(
    segment: Segment, entries: Iterable[ProducerStateEntry], files: Files
) -> ProducerStateManager:
    producers = ProducerStateManager(segment.directory, files=files)
    for entry in entries:
        producers.load_producer_entry(entry)
    producers.update_map_end_offset(segment.base_offset)
    return producers


class Transactions:
    """Tells the transactions of one log to the producer state, and the aborted ones to an index."""

    def __init__(
        self, log: File, producers: ProducerStateManager, txn_index: TransactionIndex
    ) -> None:
        self._log = log
        self._producers = producers
        self._txn_index = txn_index

    def add(self, table: BatchTable) -> None:
        """Take in the next batches.

        Raises: what the producer state raises, with the position of the batch.
        """
        for row in self._rows(table):
            position, size_bytes = int(table["position"][row]), int(table["size_bytes"][row])
            try:
                self._tell(position, size_bytes)
            except SegproofError as error:
                error.position = position
                raise

    def _rows(self, table: BatchTable) -> Iterator[int]:
        """Yield the markers, and the batches that may begin a transaction, when they are due."""
        attributes = table["attributes"]
        is_told = (table["magic"] >= 2) & (table["producer_id"] > -1)
        is_told &= attributes & (TRANSACTIONAL | CONTROL) != 0
        if not bool(is_told.any()):
            return
        rows = np.flatnonzero(is_told)
        ids, ends = table["producer_id"][rows].tolist(), (attributes[rows] & CONTROL != 0).tolist()
        for row, producer_id, is_marker in zip(rows.tolist(), ids, ends, strict=True):
            entry = self._producers.last_entry(producer_id)
            if is_marker or entry is None or entry.current_txn_first_offset is None:
                yield row

    def _tell(self, position: int, size_bytes: int) -> None:
        header = self._log.pread(BATCH_HEADER_BYTES, position)
        batch = RecordBatch(self._log, position, size_bytes, 2, in_file=True, header=header)
        completed = self._producers.update_producers(batch)
        if completed is not None:
            last_stable_offset = self._producers.last_stable_offset(completed)
            append_aborted_txn(self._txn_index, completed, last_stable_offset)
            self._producers.complete_txn(completed)
