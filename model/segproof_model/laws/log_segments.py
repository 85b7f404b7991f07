# SPDX-License-Identifier: Apache-2.0
"""The laws of the set of segments of a log.

They judge transitions whose states are such sets; a segment counts as its base offset.

Used by: the harness, the generated pages.
"""

from collections.abc import Iterable
from typing import Any

from segproof_model.kafka.log_segments import LogSegments
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.log_judging import STRUCTURE
from segproof_model.laws.registry import Transition, law

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
CLASS = "Kafka LogSegments, since 3.9.0; Log before"


def _base_of(segment: Any) -> int | None:
    return None if segment is None else segment.base_offset


def _bases_of(segments: Iterable[Any]) -> list[int]:
    return [segment.base_offset for segment in segments]


@law("LOG-1", structure=STRUCTURE, scope="step", source=CLASS)
def searches_are_strict_but_for_floor(transition: Transition) -> bool:
    """floor_segment(o) has the greatest base <= o; lower and higher are strict."""
    if not isinstance(transition.before, LogSegments):
        return True
    bases = _bases_of(transition.before)
    offset = transition.arguments.get("offset", 0)
    expected = {
        "floor_segment": max((base for base in bases if base <= offset), default=None),
        "lower_segment": max((base for base in bases if base < offset), default=None),
        "higher_segment": min((base for base in bases if base > offset), default=None),
    }
    if transition.operation not in expected:
        return True
    return _base_of(transition.outcome) == expected[transition.operation]


@law("LOG-2", structure=STRUCTURE, scope="step", source=CLASS)
def values_begin_at_the_floor(transition: Transition) -> bool:
    """values(from, to) is empty for from = to, raises invalid-argument for to < from, and otherwise
    runs from floor(from), or the first segment, to the last base < to."""
    if not isinstance(transition.before, LogSegments) or transition.operation != "values":
        return True
    start, end = transition.arguments["from_offset"], transition.arguments["to_offset"]
    if end < start:
        return transition.outcome == INVALID_ARGUMENT
    bases = _bases_of(transition.before)
    first = max((base for base in bases if base <= start), default=start)
    expected = [base for base in bases if first <= base < end and start < end]
    outcome = transition.outcome
    return isinstance(outcome, tuple | list) and _bases_of(outcome) == expected


@law("LOG-3", structure=STRUCTURE, scope="step", source=CLASS)
def adding_replaces_an_equal_base(transition: Transition) -> bool:
    """Adding a segment with an existing base replaces it."""
    before, after = transition.before, transition.after
    if not isinstance(before, LogSegments) or transition.operation != "add":
        return True
    added = transition.arguments["segment"]
    bases = sorted({*_bases_of(before), added.base_offset})
    others = [one for one in before if one.base_offset != added.base_offset]
    kept = [one for one in after if one.base_offset != added.base_offset]
    return _bases_of(after) == bases and kept == others and added in list(after)
