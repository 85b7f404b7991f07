# SPDX-License-Identifier: Apache-2.0
"""Recovery of a segment: keep the batches that are valid, and build every index anew.

Upstream: Kafka 4.4.0, LogSegment.recover. Otherwise: log_segment_releases,
    log_segment_releases_before_2, partition_log_releases_before_2_3, log_segment_deviations.
Laws: SEG-20 to SEG-30.
Not covered: what the given producer state refuses; that ends the recovery. But as upstream: an
    invalid record that it finds, in a control batch whose checksum is right, ends the scan
    only, and that batch is kept.
"""

from typing import Protocol

from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.segment_entries import SegmentEntries
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released

ENDS_THE_SCAN = (ErrorKind.CORRUPT_RECORD, ErrorKind.INVALID_RECORD)
"""A recovery keeps what lies before a batch with such an error."""


class LearnsProducers(Protocol):
    """The producer state that a recovery fills."""

    def update_producers(self, batch: RecordBatch) -> CompletedTxn | None:
        """Let a batch count for its producer; return the transaction that it ends."""

    def last_stable_offset(self, completed_txn: CompletedTxn) -> int:
        """Return the last stable offset once this transaction is completed."""

    def complete_txn(self, completed_txn: CompletedTxn) -> None:
        """Take the transaction out of the open ones."""

    def update_map_end_offset(self, last_offset: int) -> None:
        """Say up to which offset, exclusive, producers are known."""


class LearnsEpochs(Protocol):
    """The epoch cache that a recovery fills."""

    def latest_epoch(self) -> int | None:
        """Return the latest epoch, or None."""

    def assign(self, epoch: int, start_offset: int) -> None:
        """Let an epoch begin."""


class SegmentRecovery(Released):
    """One recovery of a segment."""

    def __init__(
        self,
        segment: SegmentEntries,
        producers: LearnsProducers | None,
        epochs: LearnsEpochs | None,
    ) -> None:
        self.segment, self.producers, self.epochs = segment, producers, epochs
        self.valid_bytes = 0
        """Where the batches end that were found valid."""
        self.last_index_entry = 0
        """Position of the last batch that was indexed; 0 at first."""

    def recover(self) -> int:
        """Recover; return the number of bytes removed.

        An error leaves the log as it was, and what was rebuilt until then: that there will be one
        is known only when the whole log has been read.
        """
        segment = self.segment
        self.begin()
        try:
            for found in segment.log.batches():
                batch = self.checked(found)
                self.index(batch)
                if not batch.is_legacy:
                    self.learn_epoch(batch)
                    self.learn_producer(batch)
        except Refused as error:
            if error.kind not in ENDS_THE_SCAN:
                raise
        removed = segment.size - self.valid_bytes
        segment.log.truncate_to(self.valid_bytes)
        segment.offset_index.trim_to_valid_size()
        segment.write_maximum()
        segment.time_index.trim_to_valid_size()
        return removed

    def begin(self) -> None:
        """Empty the indexes, and forget the largest timestamp."""
        self.segment.offset_index.reset()
        self.segment.time_index.reset()
        self.segment.txn_index.reset()
        self.segment.max_timestamp_and_offset_so_far = None

    def checked(self, batch: RecordBatch) -> RecordBatch:
        """Return a batch as it lies in memory, once it was found valid; refuse another one."""
        batch.ensure_valid()
        return batch.loaded()

    def check_offset(self, offset: int) -> None:
        """Refuse an offset that no index can hold (SEG-27)."""
        self.segment.ensure_offset_in_range(offset)

    def index(self, batch: RecordBatch) -> None:
        """Add the index entries of a batch, if they are due (SEG-22)."""
        segment = self.segment
        self.check_offset(batch.last_offset)
        segment.take_maximum(segment.maximum_of(batch))
        if self.is_entry_due():
            segment.enter_indexes(segment.key_of(batch), self.valid_bytes)
            self.last_index_entry = self.valid_bytes
        self.valid_bytes += batch.size_bytes

    def is_entry_due(self) -> bool:
        """Return whether the batch begins far enough behind the last one that was indexed."""
        interval = self.segment.config.index_interval_bytes
        return self.valid_bytes - self.last_index_entry > interval

    def learn_epoch(self, batch: RecordBatch) -> None:
        """Let an epoch begin that is later than the latest one (SEG-28)."""
        if self.epochs is None:
            return
        epoch, latest = batch.partition_leader_epoch, self.epochs.latest_epoch()
        if epoch >= 0 and (latest is None or epoch > latest):
            self.epochs.assign(epoch, batch.base_offset)

    def learn_producer(self, batch: RecordBatch) -> None:
        """Let a batch count for its producer; an aborted transaction is indexed (SEG-30)."""
        if self.producers is None:
            return
        completed = self.producers.update_producers(batch)
        if completed is not None:
            self.complete(completed, self.producers)
        self.producers.update_map_end_offset(batch.next_offset)

    def complete(self, txn: CompletedTxn, producers: LearnsProducers) -> None:
        """Enter an aborted transaction into its index; then it is no longer open."""
        self.segment.update_txn_index(txn, producers.last_stable_offset(txn))
        producers.complete_txn(txn)
