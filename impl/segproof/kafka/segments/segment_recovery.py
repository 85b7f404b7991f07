# SPDX-License-Identifier: Apache-2.0
"""Recovery of a segment: its longest valid prefix, and all its indexes made new from that.

The log is read once, in parts of thousands of batches: their headers are one table, their checksums
are made together, and the index entries of a part are planned and stored at once.

Upstream: Kafka 4.3.1: LogSegment.recover.
Laws: SEG-20 to SEG-30.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import CorruptRecordError, InvalidRecordError, SegproofError
from segproof.integers import INT32_MAX
from segproof.kafka.batch_table import BatchTable, CheckedBatches, check_batches
from segproof.kafka.index_entries import (
    Entries,
    Indexing,
    Int64Array,
    entries_fit,
    plan_table,
    segment_overflow,
    store_each,
    store_entries,
)
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.producer_append_info import CompletedTxn
from segproof.kafka.producer_snapshot import MAX_BATCHES
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kafka.record_file import RecordFile
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex
from segproof.kernels.records import add_int64
from segproof.layouts.kafka import BATCH_HEADER_BYTES

_TRANSACTIONAL_OR_CONTROL = 0x30
"""Bits of a batch's attributes."""


def append_aborted_txn(
    txn_index: TransactionIndex, completed_txn: CompletedTxn, last_stable_offset: int
) -> None:
    """Add a transaction to the index if it was aborted."""
    if completed_txn.is_aborted:
        txn_index.append(aborted_txn(completed_txn, last_stable_offset))


def aborted_txn(completed_txn: CompletedTxn, last_stable_offset: int) -> AbortedTxn:
    """Return the entry of an aborted transaction."""
    producer_id, first_offset, last_offset, _ = completed_txn
    return AbortedTxn(0, producer_id, first_offset, last_offset, last_stable_offset)


class _Before(NamedTuple):
    """What is known of the two batches before one; none lies below the segment's base."""

    earlier_offset: int
    """The last offset of the earlier one."""
    last_offset: int
    offsets: int
    """How many the later one has."""


