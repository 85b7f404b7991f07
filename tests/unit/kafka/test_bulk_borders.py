# SPDX-License-Identifier: Apache-2.0
"""Each bulk twin beside its single operation: values before, at and after each bound, and errors.

Histories draw such values rarely. Here each bound stands in the first place of a call and in a
later one. What a bulk call refuses leaves the state that was there before.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from segproof.errors import SegproofError
from segproof.kafka import LogSegment, OffsetIndex, TimeIndex
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_harness.files.memory_files import MemoryFiles
from segproof_tests.memory_logs import CONFIG, START_MS, batch

BASE = 1000
INT32, INT64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)


def around(*bounds: int) -> list[int]:
    """Return the values before, at and after some bounds that 64 bits hold."""
    near = {bound + step for bound in bounds for step in (-1, 0, 1)}
    return sorted(value for value in near if INT64[0] <= value <= INT64[1])


OFFSETS = around(BASE, BASE + 2**31 - 1, *INT64)
POSITIONS = around(0, *INT32, *INT64)
TIMESTAMPS = around(0, 50, *INT64)
GOOD = (BASE + 3, 7)


def answer(call: Callable[[], object]) -> Any:
    """Return what a call gives, or the kind of its error."""
    try:
        return call()
    except SegproofError as error:
        return error.kind
    except (OverflowError, TypeError, ValueError) as error:
        return type(error).__name__


class Index:
    """An index in memory with one entry."""

    def __init__(self, kind: type[Any], slots: int = 20) -> None:
        self.files = MemoryFiles()
        self.suffix, width = (".index", 8) if kind is OffsetIndex else (".timeindex", 12)
        self.index: Any = kind(
            f"/{BASE:020d}{self.suffix}", BASE, slots * width, create=True, files=self.files
        )
        self.append = self.index.append if kind is OffsetIndex else self.index.maybe_append
        self.append_many = (
            self.index.append_many if kind is OffsetIndex else self.index.maybe_append_many
        )

    def state(self) -> tuple[Any, ...]:
        """Return the bytes, the number of entries and the last one."""
        last = getattr(self.index, "last_offset", None), getattr(self.index, "last_entry", None)
        return self.files.images("/"), self.index.entries, *last


def one_by_one(twin: Index, pairs: Iterable[tuple[int, int]]) -> Any:
    """Append each pair; return the kind of the first error."""
    for pair in pairs:
        before = twin.state()
        if said := answer(partial(twin.append, *pair)):
            assert before == twin.state(), "a refused append has changed something"
            return said
    return None


@pytest.mark.parametrize("slots", [1, 2, 3, 20])
@pytest.mark.parametrize(
    ("kind", "first", "pairs"),
    [
        (OffsetIndex, (BASE, 0), [*product(OFFSETS, POSITIONS)]),
        (TimeIndex, (50, BASE + 1), [*product(TIMESTAMPS, OFFSETS)]),
    ],
    ids=["offset index", "time index"],
)
@pytest.mark.checks("OFFIDX-5", "TIMEIDX-5", "OFFIDX-4")
def test_bulk_appends_of_an_index(
    kind: type[Any], first: tuple[int, int], pairs: list[tuple[int, int]], slots: int
) -> None:
    """Stored is what single appends store; an error is that of the first one refused."""
    good = (first[0] + 1, first[1] + 1)
    for pair in pairs:
        for rows in ([pair], [good, pair], [pair, good]):
            single, bulk = Index(kind, slots), Index(kind, slots)
            for one in (single, bulk):
                one_by_one(one, [first])  # a time index with one slot is full already
            before = bulk.state()
            expected = one_by_one(single, rows)
            columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
            found = answer(partial(bulk.append_many, *columns))
            assert expected == found, rows
            assert bulk.state() == (before if expected else single.state()), rows


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_what_is_no_row_of_64_bits_changes_nothing(kind: type[Any]) -> None:
    """More than 64 bits, fractions, texts, rows of other lengths, a closed index."""
    twin = Index(kind)
    twin.append(BASE, BASE)
    before = twin.state()
    for columns in (
        ([BASE + 1], [2**63]),
        ([2**63], [BASE + 1]),
        ([-(2**63) - 1], [BASE]),
        ([BASE + 1.5], [BASE + 1]),
        (["x"], [BASE]),
        ([BASE + 1, BASE + 2], [BASE + 1]),
    ):
        assert answer(partial(twin.append_many, *columns)) is not None
        assert before == twin.state()
    for row in ([2**63], [-(2**63) - 1], [0.5], ["x"]):
        assert answer(partial(twin.index.lookup_many, row)) == "invalid-argument"
    twin.index.close()
    closed = answer(lambda: twin.append(BASE + 9, BASE + 9))
    assert closed == answer(lambda: twin.append_many([BASE + 9], [BASE + 9]))
    assert closed is not None


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_bulk_lookups_of_an_index(kind: type[Any], count: int) -> None:
    """Before, at and after each key, and at the ends of 64 bits."""
    twin = Index(kind)
    for number in range(count):
        twin.append(BASE + 5 + 10 * number, BASE + number)
    keys = [BASE, *(BASE + 5 + 10 * number for number in range(count)), 2**31 - 1 + BASE, *INT64]
    targets = around(*keys, 0)
    many = [column.tolist() for column in twin.index.lookup_many(np.array(targets, np.int64))]
    assert [tuple(twin.index.lookup(target)) for target in targets] == [*zip(*many, strict=True)]


def segment() -> tuple[MemoryFiles, LogSegment]:
    """Return a segment in memory with one batch, which indexes each later one."""
    files = MemoryFiles()
    opened = LogSegment.open("/", BASE, CONFIG, create=True, files=files)
    opened.append(BASE + 1, batch(2, BASE))
    return files, opened


def told(files: MemoryFiles, one: LogSegment) -> tuple[Any, ...]:
    """Return all that a segment holds and says."""
    return (
        files.images("/"),
        one.size,
        one.bytes_since_last_index_entry,
        one.max_timestamp_so_far,
        one.offset_of_max_timestamp_so_far,
        one.offset_index.entries,
        one.time_index.entries,
    )


@pytest.mark.checks("SEG-25", "SEG-26")
def test_bulk_appends_of_a_segment() -> None:
    """Batches whose offsets lie at the bounds of a segment, alone, first and last."""
    bounds = [value for value in around(BASE, BASE + 2, BASE + 2**31 - 1) if value >= 0]
    later = batch(1, BASE + 9, START_MS + 9)
    for offset in bounds:
        one = batch(1, offset, START_MS + 5)
        for parts in ([one], [later, one], [one, later], [one[:-1]], [later, one[:30]], []):
            (files, single), (other, bulk) = segment(), segment()
            before = told(other, bulk)

            def append_each(single: LogSegment = single, parts: list[bytes] = parts) -> None:
                for part in parts:
                    base, size = int.from_bytes(part[:8], "big"), int.from_bytes(part[8:12], "big")
                    if size + 12 != len(part):
                        single.append_many(part)  # what is cut has no single twin
                    single.append(base, part)

            expected = answer(append_each)
            found = answer(partial(bulk.append_many, b"".join(parts)))
            assert expected == found, (offset, len(parts))
            assert told(other, bulk) == (before if expected else told(files, single))


def test_bulk_lookups_of_a_segment() -> None:
    """By offset and by time: before, at and after each batch."""
    _, one = segment()
    for number in range(1, 5):
        base = BASE + 10 * number
        one.append(base + 1, batch(2, base, START_MS + 100 * number))
    offsets = around(*(BASE + 10 * number for number in range(6)), BASE + 1, 0, *INT64)
    for offset in offsets:
        single = answer(partial(one.translate_offset, offset, 0))
        bulk = answer(partial(one.read_many, [offset]))
        if isinstance(single, str):
            assert single == bulk
            continue
        positions, sizes = bulk
        alone = (-1, -1) if single is None else (single.position, single.size_bytes)
        assert alone == (int(positions[0]), int(sizes[0])), offset
    times = around(
        *(START_MS + 100 * number + step for number in range(6) for step in (0, 1)), *INT64
    )
    for start in (0, BASE, BASE + 20, BASE + 41, BASE + 42):
        bulk = one.find_offset_by_timestamp_many(np.array(times, np.int64), start)
        for number, time_ms in enumerate(times):
            found = one.find_offset_by_timestamp(time_ms, start)
            alone = (-1, -1) if found is None else (found.timestamp, found.offset)
            assert alone == tuple(int(column[number]) for column in bulk[:2]), (time_ms, start)


def epochs() -> tuple[MemoryFiles, LeaderEpochFileCache]:
    """Return a cache of leader epochs with two entries."""
    files = MemoryFiles()
    cache = LeaderEpochFileCache.open("/leader-epoch-checkpoint", create=True, files=files)
    cache.assign(2, 20)
    cache.assign(4, 40)
    return files, cache


@pytest.mark.checks("EPOCH-2", "EPOCH-3", "EPOCH-4")
def test_bulk_assignments_of_epochs() -> None:
    """Those before a refused one are assigned, as single assignments leave them; in file too."""
    numbers = [-1, 0, 2, 4, 5, 2**31 - 1, 2**31]
    offsets = [-1, 0, 19, 20, 21, 40, 41, 2**63 - 1, 2**63]
    for pair in product(numbers, offsets):
        for begins in ([pair], [(6, 60), pair], [pair, (6, 60)], [(6, 60), (-1, 0), pair]):
            (files, single), (other, bulk) = epochs(), epochs()

            def assign_each(
                single: LeaderEpochFileCache = single,
                begins: list[tuple[int, int]] = begins,
            ) -> None:
                for begin in begins:
                    single.assign(*begin)

            expected = answer(assign_each)
            assert expected == answer(partial(bulk.assign_all, begins))
            assert single.epoch_entries() == bulk.epoch_entries(), begins
            assert files.images("/") == other.images("/")
