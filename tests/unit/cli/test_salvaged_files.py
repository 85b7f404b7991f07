# SPDX-License-Identifier: Apache-2.0
"""What `salvage` says of the files beside records, which a broker needs to serve these."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from segproof.layouts.rocketmq import TIMER_ENTRY
from segproof_harness import cli
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import copied_store

IDS = "#\nversion=1\nnode.id=1\ncluster.id=I2eXt9rvSnyhct8BYmW6-w\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory of a broker with KRaft, with one sound partition."""
    copied_partition("plain", tmp_path / "data")
    (tmp_path / "data" / "meta.properties").write_text(IDS)
    return tmp_path / "data"


def saved(path: Path, capsys: Capsys) -> tuple[int, str, str]:
    """Return the exit code of a salvage, and what it wrote."""
    code = cli.run(["salvage", str(path), "--out", str(path.parent / "saved")])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.checks("DISK-49")
def test_a_missing_topic_id_is_told(data: Path, capsys: Capsys) -> None:
    """The broker sets the partition aside; the step says what to write, and where the id is."""
    (data / "plain-0" / "partition.metadata").unlink()
    code, out, err = saved(data, capsys)
    assert code == 1
    assert "every batch kept: " in out
    assert "plain-0/partition.metadata: it is missing" in out
    assert "`topic_id: ID`" in out
    assert "with every batch, and not all files" in err


def test_a_lone_partition_of_an_old_release_lacks_nothing(tmp_path: Path, capsys: Capsys) -> None:
    """Releases below 2.8 have no topic ids."""
    partition = copied_partition("plain", tmp_path)
    (partition / "partition.metadata").unlink()
    code, out, _ = saved(partition, capsys)
    assert (0, True) == (code, "everything kept: " in out)


@pytest.mark.checks("META-2")
def test_an_unread_topic_id_is_no_gap(data: Path, capsys: Capsys) -> None:
    """Each batch is kept; the path stands in the line once."""
    path = data / "plain-0" / "partition.metadata"
    path.write_bytes(b"")
    code, out, err = saved(data, capsys)
    assert code == 1
    assert "every batch kept: " in out
    assert "gaps" not in err
    (line,) = (one for one in out.splitlines() if "left out: " in one)
    assert line.count(str(path)) == 1


@pytest.mark.checks("DISK-54")
@pytest.mark.parametrize("content", [bytes(87), b"", b"version=1\ncluster.id=a\n"])
def test_an_identity_that_no_broker_reads_is_not_copied(
    data: Path, content: bytes, capsys: Capsys
) -> None:
    """The command shows how it is made again instead."""
    assert f"cp -a {data}/meta.properties" in saved(data, capsys)[2]
    shutil.rmtree(data.parent / "saved")
    (data / "meta.properties").write_bytes(content)
    told = saved(data, capsys)[2]
    assert "cp -a" not in told
    assert f"`segproof verify {data} --law DISK-54`" in told


def test_the_report_says_how_the_result_is_served(
    data: Path, tmp_path: Path, capsys: Capsys
) -> None:
    """Of partitions and of a store: with the name of the page, which is there."""
    for path in (data, copied_store(tmp_path / "rocketmq" / "store")):
        assert 'the page "Bring back a whole saved directory"' in saved(path, capsys)[2]


@pytest.mark.checks("RMQDISK-53")
def test_an_end_that_timers_know_of_is_told(tmp_path: Path, capsys: Capsys) -> None:
    """It is in the report and in its last line, also where no gap is."""
    store = copied_store(tmp_path / "store")
    assert "lost its end" not in saved(store, capsys)[1]
    shutil.rmtree(store.parent / "saved")
    (store / "timerlog").mkdir()
    entry = np.zeros(1, TIMER_ENTRY.dtype)
    entry["size"], entry["phy_offset"], entry["message_size"] = TIMER_ENTRY.size, 1 << 40, 100
    (store / "timerlog" / "00000000000000000000").write_bytes(entry.tobytes())
    code, out, err = saved(store, capsys)
    assert code == 1
    assert "the log may have lost its end, with an unknown number of messages" in out
    assert "with 0 gaps, and perhaps without the end of the log" in err


@pytest.mark.parametrize("verb", [["--records"], ["--format", "jsonl"]])
def test_dump_shows_what_was_set_aside(data: Path, verb: list[str], capsys: Capsys) -> None:
    """Batches of several places stand in that file: their offsets need not rise."""
    log = data / "plain-0" / "00000000000000000060.log"
    first = data / "plain-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:40000] + first.read_bytes()[:42000] + b"x" * 300)
    code, out, _ = saved(data, capsys)
    assert code == 1
    assert "set aside: 2 batches, " in out
    aside = data.parent / "saved" / "salvage-set-aside.plain-0.log"
    assert 0 == cli.run(["dump", str(aside), *verb])
    shown = capsys.readouterr().out
    assert shown.count("\n") > 1
    assert "offset" in shown
