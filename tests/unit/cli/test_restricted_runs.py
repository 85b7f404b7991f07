# SPDX-License-Identifier: Apache-2.0
"""What `verify` says where it was asked for some laws, or for one byte."""

import shutil
from pathlib import Path

from segproof_harness import cli
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import Capsys, jsonl
from segproof_tests.printed_rows import shown as run_verb


def run(capsys: Capsys, *arguments: str) -> str:
    """Run `verify`, which finds no defect; return what it wrote on standard output."""
    return run_verb(capsys, "verify", *arguments)


def test_a_restricted_run_says_what_it_did_not_check(tmp_path: Path, capsys: Capsys) -> None:
    """Sound by one law, or at one byte, is not sound: these said so of damaged partitions."""
    foreign = copied_partition("txn-a", tmp_path)
    shutil.copyfile(foreign / name_of(0, ".timeindex"), foreign / name_of(0, ".index"))
    assert 1 == cli.run(["verify", str(foreign), "--summary"])
    assert capsys.readouterr().out.startswith("index damage only: ")
    shown = run(capsys, str(foreign), "--law", "BATCH-3", "--summary")
    assert shown.startswith("no finding of BATCH-3: ")
    assert shown.endswith("; only BATCH-3 checked\n")
    index = str(foreign / name_of(0, ".index"))
    shown = run(capsys, index, "--law", "SEG-7", "--law", "BATCH-3", "--position", "1")
    assert shown.startswith(f"no finding of BATCH-3, SEG-7 at byte 1: {index}: ")
    shown = run(capsys, index, "--position", "1", "--summary")
    assert shown.startswith("no finding at byte 1: ")
    four = [word for law in ("SEG-7", "BATCH-3", "BATCH-16", "DISK-5") for word in ("--law", law)]
    shown = run(capsys, str(foreign), *four, "--position", "1", "--summary")
    assert shown.startswith("no finding of 4 laws at byte 1: ")
    assert 0 == cli.run(["verify", str(foreign), str(foreign), "--law", "BATCH-3", "--no-notes"])
    closing = capsys.readouterr().err
    assert "2 partitions: 2 no finding of BATCH-3; only BATCH-3 checked\n" in closing
    (told,) = jsonl(capsys, "verify", str(foreign), "--law", "BATCH-3", "--summary")
    assert ("sound", ["BATCH-3"]) == (told["verdict"], told["laws"])
    assert 0 == cli.run(["verify", str(foreign), "--law", "BATCH-3", "--format", "junit"])
    assert 'name="verdict" value="no finding of BATCH-3: ' in capsys.readouterr().out
