# SPDX-License-Identifier: Apache-2.0
"""What `verify` says of a whole log: producers, transactions, epochs, and small files beside it.

What a lawful history can leave is silent or a note; what none can is an error.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidTransactionStateError
from segproof.files import REAL_FILES
from segproof.findings import Severity, Verdict
from segproof.kafka import Record, write_batch
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.log_config import LogConfig
from segproof.kafka.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof.processes import Workers
from segproof.verification import verify
from segproof.verifying import path_verification, producer_checks, transaction_checks
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import marker
from segproof_tests.altered_files import defects_on, disturbed
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.partition_files import copied_partition, name_of, write_segment
from segproof_tests.reported_findings import verified

DATA = KAFKA
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
EPOCHS = "leader-epoch-checkpoint"
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


def batch(
    offset: int,
    sequence: int = -1,
    *,
    producer: int = 7,
    epoch: int = 0,
    count: int = 1,
    time: int = 1000,
    **more: Any,
) -> bytes:
    """Return a batch of a producer; without a sequence, of none."""
    records = [Record(offset + row, time, b"key", b"v") for row in range(count)]
    if sequence >= 0:
        more |= {"producer_id": producer, "producer_epoch": epoch}
    return write_batch(records, base_offset=offset, base_sequence=sequence, **more)


def begin(offset: int, sequence: int, **more: Any) -> bytes:
    """Return a batch of a transaction."""
    return batch(offset, sequence, is_transactional=True, **more)


def end(
    offset: int, *, producer: int = 7, time: int = 1000, coordinator: int = 3, kind: str = "COMMIT"
) -> bytes:
    """Return a marker."""
    named = {"timestamp": time, "producer_id": producer, "coordinator_epoch": coordinator}
    return marker(offset, kind, **named)


def log(folder: Path, *segments: tuple[int, list[bytes]], **others: bytes) -> Path:
    """Write the logs of a partition without indexes; others by their name."""
    for base_offset, batches in segments:
        write_segment(folder, b"".join(batches), base_offset, index=b"", timeindex=b"")
    for name, data in others.items():
        (folder / name).write_bytes(data)
    return folder


LOG_LAWS = frozenset(
    {f"DISK-{n}" for n in range(27, 45)} | {"PROD-3", "PROD-14", "CKPT-3", "EPOCH-1", "META-2"}
)


def found(path: Path, *laws: str, **more: Any) -> list[tuple[str, Severity]]:
    """Return laws and severities of the findings about a whole log, or of these laws."""
    wanted = laws or tuple(LOG_LAWS)
    return [(one.law, one.severity) for one in verify(path, laws=wanted, **more)]


# --- producers


@pytest.mark.checks("DISK-29", "DISK-30", "DISK-31")
def test_what_producers_lawfully_do(tmp_path: Path) -> None:
    """Sequences wrap, go on in the next segment, and begin at 0 in a new epoch."""
    last = 2**31 - 1
    first = [batch(0, last - 1, count=2), batch(2, 0), batch(3, 1, producer=8), batch(4, 1)]
    second = [batch(5, 2, count=3), batch(8, 0, epoch=4), batch(9, 2, producer=8), batch(10)]
    assert [] == found(log(tmp_path / "t-0", (0, first), (5, second)))


@pytest.mark.checks("DISK-29", "DISK-30", "DISK-31")
@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (batch(4, 4, count=2), ("DISK-30", ERROR)),
        (batch(4, 5), ("DISK-30", ERROR)),
        (batch(4, 4, count=2, time=1000 + DAY), ("DISK-30", WARNING)),
        (batch(4, 0), ("DISK-31", WARNING)),
        (batch(4, 7), ("DISK-31", WARNING)),
        (batch(9, 7), ("DISK-31", NOTE)),
        (batch(4, 3, epoch=6), ("DISK-31", WARNING)),
        (batch(4, 6, epoch=4), ("DISK-29", ERROR)),
        (batch(4, 6, epoch=4, time=1000 + DAY), ("DISK-29", WARNING)),
    ],
)
def test_what_they_do_not(
    tmp_path: Path, second: bytes, expected: tuple[str, Severity], is_split: bool
) -> None:
    """A repetition and an older epoch are errors, unless the producer may be forgotten; a gap is a
    note where offsets are missing too; in a segment as across two."""
    base, epoch = int.from_bytes(second[:8], "big"), int.from_bytes(second[51:53], "big")
    before = 5 if epoch else 0
    first = [batch(0, 2, epoch=before, count=2), batch(2, 4, epoch=before, count=2)]
    parts = [(0, first), (base, [second])] if is_split else [(0, [*first, second])]
    assert [expected] == found(log(tmp_path / "t-0", *parts))


@pytest.mark.checks("DISK-31")
def test_coordinators_batches_are_not_numbered(tmp_path: Path) -> None:
    """In `__consumer_offsets` every transactional batch has sequence 0."""
    batches = [begin(0, 0), begin(1, 0), end(2)]
    assert [] == found(log(tmp_path / "__consumer_offsets-3", (0, batches)))
    assert [("DISK-30", ERROR)] == found(log(tmp_path / "other-3", (0, batches)))


@pytest.mark.checks("DISK-31")
def test_too_many_producers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound are not followed, and a note says so."""
    monkeypatch.setattr(producer_checks, "PRODUCERS_MAX", 3)
    batches = [batch(row, 0, producer=row) for row in range(5)]
    again = [batch(5, 0, producer=1), batch(6, 0, producer=4)]
    folder = log(tmp_path / "t-0", (0, batches), (5, again))
    notes = [one for one in verify(folder, laws=["DISK-31"]) if one.severity is NOTE]
    assert [str(folder)] == [one.path for one in notes]
    assert [("DISK-30", ERROR)] == found(folder, "DISK-30")


