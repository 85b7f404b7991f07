# SPDX-License-Identifier: Apache-2.0
"""Loading a log: what a crash has left is finished or removed, and what is foreign is refused."""

import os
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import CorruptCheckpointError, InvalidArgumentError, NumberFormatError
from segproof.kafka import LogConfig, PartitionLog, write_end_transaction_marker
from segproof.kafka.segment_names import parse_name
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.watched_files import WatchedFiles
from segproof_harness.laws.borders.log_files import patched
from segproof_tests.memory_logs import DIRECTORY, Place, batch, bytes_of, filled, segments_of

FIRST, SECOND = "0" * 20, "0" * 18 + "24"


def closed(place: Place, batches: int = 9) -> bytes:
    """Make a log, close it, and return the bytes of its records."""
    log = filled(place, batches)
    data = bytes_of(log)
    log.close()
    return data


def cut(place: Place, name: str, size: int) -> None:
    """Cut a file of the directory."""
    place.put(name, place.image()[name][:size])


# --- names


def test_an_empty_directory_becomes_a_log() -> None:
    """A missing directory is made; the first segment begins at the log start."""
    files = MemoryFiles()
    with PartitionLog.open("/new/t-0", LogConfig(), 7, create=True, files=files) as log:
        assert (log.log_start_offset, log.log_end_offset, segments_of(log)) == (7, 7, [(7, 0)])
        assert log.recovery_point == 7


@pytest.mark.parametrize(
    "name",
    [
        "0.log",
        "5.index",
        "x.timeindex",
        "+0000000000000000005.log",
        "09223372036854775808.log",
        "-09223372036854775809.txnindex",
        "000000000000000000000.log",
        "x.log.swap",
        "99999999999999999999.index.cleaned",
        "x.swap",
        "x.cleaned",
        "5.log.swap",
        "00000000000000000005.swap",
        "00000000000000000005.snapshot.cleaned",
        "00000000000000000005.log.cleaned.swap",
        ".swap",
    ],
)
@pytest.mark.checks("FILE-2")
def test_foreign_names_are_refused_before_anything_is_changed(name: str) -> None:
    """A segment's suffix behind what is no offset ends loading, with path, law and hint."""
    place = Place()
    closed(place)
    place.put(name, b"data")
    place.put(f"{FIRST}.log.deleted", b"old")
    before = place.image()
    with pytest.raises(NumberFormatError) as info:
        place.open(is_clean=False)
    assert info.value.path == f"{DIRECTORY}/{name}"
    assert (info.value.law, bool(info.value.hint)) == ("FILE-2", True)
    assert place.image() == before


def test_other_files_are_left_alone() -> None:
    """What has no name of a log is neither read nor removed."""
    place = Place()
    data = closed(place)
    names = ("notes.txt", "a.checkpoint.deleted", "x.snapshot", "log", ".log.txt", "7.txt")
    for name in names:
        place.put(name, b"mine")
    with place.open(is_clean=False) as log:
        assert bytes_of(log) == data
    assert {name: place.image()[name] for name in names} == dict.fromkeys(names, b"mine")
    assert parse_name("x.snapshot", "") is None


def test_a_folder_with_the_name_of_a_file_is_left_alone() -> None:
    """Only files are a log's: Kafka passes over a folder that is called `x.log` or `x.cleaned`."""
    place = Place()
    data = closed(place)
    for name in ("x.log", "x.cleaned", "x.deleted"):
        place.files.make_directory(f"{DIRECTORY}/{name}")
    with place.open(is_clean=False) as log:
        assert bytes_of(log) == data


def test_a_broken_checkpoint_of_epochs_is_told() -> None:
    """Loading ends before anything is changed, and says which file is broken."""
    place = Place()
    closed(place)
    place.put("leader-epoch-checkpoint", b"1\n0\n")
    before = place.image()
    with pytest.raises(CorruptCheckpointError) as info:
        place.open(is_clean=False)
    assert info.value.path == f"{DIRECTORY}/leader-epoch-checkpoint"
    assert place.image() == before


@pytest.mark.parametrize("offsets", [(-1, 0), (0, -1), (2**63, 0)])
def test_offsets_of_checkpoints_are_checked(offsets: tuple[int, int]) -> None:
    """A negative one, or one of too many bits, is refused."""
    with pytest.raises(InvalidArgumentError):
        Place().open(*offsets)


# --- what a crash has left


@pytest.mark.checks("LOAD-1", "LOAD-4")
def test_removed_files_and_indexes_without_a_log_go() -> None:
    """`.deleted` and `.cleaned` files, and indexes alone, are no part of the log."""
    place = Place()
    data = closed(place)
    names = [
        f"{FIRST}.log.deleted", f"{SECOND}.snapshot.deleted", f"{FIRST}.index.cleaned",
        "00000000000000000099.index", "00000000000000000099.txnindex",
        "x.deleted", "0.log.deleted", f"{FIRST}.log.swap.deleted", "x.snapshot.deleted", ".deleted",
    ]  # fmt: skip
    for name in names:
        place.put(name, b"")
    log = place.open()
    assert bytes_of(log) == data
    assert not set(names) & set(place.image())


