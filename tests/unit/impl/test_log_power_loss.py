# SPDX-License-Identifier: Apache-2.0
"""A log after a loss of power: what was made durable is there, and what is there has no hole.

At each step of a history three crash images are loaded: without any byte that was not synced, and
with all bytes or all names that the system might have written by itself.
"""

from collections.abc import Callable
from typing import Any, cast

import pytest

from segproof.files import File
from segproof.kafka import LogManager, PartitionLog
from segproof_harness.memory_files import MemoryFiles
from segproof_harness.memory_logs import (
    CONFIG,
    DIRECTORY,
    START_MS,
    Place,
    batch,
    bytes_of,
)

VARIANTS = ((True, True), (True, False), (False, True))
"""Whether only durable names, and whether only durable bytes are left."""


class _Watched:
    """A file, or a mapping of it, that tells before it changes and keeps what was made durable."""

    def __init__(self, inner: Any, files: "DurableFiles", inode: Any) -> None:
        vars(self).update(_inner=inner, _files=files, _inode=inode)

    def sync(self) -> None:
        """Sync, and keep the bytes."""
        self._files.note()
        self._inner.sync()
        self._files.durable_bytes[self._inode] = self._inode.image()

    def flush(self) -> None:
        """Flush the mapping, and keep the bytes."""
        self._inner.flush()
        self._files.durable_bytes[self._inode] = self._inode.image()

    def map(self, size: int) -> Any:
        """Map, and watch the mapping too."""
        return _Watched(self._inner.map(size), self._files, self._inode)

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        """Tell, and write."""
        self._files.note()
        self._inner.pwrite(data, position)

    def truncate(self, size: int) -> None:
        """Tell, and cut."""
        self._files.note()
        self._inner.truncate(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)


