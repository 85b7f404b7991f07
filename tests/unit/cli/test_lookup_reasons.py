# SPDX-License-Identifier: Apache-2.0
"""Why `lookup` has no answer, and each step to it, for each kind of place where there is none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.kafka import Record, write_batch
from segproof_harness import cli
from segproof_tests.printed_rows import Capsys


def some(base: int, count: int, timestamp: int) -> bytes:
    """Return a batch with timestamps a millisecond apart."""
    records = [Record(base + number, timestamp + number, None, b"v") for number in range(count)]
    return write_batch(records, base_offset=base, partition_leader_epoch=0)


@pytest.fixture
def holes(tmp_path: Path) -> Path:
    """Return a partition with holes in a segment and between two, and empty logs."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for base, data in (
        (100, some(100, 5, 1000) + some(110, 5, 2000)),
        (115, b""),
        (130, some(140, 2, 3000)),
        (142, b""),
    ):
        (folder / f"{base:020d}.log").write_bytes(data)
    return folder


def asked(capsys: Capsys, folder: Path, *options: str) -> dict[str, Any]:
    """Return the row of one lookup with its steps."""
    cli.run(["lookup", str(folder), *options, "--explain", "--format", "jsonl"])
    row: dict[str, Any] = json.loads(capsys.readouterr().out)
    return row


