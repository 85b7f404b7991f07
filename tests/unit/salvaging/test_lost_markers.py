# SPDX-License-Identifier: Apache-2.0
"""A salvage never joins two transactions where the marker between them is lost, and tells of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from segproof import verify
from segproof.findings import Severity
from segproof.kafka.batch_table import CONTROL, read_batch_headers
from segproof.kafka.producer_snapshot import ProducerStateEntry, read_snapshot_file, write_snapshot
from segproof.kafka.transaction_index import AbortedTxn, read_aborted_txns
from segproof_harness.laws.file_damages import later
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.partition_files import copied_partition, name_of, write_segment
from segproof_tests.transactions import batch, entries, marker, open_in, saved

Damage = Callable[[Path], None]


@later
def broken(folder: Path, log: int, offset: int) -> None:
    """Return what changes a byte of the batch that begins with an offset."""
    path = folder / name_of(log, ".log")
    data = bytearray(path.read_bytes())
    table = read_batch_headers(bytes(data)).table
    (row,) = table[table["base_offset"] == offset]
    data[int(row["position"] + row["size_bytes"]) - 1] ^= 1
    path.write_bytes(data)


@later
def zeros(folder: Path, log: int, position: int, size: int) -> None:
    """Return what writes zeros over a part of a log."""
    path = folder / name_of(log, ".log")
    put_bytes(path, position, bytes(size))


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


SILENT: dict[str, Damage] = {
    "a batch of records, whose sequence numbers are missing": broken(1014, 1035),
    "a commit before a commit": broken(0, 966),
    "nothing": lambda folder: None,
}
"""Where no reader could tell: a marker fits into no gap that one producer's records fill."""


@pytest.mark.checks("DISK-11", "DISK-74")
@pytest.mark.parametrize("logs", [(0, 1014), (1014, 1732), (0, 1732)])
def test_no_marker_is_lost_that_another_log_has(logs: tuple[int, int], tmp_path: Path) -> None:
    """Two transaction indexes have each other's name: to make them new by the log is right."""
    folder = copied_partition("txn-a", tmp_path / "in")
    one, other = (folder / name_of(log, ".txnindex") for log in logs)
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    accused = {each.path for each in verify(folder, laws=["DISK-11", "DISK-74"])}
    assert {str(one), str(other)} == accused


# --- logs that are cut or gone, and what is saved once more


@later
def cut(folder: Path, log: int, size: int) -> None:
    """Return what cuts a log."""
    path = folder / name_of(log, ".log")
    path.write_bytes(path.read_bytes()[:size])


@later
def without(folder: Path, log: int, *suffixes: str) -> None:
    """Return what removes files of a segment."""
    for suffix in suffixes:
        (folder / name_of(log, suffix)).unlink()


SEGMENT = (".log", ".index", ".timeindex", ".txnindex")


@later
def without_middle(folder: Path, *kept: str) -> None:
    """Return what splits the last segment in two, and removes all files of the first but these."""
    data = (folder / name_of(1732, ".log")).read_bytes()
    table = read_batch_headers(data).table
    (row,) = table[table["base_offset"] == 1888]
    (folder / name_of(1888, ".log")).write_bytes(data[int(row["position"]) :])
    entries = read_aborted_txns((folder / name_of(1732, ".txnindex")).read_bytes())
    later = [AbortedTxn(*one.tolist()) for one in entries if one["last_offset"] >= 1888]
    index = b"".join(one.to_bytes() for one in later)
    (folder / name_of(1888, ".txnindex")).write_bytes(index)
    without(1732, *(one for one in (*SEGMENT, ".snapshot") if one not in kept))(folder)


@pytest.mark.checks("PROD-9", "PROD-14")
@pytest.mark.parametrize("damage", [without(1732, *SEGMENT), without(1732, ".log", ".txnindex")])
def test_no_entry_in_an_index_that_is_gone_proves_no_commit(damage: Damage, tmp_path: Path) -> None:
    """By the index that is gone producers 3 and 1 aborted these: they stay open."""
    folder = copied_partition("txn-a", tmp_path / "in")
    damage(folder)
    told, target = saved(folder, tmp_path / "out")
    begun = {3: 1708, 1: 1718}
    for producer, offset in begun.items():
        (words,) = [one for one in told.lost_markers if f"producer {producer} that" in one]
        assert "it ended, and no file says whether it was committed or aborted" in words
        assert f"readers of committed data get nothing from {offset} on" in words
    assert begun == open_in(target)[name_of(1732, ".snapshot")]
    assert "PROD-14" not in {one.law for one in verify(target)}


@pytest.mark.checks("DISK-74")
@pytest.mark.parametrize("kept", [(), (".snapshot",)])
def test_a_segment_that_is_gone_took_ends_of_transactions(
    kept: tuple[str, ...], tmp_path: Path
) -> None:
    """Both transactions that were open before it aborted in it; verify and salvage tell of them."""
    folder = copied_partition("txn-a", tmp_path / "in")
    without_middle(*kept)(folder)
    told, target = saved(folder, tmp_path / "out")
    for producer, offset in ((3, 1708), (1, 1718)):
        lost = f"the end of the transaction of producer {producer} that begins at offset {offset}"
        lost += " may be lost, at an offset from 1732 to 1887: "
        assert 1 == sum(lost in one for one in told.lost_markers)
        for place in (folder, Path(target)):
            found = list(verify(place, laws=["DISK-74"]))
            assert [Severity.WARNING] == [one.severity for one in found if lost in one.message]


