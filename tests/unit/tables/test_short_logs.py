# SPDX-License-Identifier: Apache-2.0
"""A log that has lost its end, or lies under a wrong name, never makes a table short in silence.

`segproof.scan` and `segproof dump` answer alike: all rows, or an error, or rows with a warning.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import segproof
from segproof.errors import DamagedFileError
from segproof.files import REAL_FILES
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_tests.altered_files import altered
from segproof_tests.partition_files import aged, name_of, write_segment
from segproof_tests.printed_rows import Capsys
from segproof_tests.small_logs import batch
from segproof_tests.table_offsets import dumped, is_silent, scanned

pytestmark = pytest.mark.needs("pyarrow")

COUNT = 12
BATCHES = [batch(n, b"v" * 30, b"k") for n in range(COUNT)]
KEYLESS = [batch(n, b"v" * 31) for n in range(COUNT)]
SIZE = len(BATCHES[0])


def index_of(base: int, entries: list[int]) -> bytes:
    """Return an offset index with an entry for each of some batches."""
    return offset_entries(*((n - base, (n - base) * SIZE) for n in entries))


def times_of(base: int, entries: list[int]) -> bytes:
    """Return a time index with an entry for each of some batches."""
    return time_entries(*((1000 + n, n - base) for n in entries))


def partition(
    folder: Path, kept: int = COUNT, tail: int = 0, batches: list[bytes] = BATCHES
) -> Path:
    """Write a partition of three logs; the last one ends before offset `kept`."""
    for base, end in ((0, 4), (4, 8), (8, COUNT)):
        log = b"".join(batches[base : min(end, kept)])
        log += bytes(tail) if end == COUNT else b""
        write_segment(folder, log, base, index=index_of(base, [base + 1, end - 1]))
    return folder


def is_told(path: Path, capsys: Capsys, rows: list[int], word: str) -> None:
    """Demand that scan and dump give these rows, and say that others are missing."""
    for table in ("records", "batches"):
        with pytest.raises(DamagedFileError, match=word):
            scanned(path, table)
        for how in ("skip", "keep"):
            found, (warning,) = scanned(path, table, on_damage=how)
            assert (rows, True) == (found, word in warning)
    assert 1 == dumped(path, capsys)[1]
    for how in ("skip", "keep"):
        assert (rows, 1) == dumped(path, capsys, "--on-damage", how)


def by_snapshot(folder: Path) -> None:
    """Leave a producer snapshot of the end of the log alone."""
    (folder / name_of(8, ".index")).write_bytes(b"")
    (folder / name_of(COUNT, ".snapshot")).write_bytes(b"")


def by_checkpoint(name: str) -> Callable[[Path], None]:
    """Leave a line of a checkpoint of the data directory alone."""

    def write(folder: Path) -> None:
        (folder / name_of(8, ".index")).write_bytes(b"")
        (folder.parent / name).write_text(f"0\n2\nother 0 3\nt 0 {COUNT}\n")

    return write


def by_epoch(folder: Path) -> None:
    """Leave a leader epoch alone that begins after the end."""
    (folder / name_of(8, ".index")).write_bytes(b"")
    (folder / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n3 {COUNT - 1}\n")


def by_time_index(folder: Path) -> None:
    """Leave an entry of the time index alone."""
    (folder / name_of(8, ".index")).unlink()
    (folder / name_of(8, ".timeindex")).write_bytes(times_of(8, [8, 11]) + bytes(24))


PROOFS: dict[str, Callable[[Path], Any]] = {
    "offset index": lambda folder: None,
    "time index": by_time_index,
    "snapshot": by_snapshot,
    "recovery point": by_checkpoint("recovery-point-offset-checkpoint"),
    "high watermark": by_checkpoint("replication-offset-checkpoint"),
    "leader epoch": by_epoch,
}


@pytest.mark.checks("DISK-25", "DISK-36", "DISK-38", "DISK-64")
@pytest.mark.parametrize("tail", [0, 3 * SIZE])
@pytest.mark.parametrize("proof", PROOFS)
def test_a_last_log_that_lost_its_end(
    proof: str, tail: int, tmp_path: Path, capsys: Capsys
) -> None:
    """Zeros, or the end of the file, at the border of a batch ended a scan without a word."""
    folder = partition(tmp_path / "t-0", 9, tail)
    PROOFS[proof](folder)
    aged(folder)
    is_told(folder, capsys, [*range(9)], f"{name_of(8, '.log')}: byte {SIZE}: the log ends before")
    # The file alone says the same.
    with pytest.raises(DamagedFileError, match="the log ends before offset 9"):
        scanned(folder / name_of(8, ".log"))
    # What lies before it is whole.
    assert ([2, 3], []) == scanned(folder, where="offset >= 2 and offset < 4")
    assert ([2, 3], 0) == dumped(folder / name_of(0, ".log"), capsys, "--from", "2", "--to", "4")


@pytest.mark.checks("DISK-25")
@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("slots", [0, 5])
def test_a_preallocated_tail_stays_silent(
    proof: str, slots: int, tmp_path: Path, capsys: Capsys
) -> None:
    """The whole log, before zeros that a broker preallocated; each file beside it ends with it."""
    folder = partition(tmp_path / "t-0", COUNT, 3 * SIZE)
    PROOFS[proof](folder)
    index = folder / name_of(8, ".index")
    if index.exists():
        index.write_bytes(index.read_bytes() + bytes(8 * slots))
    aged(folder)
    is_silent(folder, capsys, [*range(COUNT)])


@pytest.mark.checks("DISK-25", "DISK-38")
def test_a_stray_beside_two_checkpoints_that_agree(tmp_path: Path, capsys: Capsys) -> None:
    """A clean stop says that the log ends where it does: a later snapshot is a stray."""
    folder = partition(tmp_path / "t-0")
    (folder / name_of(COUNT + 5, ".snapshot")).write_bytes(b"")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (tmp_path / name).write_text(f"0\n1\nt 0 {COUNT}\n")
    aged(folder)
    is_silent(folder, capsys, [*range(COUNT)])


@pytest.mark.checks("DISK-25")
@pytest.mark.parametrize(
    ("change", "batches"), [("zeros", BATCHES), ("cut", BATCHES), ("cut", KEYLESS)]
)
def test_a_closed_log_that_lost_its_end(
    change: str, batches: list[bytes], tmp_path: Path, capsys: Capsys
) -> None:
    """The next log begins at a later offset; its index, or records without keys, show the loss. A
    closed log that is named itself was taken for the last one, whose zeros are preallocated.
    """
    folder = partition(tmp_path / "t-0", batches=batches)
    log = folder / name_of(4, ".log")
    size = len(batches[0])
    log.write_bytes(log.read_bytes()[: 2 * size] + bytes(2 * size * (change == "zeros")))
    if batches is KEYLESS:
        (folder / name_of(4, ".index")).unlink()
    aged(folder)
    with pytest.raises(DamagedFileError, match=name_of(4, ".log")):
        scanned(log)
    is_told(folder, capsys, [0, 1, 2, 3, 4, 5, 8, 9, 10, 11], name_of(4, ".log"))


@pytest.mark.checks("DISK-13", "DISK-25")
@pytest.mark.parametrize("base", [0, 8])
def test_a_batch_that_is_there_twice_is_no_end(base: int, tmp_path: Path, capsys: Capsys) -> None:
    """An older batch at the end of a log was its end, and what was before it was called lost."""
    folder = partition(tmp_path / "t-0", batches=KEYLESS)
    log = folder / name_of(base, ".log")
    log.write_bytes(log.read_bytes() + KEYLESS[base])
    found, (warning,) = scanned(aged(folder), on_damage="skip")
    assert sorted([*range(COUNT), base]) == sorted(found)
    assert "the log ends before" not in warning
    is_told(folder, capsys, found, f"the log has reached offset {base + 3}")


def test_a_compacted_log_stays_silent(tmp_path: Path, capsys: Capsys) -> None:
    """Compaction leaves gaps at the end of a log, and cleans its index too."""
    folder = partition(tmp_path / "t-0")
    (folder / name_of(4, ".log")).write_bytes(b"".join(BATCHES[4:6]))
    (folder / name_of(4, ".index")).write_bytes(index_of(4, [5]))
    is_silent(aged(folder), capsys, [0, 1, 2, 3, 4, 5, 8, 9, 10, 11])


@pytest.mark.checks("DISK-4", "DISK-25")
@pytest.mark.parametrize("base", [4, 8])
def test_a_log_that_is_gone_beside_its_index(base: int, tmp_path: Path, capsys: Capsys) -> None:
    """The index alone shows that a log was between two others, or after the last one."""
    folder = partition(tmp_path / "t-0")
    (folder / name_of(base, ".log")).unlink()
    aged(folder)
    rest = [n for n in range(COUNT) if not base <= n < base + 4]
    is_told(folder, capsys, rest, name_of(base, ".index"))
    (folder / name_of(base, ".index")).write_bytes(bytes(80))  # preallocated, never written to
    is_silent(folder, capsys, rest)


WHERE = "offset >= 5 and offset < 8"
ASKED = ("--from", "5", "--to", "8")
NAMES = [name_of(base, ".log") for base in (5, 6, 7, 3, 2, 10, 9)]


@pytest.mark.checks("DISK-13", "FILE-1")
@pytest.mark.parametrize("name", NAMES)
def test_a_filter_finds_rows_under_a_wrong_name(name: str, tmp_path: Path, capsys: Capsys) -> None:
    """A condition on offsets passed over a log by a name that its batches contradict, or over the
    log before it, without a word.
    """
    folder = partition(tmp_path / "t-0")
    (folder / name_of(4, ".log")).rename(folder / name)
    aged(folder)
    for begin in range(COUNT):
        found, warned = scanned(folder, where=f"offset >= {begin} and offset < {begin + 2}")
        assert ([*range(begin, min(begin + 2, COUNT))], []) == (sorted(found), warned)
    found, warned = scanned(folder, "batches", where="base_offset >= 5 and last_offset < 8")
    assert ([5, 6, 7], []) == (sorted(found), warned)
    alone, _ = scanned(folder / name, where=WHERE)
    assert [5, 6, 7] == alone
    assert [5, 6, 7] == sorted(dumped(folder, capsys, *ASKED)[0])
    assert [*range(COUNT)] == sorted(scanned(folder)[0]) == sorted(dumped(folder, capsys)[0])


UNREAD = ["4.log", "0004.log", f"{name_of(4, '.log')}.bak", "00000000000000000004.LOG", "copy.log"]


@pytest.mark.checks("FILE-1", "FILE-2")
@pytest.mark.parametrize("name", UNREAD)
def test_a_log_that_no_broker_reads_is_told(name: str, tmp_path: Path, capsys: Capsys) -> None:
    """The rows of a log with a wrong name were missing in a scan, without a word."""
    folder = partition(tmp_path / "t-0")
    log = folder / name_of(4, ".log")
    copy = folder / name
    copy.write_bytes(log.read_bytes())
    aged(folder)
    is_silent(folder, capsys, [*range(COUNT)])  # each of its batches is in another log
    log.unlink()
    (folder / name_of(4, ".index")).unlink()
    rest = [0, 1, 2, 3, 8, 9, 10, 11]
    for how in ("skip", "keep"):
        found, warned = scanned(folder, on_damage=how)
        assert (rest, True) == (found, any(str(copy) in one for one in warned))
        assert (rest, 1) == dumped(folder, capsys, "--on-damage", how)
    with pytest.raises(DamagedFileError, match="no broker reads a log of this name"):
        scanned(folder)
    with pytest.raises(DamagedFileError, match="no broker reads a log of this name"):
        scanned(folder, where=WHERE)
    assert ([9, 10], []) == scanned(folder, where="offset >= 9 and offset < 11")
    assert 1 == dumped(folder, capsys)[1]
    segments = segproof.scan(folder, table="segments", on_damage="keep").read_all()
    damage = segments["damage"].to_pylist()
    assert any("no broker reads" in (one or "") for one in damage)


def test_logs_that_wait_for_their_removal_stay_silent(tmp_path: Path, capsys: Capsys) -> None:
    """A broker has removed them: their rows are in no table, and `dump` of a folder showed them."""
    folder = partition(tmp_path / "t-0")
    for suffix in (".log", ".index"):
        os.rename(folder / name_of(0, suffix), folder / f"{name_of(0, suffix)}.deleted")
    is_silent(aged(folder), capsys, [*range(4, COUNT)])


@pytest.mark.parametrize("digits", [5000, 19, 0])
def test_a_checkpoint_with_a_wild_number_is_no_error(
    tmp_path: Path, capsys: Capsys, digits: int
) -> None:
    """A number of 5000 digits was an internal error: it is no offset, and no proof."""
    folder = partition(tmp_path / "t-0")
    text = f"0\n1\nt 0 {'9' * digits}\n"
    (tmp_path / "recovery-point-offset-checkpoint").write_text(text)
    for table in ("records", "batches"):
        assert [*range(COUNT)] == scanned(folder, table)[0]
    assert ([*range(COUNT)], 0) == dumped(folder, capsys)


def test_a_huge_checkpoint_is_not_read(tmp_path: Path) -> None:
    """One of 3 GiB was taken into memory whole."""
    folder = partition(tmp_path / "t-0")
    read: list[int] = []

    def open_file(path: str, **options: Any) -> Any:
        file = REAL_FILES.open(path, **options)
        if not path.endswith("-checkpoint"):
            return file

        def pread(size: int, position: int) -> bytes:
            read.append(size)
            return b""

        return altered(file, size=lambda: 3 << 30, pread=pread)

    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 99\n")
    assert [*range(COUNT)] == scanned(folder, files=altered(open=open_file))[0]
    assert [] == read
