# SPDX-License-Identifier: Apache-2.0
"""A salvage never joins two transactions where the marker between them is lost, and tells of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from segproof import verify
from segproof.findings import Severity
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import CONTROL, read_batch_headers
from segproof.kafka.producer_snapshot import ProducerStateEntry, read_snapshot_file, write_snapshot
from segproof.kafka.transaction_index import AbortedTxn, read_aborted_txns
from segproof.salvaging.salvage import salvage
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof_tests.partition_files import aged, copied_partition, name_of, write_segment

Damage = Callable[[Path], None]


def broken(log: int, offset: int) -> Damage:
    """Return what changes a byte of the batch that begins with an offset."""

    def damage(folder: Path) -> None:
        path = folder / name_of(log, ".log")
        data = bytearray(path.read_bytes())
        table = read_batch_headers(bytes(data)).table
        (row,) = table[table["base_offset"] == offset]
        data[int(row["position"] + row["size_bytes"]) - 1] ^= 1
        path.write_bytes(data)

    return damage


def zeros(log: int, position: int, size: int) -> Damage:
    """Return what writes zeros over a part of a log."""

    def damage(folder: Path) -> None:
        path = folder / name_of(log, ".log")
        data = bytearray(path.read_bytes())
        data[position : position + size] = bytes(size)
        path.write_bytes(data)

    return damage


def entries(folder: Path | str) -> list[tuple[int, ...]]:
    """Return the entries of all transaction indexes of a partition."""
    paths = sorted(Path(folder).glob("*.txnindex"))
    return [tuple(one.tolist()) for path in paths for one in read_aborted_txns(path.read_bytes())]


def saved(folder: Path, out: Path) -> tuple[SalvagedPartition, str]:
    """Return what the salvage says of a partition, and where it was saved."""
    (told,) = salvage(aged(folder), out)
    assert told.target is not None
    return told, told.target


LOST = {
    "a commit, then an abort": (
        broken(1014, 1126),
        "producer 3 that begins at offset 1101 is lost",
    ),
    "an abort, then a commit": (broken(1014, 1189), "aborted at 1189. Its entry is kept"),
    "an abort of a transaction that began in the log before": (
        broken(1732, 1736),
        "aborted at 1736",
    ),
    "the last batch of a log": (broken(0, 1013), "aborted at 1013"),
    "many batches": (zeros(0, 129974, 20000), "an offset from 672 to 792: by the old files it was"),
}


@pytest.mark.checks("PROD-9", "TXNIDX-7", "DISK-74")
@pytest.mark.parametrize("case", LOST)
def test_the_entries_stay_as_they_were(case: str, tmp_path: Path) -> None:
    """Old entries are kept if a batch of them is; each lost end is told, by verify too."""
    damage, words = LOST[case]
    folder = copied_partition("txn-a", tmp_path / "in")
    before = entries(folder)
    damage(folder)
    assert {"DISK-11"}.isdisjoint(one.law for one in verify(folder))
    told, target = saved(folder, tmp_path / "out")
    lost = range(672, 793) if case == "many batches" else ()
    assert [one for one in before if one[2] not in lost or one[3] not in lost] == entries(target)
    assert any(words in one for one in told.lost_markers)
    found = list(verify(target))
    assert "DISK-74" in {one.law for one in found}
    assert Severity.ERROR not in {one.severity for one in found}


SILENT = {
    "a batch of records, whose sequence numbers are missing": broken(1014, 1035),
    "a commit before a commit": broken(0, 966),
}


@pytest.mark.checks("PROD-9", "DISK-74")
@pytest.mark.parametrize("case", SILENT)
def test_where_no_reader_could_tell_nothing_is_said(case: str, tmp_path: Path) -> None:
    """A marker fits into no gap that one producer's records fill."""
    folder = copied_partition("txn-a", tmp_path / "in")
    before = entries(folder)
    SILENT[case](folder)
    told, target = saved(folder, tmp_path / "out")
    assert (before, []) == (entries(target), told.lost_markers)
    assert "DISK-74" not in {one.law for one in verify(target)}


def test_without_damage_nothing_is_said(tmp_path: Path) -> None:
    """The indexes are those of the broker."""
    folder = copied_partition("txn-a", tmp_path / "in")
    told, target = saved(folder, tmp_path / "out")
    assert (entries(folder), []) == (entries(target), told.lost_markers)


# --- logs of a few batches


def batch(offset: int, sequence: int, epoch: int = 0, producer: int = 7) -> bytes:
    """Return a batch of one record in a transaction."""
    return write_batch(
        [Record(offset, 1_000, b"k", b"v")], base_offset=offset, producer_id=producer,
        producer_epoch=epoch, base_sequence=sequence, is_transactional=True,
    )  # fmt: skip


def marker(offset: int, kind: str, epoch: int = 0) -> bytes:
    """Return a marker of producer 7."""
    key = bytes((0, 0, 0, ("ABORT", "COMMIT").index(kind)))
    return write_batch(
        [Record(offset, 1_000, key, bytes(6))], base_offset=offset, producer_id=7,
        producer_epoch=epoch, is_transactional=True, is_control=True,
    )  # fmt: skip


