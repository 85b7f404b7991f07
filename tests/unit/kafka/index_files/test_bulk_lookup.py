# SPDX-License-Identifier: Apache-2.0
"""Many lookups at once give the answers of as many single ones, on every way to find them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from segproof.kafka import OffsetIndex, TimeIndex, bulk_lookup
from segproof.kafka import abstract_index as abstract_index_module
from segproof.kafka.bulk_lookup import int64_difference
from segproof.kernels import slot_search

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
KERNELS = ("lower_slots_of_rising", "lower_slots_of_random", "native_entries_at")
COUNTS = (1, 2, 3, 4, 5, 8, 100, 700)


@pytest.fixture(
    params=[
        "numpy",
        "interpreted",
        pytest.param("compiled", marks=pytest.mark.needs("numba")),
    ]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test on numpy alone, on interpreted kernels and on compiled ones; small blocks."""
    way = str(request.param)
    monkeypatch.setattr(bulk_lookup, "_BLOCK", 64)
    monkeypatch.setattr(abstract_index_module, "_ENTRIES_DECODED", {True: 10**9, False: 10**9})
    monkeypatch.setattr(bulk_lookup, "_compiles", lambda kernel, targets: way != "numpy")
    for name in KERNELS:
        kernel = getattr(slot_search, name)
        if way == "compiled":
            kernel.compile()
        elif way == "interpreted":
            monkeypatch.setattr(bulk_lookup, name, kernel.interpreted)
    return way


def _targets(keys: list[int], count: int, seed: int) -> NDArray[np.int64]:
    """Return targets at, beside and far from the keys, some of them twice."""
    random = np.random.default_rng(seed)
    near = [key + step for key in (keys or [0]) for step in (-1, 0, 1)]
    choice = [min(max(one, INT64_MIN), INT64_MAX) for one in near] + [INT64_MIN, -1, 0, INT64_MAX]
    return np.array([choice[int(n)] for n in random.integers(0, len(choice), count)], np.int64)


