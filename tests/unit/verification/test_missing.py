# SPDX-License-Identifier: Apache-2.0
"""What `verify` says of things that are gone: index entries, segments, and directories met twice.

What remains is whole and right in each of these cases, so nothing but its extent tells.
"""

import os
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.verification import verify
from segproof_harness.laws.borders.log_files import marker, offset_entries, time_entries
from segproof_tests.altered_files import altered, disturbed, listed
from segproof_tests.partition_files import copied_partition, name_of, write_segment
from segproof_tests.small_logs import batch, log_of

MIB = 1 << 20


def found(path: Path, law: str, **more: Any) -> list[Finding]:
    """Return the findings of one law."""
    return list(verify(path, laws=[law], **more))


# --- the end of an offset index


def sized(count: int, size: int) -> tuple[bytes, list[int]]:
    """Return a log of batches of about `size` bytes, and where they begin."""
    batches = [batch(offset, bytes(size)) for offset in range(count)]
    starts = [sum(map(len, batches[:row])) for row in range(count)]
    return b"".join(batches), starts


def indexed(starts: list[int], *offsets: int) -> bytes:
    """Return an offset index with entries for these batches."""
    return offset_entries(*((offset, starts[offset]) for offset in offsets))


def timed(*offsets: int) -> bytes:
    """Return a time index with entries for these batches."""
    return time_entries(*((1000 + offset, offset) for offset in offsets))


@pytest.mark.checks("DISK-24")
@pytest.mark.parametrize("is_closed", [False, True])
def test_index_emptied_below_a_long_log(tmp_path: Path, is_closed: bool) -> None:
    """More than 16 MiB without an entry is told, in a closed segment and in the open one."""
    log, starts = sized(14, 2 * MIB)
    folder = write_segment(tmp_path / "t-0", log, index=b"", timeindex=timed(13))
    if is_closed:
        write_segment(folder, b"", 14)
    (one,) = found(folder, "DISK-24")
    assert (Severity.WARNING, 0, str(16 * MIB), str(starts[13])) == (
        one.severity, one.position, one.expected, one.actual,
    )  # fmt: skip
    # Behind the last entry 16 MiB are lawful, and so is 8 times the widest gap, where that is more.
    lawful = {(1, 2, 3, 4, 5, 6): True, (1, 3): True, (1, 2, 3, 4): False, (1, 2, 3): False}
    for offsets, is_lawful in lawful.items():
        index = folder / name_of(0, ".index")
        index.write_bytes(indexed(starts, *offsets))
        assert is_lawful == (found(folder, "DISK-24") == []), offsets


@pytest.mark.checks("DISK-24")
def test_one_large_append_needs_no_entry(tmp_path: Path) -> None:
    """What counts is where the last batch begins, not how long it is."""
    log = batch(0) + batch(1, bytes(20 * MIB))
    folder = write_segment(tmp_path / "t-0", log, index=b"", timeindex=timed(1))
    assert [] == found(folder, "DISK-24")


@pytest.mark.checks("DISK-24")
def test_time_entries_tell_of_lost_entries(tmp_path: Path) -> None:
    """A time entry is written with an offset entry: nine without one, and 64 KiB, tell."""
    log, starts = sized(12, 8 << 10)
    index = indexed(starts, 1)
    nine, eight = timed(*range(2, 11)), timed(*range(2, 10))
    folder = write_segment(tmp_path / "t-0", log, index=index, timeindex=nine)
    (one,) = found(folder, "DISK-24")
    assert (8, str(64 << 10), str(starts[11] - starts[1])) == (
        one.position,
        one.expected,
        one.actual,
    )
    (alone,) = found(folder / name_of(0, ".index"), "DISK-24")
    assert one == alone
    for few in (eight, timed(0, 1, *range(2, 10)), nine[:-12] + timed(99)):
        (folder / name_of(0, ".timeindex")).write_bytes(few)
        assert [] == found(folder, "DISK-24")


