# SPDX-License-Identifier: Apache-2.0
"""Loading the log of a partition from its directory, after a clean stop or a crash.

Mirrors: impl/segproof/kafka/log_loader.py.
Upstream: Kafka, LogLoader (since 3.0), in older releases Log.loadSegments and recoverLog.
Laws: LOAD-2 and LOAD-4 to LOAD-17; with log_leftovers, LOAD-1 to LOAD-3.
Not covered: files that cannot be read; a directory that is being deleted (`-delete`); of releases
    up to 2.8 in which order swaps are completed.
Used by: partition_log.
"""

from functools import partial
from typing import Any

from segproof_model.directory import Directory
from segproof_model.kafka.log_leftovers import (
    INDEXES,
    LOG,
    SWAP,
    names_of,
    with_completed_swaps,
    without,
    without_temporary_files,
)
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.partition_parts import PartitionParts
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.segment_names import offset_of_name, segment_file_name
from segproof_model.kafka.segment_parts import run
from segproof_model.kafka.segment_recovery import Recovered
from segproof_model.kafka.segment_replacing import split_segment
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.values import replace


def load(log: PartitionParts, recovery_point: int, is_clean: bool) -> Step[Any]:
    """Load a log that has no segments yet, and whose start is the checkpointed one."""
    begun = without_temporary_files(log)
    if isinstance(begun.outcome, Raised):
        return begun
    unflushed_from = None if is_clean else recovery_point
    opening = partial(_with_segments, unflushed_from=unflushed_from)
    operations: list[Any] = [partial(_retried, operation=opening)]
    if log.profile.swap_keeps_indexes:
        operations.insert(0, with_completed_swaps)
    else:
        swaps = [name for name in names_of(begun.after) if name.endswith(LOG + SWAP)]
        operations.append(partial(_with_recovered_swaps, names=swaps))
    if not is_clean:
        operations.append(
            partial(_retried, operation=partial(_recovered, recovery_point=recovery_point))
        )
    step = run(begun.after, *operations)
    if isinstance(step.outcome, Raised):
        return step
    return _with_offsets(step.after, recovery_point, is_clean)


# --- swaps of older releases --------------------------------------------------------------------


def _with_recovered_swaps(log: PartitionParts, names: list[str]) -> Step[PartitionParts]:
    """Let the `.swap` logs take the place of segments as older releases do (LOAD-2).

    `names`: those that there were before segments were opened; one that a split has taken for its
    part is created anew, empty.
    """
    bases = [_offset_of_log(name, log) for name in names]
    odd = next((one for one in bases if isinstance(one, Raised)), None)
    if odd is not None:
        return Step(log, odd)
    return run(
        log,
        *(partial(_with_recovered_swap, base_offset=at) for at in bases if isinstance(at, int)),
    )


def _with_recovered_swap(log: PartitionParts, base_offset: int) -> Step[PartitionParts]:
    """Recover a swap; it takes the place of the segments that reach into its range."""
    name = segment_file_name(base_offset, LOG + SWAP)
    if log.prefix + name not in log.directory:
        log = without(log, [name])  # and its time
        log = log.sees(log.directory.write(log.prefix + name, b""))
    segment = log.new_segment(base_offset, True, SWAP)
    if isinstance(segment, Raised):
        return Step(log, segment)
    step = recover_segment(log.sees(segment.directory), segment, learns_epochs=False)
    if not isinstance(step.outcome, int):
        is_long = isinstance(step.outcome, LogSegment)
        return Step(step.after, Raised(ErrorKind.SEGMENT_OVERFLOW) if is_long else step.outcome)
    swap, old = step.after.log_segments.get(base_offset), log.log_segments.get(base_offset)
    assert swap is not None
    others = step.after.log_segments.remove(base_offset)
    known = replace(step.after, log_segments=others if old is None else others.add(old))
    ended = swap.read_next_offset()
    if not isinstance(ended.outcome, int):
        return Step(known, ended.outcome)
    return _replaced_by_swap(known.sees(ended.after.directory), ended.after, ended.outcome)