def _compare(index: Any, keys: list[int], counts: tuple[int, ...] = COUNTS) -> None:
    for count in counts:
        for sorted_part in (0, count // 2, count):
            targets = _targets(keys, count, seed=count)
            targets[:sorted_part].sort()
            expected = [tuple(index.lookup(target)) for target in targets.tolist()]
            found = index.lookup_many(targets)
            assert expected == list(zip(*(column.tolist() for column in found), strict=True))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("base", [0, 5, -(2**40), 2**62, INT64_MAX - 2**32])
@pytest.mark.parametrize("entries", [0, 1, 2, 3, 500])
def test_offsets_as_single_lookups(tmp_path: Path, base: int, entries: int) -> None:
    """A base that would let differences wrap changes nothing."""
    offsets = base + np.cumsum(np.random.default_rng(7).integers(1, 5, entries))
    with OffsetIndex(tmp_path / "a.index", base, 8000, create=True) as index:
        index.append_many(offsets, np.arange(entries) * 3 + 1)
        _compare(index, offsets.tolist())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("step", [1, 7, 2**53])
def test_timestamps_as_single_lookups(tmp_path: Path, step: int) -> None:
    """Timestamps too far apart to be sorted together with their places are searched one by one."""
    timestamps = np.arange(400, dtype=np.int64) * step + 10
    with TimeIndex(tmp_path / "a.timeindex", 100, 12_000, create=True) as index:
        index.maybe_append_many(timestamps, np.arange(400) + 100)
        _compare(index, timestamps.tolist())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("keys", [[1, 3, 3, 5], [9, 2, 7, 2], [0, 0, 0]])
def test_keys_that_do_not_increase_are_searched_one_by_one(tmp_path: Path, keys: list[int]) -> None:
    """Where keys repeat or fall, the answer is the one that the probes of `lookup` meet."""
    entries = np.array([[key, place + 1] for place, key in enumerate(keys)], ">i4")
    (tmp_path / "a.index").write_bytes(entries.tobytes())
    with OffsetIndex(tmp_path / "a.index", 0) as index:
        _compare(index, keys)


@pytest.mark.usefixtures("way")
def test_decoded_entries_are_forgotten_with_a_change(tmp_path: Path) -> None:
    """Entries that were cut and replaced by as many others are seen."""
    with OffsetIndex(tmp_path / "a.index", 0, 800, create=True) as index:
        index.append_many([1, 4, 8], [10, 20, 30])
        assert [20, 30] == index.lookup_many([5, 9])[1].tolist()
        index.truncate_to(4)
        index.append_many([2, 3], [40, 50])
        assert [50, 50] == index.lookup_many([5, 9])[1].tolist()
        index.append(9, 60)
        assert [50, 60] == index.lookup_many([5, 9])[1].tolist()


def test_few_targets_do_not_decode_the_index(tmp_path: Path) -> None:
    """One question about a large index costs a search, not a pass over the index."""
    with OffsetIndex(tmp_path / "a.index", 3, 80_000, create=True) as index:
        index.append_many(np.arange(10_000) * 2 + 3, np.arange(10_000))
        assert ([9], [3]) == tuple(column.tolist() for column in index.lookup_many([10]))
        assert index._columns is None
        index.lookup_many(np.arange(1000))
        assert index._columns is not None


def test_difference_is_limited_where_it_would_wrap() -> None:
    """Values far below a base stay below it."""
    values = np.array([INT64_MIN, 0, INT64_MAX], np.int64)
    assert [-9, -5, 8] == int64_difference(values, 5, -9, 8).tolist()
    assert [-7] == int64_difference(np.array([-2], np.int64), 5, -9, 8).tolist()


def test_many_single_lookups_decode_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After as many lookups as decoding costs, the next ones search native keys, same answers."""
    monkeypatch.setattr(abstract_index_module, "_ENTRIES_DECODED", {True: 100, False: 100})
    offsets = np.arange(3, 20_003, 2)
    with OffsetIndex(tmp_path / "a.index", 3, 80_000, create=True) as index:
        index.append_many(offsets, offsets * 2)
        targets = [0, 2, 3, 4, 9_999, 20_001, 20_002, 2**40]
        before = [index.lookup(target) for target in targets]
        assert (None,) == (index._increasing_keys,)
        for _ in range(200):
            index.lookup(3)
        assert index._increasing_keys is not None
        assert before == [index.lookup(target) for target in targets]
        index.truncate_to(9_999)
        assert (9_997, 2 * 9_997) == index.lookup(20_001)


def test_zero_tail_of_any_length_is_no_entry(tmp_path: Path) -> None:
    """Entries are counted from the end on, in pieces; a piece may end anywhere in an entry."""
    for entries in (0, 1, 700, 5461, 5462, 8192, 8193):
        path = tmp_path / f"{entries}.timeindex"
        with TimeIndex(path, 0, 12 * 20_000, create=True) as index:
            index.maybe_append_many(np.arange(1, entries + 1), np.arange(entries))
            index.close_handler()
        with TimeIndex(path, 0) as index:
            assert entries == len(index)


@pytest.mark.parametrize("step", [3, 2**22, 2**40])
def test_many_single_lookups_of_timestamps(tmp_path: Path, step: int) -> None:
    """Decoded timestamps, near enough to each other for 32 bits or not, find what probes find."""
    timestamps = np.arange(1, 1001) * step - 5
    targets = [-(2**70), 0, *(int(one) + near for one in timestamps[::99] for near in (-1, 0, 1))]
    targets += [2**63 - 1, 2**70]
    with TimeIndex(tmp_path / "a.timeindex", 7, 12 * 1001, create=True) as index:
        index.maybe_append_many(timestamps, np.arange(1000) + 7)
        before = []
        for target in targets:
            index._increasing_keys = index._columns = None
            index._searches = (None, 0)
            before.append(index.lookup(target))
        assert index._columns_of(index._current(), 10**6) is not None
        assert index._increasing_keys is not None
        assert before == [index.lookup(target) for target in targets]
