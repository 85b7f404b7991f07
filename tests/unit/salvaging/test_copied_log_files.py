# SPDX-License-Identifier: Apache-2.0
"""A copy of a file of a commit log, under a name that no file of the log has or needs."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.findings import Finding, Summary, Verdict
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import log_file_name
from segproof_tests.reported_findings import contents, verified
from segproof_tests.store_files import LOG_BYTES, logs, long_store

COUNT = 40


def copy_to(store: Path, source: int, offset: int) -> Path:
    """Copy a file of the log under the name of an offset."""
    target = store / "commitlog" / log_file_name(offset)
    shutil.copyfile(logs(store)[source], target)
    return target


def looked_at(store: Path) -> tuple[Summary, list[Finding]]:
    """Return the summary of a store, and its findings."""
    found, summaries = verified(store, hash_slots=16)
    return summaries[0], [one for one in found if one.is_defect]


def next_name(store: Path) -> Path:
    """Copy the first file under the name that follows."""
    return copy_to(store, 0, len(logs(store)) * LOG_BYTES)


def far_name(store: Path) -> Path:
    """Copy the last file under a name far away."""
    return copy_to(store, -1, 100_000 * LOG_BYTES)


def made_before(store: Path) -> Path:
    """Copy a file over the one of zeros that a broker has made before it needs it."""
    made = copy_to(store, 0, len(logs(store)) * LOG_BYTES)
    made.write_bytes(bytes(LOG_BYTES))
    shutil.copyfile(logs(store)[1], made)
    return made


def before_the_log(store: Path) -> Path:
    """Copy a file under a name that expired, with queues and index that begin after it."""
    shutil.rmtree(store)
    long_store(store, COUNT)
    first = logs(store)[0]
    first.unlink()
    fresh = store.with_name("fresh")
    salvage_store(store, fresh, hash_slot_num=16, index_num=64)
    shutil.rmtree(store)
    fresh.rename(store)
    return copy_to(store, 1, 0)


def cut_copy(store: Path) -> Path:
    """Copy a part of a file: the disk was full."""
    made = copy_to(store, 1, len(logs(store)) * LOG_BYTES)
    made.write_bytes(made.read_bytes()[:700])
    return made


def older_copy(store: Path) -> Path:
    """Copy the last file as it was before its last messages."""
    made = copy_to(store, -1, len(logs(store)) * LOG_BYTES)
    made.write_bytes(made.read_bytes()[:600].ljust(LOG_BYTES, b"\0"))
    return made


@pytest.mark.slow
@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize(
    "make", [next_name, far_name, made_before, before_the_log, cut_copy, older_copy]
)
def test_a_copy_that_replaced_nothing_costs_nothing(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    """`verify` told an unknown loss, hundreds of places, and files before it as missing."""
    store = long_store(tmp_path / "store", COUNT)
    made = make(store)
    data = made.read_bytes()
    made.unlink()
    before, found = looked_at(store)
    assert not found or make is before_the_log
    salvage_store(store, tmp_path / "right", hash_slot_num=16, index_num=64)
    made.write_bytes(data)
    after, told = looked_at(store)
    assert after.verdict is Verdict.READABLE_WITH_DEFECTS
    assert (after.batches, after.lost_offsets) == (before.batches, before.lost_offsets)
    (one,) = [one for one in told if one not in found]
    assert (one.law, one.path, one.places) == ("RMQDISK-25", str(made), 1)
    assert "a copy of" in one.message
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=64)
    assert saved.is_whole
    assert saved.messages == before.batches
    assert saved.copied_messages > 0
    assert contents(tmp_path / "right") == contents(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.checks("RMQDISK-25")
@pytest.mark.parametrize("place", [0, 2, -1])
def test_a_copy_over_a_file_is_a_loss(place: int, tmp_path: Path) -> None:
    """Queues and index lead into the file that it replaced."""
    store = long_store(tmp_path / "store", COUNT)
    source = logs(store)[1].read_bytes()
    logs(store)[place].write_bytes(source)
    summary, _ = looked_at(store)
    assert summary.verdict is Verdict.READABLE_WITH_GAPS
    assert summary.lost_at_least > 0
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=64)
    assert saved.lost_messages == summary.lost_at_least


def test_without_queues_a_full_log_may_have_gone_on(tmp_path: Path) -> None:
    """No file tells what had the name of the copy, as the file before it is full."""
    store = long_store(tmp_path / "store", COUNT)
    logs(store)[-1].unlink()
    shutil.rmtree(store / "index")
    shutil.rmtree(store / "consumequeue")
    copy_to(store, 0, len(logs(store)) * LOG_BYTES)
    _, found = looked_at(store)
    assert not [one for one in found if "a copy of" in one.message]
