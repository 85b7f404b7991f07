# SPDX-License-Identifier: Apache-2.0
"""Rebuilding the indexes of a partition: what they get, and what stops it."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof import rebuild, verify
from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import REAL_FILES, File, RealFiles
from segproof.kafka import (
    LogConfig,
    LogSegment,
    OffsetIndex,
    ProducerStateManager,
    Record,
    TransactionIndex,
    write_batch,
)
from segproof.kafka.batch_table import BATCH_DTYPE
from segproof.kafka.producer_snapshot import write_snapshot
from segproof.kernels.segment_rules import indexed_batches
from segproof.reading.unfinished import MARKER
from segproof.rebuilding.intervals import IntervalBounds
from segproof.rebuilding.partition_rebuild import Rebuilt
from segproof.verification import RULES
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.laws.borders.log_files import marker
from segproof_tests.partition_files import name_of

DIR, OUT = "/d/t-0", "/e/t-0"
INTERVAL = 200
ROOM = 4096
"""Bytes of a new index: little, since files in memory are."""
BASES = (10, 22, 34)
ABORTED = {10: [(9, 12, 14, 15)], 22: [(9, 16, 24, 25)], 34: []}
"""Producer id, first offset, last offset, last stable offset of each transaction, by segment."""


def batch(offset: int, **more: Any) -> bytes:
    """A batch of one record."""
    record = Record(offset, 1000 + 7 * offset % 50 + offset, None, b"value" * 3)
    return write_batch([record], base_offset=offset, **more)


def of_producer(offset: int) -> bytes:
    """A batch in a transaction of producer 9."""
    return batch(
        offset,
        is_transactional=True,
        producer_id=9,
        producer_epoch=0,
        base_sequence=int(offset > 12),
    )


abort = partial(marker, timestamp=5, producer_id=9)
"""Returns the end of a transaction of producer 9."""


def log_of(base: int) -> list[bytes]:
    """The batches of a segment; one transaction crosses from the first into the second."""
    special: dict[int, Any] = {12: of_producer, 14: abort, 16: of_producer, 24: abort}
    return [special.get(offset, batch)(offset) for offset in range(base, base + 12)]


def fill(files: MemoryFiles, directory: str = DIR) -> None:
    """Write a partition as a broker does, and stop it cleanly."""
    files.make_directory(directory)
    producers = ProducerStateManager.open(directory, writable=True, files=files)
    config = LogConfig(index_interval_bytes=INTERVAL, segment_index_bytes=ROOM)
    for base in BASES:
        with LogSegment.open(directory, base, config, create=True, files=files) as segment:
            for one in log_of(base):
                segment.append_many(one)
            segment.recover(producers)
            if base == BASES[0]:
                segment.flush()
        producers.take_snapshot()
    write_file(files, f"{directory}/leader-epoch-checkpoint", b"0\n0\n")
    write_file(
        files, f"{directory}/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ\n"
    )


def filled() -> MemoryFiles:
    """Files in memory with the partition and the directory that the new one goes into."""
    files = MemoryFiles()
    fill(files)
    files.make_directory("/e")
    return files


def rebuilt(files: Any, **options: Any) -> Rebuilt:
    """Rebuild the partition into the new directory, or in place."""
    out = None if options.get("in_place") else OUT
    return rebuild(DIR, out, **{"max_index_bytes": ROOM, "files": files, **options})


def aborted(files: Any, directory: str) -> dict[int, list[tuple[int, ...]]]:
    """Return the aborted transactions that each segment lists."""
    found = {}
    for base in BASES:
        with TransactionIndex(
            base, f"{directory}/{name_of(base, '.txnindex')}", files=files
        ) as each:
            found[base] = [tuple(one)[1:] for one in each]
    return found


BOTH = pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])


def place(in_place: bool) -> str:
    """Return the directory of the new files."""
    return DIR if in_place else OUT


# --- what the indexes get


@BOTH
@pytest.mark.parametrize("all_files", [False, True], ids=["wrong", "all"])
def test_a_sound_partition_stays_as_it_is(in_place: bool, all_files: bool) -> None:
    """Each byte is the same, nothing else is there, and the interval is that of the old index."""
    files = filled()
    before = files.images(DIR)
    done = rebuilt(files, in_place=in_place, all_files=all_files)
    assert (done.findings, done.left_out, done.cut_bytes) == ((), (), 0)
    assert before == files.images(place(in_place)) == files.images(DIR)
    assert not any(one.changed for one in done.files)
    assert {one.interval_from for one in done.files} == {"old index" if all_files else None}
    assert len(done.files) == 8
    assert all(one.entries == one.old_entries for one in done.files)


@BOTH
@pytest.mark.parametrize("damage", ["gone", "empty", "zeros", "noise", "tail"])
def test_damaged_indexes_become_what_they_were(in_place: bool, damage: str) -> None:
    """Whatever was in the index files of a segment, the logs give back what the broker wrote."""
    files = filled()
    before = files.images(DIR)
    for suffix in (".index", ".timeindex", ".txnindex"):
        path = f"{DIR}/{name_of(22, suffix)}"
        if damage == "gone":
            files.remove(path)
            continue
        data = {"empty": b"", "zeros": bytes(64), "noise": bytes(range(1, 200))}
        write_file(files, path, data.get(damage, before[name_of(22, suffix)] + bytes(24)))
    done = rebuilt(files, in_place=in_place)
    assert before == files.images(place(in_place))
    changed = [one for one in done.files if one.changed]
    assert [os.path.basename(one.path) for one in changed] == [
        name_of(22, suffix) for suffix in (".index", ".timeindex", ".txnindex")
    ]
    source = "old index" if damage == "tail" else "other segments"
    assert {one.interval_from for one in changed} == {source}
    assert [] == [one for one in verify(place(in_place), files=files, deep=True) if one.is_defect]


def test_the_interval_can_be_given() -> None:
    """Then it holds for every segment, and other entries are a change."""
    files = filled()
    done = rebuilt(files, index_interval_bytes=0)
    assert {(one.index_interval_bytes, one.interval_from) for one in done.files} == {(0, "given")}
    assert [one.entries for one in done.files if one.path.endswith(".index")] == [11, 11, 11]


def test_without_any_index_the_default_holds() -> None:
    """Logs alone are enough; the transaction index is made where there is something to list."""
    files = filled()
    for base in BASES:
        for suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            files.remove(f"{DIR}/{name_of(base, suffix)}")
    done = rebuilt(files)
    assert {one.interval_from for one in done.files} == {"default"}
    assert {one.old_entries for one in done.files} == {None}
    assert aborted(files, OUT) == ABORTED
    assert name_of(34, ".txnindex") not in files.images(OUT)


@pytest.mark.parametrize("snapshot", ["sound", "corrupt", "gone"])
def test_transactions_that_cross_segments(snapshot: str) -> None:
    """What was open at the base says the snapshot; without a sound one, the logs before it."""
    files = filled()
    path = f"{DIR}/{name_of(22, '.snapshot')}"
    if snapshot == "corrupt":
        write_file(files, path, b"\0\1nothing")
    elif snapshot == "gone":
        files.remove(path)
    for base in BASES:
        files.remove(f"{DIR}/{name_of(base, '.txnindex')}")
    rebuilt(files)
    assert aborted(files, OUT) == ABORTED
    assert files.images(DIR).get(name_of(22, ".snapshot")) == files.images(OUT).get(
        name_of(22, ".snapshot")
    )


def test_a_transaction_from_before_the_log_is_known_from_the_old_index() -> None:
    """Retention has taken its beginning, and no snapshot is there: its entry must not be lost."""
    files = filled()
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        files.remove(f"{DIR}/{name_of(10, suffix)}")
    for base in (22, 34):
        files.remove(f"{DIR}/{name_of(base, '.snapshot')}")
    done = rebuilt(files)
    assert done.findings == ()
    assert aborted(files, OUT)[22] == ABORTED[22]


def test_first_offsets_as_keys() -> None:
    """Releases up to 1.1 enter the first offset of a batch."""
    files = MemoryFiles()
    files.make_directory(DIR)
    records = [Record(10 * n + i, 5, None, b"v" * 50) for n in range(4) for i in range(10)]
    log = b"".join(write_batch(records[n : n + 10], base_offset=n) for n in range(0, 40, 10))
    write_file(files, f"{DIR}/{name_of(0, '.log')}", log)
    for key, offsets in (("last_offset", [19, 29, 39]), ("first_offset", [10, 20, 30])):
        rebuilt(files, in_place=True, index_interval_bytes=0, index_key=key)
        with OffsetIndex(f"{DIR}/{name_of(0, '.index')}", 0, files=files) as index:
            assert offsets == [entry.offset for entry in index]


@pytest.mark.usefixtures("processes_for_little")
def test_processes_give_the_same(tmp_path: Path) -> None:
    """Two at a time make the files that one makes."""
    for scenario in scenarios():
        partition = partition_of(scenario)
        results = []
        for jobs in (1, 2):
            out = tmp_path / f"{scenario.name}-{jobs}"
            done = rebuild(partition, out, jobs=jobs)
            files = {each.name: each.read_bytes() for each in out.iterdir()}
            results.append((files, [replace(one, path="") for one in done.files]))
        assert results[0] == results[1]


@given(st.lists(st.integers(61, 300), min_size=1, max_size=60), st.integers(0, 1000), st.data())
def test_bounds_hold_exactly_the_intervals_that_give_the_entries(
    sizes: list[int], interval: int, data: st.DataObject
) -> None:
    """Whatever interval made an index: those between the bounds give it, and no others."""
    positions = np.cumsum([0, *sizes[:-1]])

    def entries(chosen: int) -> list[int]:
        rows = np.empty(len(sizes), np.int64)
        count, _ = indexed_batches(np.array(sizes, np.int64).data, len(sizes), chosen, 0, rows.data)
        return [int(positions[row]) for row in rows[:count]]

    wanted = entries(interval)
    table = np.zeros(len(sizes), BATCH_DTYPE)
    table["position"] = positions
    bounds = IntervalBounds(np.array(wanted, np.int32))
    half = data.draw(st.integers(0, len(sizes)))
    bounds.add(table[:half])
    bounds.add(table[half:])
    if not wanted:
        assert not bounds.is_known
        return
    assert bounds.is_known
    assert bounds.has(interval)
    assert wanted == entries(bounds.choose()) == entries(bounds.least) == entries(bounds.end - 1)
    assert wanted != entries(bounds.end)
    assert bounds.least == 0 or wanted != entries(bounds.least - 1)


def test_hints_send_nobody_to_a_broker_for_a_time_index() -> None:
    """A broker, 4.3.1 too, makes a missing time index empty: what breaks one names this verb."""
    for law in ("DISK-5", "TIMEIDX-1", "TIMEIDX-7", "DISK-9", "DISK-10", "DISK-22"):
        assert "segproof rebuild" in RULES[law].hint
        assert "missing .timeindex empty" in RULES[law].hint or "broker" not in RULES[law].hint


# --- what stops it


def stopped(files: MemoryFiles, **options: Any) -> Rebuilt:
    """Rebuild what can't be; nothing has changed, and no new directory is there."""
    for in_place in (False, True):
        before = files.images(DIR)
        done = rebuilt(files, in_place=in_place, **options)
        assert before == files.images(DIR)
        assert done.files == ()
        assert done.findings
        assert files.status(OUT) is None
    return done


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("damage", "law"), [("crc", "BATCH-3"), ("zeros", "DISK-6"), ("torn", "DUMP-6")]
)
def test_a_broken_log_is_a_finding(base: int, damage: str, law: str) -> None:
    """It names file, byte and law, what a broker would do, and what to do."""
    files = filled()
    path = f"{DIR}/{name_of(base, '.log')}"
    batches = log_of(base)
    position = len(b"".join(batches[:7]))
    if damage == "crc":
        log = bytearray(b"".join(batches))
        log[position + 70] ^= 1
    elif damage == "zeros":
        log = bytearray(b"".join(batches[:7]) + bytes(100))
    else:
        log = bytearray(b"".join(batches[:7]) + batches[7][:-3])
    write_file(files, path, bytes(log))
    (finding,) = stopped(files).findings
    assert (finding.law, finding.path, finding.position) == (law, path, position)
    assert f"cuts the log here, by {len(log) - position} bytes" in finding.message
    assert ("all later segments" in finding.message) is (base != BASES[-1])
    assert ("--cut-tail" in finding.hint) is (base == BASES[-1] and damage != "crc")
    assert "segproof salvage" in finding.hint or damage != "crc"