# --- transactions


@pytest.mark.checks("DISK-12")
@pytest.mark.usefixtures("processes_for_little")
def test_a_transaction_index_that_is_gone_is_one_finding(tmp_path: Path) -> None:
    """Not one for each aborted transaction; asked for by its byte, each one is told alone.

    Those that began in an earlier segment are seen by the whole log only, and are one finding more.
    """
    ends = [end(row, kind="ABORT") for row in range(3, 20, 2)]
    batches = [part for row, one in enumerate(ends) for part in (begin(2 + 2 * row, 2 + row), one)]
    parts = [(0, [begin(0, 0)]), (1, [end(1, kind="ABORT"), *batches])]
    folder = log(tmp_path / "t-0", *parts)
    path = folder / name_of(1, ".log")
    own, carried = verify(folder, laws=["DISK-12"])
    assert {(str(path), None)} == {(one.path, one.position) for one in (own, carried)}
    places = [sum(map(len, parts[1][1][: 2 * row])) for row in range(1, 10)]
    assert "of 9 transactions" in own.message
    assert f" 3 (byte {places[0]}), 5 (byte {places[1]})," in own.message
    assert f"11 (byte {places[4]}), ...;" in own.message
    assert "of one transaction" in carried.message
    assert "1 (byte 0);" in carried.message
    assert [own, carried] == list(verify(folder, laws=["DISK-12"], jobs=2))
    for row, place in enumerate(places):
        (one,) = verify(path, laws=["DISK-12"], position=place)
        assert (place, str(3 + 2 * row)) == (one.position, one.expected)
    (one,) = verify(folder, laws=["DISK-12"], position=0)
    assert (0, "1") == (one.position, one.expected)


@pytest.mark.checks("DISK-32")
def test_open_transactions(tmp_path: Path) -> None:
    """One is a note with the last stable offset; a warning when markers show that it hangs."""
    age = transaction_checks.HANGS_MS
    batches = [begin(0, 0), begin(1, 0, producer=8), end(2, producer=8), batch(3, time=9 * DAY)]
    folder = log(tmp_path / "t-0", (0, batches))
    (one,) = verify(folder, laws=["DISK-32"])
    assert (NOTE, "0") == (one.severity, one.actual)
    assert "offset 0 on" in one.message
    for later, severity in ((age - 1, NOTE), (age, WARNING)):
        more = [begin(4, 1, producer=8), end(5, producer=8, time=1000 + later)]
        log(folder, (4, more))
        (one,) = verify(folder, laws=["DISK-32"])
        assert severity is one.severity
    assert "producer 7" in one.message
    assert "kafka-transactions.sh" in one.hint
    log(folder, (6, [end(6)]))
    assert [] == found(folder, "DISK-32")


