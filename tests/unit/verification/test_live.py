# SPDX-License-Identifier: Apache-2.0
"""What a broker that is running, or was killed, leaves on its disk is no defect."""

import os
import shlex
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Severity
from segproof.kafka import read_batch, write_empty_batch
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import offset_entries
from segproof_tests.altered_files import altered, defects_on, disturbed, listed
from segproof_tests.partition_files import copied_partition
from segproof_tests.small_logs import batch

DATA = KAFKA
TXN = "00000000000000001014"
ENTRY_BYTES = 34


def fail(size: int, position: int) -> bytes:
    """Fail as a bad disk does."""
    raise OSError(5, "Input/output error")


def open_unreadable(path: str, **options: Any) -> Any:
    """Open a file; a transaction index can't be read."""
    file = REAL_FILES.open(path, **options)
    return altered(file, pread=fail) if path.endswith(".txnindex") else file


BROKEN_TRANSACTION_INDEX = altered(open=open_unreadable)


def test_findings_about_names_reproduce(tmp_path: Path) -> None:
    """What only the directory above shows is shown again by the path of that directory."""
    copied_partition("plain", tmp_path)
    gone = f"gone-0.{'0123456789abcdef' * 2}-delete"
    (tmp_path / gone).mkdir()
    for name in ("notes.txt", "plain-0/vim.swp", f"plain-0/{0:020d}.index.swap"):
        (tmp_path / name).write_text("")
    found = [one for one in verify(tmp_path) if one.law in ("DISK-3", "LOAD-1")]
    assert {"notes.txt", "vim.swp", gone, f"{0:020d}.index.swap"} == {
        Path(one.path).name for one in found
    }
    for finding in found:
        words = shlex.split(finding.reproduce)
        assert finding.path in {one.path for one in verify(words[2], laws=[finding.law])}


def test_refused_directory_reproduces(tmp_path: Path) -> None:
    """A directory that can't be listed is a finding of the one above it."""

    def list_directory(path: str) -> list[str]:
        if path.endswith("plain-0"):
            raise PermissionError(13, "Permission denied")
        return REAL_FILES.list_directory(path)

    refusing = altered(list_directory=list_directory)
    copied_partition("plain", tmp_path)
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (finding,) = (one for one in defects_on(refusing, tmp_path) if one.law == "DISK-1")
    again = defects_on(refusing, Path(shlex.split(finding.reproduce)[2]))
    assert finding in again


def test_unread_transaction_index_is_one_finding(tmp_path: Path) -> None:
    """An index that can't be read says nothing about what is missing in it."""
    folder = copied_partition("txn-a", tmp_path)
    count = len(list(folder.glob("*.txnindex")))
    found = defects_on(BROKEN_TRANSACTION_INDEX, folder)
    assert ["DISK-1"] * count == [one.law for one in found]


@pytest.mark.parametrize("entry_follows", [True, False])
def test_marker_written_while_the_index_is_read(tmp_path: Path, entry_follows: bool) -> None:
    """A broker writes the marker of an abort first and its entry then; absent ones are found."""
    folder = copied_partition("txn-a", tmp_path)
    last = max(folder.glob("*.log")).stem
    log, index = folder / f"{last}.log", folder / f"{last}.txnindex"
    whole, entries = log.read_bytes(), index.read_bytes()
    marker = int.from_bytes(entries[-16:-8], "big")
    at = whole.rindex(marker.to_bytes(8, "big"), 0)
    while whole[at + 16] != 2 or whole[at + 22] & 32 == 0:
        at = whole.rindex(marker.to_bytes(8, "big"), 0, at)
    for suffix in (".index", ".timeindex"):
        (folder / (last + suffix)).unlink()
    log.write_bytes(whole[:at])
    index.write_bytes(entries[:-ENTRY_BYTES])

    def abort() -> None:
        log.write_bytes(whole)
        if entry_follows:
            index.write_bytes(entries)

    for suffix in (".txnindex", ".log"):
        log.write_bytes(whole[:at])
        index.write_bytes(entries[:-ENTRY_BYTES])
        found = [one.law for one in defects_on(disturbed(last + suffix, abort), folder)]
        seen_at_once = suffix == ".log"
        assert (["DISK-12"] if seen_at_once and not entry_follows else []) == found
    assert ([] if entry_follows else ["DISK-12"]) == [
        one.law for one in defects_on(REAL_FILES, folder)
    ]