def _replaced_by_swap(log: PartitionParts, swap: LogSegment, end: int) -> Step[PartitionParts]:
    """Let a swap that ends at `end`, exclusive, take the place of what reaches into its range."""
    touched = _touched(log, swap.base_offset, end)
    if isinstance(touched, Raised):
        return Step(log, touched)
    after, doomed = log, list[LogSegment]()
    if not log.profile.swap_spares_what_ends_before:
        doomed, touched = list(touched), ()
    for one in touched:
        step = after.on_segment(one.base_offset, lambda it: it.read_next_offset())
        after = step.after
        if not isinstance(step.outcome, int):
            return step
        found = after.log_segments.get(one.base_offset)
        if found is not None and step.outcome > swap.base_offset:
            doomed.append(found)
    kept = after.log_segments
    for gone in doomed:
        kept = kept.remove(gone.base_offset)
    return run(
        replace(after, log_segments=kept.add(swap.sees(after.directory))),
        lambda one: one.delete_later(doomed, [swap.base_offset]),
        lambda one: one.on_segment(swap.base_offset, lambda it: it.change_file_suffixes(SWAP, "")),
    )


def _touched(
    log: PartitionParts, from_offset: int, to_offset: int
) -> tuple[LogSegment, ...] | Raised:
    """Return the segments that a range of offsets touches (LOG-2)."""
    if log.profile.equal_bounds_touch_nothing:
        return log.log_segments.values(from_offset, to_offset)
    floor = log.log_segments.floor_segment(from_offset)
    if floor is None:
        return tuple(one for one in log.log_segments if one.base_offset < to_offset)
    if to_offset < floor.base_offset:
        return Raised(ErrorKind.INVALID_ARGUMENT)
    return tuple(
        one for one in log.log_segments if floor.base_offset <= one.base_offset < to_offset
    )


# --- segments ----------------------------------------------------------------------------------


def _retried(log: PartitionParts, operation: Any) -> Step[Any]:
    """Do something again as long as a segment overflows, which is split before (LOAD-6).

    A segment that overflows once more was left by its split, and upstream has no end; the split of
    segproof leaves none.
    """
    split_bases = set[int]()
    step: Step[Any] = operation(log)
    while isinstance(step.outcome, LogSegment):
        if step.outcome.base_offset in split_bases:
            return Step(step.after, Raised(ErrorKind.ENDLESS))
        split_bases.add(step.outcome.base_offset)
        split = split_segment(step.after, step.outcome)
        if isinstance(split.outcome, Raised):
            return split
        step = operation(split.after)
    return step


def _with_segments(log: PartitionParts, unflushed_from: int | None) -> Step[PartitionParts]:
    """Open every segment, in the order of the names; the outcome is one that overflows, if any.

    `unflushed_from`: the recovery point, if there will be a recovery.
    """
    closed = log.on_segments(log.log_segments, lambda one: one.close())
    if isinstance(closed.outcome, Raised):
        return closed
    step: Step[PartitionParts] = Step(replace(closed.after, log_segments=log.log_segments.clear()))
    by_offset = log.profile.log_names_end_at_first_dot
    unflushed = set[int]()
    if not log.profile.opening_recovers_unflushed and unflushed_from is not None:
        unflushed = _unflushed(log, unflushed_from)
    for name in names_of(log):
        kinds = INDEXES if by_offset else INDEXES[:2]
        kind = next((suffix for suffix in (LOG, *kinds) if name.endswith(suffix)), None)
        if kind is None:
            continue
        base_offset = _offset_of_log(name, log) if by_offset or kind == LOG else 0
        if isinstance(base_offset, Raised):
            return Step(step.after, base_offset)
        its_log = (
            segment_file_name(base_offset, LOG) if by_offset else name.removesuffix(kind) + LOG
        )
        if kind == LOG:
            step = _with_segment(step.after, base_offset, base_offset in unflushed)
        elif log.prefix + its_log not in step.after.directory:
            step = Step(without(step.after, [name]))
        if step.outcome is not None:
            break
    return step


