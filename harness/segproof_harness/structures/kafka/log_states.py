# SPDX-License-Identifier: Apache-2.0
"""The states that histories of a partition's log must reach."""

from typing import Any

from segproof_harness.structures.choices import INT32_MAX
from segproof_harness.structures.steps import Event
from segproof_model.kafka.format.segment_names import offset_of_name
from segproof_model.language.states import outcome_of

DELETIONS = ("delete_old_segments", "delete_replicated_segments")
APPENDS = ("append_as_leader", "append_as_follower")
OPENINGS = ("open", "reopen", "crash_reopen")
FIRST_OFFSET, VALID_BYTES = 0, 5
"""Where an append's answer has them."""


def _asks_a_closed_log(event: Event) -> bool:
    is_closed = event.before is not None and event.before.local_log.is_closed
    return is_closed and not event.does(*OPENINGS)


def _has_grown(event: Event) -> bool:
    return event.done(*APPENDS) and event.after.log_end_offset > event.before.log_end_offset


def _has_records(event: Event) -> bool:
    return event.done("read") and event.outcome.value[1] is not None


def _reads_at_a_boundary(event: Event) -> bool:
    if not _has_records(event):
        return False
    start = event.argument("start_offset")
    return start in event.before.log_segments.base_offsets()[1:]


def _passes_a_gap(event: Event) -> bool:
    """Return whether a read that began in one segment was answered by a later one."""
    if not _has_records(event):
        return False
    floor = event.before.log_segments.floor_segment(event.argument("start_offset"))
    return floor is not None and bool(event.outcome.value[0][1] > floor.base_offset)


def _has_rolled(event: Event) -> bool:
    before, after = event.before, event.after
    if not _has_grown(event):
        return False
    return bool(
        after.log_segments.active_segment.base_offset
        > before.log_segments.active_segment.base_offset
    )


def _rolls_for_a_full_index(event: Event) -> bool:
    if not _has_rolled(event):
        return False
    active = event.before.log_segments.active_segment
    lazy = (active.lazy_offset_index, active.lazy_time_index)
    return any(one.index is not None and one.index.is_full for one in lazy)


def _aborts_across_segments(event: Event) -> bool:
    if not _has_grown(event):
        return False
    active = event.after.log_segments.active_segment
    entries = active.txn_index.entries_list()
    return any(entry.first_offset < active.base_offset for entry in entries)


def _cuts_into_a_batch(event: Event) -> bool:
    if not event.done("truncate_to") or event.outcome.value is not True:
        return False
    offset = event.argument("target_offset")
    segment = event.before.log_segments.floor_segment(offset)
    if segment is None:
        return False
    batches: Any = outcome_of(list, segment.log.batches())
    return isinstance(batches, list) and any(
        one.base_offset < offset <= one.last_offset for one in batches
    )


def _wraps_a_sequence(event: Event) -> bool:
    if not _has_grown(event):
        return False
    producers = event.after.producer_state_manager.active_producers.values()
    return any(
        batch.first_seq > batch.last_seq for one in producers for batch in one.batch_metadata
    )


def _sends_again(event: Event) -> bool:
    return (
        event.done("append_as_leader")
        and event.outcome.value[VALID_BYTES] > 0
        and 0 <= event.outcome.value[FIRST_OFFSET] < event.before.log_end_offset
    )


def _splits_while_loading(event: Event) -> bool:
    if not event.done(*OPENINGS) or event.after is None:
        return False
    bases = event.after.log_segments.base_offsets()
    return bool(event.before is None and bases[0] == 0 and bases[-1] > INT32_MAX)


def _loses_while_loading(event: Event) -> bool:
    """Return whether an unclean load cut the log, but not all of it."""
    if not event.does(*OPENINGS) or event.before is None or event.after is None:
        return False
    is_clean = event.argument("last_shutdown_clean")
    start, end = event.after.log_start_offset, event.after.log_end_offset
    return not is_clean and bool(start < end < event.before.log_end_offset)


def _removes_by(event: Event) -> str:
    """Return why retention removes the first segment, or nothing."""
    if not event.done(*DELETIONS) or not event.outcome.value:
        return ""
    log, config = event.before, event.before.config
    segments = list(log.log_segments)
    if len(segments) > 1 and segments[1].base_offset <= log.log_start_offset:
        return "start"
    if 0 <= config.retention_bytes <= log.size - segments[0].size:
        return "size"
    return "time"


def _is_asked_at_the_size(event: Event) -> bool:
    """Return whether the log without its first segment has just what retention leaves."""
    if not event.done(*DELETIONS) or "delete" not in event.before.config.cleanup_policy:
        return False
    sizes = [segment.size for segment in event.before.log_segments]
    return len(sizes) > 1 and sum(sizes[1:]) == event.before.config.retention_bytes