def open_growing(path: str, *, writable: bool = False, create: bool = False) -> Any:
    """Open for reading only; a log is still empty when it is first asked for its size."""
    assert not writable
    assert not create
    file, sizes = REAL_FILES.open(path), [0]
    first = lambda: sizes.pop() if sizes else file.size()  # noqa: E731
    return altered(file, size=first) if path.endswith(".log") else file


@pytest.mark.checks("DISK-24")
def test_what_is_appended_meanwhile_is_not_missed(tmp_path: Path) -> None:
    """Of batches that came after the indexes were read, these can't have entries."""
    log, _ = sized(12, 8 << 10)
    times = timed(*range(12))
    folder = write_segment(tmp_path / "t-0", log, index=b"", timeindex=times)
    assert [] == found(folder, "DISK-24", files=altered(open=open_growing))
    assert 1 == len(found(folder, "DISK-24"))


# --- offsets between segments


def partition(folder: Path, *batches: bytes, following: int = 10) -> Path:
    """Write a segment of these batches and an empty one behind it."""
    write_segment(folder, b"".join(batches), index=b"", timeindex=b"")
    return write_segment(folder, b"", following, index=b"", timeindex=b"")


MARKER = marker(3, "COMMIT")


@pytest.mark.checks("DISK-25")
def test_lost_segment_among_records_without_keys(tmp_path: Path) -> None:
    """A gap behind a record without a key is a warning that says which offsets, and what to do."""
    folder = partition(tmp_path / "t-0", batch(0, key=b"k"), batch(1))
    (one,) = found(folder, "DISK-25")
    assert (Severity.WARNING, name_of(0, ".log")) == (one.severity, Path(one.path).name)
    assert ("2", "10") == (one.expected, one.actual)
    assert "8 offsets" in one.message
    assert "replica" in one.hint
    for following in (2, 1):
        whole = partition(tmp_path / f"u{following}-0", batch(0), batch(1), following=following)
        assert [] == found(whole, "DISK-25")


@pytest.mark.checks("DISK-25")
def test_records_with_keys_may_be_compacted(tmp_path: Path) -> None:
    """Where each record of the last batch has a key, compaction may have made the gap."""
    folder = partition(tmp_path / "t-0", batch(0), batch(1, key=b""), MARKER)
    assert [] == found(folder, "DISK-25")
    assert ["7"] == [one.actual for one in found(folder, "DISK-19")]


@pytest.mark.checks("DISK-25")
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_format_has_keys(tmp_path: Path, magic: int, compression: str) -> None:
    """The last batch of records is read in every format; markers behind it are none."""
    if magic < 2:
        compression = {"none": "none", "zstd": "gzip"}[compression]
    last = batch(2, magic=magic, compression=compression)
    markers = (MARKER,) if magic == 2 else ()
    assert 1 == len(found(partition(tmp_path / "t-0", last, *markers), "DISK-25"))


@pytest.mark.checks("DISK-25")
def test_a_damaged_end_tells_nothing(tmp_path: Path) -> None:
    """If the last batch is damaged or cut, which offsets the log held is unknown."""
    bad = batch(1)[:-1] + b"!"
    assert [] == found(partition(tmp_path / "t-0", batch(0), bad), "DISK-25")
    assert [] == found(partition(tmp_path / "u-0", batch(0), batch(1)[:-1]), "DISK-25")
    assert [] == found(partition(tmp_path / "v-0", b""), "DISK-25")
    large = partition(tmp_path / "w-0", batch(0, bytes(1000)))
    assert [] == found(large, "DISK-25", limit=999)
    assert 1 == len(found(large, "DISK-25"))