def partition(
    folder: Path,
    *batches: bytes,
    aborted: list[AbortedTxn] | None = None,
    snapshot: tuple[int, int | None] | None = None,
) -> Path:
    """Write a log whose batch number 2 is damaged, and what the old files say."""
    data = [*batches]
    data[1] = data[1][:-1] + bytes([data[1][-1] ^ 1])
    write_segment(folder, b"".join(data))

    if aborted is not None:
        index = b"".join(one.to_bytes() for one in aborted)
        (folder / name_of(0, ".txnindex")).write_bytes(index)
    if snapshot is not None:
        offset, begin = snapshot
        entry = ProducerStateEntry(7, 0, -1, 1_000, begin)
        (folder / name_of(offset, ".snapshot")).write_bytes(write_snapshot([entry]))
    return folder


TWO = (batch(0, 0), marker(1, "COMMIT"), batch(2, 1), marker(3, "ABORT"))
NEW_EPOCH = (batch(0, 0), marker(1, "COMMIT"), batch(2, 0, 1), marker(3, "ABORT", 1))
OPEN = (batch(0, 0), marker(1, "COMMIT"), batch(2, 0, producer=8))
SECOND = AbortedTxn(0, 7, 2, 3, 4)


@pytest.mark.checks("PROD-9", "PROD-14")
@pytest.mark.parametrize(
    ("batches", "aborted", "snapshot", "due", "words"),
    [
        (TWO, [SECOND], None, [(2, 3)], "is lost, at offset 1: by the old files it was committed"),
        (TWO, [AbortedTxn(0, 7, 0, 3, 4)], None, [(0, 3)], ""),
        (TWO, [AbortedTxn(0, 7, 0, 1, 2), SECOND], None, [(0, 1), (2, 3)], "was aborted at 1"),
        (TWO, None, (3, 2), [(2, 3)], "is lost, at offset 1: no file says whether"),
        (TWO, None, (3, 0), [(0, 3)], ""),
        (NEW_EPOCH, None, None, [(2, 3)], "is lost, at offset 1: no file says whether"),
        (TWO, None, None, [(2, 3)], "may be lost, at offset 1: no file says whether it ended"),
        (OPEN, None, (3, None), [], "is lost, at offset 1: no file says whether"),
        (OPEN, None, None, [], "get nothing from 0 on"),
    ],
)  # fmt: skip
def test_what_the_old_files_prove_is_used(
    batches: tuple[bytes, ...],
    aborted: list[AbortedTxn] | None,
    snapshot: tuple[int, int | None] | None,
    due: list[tuple[int, int]],
    words: str,
    tmp_path: Path,
) -> None:
    """An entry, a snapshot or a new epoch of the producer; where nothing proves it, it is said."""
    folder = partition(tmp_path / "t-0", *batches, aborted=aborted, snapshot=snapshot)
    told, target = saved(folder, tmp_path / "out")
    assert due == [one[2:4] for one in entries(target)]
    assert bool(words) == len(told.lost_markers) == sum(words in one for one in told.lost_markers)


@pytest.mark.checks("PROD-14", "DISK-74")
def test_a_snapshot_that_says_that_nothing_is_open_is_believed(tmp_path: Path) -> None:
    """Else consumers with read_committed would get nothing from the lost marker's begin on."""
    folder = partition(tmp_path / "t-0", *OPEN, snapshot=(3, None))
    told, target = saved(folder, tmp_path / "out")
    made = {
        one.producer_id: one for one in read_snapshot_file(Path(target) / name_of(3, ".snapshot"))
    }
    assert (None, 2, 1) == (made[7].current_txn_first_offset, made[8].current_txn_first_offset,
                            told.open_transactions)  # fmt: skip
    found = [one for one in verify(target) if one.law in ("PROD-14", "DISK-74")]
    assert [("DISK-74", Severity.WARNING)] == [(one.law, one.severity) for one in found]


@pytest.mark.checks("PROD-14")
@pytest.mark.parametrize(("base", "begin"), [(2, None), (3, 2)])
def test_a_snapshot_knows_what_began_before_it(
    base: int, begin: int | None, tmp_path: Path
) -> None:
    """The first transaction ended in the gap; the second begins with the new segment, or before."""
    folder = partition(tmp_path / "t-0", *TWO[:base], aborted=[SECOND])
    write_segment(folder, b"".join(TWO[base:]), base)
    _, target = saved(folder, tmp_path / "out")
    (made,) = read_snapshot_file(Path(target) / name_of(base, ".snapshot"))
    assert begin == made.current_txn_first_offset


def test_a_control_batch_is_what_the_cases_break(tmp_path: Path) -> None:
    """The offsets of the cases are those of markers in the real log."""
    folder = copied_partition("txn-a", tmp_path / "in")
    markers: set[int] = set()
    for path in folder.glob("*.log"):
        table = read_batch_headers(path.read_bytes()).table
        markers |= set(table["base_offset"][table["attributes"] & CONTROL != 0].tolist())
    assert markers >= {966, 1013, 1126, 1189, 1736}
