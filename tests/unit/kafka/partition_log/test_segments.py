# SPDX-License-Identifier: Apache-2.0
"""The segments of a log: which one holds an offset, what a range touches, what closing does."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import IndexStateError, InvalidArgumentError
from segproof.kafka import LogConfig, LogSegment, LogSegments
from segproof_harness.files.memory_files import MemoryFiles

CONFIG = LogConfig(segment_index_bytes=240)
OFFSETS = st.integers(-3, 40)


def segment(base_offset: int, files: MemoryFiles | None = None) -> LogSegment:
    """Return an empty segment in memory."""
    return LogSegment.open("/", base_offset, CONFIG, create=True, files=files or MemoryFiles())


def segments_at(bases: list[int]) -> LogSegments:
    """Return segments with these base offsets."""
    segments, files = LogSegments(), MemoryFiles()
    for base in bases:
        segments.add(segment(base, files))
    return segments


def base_of(found: LogSegment | None) -> int | None:
    """Return the base offset, or None without a segment."""
    return None if found is None else found.base_offset


@given(st.lists(OFFSETS, max_size=6), OFFSETS)
@pytest.mark.checks("LOG-1", "LOG-3")
def test_searches_by_definition(bases: list[int], offset: int) -> None:
    """Floor, lower and higher are the nearest base at or below, below, and above."""
    segments, known = segments_at(bases), sorted(set(bases))
    assert segments.base_offsets() == known
    assert base_of(segments.floor_segment(offset)) == max(
        (base for base in known if base <= offset), default=None
    )
    assert base_of(segments.lower_segment(offset)) == max(
        (base for base in known if base < offset), default=None
    )
    assert base_of(segments.higher_segment(offset)) == min(
        (base for base in known if base > offset), default=None
    )
    above = [base for base in known if base > offset]
    assert [one.base_offset for one in segments.higher_segments(offset)] == above
    assert segments.contains(offset) == (offset in known)
    assert base_of(segments.get(offset)) == (offset if offset in known else None)


@given(st.lists(OFFSETS, max_size=6), OFFSETS, OFFSETS)
@pytest.mark.checks("LOG-2")
def test_ranges_by_definition(bases: list[int], start: int, end: int) -> None:
    """A range runs from the floor of its start, or the first segment, to below its end."""
    segments, known = segments_at(bases), sorted(set(bases))
    if end < start:
        with pytest.raises(InvalidArgumentError):
            segments.values(start, end)
        return
    first = max(0, bisect_right(known, start) - 1)
    expected = [] if start == end else [base for base in known[first:] if base < end]
    assert [one.base_offset for one in segments.values(start, end)] == expected
    assert len(segments.values()) == len(segments) == segments.number_of_segments == len(known)


def test_without_segments() -> None:
    """There is neither a first nor an active one."""
    segments = LogSegments()
    assert segments.is_empty
    assert (segments.first_segment(), segments.last_segment()) == (None, None)
    with pytest.raises(IndexStateError):
        _ = segments.active_segment


def test_all_but_the_active_one() -> None:
    """From the floor of the offset on; above the active segment there are none."""
    segments = segments_at([0, 10, 20])
    for offset, expected in ((0, [0, 10]), (15, [10]), (20, []), (21, [])):
        found = segments.non_active_log_segments_from(offset)
        assert [one.base_offset for one in found] == expected


def test_a_copy_is_changed_alone() -> None:
    """What is added to one, or removed, the other does not see; the segments are the same."""
    segments = segments_at([0, 10])
    other = segments.copy()
    other.remove(0)
    other.add(segment(30))
    assert (segments.base_offsets(), other.base_offsets()) == ([0, 10], [10, 30])
    assert other.get(10) is segments.get(10)


def test_every_segment_is_closed_whatever_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first error comes at the end."""
    segments = segments_at([0, 10, 20])
    closed: list[int] = []

    def close(one: LogSegment) -> None:
        closed.append(one.base_offset)
        if one.base_offset < 20:
            raise OSError(f"segment {one.base_offset}")

    monkeypatch.setattr(LogSegment, "close", close)
    with pytest.raises(OSError, match="segment 0"):
        segments.close()
    assert closed == [0, 10, 20]
