# SPDX-License-Identifier: Apache-2.0
"""A log in memory under a clock that the test sets, small batches for it, and its image."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

from segproof.kafka import LogConfig, PartitionLog, Record, write_batch
from segproof_harness.files.memory_files import MemoryFiles, write_file

START_MS = 1_000_000
DIRECTORY = "/t-0"
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=50, segment_index_bytes=240)


def batch(count: int, base_offset: int = 0, timestamp_ms: int = START_MS, **more: Any) -> bytes:
    """Return a batch of records with values of 20 bytes, their timestamps a millisecond apart."""
    more.setdefault("partition_leader_epoch", 0)
    records = [
        Record(base_offset + number, timestamp_ms + number, None, b"v" * 20)
        for number in range(count)
    ]
    return write_batch(records, base_offset=base_offset, **more)


class Place:
    """A directory in memory with a clock that the test sets."""

    def __init__(self, files: MemoryFiles | None = None) -> None:
        self.now_ms = START_MS
        self.files = MemoryFiles(clock_ms=lambda: self.now_ms) if files is None else files
        self.files.make_directory(DIRECTORY)
        self.files.sync_directory("/")

    @classmethod
    def of(cls, image: Mapping[str, bytes]) -> Self:
        """Return a directory with these files, given by name or by path."""
        place = cls()
        for name, data in image.items():
            place.put(name.removeprefix(f"{DIRECTORY}/"), data)
        return place

    def open(
        self,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        is_clean: bool = True,
        **options: Any,
    ) -> PartitionLog:
        """Open the log with the options of `CONFIG`, some of them changed."""
        return PartitionLog.open(
            DIRECTORY,
            replace(CONFIG, **options),
            log_start_offset,
            recovery_point,
            is_clean,
            create=True,
            files=self.files,
            time=lambda: self.now_ms,
            draw=lambda: 0,
        )

    def image(self) -> dict[str, bytes]:
        """Return every file of the directory."""
        return self.files.images(DIRECTORY)

    def put(self, name: str, data: bytes) -> None:
        """Let a file hold these bytes."""
        write_file(self.files, f"{DIRECTORY}/{name}", data)

    def names(self, suffix: str = "") -> list[str]:
        """Return the names in the directory that end so."""
        return [name for name in self.image() if name.endswith(suffix)]


def segments_of(log: PartitionLog) -> list[tuple[int, int]]:
    """Return base offset and bytes of each segment."""
    return [(segment.base_offset, segment.size) for segment in log.log_segments]


def bytes_of(log: PartitionLog) -> bytes:
    """Return the logs of all segments, one behind the other."""
    return b"".join(segment.log.read() for segment in log.log_segments)


def filled(place: Place, batches: int, count: int = 6) -> PartitionLog:
    """Return a log with so many batches, about four of which fill a segment."""
    log = place.open()
    for _ in range(batches):
        log.append_as_leader(batch(count), 0)
    return log


def remove_oldest(log: PartitionLog) -> None:
    """Remove what lies below offset 30."""
    log.update_high_watermark(54)
    log.maybe_increment_log_start_offset(30)
    log.delete_old_segments()


CHANGES: dict[str, Callable[[PartitionLog], object]] = {
    "append": lambda log: log.append_as_leader(batch(6), 1),
    "append that rolls": lambda log: log.append_as_leader(batch(20), 1),
    "roll": lambda log: log.roll(),
    "flush": lambda log: log.flush(True),
    "truncate": lambda log: log.truncate_to(20),
    "truncate the last": lambda log: log.truncate_to(50),
    "truncate fully": lambda log: log.truncate_fully_and_start_at(7),
    "begin again": lambda log: log.truncate_fully_and_start_at(70),
    "remove the oldest": remove_oldest,
    "split": lambda log: log.split_overflowed_segment(0),
}
"""Operations that change the files of a log, each to be done to one that `prepared` returns."""


def prepared(files: MemoryFiles, name: str) -> tuple[Place, PartitionLog]:
    """Return a log of nine batches; to be split, one with offsets too far apart for a segment."""
    place = Place(files)
    if name != "split":
        return place, filled(place, 9)
    filled(place, 1).close()
    far = batch(6) + batch(3, 2**31 + 7) + batch(3, 2**32 + 9)
    place.put(f"{0:020d}.log", far)
    return place, place.open()


def check_order(log: PartitionLog) -> None:
    """See that the batches of a log rise, and end where it does."""
    ends = [(one.base_offset, one.next_offset) for part in log.log_segments for one in part.log]
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    assert not ends or ends[-1][1] == log.log_end_offset
