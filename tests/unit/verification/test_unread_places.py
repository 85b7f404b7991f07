# SPDX-License-Identifier: Apache-2.0
"""A part of a layout that is not read, named itself: each verb names the layout, and makes nothing.

Public reports that such layouts are modelled on: apache/rocketmq 8041 and 8859,
openmessaging/dledger 285.
"""

import shutil
import struct
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Severity, Verdict
from segproof.repair import rebuild_all, salvage
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import judged
from segproof_tests.store_files import long_store

NAME = "0" * 20
WAL = "000013.log"
DATABASE = {
    "CURRENT": b"MANIFEST-000005\n", "MANIFEST-000005": b"\1" * 60, "IDENTITY": b"x", "LOCK": b"",
    "OPTIONS-000010": b"[Version]", "000012.sst": b"\2" * 90, WAL: bytes(500), "LOG": b"opened",
}  # fmt: skip
VERBS = (
    ("ls",), ("dump",), ("salvage", "--out", "OUT"), ("rebuild", "--out", "OUT"),
    ("lookup", "--offset", "0"),
)  # fmt: skip


def written(folder: Path, contents: dict[str, bytes]) -> Path:
    """Write files into a new folder; return it."""
    folder.mkdir(parents=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder


def dledger(top: Path, name: str) -> Path:
    """Write the directory of a group member of DLedger into a store; return it."""
    entry = struct.pack(">iiqqqiii", 1, 60, 0, 1, 0, 0, 0, 12) + b"a message..."
    group = written(top / "store" / name, {"checkpoint": b"committedIndex 0\n"})
    written(group / "data", {NAME: entry + bytes(940)})
    written(group / "index", {NAME: struct.pack(">iqiqq", 1, 0, 60, 0, 1) + bytes(608)})
    (top / "store" / "commitlog").mkdir()
    return group


def redpanda(top: Path) -> Path:
    """Write the folder of a partition of Redpanda; return it."""
    names = ("0-1-v1.log", "0-1-v1.base_index", "archival_metadata.snapshot")
    return written(top / "data" / "kafka" / "plain" / "0_12", dict.fromkeys(names, b"\3" * 64))


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    """A data directory with one sound partition."""
    folder = tmp_path / "data"
    shutil.copytree(partition_of(KAFKA / "unclean-before"), folder / "unclean-0")
    return folder


def expect_named(path: Path, law: str, words: str, out: Path, capsys: Capsys) -> None:
    """Expect one finding that names the layout, and that each verb refuses with its words."""
    (one,), summary = judged(path)
    assert (law, str(path), Severity.WARNING) == (one.law, one.path, one.severity)
    assert words in one.message
    assert (Verdict.NOT_CHECKED, 0) == (summary.verdict, summary.bytes_checked)
    with pytest.raises(InvalidArgumentError, match=words):
        list(salvage(path, out))
    with pytest.raises(InvalidArgumentError, match=words):
        list(rebuild_all([path], out))
    for verb, *rest in VERBS:
        asked = [str(out) if each == "OUT" else each for each in rest]
        assert 2 == cli.run([verb, str(path), *asked])
        told = capsys.readouterr()
        assert not told.out
        assert words in told.err
    assert not out.exists()


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("dledger-n0", "data"), ("n0", "index"), ("n0", f"data/{NAME}"),
        ("dledger-n0", f"index/{NAME}"), ("dledger-n0", "checkpoint"), ("n0", ""),
    ],
)  # fmt: skip
def test_a_part_of_a_dledger_group(name: str, part: str, tmp_path: Path, capsys: Capsys) -> None:
    """Its log was "nothing of Kafka's here"; its checkpoint was one of a store, to be salvaged."""
    path = dledger(tmp_path, name) / part
    expect_named(path, "RMQDISK-42", "of DLedger", tmp_path / "out", capsys)


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("part", ["", WAL, "MANIFEST-000005", "LOG"])
def test_a_part_of_a_database(part: str, tmp_path: Path, capsys: Capsys) -> None:
    """Its WAL was a file of a segment; `dump` of it ended with 0."""
    path = written(tmp_path / "store" / "consumequeue_r", DATABASE) / part
    expect_named(path, "RMQDISK-42", "a database of RocksDB", tmp_path / "out", capsys)


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize(
    ("lacking", "part"), [("CURRENT", ""), ("CURRENT", WAL), ("MANIFEST-000005", "000012.sst")]
)
def test_a_part_of_a_database_that_lacks_its_beginning(
    lacking: str, part: str, tmp_path: Path
) -> None:
    """The message says what it lacks, and the hint where to look for it."""
    kept = {name: data for name, data in DATABASE.items() if name != lacking}
    (one,), _ = judged(written(tmp_path / "store" / "consumequeue", kept) / part)
    assert f"it lacks {lacking.partition('-')[0]}" in one.message
    assert "lost+found" in one.hint


