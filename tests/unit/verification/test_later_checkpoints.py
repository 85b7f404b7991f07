# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that knows a later message than the log has."""

import shutil
import struct
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.verification import verify
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import long_store


def newest_of(store: Path) -> int:
    """Return the largest store time of a log."""
    return max(
        result.message.store_timestamp
        for _, result in CommitLog.open(store).scan()
        if result.message is not None
    )


def told(store: Path) -> tuple[list[Finding], Summary]:
    """Return the findings of the checkpoint's times, and the summary."""
    found, summaries = verified(store)
    return [one for one in found if one.law == "RMQDISK-53"], summaries[-1]


def with_queues_in_rocksdb(store: Path) -> None:
    """Remove the index, and put a database in the place of the queues."""
    for name in ("index", "consumequeue"):
        shutil.rmtree(store / name)
    (store / "consumequeue").mkdir()
    (store / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")


def write_times(store: Path, physic: int, logics: int) -> None:
    """Write the times of the log and of the queues into the checkpoint."""
    data = bytearray((store / "checkpoint").read_bytes())
    struct.pack_into(">qq", data, 0, physic, logics)
    (store / "checkpoint").write_bytes(data)


@pytest.mark.checks("RMQDISK-53")
@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("time", ["physic", "logics"])
def test_only_the_checkpoint_knows_of_the_lost_end(time: str, files: int, tmp_path: Path) -> None:
    """Queues are in RocksDB, the last files of the log gone: it was "sound", "everything kept"."""
    store = long_store(tmp_path / "store")
    newest = newest_of(store)
    for path in sorted((store / "commitlog").iterdir())[-files:]:
        path.unlink()
    with_queues_in_rocksdb(store)
    write_times(store, *((newest, 0) if time == "physic" else (0, newest)))
    (one,), summary = told(store)
    assert (Severity.ERROR, str(store / "checkpoint")) == (one.severity, one.path)
    assert (0 if time == "physic" else 8, str(newest)) == (one.position, one.actual)
    assert (Verdict.READABLE_WITH_GAPS, None) == (summary.verdict, summary.lost_offsets)
    saved = salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=200)
    assert not saved.is_whole
    assert any("they are not in the log" in line for line in saved.left_out)
    assert [] == told(tmp_path / "out")[0]


@pytest.mark.checks("RMQDISK-53")
def test_an_impossible_time_of_the_checkpoint(tmp_path: Path) -> None:
    """The year 2100 was no finding. Queues that end with the log say that nothing is lost."""
    store = long_store(tmp_path / "store")
    write_times(store, 4_102_444_800_000, 4_102_444_800_000)
    (one,), summary = told(store)
    assert Severity.WARNING is one.severity
    assert Verdict.READABLE_WITH_DEFECTS is summary.verdict
    assert "2100-01-01" in one.message
    assert salvage_store(store, tmp_path / "out", hash_slot_num=16, index_num=200).is_whole


@pytest.mark.checks("RMQDISK-53")
def test_another_loss_is_told_alone(tmp_path: Path) -> None:
    """Index or queues tell of the lost end, or damage is there: no word of the checkpoint."""
    store = long_store(tmp_path / "store")
    max((store / "commitlog").iterdir()).unlink()
    assert [] == told(store)[0]
    assert "RMQDISK-23" in {one.law for one in verify(store)}


@pytest.mark.checks("RMQDISK-53")
@pytest.mark.parametrize(
    "name", ["rolled-4.9.8", "small-4.7.0", "small-4.9.8", "small-5.5.1", "u8msgs-4.9.8"]
)
def test_no_store_of_a_broker_has_one(name: str) -> None:
    """Of four releases; with queues, and as if these were elsewhere."""
    store = ROCKETMQ / name / "store"
    assert [] == told(store)[0]
    assert [] == [one for one in store_disagreements(store) if one.law == "RMQDISK-53"]


@pytest.mark.checks("RMQDISK-53")
def test_times_that_lag_or_equal_are_lawful(tmp_path: Path) -> None:
    """A broker sets them as it flushes: they may be earlier than the newest message."""
    store = long_store(tmp_path / "store")
    newest = newest_of(store)
    for physic, logics in ((newest, newest), (newest - 9000, newest - 1), (0, 0)):
        write_times(store, physic, logics)
        assert [] == told(store)[0]
    write_times(store, newest, newest + 1)
    assert told(store)[0]
