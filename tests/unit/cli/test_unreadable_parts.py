# SPDX-License-Identifier: Apache-2.0
"""A data directory of which a part can't be read: each verb tells it, and does the rest."""

import json
import shlex
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import LOG, copied_store


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a sound partition beside one that can't be entered: a link to itself."""
    copied_partition("v1-gzip", tmp_path / "data")
    (tmp_path / "data/orders-0").symlink_to("orders-0")
    monkeypatch.chdir(tmp_path)
    return Path("data")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("verify data --summary", "1 other path, 1 partition: 1 sound, 1 unreadable\n"),
        ("salvage data --out saved", "1 partition saved into saved, 1 not saved, in "),
        ("rebuild data --out rebuilt", "sound ones stay, 1 not rebuilt, with 1 error, in "),
        ("ls data", "data/orders-0: it cannot be read: "),
    ],
)
@pytest.mark.checks("DISK-1")
def test_a_partition_that_cannot_be_entered_is_told_at_the_end(
    data: Path, verb: str, told: str, capsys: Capsys
) -> None:
    """`salvage` left it out without a word, with exit code 0; the last line of `verify` did not
    count it; `rebuild` said "nothing was written" behind the files that it had written."""
    assert 1 == cli.run(shlex.split(verb))
    shown = capsys.readouterr()
    assert told in shown.err
    assert "data/orders-0" in shown.out + shown.err
    assert "Errno" not in shown.out + shown.err


def test_where_nothing_else_is_there_it_is_the_reason(data: Path, capsys: Capsys) -> None:
    """`salvage` names the directory, in place of "there is no partition"."""
    (data / "old-0").rename("elsewhere-0")
    assert 2 == cli.run(["salvage", "data", "--out", "saved"])
    assert "data/orders-0: it cannot be read: " in capsys.readouterr().err
    assert not Path("saved").exists()


@pytest.mark.slow
@pytest.mark.checks("DISK-7")
def test_what_is_told_of_a_log_that_is_too_large_can_be_done(data: Path, capsys: Capsys) -> None:
    """A log of 3 GiB holds sound batches: `verify` said to move it away. The command that it
    prints saves them."""
    (data / "orders-0").unlink()
    log = data / "old-0" / name_of(2192, ".log")
    with log.open("r+b") as file:
        file.truncate(3 << 30)
    assert 1 == cli.run(["verify", "data/old-0", "--law", "DISK-7"])
    shown = capsys.readouterr().out
    command = "segproof salvage data/old-0 --out saved"
    assert f"    {command}\n" in shown
    assert 0 == cli.run(shlex.split(command)[1:])
    assert 1 == cli.run(["verify", "data/old-0", "--law", "DISK-7"])
    assert f"    {command}-2\n" in capsys.readouterr().out
    assert Path("saved/old-0", log.name).stat().st_size < 1 << 20


@pytest.mark.parametrize("kind", ["link to nothing", "folder"])
def test_a_commit_log_that_cannot_be_opened_hides_no_other_store(
    kind: str, tmp_path: Path, capsys: Capsys
) -> None:
    """`ls` ended at the first such store as at a wrong command, and showed nothing of the rest;
    `rebuild` wrote the error as Python shows it."""
    log = copied_store(tmp_path / "a") / LOG
    log.unlink()
    log.symlink_to("nowhere") if kind == "link to nothing" else log.mkdir()
    copied_store(tmp_path / "b")
    assert 1 == cli.run(["ls", str(tmp_path), "--format", "jsonl"])
    shown = capsys.readouterr()
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert ["commit-log", "consume-queue", "index-folder"] * 2 == [row["kind"] for row in rows]
    assert [1778, 1778] == [row["end_offset"] for row in rows if row["kind"] == "commit-log"]
    assert str(log) in shown.err
    assert 1 == cli.run(["rebuild", str(tmp_path), "--dry-run"])
    assert f"{log}: {'no such file' if kind == 'link to nothing' else 'not a reg'}" in (
        capsys.readouterr().err
    )


def test_a_layout_that_is_not_read_is_named(data: Path, capsys: Capsys) -> None:
    """`ls` said that nothing of Kafka's is there, of a folder with segments of Redpanda."""
    (data / "old-0/1-1-v1.log").write_bytes(b"")
    assert 2 == cli.run(["ls", "data/old-0"])
    assert "data/old-0: the layout of Redpanda, in 1 place" in capsys.readouterr().err