@pytest.mark.checks("DISK-33", "DISK-34")
def test_markers(tmp_path: Path) -> None:
    """Markers without a transaction are one note a segment; an older coordinator is a warning."""
    first = [end(0), begin(1, 0), end(2), end(3)]
    second = [begin(4, 1), end(5, coordinator=2), end(6, producer=9)]
    folder = log(tmp_path / "t-0", (0, first), (4, second))
    assert ["2", "1"] == [one.actual for one in verify(folder, laws=["DISK-33"])]
    assert [("DISK-34", WARNING)] == found(folder, "DISK-34")


@pytest.mark.checks("DISK-44")
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_batches_outside_of_an_open_transaction(tmp_path: Path, cut: int) -> None:
    """They are errors, one for each transaction that is left, wherever segments end; nothing is
    behind a marker, and nothing of another producer."""
    batches = [begin(0, 0), batch(1, 1), batch(2, 2), end(3), batch(4, 3)]
    batches += [batch(5, 0, producer=8), begin(6, 4), begin(7, 1, producer=8), batch(8)]
    parts = [(0, batches[:cut]), (cut, batches[cut:])] if cut else [(0, batches)]
    folder = log(tmp_path / "t-0", *parts)
    (one,) = verify(folder, laws=["DISK-44"])
    place = 0 if cut == 1 else len(batches[0])
    assert (ERROR, place) == (one.severity, one.position)
    assert one.path.endswith(name_of(1 if cut == 1 else 0, ".log"))
    assert "producer 7" in one.message
    assert "offset 0," in one.message
    again = verify(folder if cut == 1 else one.path, laws=["DISK-44"], position=place)
    assert [one] == list(again)


@pytest.mark.checks("DISK-44")
@pytest.mark.parametrize("is_split", [False, True])
def test_the_marker_may_be_missing(tmp_path: Path, is_split: bool) -> None:
    """Where offsets are missing before such a batch, it is a warning."""
    left = [batch(5, 1)]
    parts = [(0, [begin(0, 0)]), (3, left)] if is_split else [(0, [begin(0, 0), *left])]
    folder = log(tmp_path / "t-0", *parts)
    assert [("DISK-44", WARNING)] == found(folder, "DISK-44")


@pytest.mark.checks("DISK-44", "PROD-8")
def test_what_leaves_a_transaction_cannot_be_loaded(tmp_path: Path) -> None:
    """The same log is refused where it is read at a start, as Kafka does."""
    folder = log(tmp_path / "t-0", (0, [begin(0, 0), batch(1, 1)]))
    assert [("DISK-44", ERROR)] == found(folder, "DISK-44")
    with pytest.raises(InvalidTransactionStateError):
        PartitionLog.open(folder, LogConfig(), last_shutdown_clean=False, create=True)


@pytest.mark.checks("DISK-12")
def test_transaction_that_ended_two_segments_ago(tmp_path: Path) -> None:
    """A transaction over two segments is over with its marker: a lone abort later needs no entry.

    It was taken as still open when it had batches in the segment of its marker too.
    """
    parts = [(0, [begin(0, 0)]), (1, [begin(1, 1), end(2)]), (3, [end(3, kind="ABORT")])]
    assert [] == found(log(tmp_path / "t-0", *parts), "DISK-12")


# --- snapshots


def entry(producer: int, sequence: int, offset: int, **more: Any) -> ProducerStateEntry:
    """Return what a snapshot says of a producer after a batch of one record."""
    newest = BatchMetadata(sequence, offset, 0, 1000)
    return ProducerStateEntry(producer, 0, -1, 1000, None, (newest,), **more)


