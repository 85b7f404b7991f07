# SPDX-License-Identifier: Apache-2.0
"""States of RocketMQ's index file that histories must really reach."""

from typing import Any

from segproof_harness.structures.choices import INT32_MAX
from segproof_harness.structures.steps import Event, States
from segproof_model.rocketmq.format.index_file import IndexEntry, IndexFile
from segproof_model.rocketmq.format.key_hash import hash_code, index_key_hash

INT32_MIN = -(2**31)


def is_put(event: Event) -> bool:
    """Return whether a single put has written an entry."""
    return event.does("put_key") and event.outcome.value is True


def written(event: Event) -> IndexEntry:
    """Return the entry that a put has written."""
    entry: IndexEntry | None = event.after.entry(event.before.index_count)
    assert entry is not None
    return entry


def is_found(event: Event) -> bool:
    """Return whether a query was answered, with whatever."""
    return event.done("select_phy_offset")


def appended(event: Event) -> tuple[int, ...]:
    """Return what a query has added to the list that it was given."""
    given = event.argument("phy_offsets")
    return tuple(event.outcome.value[len(given) :])


def chain_length(state: IndexFile, key: str | None) -> int:
    """Return how many entries a slot leads to, as long as they lead downwards."""
    if key is None or not state.is_mapped or state.hash_slot_num < 1:
        return 0
    current, length, above = state.slot_value(index_key_hash(key)) or 0, 0, state.index_count
    while 0 < current < above:
        entry = state.entry(current)
        if entry is None:
            return length
        length, above, current = length + 1, current, entry.prev_index
    return length


def _has_collision(event: Event) -> bool:
    """Return whether an offset was found that was put under another key of the same hash."""
    key: Any = event.operation.arguments.get("key")
    return (
        is_found(event) and bool(appended(event)) and key is not None and key[-2:] in ("Aa", "BB")
    )


def _misses_by_less_than_a_second(event: Event) -> bool:
    """Return whether a window begins behind the second of an entry that it would find."""
    if not is_found(event) or event.before.hash_slot_num < 1 or not event.before.is_mapped:
        return False
    key = event.argument("key")
    begin = event.argument("begin")
    if key is None:
        return False
    key_hash = index_key_hash(key)
    return any(
        entry.key_hash == key_hash and 0 < begin - event.before.time_read(entry) < 1000
        for entry in event.before.entries_list()
    )


def _is_repaired(event: Event) -> bool:
    """Return whether a put met a slot that no completed put has left."""
    if not is_put(event):
        return False
    value = event.before.slot_value(written(event).key_hash)
    return value is not None and value != 0 and written(event).prev_index == 0


def _is_cut(event: Event) -> bool:
    """Return whether a query ended because its list was full, though the chain goes on."""
    arguments: Any = event.operation.arguments
    return (
        is_found(event)
        and len(event.outcome.value) == arguments["max_num"]
        and 0 < len(appended(event)) < chain_length(event.before, arguments["key"])
    )


SOMETIMES: States = {
    "chain-of-3": lambda event: (
        is_found(event) and chain_length(event.before, event.argument("key")) >= 3
    ),
    "found-2": lambda event: is_found(event) and len(appended(event)) >= 2,
    "collision": _has_collision,
    "repaired-slot": _is_repaired,
    "slot-of-the-count": lambda event: (
        is_put(event)
        and event.before.slot_value(written(event).key_hash) == event.before.index_count
    ),
    "full": lambda event: event.does("put_key") and event.outcome.value is False,
    "least-hash": lambda event: (
        is_put(event) and hash_code(str(event.argument("key"))) == INT32_MIN
    ),
    "negative-hash": lambda event: (
        is_put(event) and INT32_MIN < hash_code(str(event.argument("key"))) < 0
    ),
    "lone-surrogate": lambda event: is_put(event) and "\ud83d" in str(event.argument("key")),
    "null-refused": lambda event: event.outcome.error == "null",
    "clock-back": lambda event: (
        is_put(event) and event.after.end_timestamp < event.before.end_timestamp
    ),
    "difference-above": lambda event: is_put(event) and written(event).time_diff == INT32_MAX,
    "difference-below": lambda event: (
        is_put(event)
        and written(event).time_diff == 0
        and event.before.begin_timestamp - event.after.end_timestamp > 0
    ),
    "begin-not-positive": lambda event: is_put(event) and event.after.begin_timestamp <= 0,
    "continues-a-file": lambda event: (
        is_put(event) and event.before.index_count == 1 and event.before.begin_timestamp > 0
    ),
    "missed-by-less-than-a-second": _misses_by_less_than_a_second,
    "stopped-by-time": lambda event: (
        is_found(event)
        and 0 < len(appended(event)) < chain_length(event.before, event.argument("key"))
        and len(event.outcome.value) < event.argument("max_num")
    ),
    "cut-at-max-num": _is_cut,
    "list-given": lambda event: (
        is_found(event)
        and bool(appended(event))
        and len(event.outcome.value) > len(appended(event))
    ),
    "corrupt-found": lambda event: event.outcome.error == "corrupt-index",
    "size-refused": lambda event: event.after is None and event.outcome.error == "corrupt-index",
    "geometry-refused": lambda event: event.outcome.error == "invalid-argument",
    "name-refused": lambda event: event.outcome.error == "number-format",
    "closed-refused": lambda event: event.outcome.error == "unmapped",
    "destroyed": lambda event: event.does("destroy") and event.outcome.value is True,
    "count-beyond-room": lambda event: (
        event.after is not None and event.after.index_count > event.after.index_num > 1
    ),
    "loaded-count-mended": lambda event: (
        event.does("load", "open", "reopen", "crash_reopen")
        and event.after is not None
        and event.after.is_mapped
        and int.from_bytes(event.after.image[36:40], "big", signed=True) < 0
    ),
    "many-put": lambda event: event.does("put_keys") and bool(event.outcome.value),
}
"""States of an index file, by name."""
