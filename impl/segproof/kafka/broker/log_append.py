# SPDX-License-Identifier: Apache-2.0
"""One append to a log: checked, then written, then learned by producers and epochs.

All that can refuse an append is asked before anything is changed: the records, their size, the
place of a new segment, the producers, the three indexes of the active segment. Only what a new
segment's indexes refuse, too small for one call, is known later: the new segment stays then.

Upstream: Kafka, UnifiedLog.append (4.3.1).
Laws: LOG-9 to LOG-11, LOG-21, PROD-11.
"""

from segproof.errors import (
    InvalidArgumentError,
    InvalidProducerEpochError,
    RecordBatchTooLargeError,
)
from segproof.integers import INT32_MAX, INT32_MIN, in_range
from segproof.kafka.broker.local_log import LocalLog
from segproof.kafka.index_entries import Plan, segment_overflow
from segproof.kafka.log_validator import (
    LogAppendInfo,
    LogValidator,
    analyze,
    check_last_offset,
    offsets_below_end,
)
from segproof.kafka.producer_append_info import (
    NO_TRANSACTION_VERSION,
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
)
from segproof.kafka.producer_snapshot import BatchMetadata
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import scan_memory
from segproof.kafka.segments.log_segment import LogSegment, RollParams
from segproof.kafka.segments.segment_recovery import aborted_txn
from segproof.kernels.log_rules import roll_base
from segproof.kernels.segment_rules import fits_segment