AGAIN = {
    **{name: damage for name, (damage, _) in LOST.items()},
    **SILENT,
    "the last log is cut": cut(1732, 165684),
    "the last log ends in zeros": zeros(1732, 165684, 28691),
    "a closed log is cut": cut(1014, 150000),
    "the last segment is gone": without(1732, *SEGMENT),
    "a segment between is gone": without_middle(),
}


@pytest.mark.checks("PROD-9", "PROD-14", "TXNIDX-7", "DISK-74")
@pytest.mark.parametrize("case", AGAIN)
def test_a_second_salvage_keeps_what_the_first_decided(case: str, tmp_path: Path) -> None:
    """Its log lacks the markers, and its indexes and snapshots have what they said.

    Old entries are kept if a batch of them is; each lost end is told, by verify too.
    """
    folder = copied_partition("txn-a", tmp_path / "in")
    before = entries(folder)
    AGAIN[case](folder)
    first, target = saved(folder, tmp_path / "out")
    found = list(verify(target))
    laws = {one.law for one in found}
    if case in LOST:
        assert "DISK-11" not in {one.law for one in verify(folder)}
        lost = range(672, 793) if case == "many batches" else ()
        assert [one for one in before if one[2] not in lost or one[3] not in lost] == entries(
            target
        )
        assert any(LOST[case][1] in one for one in first.lost_markers)
        assert "DISK-74" in laws
        assert Severity.ERROR not in {one.severity for one in found}
    elif case in SILENT:
        assert (before, []) == (entries(target), first.lost_markers)
        assert "DISK-74" not in laws
    second, again = saved(Path(target), tmp_path / "again")
    assert (entries(target), open_in(target)) == (entries(again), open_in(again))
    assert first.open_transactions == second.open_transactions
    laws |= {one.law for one in verify(again)}
    assert {"PROD-14", "DISK-11", "DISK-12"}.isdisjoint(laws)
    told = [one for one in first.lost_markers if "by the old files it was" in one]
    begins = [one.partition(" is lost")[0] for one in told]
    assert all(any(begin in one and "so it stays" in one for one in second.lost_markers)
               for begin in begins)  # fmt: skip


@pytest.mark.checks("DISK-32", "DISK-74")
def test_a_commit_without_a_marker_is_told_once(tmp_path: Path) -> None:
    """By the snapshot that the salvage made, producer 2 has nothing open; nothing undoes it."""
    folder = copied_partition("txn-a", tmp_path / "in")
    cut(1732, 165684)(folder)
    with (folder / name_of(1732, ".txnindex")).open("ab") as index:
        index.write(AbortedTxn(0, 1, 2403, 2413, 2414).to_bytes())
    _, target = saved(folder, tmp_path / "out")
    assert {3: 2281} == open_in(target)[name_of(2325, ".snapshot")]
    found = list(verify(target))
    (lost,) = [one for one in found if one.law == "DISK-74"]
    assert "producer 2 that begins at offset 2317 is lost: by this snapshot" in lost.message
    assert "segproof salvage" not in str(lost.hint)
    notes = [one for one in found if one.law == "DISK-32" and "began at offset 2317" in one.message]
    assert [Severity.NOTE] == [one.severity for one in notes]
    assert "consumers with read_committed get its records" in notes[0].message


@later
def cut_index(folder: Path, log: int) -> None:
    """Return what takes a log's last ABORT marker and its entry, as a failure of power does."""
    path = folder / name_of(log, ".txnindex")
    data = path.read_bytes()
    path.write_bytes(data[: -read_aborted_txns(data).itemsize])
    broken(log, int(read_aborted_txns(data)["last_offset"][-1]))(folder)


@pytest.mark.checks("PROD-9", "PROD-14", "TXNIDX-7")
@pytest.mark.parametrize(
    ("damage", "producer", "begin"),
    [
        (cut_index(0), 2, 988),
        (cut_index(1014), 3, 1658),
        (cut_index(1732), 3, 2400),
        (cut(1732, 165684), 2, 2317),
    ],
)
def test_an_index_proves_no_commit_behind_its_last_entry(
    damage: Damage, producer: int, begin: int, tmp_path: Path
) -> None:
    """What followed that entry may be lost with the log's end: three of these were aborted."""
    folder = copied_partition("txn-a", tmp_path / "in")
    damage(folder)
    told, target = saved(folder, tmp_path / "out")
    of_it = f"producer {producer} that begins at offset {begin} is lost"
    (words,) = [one for one in told.lost_markers if of_it in one]
    assert "it ended, and no file says whether it was committed or aborted" in words
    last = max(open_in(target).items())[1] if begin > 1732 else {}
    assert (begin > 1732) == (last.get(producer) == begin)


