# SPDX-License-Identifier: Apache-2.0
"""The segments of a log: worked examples of ranges and of a base offset that comes twice."""

import pytest

from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of

CONFIG = LogConfig()


def segments_at(*bases: int) -> LogSegments:
    """Return segments with these base offsets."""
    segments = LogSegments(Files())
    for base in bases:
        segments.add(LogSegment(segments.files, "", base, CONFIG))
    return segments


@pytest.mark.checks("LOG-2")
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(5, 20, [0, 10]), (10, 21, [10, 20]), (10, 10, []), (30, 99, [20])],
)
def test_values(start: int, end: int, expected: list[int]) -> None:
    """A range begins with the segment that may hold its start, and leaves out its end."""
    found = segments_at(0, 10, 20).values(start, end)
    assert [segment.base_offset for segment in found] == expected


@pytest.mark.checks("LOG-2")
def test_values_that_end_before_their_start() -> None:
    """Such a range is refused."""
    found = outcome_of(segments_at(0, 10).values, 5, 4)
    assert found == Raised(ErrorKind.INVALID_ARGUMENT)


@pytest.mark.checks("LOG-3")
def test_adding_a_known_base_offset() -> None:
    """The segment that was added last stays."""
    segments = segments_at(0, 10, 20)
    again = LogSegment(segments.files, "", 10, LogConfig(segment_bytes=100))
    segments.add(again)
    assert segments.base_offsets() == [0, 10, 20]
    assert segments.get(10) is again
