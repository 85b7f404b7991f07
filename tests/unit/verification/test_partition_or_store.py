# SPDX-License-Identifier: Apache-2.0
"""A folder with files of both systems: what its name and its files say is judged, and no other."""

import shutil
from pathlib import Path

import pytest

from segproof.repair import salvage, salvage_store
from segproof.verification import verify
from segproof_harness import cli
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import LOG, copied_store


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "index"])
def test_a_folder_of_a_store_makes_no_store_of_a_partition(name: str, tmp_path: Path) -> None:
    """The partition was judged as a store without messages, and a salvage kept none of them."""
    partition = copied_partition("v1-gzip", tmp_path)
    (healthy,) = salvage(partition, tmp_path / "healthy")
    (partition / name).mkdir()
    (partition / name / "00000000001073741824").touch()
    found = list(verify(partition))
    assert [] == [one for one in found if one.is_defect]
    assert str(partition / name) in [one.path for one in found if one.law == "DISK-3"]
    (saved,) = salvage(partition, tmp_path / "saved")
    assert saved.is_whole
    assert 0 < healthy.records == saved.records


def test_what_lies_beside_a_log_without_a_message_is_told(tmp_path: Path) -> None:
    """A salvage made no store, and said nothing of the files that it did not copy."""
    store = copied_store(tmp_path)
    (store / LOG).write_bytes(bytes(16384))
    for name in ("config", "timerlog"):
        (store / name).mkdir()
        (store / name / "topics.json").write_text("{}")
    (store / "notes").write_text("x")
    told = salvage_store(store, tmp_path / "saved")
    assert not told.is_whole
    assert {"commitlog", "config", "timerlog", "notes"} == {
        Path(words.split(":")[0]).name for words in told.left_out
    }


def mixed(tmp_path: Path, *parts: str, is_brokers: bool = True) -> Path:
    """Write a data directory of Kafka with one partition, and folders of a store beside it."""
    data = tmp_path / "data"
    copied_partition("v1-gzip", data)
    store = copied_store(tmp_path / "store")
    for part in parts:
        if (store / part).is_dir():
            shutil.copytree(store / part, data / part)
        else:
            shutil.copy(store / part, data / part)
    if is_brokers:
        (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return data


@pytest.mark.checks("DISK-47", "RMQDISK-41")
@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "index"])
@pytest.mark.parametrize("is_brokers", [True, False])
def test_a_folder_of_a_store_hides_no_partition(
    tmp_path: Path, capfd: Capsys, part: str, *, is_brokers: bool
) -> None:
    """A data directory with one was a store: no partition was verified, saved or rebuilt."""
    data = mixed(tmp_path, part, is_brokers=is_brokers)
    name = next(path.name for path in data.iterdir() if any(path.glob("*.log")))
    found, summaries = verified(data)
    assert {str(data / name), str(data)} <= {one.path for one in summaries}
    assert str(data / part) in {one.path for one in found if one.law == "DISK-47"}
    assert [] == [one for one in found if one.law == "RMQDISK-41" and part not in one.path]
    for more in ([], ["--records"]):
        out = tmp_path / f"saved{len(more)}"
        assert cli.run(["salvage", str(data), "--out", str(out), *more]) == 1
        assert any((out / name).glob("*.log"))
        assert "folders of a store of RocketMQ" in " ".join(capfd.readouterr().out.split())
    assert cli.run(["rebuild", str(data), "--out", str(tmp_path / "rebuilt")]) == 0
    assert (tmp_path / "rebuilt" / name).is_dir()


def test_a_store_with_a_partition_in_it_is_a_store(tmp_path: Path, capfd: Capsys) -> None:
    """Two folders of a store say what it is; the partition is verified, and told as left out."""
    data = mixed(tmp_path, "commitlog", "consumequeue", is_brokers=False)
    name = next(path.name for path in data.iterdir() if any(path.glob("*.log")))
    _, summaries = verified(data)
    assert {str(data / name), str(data)} <= {one.path for one in summaries}
    assert cli.run(["salvage", str(data), "--out", str(tmp_path / "saved")]) == 1
    assert "a partition of Kafka; save it by itself" in " ".join(capfd.readouterr().out.split())
    assert (tmp_path / "saved" / "commitlog").is_dir()
    assert cli.run(["salvage", str(data), "--out", str(tmp_path / "again"), "--records"]) == 1
    assert (tmp_path / "again" / name).is_dir()


def test_a_store_beside_partitions_is_named(tmp_path: Path) -> None:
    """A salvage of a directory with a store below it said nothing of that."""
    data = mixed(tmp_path)
    copied_store(data / "apart")
    saved, left_out = salvage(data, tmp_path / "saved")
    assert saved.is_whole
    assert "a store of RocketMQ: save it by itself" in left_out.left_out[0]