def _is_asked_at_the_age(event: Event) -> bool:
    """Return whether a segment is just as old as retention allows."""
    if not event.done("delete_replicated_segments"):
        return False
    log, config = event.before, event.before.config
    pairs = [segment.max_timestamp_and_offset_so_far for segment in log.log_segments]
    known = [pair.timestamp for pair in pairs if pair is not None and pair.timestamp >= 0]
    age = log.files.now_ms - config.retention_ms
    return "delete" in config.cleanup_policy and config.retention_ms >= 0 and age in known[:1]


def _is_asked_at_the_silence(event: Event) -> bool:
    """Return whether a producer without a transaction is just silent for as long as it may."""
    if not event.done("remove_expired_producers"):
        return False
    log, limit = event.before, event.before.config.producer_id_expiration_ms
    return any(
        one.current_txn_first_offset is None and log.files.now_ms - one.last_timestamp == limit
        for one in log.producer_state_manager.active_producers.values()
    )


def _completes_a_swap(event: Event) -> bool:
    """Return whether a swap file became a segment."""
    if not event.does(*OPENINGS) or event.after is None:
        return False
    damage = event.argument("damage")
    for name, _, _, data in damage:
        if not name.endswith(".log.swap"):
            continue
        segment = event.after.log_segments.get(outcome_of(offset_of_name, name))
        if segment is not None and data and data.startswith(segment.log.image[: segment.size]):
            return True
    return False


def _loses_an_index_without_a_log(event: Event) -> bool:
    """Return whether an opening found an index that no log goes with, and removed it."""
    if not event.does(*OPENINGS) or event.before is None or event.after is None:
        return False
    damage = event.argument("damage")
    return any(
        what == "replaced" and name.endswith("index") and name not in event.after.files
        for name, what, _, _ in damage
    )


def _is_refused_for_a_name(event: Event) -> bool:
    return event.does(*OPENINGS) and event.outcome.error == "number-format"


def _reopens_clean(event: Event) -> bool:
    arguments = event.operation.arguments
    return (
        event.does("reopen")
        and event.after is not None
        and arguments["last_shutdown_clean"] is True
        and not arguments["damage"]
        and event.after.size > 0
    )


def _read_below_the_end(event: Event) -> bool:
    """Return whether a reader of committed records was kept from some."""
    if not _has_records(event) or event.argument("isolation") != "txn_committed":
        return False
    return bool(event.before.last_stable_offset < event.before.high_watermark)


def _finds_a_time(event: Event) -> bool:
    if not event.done("fetch_offset_by_timestamp"):
        return False
    target = event.argument("target_timestamp")
    return bool(target >= 0 and event.outcome.value is not None)


SOMETIMES = {
    "segment-boundary-read": _reads_at_a_boundary,
    "read-passes-a-gap": _passes_a_gap,
    "read-of-too-few-bytes": lambda event: _has_records(event) and event.outcome.value[2],
    "read-committed-with-aborted": lambda event: event.done("read") and event.outcome.value[3],
    "read-committed-bounded": _read_below_the_end,
    "out-of-range": lambda event: event.outcome.error == "out-of-range",
    "aborted-transaction-across-segments": _aborts_across_segments,
    "truncation-into-a-batch": _cuts_into_a_batch,
    "index-full-roll": _rolls_for_a_full_index,
    "rolled": _has_rolled,
    "epoch-fence": lambda event: event.outcome.error == "invalid-producer-epoch",
    "sequence-gap": lambda event: event.outcome.error == "out-of-order-sequence",
    "sequence-wrap": _wraps_a_sequence,
    "duplicate-batch": _sends_again,
    "offset-order-refused": lambda event: event.outcome.error == "offset-order",
    "too-large-refused": lambda event: event.outcome.error == "record-batch-too-large",
    "overflow-split": lambda event: event.done("split_overflowed_segment"),
    "overflow-split-at-load": _splits_while_loading,
    "unclean-load-that-cuts": _loses_while_loading,
    "retention-by-time": lambda event: _removes_by(event) == "time",
    "retention-by-size": lambda event: _removes_by(event) == "size",
    "retention-at-the-size": _is_asked_at_the_size,
    "retention-at-the-age": _is_asked_at_the_age,
    "producer-at-its-expiration": _is_asked_at_the_silence,
    "retention-by-log-start": lambda event: _removes_by(event) == "start",
    "time-found": _finds_a_time,
    "clean-reopen": _reopens_clean,
    "swap-completed-at-load": _completes_a_swap,
    "index-without-a-log-removed-at-load": _loses_an_index_without_a_log,
    "odd-name-refused": _is_refused_for_a_name,
    "asked-when-closed": _asks_a_closed_log,
}
