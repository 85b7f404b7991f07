# SPDX-License-Identifier: Apache-2.0
"""`ls`: partitions, segments and stores, with what a reader of all files would find."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from segproof.kafka.record_file import LogAsFound
from segproof_harness import cli
from segproof_harness.cli.ls import table_of
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ
from segproof_harness.reading.listed_partitions import partition_rows
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys, jsonl

Row = dict[str, Any]
TXN = KAFKA / "txn-a" / "txn-a-0"
NAME = "00000000000000001014"
STORE = ROCKETMQ / "rolled-4.9.8" / "store"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of a partition."""
    return copied_partition("txn-a", tmp_path)


@pytest.mark.parametrize("suffixes", [(), (".index",), (".timeindex",), (".index", ".timeindex")])
def test_segments_have_the_offsets_and_times_of_their_batches(
    suffixes: tuple[str, ...], folder: Path, capsys: Capsys
) -> None:
    """With the indexes and without them; the partition has those of all its segments."""
    for suffix in suffixes:
        for path in folder.glob(f"*{suffix}"):
            path.unlink()
    partition, *segments = jsonl(capsys, "ls", folder)
    assert ["segment"] * 3 == [row["kind"] for row in segments]
    for row in segments:
        batches = jsonl(capsys, "dump", row["path"])
        assert (batches[0]["base_offset"], batches[-1]["last_offset"] + 1) == (
            row["first_offset"], row["end_offset"],
        )  # fmt: skip
        assert max(batch["max_timestamp"] for batch in batches) == row["max_timestamp"]
    assert ("txn-a", 0, 3, 0, 2414, None) == tuple(
        partition[name]
        for name in ("topic", "partition", "segments", "first_offset", "end_offset", "reason")
    )
    assert max(row["max_timestamp"] for row in segments) == partition["max_timestamp"]


def test_few_batches_are_read(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """The indexes lead to the last batches: of 748 a few are looked at."""
    looked_at = []
    right = LogAsFound._batch_at

    def counted(self: LogAsFound, position: int, limit: int) -> Any:
        looked_at.append(position)
        return right(self, position, limit)

    monkeypatch.setattr(LogAsFound, "_batch_at", counted)
    jsonl(capsys, "ls", TXN)
    assert len(looked_at) < 150


def test_partitions_of_a_data_directory_are_in_their_order(folder: Path, capsys: Capsys) -> None:
    """By topic and number: 2 before 10; segments only where they are asked for."""
    for number in (10, 2):
        shutil.copytree(folder, folder.parent / f"txn-a-{number}")
    found = jsonl(capsys, "ls", folder.parent)
    assert [0, 2, 10] == [row["partition"] for row in found]
    kinds = [row["kind"] for row in jsonl(capsys, "ls", folder.parent, "--segments")]
    assert (["partition"] + ["segment"] * 3) * 3 == kinds


def test_a_damaged_log_is_named_with_what_is_before_the_damage(
    folder: Path, capsys: Capsys
) -> None:
    """Exit code 1; the other segments, and the partition, have their numbers."""
    log = folder / f"{NAME}.log"
    batch = jsonl(capsys, "dump", log)[-1]
    data = bytearray(log.read_bytes())
    data[batch["position"] + 8 : batch["position"] + 12] = b"\0\0\0\1"
    log.write_bytes(data)
    (folder / "00000000000000001732.log").unlink()
    assert 1 == cli.run(["ls", str(folder), "--format", "jsonl"])
    told = capsys.readouterr()
    assert f"{log}: " in told.err
    assert 1 == told.err.count(f"{log}: ")
    assert 1 == told.err.count("there is no log")
    found = [json.loads(line) for line in told.out.splitlines()]
    assert [batch["base_offset"], 1014, batch["base_offset"], None] == [
        row["end_offset"] for row in found
    ]
    assert "(1 more segment" in found[0]["reason"]


def test_a_store_has_its_log_queues_and_indexes(capsys: Capsys) -> None:
    """The end of the commit log is that of the last message which a queue names."""
    found = jsonl(capsys, "ls", STORE)
    assert ["commit-log", *["consume-queue"] * 4, "index-folder"] == [row["kind"] for row in found]
    messages = jsonl(capsys, "dump", min(STORE.glob("commitlog/*")))
    log = found[0]
    last = messages[-1]
    assert (0, last["phy_offset"] + last["size"]) == (log["first_offset"], log["end_offset"])
    assert (messages[0]["store_timestamp"], last["store_timestamp"]) == (
        log["first_timestamp"], log["max_timestamp"],
    )  # fmt: skip
    for row in found[1:-1]:
        own = [one for one in messages
               if (one["topic"], one["queue_id"]) == (row["topic"], row["queue_id"])]  # fmt: skip
        assert (len(own), own[0]["store_timestamp"], own[-1]["store_timestamp"]) == (
            row["end_offset"], row["first_timestamp"], row["max_timestamp"],
        )  # fmt: skip


def test_a_store_whose_log_is_gone_is_shown(tmp_path: Path, capsys: Capsys) -> None:
    """It is a store all the same: its log has 0 files."""
    log = tmp_path / "store" / "commitlog"
    log.mkdir(parents=True)
    shutil.copyfile(STORE / "checkpoint", tmp_path / "store" / "checkpoint")
    (log / f"{0:020}.deleted").touch()
    [row] = jsonl(capsys, "ls", tmp_path)
    assert ("commit-log", str(log), 0, 0) == (
        row["kind"], row["path"], row["files"], row["size_bytes"],
    )  # fmt: skip


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_the_terminal(columns: int, folder: Path, capsys: Capsys) -> None:
    """A long topic is folded, and everything else is whole; no escape of a name is written."""
    folder.rename(folder.parent / f"{'long-topic.' * 15}\x1b-3")
    found = jsonl(capsys, "ls", folder.parent, "--segments")
    out = io.StringIO()
    Console(width=columns, file=out).print(table_of(found, columns))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert "\x1b" not in out.getvalue()
    assert "1014 - 1731" in out.getvalue()
    assert ("2026-11-21T01:09:21Z to 2026-11-21T01:09:22Z" in out.getvalue()) == (columns == 120)


def test_what_is_no_directory_of_files_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    """Exit code 2, with the path."""
    for path, why in (
        (tmp_path, "no log, index or store in use"),
        (TXN / f"{NAME}.log", "not a directory"),
        (tmp_path / "missing", "no such file"),
    ):
        assert 2 == cli.run(["ls", str(path)])
        assert f"{path}: {why}" in capsys.readouterr().err


def test_progress_counts_partitions(folder: Path) -> None:
    """Each partition is told of before it is read."""
    shutil.copytree(folder, folder.parent / "txn-a-1", copy_function=shutil.copyfile)
    shown: list[tuple[int, int]] = []
    found = partition_rows(
        str(folder.parent), print, on_progress=lambda done, total: shown.append((done, total))
    )
    assert 2 == len(list(found))
    assert [(0, 2), (1, 2)] == shown