def _unflushed(log: PartitionParts, recovery_point: int) -> set[int]:
    """Return the base offsets of the segments that a recovery will recover (LOAD-7)."""
    found = [_offset_of_log(name, log) for name in names_of(log) if name.endswith(LOG)]
    bases = [base for base in found if isinstance(base, int)]
    floor = max((base for base in bases if base <= recovery_point), default=-INT64_MAX)
    return {base for base in bases if base >= floor and recovery_point < INT64_MAX}


def _offset_of_log(name: str, log: PartitionParts) -> int | Raised:
    """Return the offset in the name of a log, of its `.swap`, or of an index beside it (FILE-2)."""
    stem = name.removesuffix(SWAP).removesuffix(LOG)
    if "." in stem and not log.profile.log_names_end_at_first_dot:
        return Raised(ErrorKind.NUMBER_FORMAT)
    return offset_of_name(name)


def _with_segment(
    log: PartitionParts, base_offset: int, is_recovered_later: bool
) -> Step[PartitionParts]:
    """Open a segment; build its indexes anew where they are missing or corrupt (LOAD-5)."""
    is_new = log.prefix + segment_file_name(base_offset, ".timeindex") not in log.directory
    is_missed = log.prefix + segment_file_name(base_offset, ".index") not in log.directory
    segment = log.new_segment(base_offset, file_already_exists=True)
    if isinstance(segment, Raised):
        return Step(log, segment)
    checked = segment.sanity_check(is_new)
    if is_missed and log.profile.missing_index_is_seen_first:
        checked = Step(segment, Raised(ErrorKind.FILE_NOT_FOUND))
    elif checked.outcome == Raised(log.profile.sanity_kind) and (
        log.profile.corrupt_indexes_are_removed
    ):
        checked = Step(_without_indexes(checked.after), checked.outcome)
    log, outcome = log.sees(checked.after.directory), checked.outcome
    if isinstance(outcome, Raised):
        if outcome.kind not in (ErrorKind.FILE_NOT_FOUND, log.profile.sanity_kind):
            return Step(log, outcome)
        if is_recovered_later:
            return Step(log.with_segment(checked.after))
        step = recover_segment(log, checked.after, log.profile.index_rebuild_learns_epochs)
        is_done = isinstance(step.outcome, int)
        return Step(step.after, None if is_done else step.outcome)
    return Step(log.with_segment(checked.after))


def _without_indexes(segment: LogSegment) -> LogSegment:
    """Remove the index files of a segment, which its recovery makes anew."""
    kept = segment.with_txn_index(segment.txn_index.delete_if_exists()).after
    directory = kept.directory
    for name in kept.names[1:3]:
        directory = directory.remove(name)
    return kept.sees(directory)


def recover_segment(
    log: PartitionParts, segment: LogSegment, learns_epochs: bool = True
) -> Step[PartitionParts]:
    """Recover a segment with what the log below it says about producers; return bytes removed.

    The outcome is the segment itself if it overflows. `learns_epochs`: whether the epochs of its
    batches are entered.
    """
    if not log.profile.log_knows_producers:
        return _recovered_alone(log, segment)
    config = log.config
    opened = ProducerStateManager.open(
        log.dir,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        max_transaction_timeout_ms=config.max_transaction_timeout_ms,
        directory=log.directory,
        profile=log.profile,
    )
    if isinstance(opened.after, Directory):
        return Step(log, opened.outcome)
    kept = log.producer_state_manager
    fresh = replace(log, producer_state_manager=opened.after)
    asked = kept if log.profile.recovery_asks_own_producers else None
    if log.profile.rebuild_snapshots == "ends":
        rebuilt = fresh.rebuild_producer_state(segment.base_offset, known=asked)
    else:
        rebuilt = _replayed(fresh, segment.base_offset, kept)
    after, outcome = rebuilt.after, rebuilt.outcome
    if not isinstance(outcome, Raised):
        step = segment.sees(after.directory).recover(
            after.producer_state_manager, after.leader_epoch_cache if learns_epochs else None
        )
        after, segment, outcome = _with_recovered(after, step), step.after.segment, step.outcome
    if not isinstance(outcome, Raised):
        after = after.on_producers(lambda one: one.take_snapshot()).after
    after = replace(after, producer_state_manager=kept).sees(after.directory)
    if outcome == Raised(ErrorKind.SEGMENT_OVERFLOW):
        outcome = segment.sees(after.directory)
    return Step(after, outcome)


