# SPDX-License-Identifier: Apache-2.0
"""Recovery of a segment: keep the batches that are valid, and build every index anew.

Mirrors: the recovery of impl/segproof/kafka/log_segment.py.
Upstream: Kafka, LogSegment.recover (since 1.1.1).
Laws: SEG-20 to SEG-30.
Not covered: in 2.4 and 2.8 an offset of the largest timestamp that is loaded later than it.
Used by: log_segment.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.legacy_record import LOG_OVERHEAD
from segproof_model.kafka.producer_append_info import CompletedTxn
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import NO_TIMESTAMP
from segproof_model.kafka.segment_parts import run
from segproof_model.kafka.time_index import TimestampOffset
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.values import replace

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
ENDS_THE_SCAN = (CORRUPT_RECORD, Raised(ErrorKind.INVALID_RECORD))


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery has worked on."""

    segment: Any
    producer_state_manager: ProducerStateManager | None
    leader_epoch_cache: LeaderEpochFileCache | None


@dataclass(frozen=True, slots=True)
class _Recovery:
    """A recovery between two batches."""

    segment: Any
    producers: ProducerStateManager | None
    epochs: LeaderEpochFileCache | None
    valid_bytes: int = 0
    last_index_entry: int = 0
    """Position of the last batch that was indexed; 0 at first."""

    def ended(self) -> Recovered:
        """Return what was worked on; files of one directory see what became of it."""
        directory, producers, epochs = self.segment.directory, self.producers, self.epochs
        if producers is not None:
            producers = replace(producers, directory=directory)
        if epochs is not None and epochs.name is not None:
            epochs = replace(epochs, directory=directory)
        return Recovered(self.segment, producers, epochs)


def recover(
    segment: Any, producers: ProducerStateManager | None, epochs: LeaderEpochFileCache | None
) -> Step[Recovered]:
    """Recover the segment; return the number of bytes removed (SEG-20 to SEG-30).

    An error leaves the log as it was, and what was rebuilt until then: that there will be one is
    known only when the whole log has been read.
    """
    began = run(
        segment,
        lambda one: one.with_indexes(),
        lambda one: one.on_offset_index(lambda index: index.reset()),
        lambda one: one.on_time_index(lambda index: index.reset()),
        lambda one: one.with_txn_index(one.txn_index.reset()),
    )
    if producers is None and segment.profile.recovery_has_producers:
        producers = _no_producers(segment)
    scanned = _Recovery(began.after, producers, epochs)
    outcome = began.outcome
    if not isinstance(outcome, Raised):
        step = _scanned(replace(scanned, segment=_without_maximum(began.after)))
        scanned, outcome = step.after, step.outcome
    if not isinstance(outcome, Raised):
        truncated = scanned.segment.size - scanned.valid_bytes
        ended = run(
            scanned.segment,
            lambda one: one.with_log(one.log.truncate_to(scanned.valid_bytes)),
            lambda one: one.on_offset_index(lambda index: index.trim_to_valid_size()),
            lambda one: one.write_maximum(),
            lambda one: one.on_time_index(lambda index: index.trim_to_valid_size()),
        )
        scanned = replace(scanned, segment=ended.after)
        outcome = ended.outcome if isinstance(ended.outcome, Raised) else truncated
    return Step(scanned.ended(), outcome)


def _without_maximum(segment: Any) -> Any:
    """Forget the largest timestamp, and where the profile says so not its offset."""
    pair = segment.max_pair
    if pair is None or not segment.profile.recovery_keeps_offset_of_maximum:
        return replace(segment, max_pair=None)
    return replace(segment, max_pair=TimestampOffset(NO_TIMESTAMP, pair.offset))


def _no_producers(segment: Any) -> ProducerStateManager:
    opened = ProducerStateManager.open("", profile=segment.profile).after
    assert isinstance(opened, ProducerStateManager)
    return opened


def _scanned(recovery: _Recovery) -> Step[_Recovery]:
    """Index batch after batch; a damaged one ends the scan, any other error the recovery."""
    scan = recovery.segment.log.batches()
    step = Step(recovery)
    for batch in scan.batches:
        step = run(step.after, partial(_indexed, batch=batch), partial(_learned, batch=batch))
        if isinstance(step.outcome, Raised):
            break
    else:
        step = Step(step.after, scan.error)
    return Step(step.after) if step.outcome in ENDS_THE_SCAN else step