def test_a_broken_tail_can_be_left_out() -> None:
    """Of the last log, into a new directory; the log there is a copy of the valid batches."""
    files = filled()
    path = f"{DIR}/{name_of(34, '.log')}"
    log = b"".join(log_of(34))
    before = files.images(DIR)
    write_file(files, path, log + bytes(50))
    done = rebuilt(files, cut_tail=True)
    assert done.cut_bytes == 50
    assert before == files.images(OUT)
    assert files.images(DIR)[name_of(34, ".log")] == log + bytes(50)
    write_file(files, f"{DIR}/{name_of(22, '.log')}", b"".join(log_of(22)) + bytes(50))
    files.make_directory("/e/2")
    done = rebuild(DIR, "/e/2/t-0", cut_tail=True, max_index_bytes=ROOM, files=files)
    assert [one.path for one in done.findings] == [f"{DIR}/{name_of(22, '.log')}"]


@pytest.mark.checks("DISK-36")
@pytest.mark.parametrize("kept", [0, 7, 11])
def test_snapshots_behind_the_cut_are_left_out(kept: int) -> None:
    """The new directory is sound: a recovery removes the old end's snapshot, not the new one's."""
    files = filled()
    batches = log_of(34)
    write_file(files, f"{DIR}/{name_of(34, '.log')}", b"".join(batches[:kept]) + batches[kept][:-3])
    write_file(files, f"{DIR}/{name_of(34 + kept, '.snapshot')}", write_snapshot(()))
    done = rebuilt(files, cut_tail=True)
    assert [f"{name_of(46, '.snapshot')}: it is behind the cut"] == list(done.left_out)
    assert name_of(46, ".snapshot") in files.images(DIR)
    assert name_of(34 + kept, ".snapshot") in files.images(OUT)
    assert [] == [one for one in verify(OUT, deep=True, files=files) if one.is_defect]


