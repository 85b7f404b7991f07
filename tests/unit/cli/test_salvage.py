# SPDX-License-Identifier: Apache-2.0
"""The verb `salvage`: what it prints, its exit codes, what it refuses."""

import json
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.cli.salvage import PARTITION_FIELDS
from segproof_tests.corruptions import CORRUPTIONS
from segproof_tests.partition_files import copied_partition


def test_a_sound_partition_is_kept_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0, and nothing of gaps."""
    source = copied_partition("plain", tmp_path)
    assert 0 == cli.run(["salvage", str(source), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr()
    assert f"{source}: everything kept: 1625234 of 1625234 bytes, 150 batches" in printed.out
    assert "gap" not in printed.out
    assert "1 partition saved" in printed.err


def test_gaps_are_told_and_make_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text with the offsets that are lost, and as one object for each gap."""
    corruption = next(one for one in CORRUPTIONS if one.name == "zeros in the middle")
    source = corruption.make(tmp_path)
    assert 1 == cli.run(["salvage", str(source), "--out", str(tmp_path / "out")])
    assert "26202 bytes broken, with the offsets 80 to 85" in capsys.readouterr().out
    again = ["salvage", str(source), "--out", str(tmp_path / "out2"), "--format", "jsonl"]
    assert 1 == cli.run(again)
    partition, gap = map(json.loads, capsys.readouterr().out.splitlines())
    assert list(PARTITION_FIELDS) == list(partition)
    assert (6, 1, []) == (partition["lost_offsets"], partition["gap_count"], partition["left_out"])
    assert {
        "path": str(source / "00000000000000000060.log"),
        "kind": "broken",
        "position": 66461,
        "size_bytes": 26202,
        "first_lost_offset": 80,
        "last_lost_offset": 85,
    } == gap


def test_what_cannot_be_done_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is not there, a directory that is not empty, a file: exit code 2, one line."""
    source = copied_partition("plain", tmp_path)
    for path, out in (
        (tmp_path / "nothing", tmp_path / "out"),
        (source, tmp_path),
        (source, source),
        (tmp_path, source / "partition.metadata"),
    ):
        assert 2 == cli.run(["salvage", str(path), "--out", str(out)])
        printed = capsys.readouterr()
        assert "" == printed.out
        assert 1 == len(printed.err.splitlines()), printed.err