@pytest.mark.checks("DISK-25")
def test_an_index_shows_what_a_log_that_was_cut_held(tmp_path: Path) -> None:
    """A log that was emptied, or cut between two batches, is more than a damaged index."""
    folder = copied_partition("compacted", tmp_path)
    first, second = sorted(folder.glob("*.log"))[:2]
    first.write_bytes(b"")
    (one,) = found(folder, "DISK-25")
    assert (Severity.ERROR, 0, "0", str(int(second.stem))) == (
        one.severity, one.position, one.expected, one.actual
    )  # fmt: skip
    assert "keep its .index file" in one.hint
    beside = [one for one in verify(folder) if one.law in ("SEG-7", "DISK-9")]
    assert {".index", ".timeindex"} == {Path(one.path).suffix for one in beside}
    assert not any("rebuild" in one.hint for one in beside)
    first.with_suffix(".index").unlink()
    assert [] == found(folder, "DISK-25")


@pytest.mark.checks("DISK-25")
def test_compacted_log_without_a_segment(tmp_path: Path) -> None:
    """A real compacted log, with and without its segment in the middle, raises no alarm."""
    folder = copied_partition("compacted", tmp_path)
    middle = sorted(folder.glob("*.log"))[1].stem
    for _ in range(2):
        assert [] == [one for one in verify(folder, deep=True) if one.is_defect]
        assert found(folder, "DISK-19")
        for path in folder.glob(f"{middle}.*"):
            path.unlink()


def late(missed: str, listed: list[str]) -> Any:
    """Return real files of which the first listing lacks one segment; `listed` gets the folders."""

    def list_directory(path: str) -> list[str]:
        listed.append(path)
        names = REAL_FILES.list_directory(path)
        if len(listed) > 1:
            return names
        return [name for name in names if not name.startswith(missed)]

    return altered(list_directory=list_directory)


@pytest.mark.checks("DISK-25")
def test_listing_that_misses_a_segment(tmp_path: Path) -> None:
    """A file made while a directory is listed may not be in the list: the second look decides."""
    folder = partition(tmp_path / "t-0", batch(0), batch(1))
    write_segment(folder, log_of(2, 10), 2)
    listed: list[str] = []
    assert [] == found(folder, "DISK-25", files=late(name_of(2, ""), listed))
    assert len(listed) > 1


# --- directories


@pytest.mark.checks("DISK-26")
def test_cycle_of_links_ends_at_once(tmp_path: Path) -> None:
    """A link that leads back is named, and what lies behind it is not listed again."""
    data = tmp_path / "data"
    write_segment(data / "inner" / "t-0", batch(0))
    (data / "inner" / "back").symlink_to(data)
    (data / "self").symlink_to(data)
    notes = found(data, "DISK-26")
    assert [Severity.NOTE] * 2 == [one.severity for one in notes]
    assert ["inner/back", "self"] == [str(Path(one.path).relative_to(data)) for one in notes]
    assert all(str(data) in one.message for one in notes)
    assert all(str(data) == shlex.split(one.reproduce)[2] for one in notes)
    listed: list[str] = []
    list(verify(data, files=late("nothing", listed)))
    assert {str(data), str(data / "inner"), str(data / "inner" / "t-0")} == set(listed)
    assert len(listed) < 10


@pytest.mark.checks("DISK-26")
def test_links_to_partitions_are_lawful(tmp_path: Path) -> None:
    """Partitions on other disks are verified through their links, once each."""
    disk = write_segment(tmp_path / "disk" / "t-0", batch(0)[:-1] + b"!")
    data = tmp_path / "data"
    data.mkdir()
    (data / "t-0").symlink_to(disk)
    assert ["BATCH-3"] == [one.law for one in verify(data)]
    # The same one below two names is verified below the first, and a note tells the second.
    assert ["DISK-26", "BATCH-3"] == [one.law for one in verify(tmp_path)]
    (note,) = found(tmp_path, "DISK-26")
    assert str(disk) == note.path
    assert "once more" in note.message