class DurableFiles(MemoryFiles):
    """Files that know what a loss of power would leave."""

    def __init__(self) -> None:
        super().__init__()
        self.durable_names: dict[str, Any] = {}
        self.durable_bytes: dict[Any, bytes] = {}
        self.crash: Callable[[dict[str, bytes]], None] | None = None

    def note(self) -> None:
        """Let the test see each crash image."""
        if self.crash is None:
            return
        for only_durable_names, only_durable_bytes in VARIANTS:
            names = self.durable_names if only_durable_names else self._live()
            self.crash(
                {
                    name: self.durable_bytes.get(inode, b"")
                    if only_durable_bytes
                    else inode.image()
                    for name, inode in names.items()
                }
            )

    def _live(self) -> dict[str, Any]:
        start = DIRECTORY + "/"
        names = self._names.items()
        return {path.removeprefix(start): inode for path, inode in names if path.startswith(start)}

    def kept(self) -> dict[str, bytes]:
        """Return what a loss of power would leave at least."""
        return {n: self.durable_bytes.get(inode, b"") for n, inode in self.durable_names.items()}

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open, and watch the file."""
        file: Any = super().open(path, writable=writable, create=create)
        return cast(File, _Watched(file, self, file._inode))

    def create_new(self, path: str) -> File | None:
        """Create, and watch the file."""
        file: Any = super().create_new(path)
        return None if file is None else cast(File, _Watched(file, self, file._inode))

    def rename(self, source: str, target: str) -> None:
        """Tell, and rename."""
        self.note()
        super().rename(source, target)

    def remove(self, path: str) -> bool:
        """Tell, and remove."""
        self.note()
        return super().remove(path)

    def sync_directory(self, path: str) -> None:
        """Tell, and keep the names."""
        self.note()
        super().sync_directory(path)
        self.durable_names = self._live()


STEPS: list[Callable[[PartitionLog], object]] = [
    *[lambda log: log.append_as_leader(batch(6), 0)] * 9,
    lambda log: log.flush(),
    lambda log: log.append_as_leader(batch(6), 1),
    lambda log: log.truncate_to(50),
    lambda log: log.append_as_leader(batch(6, timestamp_ms=START_MS - 9), 2),
    lambda log: log.truncate_to(20),
    lambda log: log.append_as_leader(batch(20, timestamp_ms=START_MS - 7), 3),
    lambda log: log.roll(),
    lambda log: log.flush(True),
    lambda log: log.append_as_leader(batch(3), 3),
    PartitionLog.close,
]


def loaded(image: dict[str, bytes]) -> bytes:
    """Return the records of a log that is loaded from a crash image without a clean mark."""
    place = Place()
    for name, data in image.items():
        place.put(name, data)
    return bytes_of(place.open(is_clean=False))


def durable_bytes(log: PartitionLog) -> int:
    """Return how many bytes of records lie below the recovery point."""
    batches = (batch for one in log.log_segments for batch in one.log)
    point = log.recovery_point
    return sum(batch.size_bytes for batch in batches if batch.last_offset < point)


@pytest.mark.checks("LOAD-17")
def test_power_is_lost_at_any_step() -> None:
    """All below the recovery point is there, and behind it a prefix of what was written.

    While an operation runs, what was before it counts as well as what is after it.
    """
    files = DurableFiles()
    place = Place(files)
    log = place.open()
    images: list[dict[str, bytes]] = []
    files.crash = images.append
    checked = 0
    for step in STEPS:
        before, durable_before = bytes_of(log), durable_bytes(log)
        images.clear()
        step(log)
        after = before if log.is_closed else bytes_of(log)
        durable_after = durable_before if log.is_closed else durable_bytes(log)
        files.note()
        least = min(durable_before, durable_after)
        for image in {tuple(sorted(image.items())): image for image in images}.values():
            data = loaded(image)
            assert before.startswith(data) or after.startswith(data)
            assert len(data) >= least
            checked += 1
    assert checked > 50


def known_of(log: PartitionLog) -> tuple[bytes, object]:
    """Return the records, and the last batch of the producer, which is what a snapshot keeps."""
    entry = log.producer_state_manager.last_entry(5)
    assert entry is not None
    return bytes_of(log), entry.batch_metadata[-1]


@pytest.mark.parametrize("lost", ["", ".index", ".snapshot"])
def test_power_is_lost_during_a_recovery(lost: str) -> None:
    """The next one finds the same records and producers, whatever of the snapshots is durable."""
    files = DurableFiles()
    place = Place(files)
    log = place.open()
    for number in range(6):
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 2 * number}
        log.append_as_leader(batch(2, **producer), 0)
        log.roll()
    log.flush(True)
    expected = known_of(log)
    log.close_handlers()
    for name in place.names(lost) if lost else []:
        files.remove(f"{DIRECTORY}/{name}")
    files.sync_directory(DIRECTORY)
    images: list[dict[str, bytes]] = []
    files.crash = images.append
    place.open(is_clean=False).close_handlers()
    files.note()
    different = {tuple(sorted(image.items())): image for image in images}
    assert len(different) > 10
    for image in different.values():
        again = Place()
        for name, data in image.items():
            again.put(name, data)
        assert known_of(again.open(is_clean=False)) == expected


def test_power_is_lost_while_an_empty_segment_is_replaced() -> None:
    """The log ends where it did, though no record tells where that is."""
    files = DurableFiles()
    log = Place(files).open()
    log.append_as_leader(batch(6), 0)
    log.truncate_fully_and_start_at(30)
    images: list[dict[str, bytes]] = []
    files.crash = images.append
    log.roll()
    files.note()
    assert len(images) > 3
    for image in images:
        place = Place()
        for name, data in image.items():
            place.put(name, data)
        assert place.open(is_clean=False).log_end_offset == 30


def test_all_is_durable_before_the_clean_mark() -> None:
    """Else the last time entry is lost, and nothing tells a later start to make it anew."""
    files = DurableFiles()
    manager = LogManager("/", CONFIG, files=files, time=lambda: START_MS)
    log = manager.get_or_create_log("t", 0)
    for number in range(9):
        log.append_as_leader(batch(1, timestamp_ms=START_MS + number), 0)
    manager.shutdown()
    assert files.kept() == files.images(DIRECTORY)


def test_a_segment_that_was_flushed_before_it_is_rolled() -> None:
    """Its records are durable; how its indexes end must be too, for it is not recovered again."""
    files = DurableFiles()
    log = Place(files).open()
    for number in range(9):
        log.append_as_leader(batch(1, timestamp_ms=START_MS + number), 0)
    log.flush()
    log.roll()
    kept = files.kept()
    assert {name: kept.get(name) for name in _indexes(files)} == _indexes(files)


def _indexes(files: MemoryFiles) -> dict[str, bytes]:
    """Return the index files of the first segment."""
    first = "0" * 20
    return {
        name: data
        for name, data in files.images(DIRECTORY).items()
        if name in (f"{first}.index", f"{first}.timeindex")
    }
