# SPDX-License-Identifier: Apache-2.0
"""One call of append: what a leader or a follower makes of the batches that it is given.

Upstream: Kafka 4.4.0, UnifiedLog.append. Otherwise: partition_log_releases, those before 2.8, 2.3
    and 2, partition_log_deviations.
Laws: LOG-9 to LOG-11, LOG-21, PROD-8, PROD-11.
Not covered: verification of transactions, which asks the coordinator; flushing by flush_ms.
"""

from segproof_model.kafka.broker.log_steps import LogSteps
from segproof_model.kafka.broker.log_validator import (
    UNKNOWN_OFFSET,
    AppendAnalysis,
    LogAppendInfo,
    LogValidator,
)
from segproof_model.kafka.broker.producer_append_info import AppendOrigin, ProducerAppendInfo
from segproof_model.kafka.broker.producer_snapshot import BatchMetadata
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import LogSegment, RollParams
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Released, refuse

NAMED_OFFSETS = 10
"""How many offsets the error of an append below the log's end names."""


class LogAppend(Released):
    """A call, and what is known of it so far."""

    def __init__(
        self,
        log: LogSteps,
        records: bytes,
        leader_epoch: int,
        origin: AppendOrigin,
        transaction_version: int = -1,
    ) -> None:
        self.log, self.local_log, self.config = log, log.local_log, log.config
        self.producers = log.producer_state_manager
        self.records = self.memory_records(records)
        self.leader_epoch, self.origin = leader_epoch, origin
        self.transaction_version = transaction_version
        self.updated_producers: dict[int, ProducerAppendInfo] = {}
        """What the batches mean for each producer, before it counts."""
        self.completed_txns: list[CompletedTxn] = []
        self.begins_txn: list[RecordBatch] = []
        """The batches with which a transaction begins."""
        self.duplicate: BatchMetadata | None = None
        """A batch of a client as it was written before."""

    def memory_records(self, records: bytes) -> MemoryRecords:
        """Return bytes as the records that they hold."""
        return self.kind(MemoryRecords)(records, codecs=self.local_log.codecs)

    @property
    def is_follower(self) -> bool:
        """Whether the batches have their offsets."""
        return self.origin == "replication"

    def append(self) -> LogAppendInfo:
        """Check the batches, and append them (LOG-9)."""
        self.info = self.analyze()
        if self.info.valid_bytes <= 0:
            return self.info
        self.local_log.check_if_memory_mapped_buffer_closed()
        if self.is_follower:
            self.take_offsets()
        else:
            self.assign_offsets()
        return self.append_records()

    def append_records(self) -> LogAppendInfo:
        """Append batches that have their offsets; a call that was written before is told."""
        self.assign_epochs()
        self.check_size()
        segment = self.maybe_roll()
        self.check_producers()
        if self.duplicate is None:
            self.write(segment)
            return self.info
        return self.info._replace(
            first_offset=self.duplicate.first_offset,
            last_offset=self.duplicate.last_offset,
            log_append_time=self.duplicate.timestamp,
        )

    # --- before anything is written ------------------------------------------------------------

    def analyze(self) -> LogAppendInfo:
        """Check every batch on its own (LOG-10, LOG-21); a follower takes any size."""
        self.analysis = self.kind(AppendAnalysis)(
            self.records, self.origin, self.leader_epoch, self.max_message_bytes()
        )
        return self.analysis.analyze_and_validate_records(self.log.log_start_offset)

    def max_message_bytes(self) -> int:
        """Return the size of the largest batch that is taken."""
        return INT32_MAX if self.is_follower else self.config.max_message_bytes

    def take_offsets(self) -> None:
        """Take the offsets that are given, if they do not begin below the log's end (LOG-21)."""
        if self.info.first_or_last_offset < self.local_log.log_end_offset:
            self.analysis.refuse_order(NAMED_OFFSETS)
        self.records = self.valid_records()

    def assign_offsets(self) -> None:
        """Let the leader write into the batches what it has to (LOG-10)."""
        first_offset, now_ms = self.local_log.log_end_offset, self.log.files.now_ms
        self.result = result = self.kind(LogValidator)(
            self.valid_records(), now_ms, self.config, self.leader_epoch, self.origin
        ).validate_messages_and_assign_offsets(first_offset)
        self.records = self.memory_records(result.validated_records)
        if result.message_size_maybe_changed:
            for batch in self.records.batches():
                if batch.size_bytes > self.config.max_message_bytes:
                    refuse(ErrorKind.RECORD_TOO_LARGE)
        self.info = self.info._replace(
            first_offset=first_offset,
            last_offset=result.last_offset,
            max_timestamp=result.max_timestamp,
        )
        if self.config.message_timestamp_type == "LogAppendTime":
            self.info = self.info._replace(log_append_time=now_ms)

    def valid_records(self) -> MemoryRecords:
        """Return the given records without the bytes behind the valid ones."""
        return self.memory_records(self.records.data[: self.info.valid_bytes])

    def assign_epochs(self) -> None:
        """Enter the epoch of each batch; a message that has none forgets all epochs."""
        epochs = self.log.leader_epoch_cache
        for batch in self.records.batches():
            if not batch.is_legacy:
                epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            elif epochs.entries:
                epochs.clear_and_flush()

    def check_size(self) -> None:
        """Refuse more bytes than a segment may have (LOG-10)."""
        if len(self.records.data) > self.config.segment_bytes:
            refuse(ErrorKind.RECORD_BATCH_TOO_LARGE)

    def maybe_roll(self) -> LogSegment:
        """Begin a new segment, if the active one should take no more; return the one to write to.

        It begins at the first offset, or where the last one can just be held (LOG-11).
        """
        active = self.local_log.segments.active_segment
        if not active.should_roll(self.roll_params()):
            return active
        rolled = self.local_log.segments.get(self.log.roll(self.base_of_next()))
        assert rolled is not None
        return rolled

    def base_of_next(self) -> int:
        """Return where a new segment should begin."""
        is_unknown = self.info.first_offset == UNKNOWN_OFFSET
        return self.info.last_offset - INT32_MAX if is_unknown else self.info.first_offset

    def roll_params(self) -> RollParams:
        """Return the values that decide about a new segment."""
        return RollParams(
            self.config.max_segment_ms,
            self.config.segment_bytes,
            self.info.max_timestamp,
            self.info.last_offset,
            len(self.records.data),
            self.log.files.now_ms,
        )

    # --- producers -----------------------------------------------------------------------------

    def check_producers(self) -> None:
        """Check what the producers send, up to a client's batch that was written before."""
        for batch in self.records.batches():
            if batch.producer_id <= -1:
                continue
            if not self.is_follower:
                self.duplicate = self.find_duplicate(batch)
            if self.duplicate is not None:
                return
            self.update_producer(batch)

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the same batch as it was written before; refuse a transaction of an old epoch."""
        known = self.producers.last_entry(batch.producer_id)
        if known is None:
            return None
        duplicate = known.find_duplicate_batch(batch) if self.origin == "client" else None
        is_old = batch.producer_epoch < known.producer_epoch
        if duplicate is None and is_old and batch.is_transactional:
            refuse(ErrorKind.INVALID_PRODUCER_EPOCH)
        return duplicate

    def update_producer(self, batch: RecordBatch) -> None:
        """Take in what a batch means for its producer."""
        producer_id = batch.producer_id
        info = self.updated_producers.get(producer_id)
        if info is None:
            info = self.producers.prepare_update(producer_id, self.origin)
            self.updated_producers[producer_id] = info
        started = len(info.started_transactions)
        completed = info.append(batch, None, self.transaction_version)
        if completed is not None:
            self.completed_txns.append(completed)
        if len(info.started_transactions) > started and not batch.is_control:
            self.begins_txn.append(batch)

    # --- writing -------------------------------------------------------------------------------

    def write(self, segment: LogSegment) -> None:
        """Write the batches, then let them count for producers and transactions (LOG-9)."""
        self.log.txn_places = (*self.txn_places(segment), *self.waiting_places())
        self.write_records(segment)
        self.end_log()
        self.learn(segment)
        self.log.bounds.maybe_increment_first_unstable_offset()
        if self.log.log_end_offset - self.log.recovery_point >= self.config.flush_messages:
            self.log.flush()

    def write_records(self, segment: LogSegment) -> None:
        """Write the batches to a segment."""
        segment.append(self.info.last_offset, self.records)

    def txn_places(self, segment: LogSegment) -> list[LogOffsetMetadata]:
        """Return where transactions begin in the batches that are about to be written."""
        return [
            LogOffsetMetadata(one.base_offset, segment.base_offset, segment.size + one.position)
            for one in self.begins_txn
        ]

    def waiting_places(self) -> list[LogOffsetMetadata]:
        """Return the first offsets of transactions that are open or not yet replicated."""
        producers = self.log.producer_state_manager
        waiting = {txn.first_offset for txn in producers.waiting_txns}
        return [place for place in self.log.txn_places if place.message_offset in waiting]

    def end_log(self) -> None:
        """Let the log end behind what was written."""
        self.local_log.update_log_end_offset(self.info.last_offset + 1)
        self.log.bounds.update_high_watermark_with_log_end_offset()

    def learn(self, segment: LogSegment) -> None:
        """Let what was written count for producers and transactions (PROD-11)."""
        for info in self.updated_producers.values():
            self.producers.update(info)
        for txn in self.completed_txns:
            self.complete(txn, segment)
        self.producers.update_map_end_offset(self.info.last_offset + 1)

    def complete(self, txn: CompletedTxn, segment: LogSegment) -> None:
        """End a transaction, and enter it into the index if it was aborted."""
        segment.update_txn_index(txn, self.producers.last_stable_offset(txn))
        self.producers.complete_txn(txn)