class LogAppend:
    """A call of `append_as_leader` or `append_as_follower`, and what is known of it so far."""

    def __init__(
        self,
        log: LocalLog,
        records: bytes,
        leader_epoch: int,
        origin: AppendOrigin,
        transaction_version: int = NO_TRANSACTION_VERSION,
    ) -> None:
        log.bounds.check_open()
        log.directory.check_writable()
        self.log, self.config, self.dir = log, log.directory.config, log.directory.dir
        self.records, self.origin, self.transaction_version = records, origin, transaction_version
        self.leader_epoch = in_range(
            leader_epoch, "the leader epoch", INT32_MIN, INT32_MAX, law="EPOCH-2", path=self.dir
        )
        self.info, self.batches = analyze(
            records,
            self.config,
            origin=origin,
            leader_epoch=self.leader_epoch,
            log_start_offset=log.log_start_offset,
        )
        self.updated_producers: dict[int, ProducerAppendInfo] = {}
        """What the batches do to the producer state, once they count."""
        self.completed_txns: list[CompletedTxn] = []
        self.duplicate: BatchMetadata | None = None
        """The batch in the log that is sent again; then nothing is appended."""
        self.plan: Plan | None = None
        """What the active segment's indexes will get; None for those of a new segment."""

    def append(self) -> LogAppendInfo:
        """Check the batches, and append them. Law: LOG-9."""
        if not self.batches:
            return self.info
        if self.origin == "replication":
            self.take_offsets()
        else:
            self.assign_offsets()
        return self.append_records()

    def take_offsets(self) -> None:
        """Take the offsets that are given, if they do not begin below the log's end. LOG-21."""
        error = offsets_below_end(self.info, self.batches, self.log.log_end_offset)
        if error is not None:
            error.path = self.dir
            raise error
        check_last_offset(self.info.last_offset)
        self.records = self.records[: self.info.valid_bytes]

    def assign_offsets(self) -> None:
        """Let the leader write into the batches what it has to. Law: LOG-10."""
        given = self.records, self.batches, self.info, self.log.directory.time()
        leader = LogValidator(*given, self.config, self.leader_epoch, self.origin)
        self.info, self.records = leader.validate_messages_and_assign_offsets(
            self.log.log_end_offset
        )
        self.batches = list(scan_memory(self.records))

    def append_records(self) -> LogAppendInfo:
        """Append what is valid in itself, if size, place and producers allow it."""
        log, bounds, info = self.log, self.log.bounds, self.info
        self.check_size()
        self.check_epochs()
        base = self.base_to_roll()
        self.check_producers()
        self.check_indexes(base)
        with log.offline_if_it_fails():
            self.assign_epochs()
            if base is not None:
                log.roll(base)
        if self.duplicate is not None:
            bounds.publish(epochs=log.epochs.entries)
            return info._replace(
                first_offset=self.duplicate.first_offset,
                last_offset=self.duplicate.last_offset,
                log_append_time=self.duplicate.timestamp,
            )
        segment = log.segments.active_segment
        self.write(segment)
        with log.offline_if_it_fails():
            # The end moves before the transaction index is touched (LOG-9).
            log.update_log_end_offset(info.last_offset + 1, epochs=log.epochs.entries)
            self.learn(segment)
            bounds.update_high_watermark_with_log_end_offset()
            bounds.publish()
            if log.log_end_offset - log.recovery_point >= self.config.flush_messages:
                log.flush_up_to(log.log_end_offset)
        return info

    # --- before anything is written

    def check_size(self) -> None:
        """Refuse more bytes than a segment may have. Law: LOG-10."""
        if len(self.records) > self.config.segment_bytes:
            raise RecordBatchTooLargeError(
                "the records are larger than a segment may be",
                law="LOG-10",
                path=self.dir,
                expected=f"at most {self.config.segment_bytes} bytes",
                actual=len(self.records),
                hint="the option is segment_bytes",
            )

    def check_epochs(self) -> None:
        """Refuse a batch that begins below 0, or whose leader's epoch is negative. Law: EPOCH-2."""
        for batch in self.batches:
            if batch.magic < 2:
                continue
            for text, value in (
                ("a batch begins below offset 0", batch.base_offset),
                ("the leader epoch of a batch is negative", batch.partition_leader_epoch),
            ):
                if value < 0:
                    raise InvalidArgumentError(
                        text,
                        law="EPOCH-2",
                        path=self.dir,
                        position=batch.position,
                        expected="at least 0",
                        actual=value,
                    )

    def base_to_roll(self) -> int | None:
        """Return the base of the segment that is rolled before the append, or None for none.

        Raises: SegproofError where there can't be one; SegmentOffsetOverflowError.
        """
        config, info = self.config, self.info
        params = RollParams(
            config.max_segment_ms,
            config.segment_bytes,
            info.max_timestamp,
            info.last_offset,
            len(self.records),
            self.log.directory.time(),
        )
        if not self.log.segments.active_segment.should_roll(params):
            return None
        base = self.base_of_next()
        self.log.check_roll(base)
        if not fits_segment(info.last_offset, base):
            raise segment_overflow(info.last_offset, base, self.dir)
        return base

    def base_of_next(self) -> int:
        """Return where a new segment should begin. Law: LOG-11."""
        return roll_base(self.info.first_offset, self.info.last_offset, self.log.log_end_offset)

    def check_indexes(self, base: int | None) -> None:
        """Refuse what one of the active segment's indexes, or the producer state, would refuse.

        What a new segment's indexes refuse, too small for one call, is known when it is there.
        """
        segment = self.log.segments.active_segment
        if base is not None:
            self.log.check_last_entry(base)
        elif self.duplicate is None:
            self.plan = segment.plan_append(self.info.last_offset, self.records)
            aborted = next((txn for txn in self.completed_txns if txn.is_aborted), None)
            if aborted is not None:  # the entries of later ones have larger offsets
                segment.txn_index.check_append(aborted_txn(aborted, 0))
        self.log.producers.check_completed(self.updated_producers.values(), self.completed_txns)

    # --- producers

    def check_producers(self) -> None:
        """Check what the producers send, up to a client's batch that was written before."""
        for batch in self.batches:
            if batch.producer_id <= -1:
                continue
            if self.origin != "replication":
                self.duplicate = self.find_duplicate(batch)
            if self.duplicate is not None:
                self.updated_producers, self.completed_txns = {}, []
                return
            self.update_producer(batch)

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the same batch as it was written before; refuse a transaction of an old epoch."""
        known = self.log.producers.last_entry(batch.producer_id)
        if known is None:
            return None
        duplicate = known.find_duplicate_batch(batch) if self.origin == "client" else None
        is_old = batch.producer_epoch < known.producer_epoch
        if duplicate is None and is_old and batch.is_transactional:
            raise InvalidProducerEpochError(
                f"producer {known.producer_id} is fenced off by a newer one",
                position=batch.position,
                expected=f"epoch {known.producer_epoch} or newer",
                actual=batch.producer_epoch,
            )
        return duplicate

    def update_producer(self, batch: RecordBatch) -> None:
        """Take in what a batch means for its producer."""
        producer_id = batch.producer_id
        info = self.updated_producers.get(producer_id)
        if info is None:
            info = self.log.producers.prepare_update(producer_id, self.origin)
            self.updated_producers[producer_id] = info
        completed = info.append(batch, None, self.transaction_version)
        if completed is not None:
            self.completed_txns.append(completed)

    # --- writing

    def assign_epochs(self) -> None:
        """Enter where leader epochs begin; records of older formats have none, and forget all."""
        epochs = self.log.epochs
        for batch in self.batches:
            if batch.magic >= 2:
                epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            elif len(epochs):
                epochs.clear_and_flush()

    def write(self, segment: LogSegment) -> None:
        """Write the batches to the segment; where that fails, take back what was written.

        Else the next append would give its offsets a second time. If that fails too, the log is
        offline.
        """
        log, size = self.log, segment.size
        try:
            plan = self.plan or segment.plan_append(self.info.last_offset, self.records)
            segment.append_planned(self.records, plan)
        except BaseException as error:
            log.name_path(error)
            log.bounds.publish(epochs=log.epochs.entries)
            with log.offline_if_it_fails(BaseException):
                if segment.size > size:
                    segment.truncate_to(log.log_end_offset)
                elif isinstance(error, OSError):  # part of the bytes may be there
                    segment.log.truncate_to(size)
            raise

    def learn(self, segment: LogSegment) -> None:
        """Let the appended batches count for producers and transactions. Law: PROD-11."""
        producers = self.log.producers
        for info in self.updated_producers.values():
            producers.update(info)
        for txn in self.completed_txns:
            segment.update_txn_index(txn, producers.last_stable_offset(txn))
            producers.complete_txn(txn)
        producers.update_map_end_offset(self.info.last_offset + 1)