def test_segment_replaced_while_it_is_read(tmp_path: Path) -> None:
    """Files of two states of one segment do not fit; each state by itself is sound."""
    folder = copied_partition("plain", tmp_path / "new")
    names = [f"{60:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")]

    def restore() -> None:
        for name in names:
            fresh = folder / f"{name}.new"
            shutil.copy(DATA / "plain" / "plain-0" / name, fresh)
            os.replace(fresh, folder / name)

    index = folder / names[1]
    index.write_bytes((folder / f"{162:020d}.index").read_bytes())
    assert defects_on(REAL_FILES, folder)
    assert [] == defects_on(disturbed(names[2], restore), folder)


def test_entries_left_by_a_truncation(tmp_path: Path) -> None:
    """After its count a broker's index may hold old entries: a note once the log has gone on."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    index, times = log.with_suffix(".index"), log.with_suffix(".timeindex")
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    used = [one for one in entries if one != (0, 0)]
    os.truncate(log, used[-2][1])
    notes = [one for one in verify(folder) if one.law in ("SEG-7", "DISK-9")]
    assert [
        ("SEG-7", str(index), 8 * (len(used) - 2)),
        ("DISK-9", str(times), 12 * (len(used) - 2)),
    ] == [(one.law, one.path, one.position) for one in notes]
    assert ["SEG-7", "DISK-9"] == [one.law for one in defects_on(REAL_FILES, folder)]
    end = int(log.stem) + entries[len(used) - 3][0] + 1000
    later = batch(end, time=1 << 41)
    log.write_bytes(log.read_bytes() + later)
    assert [] == defects_on(REAL_FILES, folder)
    # a damaged entry before sound ones, a trimmed file, and a closed segment
    whole = index.read_bytes()
    index.write_bytes(whole[:8] + offset_entries((used[1][0], used[1][1] + 1)) + whole[16:])
    assert [8] == [one.position for one in defects_on(REAL_FILES, folder)][:1]
    index.write_bytes(whole[: 8 * len(used)])
    assert ["SEG-7", "SEG-7"] == [one.law for one in defects_on(REAL_FILES, folder)]
    index.write_bytes(whole)
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert {"SEG-7", "DISK-9", "DISK-6"} <= {one.law for one in defects_on(REAL_FILES, folder)}


@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize("kept", [0, 3])
def test_entries_that_lead_into_zeros_tell_of_lost_batches(kept: int, tmp_path: Path) -> None:
    """A truncation cuts a log; of one that was overwritten with zeros only notes were told."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    index = log.with_suffix(".index")
    position = int.from_bytes(index.read_bytes()[8 * kept + 4 :][:4], "big") if kept else 0
    log.write_bytes(log.read_bytes()[:position].ljust(1 << 18, b"\0"))
    assert [
        ("DISK-25", str(log), position, Severity.ERROR),
        ("SEG-7", str(index), 8 * kept, Severity.WARNING),
        ("DISK-9", str(index.with_suffix(".timeindex")), 12 * kept, Severity.WARNING),
    ] == [
        (one.law, one.path, one.position, one.severity) for one in verify(folder) if one.is_defect
    ]


@pytest.mark.checks("DISK-6")
def test_the_marker_of_a_clean_stop_says_nothing_of_the_metadata(tmp_path: Path) -> None:
    """A broker killed between the marker and the end of its controller left an index untrimmed."""
    folders = [tmp_path / "t-0", tmp_path / "__cluster_metadata-0"]
    for folder in folders:
        # This dump was taken while its broker ran: the indexes of its last segment end in zeros.
        copied_partition("plain", tmp_path).rename(folder)
    vote = (
        b'{"leaderId":1,"leaderEpoch":7,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}'
    )
    (folders[1] / "quorum-state").write_bytes(vote)
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert ["DISK-6", "DISK-6"] == [one.law for one in defects_on(REAL_FILES, folders[0])]
    assert [] == defects_on(REAL_FILES, folders[1])


