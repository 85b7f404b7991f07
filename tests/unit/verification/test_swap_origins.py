# SPDX-License-Identifier: Apache-2.0
"""A whole `.swap` log that is not made of the logs whose place it takes at the next start."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.kafka import Record, RecordHeader, write_batch, write_empty_batch
from segproof.repair import salvage
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import name_of
from segproof_tests.printed_rows import Capsys

SWAP = name_of(0, ".log.swap")


def batch(first: int, end: int, kept: str = "all", *, value: bytes = b"v", **more: Any) -> bytes:
    """Return a batch, as it is or as a cleaning writes it again: the `kept` records of it."""
    numbers = {"all": range(first, end), "last": [end - 1], "first": [first], "none": ()}[kept]
    records = [
        Record(n, 1000 + n, b"k%d" % n, value, (RecordHeader(f"h{n}", b"x"),)) for n in numbers
    ]
    if not records:
        return write_empty_batch(first, end - 1, 1000 + end - 1, **more)
    return write_batch(records, base_offset=first, last_offset=end - 1, **more)


LOGS = {0: batch(0, 4) + batch(4, 8), 8: batch(8, 12), 12: batch(12, 16)}


def lay(folder: Path, swap: bytes, logs: dict[int, bytes] = LOGS) -> Path:
    """Write the logs of a partition, and a `.swap` log of base offset 0."""
    folder.mkdir(parents=True)
    for base, data in logs.items():
        (folder / name_of(base, ".log")).write_bytes(data)
    (folder / SWAP).write_bytes(swap)
    return folder


def told(folder: Path) -> dict[str, Finding]:
    """Return the findings of DISK-60, by the name of the file."""
    return {Path(one.path).name: one for one in verify(folder) if one.law == "DISK-60"}


def judged(swap: bytes, logs: dict[int, bytes] = LOGS) -> bool:
    """Return whether the law's predicate lets the files pass."""
    return LAWS["DISK-60"].predicate({0: swap}, logs, {})


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize(
    "swap",
    [
        LOGS[0],
        batch(0, 4, "last") + batch(4, 8, "first"),
        batch(0, 4, "none") + batch(4, 8),
        batch(4, 8, "last"),
        batch(0, 4, "last") + batch(4, 8) + batch(8, 12, "first"),
    ],
)
def test_what_a_cleaning_writes_is_made_of_the_logs(tmp_path: Path, swap: bytes) -> None:
    """A batch that is written again keeps its offsets, and what is left of its records."""
    assert not told(lay(tmp_path / "t-0", swap))
    assert judged(swap)


@pytest.mark.checks("DISK-60", "LOAD-1")
@pytest.mark.parametrize(
    ("swap", "at", "names"),
    [
        (batch(0, 4, value=b"w") + batch(4, 8), "0 to 3", [0]),
        (batch(0, 4) + batch(4, 8, "last", value=b"w"), "4 to 7", [0]),
        (batch(0, 3) + batch(3, 8), "0 to 2", [0]),
        (batch(0, 8), "0 to 7", [0]),
        (batch(0, 4, producer_id=7, producer_epoch=0, base_sequence=0) + batch(4, 8), "0 to 3",
         [0]),
        (batch(0, 4) + batch(4, 8) + batch(8, 12, value=b"w"), "8 to 11", [8]),
        (batch(0, 6) + batch(6, 12), "0 to 5", [0, 8]),
        (batch(0, 6) + batch(6, 11) + batch(11, 14), "0 to 5", [0, 8, 12]),
    ],
)  # fmt: skip
def test_a_swap_of_other_batches_is_an_error(
    tmp_path: Path, swap: bytes, at: str, names: list[int]
) -> None:
    """It was "sound": a start deletes the logs and serves what the other partition wrote."""
    folder = lay(tmp_path / "t-0", swap)
    found = told(folder)
    assert {SWAP, *(name_of(one, ".log") for one in names)} == set(found)
    assert not judged(swap)
    error = found.pop(SWAP)
    assert Severity.ERROR is error.severity
    assert {Severity.WARNING} == {one.severity for one in found.values()}
    assert f"its batch with the offsets {at} is not in {name_of(names[0], '.log')}" in error.message
    summaries: list[Summary] = []
    (load,) = (one for one in verify(folder, on_summary=summaries.append) if one.law == "LOAD-1")
    assert "see what DISK-60 says" in load.hint
    assert Verdict.SOUND is not summaries[-1].verdict
    (saved,) = salvage(folder, tmp_path / "out")
    assert (16, 0) == (saved.records, saved.lost_offsets)
    assert any("that it is not made of" in one for one in saved.left_out)


SPARSE = [(0, 10), (40, 45), (60, 65)]
WIDE = [(0, 10), (100, 105), (200, 205)]