@pytest.mark.checks("DISK-46")
@pytest.mark.parametrize("part", ["0-1-v1.base_index", "archival_metadata.snapshot"])
def test_a_part_of_a_partition_of_redpanda(part: str, tmp_path: Path, capsys: Capsys) -> None:
    """A snapshot in it was "to be moved out", since its name says no offset."""
    path = redpanda(tmp_path) / part
    expect_named(path, "DISK-46", "the layout of Redpanda", tmp_path / "out", capsys)


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize(
    ("part", "is_file"),
    [
        ("timerlog", False), ("timerlog", True), ("compaction", False),
        ("compaction/commitLog/T/0", True), ("batchconsumequeue/T", False),
    ],
)  # fmt: skip
def test_a_part_of_a_store_that_no_check_reads_by_itself(
    part: str, is_file: bool, tmp_path: Path, capsys: Capsys
) -> None:
    """A folder of it was "nothing of Kafka's here", and an error."""
    store = long_store(tmp_path / "store")
    path = written(store / part, {NAME: bytes(1024)})
    path = path / NAME if is_file else path
    words = f"give the path of the store, {store}"
    expect_named(path, "RMQDISK-41", words, tmp_path / "out", capsys)


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("is_alone", [True, False])
def test_databases_below_a_path(is_alone: bool, data: Path) -> None:
    """The state of a stream processor beside partitions is noted, and is no stray segment."""
    top = data if not is_alone else data.parent / "state"
    folder = written(top / "counts" / "rocksdb", DATABASE)
    (one,) = (one for one in verify(top) if str(folder) in one.path)
    assert "DISK-45" == one.law
    assert (Severity.WARNING if is_alone else Severity.NOTE) is one.severity
    assert "a database of RocksDB" in one.message


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize("beside", [(), ("LOCK",), ("CURRENT",), ("notes.sst",)])
def test_a_log_without_a_database_beside_it_is_judged(
    beside: tuple[str, ...], tmp_path: Path
) -> None:
    """Healthy twins: a log with a short name and nothing of RocksDB is a log of Kafka."""
    folder = written(tmp_path / "state", {WAL: bytes(500), **dict.fromkeys(beside, b"")})
    assert "DISK-3" in {one.law for one in verify(folder) if one.path.endswith(WAL)}
    assert "FILE-1" in {one.law for one in verify(folder / WAL)}


@pytest.mark.parametrize("extra", ["000012.sst", "CURRENT", "MANIFEST-000005"])
def test_a_partition_is_judged_whatever_lies_in_it(extra: str, data: Path) -> None:
    """Healthy twins: the logs of a partition, with a stray file beside them."""
    folder = data / "unclean-0"
    (folder / extra).write_bytes(b"MANIFEST-000005\n")
    for path in (folder, min(folder.glob("*.log"))):
        assert judged(path)[1].batches


@pytest.mark.checks("DISK-46")
@pytest.mark.parametrize("is_store", [True, False])
def test_a_file_of_redpanda_hides_no_store_and_no_partitions(
    is_store: bool, data: Path, tmp_path: Path, capsys: Capsys
) -> None:
    """One such file in the folder around them, and a dump and a salvage of all were refused."""
    folder = long_store(tmp_path / "store") if is_store else data
    (folder / "0-1-v1.log").write_bytes(b"\3" * 43)
    assert cli.run(["salvage", str(folder), "--out", str(tmp_path / "out")]) in (0, 1)
    assert "messages" in (out := capsys.readouterr().out) or "batches" in out
    if is_store:
        assert cli.run(["dump", str(folder), "--max", "1"]) == 0
