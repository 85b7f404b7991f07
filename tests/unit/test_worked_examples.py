# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the two index files, each on the model and on the implementation."""

from typing import Any

import pytest

from segproof.kafka import OffsetIndex, TimeIndex
from segproof_harness.files.memory_files import MemoryFiles
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.time_index import TimeIndex as ModelTimeIndex
from segproof_model.language.files import Files
from segproof_model.releases import SEGPROOF

KEYS = (1, 4, 6, 8)
LIMITS = [(67, 64, 60), (10485760, 10485760, 10485756), (8, 8, None), (12, 8, 12)]


def model(kind: str, base_offset: int, limit: int) -> Any:
    """Open a new index of the model: "offset" or "time"."""
    structure: Any = ModelOffsetIndex if kind == "offset" else ModelTimeIndex
    return SEGPROOF.kind(structure)(Files(), "x", base_offset, limit)


def impl(kind: str, base_offset: int, limit: int) -> Any:
    """Open a new index of the implementation, on files in memory."""
    opener: Any = OffsetIndex if kind == "offset" else TimeIndex
    return opener("/x", base_offset, limit, create=True, files=MemoryFiles())


def entries(index: Any) -> list[Any]:
    """Return every entry."""
    return [index.entry(number) for number in range(index.entries)]


BOTH = pytest.mark.parametrize("side", [model, impl])


def four_offsets(side: Any, base: int) -> Any:
    """Return an offset index with the offsets base + [1 4 6 8] at positions [10 40 60 80]."""
    index = side("offset", base, 80)
    for key in KEYS:
        index.append(base + key, 10 * key)
    return index


def four_times(side: Any, base: int) -> Any:
    """Return a time index with the timestamps [1 4 6 8] for the offsets base + [1 4 6 8]."""
    index = side("time", base, 120)
    for key in KEYS:
        index.maybe_append(key, base + key)
    return index


@BOTH
@pytest.mark.parametrize("base", [0, 100])
@pytest.mark.parametrize(
    ("target", "lower", "upper"),
    [(0, None, 1), (1, 1, 1), (3, 1, 4), (4, 4, 4), (5, 4, 6), (9, 8, None)],
)
def test_four_entries_searched(
    side: Any, base: int, target: int, lower: int | None, upper: int | None
) -> None:
    """[1 4 6 8]: downward the greatest key not above the target, upward the least not below."""
    index = four_offsets(side, base)
    below = (base, 0) if lower is None else (base + lower, 10 * lower)
    assert below == index.lookup(base + target)
    fetch = OffsetPosition(base, 10)
    above = index.fetch_upper_bound_offset(fetch, 10 * target - 10)
    assert (None if upper is None else (base + upper, 10 * upper)) == above
    earliest = (-1, base) if lower is None else (lower, base + lower)
    assert earliest == four_times(side, base).lookup(target)


@BOTH
@pytest.mark.parametrize("base", [0, 100])
@pytest.mark.parametrize(
    ("cut", "kept"), [(4, (1,)), (5, (1, 4)), (1, ()), (0, ()), (9, (1, 4, 6, 8))]
)
def test_four_entries_cut(side: Any, base: int, cut: int, kept: tuple[int, ...]) -> None:
    """Cut at an offset, the entries below it stay: of [1 4 6 8] cut at 4 one, at 5 two."""
    by_offset, by_time = four_offsets(side, base), four_times(side, base)
    by_offset.truncate_to(base + cut)
    by_time.truncate_to(base + cut)
    assert [(base + key, 10 * key) for key in kept] == entries(by_offset)
    assert [(key, base + key) for key in kept] == entries(by_time)


@BOTH
@pytest.mark.parametrize(("limit", "of_offsets", "of_times"), LIMITS)
def test_limit_is_rounded_to_whole_entries(
    side: Any, limit: int, of_offsets: int, of_times: int | None
) -> None:
    """A new file has the greatest multiple of the entry size in its limit: 67 gives 64 and 60."""
    index = side("offset", 0, limit)
    assert (of_offsets, of_offsets // 8) == (index.length, index.max_entries)
    if of_times is not None:
        index = side("time", 0, limit)
        assert (of_times, of_times // 12) == (index.length, index.max_entries)
