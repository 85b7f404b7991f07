# SPDX-License-Identifier: Apache-2.0
"""The laws of a segment's recovery.

The state after a recovery is what it has worked on; the laws take the segment from it.

Used by: the harness, the generated pages.
"""

from itertools import takewhile

from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.segment_recovery import Recovered
from segproof_model.language.outcomes import Raised
from segproof_model.laws.judging import first_by_sequences, is_rising, succeeded
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.segment_judging import (
    STRUCTURE,
    after_of,
    are_ordered,
    are_trimmed,
    batches_of,
    can_hold,
    indexed_by_recovery,
    is_judged,
    log_image,
    offset_entries,
    stored,
    time_entries,
    txn_entries,
)

RECOVER = "Kafka LogSegment.recover, since 1.1.1"
APPEND_AND_RECOVER = "Kafka LogSegment.append and recover, since 1.1.1"


def _valid(segment: LogSegment) -> list[RecordBatch]:
    """Return the batches up to the first that is not valid."""
    return list(takewhile(lambda one: one.ensure_valid() is None, segment.log.batches().batches))


def _reads_records(transition: Transition) -> bool:
    """Return whether a recovery reads of records, which can end it earlier: their producers, or the
    first offset of an old message."""
    has_producers = transition.arguments.get("producer_state_manager") is not None
    return has_producers or transition.before.profile.index_key == "first_offset"


