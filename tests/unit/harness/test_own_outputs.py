# SPDX-License-Identifier: Apache-2.0
"""The new directories in the commands of one report: none is taken by an earlier command."""

import re
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity
from segproof_harness import cli
from segproof_harness.reports.own_outputs import OwnOutputs
from segproof_tests.partition_files import copied_partition


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


@pytest.mark.slow
def test_the_printed_commands_can_be_run_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two copies of a partition, each damaged elsewhere: the second command ended with 2."""
    for name, at in (("d1", 30_000), ("d2", 90_000)):
        folder = copied_partition("plain", tmp_path / name)
        log = folder / f"{0:020d}.log"
        data = bytearray(log.read_bytes())
        data[at : at + 20] = bytes(20)
        log.write_bytes(data)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert 1 == cli.run(["verify", "../d1", "../d2", "--no-notes"])
    lines = re.findall(r"^ +segproof (salvage .*)$", capsys.readouterr().out, re.MULTILINE)
    commands = list(dict.fromkeys(lines))
    assert 2 == len(commands)
    for one in commands:
        assert 1 == cli.run(one.split())
    assert {"saved", "saved-2"} == {path.name for path in Path().iterdir()}
