# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with the producer state, newest first."""

from collections.abc import Collection, Mapping

from segproof_model.kafka.broker import producer_append_info, producer_state
from segproof_model.kafka.broker.producer_append_info import is_in_sequence
from segproof_model.kafka.broker.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_batch_metadata,
    stored_entries,
)
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.record import NO_SEQUENCE, EndTransactionMarker, Record
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class TransactionVersionDoesNotCount(Behaviour):
    """A marker need not tell the version of its transaction, which does not count."""

    laws = ("PROD-9",)
    releases = up_to("4.1.2")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def append(
            self,
            batch: RecordBatch,
            first_offset_metadata: LogOffsetMetadata | None = None,
            transaction_version: int = 0,
        ) -> CompletedTxn | None:
            return super().append(batch, first_offset_metadata, transaction_version=0)


class ProducersBeginWithZero(Behaviour):
    """A producer of which nothing is known must begin with sequence number 0."""

    laws = ("PROD-8",)
    releases = up_to("2.4.1")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def check_sequence(self, producer_epoch: int, first_sequence: int) -> None:
            is_known = producer_epoch == self.updated_entry.producer_epoch
            last_sequence = self.last_sequence(producer_epoch) if is_known else NO_SEQUENCE
            if not is_in_sequence(last_sequence, first_sequence):
                refuse(ErrorKind.OUT_OF_ORDER_SEQUENCE)


class MarkerAloneCompletes(Behaviour):
    """A marker of a producer without an open transaction begins and ends one."""

    laws = ("PROD-9", "SEG-30")
    releases = up_to("2.4.1")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def append_end_txn_marker(
            self, marker: EndTransactionMarker, batch: RecordBatch, timestamp: int
        ) -> CompletedTxn | None:
            if self.updated_entry.current_txn_first_offset is None:
                self.begin_transaction(batch.base_offset)
            return super().append_end_txn_marker(marker, batch, timestamp)


class SnapshotsAreListed(Behaviour):
    """Snapshots are listed anew each time that they are asked for, and go when the log start moves
    behind them, not with their segments or by a load.
    """

    laws = ("PROD-13", "LOAD-1", "LOAD-14")
    releases = up_to("2.4.1")

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        not_compared = frozenset({"snapshots"})

        @property
        @override
        def snapshots(self) -> Mapping[int, str]:  # type: ignore[override]  # nothing is kept
            return self.list_snapshots()

        @override
        def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
            if log_start_offset >= 0:
                self.delete_snapshots_before(log_start_offset)
            super().on_log_start_offset_incremented(log_start_offset)

        @override
        def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
            """A load removes none."""


class StoredProducersHaveBatches(Behaviour):
    """A stored producer has a batch, also if its last offset is negative."""

    laws = ("PROD-5",)
    releases = up_to("2.2.2")

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def read_snapshot(self, name: str) -> list[ProducerStateEntry]:
            entries = super().read_snapshot(name)
            stored = stored_entries(self.files.image(name))
            return [
                entry._replace(batch_metadata=(read_batch_metadata(data),))
                for entry, data in zip(entries, stored, strict=True)
            ]


class LogStartEvictsProducers(Behaviour):
    """A producer without a batch at the log start or behind it is forgotten when that moves and
    when a snapshot is loaded, with its open transaction.
    """

    laws = ("PROD-12", "PROD-13")
    releases = up_to("2.2.2")

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        def evict_before(self, log_start_offset: int) -> None:
            """Forget the producers without a batch at this offset or behind it."""
            known = self.active_producers
            self.active_producers = {
                producer_id: entry
                for producer_id, entry in known.items()
                if entry.last_offset >= log_start_offset
            }
            evicted = known.keys() - self.active_producers.keys()
            self.ongoing_txns = tuple(
                txn for txn in self.ongoing_txns if txn.producer_id not in evicted
            )

        @override
        def load_from_snapshot(self, log_start_offset: int, current_time_ms: int) -> None:
            super().load_from_snapshot(log_start_offset, current_time_ms)
            self.evict_before(log_start_offset)
            self.update_oldest_txn_timestamp()

        @override
        def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
            self.evict_before(log_start_offset)
            super().on_log_start_offset_incremented(log_start_offset)


