# SPDX-License-Identifier: Apache-2.0
"""The new directories in the commands of one report: none is taken by an earlier command."""

import re
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity
from segproof_harness import cli
from segproof_harness.reports.own_outputs import OwnOutputs
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.partition_files import copied_partition
from segproof_tests.store_files import LOG, copied_store


def outputs(*commands: str) -> list[str]:
    """Return the directories that commands get which findings print one after the other."""
    found = [
        Finding(
            "SEG-7", Severity.ERROR, "log-segment", "a", None, None, None, "it is",
            f"do `segproof {one}`", "segproof verify a",
        )
        for one in commands
    ]  # fmt: skip
    return [one.hint.split(" --out ")[1].strip("`") for one in OwnOutputs().of(found)]


def test_partitions_of_one_name_get_their_own_directories() -> None:
    """Others share one; the same partition keeps its own each time it is named."""
    told = outputs(
        "salvage a/t-0 --out saved",
        "salvage b/t-0 --out saved",
        "salvage b/t-1 --out saved",
        "salvage a/t-0 --out saved",
        "salvage c/t-0 --out saved",
        "salvage b/t-0 --out saved",
    )
    assert ["saved", "saved-2", "saved", "saved", "saved-3", "saved-2"] == told


def test_whole_directories_stores_and_rebuilds() -> None:
    """A whole directory goes alone; a store and a rebuild have a folder of their name below."""
    assert ["saved", "saved-2", "saved-3"] == outputs(
        "salvage a --out saved", "salvage b --out saved", "salvage a/t-0 --out saved"
    )
    told = outputs("rebuild a/t-0 --out rebuilt/t-0", "rebuild b/t-0 --out rebuilt/t-0")
    assert ["rebuilt/t-0", "rebuilt-2/t-0"] == told
    told = outputs("salvage x/store --out saved/store", "salvage y/store --out saved/store")
    assert ["saved/store", "saved-2/store"] == told
    told = outputs("salvage 'a b/t-0' --out 'my saved'", "salvage c/t-0 --out 'my saved'")
    assert ["'my saved'", "'my saved-2'"] == told


@pytest.mark.parametrize(("verb", "out"), [("salvage", "saved"), ("rebuild", "rebuilt")])
def test_a_store_does_not_go_where_partitions_go(verb: str, out: str) -> None:
    """A new store among partitions was refused, and so was a partition beside a new store."""
    below = "/t-0" if verb == "rebuild" else ""
    partition, store = f"{verb} d/t-0 --out {out}{below}", f"{verb} d/store --out {out}/store"
    assert [out + below, f"{out}-2/store", out + below] == outputs(partition, store, partition)
    told = outputs(store, partition, partition.replace("t-0", "t-1"), store)
    assert [f"{out}/store", *(f"{out}-2" + one for one in told_below(below))] == told[:3]
    assert told[0] == told[3]
    # A store that has a partition's name, and a second one of the same folder.
    named = f"{verb} d/rolled-4 --out {out}/rolled-4"
    if verb == "salvage":
        assert ["saved", "saved-2/rolled-4", "saved-2/store"] == outputs(partition, named, store)


def told_below(below: str) -> tuple[str, str]:
    """Return what follows the directory for the partitions t-0 and t-1."""
    return below, below.replace("t-0", "t-1")


@pytest.mark.slow
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_store_and_partitions_are_saved_in_both_orders(
    is_reversed: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As printed, one salvage of a call ended with 2, whichever was run first."""
    folders = [copied_partition(one, tmp_path / "data") for one in ("plain", "compacted")]
    logs = [folder / f"{0:020d}.log" for folder in folders]
    for log in (*logs, copied_store(tmp_path / "data") / LOG):
        put_bytes(log, 1000, bytes(20))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert 1 == cli.run(["verify", "../data", "--no-notes"])
    lines = re.findall(r"^ +segproof (salvage .*)$", capsys.readouterr().out, re.MULTILINE)
    commands = list(dict.fromkeys(lines))
    assert 3 == len(commands)
    for one in reversed(commands) if is_reversed else commands:
        assert 1 == cli.run(one.split()), one


@pytest.mark.slow
def test_the_printed_commands_can_be_run_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two copies of a partition, each damaged elsewhere: the second command ended with 2."""
    for name, at in (("d1", 30_000), ("d2", 90_000)):
        folder = copied_partition("plain", tmp_path / name)
        log = folder / f"{0:020d}.log"
        put_bytes(log, at, bytes(20))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert 1 == cli.run(["verify", "../d1", "../d2", "--no-notes"])
    lines = re.findall(r"^ +segproof (salvage .*)$", capsys.readouterr().out, re.MULTILINE)
    commands = list(dict.fromkeys(lines))
    assert 2 == len(commands)
    for one in commands:
        assert 1 == cli.run(one.split())
    assert {"saved", "saved-2"} == {path.name for path in Path().iterdir()}
