# SPDX-License-Identifier: Apache-2.0
"""What a broker that is running, or was killed, leaves on its disk is no defect."""

import os
import shlex
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.files import REAL_FILES, Files
from segproof.findings import Finding, Severity
from segproof.kafka import read_batch, write_empty_batch
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA

DATA = KAFKA
TXN = "00000000000000001014"
ENTRY_BYTES = 34


class Disturbed:
    """Real files; when one is opened for the first time, something else happens first."""

    def __init__(self, when: str, happens: Callable[[], None]) -> None:
        self._when = when
        self._happens: Callable[[], None] | None = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL_FILES, name)

    def open(self, path: str, **options: Any) -> Any:
        """Open a file."""
        if path.endswith(self._when) and self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        return REAL_FILES.open(path, **options)


class BrokenTransactionIndex:
    """Real files; a transaction index opens and cannot be read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL_FILES, name)

    def open(self, path: str, **options: Any) -> Any:
        """Open a file."""
        file = REAL_FILES.open(path, **options)
        return _Unreadable(file) if path.endswith(".txnindex") else file


class _Unreadable:
    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def pread(self, size: int, position: int) -> bytes:
        """Fail as a bad disk does."""
        raise OSError(5, "Input/output error")


def run_on(files: object, path: Path) -> list[Finding]:
    """Return the defects found on other files than the real ones."""
    kept: Files = files  # type: ignore[assignment]
    return [one for one in verify(path, files=kept) if one.is_defect]


def copy(scenario: str, target: Path) -> Path:
    """Copy the partition of a scenario; return it, writable."""
    (partition,) = (path for path in (DATA / scenario).iterdir() if any(path.glob("*.log")))
    folder = target / partition.name
    shutil.copytree(partition, folder)
    return folder


def test_findings_about_names_reproduce(tmp_path: Path) -> None:
    """What only the directory above shows is shown again by the path of that directory."""
    copy("plain", tmp_path)
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

    class Refusing(BrokenTransactionIndex):
        """Real files; one directory can't be listed."""

        def list_directory(self, path: str) -> list[str]:
            """Refuse one directory."""
            if path.endswith("plain-0"):
                raise PermissionError(13, "Permission denied")
            return REAL_FILES.list_directory(path)

    copy("plain", tmp_path)
    (tmp_path / "meta.properties").write_text("")
    (finding,) = (one for one in run_on(Refusing(), tmp_path) if one.law == "DISK-1")
    again = run_on(Refusing(), Path(shlex.split(finding.reproduce)[2]))
    assert finding in again


def test_unread_transaction_index_is_one_finding(tmp_path: Path) -> None:
    """An index that can't be read says nothing about what is missing in it."""
    folder = copy("txn-a", tmp_path)
    count = len(list(folder.glob("*.txnindex")))
    found = run_on(BrokenTransactionIndex(), folder)
    assert ["DISK-1"] * count == [one.law for one in found]


@pytest.mark.parametrize("entry_follows", [True, False])
def test_marker_written_while_the_index_is_read(tmp_path: Path, entry_follows: bool) -> None:
    """A broker writes the marker of an abort first and its entry then; absent ones are found."""
    folder = copy("txn-a", tmp_path)
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
        found = [one.law for one in run_on(Disturbed(last + suffix, abort), folder)]
        seen_at_once = suffix == ".log"
        assert (["DISK-12"] if seen_at_once and not entry_follows else []) == found
    assert ([] if entry_follows else ["DISK-12"]) == [one.law for one in run_on(REAL_FILES, folder)]


def test_segment_replaced_while_it_is_read(tmp_path: Path) -> None:
    """Files of two states of one segment do not fit; each state by itself is sound."""
    folder = copy("plain", tmp_path / "new")
    names = [f"{60:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")]

    def restore() -> None:
        for name in names:
            fresh = folder / f"{name}.new"
            shutil.copy(DATA / "plain" / "plain-0" / name, fresh)
            os.replace(fresh, folder / name)

    index = folder / names[1]
    index.write_bytes((folder / f"{162:020d}.index").read_bytes())
    assert run_on(REAL_FILES, folder)
    assert [] == run_on(Disturbed(names[2], restore), folder)


def test_entries_left_by_a_truncation(tmp_path: Path) -> None:
    """Behind its count a broker's index may hold old entries: a note; nowhere else."""
    folder = copy("plain", tmp_path)
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
    assert [] == run_on(REAL_FILES, folder)
    # a damaged entry before sound ones, a trimmed file, and a closed segment
    whole = index.read_bytes()
    index.write_bytes(whole[:8] + struct.pack(">ii", used[1][0], used[1][1] + 1) + whole[16:])
    assert [8] == [one.position for one in run_on(REAL_FILES, folder)][:1]
    index.write_bytes(whole[: 8 * len(used)])
    assert ["SEG-7", "SEG-7"] == [one.law for one in run_on(REAL_FILES, folder)]
    index.write_bytes(whole)
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert {"SEG-7", "DISK-9", "DISK-6"} <= {one.law for one in run_on(REAL_FILES, folder)}