@pytest.mark.checks("LOAD-2", "LOAD-3")
def test_a_swap_is_completed() -> None:
    """Swap files take the place of the segments whose offsets they hold, and of no other."""
    place = Place()
    data = closed(place)
    image = place.image()
    for kind in (".log", ".index", ".timeindex"):
        place.put(f"{SECOND}{kind}.swap", image[SECOND + kind])
    place.put("00000000000000000030.log", b"replaced")
    place.put("00000000000000000048.log", image["00000000000000000048.log"])
    log = place.open()
    assert log.log_segments.base_offsets() == [0, 24, 48]
    assert bytes_of(log) == data
    assert not place.names(".swap")


@pytest.mark.checks("LOAD-2")
def test_a_swap_that_was_not_whole_is_dropped() -> None:
    """Beside a `.cleaned` file of a base up to its own, a swap file counts for nothing."""
    place = Place()
    data = closed(place)
    place.put(f"{SECOND}.log.swap", b"part")
    place.put(f"{FIRST}.log.cleaned", b"")
    log = place.open()
    assert bytes_of(log) == data
    assert not place.names(".swap")


# --- recovery


@pytest.mark.checks("LOAD-7", "LOAD-8")
def test_the_first_damaged_segment_is_the_last_one_kept() -> None:
    """What lies behind a batch that is damaged goes, in later segments too."""
    place = Place()
    closed(place)
    image = bytearray(place.image()[f"{SECOND}.log"])
    image[300] ^= 1
    place.put(f"{SECOND}.log", bytes(image))
    log = place.open(is_clean=False)
    assert segments_of(log) == [(0, 892), (24, 223)]
    assert (log.log_end_offset, log.recovery_point) == (30, 0)
    assert log.append_as_leader(batch(1), 0).first_offset == 30


@pytest.mark.checks("LOAD-7", "LOAD-10")
def test_what_is_durable_or_was_closed_is_not_read() -> None:
    """Below the recovery point, and after a clean stop, damage in a log is not looked for."""
    for point, is_clean, end in ((0, True, 54), (48, False, 54), (24, False, 54), (0, False, 0)):
        place = Place()
        closed(place)
        image = bytearray(place.image()[f"{FIRST}.log"])
        image[100] ^= 1
        place.put(f"{FIRST}.log", bytes(image))
        log = place.open(0, point, is_clean)
        assert log.log_end_offset == end
        assert log.recovery_point == (54 if is_clean else min(point, end))


@pytest.mark.checks("LOAD-5")
def test_a_missing_offset_index_is_made_again() -> None:
    """Also after a clean stop; a missing time index is only made anew, empty."""
    place = Place()
    data = closed(place)
    image = place.image()
    for kind in (".index", ".timeindex"):
        place.files.remove(f"{DIRECTORY}/{FIRST}{kind}")
    log = place.open()
    assert bytes_of(log) == data
    first = log.log_segments.first_segment()
    assert first is not None
    assert len(first.offset_index) == len(image[f"{FIRST}.index"]) // 8 > 0
    log.close()
    assert place.image()[f"{FIRST}.timeindex"] == image[f"{FIRST}.timeindex"]


@pytest.mark.checks("LOAD-12")
def test_a_log_that_ends_below_its_start_is_dropped() -> None:
    """One empty segment at the log start is left."""
    place = Place()
    closed(place)
    log = place.open(log_start_offset=100)
    assert (segments_of(log), log.log_end_offset, log.recovery_point) == ([(100, 0)], 100, 100)
    assert log.leader_epoch_cache.epoch_entries() == []


@pytest.mark.checks("LOAD-6")
def test_a_segment_that_overflows_is_split() -> None:
    """Recovery that meets offsets too far from the base goes on with segments that fit."""
    place = Place()
    data = b"".join(batch(3, offset) for offset in (0, 2**31 + 7, 2**32 + 9))
    place.put(f"{FIRST}.log", data)
    log = place.open(is_clean=False)
    assert log.log_segments.base_offsets() == [0, 2**31 + 7, 2**32 + 9]
    assert bytes_of(log) == data


@pytest.mark.checks("LOAD-14", "LOAD-15", "LOAD-16")
def test_loading_twice_finds_the_same() -> None:
    """Segments, bytes and offsets are the same, indexes have room, epochs fit the log."""
    place = Place()
    data = closed(place)
    place.put("leader-epoch-checkpoint", b"0\n4\n0 0\n1 7\n2 20\n3 54\n")
    for is_clean in (False, False, True, True):
        log = place.open(10, 0, is_clean)
        assert bytes_of(log) == data
        assert (log.log_start_offset, log.log_end_offset) == (10, 54)
        assert log.leader_epoch_cache.epoch_entries() == [(1, 10), (2, 20)]
        active = log.log_segments.active_segment
        assert (active.offset_index.length, active.time_index.length) == (240, 240)
        log.close()