def _replayed(
    log: PartitionParts, base_offset: int, known: ProducerStateManager
) -> Step[PartitionParts]:
    """Build the producer state below a segment that is recovered, as releases up to 1.1 do: of
    every byte of the segments there, appended to what is `known`."""
    step = log.on_producers(
        lambda one: one.truncate_and_reload(log.log_start_offset, base_offset, log.now_ms)
    )
    if isinstance(step.outcome, Raised):
        return step
    map_end = step.after.producer_state_manager.map_end_offset
    segments = _touched(step.after, map_end, base_offset)
    if isinstance(segments, Raised):
        return Step(step.after, segments)
    for one in segments:
        start = max(one.base_offset, map_end)
        read = step.after.on_segment(
            one.base_offset,
            lambda it, start=start: it.read(start, INT32_MAX, it.size),  # type: ignore[misc]
        )
        step = read.after.learn_of(read.outcome, known)
        if isinstance(step.outcome, Raised):
            return step
    step = step.after.on_producers(lambda one: one.update_map_end_offset(base_offset))
    if log.profile.rebuild_snapshots == "segments":
        step = step.after.on_producers(lambda one: one.take_snapshot())
    return step


def _recovered_alone(log: PartitionParts, segment: LogSegment) -> Step[PartitionParts]:
    """Recover a segment of a log that knows no producers; return bytes removed."""
    step = segment.sees(log.directory).recover()
    alone = replace(step.after, producer_state_manager=None, leader_epoch_cache=None)
    return Step(_with_recovered(log, Step(alone, step.outcome)), step.outcome)


def _with_recovered(log: PartitionParts, step: Step[Recovered]) -> PartitionParts:
    """Take over what a recovery worked on; a segment that is new is one of the log's if it could
    be recovered."""
    recovered = step.after
    changed = replace(
        log,
        producer_state_manager=recovered.producer_state_manager or log.producer_state_manager,
        leader_epoch_cache=recovered.leader_epoch_cache or log.leader_epoch_cache,
    )
    is_known = log.log_segments.contains(recovered.segment.base_offset)
    if is_known or not isinstance(step.outcome, Raised):
        return changed.with_segment(recovered.segment)
    return changed.sees(recovered.segment.directory)


def _recovered(log: PartitionParts, recovery_point: int) -> Step[PartitionParts]:
    """Recover the segments from the one with the recovery point on (LOAD-7 to LOAD-9).

    The first that loses bytes is the last one kept; the outcome is one that overflows, if any.
    """
    unflushed = log.log_segments.values(recovery_point, INT64_MAX)
    if isinstance(unflushed, Raised):
        return Step(log, unflushed)
    after = log
    for known in unflushed:
        segment = after.log_segments.get(known.base_offset)
        assert segment is not None
        step = recover_segment(after, segment)
        if step.outcome == Raised(ErrorKind.INVALID_OFFSET):
            step = step.after.on_segment(
                known.base_offset,
                lambda one, base=known.base_offset: one.truncate_to(base),  # type: ignore[misc]
            )
        after = step.after
        if not isinstance(step.outcome, int):
            return step
        if step.outcome > 0:
            later = after.log_segments.higher_segments(known.base_offset)
            return _without_segments(after, later) if later else Step(after)
    return Step(after)