def test_batch_that_is_being_written(tmp_path: Path) -> None:
    """Half a batch behind the size that the log has meanwhile outgrown is no finding."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-137])
    assert ["DUMP-6"] == [one.law for one in defects_on(REAL_FILES, folder) if one.path == str(log)]

    def finish() -> None:
        log.write_bytes(whole)

    assert [] == defects_on(disturbed(log.stem + ".index", finish), folder)


def some_defects(files: Any, path: Path) -> list[str]:
    """Return the laws of the defects found on other files than the real ones."""
    return [one.law for one in defects_on(files, path)]


FIRST_LOOK, SECOND_LOOK = 3, 4
"""Which listing of a directory is a look at its log: RocketMQ and folders are looked for first."""


@pytest.mark.parametrize("when", ["listed", "opened"])
def test_segment_removed_while_it_is_read(tmp_path: Path, when: str) -> None:
    """Retention removed a segment behind the listing: a note; it was three warnings."""
    folder = copied_partition("plain", tmp_path)
    first = min(folder.glob("*.log")).stem

    def remove(count: int = FIRST_LOOK) -> None:
        for path in folder.glob(f"{first}.*"):
            if count == FIRST_LOOK:
                path.rename(f"{path}.deleted")

    files = listed(remove) if when == "listed" else disturbed(f"{first}.log", remove)
    found = [one for one in verify(folder, files=files) if one.law == "DISK-2"]
    assert [(False, f"{first}.log")] == [(one.is_defect, Path(one.path).name) for one in found]


@pytest.mark.parametrize("count", [1, 2])
def test_file_that_vanishes_at_two_looks(tmp_path: Path, count: int) -> None:
    """A file that is listed and gone twice, since it was made anew between, is no finding."""
    folder = copied_partition("plain", tmp_path)
    last = max(folder.glob("*.log"))
    names = [last, last.with_suffix(".index"), last.with_suffix(".timeindex")]

    def move(suffix: str) -> None:
        for name in names:
            beside = name.with_suffix(name.suffix + ".deleted")
            old, new = (beside, name) if suffix == "" else (name, beside)
            if old.exists():
                old.rename(new)

    def vanish(number: int) -> None:
        if number <= count:
            move(".deleted")

    assert [] == some_defects(listed(vanish, before=lambda _: move("")), folder)


def test_other_defects_at_each_look(tmp_path: Path) -> None:
    """What changed at each of two looks is looked at once more; it was a warning at once."""
    folder = copied_partition("plain", tmp_path)
    last = max(folder.glob("*.log"))
    index = last.with_suffix(".index")
    whole = index.read_bytes()
    slots = [0, 8]

    def tear(path: str, **options: Any) -> Any:
        if path == str(index):
            data = bytearray(whole)
            if slots:
                at = slots.pop(0)
                data[at + 4 : at + 8] = b"\x7f" * 4
            index.write_bytes(data)
        return REAL_FILES.open(path, **options)

    assert [] == some_defects(altered(open=tear), folder)
    assert [] == slots
    index.write_bytes(whole[:12] + b"\x7f" * 4 + whole[16:])
    assert 8 in {one.position for one in defects_on(REAL_FILES, folder)}


def test_a_segment_that_is_never_at_rest(tmp_path: Path) -> None:
    """Where each of five looks finds something else, that is said."""
    folder = copied_partition("plain", tmp_path)
    index = max(folder.glob("*.log")).with_suffix(".index")
    whole = index.read_bytes()
    looks = 0

    def change(path: str, **options: Any) -> Any:
        nonlocal looks
        if path == str(index):
            at = 8 * (looks % 2)
            index.write_bytes(whole[: at + 4] + b"\x7f" * 4 + whole[at + 8 :])
            looks += 1
        return REAL_FILES.open(path, **options)

    (finding,) = defects_on(altered(open=change), folder)
    assert ("DISK-2", 5) == (finding.law, looks)
    assert "at each of 5 looks" in finding.message


@pytest.mark.parametrize("is_rolled_again", [False, True])
def test_truncation_cuts_what_was_closed(tmp_path: Path, is_rolled_again: bool) -> None:
    """A truncation removes later segments and cuts the one before them: no finding."""
    folder = copied_partition("plain", tmp_path)
    *_, before, last = sorted(folder.glob("*.log"))
    first_batch = struct.unpack_from(">i", before.read_bytes(), 8)[0] + 12

    def truncate() -> None:
        for path in folder.glob(f"{last.stem}.*"):
            path.rename(f"{path}.deleted")
            if is_rolled_again:
                shutil.copy(f"{path}.deleted", path)
        os.truncate(before, first_batch)
        for suffix, size in ((".index", 0), (".timeindex", 0)):
            os.truncate(before.with_suffix(suffix), size)
        if is_rolled_again:
            kept, base_offset = before.read_bytes(), int(before.stem)
            batch = read_batch(kept)
            filled = write_empty_batch(batch.last_offset + 1, int(last.stem) - 1, -1)
            before.write_bytes(kept + filled)
            entry = struct.pack(">qi", batch.max_timestamp, batch.last_offset - base_offset)
            before.with_suffix(".timeindex").write_bytes(entry)

    asked = 0

    def open_file(path: str, **options: Any) -> Any:
        file = REAL_FILES.open(path, **options)

        def size() -> int:
            """Return the size, the second time from before the cut."""
            nonlocal asked
            found, asked = file.size(), asked + 1
            if asked == 2:
                truncate()
            return found

        return altered(file, size=size) if path == str(before) else file

    assert [] == some_defects(altered(open=open_file), folder)


def test_truncation_between_names_and_sizes(tmp_path: Path) -> None:
    """A truncation behind the listing makes a segment the last one: its indexes may end in zeros.

    Nor has it changed since its sizes were taken, nor a moment ago.
    """
    folder = copied_partition("plain", tmp_path)
    *_, before, last = sorted(folder.glob("*.log"))

    def truncate(count: int) -> None:
        if count != FIRST_LOOK:
            return
        for path in folder.glob(f"{last.stem}.*"):
            path.rename(f"{path}.deleted")
        for suffix in (".index", ".timeindex"):
            path = before.with_suffix(suffix)
            os.truncate(path, path.stat().st_size + 240)
        for path in (*folder.iterdir(), folder):
            os.utime(path, (1, 1))

    assert [] == some_defects(listed(truncate), folder)


def test_snapshot_removed_while_it_is_read(tmp_path: Path) -> None:
    """Rolling removes old snapshots: one that was listed and is gone is no finding."""
    folder = copied_partition("txn-a", tmp_path)
    snapshot = max(folder.glob("*.snapshot"))

    def remove(count: int = FIRST_LOOK) -> None:
        if count == FIRST_LOOK:
            snapshot.unlink()

    for files in (listed(remove), disturbed(snapshot.name, remove)):
        kept = snapshot.read_bytes()
        assert [] == some_defects(files, folder)
        assert not snapshot.exists()
        snapshot.write_bytes(kept)


def test_listing_between_two_renames(tmp_path: Path) -> None:
    """The log of a removed segment is renamed before its indexes: they are no strays yet."""
    folder = copied_partition("plain", tmp_path)
    first = min(folder.glob("*.log"))
    first.rename(f"{first}.deleted")

    def finish(count: int) -> None:
        for suffix in (".index", ".timeindex"):
            path = first.with_suffix(suffix)
            if count == SECOND_LOOK and path.exists():
                path.rename(f"{path}.deleted")

    assert [] == some_defects(listed(before=finish), folder)


def test_truncation_between_log_and_snapshots(tmp_path: Path) -> None:
    """A truncation cuts the log first and removes the snapshots behind its end then."""
    folder = copied_partition("txn-a", tmp_path)
    stray = folder / f"{99999:020d}.snapshot"

    def finish(count: int) -> None:
        if count == SECOND_LOOK and stray.exists():
            stray.unlink()

    shutil.copy(max(folder.glob("*.snapshot")), stray)
    assert ["DISK-36"] == some_defects(REAL_FILES, folder)
    assert [] == some_defects(listed(before=finish), folder)
    assert not stray.exists()


def test_log_that_begins_anew(tmp_path: Path) -> None:
    """Between removing all segments and making the first new one a log has none."""
    folder = copied_partition("plain", tmp_path)
    for path in folder.glob("*.*"):
        path.rename(f"{path}.deleted")

    def finish(count: int) -> None:
        if count == SECOND_LOOK:
            for suffix in (".log", ".index", ".timeindex"):
                (folder / f"{7:020d}{suffix}").touch()

    assert [] == some_defects(listed(before=finish), folder)
