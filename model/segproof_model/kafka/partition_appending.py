# SPDX-License-Identifier: Apache-2.0
"""Appending to a partition's log, as its leader or as a follower, and beginning new segments.

Mirrors: the appending of impl/segproof/kafka/partition_log.py.
Upstream: Kafka, UnifiedLog and LocalLog (4.3.1).
Laws: LOG-4, LOG-9 to LOG-12, LOG-21.
Not covered: verification of transactions, which asks the coordinator; flushing by flush_ms.
Used by: partition_log.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

from segproof_model.kafka.early_validator import early_validated
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.log_validator import (
    RECORD_TOO_LARGE,
    UNKNOWN_OFFSET,
    LogAppendInfo,
    analyzed,
    order_refusal,
    validated,
)
from segproof_model.kafka.partition_parts import KAFKA_ERROR, UNMAPPED, ProducerUpdates
from segproof_model.kafka.partition_reading import ReadingLog
from segproof_model.kafka.producer_append_info import (
    INVALID_PRODUCER_EPOCH,
    AppendOrigin,
    CompletedTxn,
)
from segproof_model.kafka.producer_snapshot import BatchMetadata, ProducerStateEntry
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import scan_memory
from segproof_model.kafka.segment_names import segment_file_name
from segproof_model.kafka.segment_parts import run
from segproof_model.kafka.segment_rolling import RollParams
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.values import replace

RECORD_BATCH_TOO_LARGE = Raised(ErrorKind.RECORD_BATCH_TOO_LARGE)
NAMED_OFFSETS = 10
"""How many offsets the error of an append below the log's end names."""
FILES = (".log", ".index", ".timeindex", ".txnindex")


class _Call(NamedTuple):
    """A call of append whose batches have their offsets."""

    info: LogAppendInfo
    records: bytes
    batches: tuple[RecordBatch, ...]
    origin: AppendOrigin
    transaction_version: int
    offset_of_maximum: int
    """What goes with the largest timestamp into the time index, where one entry stands for all."""