@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize("kept", [0, 3])
def test_entries_that_lead_into_zeros_tell_of_lost_batches(kept: int, tmp_path: Path) -> None:
    """A truncation cuts a log; of one that was overwritten with zeros only notes were told."""
    folder = copy("plain", tmp_path)
    log = max(folder.glob("*.log"))
    index = log.with_suffix(".index")
    position = int.from_bytes(index.read_bytes()[8 * kept + 4 :][:4], "big") if kept else 0
    log.write_bytes(log.read_bytes()[:position].ljust(1 << 18, b"\0"))
    assert [("SEG-7", str(index), 8 * kept, Severity.WARNING)] == [
        (one.law, one.path, one.position, one.severity) for one in verify(folder) if one.is_defect
    ]


@pytest.mark.checks("DISK-6")
def test_the_marker_of_a_clean_stop_says_nothing_of_the_metadata(tmp_path: Path) -> None:
    """A broker killed between the marker and the end of its controller left an index untrimmed."""
    folders = [tmp_path / "t-0", tmp_path / "__cluster_metadata-0"]
    for folder in folders:
        # This dump was taken while its broker ran: the indexes of its last segment end in zeros.
        copy("plain", tmp_path).rename(folder)
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert ["DISK-6", "DISK-6"] == [one.law for one in run_on(REAL_FILES, folders[0])]
    assert [] == run_on(REAL_FILES, folders[1])


