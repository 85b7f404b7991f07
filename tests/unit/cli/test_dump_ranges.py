# SPDX-License-Identifier: Apache-2.0
"""`dump --from --to --max`: the rows that a reader of the whole file would pick, with few reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.findings import time_text
from segproof.kafka.record_file import LogAsFound
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys, jsonl

Row = dict[str, Any]
TXN = KAFKA / "txn-a" / "txn-a-0"
NAME = "00000000000000001014"
STORE = ROCKETMQ / "rolled-4.9.8" / "store"


def dumped(capsys: Capsys, *arguments: str | Path, code: int = 0) -> list[Row]:
    """Return the rows of a dump."""
    return jsonl(capsys, "dump", *arguments, code=code)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of a partition."""
    return copied_partition("txn-a", tmp_path)


def without_indexes(folder: Path) -> None:
    """Remove the indexes."""
    for path in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        path.unlink()


def with_shifted_indexes(folder: Path) -> None:
    """Let each entry have the numbers of the next but one: it leads behind what it should."""
    for path in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        data = bytearray(path.read_bytes())
        size = 8 if path.suffix == ".index" else 12
        for at in range(0, len(data) - 2 * size, size):
            data[at + size - 4 : at + size] = data[at + 3 * size - 4 : at + 3 * size]
        path.write_bytes(data)


def with_garbage(folder: Path) -> None:
    """Overwrite the indexes with bytes of something else."""
    for path in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        path.write_bytes(b"\x7f" * 8 * 12)


def with_entries_before_batches(folder: Path) -> None:
    """Let each entry lead eight bytes too far to the front, where a size of zero seems to be."""
    for path in folder.glob("*.index"):
        data = bytearray(path.read_bytes())
        for at in range(0, len(data), 8):
            position = int.from_bytes(data[at + 4 : at + 8], "big")
            data[at + 4 : at + 8] = (position - 8).to_bytes(4, "big")
        path.write_bytes(data)