@pytest.mark.checks("PROD-14", "DISK-35", "DISK-36")
def test_snapshots(tmp_path: Path) -> None:
    """At the border of segments, inside one and at the end they are held against the log."""
    second = [batch(2, 2), batch(3, 3), begin(4, 0, producer=8)]
    parts = [(0, [batch(0, 0), batch(1, 1)]), (2, second)]
    open_one = replace(entry(8, 0, 4), current_txn_first_offset=4)
    right = {2: [entry(7, 1, 1)], 3: [entry(7, 2, 2)], 5: [entry(7, 3, 3), open_one]}
    folder = log(tmp_path / "t-0", *parts)
    for offset, entries in right.items():
        path = folder / name_of(offset, ".snapshot")
        path.write_bytes(write_snapshot(entries))
    assert [("DISK-32", NOTE)] == found(folder)
    wrong = [[replace(entries[0], producer_epoch=-1), *entries[1:]] for entries in right.values()]
    for (offset, entries), changed in zip(right.items(), wrong, strict=True):
        path = folder / name_of(offset, ".snapshot")
        path.write_bytes(write_snapshot(changed))
        (one,) = verify(folder, laws=["PROD-14"])
        assert (str(path), 10, WARNING) == (one.path, one.position, one.severity)
        path.write_bytes(write_snapshot(entries))
    path.write_bytes(write_snapshot([entry(7, 3, 3)]))
    assert [("PROD-14", WARNING)] == found(folder, "PROD-14")
    path.write_bytes(
        write_snapshot([entry(7, 3, 3), replace(open_one, current_txn_first_offset=5)])
    )
    assert {("PROD-14", WARNING), ("DISK-35", ERROR)} == set(found(folder, "PROD-14", "DISK-35"))


@pytest.mark.checks("PROD-14")
def test_snapshots_may_know_more_and_less(tmp_path: Path) -> None:
    """An expired producer may be missing; one whose batches are gone may be there."""
    folder = log(tmp_path / "t-0", (10, [batch(10, 4), batch(13, 5), batch(14, 0, producer=9)]))
    path = folder / name_of(15, ".snapshot")
    for entries in ([], [entry(7, 5, 13)], [entry(5, 0, 3), entry(7, 5, 13)], [entry(6, 0, 12)]):
        path.write_bytes(write_snapshot(entries))
        assert [] == found(folder, "PROD-14")
    path.write_bytes(write_snapshot([entry(7, 4, 10)]))
    assert [("PROD-14", WARNING)] == found(folder, "PROD-14")


@pytest.mark.checks("PROD-14")
@pytest.mark.parametrize("border", [0, 2, 3])
def test_a_marker_that_cannot_be_read_is_not_the_snapshots_fault(
    border: int, tmp_path: Path
) -> None:
    """The snapshot knows that the transaction has ended; the log, of which a byte is wrong, not."""
    batches = [begin(0, 0), end(1), batch(2, 0, producer=8), begin(3, 1), batch(4, 1, producer=8)]
    marker = bytearray(batches[1])
    marker[70] ^= 1
    batches[1] = bytes(marker)
    parts = [(0, batches[:border]), (border, batches[border:])] if border else [(0, batches)]
    folder = log(tmp_path / "t-0", *parts)
    ended, again = entry(7, 0, 0), replace(entry(7, 1, 3), current_txn_first_offset=3)
    for offset, entries in {
        2: [ended],
        3: [ended, entry(8, 0, 2)],
        5: [again, entry(8, 1, 4)],
    }.items():
        (folder / name_of(offset, ".snapshot")).write_bytes(write_snapshot(entries))
    assert ["BATCH-3"] == [one.law for one in verify(folder, deep=True) if one.is_defect]
    # What the log does say is still held against them.
    (folder / name_of(5, ".snapshot")).write_bytes(write_snapshot([again, entry(8, 2, 4)]))
    assert ["PROD-14"] == [one.law for one in verify(folder, laws=["PROD-14"])]


# --- leader epochs