class SegmentRecovery:
    """One recovery: `run` fills the indexes, which were reset, and tells the valid bytes."""

    def __init__(
        self,
        log: RecordFile,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        txn_index: TransactionIndex,
        index_interval_bytes: int,
        *,
        is_first_offset_key: bool,
        producer_state_manager: ProducerStateManager | None,
        leader_epoch_cache: LeaderEpochFileCache | None,
        torn_from: int,
        on_batches: Callable[[BatchTable], None] | None = None,
    ) -> None:
        """Take the indexes, which were reset; `on_batches` gets each part of the kept batches.

        Behind a batch that ends at or above the offset `torn_from` - 1, the recovery ends before
        one whose stored offset is below the segment's base or not above the last offset of the
        batch before, unless that one's own offset is too high: it fits between the batches beside
        it. Kafka keeps the batch.
        """
        self._log = log
        self._offset_index = offset_index
        self._time_index = time_index
        self._txn_index = txn_index
        self._interval = index_interval_bytes
        self._is_first_offset_key = is_first_offset_key
        self._producers = producer_state_manager
        self._epochs = leader_epoch_cache
        self._torn_from = torn_from
        self._on_batches = on_batches
        self._bytes_since = 0
        self._before = _Before(offset_index.base_offset - 1, offset_index.base_offset - 1, 0)
        self.valid_bytes = 0
        """Where the kept batches end."""
        self.max_pair = TimestampOffset(-1, offset_index.base_offset)
        """The largest timestamp of the kept batches."""

    def run(self) -> None:
        """Read the log up to the first batch that is not valid.

        Raises: what ends a recovery: SegmentOffsetOverflowError, and what the indexes and the
        producer state raise; OSError.
        """
        for part in check_batches(self._log.file, 0, self._log.size_in_bytes()):
            if not self._take(part):
                return

    def _take(self, part: CheckedBatches) -> bool:
        """Take the valid batches of a part; return whether all of them were."""
        base = self._offset_index.base_offset
        distances = part.table["last_offset"] - base  # wraps at 64 bits, as upstream
        far = (distances < 0) | (distances > INT32_MAX)
        invalid = ~part.crc_valid | self._are_torn(part.table)
        bad = far | invalid
        count = int(np.argmax(bad)) if bool(bad.any()) else len(bad)
        table = part.table[:count]
        if not self._take_valid(table):
            return False
        if count < len(bad) and not invalid[count]:
            raise segment_overflow(int(part.table["last_offset"][count]), base, self._log.name)
        return count == len(bad)

    def _are_torn(self, table: BatchTable) -> NDArray[np.bool_]:
        """Return for each batch whether a torn append may have lost its stored offset.

        No checksum covers that offset: 0 may be left there, and the batch looks valid.
        """
        stored, before = table["base_offset"], self._before
        ends = np.concatenate(([before.earlier_offset, before.last_offset], table["last_offset"]))
        offsets = np.concatenate(([before.offsets], table["last_offset"] - stored + 1))[:-1]
        earlier, last = ends[:-2], ends[1:-1]
        fits = (stored > earlier) & (stored - earlier > offsets)
        torn: NDArray[np.bool_] = (stored <= last) & ~fits & (last >= self._torn_from - 1)
        return torn

    def _take_valid(self, table: BatchTable) -> bool:
        """Index valid batches and tell them to the producer state; False: the last ones are left.

        A control record that can't be read ends the recovery, behind its batch.
        """
        try:
            entries = self._plan(table)
        except SegproofError:
            entries = None  # the first offset of an old message can't be read
        if entries is None or not entries_fit(self._offset_index, self._time_index, entries):
            return all(self._take_one(table[row : row + 1]) for row in range(len(table)))
        done, error = self._update_producers(table)
        if done < len(table):
            table = table[:done]
            entries = self._plan(table)
        store_entries(self._offset_index, self._time_index, entries)
        self._finish(table, entries)
        if error is not None and not isinstance(error, CorruptRecordError | InvalidRecordError):
            raise error
        return error is None

    def _take_one(self, table: BatchTable) -> bool:
        """Take one batch in upstream's order, where an index may refuse its entry."""
        try:
            entries = self._plan(table)
        except (CorruptRecordError, InvalidRecordError):
            return False
        self.max_pair = entries.max_pair
        store_each(self._offset_index, self._time_index, entries)
        self._finish(table, entries)
        _, error = self._update_producers(table)
        if error is not None and not isinstance(error, CorruptRecordError | InvalidRecordError):
            raise error
        return error is None

    def _plan(self, table: BatchTable) -> Entries:
        def first_offset(row: int) -> int:
            size, position = int(table["size_bytes"][row]), int(table["position"][row])
            return read_batch(self._log.file.pread(size, position)).base_offset

        before = self._interval, self._bytes_since, self.max_pair, self._is_first_offset_key
        return plan_table(table, Indexing(*before), first_offset)

    def _finish(self, table: BatchTable, entries: Entries) -> None:
        """Note that the batches of a table are kept, and assign the epochs that they begin."""
        if not len(table):
            return
        self._bytes_since, self.max_pair = entries.bytes_since, entries.max_pair
        ends = [self._before.last_offset, *table["last_offset"][-2:].tolist()]
        self._before = _Before(ends[-2], ends[-1], ends[-1] - int(table["base_offset"][-1]) + 1)
        self.valid_bytes = int(table["position"][-1] + table["size_bytes"][-1])
        if self._on_batches is not None:
            self._on_batches(table)
        if self._epochs is None:
            return
        latest = self._epochs.latest_epoch()
        epochs = np.where(table["magic"] >= 2, table["partition_leader_epoch"], -1)
        before = np.maximum.accumulate(np.concatenate(([-1 if latest is None else latest], epochs)))
        rows = np.flatnonzero(epochs > before[:-1])
        begins = zip(epochs[rows].tolist(), table["base_offset"][rows].tolist(), strict=True)
        self._epochs.assign_all(begins)

    def _update_producers(self, table: BatchTable) -> tuple[int, Exception | None]:
        """Tell batches to the producer state; return how many are kept, and what ended it.

        A batch whose control record can't be read is kept, and nothing behind it.
        """
        producers = self._producers
        if producers is None or not len(table):
            return len(table), None
        ordered, countable = _rows_of_producers(table, producers)
        done, error = len(table), None
        for row in ordered.tolist():
            try:
                self._update_producer(producers, table, row)
            except Exception as raised:  # whatever it is, the batches before it are indexed first
                done, error = row + 1, raised
                break
        told = np.flatnonzero(table["magic"][: done - (error is not None)] >= 2)
        countable = countable[: np.searchsorted(countable, done)]
        for row in _last_rows(table["producer_id"][countable], countable).tolist():
            self._update_producer(producers, table, row)
        if len(told):
            producers.update_map_end_offset(add_int64(int(table["last_offset"][told[-1]]), 1))
        return done, error

    def _update_producer(
        self, producers: ProducerStateManager, table: BatchTable, row: int
    ) -> None:
        position, size_bytes = int(table["position"][row]), int(table["size_bytes"][row])
        header = self._log.file.pread(BATCH_HEADER_BYTES, position)
        batch = RecordBatch(self._log.file, position, size_bytes, 2, in_file=True, header=header)
        completed_txn = producers.update_producers(batch)
        if completed_txn is not None:
            last_stable_offset = producers.last_stable_offset(completed_txn)
            append_aborted_txn(self._txn_index, completed_txn, last_stable_offset)
            producers.complete_txn(completed_txn)


def _rows_of_producers(
    table: BatchTable, producers: ProducerStateManager
) -> tuple[Int64Array, Int64Array]:
    """Return the batches of producers with transactions, all in order, and those of the others.

    What the others leave behind is known from their last batches: nothing of theirs is refused.
    """
    rows = np.flatnonzero((table["magic"] >= 2) & (table["producer_id"] > -1))
    ids = table["producer_id"][rows]
    is_special = table["attributes"][rows] & _TRANSACTIONAL_OR_CONTROL != 0
    special = set(ids[is_special].tolist())
    for producer_id in np.unique(ids).tolist():
        entry = producers.last_entry(producer_id)
        if entry is not None and entry.current_txn_first_offset is not None:
            special.add(producer_id)
    in_order = np.isin(ids, np.array(sorted(special), np.int64))
    return rows[in_order], rows[~in_order]


def _last_rows(ids: Int64Array, rows: Int64Array) -> Int64Array:
    """Return of each producer's rows the last ones that its state remembers, in order."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    behind = np.searchsorted(ordered, ordered, side="right") - np.arange(len(ids))
    return np.sort(rows[order[behind <= MAX_BATCHES]])