@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize(
    ("scenario", "damage", "why"),
    [
        ("txn-a", with_entries_before_batches, "a size field is too small"),
        ("txn-a", with_shifted_indexes, "begins at offset"),
        ("v1-gzip", with_shifted_indexes, "begins at offset"),
    ],
)
def test_a_wrong_entry_is_not_followed(
    scenario: str,
    damage: Callable[[Path], None],
    why: str,
    tmp_path: Path,
    capsys: Capsys,
) -> None:
    """`dump` reads the sound log from its start; `lookup` says what is wrong."""
    folder = copied_partition(scenario, tmp_path)
    log = min(folder.glob("*.log"))
    whole = dumped(capsys, log)
    middle = whole[len(whole) // 2]["base_offset"]
    damage(folder)
    wanted = [row for row in whole if row["last_offset"] >= middle]
    assert wanted == dumped(capsys, log, "--from", str(middle))
    asked = ["lookup", str(folder), "--offset", str(middle), "--format", "jsonl"]
    assert 1 == cli.run(asked)
    assert why in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize(
    ("damage", "profile"),
    [
        (None, "segproof"),
        (None, "kafka-4.3.1"),
        (without_indexes, "segproof"),
        (with_shifted_indexes, "segproof"),
        (with_garbage, "segproof"),
    ],
)
def test_a_range_of_records_is_what_a_reader_of_all_picks(
    damage: Callable[[Path], None] | None,
    profile: str,
    folder: Path,
    capsys: Capsys,
) -> None:
    """By offset and by time, the first bound inclusive and the end exclusive, whatever the index.

    Shifted entries led behind the first wanted record.
    """
    log = folder / f"{NAME}.log"
    whole = [row for row in dumped(capsys, log, "--records") if "magic" not in row]
    if damage is not None:
        damage(folder)
    times = sorted({row["timestamp"] for row in whole})
    for number in (0, 700):
        offset, time = whole[number]["offset"], times[len(times) * number // 718]
        for field, first, shown in (("offset", offset, str), ("timestamp", time, time_text)):
            bounds = ["--from", shown(first), "--to", shown(first + 9), "--profile", profile]
            rows = dumped(capsys, log, "--records", *bounds)
            assert [row for row in whole if first <= row[field] < first + 9] == [
                row for row in rows if "magic" not in row
            ]


def test_a_batch_is_chosen_by_the_offsets_that_it_has(capsys: Capsys) -> None:
    """A batch of offsets 1014 to 1028 has offset 1020.

    `--max` counts batches, or with --records records.
    """
    log = TXN / f"{NAME}.log"
    whole = dumped(capsys, log)
    [one] = dumped(capsys, log, "--from", "1020", "--to", "1021")
    assert whole[0] == one
    assert whole[1:4] == dumped(capsys, log, "--from", "1029", "--max", "3")
    rows = dumped(capsys, log, "--from", "1028", "--max", "2", "--records")
    assert [1028, 1029] == [row["offset"] for row in rows if "magic" not in row]
    assert [] == dumped(capsys, log, "--from", "999999")


def test_the_last_records_are_read_without_the_whole_log(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """The indexes lead near the end: of 208 batches a few are looked at."""
    log, looked_at = TXN / f"{NAME}.log", []
    batches = dumped(capsys, log)
    right = LogAsFound._batch_at

    def counted(self: LogAsFound, position: int, limit: int) -> Any:
        looked_at.append(position)
        return right(self, position, limit)

    monkeypatch.setattr(LogAsFound, "_batch_at", counted)
    last = batches[-1]
    for first in (str(last["base_offset"]), time_text(last["max_timestamp"])):
        looked_at.clear()
        assert last == dumped(capsys, log, "--from", first)[-1]
        assert len(looked_at) < len(batches) / 4
        assert min(looked_at) > log.stat().st_size / 2


def test_indexes_and_queues_are_cut_too(capsys: Capsys) -> None:
    """An aborted transaction is shown if it has a wanted offset; a unit by its number."""
    aborted = TXN / "00000000000000001732.txnindex"
    assert [row for row in dumped(capsys, aborted) if row["last_offset"] >= 2300] == dumped(
        capsys, aborted, "--from", "2300"
    )
    queue = min(STORE.glob("consumequeue/*/*/*"))
    assert dumped(capsys, queue)[2:4] == dumped(capsys, queue, "--from", "2", "--to", "4")
    log = min(STORE.glob("commitlog/*"))
    messages = dumped(capsys, log)
    assert messages[3:5] == dumped(
        capsys, log, "--from", str(messages[3]["phy_offset"]), "--max", "2"
    )
    assert messages[3:5] == dumped(
        capsys, log, "--from", str(messages[3]["phy_offset"] - 1), "--max", "2"
    )
    store_time = messages[5]["store_timestamp"]
    assert [row for row in messages if row["store_timestamp"] >= store_time] == dumped(
        capsys, log, "--from", time_text(store_time)
    )
    index = min(STORE.glob("index/*"))
    header, *entries = dumped(capsys, index)
    assert [header, *entries[:2]] == dumped(capsys, index, "--max", "2")


def test_damage_behind_the_range_is_not_looked_for(folder: Path, capsys: Capsys) -> None:
    """What is before the damage is shown with exit code 0; a range that reaches it ends with 1."""
    log = folder / f"{NAME}.log"
    rows = dumped(capsys, log)
    at = rows[50]["position"]
    put_bytes(log, at + 8, b"\0\0\0\1")
    end = str(rows[40]["base_offset"])
    assert rows[:40] == dumped(capsys, log, "--to", end)
    assert rows[:50] == dumped(capsys, log, code=1)
    assert rows[60:] == dumped(capsys, log, "--from", str(rows[60]["base_offset"]))


@pytest.mark.parametrize(
    ("name", "bound", "why"),
    [
        (f"{NAME}.index", "2026-11-21T01:00Z", "its entries have no times"),
        ("leader-epoch-checkpoint", "5", "--from and --to are for logs, indexes and queues"),
        (f"{NAME}.log", "2026-11-21", "has no time zone"),
        (f"{NAME}.log", "x", "'x' is no offset and no time"),
    ],
)
def test_a_range_that_means_nothing_is_refused(
    name: str, bound: str, why: str, capsys: Capsys
) -> None:
    """Exit code 2, and what to give instead."""
    assert 2 == cli.run(["dump", str(TXN / name), "--from", bound])
    assert why in capsys.readouterr().err


def test_an_empty_range_is_said(capsys: Capsys) -> None:
    """A person once saw nothing at all, and could not tell it from a broken pipe."""
    assert 0 == cli.run(["dump", str(TXN / f"{NAME}.log"), "--from", "99999"])
    assert ("", "nothing lies between --from and --to\n") == tuple(capsys.readouterr())
