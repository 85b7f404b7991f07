# SPDX-License-Identifier: Apache-2.0
"""The states that histories of a segment must reach."""

from typing import Any

from segproof_harness.structures.kafka.abstract_index import entries_of
from segproof_harness.structures.kafka.batch_drawing import number_of, whole_batches
from segproof_harness.structures.steps import Event


def _has_grown(event: Event) -> bool:
    return event.done("append") and event.after.size > event.before.size


def _index(state: Any) -> Any:
    """Return the offset index, once it is loaded."""
    return None if state is None else state.lazy_offset_index.index


def _entries(state: Any) -> int:
    index = _index(state)
    return 0 if index is None else int(index.entries)


def _reads_at_the_end(event: Event) -> bool:
    if not event.done("read"):
        return False
    batches = whole_batches(bytes(event.before.log.image[: event.before.size]))
    last = number_of(batches[-1], "last_offset") if batches else None
    return bool(last == event.argument("start_offset"))


def _enters_the_middle(event: Event) -> bool:
    """Return whether an append has entered a batch that is not its first one."""
    if not _has_grown(event) or _entries(event.after) == _entries(event.before):
        return False
    return bool(entries_of(_index(event.after))[-1].position > event.before.size)


def _meets_time_out_of_order(event: Event) -> bool:
    if not _has_grown(event) or event.before.max_timestamp_and_offset_so_far is None:
        return False
    _, records, *_ = event.argument("call")
    times = [number_of(batch, "max_timestamp") for batch in whole_batches(records)]
    largest = event.before.max_timestamp_and_offset_so_far.timestamp
    return any(time is not None and time < largest for time in times)


def _cuts_into_a_batch(event: Event) -> bool:
    if not event.done("truncate_to") or event.after.size == event.before.size:
        return False
    offset = event.argument("offset")
    for one in whole_batches(bytes(event.before.log.image[: event.before.size])):
        base, last = number_of(one, "base_offset"), number_of(one, "last_offset")
        if base is not None and last is not None and base < offset <= last:
            return True
    return False


def _is_index_full(event: Event) -> bool:
    index = _index(event.after)
    return index is not None and index.max_entries > 0 and index.is_full


def _is_without_index(event: Event) -> bool:
    is_opening = event.does("reopen", "crash_reopen")
    after = event.after
    return is_opening and after is not None and after.size > 0 and after.names[1] not in after.files


def _closed_refused(event: Event) -> bool:
    is_closed = event.before is not None and not event.before.log.is_open
    return is_closed and event.outcome.error == "unmapped"


def _asks_behind_an_entry(event: Event) -> bool:
    """Return whether a fetch ends one byte behind where an index entry points."""
    if not event.done("fetch_upper_bound_offset") or _index(event.before) is None:
        return False
    _, position = event.argument("start_offset_position")
    before = position + event.argument("fetch_size") - 1
    return before in [entry.position for entry in entries_of(_index(event.before))]


SOMETIMES = {
    "read-of-the-last-offset": _reads_at_the_end,
    "read-beyond-the-last-offset": lambda event: (
        event.done("read") and event.outcome.value is None and event.before.size > 0
    ),
    "first-entry-incomplete": lambda event: (
        event.done("read") and event.outcome.value is not None and event.outcome.value[2]
    ),
    "first-batch-given-whole": lambda event: (
        event.done("read")
        and event.outcome.value is not None
        and event.outcome.value[1] is not None
        and event.outcome.value[1][1] > event.argument("max_size")
    ),
    "index-full": _is_index_full,
    "full-index-refuses": lambda event: event.refused("invalid-argument", "append"),
    "cut-into-a-batch": _cuts_into_a_batch,
    "nothing-cut": lambda event: (
        event.done("truncate_to") and event.after.size == event.before.size > 0
    ),
    "all-cut": lambda event: (
        event.done("truncate_to") and event.after.size == 0 < event.before.size
    ),
    "offset-overflow-refused": lambda event: event.refused("segment-overflow", "append"),
    "time-out-of-order": _meets_time_out_of_order,
    "entry-inside-an-append": _enters_the_middle,
    "many-appended": lambda event: (
        event.done("append_many") and _entries(event.after) > _entries(event.before)
    ),
    "copied-from-a-file": lambda event: (
        event.done("append_from_file") and event.after.size > event.before.size
    ),
    "recovery-cuts": lambda event: event.done("recover") and event.after.size < event.before.size,
    "recovery-finds-aborted": lambda event: (
        event.done("recover") and len(event.after.txn_index.entries_list()) > 0
    ),
    "overflow-told": lambda event: event.done("has_overflow") and event.outcome.value is True,
    "upper-bound-behind-an-entry": _asks_behind_an_entry,
    "recovery-refused": lambda event: event.refused("segment-overflow", "recover"),
    "reopened-without-index": _is_without_index,
    "index-loaded-late": lambda event: (
        event.before is not None
        and _index(event.before) is None
        and _index(event.after) is not None
        and event.before.names[1] in event.before.files
    ),
    "index-outside-of-the-log": lambda event: event.refused("corrupt-index", "translate_offset"),
    "empty-with-full-index": lambda event: _is_index_full(event) and event.after.size == 0,
    "rolls": lambda event: event.done("should_roll") and event.outcome.value is True,
    "does-not-roll": lambda event: event.done("should_roll") and event.outcome.value is False,
    "time-found": lambda event: (
        event.done("find_offset_by_timestamp") and event.outcome.value is not None
    ),
    "aborted-collected": lambda event: (
        event.done("collect_aborted_txns") and len(event.outcome.value[0]) > 0
    ),
    "renamed": lambda event: (
        event.done("change_file_suffixes") and event.after.names != event.before.names
    ),
    "closed-refused": _closed_refused,
    "preallocated": lambda event: (
        event.after is not None and len(event.after.log.image) > event.after.size
    ),
}
