# SPDX-License-Identifier: Apache-2.0
"""Batches that are in a partition twice: copies of kept ones cost no offset."""

from itertools import pairwise
from pathlib import Path

import pytest

from segproof.repair import salvage
from segproof_harness import cli
from segproof_tests.partition_files import batches_of, copied_partition, looked_at


def moved(batch: bytes) -> bytes:
    """Return a batch with another base offset, which no checksum covers."""
    return (int.from_bytes(batch[:8], "big") - 1).to_bytes(8, "big") + batch[8:]


@pytest.mark.checks("DISK-13")
@pytest.mark.parametrize("scenario", ["plain", "txn-a"])
@pytest.mark.parametrize("how", ["last", "last four", "first", "before zeros"])
def test_a_copy_at_the_end_costs_nothing(scenario: str, how: str, tmp_path: Path) -> None:
    """It was "an unknown number of offsets", and `verify` told no loss."""
    folder = copied_partition(scenario, tmp_path)
    log = max(folder.glob("*.log"))
    data = log.read_bytes()
    batches = batches_of(data)
    number = {"last": -1, "last four": -4, "first": 0, "before zeros": -1}[how]
    more = b"".join(batches[:1] if how == "first" else batches[number:])
    log.write_bytes(data + more + bytes(99 if how == "before zeros" else 0))
    (told,) = salvage(folder, tmp_path / "out")
    summary, _ = looked_at(folder)
    assert (0, False) == (told.lost_offsets, told.are_more_lost)
    assert (0, False) == (summary.lost_at_least, summary.lost_offsets is None)
    assert told.gap_count == 1
    assert told.set_aside_batches == (4 if how == "last four" else 1)


@pytest.mark.checks("DISK-13")
def test_a_copy_in_place_of_the_last_log_has_lost_that_log(tmp_path: Path) -> None:
    """Its name says that the log went on; "no offset lost" was told, exactly."""
    folder = copied_partition("plain", tmp_path)
    first, *_, last = sorted(folder.glob("*.log"))
    last.write_bytes(first.read_bytes())
    for path in folder.glob("*index"):
        path.unlink()
    (told,) = salvage(folder, tmp_path / "out")
    summary, _ = looked_at(folder)
    assert (0, True, True) == (told.lost_offsets, told.is_end_lost, told.are_more_lost)
    assert (0, None) == (summary.lost_at_least, summary.lost_offsets)
    assert told.gaps[-1].last_lost_offset is None


@pytest.mark.checks("DISK-13")
@pytest.mark.parametrize("how", ["foreign", "moved", "torn", "after damage", "one of two"])
def test_what_is_no_copy_may_stand_for_a_lost_end(how: str, tmp_path: Path) -> None:
    """A disk may have written it over the true end."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    data = log.read_bytes()
    last = batches_of(data)[-1]
    foreign = batches_of(min(copied_partition("txn-a", tmp_path / "f").glob("*.log")).read_bytes())
    more = {
        "foreign": foreign[0],
        "moved": moved(last),
        "torn": last[:-1],
        "after damage": b"?" * 99 + last,
        "one of two": last + moved(last),
    }
    log.write_bytes(data + more[how])
    (told,) = salvage(folder, tmp_path / "out")
    assert told.are_more_lost


@pytest.mark.checks("DISK-13")
@pytest.mark.parametrize("how", ["beside it", "later", "moved"])
def test_a_copy_in_the_middle_of_a_compacted_log_costs_nothing(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was "an unknown number of offsets"; of one that says another offset that stays true."""
    folder = copied_partition("compacted", tmp_path)
    log = min(folder.glob("*.log"))
    batches = batches_of(log.read_bytes())
    touching = [
        number
        for number, (one, other) in enumerate(pairwise(batches))
        if int.from_bytes(one[:8], "big") + one[26] + 1 == int.from_bytes(other[:8], "big")
    ]
    first, last = next(one for one in touching if one - 1 in touching), touching[-1]
    copy = moved(batches[first]) if how == "moved" else batches[first]
    batches.insert((last if how == "later" else first) + 1, copy)
    log.write_bytes(b"".join(batches))
    assert cli.run(["salvage", str(folder), "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "set aside: 1 batch" in out
    is_known = how != "moved"
    assert ("no offset lost" in out) is is_known
    assert ("no offset is missing here" in out) is not is_known
    assert ("lost: an unknown number" in out) is not is_known
    summary, _ = looked_at(folder)
    assert summary.lost_at_least == 0