@dataclass(frozen=True, slots=True)
class AppendingLog(ReadingLog):
    """What writers ask a log."""

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        origin: AppendOrigin = "client",
        transaction_version: int = -1,
    ) -> Step[Self]:
        """Give the records offsets and append them; return a `LogAppendInfo`.

        `origin` is "coordinator" for markers of transactions, which say their version.
        """
        return self._told(self._append(records, leader_epoch, origin, transaction_version))

    def append_as_follower(self, records: bytes, leader_epoch: int) -> Step[Self]:
        """Append batches that have their offsets; return a `LogAppendInfo` (LOG-21).

        Batches from the first of a later epoch on are left out.
        """
        return self._told(self._append(records, leader_epoch, "replication", -1))

    def _append(
        self, records: bytes, leader_epoch: int, origin: AppendOrigin, transaction_version: int
    ) -> Step[Self]:
        if self.is_refused:
            return Step(self, UNMAPPED)
        scan = scan_memory(records, codecs=self.codecs, profile=self.profile)
        is_leader = origin != "replication"
        is_limited = is_leader or self.profile.follower_size_is_limited
        info = analyzed(
            scan,
            origin,
            leader_epoch,
            self.log_start_offset,
            self.config.max_message_bytes if is_limited else INT32_MAX,
            self.profile,
        )
        if isinstance(info, Raised) or info.valid_bytes == 0:
            return Step(self, info)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        valid = records[: info.valid_bytes]
        given: tuple[LogAppendInfo, bytes, int | None] | Raised
        if is_leader:
            given = self._with_offsets(info, valid, leader_epoch, origin)
        else:
            is_late = info.first_or_last_offset < self.log_end_offset
            # Kafka names what it was given, batches of a later epoch that it leaves out as well.
            late = order_refusal(scan, self.profile, NAMED_OFFSETS) if is_late else None
            given = late or (info, valid, None)
        if isinstance(given, Raised):
            return Step(self, given)
        info, valid, maximum = given
        batches = scan_memory(valid, codecs=self.codecs, profile=self.profile).batches
        maximum = _end_of_newest(batches) if maximum is None else maximum
        call = _Call(info, valid, batches, origin, transaction_version, maximum)
        if self.profile.checks_before_changing:
            step = self._checked(call)
            return step if isinstance(step.outcome, Raised) else step.after._appended(call)
        return self._appended(call)

    def _with_offsets(
        self, info: LogAppendInfo, records: bytes, leader_epoch: int, origin: AppendOrigin
    ) -> tuple[LogAppendInfo, bytes, int | None] | Raised:
        """Let the leader write into the batches what it has to; return the offset of the largest
        timestamp as well, as it enters it into a time index."""
        batches = scan_memory(records, codecs=self.codecs, profile=self.profile).batches
        end, config, profile = self.log_end_offset, self.config, self.profile
        if profile.leader_keeps_messages:
            done = early_validated(batches, end, self.now_ms, config, self.codecs, profile)
        else:
            done = validated(
                batches, end, self.now_ms, config, leader_epoch, origin, self.codecs, profile
            )
        if isinstance(done, Raised):
            return done
        if done.is_rewritten and self._has_too_large(done.records):
            return RECORD_TOO_LARGE
        is_given = config.message_timestamp_type == "LogAppendTime"
        told = info._replace(
            first_offset=end,
            last_offset=done.last_offset,
            max_timestamp=done.max_timestamp,
            log_append_time=self.now_ms if is_given else info.log_append_time,
        )
        of_record = self.profile.leader_indexes_record
        return told, done.records, done.offset_of_maximum if of_record else done.last_offset

    def _has_too_large(self, records: bytes) -> bool:
        """Whether a batch is larger than the log takes."""
        batches = scan_memory(records, codecs=self.codecs, profile=self.profile).batches
        return any(one.size_bytes > self.config.max_message_bytes for one in batches)

    def _checked(self, call: _Call) -> Step[Self]:
        """Raise why batches are not taken, as far as that is known before anything is written.

        To know whether a new segment is due, the indexes of the active one are opened.
        """
        if len(call.records) > self.config.segment_bytes:
            return Step(self, RECORD_BATCH_TOO_LARGE)
        for batch in call.batches:
            numbers = batch.partition_leader_epoch, batch.base_offset
            if not batch.is_legacy and any(isinstance(n, Raised) or n < 0 for n in numbers):
                return Step(self, Raised(ErrorKind.INVALID_ARGUMENT))
        asked = self._base_to_roll(call)
        if isinstance(asked.outcome, int):
            base_offset = max(asked.outcome, self.log_end_offset)
            if asked.after._cannot_begin_at(base_offset):
                return Step(asked.after, KAFKA_ERROR)
            if call.info.last_offset - base_offset > INT32_MAX:
                return Step(asked.after, Raised(ErrorKind.SEGMENT_OVERFLOW))
        elif asked.outcome is not None:
            return asked
        checked = asked.after._checked_producers(call)
        return Step(asked.after, checked if isinstance(checked, Raised) else None)

    def _appended(self, call: _Call) -> Step[Self]:
        """Append batches that have their offsets (LOG-9, LOG-10)."""
        step = run(self, *(partial(type(self)._with_epoch, batch=one) for one in call.batches))
        if not isinstance(step.outcome, Raised) and len(call.records) > self.config.segment_bytes:
            return Step(step.after, RECORD_BATCH_TOO_LARGE)
        if isinstance(step.outcome, Raised):
            return step
        is_first = self.profile.producers_checked_before_roll
        checked = step.after._checked_producers(call)
        if not (is_first and isinstance(checked, Raised | BatchMetadata)):
            step = step.after._maybe_roll(call)
        is_safe = self.profile.checks_before_changing
        if isinstance(step.outcome, Raised):
            return Step(self, step.outcome) if is_safe else step
        if isinstance(checked, Raised):
            return Step(step.after, checked)
        if isinstance(checked, BatchMetadata):
            duplicate = call.info._replace(
                first_offset=checked.first_offset,
                last_offset=checked.last_offset,
                log_append_time=checked.timestamp,
            )
            return Step(step.after, duplicate)
        active = step.after.log_segments.active_segment.base_offset
        is_rolled = isinstance(step.outcome, int)
        base_offset = step.outcome if isinstance(step.outcome, int) else active
        step = step.after._written(call, checked, base_offset)
        if isinstance(step.outcome, Raised) and is_safe:
            # What the indexes of a new segment refuse is known when it is there.
            is_kept = is_rolled and step.after.size == self.size
            return step if is_kept else Step(self, step.outcome)
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else call.info)

    def _told(self, step: Step[Self]) -> Step[Self]:
        """Let an append tell of itself what this release does."""
        info = step.outcome
        if not isinstance(info, LogAppendInfo):
            return step
        if not self.profile.append_tells_log_start:
            info = info._replace(log_start_offset=UNKNOWN_OFFSET)
        if not self.profile.first_offset_is_named:
            first = info.first_or_last_offset
            info = info._replace(first_offset=first, last_offset_of_first_batch=UNKNOWN_OFFSET)
        return Step(step.after, info)

    def _with_epoch(self, batch: RecordBatch) -> Step[Self]:
        """Enter the epoch of a batch; a batch that has none forgets all epochs."""
        if not self.profile.log_knows_producers:
            return Step(self)
        epoch, base_offset = batch.partition_leader_epoch, batch.base_offset
        if isinstance(epoch, Raised) or isinstance(base_offset, Raised):
            return Step(self, epoch if isinstance(epoch, Raised) else base_offset)
        if not batch.is_legacy:
            return self.on_epochs(lambda one: one.assign(epoch, base_offset))
        is_kept = not self.profile.legacy_batch_forgets_epochs
        if is_kept or not self.leader_epoch_cache.entries:
            return Step(self)
        return self.on_epochs(lambda one: one.clear_and_flush())

    def _checked_producers(self, call: _Call) -> ProducerUpdates | BatchMetadata | Raised:
        """Check what the producers send; the answer may be a batch that was written before."""
        if call.origin == "replication":
            return self.producer_updates(call.batches, call.origin)
        for batch in call.batches:
            known = self._known_producer(batch)
            if known is None:
                continue
            duplicate = known.find_duplicate_batch(batch) if call.origin == "client" else None
            if duplicate is not None:
                return duplicate
            epoch = batch.producer_epoch
            is_old = isinstance(epoch, int) and epoch < known.producer_epoch
            if is_old and batch.is_transactional:
                return INVALID_PRODUCER_EPOCH
        return self.producer_updates(call.batches, call.origin, call.transaction_version)

    def _known_producer(self, batch: RecordBatch) -> ProducerStateEntry | None:
        """Return what is known of the producer of a batch."""
        producer_id = batch.producer_id
        if isinstance(producer_id, Raised) or producer_id <= -1:
            return None
        return self.producer_state_manager.last_entry(producer_id)

    def _written(self, call: _Call, updates: ProducerUpdates, base_offset: int) -> Step[Self]:
        """Write the batches, then let them count for producers and transactions (LOG-9).

        `base_offset` is that of the segment that takes them, which in some releases need not be the
        active one: a roll may have begun that ahead of the log end.
        """
        last_offset = call.info.last_offset
        largest = call.info.max_timestamp, call.offset_of_maximum
        learned: list[Callable[[Self], Step[Self]]] = [
            lambda one: run(
                one,
                lambda at: at.ended_at(last_offset + 1),
                lambda at: at.with_high_watermark_within(),
            ),
            lambda one: one._learned(updates, base_offset, last_offset + 1),
        ]
        return run(
            self._with_places(call, updates, base_offset),
            lambda one: one.on_segment(
                base_offset,
                lambda at: at.append_call(
                    call.info.first_or_last_offset, last_offset, call.records, *largest
                ),
            ),
            *(learned if self.profile.append_ends_log_first else reversed(learned)),
            lambda one: one.with_first_unstable(),
            lambda one: (
                one.flush()
                if one.log_end_offset - one.recovery_point >= one.config.flush_messages
                else Step(one)
            ),
        )

    def _with_places(self, call: _Call, updates: ProducerUpdates, base_offset: int) -> Self:
        """Remember where transactions begin in the batches that are about to be written.

        A place that is not remembered is looked up: that of a transaction that a marker begins and
        ends; in older releases those of all but one, which begins a producer's batches and the
        call.
        """
        segment = self.log_segments.get(base_offset)
        assert segment is not None
        started = [one.started_transactions for one in updates.infos if one.started_transactions]
        if not self.profile.txn_places_of_each_batch:
            first = call.info.first_or_last_offset
            is_begun = any(txns[0].first_offset == first for txns in started)
            place = LogOffsetMetadata(first, base_offset, segment.size)
            return replace(self, txn_places=(place, *self.txn_places)) if is_begun else self
        begun = {(txn.producer_id, txn.first_offset) for txns in started for txn in txns}
        places = tuple(
            LogOffsetMetadata(offset, base_offset, segment.size + batch.position)
            for batch in call.batches
            if isinstance(offset := batch.base_offset, int)
            and batch.is_control is not True
            and (batch.producer_id, offset) in begun
        )
        return replace(self, txn_places=(*places, *self.txn_places)) if places else self

    def _learned(self, updates: ProducerUpdates, base_offset: int, end: int) -> Step[Self]:
        """Let batches that were written to a segment count for producers and transactions."""
        return run(
            self,
            lambda one: one.with_producers(updates),
            *(
                partial(type(self)._completed, base_offset=base_offset, txn=done)
                for done in updates.completed_txns
            ),
            lambda one: one.on_producers(lambda known: known.update_map_end_offset(end)),
        )

    def _completed(self, base_offset: int, txn: CompletedTxn) -> Step[Self]:
        """End a transaction, and enter it into the index (PROD-11)."""
        stable = self.producer_state_manager.last_stable_offset(txn)
        operations: list[Callable[[Self], Step[Self]]] = [
            lambda one: one.on_segment(base_offset, lambda at: at.update_txn_index(txn, stable)),
            lambda one: one.on_producers(lambda known: known.complete_txn(txn)),
        ]
        if not self.profile.append_ends_log_first:
            operations.reverse()
        return run(self, *operations)

    def with_log_end(self, offset: int) -> Self:
        """Return the state whose log ends at the offset, and with the active segment's bytes."""
        active = self.log_segments.active_segment
        log_end = LogOffsetMetadata(offset, active.base_offset, active.size)
        return replace(self, log_end=log_end, recovery_point=min(self.recovery_point, offset))

    def ended_at(self, offset: int) -> Step[Self]:
        """Let the log end at the offset; in some releases the high watermark is fitted to it before
        the recovery point is."""
        ended = self.with_log_end(offset)
        if not self.profile.log_knows_high_watermark and offset >= self.log_end_offset:
            return Step(replace(ended, recovery_point=self.recovery_point))
        if not self.profile.bounds_follow_end_at_once:
            return Step(ended)
        step = replace(ended, recovery_point=self.recovery_point).with_high_watermark_within()
        if isinstance(step.outcome, Raised):
            return step
        return Step(replace(step.after, recovery_point=ended.recovery_point))

    # --- new segments --------------------------------------------------------------------------

    def _maybe_roll(self, call: _Call) -> Step[Self]:
        """Begin a new segment, if the active one should take no more (LOG-11)."""
        step = self._base_to_roll(call)
        return step.after.roll(step.outcome) if isinstance(step.outcome, int) else step

    def _base_to_roll(self, call: _Call) -> Step[Self]:
        """Return the base that a new segment should have, or None if the active one takes it."""
        info, config = call.info, self.config
        is_limited = self.profile.compaction_lag_limits_segments
        params = RollParams(
            config.max_segment_ms if is_limited else config.segment_ms,
            config.segment_bytes,
            info.max_timestamp,
            info.last_offset,
            len(call.records),
            self.now_ms,
        )
        step = self.on_active(lambda active: active.should_roll(params))
        if step.outcome is not True:
            return Step(step.after, step.outcome or None)
        is_known = self.profile.roll_knows_first_offset and info.first_offset != UNKNOWN_OFFSET
        return Step(step.after, info.first_offset if is_known else info.last_offset - INT32_MAX)

    def _cannot_begin_at(self, base_offset: int) -> bool:
        """Whether no new segment may have this base offset (LOG-12)."""
        active = self.log_segments.active_segment
        if self.log_segments.contains(base_offset):
            is_replaced = base_offset == active.base_offset and active.size == 0
            return not (is_replaced and self.profile.empty_segment_is_replaced)
        return base_offset < active.base_offset and self.profile.empty_segment_is_replaced

    def roll(self, expected_next_offset: int | None = None) -> Step[Self]:
        """Begin a new segment; return its base offset (LOG-11, LOG-12).

        A snapshot of the producers is written there, and what lies before is made durable.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.is_found_closed:
            return Step(self, KAFKA_ERROR)
        base_offset = max(expected_next_offset or 0, self.log_end_offset)
        if self._cannot_begin_at(base_offset):
            return self._refused_at(base_offset)
        is_fresh = self.log_segments.contains(base_offset)
        begin = type(self)._with_fresh_segment if is_fresh else type(self)._with_next_segment
        began = begin(self, base_offset)
        if isinstance(began.outcome, Raised):
            return began
        step = run(
            began.after,
            lambda one: one.snapshot_at(base_offset),
            lambda one: one.ended_at(one.log_end_offset),
            lambda one: one.with_high_watermark_within(),
            lambda one: one.flush_up_to(base_offset),
        )
        return Step(step.after, step.outcome if isinstance(step.outcome, Raised) else base_offset)

    def _refused_at(self, base_offset: int) -> Step[Self]:
        """Refuse a roll; the error tells of the segment in its way, in some releases its largest
        timestamp. Others have begun the segment by then."""
        if not self.profile.empty_segment_is_replaced:
            step = run(
                self,
                lambda one: one._with_next_segment(base_offset),
                lambda one: one.snapshot_at(base_offset),
            )
            return step if isinstance(step.outcome, Raised) else Step(step.after, KAFKA_ERROR)
        if not self.profile.overflow_names_maximum:
            return Step(self, KAFKA_ERROR)
        in_its_way = self.log_segments.get(base_offset) or self.log_segments.active_segment
        step = self.on_segment(in_its_way.base_offset, lambda one: one.load_maximum())
        return step if isinstance(step.outcome, Raised) else Step(step.after, KAFKA_ERROR)

    def _with_next_segment(self, base_offset: int) -> Step[Self]:
        """Begin a segment; files that stand in its way are removed.

        If they are those of the active one, what it writes last is lost with them.
        """
        is_own = self.log_segments.active_segment.base_offset == base_offset
        ended = self.on_active(
            lambda one: one.write_maximum() if is_own else one.on_become_inactive_segment()
        )
        if isinstance(ended.outcome, Raised) and self.profile.checks_before_changing:
            return Step(ended.after, ended.outcome)
        directory = ended.after.directory
        for suffix in FILES:
            directory = directory.remove(self.prefix + segment_file_name(base_offset, suffix))
        after = ended.after.sees(directory)
        if isinstance(ended.outcome, Raised):
            return Step(after, ended.outcome)
        return run(
            after,
            lambda one: one.on_active(lambda active: active.trim_to_what_is_used()),
            lambda one: one.with_new_segment(base_offset),
        )

    def _with_fresh_segment(self, base_offset: int) -> Step[Self]:
        """Let a new segment stand in for the active, empty one with the same base offset."""
        after: Step[Self] = Step(self)
        if self.profile.replaced_segment_loads_indexes:
            after = self.on_active(lambda active: _with_indexes(active))
        if isinstance(after.outcome, Raised):
            return after
        active = after.after.log_segments.active_segment
        return after.after.replaced_segment(active, base_offset)

    def replaced_segment(self, segment: LogSegment, base_offset: int) -> Step[Self]:
        """Let a new segment stand in for this one, whose files go later."""
        kept = self.log_segments.remove(segment.base_offset)
        return run(
            replace(self, log_segments=kept),
            lambda one: one.delete_later([segment]),
            lambda one: one.with_new_segment(base_offset),
        )

    def with_high_watermark_within(self) -> Step[Self]:
        """Place the high watermark at the end of the log, if it is not before it.

        One before it that had its place in a segment that was removed is looked up again.
        """
        if not self.profile.log_knows_high_watermark:
            return Step(self)
        if self.high_watermark >= self.log_end_offset:
            return self.with_high_watermark(self.log_end)
        base = self.high_watermark_metadata.segment_base_offset
        is_gone = base not in self.log_segments.base_offsets()
        if not is_gone or self.profile.bound_stays_in_removed_segment:
            return Step(self)
        unplaced = LogOffsetMetadata(self.high_watermark)
        return Step(replace(self, high_watermark_metadata=unplaced))

    # --- durability ----------------------------------------------------------------------------

    def flush(self, force_flush_active_segment: bool = False) -> Step[Self]:
        """Make the log durable from the recovery point on, and move that to the log's end.

        An active segment that is empty is flushed only if it is forced.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        is_forced = force_flush_active_segment and self.profile.flush_can_be_forced
        return self.flush_up_to(self.log_end_offset, int(is_forced))

    def flush_up_to(self, offset: int, more: int = 0) -> Step[Self]:
        """Make the segments durable that begin before offset + more."""
        if offset + more <= self.recovery_point:
            return Step(self)
        segments = self.log_segments.values(self.recovery_point, offset + more)
        if isinstance(segments, Raised):
            return Step(self, segments)
        step = self.on_segments(segments, lambda one: one.flush())
        if self.profile.flush_removes_snapshots and not isinstance(step.outcome, Raised):
            kept = min([offset, *self.log_segments.base_offsets()[-2:]])
            step = step.after.on_producers(lambda known: known.delete_snapshots_before(kept))
        if isinstance(step.outcome, Raised):
            return step
        if self.is_found_closed:
            return Step(step.after, KAFKA_ERROR)
        moved = max(self.recovery_point, offset)
        return Step(replace(step.after, recovery_point=moved))


def _end_of_newest(batches: tuple[RecordBatch, ...]) -> int:
    """Return the last offset of the first batch with the largest timestamp; -1 without any."""
    newest, end = -1, -1
    for batch in batches:
        timestamp, last_offset = batch.max_timestamp, batch.last_offset
        if isinstance(timestamp, int) and isinstance(last_offset, int) and timestamp > newest:
            newest, end = timestamp, last_offset
    return end


def _with_indexes(segment: LogSegment) -> Step[LogSegment]:
    """Load both indexes of a segment."""
    return run(
        segment,
        lambda one: one.ask_time_index(lambda index: None),
        lambda one: one.ask_offset_index(lambda index: None),
    )