# --- logs of a few batches


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
        entry = ProducerStateEntry(7, 0, -1, 1_001, begin)
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
        (TWO, [], (3, 2), [(2, 3)], "is lost, at offset 1: it ended, and no file says whether"),
        (TWO, None, (3, 2), [(2, 3)], "is lost, at offset 1: it ended, and no file says whether"),
        (TWO, None, (3, 0), [(0, 3)], ""),
        (NEW_EPOCH, None, None, [(2, 3)], "is lost, at offset 1: it ended, and no file says"),
        (TWO, None, None, [(2, 3)], "may be lost, at offset 1: no file says whether it ended"),
        (OPEN, None, (3, None), [], "It stays open, and readers of committed data get nothing"),
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


@pytest.mark.checks("PROD-9", "TXNIDX-7")
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_commit_joins_no_transaction_behind_the_last_entry(
    is_whole: bool, tmp_path: Path
) -> None:
    """The lost marker may be the ABORT whose entry the index lost: without a word all is read."""
    data = [batch(0, 0, producer=9), marker(1, "ABORT", producer=9), batch(2, 0)]
    data += [marker(3, "ABORT"), batch(4, 1), marker(5, "COMMIT")]
    old = [AbortedTxn(0, 9, 0, 1, 2)]
    if is_whole:
        data += [batch(6, 1, producer=9), marker(7, "ABORT", producer=9)]
        old.append(AbortedTxn(0, 9, 6, 7, 8))
    data[3] = bytes(len(data[3]))
    folder = write_segment(tmp_path / "t-0", b"".join(data))
    (folder / name_of(0, ".txnindex")).write_bytes(b"".join(one.to_bytes() for one in old))
    told, target = saved(folder, tmp_path / "out")
    assert entries(folder) == entries(target)
    assert is_whole == (not told.lost_markers)
    assert all(
        "producer 7 that begins at offset 2 may be lost, at offset 3: no file says whether" in one
        for one in told.lost_markers
    )


@pytest.mark.checks("PROD-14", "DISK-74")
def test_a_commit_that_is_proven_is_kept_by_every_further_salvage(tmp_path: Path) -> None:
    """Else consumers with read_committed would get nothing from the lost marker's begin on."""
    entry = AbortedTxn(0, 9, 3, 4, 5)
    others = batch(3, 0, producer=9), marker(4, "ABORT", producer=9)
    folder = partition(tmp_path / "t-0", *OPEN, *others, aborted=[entry], snapshot=(5, None))
    told, target = saved(folder, tmp_path / "out")
    assert any("by the old files it was committed" in one for one in told.lost_markers)
    for number in range(2):
        opened = open_in(target)[name_of(5, ".snapshot")]
        assert ({8: 2}, 1) == (opened, told.open_transactions)
        found = [one for one in verify(target) if one.law in ("PROD-14", "DISK-74")]
        assert [("DISK-74", Severity.WARNING)] == [(one.law, one.severity) for one in found]
        told, target = saved(Path(target), tmp_path / f"again{number}")
        (words,) = told.lost_markers
        assert "by the old files it had ended. These were made after the loss" in words


@pytest.mark.checks("PROD-14")
def test_a_transaction_of_which_nobody_knows_how_it_ended_stays_open(tmp_path: Path) -> None:
    """Its records may be aborted ones: nobody reads them before a person has decided."""
    folder = partition(tmp_path / "t-0", *OPEN, snapshot=(3, None))
    for number in range(2):
        told, target = saved(folder, tmp_path / f"out{number}")
        opened = open_in(target)[name_of(3, ".snapshot")]
        assert ({7: 0, 8: 2}, 2) == (opened, told.open_transactions)
        assert {"PROD-14", "DISK-74"}.isdisjoint(one.law for one in verify(target))
        folder = Path(target)


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


@pytest.mark.checks("PROD-9", "DISK-74")
def test_an_entry_shows_the_end_in_a_hole_that_no_gap_tells(tmp_path: Path) -> None:
    """Batches touch there, as compaction leaves them: the salvage said "everything kept"."""
    folder = tmp_path / "t-0"
    write_segment(folder, b"".join((batch(0, 0), batch(5, 1), marker(6, "ABORT"))))
    (folder / name_of(0, ".txnindex")).write_bytes(AbortedTxn(0, 7, 5, 6, 7).to_bytes())
    told, target = saved(folder, tmp_path / "out")
    assert ([(5, 6)], 0) == ([one[2:4] for one in entries(target)], told.gap_count)
    (words,) = told.lost_markers
    assert "producer 7 that begins at offset 0 is lost, at an offset from 1 to 4" in words


def test_a_control_batch_is_what_the_cases_break(tmp_path: Path) -> None:
    """The offsets of the cases are those of markers in the real log."""
    folder = copied_partition("txn-a", tmp_path / "in")
    markers: set[int] = set()
    for path in folder.glob("*.log"):
        table = read_batch_headers(path.read_bytes()).table
        markers |= set(table["base_offset"][table["attributes"] & CONTROL != 0].tolist())
    assert markers >= {966, 1013, 1126, 1189, 1736}