def with_base(data: bytes, at: int, base: int) -> bytes:
    """Return batches with another base offset in the one at a position."""
    return data[:at] + base.to_bytes(8, "big") + data[at + 8 :]


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize("kept", ["all", "last", "first"])
@pytest.mark.parametrize(
    ("ranges", "base"), [(SPARSE, 44), (SPARSE, 41), (SPARSE, 20), (SPARSE, 300), (WIDE, 150)]
)
@pytest.mark.parametrize("is_old", [True, False])
def test_a_damaged_base_offset_makes_no_other_log(
    tmp_path: Path, kept: str, ranges: list[tuple[int, int]], base: int, is_old: bool
) -> None:
    """The right `.swap` log was an error, with the step that moves it out."""
    first, (begin, end), third = ranges
    log = batch(*first) + batch(begin, end) + batch(*third)
    swap = batch(*first, "last") + batch(begin, end, kept) + batch(*third)
    if is_old:
        log = with_base(log, len(batch(*first)), base)
    elif base == 300:
        return  # beyond what the old log reaches
    else:
        swap = with_base(swap, len(batch(*first, "last")), base)
    moved, size = (base, base + end - begin - 1), end - begin
    named = [(begin, begin + size - 1), moved] if is_old else [moved, (begin, begin + size - 1)]
    found = told(lay(tmp_path / "t-0", swap, {0: log}))
    assert not judged(swap, {0: log})
    warning = found[SWAP]
    assert warning.severity is Severity.WARNING
    assert "the base offset of one of the two is damaged" in warning.message
    offsets = [f"the offsets {low} to {high}" for low, high in named]
    assert f"its batch with {offsets[0]} has {offsets[1]} in {name_of(0, '.log')}" in (
        warning.message
    )
    assert "copy this file and that log away" in warning.hint
    assert "mv " not in warning.hint


@pytest.mark.checks("DISK-60")
def test_a_log_that_counts_otherwise_is_another_one(tmp_path: Path) -> None:
    """As one of a mirror: all its records are there, each as far away."""
    log = b"".join(batch(*one) for one in SPARSE)
    swap, at = log, 0
    for begin, end in SPARSE:
        swap = with_base(swap, at, begin + 1)
        at += len(batch(begin, end))
    log += batch(80, 90)
    assert told(lay(tmp_path / "t-0", swap, {0: log}))[SWAP].severity is Severity.ERROR


@pytest.mark.checks("DISK-60")
def test_other_records_beside_a_damaged_base_offset_are_told_first(tmp_path: Path) -> None:
    """A damaged base offset explains no batch but its own."""
    log = b"".join(batch(*one) for one in SPARSE)
    swap = batch(0, 10) + batch(40, 45) + batch(60, 65, value=b"w")
    log = with_base(log, len(batch(0, 10)), 44)
    error = told(lay(tmp_path / "t-0", swap, {0: log}))[SWAP]
    assert error.severity is Severity.ERROR
    assert "its batch with the offsets 60 to 64 is not in" in error.message