def test_a_log_with_offsets_that_do_not_rise_is_a_finding() -> None:
    """No index can be made of it, nor of one whose offsets are too far from its base."""
    for odd in ([22, 24, 23], [22, 23, 22 + 2**31]):
        files = filled()
        write_file(files, f"{DIR}/{name_of(22, '.log')}", b"".join(map(batch, odd)))
        done = stopped(files, index_interval_bytes=0)
        assert ["DISK-13"] == [one.law for one in done.findings]  # as `verify` says there


def test_a_control_batch_that_cannot_be_read_is_a_finding() -> None:
    """A broker keeps the batch, and nothing behind it."""
    files = filled()
    control: Any = {"is_control": True, "is_transactional": True, "producer_id": 9}
    bad = write_batch([Record(34, 5, b"\0", b"")], base_offset=34, producer_epoch=0, **control)
    write_file(files, f"{DIR}/{name_of(34, '.log')}", bad + batch(35))
    (finding,) = stopped(files).findings
    assert finding.position == 0
    assert "behind this batch" in finding.message


def test_an_index_too_small_is_refused() -> None:
    """The error says what to give."""
    files = filled()
    with pytest.raises(InvalidArgumentError, match="more bytes for an index"):
        rebuilt(files, index_interval_bytes=0, max_index_bytes=40)
    assert files.status(OUT) is None