def _indexed(recovery: _Recovery, batch: RecordBatch) -> Step[_Recovery]:
    """Check a batch, and add the index entries that are due (SEG-22)."""
    limit = recovery.segment.config.max_message_bytes
    if (
        recovery.segment.profile.recovery_limits_messages
        and batch.size_bytes - LOG_OVERHEAD > limit
    ):
        return Step(recovery, CORRUPT_RECORD)
    valid, whole = batch.ensure_valid(), batch.loaded()
    if isinstance(valid, Raised) or isinstance(whole, Raised):
        return Step(recovery, valid)
    batch = whole  # what was checked is in memory since
    for check in (batch.last_offset, batch.max_timestamp):
        if isinstance(check, Raised):
            return Step(recovery, check)
    last_offset, max_timestamp = batch.last_offset, batch.max_timestamp
    position, previous = recovery.valid_bytes, recovery.last_index_entry
    is_due = position - previous > recovery.segment.config.index_interval_bytes
    is_first = recovery.segment.profile.index_key == "first_offset"
    key = batch.base_offset if is_first and is_due else last_offset
    if isinstance(key, Raised) and recovery.segment.profile.checks_before_changing:
        return Step(recovery, key)
    step = run(
        recovery.segment,
        lambda one: (
            one.ensure_offset_in_range(last_offset)
            if one.profile.check_relative_offset
            else Step(one)
        ),
        lambda one: one.load_maximum(),
        lambda one: Step(one.with_maximum(max_timestamp, last_offset)),
        lambda one: _entered(one, key, position) if is_due else Step(one),
    )
    after = replace(recovery, segment=step.after)
    if isinstance(step.outcome, Raised):
        return Step(after, step.outcome)
    end = position + batch.size_bytes
    return Step(replace(after, valid_bytes=end, last_index_entry=position if is_due else previous))


def _entered(segment: Any, key: int | Raised, position: int) -> Step[Any]:
    """Add the index entries; a first offset that can't be read is seen only now (SEG-22)."""
    return Step(segment, key) if isinstance(key, Raised) else segment.enter(key, position)


def _learned(recovery: _Recovery, batch: RecordBatch) -> Step[_Recovery]:
    """Tell the epoch cache and the producer state of a batch (SEG-28, SEG-30)."""
    if batch.is_legacy:
        return Step(recovery)
    return run(
        recovery,
        lambda one: _with_epoch(one, batch),
        lambda one: _with_producer(one, batch),
    )


def _with_epoch(recovery: _Recovery, batch: RecordBatch) -> Step[_Recovery]:
    epoch, base_offset, epochs = batch.partition_leader_epoch, batch.base_offset, recovery.epochs
    if isinstance(epoch, Raised) or isinstance(base_offset, Raised) or epochs is None:
        return Step(recovery)
    smallest = 0 if recovery.segment.profile.recover_assigns_epoch_zero else 1
    latest = epochs.latest_epoch()
    if epoch < smallest or (latest is not None and epoch <= latest):
        return Step(recovery)
    has_file = epochs.name is not None
    directory = recovery.segment.directory if has_file else epochs.directory
    step = replace(epochs, directory=directory).assign(epoch, base_offset)
    segment = recovery.segment.sees(step.after.directory) if has_file else recovery.segment
    return Step(replace(recovery, epochs=step.after, segment=segment), step.outcome)


def _with_producer(recovery: _Recovery, batch: RecordBatch) -> Step[_Recovery]:
    producers, last_offset = recovery.producers, batch.last_offset
    if producers is None or isinstance(last_offset, Raised):
        return Step(recovery)
    step = producers.update_producers(batch, "replication")
    recovery = replace(recovery, producers=step.after)
    if isinstance(step.outcome, Raised):
        return Step(recovery, step.outcome)
    if isinstance(step.outcome, CompletedTxn):
        ended = _with_transaction(recovery, step.outcome)
        if isinstance(ended.outcome, Raised):
            return ended
        recovery = ended.after
    assert recovery.producers is not None
    told = recovery.producers.update_map_end_offset(last_offset + 1)
    return Step(replace(recovery, producers=told.after), told.outcome)


def _with_transaction(recovery: _Recovery, completed_txn: CompletedTxn) -> Step[_Recovery]:
    """Enter an aborted transaction into its index, and forget the transaction."""
    assert recovery.producers is not None
    last_stable_offset = recovery.producers.last_stable_offset(completed_txn)
    entered = recovery.segment.enter_transaction(completed_txn, last_stable_offset)
    after = replace(recovery, segment=entered.after)
    if isinstance(entered.outcome, Raised):
        return Step(after, entered.outcome)
    told = recovery.producers.complete_txn(completed_txn)
    return Step(replace(after, producers=told.after), told.outcome)
