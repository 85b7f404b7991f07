# SPDX-License-Identifier: Apache-2.0
"""The time index, described for the harness.

Mirrors: segproof_model/kafka/time_index.py, segproof/kafka/time_index.py.
Used by: structures.
"""

from typing import Any

from segproof_harness.descriptions.indexes import (
    SOMETIMES,
    clamp64,
    is_usable,
    list_entries_of_model,
    next_offset,
    open_impl,
    open_model,
    opening,
    setup_drawer,
    shared_operations,
    some_offset,
)
from segproof_harness.descriptions.offset_index import is_row_of_int64
from segproof_harness.generation import INT64_MAX, INT64_MIN, Choose, beside, one_in, weighted
from segproof_harness.operations import Value
from segproof_harness.structures import (
    Event,
    OperationKind,
    Parameter,
    Situation,
    Structure,
)
from segproof_model.kafka.time_index import TimeIndex
from segproof_model.outcomes import Raised

SUFFIX, ENTRY_SIZE = ".timeindex", 12
TIMESTAMPS = (0, -1, 1, -2, INT64_MAX, INT64_MIN, 2**31, 2**32)


def _new_timestamp(choose: Choose, situation: Situation) -> int:
    last = situation.state.last_entry.timestamp
    kind = weighted(choose, (25, 6, 1, 1))
    if kind == 0:
        return clamp64(last + choose.integer(1, 1000))
    if kind == 1:
        return clamp64(beside(choose, last))
    if kind == 2:
        return choose.one_of(TIMESTAMPS)
    return clamp64(choose.one_of((1_600_000_000_000, 1_750_000_000_000)) + choose.integer(0, 9999))


def _new_offset(choose: Choose, situation: Situation) -> int:
    state = situation.state
    if one_in(choose, 5):
        return int(state.last_entry.offset)
    return next_offset(choose, situation, state.last_entry.offset, not state.entries)


def _some_timestamp(choose: Choose, situation: Situation) -> int:
    state = situation.state
    keys = state.keys() if state.image else []
    if keys and not one_in(choose, 6):
        return clamp64(beside(choose, choose.one_of(keys)))
    return choose.one_of(TIMESTAMPS)


def _some_timestamps(choose: Choose, situation: Situation) -> Value:
    drawn = [_some_timestamp(choose, situation) for _ in range(choose.integer(0, 6))]
    return tuple(sorted(drawn) if choose.boolean() else drawn)


def _lookup_many_of_model(state: Any, target_timestamps: tuple[int, ...]) -> Any:
    answers = [state.lookup(target) for target in (0, *target_timestamps)]
    refused = [answer for answer in answers if isinstance(answer, Raised)]
    if refused:
        return refused[0]
    return (
        tuple(answer.timestamp for answer in answers[1:]),
        tuple(answer.offset for answer in answers[1:]),
    )


def _write_entry(choose: Choose, number: int) -> bytes:
    key, value = 1000 + (number + choose.integer(0, 1)) * 10, number * 3 + choose.integer(0, 3)
    return key.to_bytes(8, "big") + value.to_bytes(4, "big")


def _has_duplicate_offset(event: Event) -> bool:
    if event.operation.name not in ("open", "maybe_append") or event.after is None:
        return False
    values = event.after.values()
    return len(set(values)) < len(values)


def _has_duplicate_key(event: Event) -> bool:
    if event.operation.name != "open" or event.after is None:
        return False
    keys = event.after.keys()
    return len(set(keys)) < len(keys)


TIME_INDEX = Structure(
    structure_id="time-index",
    model="segproof_model.kafka.time_index:TimeIndex",
    impl="segproof.kafka.time_index:TimeIndex",
    opening=opening(SUFFIX, ENTRY_SIZE),
    draw_setup=setup_drawer(SUFFIX, ENTRY_SIZE, _write_entry),
    operations=(
        OperationKind(
            "maybe_append",
            (
                Parameter("timestamp", "int64", _new_timestamp),
                Parameter("offset", "int64", _new_offset),
                Parameter("skip_full_check", "flag", lambda choose, _: one_in(choose, 4)),
            ),
            44,
            ("TIMEIDX-7", "TIMEIDX-6", "TIMEIDX-8"),
            {
                "invalid-argument": "TIMEIDX-3",
                "invalid-offset": "TIMEIDX-4",
                "illegal-state": "TIMEIDX-5",
                "index-offset-overflow": "TIMEIDX-14",
                "buffer-overflow": "TIMEIDX-15",
                "unmapped": "ABSIDX-15",
            },
        ),
        OperationKind(
            "lookup",
            (Parameter("target_timestamp", "int64", _some_timestamp),),
            14,
            ("TIMEIDX-10", "ABSIDX-22", "ABSIDX-26"),
        ),
        OperationKind(
            "lookup_many",
            (Parameter("target_timestamps", "other", _some_timestamps, is_row_of_int64),),
            4,
            ("TIMEIDX-10", "ABSIDX-22"),
            call_model=_lookup_many_of_model,
        ),
        OperationKind(
            "truncate_to",
            (Parameter("offset", "int64", some_offset),),
            6,
            ("TIMEIDX-11", "TIMEIDX-12", "ABSIDX-20"),
        ),
        OperationKind(
            "list_entries", (), 2, ("TIMEIDX-1",), call_model=list_entries_of_model, call_impl=list
        ),
        *shared_operations(SUFFIX, ENTRY_SIZE, "TIMEIDX-17"),
    ),
    observed=("entries", "max_entries", "length", "size_in_bytes", "is_full", "last_entry"),
    sometimes={
        **SOMETIMES,
        "duplicate-key": _has_duplicate_key,
        "duplicate-offset": _has_duplicate_offset,
        "timestamp-refused": lambda event: event.outcome.error == "illegal-state",
        "no-room": lambda event: event.outcome.error == "buffer-overflow",
    },
    is_usable=is_usable,
    open_model=open_model(lambda: TimeIndex),
    open_impl=open_impl,
    laws=("ABSIDX-4", "ABSIDX-1", "ABSIDX-2", "ABSIDX-3"),
)
