# SPDX-License-Identifier: Apache-2.0
"""The batches of one producer that are being appended: sequences, epochs, transactions.

Upstream: Kafka 4.4.0, ProducerAppendInfo, TxnMetadata, CompletedTxn. Otherwise: producer_releases,
    producer_deviations.
Laws: PROD-7 to PROD-9.
Not covered: verification of transactions (VerificationStateEntry, VerificationGuard), which lives
    in memory only and asks the coordinator.
"""

from typing import Literal, NamedTuple

from segproof_model.kafka.broker.producer_snapshot import (
    NO_PRODUCER_EPOCH,
    BatchMetadata,
    ProducerStateEntry,
)
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.record import (
    NO_SEQUENCE,
    EndTransactionMarker,
    Record,
    end_transaction_marker,
)
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.integers import INT32_MAX, wrap32
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

AppendOrigin = Literal["replication", "client", "coordinator"]
NO_TRANSACTION_VERSION = -1
LARGEST_EPOCH = 2**15 - 1


class TxnMetadata(NamedTuple):
    """A transaction that is open, or whose marker is not yet replicated."""

    producer_id: int
    first_offset: int
    """Offset of its first record, inclusive."""
    last_offset: int | None = None
    """Offset of its marker, inclusive; None while it is open."""


class ProducerAppendInfo(State):
    """The batches of one producer that are being appended, before they count."""

    def __init__(
        self, producer_id: int, current_entry: ProducerStateEntry, origin: AppendOrigin
    ) -> None:
        self.producer_id, self.origin = producer_id, origin
        self.current_entry = current_entry
        """What is known of the producer without these batches."""
        self.updated_entry = current_entry._replace(batch_metadata=())
        """What is known with them; of batches it has these alone."""
        self.started_transactions: tuple[TxnMetadata, ...] = ()

    def append(
        self,
        batch: RecordBatch,
        first_offset_metadata: LogOffsetMetadata | None = None,
        transaction_version: int = NO_TRANSACTION_VERSION,
    ) -> CompletedTxn | None:
        """Check and take in one batch; return the transaction that it completes, or None.

        `first_offset_metadata` names the first offset where it is not the batch's. From version 2
        of transactions on, a marker's epoch must exceed the producer's.
        """
        if not batch.is_control:
            first_offset = batch.base_offset
            if first_offset_metadata is not None:
                first_offset = first_offset_metadata.message_offset
            self.append_data_batch(batch, first_offset)
            return None
        record = self.first_record(batch)
        if record is None:
            return None
        marker = end_transaction_marker(record)
        self.check_marker(marker, batch.producer_epoch, transaction_version)
        return self.append_end_txn_marker(marker, batch, record.timestamp)

    # --- records -------------------------------------------------------------------------------

    def append_data_batch(self, batch: RecordBatch, first_offset: int) -> None:
        """Take in records (PROD-7, PROD-8)."""
        delta = wrap32(batch.last_offset - first_offset)
        metadata = BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.max_timestamp)
        self.check_data_batch(batch)
        self.updated_entry = self.updated_entry.with_batch(batch.producer_epoch, metadata)
        is_open = self.updated_entry.current_txn_first_offset is not None
        if is_open and not batch.is_transactional:
            refuse(ErrorKind.INVALID_TRANSACTION_STATE)
        if batch.is_transactional and not is_open:
            self.begin_transaction(first_offset)

    def begin_transaction(self, first_offset: int) -> None:
        """Let a transaction be open from this offset on."""
        self.updated_entry = self.updated_entry._replace(current_txn_first_offset=first_offset)
        started = TxnMetadata(self.producer_id, first_offset)
        self.started_transactions = (*self.started_transactions, started)

    def check_data_batch(self, batch: RecordBatch) -> None:
        """Refuse records out of order; what is replicated was taken by the leader."""
        if self.origin != "replication":
            self.check_producer_epoch(batch.producer_epoch)
        if self.origin == "client":
            self.check_sequence(batch.producer_epoch, batch.base_sequence)

    def check_sequence(self, producer_epoch: int, first_sequence: int) -> None:
        """Refuse a first sequence number that does not follow the last one (PROD-8).

        A producer of which nothing is known may begin with any, one whose epoch is new with 0.
        """
        known = self.updated_entry.producer_epoch
        if producer_epoch != known:
            is_free, last_sequence = known == NO_PRODUCER_EPOCH, NO_SEQUENCE
        else:
            is_free = self.current_entry.producer_epoch == NO_PRODUCER_EPOCH
            last_sequence = self.last_sequence(producer_epoch)
        if not is_free and not is_in_sequence(last_sequence, first_sequence):
            refuse(ErrorKind.OUT_OF_ORDER_SEQUENCE)

    def last_sequence(self, producer_epoch: int) -> int:
        """Return the last sequence number of the epoch, or -1."""
        for entry in (self.updated_entry, self.current_entry):
            if producer_epoch == entry.producer_epoch and not entry.is_empty:
                return entry.last_seq
        return NO_SEQUENCE

    def check_producer_epoch(self, producer_epoch: int, transaction_version: int = 0) -> None:
        """Refuse an epoch that a newer one has fenced off.

        From version 2 of transactions on, a marker of the same epoch is one that is sent again, or
        the producer has no epoch left.
        """
        known = self.updated_entry.producer_epoch
        is_fenced = producer_epoch < known
        if transaction_version >= 2 and producer_epoch == known:
            is_open = self.updated_entry.current_txn_first_offset is not None
            is_fenced = is_open and known != LARGEST_EPOCH
        if is_fenced:
            refuse(ErrorKind.INVALID_PRODUCER_EPOCH)

    # --- markers -------------------------------------------------------------------------------

    def first_record(self, batch: RecordBatch) -> Record | None:
        """Return the marker in a batch; a batch without a record has none, and changes nothing."""
        return next(iter(batch.records()), None)

    def check_marker(
        self, marker: EndTransactionMarker, producer_epoch: int, transaction_version: int
    ) -> None:
        """Refuse a marker that does not tell its version, or that is fenced off."""
        if self.origin == "replication":
            return
        if transaction_version == NO_TRANSACTION_VERSION:
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.check_epochs(marker, producer_epoch, transaction_version)

    def check_epochs(
        self, marker: EndTransactionMarker, producer_epoch: int, transaction_version: int
    ) -> None:
        """Refuse a marker of an old epoch, or of an old coordinator."""
        self.check_producer_epoch(producer_epoch, transaction_version)
        if self.updated_entry.coordinator_epoch > marker.coordinator_epoch:
            refuse(ErrorKind.KAFKA_ERROR)

    def append_end_txn_marker(
        self, marker: EndTransactionMarker, batch: RecordBatch, timestamp: int
    ) -> CompletedTxn | None:
        """Close the open transaction, if there is one (PROD-9)."""
        first_offset = self.updated_entry.current_txn_first_offset
        self.updated_entry = self.updated_entry.with_epoch(batch.producer_epoch)._replace(
            coordinator_epoch=marker.coordinator_epoch,
            last_timestamp=timestamp,
            current_txn_first_offset=None,
        )
        if first_offset is None:
            return None
        is_aborted = marker.control_type == "ABORT"
        return CompletedTxn(self.producer_id, first_offset, batch.base_offset, is_aborted)


def is_in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether a sequence number follows another; 0 follows 2147483647 (BATCH-5).

    >>> is_in_sequence(-1, 0), is_in_sequence(2147483647, 0), is_in_sequence(4, 4)
    (True, True, False)
    """
    follows_the_largest = last_sequence == INT32_MAX and next_sequence == 0
    return next_sequence == last_sequence + 1 or follows_the_largest