@pytest.mark.checks("DISK-60")
def test_the_printed_step_keeps_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The `.swap` log is moved out, with the indexes that would take the place of others."""
    folder = lay(tmp_path / "data" / "t-0", batch(0, 8, value=b"w"))
    (folder / name_of(0, ".index.swap")).write_bytes(b"")
    before = {path.name: path.read_bytes() for path in folder.glob("*.log")}
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    hint = told(folder)[SWAP].hint
    assert hint.startswith("stop the broker, and copy the partition's folder away. Only if")
    command = next(one for one in hint.split("`") if one.startswith("mkdir"))
    subprocess.run(["bash", "-ec", command], check=True)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    (moved,) = tmp_path.rglob(SWAP)
    assert moved.read_bytes() == batch(0, 8, value=b"w")
    assert (moved.parent / name_of(0, ".index.swap")).exists()
    assert not told(folder)


@pytest.mark.checks("DISK-60")
def test_what_is_sound_of_a_damaged_log_stays_beside_other_batches(tmp_path: Path) -> None:
    """A whole `.swap` log of another partition was read, and saved, in its place."""
    damaged = batch(0, 4) + batch(4, 8)[:-1] + b"?"
    swap = batch(0, 4, value=b"w") + batch(4, 8)
    logs = LOGS | {0: damaged}
    folder = lay(tmp_path / "t-0", swap, logs)
    assert {SWAP, name_of(0, ".log")} == set(told(folder))
    assert not judged(swap, logs)
    (saved,) = salvage(folder, tmp_path / "out")
    assert 12 == saved.records
    assert batch(0, 4) in (tmp_path / "out" / "t-0" / name_of(0, ".log")).read_bytes()


@pytest.mark.checks("DISK-60")
def test_a_log_of_a_real_partition_as_swap_of_another_one(tmp_path: Path) -> None:
    """With offsets that the other partition has too."""
    folder = tmp_path / "plain-0"
    shutil.copytree(partition_of(KAFKA / "plain"), folder)
    shutil.copyfile(partition_of(KAFKA / "txn-a") / name_of(0, ".log"), folder / SWAP)
    found = told(folder)
    assert found[SWAP].severity is Severity.ERROR
    assert name_of(0, ".log") in found
    # The real cleaner's output beside what it was made of is no such thing.
    again = tmp_path / "compacted-0"
    shutil.copytree(partition_of(KAFKA / "compacted"), again)
    first = min(again.glob("*.log"))
    shutil.copyfile(first, f"{first}.swap")
    assert not told(again)


@pytest.mark.checks("DISK-60")
@given(
    st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=5),
    st.lists(st.sampled_from(["all", "last", "first", "none", "gone"]), min_size=5, max_size=5),
    st.integers(0, 12),
    st.booleans(),
)
def test_one_and_the_same_judgment(
    sizes: list[int], kept: list[str], shift: int, has_other: bool
) -> None:
    """Of any cleaning, of a shift of its offsets, and of other values."""
    swap, at = b"", shift if shift % 4 == 1 else 0
    value = b"w" if has_other else b"v"
    for size, which in zip(sizes, kept, strict=False):
        swap += b"" if which == "gone" else batch(at, at + size, which, value=value)
        at += size
    files = MemoryFiles()
    for base, data in LOGS.items():
        write_file(files, f"t-0/{name_of(base, '.log')}", data)
    write_file(files, f"t-0/{SWAP}", swap)
    found = [one for one in verify("t-0", files=files) if one.law == "DISK-60"]
    assert judged(swap) is not bool(found)


INDEX, TIMES = name_of(0, ".index.swap"), name_of(0, ".timeindex.swap")
CLEANED = batch(0, 4, "last") + batch(4, 8, "first")


def dumped(folder: Path, *more: str) -> int:
    """Return the exit code of a dump of a folder."""
    return cli.run(["dump", str(folder), "--keys", "text", *more])


@pytest.mark.checks("DISK-60")
def test_a_dump_says_that_a_start_replaces_what_it_shows(tmp_path: Path, capsys: Capsys) -> None:
    """It ended with 0 and no word, where a table of the same folder is refused."""
    folder = lay(tmp_path / "t-0", batch(0, 8, value=b"w"))
    assert 1 == dumped(folder)
    err = capsys.readouterr().err
    assert SWAP in err
    assert "a starting broker puts this file in the place of others" in err
    assert "not made of them" in err


@pytest.mark.checks("LOAD-1")
@pytest.mark.parametrize("more", [(), ("--on-damage", "skip"), ("--format", "csv")])
def test_a_dump_beside_the_swap_of_a_cleaning_is_whole(
    tmp_path: Path, capsys: Capsys, more: tuple[str, ...]
) -> None:
    """It ended with 1, though each row was given; of CSV also by indexes, which have no row."""
    folder = lay(tmp_path / "t-0", CLEANED)
    for name in (INDEX, TIMES):
        (folder / name).write_bytes(b"")
    assert 0 == dumped(folder, *more)
    told = capsys.readouterr()
    assert [*range(16)] == [int(n) for n in re.findall(r"\bk([0-9]+)\b", told.out)]
    names = {name for name in (SWAP, INDEX, TIMES) if name in told.err}
    assert names == ({SWAP} if "csv" in more else {SWAP, INDEX, TIMES})
    assert "not made of them" not in told.err


@pytest.mark.checks("LOAD-1", "LOAD-2")
def test_a_dump_ends_with_1_where_a_swap_has_rows_alone(tmp_path: Path, capsys: Capsys) -> None:
    """Also one that a start deletes, and an index of a log that is in its place already."""
    folder = lay(tmp_path / "gone" / "t-0", CLEANED, {12: LOGS[12]})
    assert 1 == dumped(folder)
    assert "records wait in this file" in capsys.readouterr().err
    folder = lay(tmp_path / "cleaned" / "t-0", CLEANED, {12: LOGS[12]})
    (folder / name_of(0, ".log.cleaned")).write_bytes(b"")
    assert 1 == dumped(folder)
    assert "no other log here has all of its offsets 0 to 7" in capsys.readouterr().err
    folder = lay(tmp_path / "index" / "t-0", CLEANED)
    (folder / SWAP).replace(folder / name_of(0, ".log"))
    (folder / INDEX).write_bytes(b"")
    assert 1 == dumped(folder)
    assert INDEX in capsys.readouterr().err
    assert 0 == dumped(folder, "--format", "csv")
