# SPDX-License-Identifier: Apache-2.0
"""The laws of the set of segments of a log; a segment counts as its base offset."""

from segproof_model.kafka.broker.log_loader_releases import EqualBoundsTouchFloor
from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.register import Transition, law

CLASS = "Kafka LogSegments, since 3.9.0; Log before"


@law("LOG-1", LogSegments, CLASS, on="floor_segment lower_segment higher_segment")
def searches_are_strict_but_for_floor(step: Transition) -> bool:
    """floor_segment(o) has the greatest base <= o; lower and higher are strict."""
    bases, offset = [one.base_offset for one in step.before], step.arguments["offset"]
    expected = {
        "floor_segment": [base for base in bases if base <= offset][-1:],
        "lower_segment": [base for base in bases if base < offset][-1:],
        "higher_segment": [base for base in bases if base > offset][:1],
    }
    found = [] if step.answer is None else [step.answer.base_offset]
    return bool(found == expected[step.operation])


@law("LOG-2", LogSegments, CLASS, on="values", unless=EqualBoundsTouchFloor)
def values_begin_at_the_floor(step: Transition) -> bool:
    """values(from, to) is empty for from = to, raises invalid-argument for to < from, and otherwise
    runs from floor(from), or the first segment, to the last base < to.

    Up to 2.4 an empty range touches the floor, and only an end below the floor is refused.
    """
    start, end = step.arguments["from_offset"], step.arguments["to_offset"]
    if end < start:
        return step.raised(ErrorKind.INVALID_ARGUMENT)
    bases = [one.base_offset for one in step.before]
    first = max((base for base in bases if base <= start), default=start)
    expected = [base for base in bases if first <= base < end and start < end]
    return step.succeeded and [one.base_offset for one in step.answer] == expected


@law("LOG-3", LogSegments, CLASS, on="add")
def adding_replaces_an_equal_base(step: Transition) -> bool:
    """Adding a segment with an existing base replaces it."""
    added = step.arguments["segment"]
    others = [one for one in step.before if one.base_offset != added.base_offset]
    expected = sorted([*others, added], key=lambda one: int(one.base_offset))
    return list(step.after) == expected