def test_batch_that_is_being_written(tmp_path: Path) -> None:
    """Half a batch behind the size that the log has meanwhile outgrown is no finding."""
    folder = copy("plain", tmp_path)
    log = max(folder.glob("*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-137])
    assert ["DUMP-6"] == [one.law for one in run_on(REAL_FILES, folder) if one.path == str(log)]

    def finish() -> None:
        log.write_bytes(whole)

    assert [] == run_on(Disturbed(log.stem + ".index", finish), folder)


def some_defects(files: object, path: Path) -> list[str]:
    """Return the laws of the defects found on other files than the real ones."""
    return [one.law for one in run_on(files, path)]


FIRST_LOOK, SECOND_LOOK = 2, 3
"""Which listing of a directory is a look at its log; the first of all looks for RocketMQ's."""


class Listed:
    """Real files; something happens right behind each listing of the directory."""

    def __init__(self, happens: Callable[[int], None]) -> None:
        self._happens = happens
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL_FILES, name)

    def list_directory(self, path: str) -> list[str]:
        """List, then let it happen."""
        names = REAL_FILES.list_directory(path)
        self.count += 1
        self._happens(self.count)
        return names


class Before(Listed):
    """What happens, happens before the listing."""

    def list_directory(self, path: str) -> list[str]:
        """Let it happen, then list."""
        self.count += 1
        self._happens(self.count)
        return REAL_FILES.list_directory(path)


@pytest.mark.parametrize("when", ["listed", "opened"])
def test_segment_removed_while_it_is_read(tmp_path: Path, when: str) -> None:
    """Retention removed a segment behind the listing: a note; it was three warnings."""
    folder = copy("plain", tmp_path)
    first = min(folder.glob("*.log")).stem

    def remove(count: int = FIRST_LOOK) -> None:
        for path in folder.glob(f"{first}.*"):
            if count == FIRST_LOOK:
                path.rename(f"{path}.deleted")

    files = Listed(remove) if when == "listed" else Disturbed(f"{first}.log", remove)
    kept: Any = files
    found = [one for one in verify(folder, files=kept) if one.law == "DISK-2"]
    assert [(False, f"{first}.log")] == [(one.is_defect, Path(one.path).name) for one in found]


@pytest.mark.parametrize("count", [1, 2])
def test_file_that_vanishes_at_two_looks(tmp_path: Path, count: int) -> None:
    """A file that is listed and gone twice, since it was made anew between, is no finding."""
    folder = copy("plain", tmp_path)
    last = max(folder.glob("*.log"))
    names = [last, last.with_suffix(".index"), last.with_suffix(".timeindex")]

    def happens(listed: int) -> None:
        for name in names:
            beside = name.with_suffix(name.suffix + ".deleted")
            if listed <= count:
                name.rename(beside)

    class Again(Listed):
        """Before each listing the files are there again."""

        def list_directory(self, path: str) -> list[str]:
            """Put the files back, list, take them away."""
            for name in names:
                beside = name.with_suffix(name.suffix + ".deleted")
                if beside.exists():
                    beside.rename(name)
            return super().list_directory(path)

    assert [] == some_defects(Again(happens), folder)


def test_other_defects_at_each_look(tmp_path: Path) -> None:
    """What changed at each of two looks is looked at once more; it was a warning at once."""
    folder = copy("plain", tmp_path)
    last = max(folder.glob("*.log"))
    index = last.with_suffix(".index")
    whole = index.read_bytes()
    slots = [0, 8]

    class Torn(BrokenTransactionIndex):
        """Real files; at two openings another slot of the index is wrong."""

        def open(self, path: str, **options: Any) -> Any:
            """Open a file."""
            if path == str(index):
                data = bytearray(whole)
                if slots:
                    at = slots.pop(0)
                    data[at + 4 : at + 8] = b"\x7f" * 4
                index.write_bytes(data)
            return REAL_FILES.open(path, **options)

    assert [] == some_defects(Torn(), folder)
    assert [] == slots
    index.write_bytes(whole[:12] + b"\x7f" * 4 + whole[16:])
    assert 8 in {one.position for one in run_on(REAL_FILES, folder)}


def test_a_segment_that_is_never_at_rest(tmp_path: Path) -> None:
    """Where each of five looks finds something else, that is said."""
    folder = copy("plain", tmp_path)
    index = max(folder.glob("*.log")).with_suffix(".index")
    whole = index.read_bytes()
    looks = 0

    class Restless(BrokenTransactionIndex):
        """Real files; at each opening another slot of the index is wrong."""

        def open(self, path: str, **options: Any) -> Any:
            """Open a file."""
            nonlocal looks
            if path == str(index):
                at = 8 * (looks % 2)
                index.write_bytes(whole[: at + 4] + b"\x7f" * 4 + whole[at + 8 :])
                looks += 1
            return REAL_FILES.open(path, **options)

    (finding,) = run_on(Restless(), folder)
    assert ("DISK-2", 5) == (finding.law, looks)
    assert "at each of 5 looks" in finding.message


@pytest.mark.parametrize("is_rolled_again", [False, True])
def test_truncation_cuts_what_was_closed(tmp_path: Path, is_rolled_again: bool) -> None:
    """A truncation removes later segments and cuts the one before them: no finding.

    Nor where a segment of the same name as before follows at the next look.
    """
    folder = copy("plain", tmp_path)
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

    class Cut(BrokenTransactionIndex):
        """Real files; behind the opening of the last log's neighbour it is cut."""

        is_cut = False

        def open(self, path: str, **options: Any) -> Any:
            """Open a file, which is cut when its size is known."""
            file = REAL_FILES.open(path, **options)
            if path == str(before) and not self.is_cut:
                self.is_cut = True
                return _CutLater(file, truncate)
            return file

    assert [] == some_defects(Cut(), folder)


class _CutLater:
    """A file of which the size is told once, and then it is cut."""

    def __init__(self, file: Any, cut: Callable[[], None]) -> None:
        self._file = file
        self._cut = cut
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def size(self) -> int:
        """Return the size, the second time from before the cut."""
        size: int = self._file.size()
        self._asked += 1
        if self._asked == 2:
            self._cut()
        return size


def test_truncation_between_names_and_sizes(tmp_path: Path) -> None:
    """A truncation behind the listing makes a segment the last one: its indexes may end in zeros.

    Nor has it changed since its sizes were taken, nor a moment ago.
    """
    folder = copy("plain", tmp_path)
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

    assert [] == some_defects(Listed(truncate), folder)


def test_snapshot_removed_while_it_is_read(tmp_path: Path) -> None:
    """Rolling removes old snapshots: one that was listed and is gone is no finding."""
    folder = copy("txn-a", tmp_path)
    snapshot = max(folder.glob("*.snapshot"))

    def remove(count: int = FIRST_LOOK) -> None:
        if count == FIRST_LOOK:
            snapshot.unlink()

    for files in (Listed(remove), Disturbed(snapshot.name, remove)):
        kept = snapshot.read_bytes()
        assert [] == some_defects(files, folder)
        assert not snapshot.exists()
        snapshot.write_bytes(kept)


def test_listing_between_two_renames(tmp_path: Path) -> None:
    """The log of a removed segment is renamed before its indexes: they are no strays yet."""
    folder = copy("plain", tmp_path)
    first = min(folder.glob("*.log"))
    first.rename(f"{first}.deleted")

    def finish(count: int) -> None:
        for suffix in (".index", ".timeindex"):
            path = first.with_suffix(suffix)
            if count == SECOND_LOOK and path.exists():
                path.rename(f"{path}.deleted")

    assert [] == some_defects(Before(finish), folder)


def test_truncation_between_log_and_snapshots(tmp_path: Path) -> None:
    """A truncation cuts the log first and removes the snapshots behind its end then."""
    folder = copy("txn-a", tmp_path)
    stray = folder / f"{99999:020d}.snapshot"

    def finish(count: int) -> None:
        if count == SECOND_LOOK and stray.exists():
            stray.unlink()

    shutil.copy(max(folder.glob("*.snapshot")), stray)
    assert ["DISK-36"] == some_defects(REAL_FILES, folder)
    assert [] == some_defects(Before(finish), folder)
    assert not stray.exists()


def test_log_that_begins_anew(tmp_path: Path) -> None:
    """Between removing all segments and making the first new one a log has none."""
    folder = copy("plain", tmp_path)
    for path in folder.glob("*.*"):
        path.rename(f"{path}.deleted")

    def finish(count: int) -> None:
        if count == SECOND_LOOK:
            for suffix in (".log", ".index", ".timeindex"):
                (folder / f"{7:020d}{suffix}").touch()

    assert [] == some_defects(Before(finish), folder)
