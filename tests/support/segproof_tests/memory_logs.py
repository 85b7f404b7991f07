# SPDX-License-Identifier: Apache-2.0
"""A log in memory under a clock that the test sets, small batches for it, and its image."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from segproof.kafka import LogConfig, PartitionLog, Record, write_batch
from segproof_harness.files.memory_files import MemoryFiles

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
            files=self.files,
            time=lambda: self.now_ms,
            draw=lambda: 0,
        )

    def image(self) -> dict[str, bytes]:
        """Return every file of the directory."""
        return self.files.images(DIRECTORY)

    def put(self, name: str, data: bytes) -> None:
        """Let a file hold these bytes."""
        file = self.files.open(f"{DIRECTORY}/{name}", writable=True, create=True)
        file.truncate(0)
        file.pwrite(data, 0)
        file.close()

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