class ReplicatedMarkersAreChecked(Behaviour):
    """A marker of an old epoch or an old coordinator is refused even if it is replicated."""

    laws = ("PROD-9",)
    releases = up_to("2.2.2")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def check_marker(
            self, marker: EndTransactionMarker, producer_epoch: int, transaction_version: int
        ) -> None:
            super().check_marker(marker, producer_epoch, transaction_version)
            self.check_epochs(marker, producer_epoch, transaction_version)


class ProducerTimeIsOfBatches(Behaviour):
    """A producer was last heard of when its last remembered batch was appended, not when its last
    marker was.
    """

    laws = ("PROD-7", "PROD-9")
    releases = up_to("2.2.2", since="1.1.1")

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def update(self, append_info: producer_append_info.ProducerAppendInfo) -> None:
            super().update(append_info)
            entry = self.active_producers[append_info.producer_id]
            timestamps = [batch.timestamp for batch in entry.batch_metadata]
            self.add_entry(entry._replace(last_timestamp=timestamps[-1] if timestamps else -1))
            self.update_oldest_txn_timestamp()


class StableOffsetIsByPlace(Behaviour):
    """The last stable offset at a marker is that of an open transaction that begins elsewhere, not
    of one of another producer.
    """

    laws = ("PROD-10", "SEG-30")
    releases = up_to("2.1.1")

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def last_stable_offset(self, completed_txn: CompletedTxn) -> int:
            begun = {txn.first_offset for txn in self.ongoing_txns} - {completed_txn.first_offset}
            return min(begun, default=completed_txn.last_offset + 1)


class BatchBeginsBySequences(Behaviour):
    """The first offset of a producer's batch is counted back from its last by the sequence numbers,
    in 32 bits.
    """

    laws = ("PROD-7", "PROD-8", "SEG-30")
    releases = up_to("2.0.1")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def append_data_batch(self, batch: RecordBatch, first_offset: int) -> None:
            delta = wrap32(batch.last_sequence - batch.base_sequence)
            super().append_data_batch(batch, wrap64(batch.last_offset - delta))


class SnapshotReplacesFile(Behaviour):
    """A snapshot takes the place of the file that it overwrites, and leaves no tail of a longer
    one.
    """

    laws = ("PROD-2",)
    releases = up_to("2.0.1")
    of_segproof = True

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def write_snapshot(self, name: str) -> None:
            self.files.remove(name)
            super().write_snapshot(name)


class EmptyMarkerIsMissed(Behaviour):
    """The first record of a batch of markers without a record is missed."""

    laws = ("PROD-9",)
    releases = up_to("1.1.1")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def first_record(self, batch: RecordBatch) -> Record:
            return super().first_record(batch) or refuse(ErrorKind.ILLEGAL_STATE)


class LastBatchIsRemembered(Behaviour):
    """Of a producer the last batch alone is remembered, be it a marker's, which keeps the sequence
    number before it.
    """

    laws = ("PROD-7",)
    releases = up_to("0.11.0.3")

    class ProducerAppendInfo(producer_append_info.ProducerAppendInfo):
        """What is appended to."""

        @override
        def last_sequence(self, producer_epoch: int) -> int:
            has_batch = not self.updated_entry.is_empty
            if has_batch and producer_epoch != self.updated_entry.producer_epoch:
                return NO_SEQUENCE
            return super().last_sequence(producer_epoch)

        @override
        def append_end_txn_marker(
            self, marker: EndTransactionMarker, batch: RecordBatch, timestamp: int
        ) -> CompletedTxn | None:
            last_sequence = self.last_sequence(batch.producer_epoch)
            completed = super().append_end_txn_marker(marker, batch, timestamp)
            metadata = BatchMetadata(last_sequence, batch.base_offset, 0, timestamp)
            self.updated_entry = self.updated_entry._replace(batch_metadata=(metadata,))
            return completed

    class ProducerStateManager(producer_state.ProducerStateManager):
        """The producer state."""

        @override
        def update(self, append_info: producer_append_info.ProducerAppendInfo) -> None:
            super().update(append_info)
            entry = self.active_producers[append_info.producer_id]
            self.add_entry(entry._replace(batch_metadata=entry.batch_metadata[-1:]))