def _without_segments(log: PartitionParts, segments: tuple[LogSegment, ...]) -> Step[Any]:
    """Delete segments and the snapshots at their beginning later."""
    return run(
        log,
        lambda one: one.remove_segments(segments),
        lambda one: one.remove_snapshots(segments),
    )


# --- what the log knows after loading ----------------------------------------------------------


def _with_offsets(log: PartitionParts, recovery_point: int, is_clean: bool) -> Step[Any]:
    """Find the end of the log, the recovery point, the epochs and the producers."""
    start = log.log_start_offset
    found = _end_of(log)
    if isinstance(found.outcome, Raised):
        return found
    end = found.outcome
    step: Step[PartitionParts] = Step(found.after)
    begins_anew = log.profile.log_begins_at_checkpoint
    if isinstance(end, int) and end < start and begins_anew:
        step, end = _emptied(found.after), None
    if step.after.log_segments.is_empty and not isinstance(step.outcome, Raised):
        step = step.after.with_new_segment(start if begins_anew else 0)
    if isinstance(step.outcome, Raised):
        return step
    is_trusted = is_clean and end is not None
    if not isinstance(end, int):
        step = _end_of(step.after)
        end = step.outcome
        if not isinstance(end, int):
            return step
    survives = log.profile.recovery_point_survives_loading
    recovered_to = end if is_trusted or not survives else min(recovery_point, end)
    is_new = found.after.log_segments.is_empty and not begins_anew
    is_bounded = log.profile.recovery_point_is_bounded
    if is_new or not (is_bounded or is_trusted):
        recovered_to = recovery_point
    return _completed(replace(step.after, recovery_point=recovered_to), end, is_clean)


def _end_of(log: PartitionParts) -> Step[PartitionParts]:
    """Return the offset behind the last batch, or None without segments."""
    if log.log_segments.is_empty:
        return Step(log)
    return log.on_active(lambda one: one.read_next_offset())


def _emptied(log: PartitionParts) -> Step[Any]:
    """Remove everything, because the log ends below its start (LOAD-12)."""
    start = log.log_start_offset
    if not log.profile.emptied_log_forgets:
        return log.remove_segments(tuple(log.log_segments))
    return run(
        log,
        lambda one: one.remove_segments(tuple(one.log_segments)),
        lambda one: one.on_epochs(lambda epochs: epochs.clear_and_flush()),
        lambda one: one.on_producers(lambda known: known.truncate_fully_and_start_at(start)),
    )


def _completed(log: PartitionParts, end: int, is_clean: bool) -> Step[Any]:
    """Fit indexes, epochs and producers to the log (LOAD-14, LOAD-15)."""
    checkpointed = log.log_start_offset
    first = log.log_segments.base_offsets()[0]
    start = max(checkpointed, first)
    started = partial(replace, log_start_offset=start, searched_from=start)
    begin = checkpointed if log.profile.epochs_begin_at_checkpoint else max(checkpointed, first)
    step = run(
        log,
        lambda one: one.on_active(
            lambda active: active.resize_indexes(one.config.segment_index_bytes)
        ),
        lambda one: one.on_epochs(lambda epochs: epochs.truncate_from_end(end)),
        lambda one: one.on_epochs(lambda epochs: epochs.truncate_from_start(begin)),
        lambda one: Step(started(one)),
        lambda one: one.on_producers(
            lambda known: known.remove_stray_snapshots(one.log_segments.base_offsets())
        ),
        lambda one: one.rebuild_producer_state(end, is_clean),
    )
    active = step.after.log_segments.active_segment
    log_end = LogOffsetMetadata(end, active.base_offset, active.size)
    return Step(replace(step.after, log_end=log_end), step.outcome)