@pytest.mark.parametrize(
    ("odd", "law"),
    [("22.log", "FILE-1"), ("x.log", "FILE-2"), (name_of(22, ".log.swap"), "LOAD-1")],
)
def test_logs_that_a_broker_does_not_see_stop_it(odd: str, law: str) -> None:
    """They may hold records that no other file has."""
    files = filled()
    write_file(files, f"{DIR}/{odd}", batch(22))
    assert [(law, f"{DIR}/{odd}")] == [(one.law, one.path) for one in stopped(files).findings]


def test_a_log_that_is_no_regular_file_is_a_finding() -> None:
    """It was passed by, and the whole rebuild blamed on a running broker at its end."""
    files = filled()
    files.make_directory(f"{DIR}/{name_of(60, '.log')}")
    (finding,) = stopped(files).findings
    assert (finding.law, finding.path) == ("DISK-1", f"{DIR}/{name_of(60, '.log')}")
    assert "not a regular file" in finding.message


@pytest.mark.parametrize(("offset", "words"), [(3, "nor split it"), (2**40, "splits it in two")])
def test_what_a_broker_does_with_an_offset_that_does_not_fit(offset: int, words: str) -> None:
    """Below the base of its segment there is nothing that a split could mend."""
    files = filled()
    write_file(files, f"{DIR}/{name_of(34, '.log')}", b"".join(log_of(34)) + batch(offset))
    (finding,) = stopped(files).findings
    assert (finding.law, words in finding.message) == ("DISK-13", True)  # as `verify` says there


