# SPDX-License-Identifier: Apache-2.0
"""The verb `salvage`: what it prints, its exit codes, what it refuses."""

import json
from dataclasses import fields
from pathlib import Path

from segproof.salvaging.salvage import SalvagedPartition
from segproof.verification import verify
from segproof_harness import cli
from segproof_tests.corruptions import CORRUPTIONS
from segproof_tests.partition_files import copied_partition, write_segment
from segproof_tests.printed_rows import Capsys, jsonl, shown
from segproof_tests.small_logs import batch


def test_a_sound_partition_is_kept_whole(tmp_path: Path, capsys: Capsys) -> None:
    """Exit code 0, and nothing of gaps."""
    source = copied_partition("plain", tmp_path)
    assert 0 == cli.run(["salvage", str(source), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr()
    assert f"{source}: everything kept: 1625234 of 1625234 bytes, 150 batches" in printed.out
    assert "gap" not in printed.out
    assert "1 partition saved" in printed.err


def test_gaps_are_told_and_make_exit_code_1(tmp_path: Path, capsys: Capsys) -> None:
    """As text with the offsets that are lost, and as one object for each gap."""
    corruption = next(one for one in CORRUPTIONS if one.name == "zeros in the middle")
    source = corruption.make(tmp_path)
    assert 1 == cli.run(["salvage", str(source), "--out", str(tmp_path / "out")])
    assert "26202 bytes broken, with the offsets 80 to 85" in capsys.readouterr().out
    again = ["salvage", str(source), "--out", str(tmp_path / "out2"), "--format", "jsonl"]
    assert 1 == cli.run(again)
    partition, gap = map(json.loads, capsys.readouterr().out.splitlines())
    names = [field.name for field in fields(SalvagedPartition)]
    assert [name for name in names if name != "gaps"] == list(partition)
    # All records have keys, and zeros took the headers: compaction may have left a part of the gap.
    assert (0, 6) == (partition["lost_offsets"], partition["unproven_offsets"])
    assert (1, []) == (partition["gap_count"], partition["left_out"])
    assert {
        "path": str(source / "00000000000000000060.log"),
        "kind": "broken",
        "position": 66461,
        "size_bytes": 26202,
        "first_lost_offset": 80,
        "last_lost_offset": 85,
    } == gap


def test_offsets_of_gaps_side_by_side_are_told_once(tmp_path: Path, capsys: Capsys) -> None:
    """A byte that a copy in text mode put before a base offset: "1 bytes", offsets twice."""
    batches = [*map(batch, range(4))]
    moved = (9).to_bytes(8, "big") + batches[2][8:]
    log = batches[0] + batches[1] + b"\r" + moved + batches[3]
    folder = write_segment(tmp_path / "t-0", log)
    assert 1 == cli.run(["salvage", str(folder), "--out", str(tmp_path / "out")])
    one, two = [line for line in capsys.readouterr().out.splitlines() if "  gap: " in line]
    assert one.endswith(": 1 byte broken, with the offsets 2 to 2")
    assert two.endswith(" misplaced, with the same offsets")


def test_a_batch_with_a_wrong_size_is_put_back(tmp_path: Path, capsys: Capsys) -> None:
    """Nothing is lost, so the exit code is 0, and `--records` has nothing to write."""
    source = copied_partition("plain", tmp_path)
    with (source / "00000000000000000060.log").open("r+b") as file:
        file.seek(25310)
        file.write(b"\x7f")
    told = [str(source), "--out", str(tmp_path / "out")]
    printed = shown(capsys, "salvage", *told, "--records")
    assert "everything kept: 1625234 of 1625234 bytes" in printed
    assert "restored: 1 batch with the right size or magic" in printed
    assert ["plain-0"] == [path.name for path in (tmp_path / "out").iterdir()]
    assert 0 == cli.run(["salvage", str(source), "--out", str(tmp_path / "b"), "--format", "jsonl"])
    assert 1 == json.loads(capsys.readouterr().out)["restored_headers"]


def test_records_of_broken_batches_get_a_file_of_their_own(tmp_path: Path, capsys: Capsys) -> None:
    """With the fields of `dump --records`. The new directory of the partition has no part in it."""
    source = copied_partition("plain", tmp_path)
    log = source / "00000000000000000060.log"
    dumped = jsonl(capsys, "dump", log, "--records")
    with log.open("r+b") as file:
        file.seek(25310)  # the size of the batch with the offsets 66 to 71
        file.write(b"\x7f")
        file.seek(30000)
        wrong = file.read(1)[0] ^ 4
        file.seek(30000)
        file.write(bytes([wrong]))
    out = tmp_path / "out"
    told = shown(capsys, "salvage", source, "--out", out, "--records", code=1)
    assert "6 by the checksum of their batch" in told
    path = out / "salvage-records.plain-0.jsonl"
    assert ["what `segproof salvage` kept beside the partitions"] == [
        one.message for one in verify(out) if one.path == str(path)
    ]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {("checksum", str(log), 25302)} == {
        (row.pop("evidence"), row.pop("path"), row.pop("batch_position")) for row in rows
    }
    assert [row for row in dumped if 66 <= row.get("offset", -1) <= 71] == [
        {name: value for name, value in row.items() if name != "is_transactional"} for row in rows
    ]
    again = [str(source), "--out", str(tmp_path / "out2"), "--records", "--format", "jsonl"]
    assert 1 == cli.run(["salvage", *again])
    partition = json.loads(capsys.readouterr().out.splitlines()[0])
    assert str(tmp_path / "out2" / path.name) == partition["records_path"]
    assert {"checksum": 6, "elsewhere": 0, "unknown": 0} == partition["cut_records"]


def test_without_a_whole_record_no_file_of_records_is_made(tmp_path: Path, capsys: Capsys) -> None:
    """Zeros over two batches leave none. A store of RocketMQ is refused."""
    corruption = next(one for one in CORRUPTIONS if one.name == "zeros in the middle")
    source = corruption.make(tmp_path / "bad")
    out = tmp_path / "out"
    cli.run(["salvage", str(source), "--out", str(out), "--records"])
    printed = capsys.readouterr().out
    names = {path.name for path in out.iterdir()}
    assert ("salvage-records.plain-0.jsonl" in names) == ("records of broken batches" in printed)
    assert ("records: no record" in printed) == ("salvage-records.plain-0.jsonl" not in names)
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    store = ["salvage", str(tmp_path / "store"), "--out", str(tmp_path / "new"), "--records"]
    assert 2 == cli.run(store)


def test_what_cannot_be_done_is_refused(tmp_path: Path, capsys: Capsys) -> None:
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


def test_the_last_line_says_what_to_move(tmp_path: Path, capsys: Capsys) -> None:
    """Of one partition its directory alone: the data directory around it stays where it is."""
    source = copied_partition("plain", tmp_path / "data")
    for path, wanted in (
        (source, "this partition away, and nothing else"),
        (source.parent, "move"),
    ):
        assert 0 == cli.run(["salvage", str(path), "--out", str(tmp_path / f"out-{path.name}")])
        (line,) = [one for one in capsys.readouterr().err.splitlines() if "to serve it" in one]
        assert wanted in line
        assert ("A broken disk" in line) == (path == source)
