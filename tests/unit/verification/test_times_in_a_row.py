# SPDX-License-Identifier: Apache-2.0
"""Store times that no clock gives, which stand in a row: nothing around them shows it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.repair import rebuild_index, salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.verification import verify
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.rows import paired
from segproof_tests.store_files import long_store

UNITS: dict[str, Callable[[int], int]] = {
    "microseconds": lambda time: time * 1000,
    "nanoseconds": lambda time: time * 10**6,
    "seconds": lambda time: time // 1000,
    "none": lambda time: 0,
    "negative": lambda time: -time,
}


def times_of(store: Path) -> list[int]:
    """Return the store times of the log."""
    log = CommitLog.open(store).scan()
    return [one.message.store_timestamp for _, one in log if one.message is not None]


def change_times(store: Path, unit: str, first: int, stop: int) -> None:
    """Write the times of some messages in another unit, and the born times of all as they were."""
    log = CommitLog.open(store)
    places = [(at, one.message) for at, one in log.scan() if one.message is not None]
    for number, (at, message) in enumerate(places):
        found = log.file_of(at)
        assert found is not None
        path = Path(found.path)
        data, place = bytearray(path.read_bytes()), at - found.start
        time = message.store_timestamp
        data[place + 40 : place + 48] = (time - 5).to_bytes(8, "big")
        if first <= number < stop:
            data[place + 56 : place + 64] = UNITS[unit](time).to_bytes(8, "big", signed=True)
        path.write_bytes(data)


@pytest.mark.checks("RMQDISK-40", "RMQDISK-32")
@pytest.mark.parametrize(
    ("first", "stop", "unit", "has_index"),
    [
        (*row, unit, has_index)
        for row, unit, has_index in paired([(0, 20), (5, 15)], UNITS, [True, False])
    ],
)
def test_all_of_them_are_told(
    unit: str, first: int, stop: int, has_index: bool, tmp_path: Path
) -> None:
    """The index was accused where it had the only right times, and without one nothing was said."""
    store = long_store(tmp_path / "store", 20)
    whole = times_of(store)
    change_times(store, unit, first, stop)
    if not has_index:
        shutil.rmtree(store / "index")
    found = list(verify(store, hash_slots=16))
    assert stop - first == len([one for one in found if one.law == "RMQDISK-40"])
    assert "RMQDISK-32" not in {one.law for one in found}
    assert [] == [one for one in store_disagreements(store) if one.law == "RMQDISK-40"]
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=200)
    assert (stop - first, 20) == (saved.restored_times, saved.messages)
    for time, right in zip(times_of(tmp_path / "out"), whole, strict=True):
        assert abs(time - right) <= 1000
    assert [] == [one for one in verify(tmp_path / "out", hash_slots=16) if one.is_defect]
    rebuilt = rebuild_index(store, tmp_path / "index", 16, 200)
    assert stop - first == rebuilt.doubted_times


@pytest.mark.checks("RMQDISK-40")
@pytest.mark.parametrize("shift", [-(10**12), 3_600_000 * 24 * 365, 4 * 10**12])
def test_a_clock_that_was_wrong_for_a_while_is_lawful(shift: int, tmp_path: Path) -> None:
    """A broker stored these times, and its index has them: years away, and in milliseconds."""
    store = long_store(tmp_path / "store", 20)
    UNITS["wrong clock"] = lambda time: time + shift
    try:
        change_times(store, "wrong clock", 5, 15)
    finally:
        del UNITS["wrong clock"]
    shutil.rmtree(store / "index")
    rebuild_index(store, None, 16, 200, in_place=True, keep_times=True)
    found = [one for one in verify(store, hash_slots=16) if one.law == "RMQDISK-40"]
    assert [] == found
