# SPDX-License-Identifier: Apache-2.0
"""Files in the folders of a log and of a queue whose names are numbers, but not of 20 digits.

A broker loads such a file, sorted by its name: 4.9.8 then deletes or overwrites other files.
"""

import subprocess
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.verification import verify
from segproof_tests.store_files import LOG_BYTES, long_store

NUMBERS = ("{}", "{:019d}", "{:021d}", "+{}", "-{}")
OTHERS = ("{:020d} ", "{:020d}.tmp", "{:020d} (1)", "{}x")
LOADS = "RocketMQ loads it"
DAMAGED_BODY = 330


def stray(store: Path) -> Finding:
    """Return the only finding about what does not belong into a folder of the store."""
    (only,) = [one for one in verify(store) if one.law == "RMQDISK-39"]
    return only


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("name", [*NUMBERS, *OTHERS])
@pytest.mark.parametrize("place", ["commitlog", "consumequeue/T/0"])
@pytest.mark.parametrize("is_moved", [True, False])
def test_a_name_that_brokers_load_is_told_from_one_that_ends_a_start(
    name: str, place: str, is_moved: bool, tmp_path: Path
) -> None:
    """It lay "where no broker reads it", or "no broker starts with it": one did."""
    store = long_store(tmp_path / "store")
    path = sorted((store / place).iterdir())[-1]
    new = path.with_name(name.format(int(path.name)))
    new.write_bytes(path.read_bytes())
    if is_moved:
        path.unlink()
    message = stray(store).message
    assert (name in NUMBERS) is (LOADS in message)
    assert (name in NUMBERS) is ("start no broker while it is in this folder" in message)
    assert (name in OTHERS) is ("no broker starts with it" in message)
    assert "where no broker reads" not in message


@pytest.mark.checks("RMQDISK-39")
def test_a_hint_that_lets_a_number_lie_says_that_no_broker_may_start(tmp_path: Path) -> None:
    """Also where nobody knows what it is: "find out whether a broker serves what it holds"."""
    store = long_store(tmp_path / "store")
    queue = next((store / "consumequeue" / "T" / "0").iterdir())
    start = 9 * LOG_BYTES
    data = bytearray((store / "commitlog" / f"{0:020d}").read_bytes())
    data[28:36] = start.to_bytes(8, "big")
    for content in (bytes(data), queue.read_bytes()):
        (store / "commitlog" / str(start)).write_bytes(content)
        only = stray(store)
        is_log = content == bytes(data)
        assert is_log is only.hint.startswith("start no broker while it is in this folder")
        assert is_log is ("keep it as it is" in only.hint)
        assert LOADS in only.message


@pytest.mark.checks("RMQDISK-39")
def test_a_better_file_leaves_its_other_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It got the place of the damaged file and lay there as well, where a broker loads it."""
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "store")
    path = store / "commitlog" / f"{LOG_BYTES:020d}"
    before = path.read_bytes()
    path.with_name(str(LOG_BYTES)).write_bytes(before)
    damaged = bytearray(before)
    damaged[DAMAGED_BODY] ^= 1
    path.write_bytes(damaged)
    only = stray(store)
    assert "1 sound message of it is not there" in only.message
    (step,) = [one for one in only.hint.split("`")[1::2] if "mv -n" in one]
    subprocess.run(["/bin/bash", "-c", step], check=True)
    assert [] == [one for one in verify(store) if one.is_defect]
    assert before == path.read_bytes()
    kept = {one.name: one.read_bytes() for one in (tmp_path / "moved-out").glob("*/*")}
    assert {path.name: bytes(damaged), str(LOG_BYTES): before} == kept


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize(
    ("name", "words"), [(f"{2**63 - 1:020d}", LOADS), ("9" * 20, "no broker starts with it")]
)
def test_a_single_file_of_such_a_name_is_told_alike(name: str, words: str, tmp_path: Path) -> None:
    """Of each single file no broker was said to start with it."""
    store = long_store(tmp_path / "store")
    path = (store / "commitlog" / f"{LOG_BYTES:020d}").rename(store / "commitlog" / name)
    assert words in next(one.message for one in verify(path) if one.law == "RMQDISK-39")
