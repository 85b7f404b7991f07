# SPDX-License-Identifier: Apache-2.0
"""The batches of one producer that are being appended: sequences, epochs, transactions.

Upstream: Kafka, ProducerAppendInfo, TxnMetadata, CompletedTxn (4.3.1).
Laws: PROD-7 to PROD-9.
Not covered: verification of transactions (VerificationStateEntry, VerificationGuard), which lives
    in memory only and asks the coordinator.
"""

from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from segproof.errors import (
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    SegproofError,
)
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.producer_snapshot import BatchMetadata, ProducerStateEntry
from segproof.kafka.record import end_transaction_marker
from segproof.kafka.record_batch import RecordBatch
from segproof.kernels.producer_rules import accepts_epoch, accepts_sequence

AppendOrigin = Literal["replication", "client", "coordinator"]
NO_TRANSACTION_VERSION = -1


class TxnMetadata(NamedTuple):
    """A transaction that is open, or whose marker is not yet replicated."""

    producer_id: int
    first_offset: int
    """Offset of its first record, inclusive."""
    last_offset: int | None = None
    """Offset of its marker, inclusive; None while it is open."""


class CompletedTxn(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    """Offset of its first record, inclusive."""
    last_offset: int
    """Offset of the marker, inclusive."""
    is_aborted: bool


class ProducerAppendInfo:
    """The batches of one producer that are being appended, before they count.

    Made by `ProducerStateManager.prepare_update`. What comes by replication is in the log already,
    so its sequence numbers and epochs are not checked.
    """

    __slots__ = ("current_entry", "origin", "producer_id", "started_transactions", "updated_entry")

    def __init__(
        self, producer_id: int, current_entry: ProducerStateEntry, origin: AppendOrigin
    ) -> None:
        if origin not in get_args(AppendOrigin):
            raise InvalidArgumentError(
                f"origin {origin!r} is unknown, not one of {', '.join(get_args(AppendOrigin))}",
                expected=get_args(AppendOrigin),
                actual=origin,
            )
        self.producer_id = producer_id
        self.current_entry = current_entry
        """What is known of the producer without these batches."""
        self.origin = origin
        self.updated_entry = replace(current_entry, batch_metadata=())
        """What is known with them; of batches it has these alone."""
        self.started_transactions: tuple[TxnMetadata, ...] = ()

    def __repr__(self) -> str:
        return f"ProducerAppendInfo({self.producer_id}, {self.updated_entry}, {self.origin!r})"

    def append(
        self,
        batch: RecordBatch,
        first_offset_metadata: LogOffsetMetadata | None = None,
        transaction_version: int = NO_TRANSACTION_VERSION,
    ) -> CompletedTxn | None:
        """Check and take in one batch; return the transaction that it completes, or None.

        `first_offset_metadata` names the first offset where it is not the batch's. From version 2
        of transactions on, a marker's epoch must exceed the producer's. A control batch without a
        record changes nothing. Nothing has changed when an error is raised.
        Laws: PROD-7 to PROD-9.
        Raises: InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTransactionStateError;
        SegproofError for a marker of a coordinator that a newer one has fenced off;
        InvalidArgumentError for a control record that is no end of a transaction, and for a marker
        without a version that is not replicated; what reading the batch raises.
        """
        if batch.is_control:
            return self._append_control(batch, transaction_version)
        first_offset = batch.base_offset
        if first_offset_metadata is not None:
            first_offset = first_offset_metadata.message_offset
        self._append_data(batch, first_offset)
        return None

    def _append_data(self, batch: RecordBatch, first_offset: int) -> None:
        epoch = batch.producer_epoch
        self._check_epoch(epoch, batch, NO_TRANSACTION_VERSION)
        if self.origin == "client":
            self._check_sequence(epoch, batch)
        entry = self.updated_entry
        last_offset = batch.last_offset
        delta = (last_offset - first_offset + (1 << 31)) % (1 << 32) - (1 << 31)
        known = BatchMetadata(batch.last_sequence, last_offset, delta, batch.max_timestamp)
        is_transactional = batch.is_transactional
        if entry.current_txn_first_offset is not None and not is_transactional:
            raise InvalidTransactionStateError(
                f"producer {self.producer_id} sends records outside of its open transaction",
                law="PROD-8",
                position=batch.position,
                expected=f"records of the transaction from {entry.current_txn_first_offset} on",
            )
        entry = entry.with_batch(epoch, known)
        if is_transactional and entry.current_txn_first_offset is None:
            entry = replace(entry, current_txn_first_offset=first_offset)
            started = TxnMetadata(self.producer_id, first_offset)
            self.started_transactions = (*self.started_transactions, started)
        self.updated_entry = entry

    def _append_control(self, batch: RecordBatch, transaction_version: int) -> CompletedTxn | None:
        """Take in the marker, the first record of the batch, if it has one."""
        record = next(iter(batch.records()), None)
        if record is None:
            return None
        marker = end_transaction_marker(record)
        if transaction_version == NO_TRANSACTION_VERSION and self.origin != "replication":
            raise InvalidArgumentError(
                "the version of the transaction must be given with a marker",
                law="PROD-9",
                expected="0, 1 or 2",
            )
        epoch = batch.producer_epoch
        self._check_epoch(epoch, batch, transaction_version)
        self._check_coordinator(marker.coordinator_epoch, batch)
        entry = self.updated_entry
        completed = None
        if entry.current_txn_first_offset is not None:
            completed = CompletedTxn(
                self.producer_id,
                entry.current_txn_first_offset,
                batch.base_offset,
                marker.control_type == "ABORT",
            )
        self.updated_entry = replace(
            entry.with_epoch(epoch),
            coordinator_epoch=marker.coordinator_epoch,
            last_timestamp=record.timestamp,
            current_txn_first_offset=None,
        )
        return completed

    def _check_epoch(self, epoch: int, batch: RecordBatch, transaction_version: int) -> None:
        known = self.updated_entry
        if self.origin == "replication":
            return
        has_open = known.current_txn_first_offset is not None
        if not accepts_epoch(epoch, known.producer_epoch, has_open, transaction_version):
            raise InvalidProducerEpochError(
                f"producer {self.producer_id} is fenced off by a newer one",
                position=batch.position,
                expected=f"epoch {known.producer_epoch} or newer",
                actual=epoch,
            )

    def _check_sequence(self, epoch: int, batch: RecordBatch) -> None:
        current, updated = self.current_entry, self.updated_entry
        first_sequence = batch.base_sequence
        if not accepts_sequence(
            epoch,
            first_sequence,
            current.producer_epoch,
            current.last_seq,
            updated.producer_epoch,
            updated.last_seq,
            not updated.is_empty,
        ):
            raise OutOfOrderSequenceError(
                f"a batch of producer {self.producer_id} does not continue its sequence",
                position=batch.position,
                expected="0 in a new epoch, else the number behind the last one",
                actual=first_sequence,
            )

    def _check_coordinator(self, coordinator_epoch: int, batch: RecordBatch) -> None:
        known = self.updated_entry.coordinator_epoch
        if self.origin != "replication" and known > coordinator_epoch:
            raise SegproofError(
                "a newer transaction coordinator has fenced off the one that wrote this marker",
                position=batch.position,
                expected=f"coordinator epoch {known} or newer",
                actual=coordinator_epoch,
            )