@BOTH
def test_other_odd_files_are_left_out_and_named(in_place: bool) -> None:
    """A new directory has only what a broker reads; in place they stay."""
    files = filled()
    odd = ["22.index", "notes.txt", name_of(22, ".log.deleted"), name_of(5, ".index")]
    for each in odd:
        write_file(files, f"{DIR}/{each}", b"x")
    files.make_directory(f"{DIR}/inner")
    done = rebuilt(files, in_place=in_place)
    assert sorted([*odd, "inner"]) == sorted(line.partition(": ")[0] for line in done.left_out)
    assert in_place is all(each in files.images(place(in_place)) for each in odd)


@BOTH
def test_a_log_that_changes_meanwhile_stops_it(in_place: bool) -> None:
    """A broker is at work: the error says so, and nothing has changed."""
    files = filled()
    before = files.images(DIR)

    def append(done: int, total: int) -> None:
        file = files.open(f"{DIR}/{name_of(34, '.log')}", writable=True)
        file.pwrite(b"x", file.size())

    with pytest.raises(SegproofError, match="a broker is at work"):
        rebuilt(files, in_place=in_place, on_progress=append)
    after = files.images(DIR)
    assert before == {**after, name_of(34, ".log"): before[name_of(34, ".log")]}
    assert files.status(OUT) is None


def test_arguments_that_do_not_fit() -> None:
    """Each is refused before anything is read or written."""
    files = filled()
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (None, {}), (OUT, {"in_place": True}), (None, {"in_place": True, "copy": True}),
        (None, {"in_place": True, "cut_tail": True}), (OUT, {"index_interval_bytes": -1}),
        (OUT, {"index_interval_bytes": 2**31}), (OUT, {"max_index_bytes": 23}), (OUT, {"jobs": 0}),
        (DIR, {}), (f"{DIR}/inner", {}), ("/d", {}),
    ]  # fmt: skip
    for out, options in wrong:
        with pytest.raises(InvalidArgumentError):
            rebuild(DIR, out, files=files, **options)
    with pytest.raises(FileNotFoundError):
        rebuild("/nothing", OUT, files=files)
    with pytest.raises(NotADirectoryError):
        rebuild(f"{DIR}/partition.metadata", OUT, files=files)
    with pytest.raises(InvalidArgumentError, match="no log"):
        rebuild("/d", OUT, files=files)
    write_file(files, "/e/file", b"")
    with pytest.raises(NotADirectoryError):
        rebuild(DIR, "/e/file", files=files)
    with pytest.raises(FileExistsError, match="not empty"):
        rebuild(DIR, "/e", files=files)
    files.make_directory("/e/empty")
    rebuild(DIR, "/e/empty", max_index_bytes=ROOM, files=files)
    assert files.images(DIR) == files.images("/e/empty")


