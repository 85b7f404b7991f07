# SPDX-License-Identifier: Apache-2.0
"""An index file at the borders of its answers and of its bulk twins, beside a definition.

A lookup's `begin` and `end` stand before, at and after each stored second; bulk puts and bulk
lookups stand beside single ones, with values at the bounds of 64 bits; a refusal changes nothing.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest

from segproof.errors import SegproofError
from segproof.kernels import rocketmq_index as kernels
from segproof.rocketmq.index_file import IndexFile
from segproof_harness.files.memory_files import MemoryFiles

NAME = "20261121000000000"
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
BEGIN_MS = 1_700_000_000_500
TIMES = (BEGIN_MS, BEGIN_MS + 1000, BEGIN_MS + 2999, BEGIN_MS + 1500, BEGIN_MS + 7000)
"""One goes back: the walk of a chain ends at the first entry that is too old."""


def opened(entries: int = 20) -> tuple[MemoryFiles, IndexFile]:
    """Return an empty index file in memory; one slot holds every key."""
    files = MemoryFiles()
    return files, IndexFile.open(f"/{NAME}", 1, entries, create=True, files=files)


def filled() -> IndexFile:
    """Return an index file with entries of two keys, by turns."""
    _, index = opened()
    for number, time_ms in enumerate(TIMES):
        assert index.put_key("ab"[number % 2], 100 * number, time_ms)
        assert index.put_key("ab"[number % 2], 100 * number + 1, time_ms)
    return index


def defined(key: str, most: int, begin: int, end: int) -> list[int]:
    """Return what a lookup finds: newest first, until an entry is older than `begin`."""
    found: list[int] = []
    for number, time_ms in reversed(list(enumerate(TIMES))):
        second = BEGIN_MS + (time_ms - BEGIN_MS) // 1000 * 1000
        for offset in (100 * number + 1, 100 * number):
            if len(found) >= most:
                return found
            if "ab"[number % 2] == key and begin <= second <= end:
                found.append(offset)
            if second < begin:
                return found
    return found


SECONDS = sorted({BEGIN_MS + (one - BEGIN_MS) // 1000 * 1000 for one in TIMES})
BORDERS = [
    *(second + step for second in SECONDS for step in (-1, 0, 1)), INT64_MIN, 0, INT64_MAX,
]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["each alone", "together"])
def _together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bulk operations take the way of each alone, or the one for compiled kernels."""
    for kernel in (kernels.walk_chains, kernels.put_entries):
        monkeypatch.setattr(kernel, "is_compiled", request.param)


@pytest.mark.checks("RMQIDX-31", "RMQIDX-32", "RMQIDX-33")
@pytest.mark.usefixtures("_together")
def test_begin_and_end_at_stored_times() -> None:
    """Both are inclusive; a single lookup and a bulk one say the same."""
    index = filled()
    for begin, end, most in product(BORDERS, BORDERS, (0, 1, 3, 64)):
        alone = {key: index.select_phy_offset([], key, most, begin, end) for key in "ab"}
        assert alone == {key: defined(key, most, begin, end) for key in "ab"}, (begin, end, most)
        starts, offsets = index.select_phy_offset_many(["a", "b", "a"], most, begin, end)
        each = [offsets[starts[n] : starts[n + 1]].tolist() for n in range(3)]
        assert [alone["a"], alone["b"], alone["a"]] == each


def answer(call: Callable[[], object]) -> Any:
    """Return what a call gives, or the kind of its error."""
    try:
        return call()
    except SegproofError as error:
        return ("error", error.kind)


VALUES = (INT64_MIN - 1, INT64_MIN, -1, 0, 1, BEGIN_MS, INT64_MAX, INT64_MAX + 1)


@pytest.mark.checks("RMQIDX-17")
@pytest.mark.usefixtures("_together")
@pytest.mark.parametrize("entries", [2, 3, 4])
def test_bulk_puts_at_bounds(entries: int) -> None:
    """Bytes are those of single puts; what is refused, or has no room, changes nothing."""
    for offset, time_ms in product(VALUES, VALUES):
        for rows in ([(offset, time_ms)], [(1, BEGIN_MS), (offset, time_ms)]):
            (files, single), (other, bulk) = opened(entries), opened(entries)
            before = other.images("/")
            done: list[Any] = []
            for row in rows:
                kept = files.images("/")
                done.append(answer(partial(single.put_key, "k", *row)))
                if done[-1] is not True:
                    assert kept == files.images("/")
            columns = [list(column) for column in zip(*rows, strict=True)]
            found = answer(partial(bulk.put_keys, ["k"] * len(columns[0]), *columns))
            if min(offset, time_ms) < INT64_MIN or max(offset, time_ms) > INT64_MAX:
                # Rows are 64 bits wide: such a value is refused, also where there is no room.
                assert ("error", "invalid-argument") == found
                assert before == other.images("/")
            else:
                assert done.count(True) == found
                assert files.images("/") == other.images("/")


def test_other_refusals_change_nothing() -> None:
    """No key, a key that is no text, rows of other lengths, times outside 64 bits."""
    files, index = opened()
    index.put_key("k", 1, BEGIN_MS)
    before = files.images("/")
    calls: list[Callable[[], object]] = [
        lambda: index.put_key(None, 1, 1),  # type: ignore[arg-type]
        lambda: index.put_key(b"k", 1, 1),  # type: ignore[arg-type]
        lambda: index.put_keys(["k", None], [1, 2], [1, 2]),
        lambda: index.put_keys(["k"], [1, 2], [1, 2]),
        lambda: index.put_keys([b"\xff"], [1], [1]),
        lambda: index.select_phy_offset([], "k", 1, INT64_MIN - 1, 0),
        lambda: index.select_phy_offset_many(["k"], 1, 0, INT64_MAX + 1),
    ]
    for call in calls:
        told = answer(call)
        assert isinstance(told, tuple)
        assert "error" == told[0]
        assert before == files.images("/")
        assert 2 == index.index_count