@law("SEG-20", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_keeps_what_is_valid(transition: Transition) -> bool:
    """After recovery the log is its longest beginning of batches that scan and are valid, up to
    and with one whose control record can't be read; the result is the number of bytes removed."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "recover") or not succeeded(transition):
        return True
    ends = [0, *(batch.position + batch.size_bytes for batch in _valid(before))]
    is_end = after.size in ends if _reads_records(transition) else after.size == ends[-1]
    is_kept = log_image(after) == log_image(before)[: after.size]
    return is_end and is_kept and transition.outcome == before.size - after.size


@law("SEG-21", structure=STRUCTURE, scope="pure", source=RECOVER)
def recovery_is_idempotent(first: LogSegment, second: LogSegment, removed: int) -> bool:
    """A second recovery from the same producer state and epochs returns 0 and leaves all files as
    the first did."""
    return removed == 0 and first.directory == second.directory


@law("SEG-22", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_indexes_what_is_due(transition: Transition) -> bool:
    """Recovery enters a batch into the offset index exactly when it begins more bytes than the
    interval behind the last one entered: its last offset (up to 1.1 its first) and position."""
    after = after_of(transition)
    if not is_judged(transition, "recover") or not succeeded(transition):
        return True
    batches = batches_of(after)
    if batches is None:
        return True
    due = [(stored(after, offset), at) for offset, at in indexed_by_recovery(after, batches)[0]]
    return offset_entries(after) == due


@law("SEG-23", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_ends_with_the_maximum(transition: Transition) -> bool:
    """Recovery writes the largest timestamp so far with each offset entry and once more at the
    end, each time if it grew, with the last offset of the batch that has it. Up to 1.1 the batch
    counts too whose first offset can't be read, which ends the recovery."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "recover") or not succeeded(transition):
        return True
    batches = batches_of(after)
    if batches is None:
        return True
    times = indexed_by_recovery(after, batches, _seen_last(before, after))[1]
    return time_entries(after) == [(at, stored(after, offset)) for at, offset in times]


def _seen_last(before: LogSegment, after: LogSegment) -> list[tuple[int, int]]:
    """Return the largest timestamp and last offset of the batch whose first one ended it, if so."""
    if before.profile.index_key != "first_offset" or before.profile.checks_before_changing:
        return []
    left = [one for one in _valid(before) if one.position == after.size]
    return [
        (one.max_timestamp, one.last_offset)
        for one in left
        if isinstance(one.base_offset, Raised)
        and isinstance(one.max_timestamp, int)
        and isinstance(one.last_offset, int)
    ]


@law("SEG-24", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_trims_the_indexes(transition: Transition) -> bool:
    """After recovery the two index files hold their entries and nothing else."""
    if not is_judged(transition, "recover") or not succeeded(transition):
        return True
    return are_trimmed(after_of(transition))


@law("SEG-25", structure=STRUCTURE, scope="pure", source=APPEND_AND_RECOVER)
def recovery_rebuilds_the_live_index(live: LogSegment, recovered: LogSegment) -> bool:
    """If each append into a new segment has carried one batch and none has failed, recovery builds
    the same offset index, and the same time index with at most one more entry."""
    times, rebuilt = time_entries(live), time_entries(recovered)
    is_time_kept = rebuilt[: len(times)] == times and len(rebuilt) - len(times) <= 1
    return offset_entries(live) == offset_entries(recovered) and is_time_kept


@law("SEG-26", structure=STRUCTURE, scope="pure", source="Kafka LogSegment, since 4.1.0")
def recovery_rebuilds_what_batches_left(live: LogSegment, recovered: LogSegment) -> bool:
    """Where append indexes each batch, SEG-25 also holds for calls with several batches."""
    if not live.profile.index_per_batch:
        return True
    return recovery_rebuilds_the_live_index(live, recovered)


@law("SEG-27", structure=STRUCTURE, scope="step", source=RECOVER)
def failed_recovery_cuts_nothing(transition: Transition) -> bool:
    """Recovery raises the segment-overflow error for a valid batch too far from the base, passes
    on what the indexes raise, and then has not cut the log, unless only the last time entry fails,
    which is written after the cut."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "recover"):
        return True
    if not succeeded(transition):
        is_kept = after.log.image == before.log.image and after.size == before.size
        ends = [0, *(batch.position + batch.size_bytes for batch in _valid(before))]
        possible = ends if _reads_records(transition) else ends[-1:]
        return is_kept or log_image(after) in [log_image(before)[:end] for end in possible]
    batches = batches_of(after)
    checks = before.profile.check_relative_offset
    return (
        batches is None or not checks or all(can_hold(before, one.last_offset) for one in batches)
    )


@law("SEG-28", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_assigns_new_epochs(transition: Transition) -> bool:
    """Recovery assigns an epoch at a batch's base offset exactly when the batch has magic 2 and an
    epoch of 0 or more that is newer than the latest, or the first; from 2.1.1 to 2.6, above 0."""
    given = transition.arguments.get("leader_epoch_cache")
    if not is_judged(transition, "recover") or not succeeded(transition) or given is None:
        return True
    after = transition.after
    assert isinstance(after, Recovered)
    assert after.leader_epoch_cache is not None
    smallest = 0 if after.segment.profile.recover_assigns_epoch_zero else 1
    assigned = [tuple(entry) for entry in given.entries]
    for batch in after.segment.log.batches().batches:
        epoch, base_offset = batch.partition_leader_epoch, batch.base_offset
        if batch.is_legacy or isinstance(epoch, Raised) or isinstance(base_offset, Raised):
            continue
        if epoch >= smallest and (not assigned or epoch > assigned[-1][0]):
            assigned.append((epoch, base_offset))
    if not is_rising([start_offset for _, start_offset in assigned]):
        # An epoch that begins before an older one takes its place (EPOCH-4), up to 1.1 none.
        latest = after.leader_epoch_cache.entries[-1:]
        is_latest = [entry.epoch for entry in latest] == [epoch for epoch, _ in assigned[-1:]]
        return is_latest or after.segment.profile.epoch_rules == "1.1"
    return [tuple(entry) for entry in after.leader_epoch_cache.entries] == assigned


@law("SEG-29", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_keeps_the_counters(transition: Transition) -> bool:
    """Recovery leaves the count of bytes since the last entry and the first timestamp as they
    were."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "recover"):
        return True
    same_count = after.bytes_since_last_index_entry == before.bytes_since_last_index_entry
    return bool(same_count and after.rolling_based_timestamp == before.rolling_based_timestamp)


def _aborted(segment: LogSegment) -> list[tuple[int, ...]]:
    """Return the aborted transactions whose markers are in the log, from no producer state."""
    began: dict[int, int] = {}
    profile = segment.profile
    aborted: list[tuple[int, ...]] = []
    for batch in segment.log.batches().batches:
        producer_id, offset = batch.producer_id, batch.base_offset
        if not isinstance(producer_id, int) or not isinstance(offset, int):
            continue
        if producer_id == -1 or batch.is_transactional is not True:
            continue
        if batch.is_control is not True:
            is_counted = profile.batch_begins_by_sequences
            began.setdefault(producer_id, first_by_sequences(batch) if is_counted else offset)
            continue
        records = batch.records_until_error().records
        if not records:
            continue
        if profile.marker_alone_completes:
            began.setdefault(producer_id, offset)
        if producer_id not in began:
            continue
        first, last = began.pop(producer_id), records[0].offset
        if records[0].key is not None and records[0].key[2:4] == b"\0\0":
            others = list(began.values())
            if not profile.stable_offset_by_producer:
                others = [other for other in others if other != first]
            aborted.append((producer_id, first, last, min(others, default=last + 1)))
    return aborted


@law("SEG-30", structure=STRUCTURE, scope="step", source=RECOVER)
def recovery_finds_aborted_transactions(transition: Transition) -> bool:
    """Recovery rebuilds the transaction index to exactly the aborted transactions whose markers
    are in the kept log, given the producer state at the base offset; without one, to nothing, or
    where the profile says so as given an empty one.

    Not judged: a log with an offset that can't be read, or whose batches are not in order.
    """
    after = after_of(transition)
    if not is_judged(transition, "recover") or not succeeded(transition):
        return True
    entries = txn_entries(after) if after.txn_index.is_open else []  # else another's file
    producers = transition.arguments.get("producer_state_manager")
    if producers is None and not after.profile.recovery_has_producers:
        return not entries
    batches = batches_of(after)
    if (producers is not None and producers.producers) or batches is None:
        return True
    return not are_ordered(batches) or entries == _aborted(after)