def test_an_unreadable_log_is_a_finding() -> None:
    """As everywhere: it is told, never raised."""
    files = filled()
    refuse_log(files)
    (finding,) = stopped(files).findings
    assert (finding.law, finding.path) == ("DISK-1", f"{DIR}/{name_of(22, '.log')}")


def refuse_log(files: MemoryFiles) -> None:
    """Let one log be unreadable."""
    whole = files.open

    def refusing(path: str, *, writable: bool = False, create: bool = False) -> File:
        if path == f"{DIR}/{name_of(22, '.log')}":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return whole(path, writable=writable, create=create)

    files.open = refusing  # type: ignore[method-assign]


# --- the file system


class UnlinkedFiles(RealFiles):
    """Real files on two devices."""

    def link(self, source: str, target: str) -> None:
        """Refuse."""
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), target)


@pytest.mark.parametrize("way", ["link", "copy", "devices"])
def test_logs_are_linked_or_copied(way: str, tmp_path: Path) -> None:
    """A link is the same file; a copy has the modification time and the rights of the log."""
    source, out = partition_of(scenarios()[0]), tmp_path / "out"
    old = tmp_path / "t-0"
    shutil.copytree(source, old)
    log = next(old.glob("*.log"))
    log.chmod(0o640)
    os.utime(log, ns=(10**18, 10**18))
    files = UnlinkedFiles() if way == "devices" else REAL_FILES
    rebuild(old, out, copy=way == "copy", all_files=True, files=files)
    new = out / log.name
    assert new.samefile(log) is (way == "link")
    assert new.read_bytes() == log.read_bytes()
    assert new.stat().st_mtime_ns == 10**18
    assert new.stat().st_mode == log.stat().st_mode
    assert new.with_suffix(".index").stat().st_mode == log.stat().st_mode
    assert MARKER not in os.listdir(out)


def test_the_owner_of_a_log_owns_its_indexes(
    tmp_path: Path, not_run: Callable[[str], NoReturn]
) -> None:
    """Who rebuilds as root must not leave files that the broker's user can't open."""
    if os.geteuid() != 0:
        not_run("only root gives files away")
    partition = tmp_path / "t-0"
    shutil.copytree(partition_of(scenarios()[0]), partition)
    for path in partition.iterdir():
        os.chown(path, 12345, 23456)
    next(partition.glob("*.index")).unlink()
    rebuild(partition, in_place=True)
    rebuild(partition, tmp_path / "out", copy=True)
    for path in [*partition.iterdir(), *(tmp_path / "out").iterdir()]:
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_running_broker_keeps_its_directory(tmp_path: Path) -> None:
    """Its lock stops a rebuild in place; without it the rebuild holds the lock meanwhile."""
    partition = tmp_path / "t-0"
    shutil.copytree(partition_of(scenarios()[0]), partition)
    lock = tmp_path / ".lock"
    lock.touch()
    broker = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX | "
        "fcntl.LOCK_NB); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", broker, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"locked\n"
        with pytest.raises(SegproofError, match="a broker runs here"):
            rebuild(partition, in_place=True)
        rebuild(partition, tmp_path / "out")
        child.communicate()
    held: list[int] = []

    def look(done: int, total: int) -> None:
        if not held:
            held.append(subprocess.run(command, capture_output=True, check=False).returncode)

    rebuild(partition, in_place=True, on_progress=look)
    assert held == [1]
    assert subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0


def test_what_is_not_ours_is_not_removed() -> None:
    """A file that nobody can have rebuilt stops a second run, and a rebuild of the leftover."""
    files = filled()
    files.make_directory(OUT)
    write_file(files, f"{OUT}/{MARKER}", b"")
    write_file(files, f"{OUT}/{name_of(10, '.log')}", b"half")
    with pytest.raises(SegproofError, match="ended here before it was whole"):
        rebuild(OUT, "/e/2", files=files)
    write_file(files, f"{OUT}/notes.txt", b"mine")
    with pytest.raises(FileExistsError, match="not its own"):
        rebuilt(files)
    files.remove(f"{OUT}/notes.txt")
    rebuilt(files)
    assert files.images(DIR) == files.images(OUT)