@pytest.mark.checks("DISK-26")
def test_too_deep_is_said(tmp_path: Path) -> None:
    """What lies more than 16 levels down is not verified, and not in silence."""
    sixteen = Path(*"abcdefghijklmnop")
    write_segment(tmp_path / sixteen, batch(0)[:-1] + b"!")
    assert ["BATCH-3"] == [one.law for one in verify(tmp_path)]
    write_segment(tmp_path / "x" / sixteen, batch(0)[:-1] + b"!")
    (note,) = found(tmp_path, "DISK-26")
    assert str(tmp_path / "x" / sixteen) == note.path


@pytest.mark.checks("DISK-1")
def test_links_to_nothing_and_to_themselves(tmp_path: Path) -> None:
    """A partition's name that leads nowhere was passed over in silence, as on a lost disk; one that
    leads to itself is told with a command that shows it again."""
    write_segment(tmp_path / "t-0", batch(0))
    assert [] == found(tmp_path, "DISK-1")
    (tmp_path / "t-1").symlink_to(tmp_path / "nothing")
    (tmp_path / "t-2").symlink_to(tmp_path / "t-2")
    (tmp_path / "notes").symlink_to(tmp_path / "nothing")
    errors = found(tmp_path, "DISK-1")
    assert ["t-1", "t-2"] == [Path(one.path).name for one in errors]
    assert "link to nothing" in errors[0].message
    assert {str(tmp_path)} == {shlex.split(one.reproduce)[2] for one in errors}


@pytest.mark.checks("DISK-1")
def test_partition_that_is_removed_meanwhile(tmp_path: Path) -> None:
    """A directory that the broker removes between listing and looking is no lost link."""
    for name in ("t-0", "t-1"):
        write_segment(tmp_path / name, batch(0))

    def status(path: str) -> Any:
        """Remove a directory before it is looked at."""
        if path.endswith("t-1"):
            shutil.rmtree(path, ignore_errors=True)
        return REAL_FILES.status(path)

    assert [] == list(verify(tmp_path, files=altered(status=status)))


@pytest.fixture
def without_indexes(tmp_path: Path) -> Path:
    """Forty segments without indexes in a directory that was changed an hour ago."""
    folder = tmp_path / "t-0"
    for offset in range(40):
        write_segment(folder, batch(offset), base_offset=offset)
    set_back(folder, hours=1)
    return folder


def set_back(folder: Path, hours: int) -> None:
    """Give a directory and its files a modification time so long ago."""
    then = time.time() - 3600 * hours
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


@pytest.mark.checks("DISK-5")
def test_missing_indexes_of_many_segments_take_one_more_listing(without_indexes: Path) -> None:
    """Each segment was listed again before its finding, and read twice: quadratic time."""
    listings: list[int] = []
    opened = disturbed(name_of(7, ".log"), lambda: None)
    files = altered(list_directory=listed(before=listings.append).list_directory, open=opened.open)
    assert 2 * 39 == len(found(without_indexes, "DISK-5", files=files))
    assert [1, 2, 3, 4, 5] == listings  # one of the directory above, for small files
    # For its batches, for its first one, which its name is compared with, and in each listing for
    # its end, which is compared with the next name.
    assert 2 + 2 == len(opened.opened)


@pytest.mark.checks("DISK-5")
def test_an_index_made_behind_a_listing_is_seen_in_the_next_one(without_indexes: Path) -> None:
    """A listing serves many segments only until the directory changes, at whatever time."""

    def make() -> None:
        for suffix in (".index", ".timeindex"):
            (without_indexes / name_of(7, suffix)).write_bytes(b"")
        set_back(without_indexes, hours=2)

    files = disturbed(name_of(7, ".log"), make)
    paths = [finding.path for finding in found(without_indexes, "DISK-5", files=files)]
    logs = (str(without_indexes / name_of(offset, ".log")) for offset in range(39) if offset != 7)
    assert [log for log in logs for _ in (".index", ".timeindex")] == paths
