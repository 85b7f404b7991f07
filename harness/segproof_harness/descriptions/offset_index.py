# SPDX-License-Identifier: Apache-2.0
"""The offset index, described for the harness.

Mirrors: segproof_model/kafka/offset_index.py, segproof/kafka/offset_index.py.
Used by: structures.
"""

from collections.abc import Mapping
from typing import Any

from segproof_harness.descriptions.indexes import (
    SOMETIMES,
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
from segproof_harness.generation import INT32_MAX, INT32_MIN, Choose, beside, weighted, within
from segproof_harness.operations import Value
from segproof_harness.structures import (
    Event,
    OperationKind,
    Parameter,
    Situation,
    Structure,
)
from segproof_model.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof_model.outcomes import Raised

SUFFIX, ENTRY_SIZE = ".index", 8


def _new_offset(choose: Choose, situation: Situation) -> int:
    state = situation.state
    return next_offset(choose, situation, state.last_offset, not state.entries)


def _new_position(choose: Choose, situation: Situation) -> int:
    state = situation.state
    kind = weighted(choose, (20, 2, 1))
    last = state.values()[-1:] if state.image else []
    if kind == 0:
        step = choose.integer(0, 5000)
        return within((last[0] if last else 0) + step, INT32_MIN, INT32_MAX)
    if kind == 1:
        return within(beside(choose, last[0] if last else 0), INT32_MIN, INT32_MAX)
    return choose.one_of((INT32_MAX, INT32_MIN, -1, INT32_MAX - 1))


def _some_position(choose: Choose, situation: Situation) -> Value:
    state = situation.state
    values = state.values() if state.image else []
    position = choose.one_of(values) if values and choose.boolean() else choose.integer(0, 30_000)
    return (0, within(beside(choose, position), INT32_MIN, INT32_MAX))


def _is_offset_position(value: Value) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(item) is int for item in value)


def _fetch_size(choose: Choose, situation: Situation) -> int:
    return choose.one_of((0, 1, 100, 4096, 1 << 20, INT32_MAX))


def _some_offsets(choose: Choose, situation: Situation) -> Value:
    count = choose.integer(0, 6)
    drawn = [some_offset(choose, situation) for _ in range(count)]
    return tuple(sorted(drawn) if choose.boolean() else drawn)


def is_row_of_int64(value: Value) -> bool:
    """Return whether a value is a row of 64-bit integers, of bounded length."""
    return (
        isinstance(value, tuple)
        and len(value) <= 100_000
        and all(type(item) is int and -(2**63) <= item < 2**63 for item in value)
    )


def _lookup_many_of_model(state: Any, target_offsets: tuple[int, ...]) -> Any:
    answers = [state.lookup(target) for target in (0, *target_offsets)]
    refused = [answer for answer in answers if isinstance(answer, Raised)]
    if refused:
        return refused[0]
    return (
        tuple(answer.offset for answer in answers[1:]),
        tuple(answer.position for answer in answers[1:]),
    )


def _with_offset_position(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    pair = arguments["fetch_offset"]
    assert isinstance(pair, tuple)
    return {**arguments, "fetch_offset": OffsetPosition(*pair)}


def _write_entry(choose: Choose, number: int) -> bytes:
    key, value = number * 3 + choose.integer(0, 3), number * 100 + choose.integer(0, 50)
    return key.to_bytes(4, "big") + value.to_bytes(4, "big")


def _has_duplicate(event: Event) -> bool:
    if event.operation.name != "open" or event.after is None:
        return False
    keys = event.after.keys()
    return len(set(keys)) < len(keys)


OFFSET_INDEX = Structure(
    structure_id="offset-index",
    model="segproof_model.kafka.offset_index:OffsetIndex",
    impl="segproof.kafka.offset_index:OffsetIndex",
    opening=opening(SUFFIX, ENTRY_SIZE),
    draw_setup=setup_drawer(SUFFIX, ENTRY_SIZE, _write_entry),
    operations=(
        OperationKind(
            "append",
            (
                Parameter("offset", "int64", _new_offset),
                Parameter("position", "int32", _new_position),
            ),
            44,
            ("OFFIDX-8", "OFFIDX-2", "OFFIDX-9"),
            {
                "invalid-argument": "OFFIDX-4",
                "invalid-offset": "OFFIDX-5",
                "index-offset-overflow": "OFFIDX-6",
                "read-only": "OFFIDX-23",
                "unmapped": "ABSIDX-15",
            },
        ),
        OperationKind(
            "lookup",
            (Parameter("target_offset", "int64", some_offset),),
            14,
            ("OFFIDX-11", "OFFIDX-12", "ABSIDX-22", "ABSIDX-26"),
        ),
        OperationKind(
            "lookup_many",
            (Parameter("target_offsets", "other", _some_offsets, is_row_of_int64),),
            4,
            ("OFFIDX-11", "ABSIDX-22"),
            call_model=_lookup_many_of_model,
        ),
        OperationKind(
            "fetch_upper_bound_offset",
            (
                Parameter("fetch_offset", "other", _some_position, _is_offset_position),
                Parameter("fetch_size", "int32", _fetch_size),
            ),
            5,
            ("OFFIDX-15", "OFFIDX-16", "ABSIDX-24"),
            adapt=_with_offset_position,
        ),
        OperationKind(
            "truncate_to",
            (Parameter("offset", "int64", some_offset),),
            6,
            ("OFFIDX-17", "OFFIDX-18", "ABSIDX-20"),
        ),
        OperationKind(
            "list_entries", (), 2, ("OFFIDX-1",), call_model=list_entries_of_model, call_impl=list
        ),
        *shared_operations(SUFFIX, ENTRY_SIZE, "OFFIDX-20"),
    ),
    observed=("entries", "max_entries", "length", "size_in_bytes", "is_full", "last_offset"),
    sometimes={**SOMETIMES, "duplicate-key": _has_duplicate},
    is_usable=is_usable,
    open_model=open_model(lambda: OffsetIndex),
    open_impl=open_impl,
    laws=("ABSIDX-4", "ABSIDX-1", "ABSIDX-2", "ABSIDX-3"),
)
