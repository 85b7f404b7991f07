# SPDX-License-Identifier: Apache-2.0
"""The time index, described for the harness.

Mirrors: segproof_model/kafka/format/time_index.py, segproof/kafka/time_index.py.
"""

from segproof_harness.structures.choices import INT64_MAX, INT64_MIN, Choose
from segproof_harness.structures.kafka.abstract_index import (
    Differences,
    base_of,
    clamp64,
    describe,
    next_offset,
)
from segproof_harness.structures.kinds import FLAG, INT64
from segproof_harness.structures.steps import Event, Situation
from segproof_harness.structures.structure import Parameter, operation
from segproof_model.kafka.format.time_index import TimeIndex, TimestampOffset
from segproof_model.language.states import outcome_of

TIMESTAMPS = (0, -1, 1, -2, INT64_MAX, INT64_MIN, 2**31, 2**32)


def _last_entry(situation: Situation) -> TimestampOffset:
    """Return the last entry, or one below all where it can't be read."""
    last = outcome_of(getattr, situation.state, "last_entry")
    return last if isinstance(last, TimestampOffset) else TimestampOffset(-1, base_of(situation))


def _new_timestamp(choose: Choose, situation: Situation) -> int:
    last = _last_entry(situation).timestamp
    kind = choose.weighted((25, 6, 1, 1))
    if kind == 0:
        return clamp64(last + choose.integer(1, 1000))
    if kind == 1:
        return clamp64(choose.beside(last))
    if kind == 2:
        return choose.one_of(TIMESTAMPS)
    return clamp64(choose.one_of((1_600_000_000_000, 1_750_000_000_000)) + choose.integer(0, 9999))


def _new_offset(choose: Choose, situation: Situation) -> int:
    state, last = situation.state, _last_entry(situation)
    if choose.one_in(5):
        return last.offset
    return next_offset(choose, situation, last.offset, not state.entries)


def _some_timestamp(choose: Choose, situation: Situation) -> int:
    state = situation.state
    keys = state.keys() if state.image else []
    if keys and not choose.one_in(6):
        return clamp64(choose.beside(choose.one_of(keys)))
    return choose.one_of(TIMESTAMPS)


def _write_entry(choose: Choose, number: int) -> bytes:
    key, value = 1000 + (number + choose.integer(0, 1)) * 10, number * 3 + choose.integer(0, 3)
    return key.to_bytes(8, "big") + value.to_bytes(4, "big")


def _has_duplicate_offset(event: Event) -> bool:
    if not event.does("open", "maybe_append") or event.after is None:
        return False
    values = event.after.values()
    return len(set(values)) < len(values)


TIME_INDEX = describe(
    Differences(
        structure_id="time-index",
        model_class=TimeIndex,
        suffix=".timeindex",
        entry_size=12,
        write_entry=_write_entry,
        append=operation(
            "maybe_append",
            44,
            "TIMEIDX-7 TIMEIDX-6 TIMEIDX-8",
            Parameter("timestamp", INT64, _new_timestamp),
            Parameter("offset", INT64, _new_offset),
            Parameter("skip_full_check", FLAG, lambda choose, _: choose.one_in(4)),
            errors={
                "invalid-argument": "TIMEIDX-3",
                "invalid-offset": "TIMEIDX-4",
                "illegal-state": "TIMEIDX-5",
                "index-offset-overflow": "TIMEIDX-14",
                "buffer-overflow": "TIMEIDX-15",
                "unmapped": "ABSIDX-15",
            },
        ),
        target="target_timestamp",
        draw_target=_some_timestamp,
        last="last_entry",
        laws={
            "lookup": "TIMEIDX-10",
            "truncate_to": "TIMEIDX-11 TIMEIDX-12",
            "list_entries": "TIMEIDX-1",
            "sanity_check": "TIMEIDX-17",
        },
        sometimes={
            "duplicate-offset": _has_duplicate_offset,
            "timestamp-refused": lambda event: event.outcome.error == "illegal-state",
            "no-room": lambda event: event.outcome.error == "buffer-overflow",
        },
    )
)