def steps_of(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what was done to which segment."""
    return [(step["action"], Path(step["path"]).name.lstrip("0")) for step in row["steps"]]


def test_below_the_log_start(holes: Path, capsys: Capsys) -> None:
    """The first segment begins later."""
    row = asked(capsys, holes, "--offset", "99")
    assert "below the first segment, which begins at offset 100" == row["reason"]
    assert [("segment", "t-0")] == steps_of(row)


def test_an_index_that_leads_behind_its_log(holes: Path, capsys: Capsys) -> None:
    """The log may have lost its end: the advice was to make the index new, which shows that."""
    (holes / f"{100:020d}.index").write_bytes((12).to_bytes(4, "big") + (999).to_bytes(4, "big"))
    reason = asked(capsys, holes, "--offset", "113")["reason"]
    assert "points to byte 999 of the log, where there is a log of " in reason
    assert "whether the log has lost its end" in reason
    assert "rebuilt" not in reason


ORDERS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], dict[int, tuple[int, int, str]]]] = {
    "a base offset has a wrong bit": (
        lambda some: [*some[:3], (1 << 40).to_bytes(8, "big") + some[3][8:], *some[4:]],
        {
            7: (6, 3, "has a wrong base offset, and belongs at offset 6"),
            13: (12, 6, "has a wrong base offset, and belongs at offset 6"),
        },
    ),
    "two batches changed places": (
        lambda some: [*some[:3], some[4], some[3], *some[5:]],
        {5: (4, 2, ""), 7: (6, 4, "lies in a wrong place"), 11: (10, 5, "")},
    ),
    "a batch of elsewhere lies between": (
        lambda some: [*some[:3], batch_of(3000, 3), *some[3:]],
        {5: (4, 2, ""), 7: (6, 4, "does not belong where it lies")},
    ),
    "compaction has removed some": (
        lambda some: [*some[:3], *some[5:]],
        {7: (10, 3, ""), 11: (10, 3, "")},
    ),
}


def batch_of(base: int, count: int) -> bytes:
    """Return a batch of one time."""
    return some(base, count, 1000)


@pytest.mark.checks("SEG-12", "DISK-13")
@pytest.mark.parametrize("order", ORDERS)
def test_the_answer_is_a_batch_that_a_salvage_keeps(
    order: str, tmp_path: Path, capsys: Capsys
) -> None:
    """One wrong bit in a base offset hid all batches after it, and it was the answer for them."""
    change, answers = ORDERS[order]
    folder = tmp_path / "t-0"
    folder.mkdir()
    parts = change([batch_of(2 * number, 2) for number in range(40)])
    (folder / f"{0:020d}.log").write_bytes(b"".join(parts))
    for target, (base, number, words) in answers.items():
        code = cli.run(["lookup", str(folder), "--offset", str(target), "--format", "jsonl"])
        row = json.loads(capsys.readouterr().out)
        assert (base, sum(map(len, parts[:number]))) == (
            row["batch_base_offset"], row["batch_position"],
        )  # fmt: skip
        assert row["batch_size"] == len(parts[number])
        assert code == bool(words) == row.get("is_damaged", False)
        assert words in row.get("reason", "")


@pytest.mark.checks("SEG-39", "DISK-13")
@pytest.mark.parametrize(
    ("order", "number", "offset", "words"),
    [
        ("a base offset has a wrong bit", 3, 6, "has a wrong base offset, and belongs at offset 6"),
        ("a base offset has a wrong bit", 2, 4, ""),
        ("two batches changed places", 3, 8, "lies in a wrong place"),
        ("a batch of elsewhere lies between", 3, 3000, "does not belong where it lies"),
        ("compaction has removed some", 3, 10, ""),
    ],
)
def test_the_offset_of_a_time_is_that_of_its_place(
    order: str, number: int, offset: int, words: str, tmp_path: Path,
    capsys: Capsys,
) -> None:  # fmt: skip
    """It was the offset that a wrong bit made of it, with exit code 0."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    parts = ORDERS[order][0]([batch_of(2 * number, 2) for number in range(40)])
    parts[number] = later(parts[number])
    (folder / f"{0:020d}.log").write_bytes(b"".join(parts))
    code = cli.run(["lookup", str(folder), "--timestamp", "9000", "--format", "jsonl"])
    row = json.loads(capsys.readouterr().out)
    assert offset == row["offset"]
    assert code == bool(words) == row.get("is_damaged", False)
    assert words in row.get("reason", "")


def later(data: bytes) -> bytes:
    """Return a batch at a later time, with the base offset that it has."""
    base = int.from_bytes(data[:8], "big")
    return data[:8] + some(0, 3 if base == 3000 else 2, 9000)[8:]


@pytest.mark.parametrize("target", [142, 500])
def test_beyond_the_end(holes: Path, target: int, capsys: Capsys) -> None:
    """The reason tells where the last batch ends, also where the last segment has none."""
    row = asked(capsys, holes, "--offset", str(target))
    words = f"no batch of the partition reaches offset {target}: the last one ends at 141"
    assert words == row["reason"]
    expected = [("segment", "t-0"), ("offset-index", "142.index"), ("scan", "142.log")]
    assert expected == steps_of(row)


def test_holes_of_compaction(holes: Path, capsys: Capsys) -> None:
    """An offset in a hole is answered by the first batch behind it, in a later segment too."""
    assert (100, 110) == found(asked(capsys, holes, "--offset", "107"))
    row = asked(capsys, holes, "--offset", "120")
    assert (130, 140) == found(row)
    assert [
        ("segment", "t-0"),
        ("offset-index", "115.index"),
        ("scan", "115.log"),
        ("next-segment", "130.log"),
        ("offset-index", "130.index"),
        ("scan", "130.log"),
    ] == steps_of(row)


def found(row: dict[str, Any]) -> tuple[int, int]:
    """Return the segment and the batch that were found."""
    return row["segment_base_offset"], row["batch_base_offset"]


def test_later_than_all(holes: Path, capsys: Capsys) -> None:
    """The reason tells the largest timestamp, the steps that of each segment."""
    row = asked(capsys, holes, "--timestamp", "9999")
    asked_for, largest = "1970-01-01T00:00:09.999Z", "1970-01-01T00:00:03.001Z"
    expected = f"no segment has a timestamp of {asked_for} or later: the largest is {largest}"
    assert expected == row["reason"]
    assert [2004, -1, 3001, -1] == [step["facts"]["timestamp"] for step in row["steps"]]


def test_empty_log(tmp_path: Path, capsys: Capsys) -> None:
    """A partition that was just made has no batch and no timestamp."""
    (tmp_path / f"{7:020d}.log").touch()
    row = asked(capsys, tmp_path, "--offset", "7")
    assert "no batch of the partition reaches offset 7: it has none" == row["reason"]
    row = asked(capsys, tmp_path, "--timestamp", "5")
    assert (
        "no segment has a timestamp of 1970-01-01T00:00:00.005Z or later: there is none"
        == row["reason"]
    )


@pytest.mark.parametrize("output", ["text", "jsonl"])
def test_index_astray(holes: Path, output: str, capsys: Capsys) -> None:
    """A wrong entry is told with its slot: the steps up to the error are shown; there were none."""
    (holes / f"{100:020d}.index").write_bytes(bytes([0, 0, 0, 14, 0, 0, 0, 7]))
    command = ["lookup", str(holes), "--offset", "114", "--explain", "--format", output]
    assert 1 == cli.run(command)
    out = capsys.readouterr().out
    assert "SEG-7" in out
    if output == "text":
        assert "slot 0 of 1 for 114: offset 114, position 7" in out
    else:
        steps = steps_of(json.loads(out))
        assert [("segment", "t-0"), ("offset-index", "100.index")] == steps


def test_leftover_entries(holes: Path, capsys: Capsys) -> None:
    """Entries that a truncation left in the last index are passed over, and that is told."""
    (holes / f"{142:020d}.log").write_bytes(some(142, 3, 4000))
    (holes / f"{142:020d}.index").write_bytes(bytes([0, 0, 0, 2, 0, 0, 9, 0]) + bytes(80))
    assert 0 == cli.run(["lookup", str(holes), "--offset", "144", "--explain"])
    out = capsys.readouterr().out
    assert "batch_base_offset: 142" in out
    assert "1 entry that no batch fits was passed over" in out


def test_zeros_behind_the_last_batch(tmp_path: Path, capsys: Capsys) -> None:
    """The tail of a preallocated log is no damage to any verb.

    A release that scans it before it recovers the log raises an error, and so does its profile.
    """
    log = some(0, 2, 1000) + some(2, 2, 1002) + bytes(70_000)
    (tmp_path / "00000000000000000000.log").write_bytes(log)
    (tmp_path / "00000000000000000000.index").write_bytes(b"")
    (tmp_path / "00000000000000000000.timeindex").write_bytes(b"")
    asked = ["lookup", str(tmp_path), "--format", "jsonl"]
    for offset in range(4):
        assert 0 == cli.run([*asked, "--offset", str(offset), "--timestamp", str(1000 + offset)])
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [offset // 2 * 2, offset] == [rows[0]["batch_base_offset"], rows[1]["offset"]]
    assert 0 == cli.run([*asked, "--offset", "4"])
    assert "the last one ends at 3" in capsys.readouterr().out
    assert 0 == cli.run(["dump", str(tmp_path), "--format", "jsonl"])
    shown = capsys.readouterr()
    assert 2 == len(shown.out.splitlines())
    assert "70000 zero bytes behind the last whole batch" in shown.err
    assert 0 == cli.run(["verify", str(tmp_path)])
    assert "70000 zero bytes follow the last batch" in capsys.readouterr().out
    for verb in ([*asked, "--offset", "3"], ["dump", str(tmp_path)]):
        assert 1 == cli.run([*verb, "--profile", "kafka-4.3.1"])
        assert "corrupt-record" in "".join(capsys.readouterr())


def test_zeros_and_more_are_damage(tmp_path: Path, capsys: Capsys) -> None:
    """Where anything follows the zeros they are no tail."""
    log = some(0, 1, 1000) + bytes(70_000) + b"x"
    (tmp_path / "00000000000000000000.log").write_bytes(log)
    for verb in (["lookup", str(tmp_path), "--offset", "1"], ["dump", str(tmp_path)]):
        assert 1 == cli.run(verb)
        assert "SCAN-2" in "".join(capsys.readouterr())


@pytest.mark.parametrize("question", ["--offset=102", "--timestamp=1002"])
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.checks("DUMP-6")
def test_a_wrong_size_before_the_answer(
    holes: Path, is_last: bool, question: str, capsys: Capsys
) -> None:
    """It ends a scan as a torn batch does; the answer was a later batch, or that none is there."""
    log = first_log(holes, is_last)
    data = log.read_bytes()
    log.write_bytes(data[:8] + b"\x7f" + data[9:])
    assert 1 == cli.run(["lookup", str(holes), question])
    shown = capsys.readouterr().out
    assert f"{log}: byte 0: the log can't be read" in shown
    assert f"sound batches follow, from byte {len(data) // 2} on [DUMP-6]" in shown


def test_an_error_of_a_batch_names_the_log_and_the_place(holes: Path, capsys: Capsys) -> None:
    """A wrong magic of 1 makes other fields of the header a codec that is none."""
    log = first_log(holes, True)
    data = log.read_bytes()
    log.write_bytes(data[:16] + b"\x01\x07" + data[18:])
    assert 1 == cli.run(["lookup", str(holes), "--offset", "102"])
    assert f"{log}: byte 0: " in capsys.readouterr().out


@pytest.mark.parametrize("question", ["--offset=112", "--timestamp=2002"])
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.checks("DUMP-6")
def test_a_torn_batch(holes: Path, is_last: bool, question: str, capsys: Capsys) -> None:
    """Of the last segment it is what a crash leaves, and no batch; of another one it is damage."""
    log = first_log(holes, is_last)
    data = log.read_bytes()
    log.write_bytes(data[:-1])
    assert int(not is_last) == cli.run(["lookup", str(holes), question])
    shown = capsys.readouterr().out
    assert (f"{log}: byte {len(data) // 2}: the log can't be read" in shown) != is_last
    assert (
        "the last one ends at 104" in shown or "the largest is 1970-01-01T00:00:01.004Z" in shown
    ) == is_last


def first_log(folder: Path, is_last: bool) -> Path:
    """Return the first log, which may become the last one."""
    first, *others = sorted(folder.glob("*.log"))
    for log in others if is_last else ():
        log.unlink()
    return first