@pytest.mark.checks("PROD-14")
def test_producers_are_known_again() -> None:
    """From the snapshots, or without them from the log, with transactions that are open."""
    place = Place()
    log = place.open()
    known = {"producer_id": 7, "producer_epoch": 1}
    for number in range(6):
        log.append_as_leader(batch(6, base_sequence=6 * number, is_transactional=True, **known), 0)
    marker = write_end_transaction_marker(
        "COMMIT", offset=36, timestamp=1, coordinator_epoch=0, partition_leader_epoch=0, **known
    )
    log.append_as_follower(marker, 0)
    log.append_as_leader(batch(1, base_sequence=36, is_transactional=True, **known), 0)
    before = log.producer_state_manager.last_entry(7)
    assert before is not None
    log.close_handlers()
    for is_bare in (False, True):
        if is_bare:
            for name in place.names(".snapshot"):
                place.files.remove(f"{DIRECTORY}/{name}")
        log = place.open(is_clean=False)
        entry = log.producer_state_manager.last_entry(7)
        assert entry is not None
        assert entry.batch_metadata[-1] == before.batch_metadata[-1]
        assert entry.current_txn_first_offset == 37
        log.update_high_watermark(38)
        assert log.last_stable_offset == 37
        log.close_handlers()


# --- one listing, few looks


class NotingFiles(WatchedFiles):
    """Files that note, in order, what is opened, renamed and made durable."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Note a call, and the name that it opens or gives."""
        self.calls.append((call, str(arguments[0] if call == "rename" else path)))

    def named(self, *calls: str) -> list[str]:
        """Return the names of these calls, or the call where it has none."""
        named = [(call, path.rpartition("/")[2]) for call, path in self.calls if call in calls]
        return [call if call == "sync_directory" else f"{call} {name}" for call, name in named]


def test_a_clean_log_of_many_segments_is_opened_without_its_indexes() -> None:
    """Nothing is opened of a segment but its log, the last one apart."""
    files = NotingFiles()
    place = Place(files)
    closed(place, 80)
    files.calls.clear()
    log = place.open()
    opened = [path for call, path in files.calls if call == "open"]
    last = f"{log.log_segments.active_segment.base_offset:020d}"
    indexes = [path for path in opened if "index" in path and "txn" not in path]
    assert {path.rpartition("/")[2].partition(".")[0] for path in indexes} == {last}
    assert len(log.log_segments) == 20
    assert len([path for path in opened if path.endswith(".log")]) == 20


# --- crash order


@pytest.mark.checks("LOAD-17")
def test_names_are_durable_before_what_builds_on_them() -> None:
    """Later segments are gone durably before the active one is cut and appended to."""
    files = NotingFiles()
    place = Place(files)
    log = filled(place, 9)
    files.calls.clear()
    log.truncate_to(30)
    steps = files.named("rename", "sync_directory")
    first_sync = steps.index("sync_directory")
    assert "rename 00000000000000000048.log.deleted" in steps[:first_sync]


def test_a_split_has_its_new_files_before_it_gives_up_the_old() -> None:
    """The swap names are durable before the old segment is renamed, and that before the last."""
    files = NotingFiles()
    place = Place(files)
    log = place.open()
    log.append_as_follower(batch(3), 0)
    log.close()
    place.put(f"{FIRST}.log", batch(3) + batch(3, 2**31 + 7))
    log = place.open()
    files.calls.clear()
    log.split_overflowed_segment(0)
    steps = files.named("rename", "sync_directory")
    steps = [step for step in steps if ".log" in step or step == "sync_directory"]
    assert steps == [
        "sync_directory",
        "rename 00000000002147483655.log.swap",
        f"rename {FIRST}.log.swap",
        "sync_directory",
        f"rename {FIRST}.log.deleted",
        "sync_directory",
        f"rename {FIRST}.log",
        "rename 00000000002147483655.log",
        "sync_directory",
    ]


def test_a_segment_that_cannot_be_split_is_closed(tmp_path: Path) -> None:
    """Loading refuses a last offset below the base, and left the files of its segment open."""
    odd = patched(batch(1, 2), last_offset_delta=-9)
    (tmp_path / f"{FIRST}.log").write_bytes(batch(2) + odd)
    before = len(os.listdir("/proc/self/fd"))
    for is_clean in (True, False):
        with pytest.raises(InvalidArgumentError) as info:
            PartitionLog.open(tmp_path, LogConfig(), last_shutdown_clean=is_clean, create=True)
        assert info.value.law == "LOG-20"
    assert len(os.listdir("/proc/self/fd")) == before
