# SPDX-License-Identifier: Apache-2.0
"""The offset index, described for the harness.

Mirrors: segproof_model/kafka/format/offset_index.py, segproof/kafka/offset_index.py.
"""

from segproof_harness.structures.choices import INT32_MAX, INT32_MIN, Choose, within
from segproof_harness.structures.kafka.abstract_index import (
    Differences,
    describe,
    next_offset,
    some_offset,
)
from segproof_harness.structures.kinds import INT32, INT64, Record
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Situation
from segproof_harness.structures.structure import Parameter, operation
from segproof_model.kafka.format.offset_index import OffsetIndex


def _new_offset(choose: Choose, situation: Situation) -> int:
    state = situation.state
    return next_offset(choose, situation, state.last_offset, not state.entries)


def _new_position(choose: Choose, situation: Situation) -> int:
    state = situation.state
    kind = choose.weighted((20, 2, 1))
    last = state.values()[-1:] if state.image else []
    if kind == 0:
        step = choose.integer(0, 5000)
        return within((last[0] if last else 0) + step, INT32_MIN, INT32_MAX)
    if kind == 1:
        return within(choose.beside(last[0] if last else 0), INT32_MIN, INT32_MAX)
    return choose.one_of((INT32_MAX, INT32_MIN, -1, INT32_MAX - 1))


def _some_position(choose: Choose, situation: Situation) -> Value:
    state = situation.state
    values = state.values() if state.image else []
    position = choose.one_of(values) if values and choose.boolean() else choose.integer(0, 30_000)
    return (0, within(choose.beside(position), INT32_MIN, INT32_MAX))


def _fetch_size(choose: Choose, situation: Situation) -> int:
    return choose.one_of((0, 1, 100, 4096, 1 << 20, INT32_MAX))


def _write_entry(choose: Choose, number: int) -> bytes:
    key, value = number * 3 + choose.integer(0, 3), number * 100 + choose.integer(0, 50)
    return key.to_bytes(4, "big") + value.to_bytes(4, "big")


OFFSET_INDEX = describe(
    Differences(
        structure_id="offset-index",
        model_class=OffsetIndex,
        suffix=".index",
        entry_size=8,
        write_entry=_write_entry,
        append=operation(
            "append",
            44,
            "OFFIDX-8 OFFIDX-2 OFFIDX-9",
            Parameter("offset", INT64, _new_offset),
            Parameter("position", INT32, _new_position),
            errors={
                "invalid-argument": "OFFIDX-4",
                "invalid-offset": "OFFIDX-5",
                "index-offset-overflow": "OFFIDX-6",
                "read-only": "OFFIDX-23",
                "unmapped": "ABSIDX-15",
            },
        ),
        target="target_offset",
        draw_target=some_offset,
        last="last_offset",
        laws={
            "lookup": "OFFIDX-11 OFFIDX-12",
            "truncate_to": "OFFIDX-17 OFFIDX-18",
            "list_entries": "OFFIDX-1",
            "sanity_check": "OFFIDX-20",
        },
        more_operations=(
            operation(
                "fetch_upper_bound_offset",
                5,
                "OFFIDX-15 OFFIDX-16 ABSIDX-24",
                Parameter("fetch_offset", Record(offset=INT64, position=INT32), _some_position),
                Parameter("fetch_size", INT32, _fetch_size),
            ),
        ),
    )
)
