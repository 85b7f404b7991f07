# SPDX-License-Identifier: Apache-2.0
"""The batches of one producer that are being appended: sequences, epochs, transactions.

Mirrors: impl/segproof/kafka/producer_append_info.py.
Upstream: Kafka, ProducerAppendInfo, TxnMetadata, CompletedTxn (4.3.1).
Laws: PROD-7 to PROD-9.
Not covered: verification of transactions (VerificationStateEntry, VerificationGuard), which lives
    in memory only and asks the coordinator.
Used by: producer_state, which offers these names.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.producer_snapshot import (
    NO_PRODUCER_EPOCH,
    BatchMetadata,
    ProducerStateEntry,
)
from segproof_model.kafka.record import NO_SEQUENCE, EndTransactionMarker, end_transaction_marker
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.language.integers import INT32_MAX, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import Profile
from segproof_model.values import replace

AppendOrigin = Literal["replication", "client", "coordinator"]

ILLEGAL_STATE = Raised(ErrorKind.ILLEGAL_STATE)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
INVALID_PRODUCER_EPOCH = Raised(ErrorKind.INVALID_PRODUCER_EPOCH)
INVALID_TRANSACTION_STATE = Raised(ErrorKind.INVALID_TRANSACTION_STATE)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
OUT_OF_ORDER_SEQUENCE = Raised(ErrorKind.OUT_OF_ORDER_SEQUENCE)
NO_TRANSACTION_VERSION = -1
LARGEST_EPOCH = 2**15 - 1


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


class _Fields(NamedTuple):
    """What an append reads of a batch."""

    base_offset: int
    last_offset: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    max_timestamp: int
    is_transactional: bool


@dataclass(frozen=True, slots=True)
class ProducerAppendInfo:
    """The batches of one producer that are being appended, before they count."""

    profile: Profile = field(repr=False)
    producer_id: int
    current_entry: ProducerStateEntry
    """What is known of the producer without these batches."""
    origin: AppendOrigin
    updated_entry: ProducerStateEntry
    """What is known with them; of batches it has these alone."""
    started_transactions: tuple[TxnMetadata, ...] = ()

    def append(
        self,
        batch: RecordBatch,
        first_offset_metadata: LogOffsetMetadata | None = None,
        transaction_version: int = NO_TRANSACTION_VERSION,
    ) -> "Step[ProducerAppendInfo]":
        """Check and take in one batch; return the transaction that it completes, or None.

        `first_offset_metadata` names the first offset where it is not the batch's. From version 2
        of transactions on, a marker's epoch must exceed the producer's.
        """
        is_control = batch.is_control
        if isinstance(is_control, Raised):
            return Step(self, is_control)
        fields = _fields(batch)
        if isinstance(fields, Raised):
            return Step(self, fields)
        if is_control:
            return self._append_control(batch, fields, transaction_version)
        first = fields.base_offset
        if first_offset_metadata is not None:
            first = first_offset_metadata.message_offset
        return self._append_data(fields, first)

    def _append_data(self, fields: _Fields, first_offset: int) -> "Step[ProducerAppendInfo]":
        """Take in records (PROD-7, PROD-8)."""
        refused = self._epoch_refusal(fields.producer_epoch, NO_TRANSACTION_VERSION)
        if refused is None and self.origin == "client":
            refused = self._sequence_refusal(fields.producer_epoch, fields.base_sequence)
        if refused is not None:
            return Step(self, refused)
        delta = wrap32(fields.last_offset - first_offset)
        if self.profile.batch_begins_by_sequences:
            delta = wrap32(fields.last_sequence - fields.base_sequence)
            first_offset = wrap64(fields.last_offset - delta)
        batch = BatchMetadata(fields.last_sequence, fields.last_offset, delta, fields.max_timestamp)
        entry = self.updated_entry.with_batch(fields.producer_epoch, batch)
        after = replace(self, updated_entry=entry)
        if entry.current_txn_first_offset is not None and not fields.is_transactional:
            changed = self if self.profile.checks_before_changing else after
            return Step(changed, INVALID_TRANSACTION_STATE)
        if entry.current_txn_first_offset is not None or not fields.is_transactional:
            return Step(after)
        started = TxnMetadata(self.producer_id, first_offset)
        opened = replace(entry, current_txn_first_offset=first_offset)
        transactions = (*self.started_transactions, started)
        return Step(replace(after, updated_entry=opened, started_transactions=transactions))

    def _append_control(
        self, batch: RecordBatch, fields: _Fields, transaction_version: int
    ) -> "Step[ProducerAppendInfo]":
        """Take in the marker, the first record of the batch; without one nothing changes, or it is
        missed."""
        found = batch.records_until_error()
        if not found.records:
            is_missed = found.error is None and not self.profile.empty_marker_is_passed
            return Step(self, ILLEGAL_STATE if is_missed else found.error)
        marker = end_transaction_marker(found.records[0])
        if isinstance(marker, Raised):
            return Step(self, marker)
        is_unknown = transaction_version == NO_TRANSACTION_VERSION
        if (
            self.profile.marker_needs_transaction_version
            and is_unknown
            and self.origin != "replication"
        ):
            return Step(self, INVALID_ARGUMENT)
        refused = self._epoch_refusal(fields.producer_epoch, transaction_version, is_marker=True)
        if refused is None:
            refused = self._coordinator_refusal(marker)
        if refused is not None:
            return Step(self, refused)
        return self._append_marker(marker, fields, found.records[0].timestamp)

    def _append_marker(
        self, marker: EndTransactionMarker, fields: _Fields, timestamp: int
    ) -> "Step[ProducerAppendInfo]":
        """Close the open transaction, if there is one (PROD-9)."""
        first_offset = self.updated_entry.current_txn_first_offset
        completed, started = None, self.started_transactions
        if first_offset is None and self.profile.marker_alone_completes:
            first_offset = fields.base_offset
            started = (*started, TxnMetadata(self.producer_id, first_offset))
        if first_offset is not None:
            is_aborted = marker.control_type == "ABORT"
            completed = CompletedTxn(self.producer_id, first_offset, fields.base_offset, is_aborted)
        entry = replace(
            self.updated_entry.with_epoch(fields.producer_epoch),
            coordinator_epoch=marker.coordinator_epoch,
            last_timestamp=timestamp,
            current_txn_first_offset=None,
        )
        if self.profile.producer_entry_is_flat:
            last_seq = self._last_sequence(fields.producer_epoch)
            batch = BatchMetadata(last_seq, fields.base_offset, 0, timestamp)
            entry = replace(entry, batch_metadata=(batch,))
        after = replace(self, updated_entry=entry, started_transactions=started)
        return Step(after, completed)

    def _is_checked(self, is_marker: bool) -> bool:
        """Return whether a batch can be refused: what is replicated was taken by the leader."""
        is_old = is_marker and self.profile.replicated_markers_are_checked
        return self.origin != "replication" or is_old

    def _epoch_refusal(
        self, producer_epoch: int, transaction_version: int, *, is_marker: bool = False
    ) -> Raised | None:
        """Why a batch of this epoch is refused, if so: a newer epoch is known."""
        known = self.updated_entry.producer_epoch
        is_told = self.profile.marker_needs_transaction_version
        is_bumped = is_told and transaction_version >= 2
        if producer_epoch > known or (producer_epoch == known and not is_bumped):
            return None
        is_retry = self.updated_entry.current_txn_first_offset is None
        if is_bumped and producer_epoch == known and (is_retry or known == LARGEST_EPOCH):
            return None
        return INVALID_PRODUCER_EPOCH if self._is_checked(is_marker) else None

    def _sequence_refusal(self, producer_epoch: int, first_sequence: int) -> Raised | None:
        """Why a client's batch that begins with this sequence number is refused, if so."""
        updated, current = self.updated_entry, self.current_entry
        is_free = self.profile.unknown_producer_begins_anywhere
        if producer_epoch != updated.producer_epoch:
            is_new = is_free and updated.producer_epoch == NO_PRODUCER_EPOCH
            return None if first_sequence == 0 or is_new else OUT_OF_ORDER_SEQUENCE
        last_sequence = self._last_sequence(producer_epoch)
        is_new = is_free and current.producer_epoch == NO_PRODUCER_EPOCH
        if is_new or is_in_sequence(last_sequence, first_sequence):
            return None
        return OUT_OF_ORDER_SEQUENCE

    def _last_sequence(self, producer_epoch: int) -> int:
        """Return the last sequence number of the epoch, or -1.

        Where the last batch alone is remembered, an older one of that epoch is not.
        """
        known = [self.updated_entry, self.current_entry]
        if self.profile.producer_entry_is_flat and not self.updated_entry.is_empty:
            known.pop()
        for entry in known:
            if producer_epoch == entry.producer_epoch and not entry.is_empty:
                return entry.last_seq
        return NO_SEQUENCE

    def _coordinator_refusal(self, marker: EndTransactionMarker) -> Raised | None:
        """Why a marker of this coordinator is refused, if so: a newer coordinator is known."""
        is_old = self.updated_entry.coordinator_epoch > marker.coordinator_epoch
        return KAFKA_ERROR if is_old and self._is_checked(is_marker=True) else None


def is_in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether a sequence number follows another; 0 follows 2147483647 (BATCH-5).

    >>> is_in_sequence(-1, 0), is_in_sequence(2147483647, 0), is_in_sequence(4, 4)
    (True, True, False)
    """
    follows_the_largest = last_sequence == INT32_MAX and next_sequence == 0
    return next_sequence == last_sequence + 1 or follows_the_largest


def _fields(batch: RecordBatch) -> _Fields | Raised:
    """Return what an append reads of the batch, or why it can't be read."""
    found = (
        batch.base_offset,
        batch.last_offset,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.max_timestamp,
        batch.is_transactional,
    )
    for value in found:
        if isinstance(value, Raised):
            return value
    return _Fields(*found)  # type: ignore[arg-type]  # the loop has ruled Raised out
