# SPDX-License-Identifier: Apache-2.0
"""What loading a log of many segments costs: listings, syncs, open files, and too few of these.

A recovery of 1000 segments took 28 seconds: for each of them all snapshots were listed and asked
for their status, and the directory was synced; and it kept four files open.
"""

import errno
import os
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import IndexClosedError
from segproof.kafka import LogConfig, PartitionLog
from segproof.kafka.lazy_index import LazyIndex
from segproof_harness.files.watched_files import WatchedFiles
from segproof_tests.memory_logs import DIRECTORY, START_MS, Place, batch, bytes_of

CONFIG = LogConfig(segment_bytes=300, segment_index_bytes=240, retention_ms=-1)


class CountingFiles(WatchedFiles):
    """Files that count what is asked of them, and whether the names in their directory last."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.has_new_names = False

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Count; a new name is not durable before its directory is synced."""
        self.calls[call] += 1
        if call in ("rename", "sync_directory"):
            self.has_new_names = call == "rename"


def written(place: Place, count: int) -> bytes:
    """Let a log have so many segments, each with a batch of one producer; return the records."""
    log = place.open(segment_bytes=300)
    for number in range(count):
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 3 * number}
        log.append_as_leader(batch(3, **producer), 0)
        if number < count - 1:
            log.roll()
    log.close()
    return bytes_of(place.open(segment_bytes=300))


def recovery_costs(count: int) -> "Counter[str]":
    """Return how often a recovery of so many segments asks for what."""
    files = CountingFiles()
    place = Place(files)
    records = written(place, count)
    files.calls.clear()
    log = place.open(is_clean=False, segment_bytes=300)
    assert bytes_of(log) == records
    assert log.log_segments.number_of_segments == count
    assert not files.has_new_names
    assert log.producer_state_manager.last_entry(5) is not None
    return files.calls


def test_what_a_recovery_asks_for_does_not_grow_with_the_segments() -> None:
    """But for one sync for each segment: that of its snapshot, as Kafka does."""
    few, many = recovery_costs(10), recovery_costs(60)
    assert many["list_directory"] == few["list_directory"] <= 4
    assert many["sync_directory"] == few["sync_directory"] <= 3
    assert many["sync"] - few["sync"] == 50


def test_the_names_of_snapshots_are_durable() -> None:
    """Also where no epochs are written behind them: messages of magic 1 have none."""
    files = CountingFiles()
    place = Place(files)
    log = place.open(segment_bytes=300)
    for offset in range(3):
        log.append_as_follower(batch(1, offset, magic=1, partition_leader_epoch=-1), 0)
        log.roll()
    log.close()
    for name in place.names(".snapshot"):
        files.remove(f"{DIRECTORY}/{name}")
    files.has_new_names = False
    place.open(is_clean=False, segment_bytes=300)
    assert (len(place.names(".snapshot")), files.has_new_names) == (3, False)


def test_snapshots_of_a_recovery_are_those_of_a_live_log() -> None:
    """Each segment but the first one has a snapshot at its base, and the log one at its end."""
    place = Place()
    written(place, 7)
    log = place.open(is_clean=False, segment_bytes=300)
    ends = [*log.log_segments.base_offsets()[1:], log.log_end_offset]
    assert place.names(".snapshot") == [f"{end:020}.snapshot" for end in ends]


# --- open files -----------------------------------------------------------------------------------


def descriptors() -> list[int]:
    """Return the numbers of this process's open files."""
    return sorted(int(name) for name in os.listdir("/dev/fd"))


def opened(folder: Path, *, is_clean: bool) -> PartitionLog:
    """Open the log of a real directory."""
    return PartitionLog.open(
        folder, CONFIG, 0, 0, is_clean, create=True, time=lambda: START_MS, draw=lambda: 0
    )


def log_of(folder: Path, count: int) -> None:
    """Write a log with so many segments."""
    with opened(folder, is_clean=True) as log:
        for _ in range(count):
            log.append_as_leader(batch(3), 0)
            log.roll()


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_segment_keeps_one_file_open(tmp_path: Path, is_clean: bool) -> None:
    """Recovery opens the indexes of each segment too, and let go of none but the log's."""
    log_of(tmp_path / "t-0", 30)
    before = len(descriptors())
    log = opened(tmp_path / "t-0", is_clean=is_clean)
    assert len(descriptors()) - before <= 31 + 4
    found = log.fetch_offset_by_timestamp(START_MS + 1)
    assert found is not None
    assert found.offset == 1
    log.close()
    assert len(descriptors()) == before


@pytest.mark.parametrize("is_clean", [True, False])
def test_too_few_open_files_are_allowed(tmp_path: Path, is_clean: bool) -> None:
    """Opening fails and says why; no file has changed, and none is left open."""
    folder = tmp_path / "t-0"
    log_of(folder, 40)
    opened(folder, is_clean=False).close()
    image = {path.name: path.read_bytes() for path in folder.iterdir()}
    before = descriptors()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(before[-1] + 40) if number not in before]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[30], limits[1]))
    try:
        with pytest.raises(OSError, match=r"41 segments.*ulimit -n") as caught:
            opened(folder, is_clean=is_clean)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert caught.value.errno == errno.EMFILE
    assert descriptors() == before
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == image
    opened(folder, is_clean=is_clean).close()


# --- indexes that are let go ----------------------------------------------------------------------


def test_an_index_is_let_go_only_if_it_comes_back_as_it_is(tmp_path: Path) -> None:
    """Not with room behind its entries, nor with a last entry that would pass for such room."""
    room, zero, whole = (
        LazyIndex.for_time(tmp_path / name, 7, 120, create=True)
        for name in ("room", "zero", "whole")
    )
    room.get().maybe_append(5, 8)
    zero.get().maybe_append(0, 7)
    whole.get().maybe_append(5, 8)
    for index in (zero, whole):
        index.get().trim_to_valid_size()
    for index in (room, zero, whole):
        index.release()
    assert [index.is_loaded for index in (room, zero, whole)] == [True, True, False]
    for index, entry in ((room, (5, 8)), (zero, (0, 7)), (whole, (5, 8))):
        assert index.get().last_entry == entry
        index.close()
    whole.release()
    with pytest.raises(IndexClosedError):
        whole.get().entry(0)