@pytest.mark.checks("DISK-28", "DISK-37", "EPOCH-1")
def test_leader_epochs(tmp_path: Path) -> None:
    """The checkpoint may begin at the log start and know epochs to come; no batch may differ."""
    one = [batch(row, partition_leader_epoch=row // 2) for row in range(4)]
    two = [batch(row, partition_leader_epoch=4) for row in range(4, 6)]
    folder = log(tmp_path / "t-0", (0, one), (4, two))
    for lines, laws in {
        "0 0\n1 2\n4 4": [],
        "1 3\n4 4\n9 6": [],
        "1 2\n4 5": ["DISK-37"],
        "0 0\n1 2\n3 4": ["DISK-37"],
        "1 0\n0 2\n4 4": ["EPOCH-1"],
        "-1 0\n4 4": ["EPOCH-1"],
    }.items():
        count = len(lines.splitlines())
        (folder / EPOCHS).write_text(f"0\n{count}\n{lines}\n")
        assert laws == [law for law, _ in found(folder)]
    (folder / EPOCHS).write_text("0\n2\n0 0\n1 0\n")
    assert [("EPOCH-1", WARNING)] == found(folder)
    (folder / EPOCHS).write_text("0\n0\n")
    assert [("DISK-37", WARNING)] == found(folder)
    log(folder, (6, [batch(6, partition_leader_epoch=2)]))
    assert [("DISK-28", ERROR)] == found(folder, "DISK-28")


# --- the data directory


@pytest.mark.checks("DISK-38", "DISK-39", "DISK-40", "DISK-43")
@pytest.mark.parametrize("below", ["", "t-0"])
def test_checkpoints_of_a_data_directory(tmp_path: Path, below: str) -> None:
    """They are held against each log, for the data directory and for one partition."""
    log(tmp_path / "t-0", (0, [batch(0), batch(1)]))
    severities = {
        "recovery-point-offset-checkpoint": ("DISK-38", WARNING),
        "replication-offset-checkpoint": ("DISK-38", WARNING),
        "cleaner-offset-checkpoint": ("DISK-38", WARNING),
        "log-start-offset-checkpoint": ("DISK-43", ERROR),
    }
    for name, expected in severities.items():
        path = tmp_path / name
        path.write_text("0\n1\nt 0 2\n")
        assert [] == found(tmp_path / below)
        path.write_text("0\n1\nt 0 3\n")
        assert [expected] == found(tmp_path / below)
        path.write_text("0\n2\nt 0 2\ngone 0 9\n")
        assert ([] if below else [("DISK-39", NOTE)]) == found(tmp_path / below)
        path.write_text("0\n2\nt 0 2\n")
        assert ([] if below else [("CKPT-3", ERROR)]) == found(tmp_path / below)
        path.unlink()
    marker = tmp_path / ".kafka_cleanshutdown"
    for content, laws in {"": [], '{"version":0,"brokerEpoch":7}': [], "[]": ["DISK-40"]}.items():
        marker.write_text(content)
        assert ([] if below else laws) == [law for law, _ in found(tmp_path / below)]


@pytest.mark.checks("DISK-43")
@pytest.mark.parametrize("ends", [(2, 2), (2, 1), (2, 4), (None, 2)])
def test_a_wrong_log_start_is_no_loss_by_itself(
    tmp_path: Path, ends: tuple[int | None, int]
) -> None:
    """An "unknown number of offsets" was lost, though two checkpoints say where the log ends, and
    `salvage` said "everything kept".
    """
    log(tmp_path / "t-0", (0, [batch(0), batch(1)]))
    names = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
    for name, end in zip(names, ends, strict=True):
        if end is not None:
            (tmp_path / name).write_text(f"0\n1\nt 0 {end}\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 800\n")
    (one,), told = verified(tmp_path / "t-0", laws=["DISK-43"])
    is_agreed = ends == (2, 2)
    assert one.severity is ERROR
    assert is_agreed == ("both say that the log ends there" in one.message)
    whole = Verdict.READABLE_WITH_DEFECTS, 0
    expected = whole if is_agreed else (Verdict.READABLE_WITH_GAPS, None)
    assert expected == (told[0].verdict, told[0].lost_offsets)


# --- leftovers


@pytest.mark.checks("LOAD-1", "DISK-41", "DISK-42")
def test_leftovers_are_explained(tmp_path: Path) -> None:
    """Each says what the next start makes of it."""
    folder = log(tmp_path / "t-0", (0, [batch(0)]), (1, [batch(1)]), (5, [batch(5)]))
    swap = folder / name_of(0, ".log.swap")
    swap.write_bytes(batch(0) + batch(4))
    (folder / name_of(0, ".index.swap")).write_bytes(b"")
    (folder / name_of(3, ".snapshot.deleted")).write_bytes(b"")
    (folder / f"{EPOCHS}.tmp").write_bytes(b"")
    (tmp_path / f"s-0.{'0' * 32}-stray").mkdir()
    log(tmp_path / f"f-0.{'0' * 32}-future", (0, []))
    (tmp_path / "recovery-point-offset-checkpoint.tmp").write_bytes(b"")
    words = {Path(one.path).name: one for one in verify(tmp_path, laws=["LOAD-1", "DISK-41"])}
    assert "from 0 to 4, here 2 segments" in words[swap.name].message
    assert "deletes it" in words[name_of(3, ".snapshot.deleted")].message
    assert "sets it aside" not in words
    for name, part in {
        f"{EPOCHS}.tmp": "does not read it",
        "recovery-point-offset-checkpoint.tmp": "does not read it",
        f"s-0.{'0' * 32}-stray": "set it aside",
        f"f-0.{'0' * 32}-future": "another log directory",
    }.items():
        assert part in words[name].message
        assert NOTE is words[name].severity
    (folder / name_of(0, ".log.cleaned")).write_bytes(b"")
    (one,) = (one for one in verify(folder / swap.name) if one.law == "LOAD-1")
    assert "puts it in the place" in one.message
    (one,) = (each for each in verify(folder, laws=["LOAD-1"]) if each.path == str(swap))
    assert "not finished" in one.message
    assert [("DISK-42", WARNING)] == found(folder, "DISK-42")  # no log has its offset 4
    swap.write_bytes(batch(0))
    assert [] == found(folder, "DISK-42")
    (folder / name_of(0, ".log")).unlink()
    assert [("DISK-42", WARNING)] == found(folder, "DISK-42")


# --- single files


@pytest.mark.checks("PROD-3", "CKPT-3", "EPOCH-1", "META-2")
def test_single_small_files(tmp_path: Path) -> None:
    """Each is verified by itself, and never made where it is missing."""
    folder = copied_partition("txn-a", tmp_path)
    names = [name_of(1014, ".snapshot"), EPOCHS, "partition.metadata"]
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 5\n")
    for path in (checkpoint, *(folder / name for name in names)):
        assert [] == list(verify(path))
        whole = path.read_bytes()
        path.write_bytes(whole[:3])
        (one,) = verify(path)
        assert one.severity in (ERROR, WARNING)
        assert str(path) == one.path
        path.write_bytes(whole)
    (folder / EPOCHS).unlink()
    before = sorted(os.listdir(folder))
    assert ["DISK-49"] == [one.law for one in verify(folder) if one.is_defect]
    assert before == sorted(os.listdir(folder))


@pytest.mark.checks("DISK-32", "DISK-33")
def test_single_log_is_no_whole_log(tmp_path: Path) -> None:
    """What began in a segment before, or ends in one behind, is not told of one file."""
    folder = log(tmp_path / "t-0", (0, [begin(0, 0)]), (1, [end(1), begin(2, 1)]))
    assert [("DISK-32", NOTE)] == found(folder)
    assert [] == found(folder / name_of(1, ".log"))


@pytest.mark.checks("PROD-3")
def test_huge_small_files_are_not_read(tmp_path: Path) -> None:
    """A snapshot of a terabyte is a warning; one that can't be read is an error."""
    folder = log(tmp_path / "t-0", (0, [batch(0)]))
    path = folder / name_of(1, ".snapshot")
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert [("PROD-3", WARNING)] == found(folder)
    path.unlink()
    path.mkdir()
    assert [("DISK-1", ERROR)] == found(folder, "DISK-1")


# --- while a broker runs


@pytest.mark.checks("DISK-36", "DISK-37", "DISK-38")
def test_what_changes_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    """A truncation, and a leader that changes, between two files that are read, are no defects."""
    first = [batch(0, partition_leader_epoch=0), batch(1, partition_leader_epoch=0)]
    other = [first[0], batch(1, partition_leader_epoch=3), batch(2, partition_leader_epoch=3)]
    folder = log(tmp_path / "t-0", (0, first))
    (folder / name_of(2, ".snapshot")).write_bytes(write_snapshot(()))
    checkpoint, epochs = tmp_path / "recovery-point-offset-checkpoint", folder / EPOCHS
    checkpoint.write_text("0\n1\nt 0 2\n")
    epochs.write_text("0\n1\n0 0\n")

    def lead() -> None:
        epochs.write_text("0\n2\n0 0\n3 1\n")
        log(folder, (0, other))

    assert [] == defects_on(disturbed(EPOCHS, lead), folder)
    epochs.write_text("0\n1\n0 0\n")
    assert ["DISK-37"] == [one.law for one in defects_on(REAL_FILES, folder)]
    log(folder, (0, first))

    def truncate() -> None:
        log(folder, (0, first[:1]))
        (folder / name_of(2, ".snapshot")).unlink()
        checkpoint.write_text("0\n1\nt 0 1\n")

    assert [] == defects_on(disturbed(name_of(0, ".log"), truncate), folder)
    checkpoint.write_text("0\n1\nt 0 2\n")
    assert ["DISK-38"] == [one.law for one in defects_on(REAL_FILES, folder)]


@pytest.mark.usefixtures("processes_for_little")
def test_processes_say_the_same(tmp_path: Path) -> None:
    """What takes the whole log is the same with more than one process."""
    folder = copied_partition("txn-a", tmp_path)
    path = folder / name_of(1732, ".snapshot")
    first, *rest = read_snapshot(path.read_bytes())
    path.write_bytes(write_snapshot([replace(first, producer_epoch=-1), *rest]))
    put_bytes(folder / name_of(1014, ".log"), 12, (9).to_bytes(4, "big"))
    one, two = (list(verify(folder, jobs=jobs)) for jobs in (1, 2))
    assert one == two
    assert {"PROD-14", "DISK-28", "DISK-37"} == {each.law for each in one if each.is_defect}


@pytest.mark.usefixtures("processes_for_little")
def test_small_segments_go_to_a_process_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes took longer than one for thousands of small partitions, each handed over."""
    large = b"".join(map(batch, range(40)))
    write_segment(tmp_path / "t-0", large)
    for partition in range(1, 40):
        write_segment(tmp_path / f"t-{partition}", batch(0) + b"?" * (partition % 3 == 0))
    monkeypatch.setattr(path_verification, "BYTES_TOGETHER", len(large))
    for path in tmp_path.rglob("*"):
        os.utime(path, (10**9, 10**9))  # no broker is at work
    tasks: list[int] = []
    submit = Workers.submit

    def counted(workers: Workers, work: Callable[..., Any], *arguments: Any) -> Any:
        tasks.append(len(arguments[-1]))
        return submit(workers, work, *arguments)

    monkeypatch.setattr(Workers, "submit", counted)
    one, two = (list(verify(tmp_path, jobs=jobs)) for jobs in (1, 2))
    assert 13 == len(one)
    assert one == two
    assert [1, 32, 7] == tasks


@pytest.mark.parametrize("scenario", sorted(path.name for path in DATA.iterdir() if path.is_dir()))
def test_real_directories_with_their_checkpoints(tmp_path: Path, scenario: str) -> None:
    """A broker's directories are sound, also with the checkpoints that lay beside them."""
    copied_partition(scenario, tmp_path)
    for path in (DATA / scenario).glob("logdir/*"):
        shutil.copyfile(path, tmp_path / path.name)
    for deep in (False, True):
        assert [] == [str(one) for one in verify(tmp_path, deep=deep) if one.is_defect]
