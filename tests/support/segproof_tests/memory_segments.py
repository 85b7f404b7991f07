# SPDX-License-Identifier: Apache-2.0
"""A segment in memory, the eight batches of the specification's trace for it, and its image."""

from collections.abc import Callable
from typing import Any

from segproof.kafka import LogConfig, LogSegment, Record, write_batch
from segproof_harness.files.memory_files import MemoryFiles

BASE = 40
LOG = f"{BASE:020d}.log"
INDEX = f"{BASE:020d}.index"
TIMES = f"{BASE:020d}.timeindex"
NOW = 7000
DIRECTORY = "/t"


def new_files() -> MemoryFiles:
    """Return files in memory with the segment's directory, empty."""
    files = MemoryFiles(clock_ms=lambda: NOW)
    files.make_directory(DIRECTORY)
    return files


def opened(
    files: MemoryFiles | None = None,
    interval: int = 100,
    index_bytes: int = 1000,
    new: Callable[[], MemoryFiles] = new_files,
    base: int = BASE,
    **more: Any,
) -> LogSegment:
    """Open the segment; with files that are given, as it lies there."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    exists = files is not None
    files = new() if files is None else files
    return LogSegment.open(
        DIRECTORY, base, config, exists, create=True, files=files, time=lambda: NOW, **more
    )


def batch(offset: int, timestamp: int, count: int = 1, **more: Any) -> bytes:
    """Return a batch of `count` records; of one record it has 70 bytes."""
    records = [Record(offset + i, timestamp + i, None, b"vv") for i in range(count)]
    return write_batch(records, base_offset=offset, **more)


BATCHES = [batch(40 + number, 1000 + 10 * number) for number in range(8)]


def filled(interval: int = 100, **more: Any) -> LogSegment:
    """Return the segment with the eight batches of the trace."""
    segment = opened(interval=interval, **more)
    for number, one in enumerate(BATCHES):
        segment.append(40 + number, one)
    return segment


def entries(segment: LogSegment) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the entries of both indexes."""
    offsets = [(entry.offset, entry.position) for entry in segment.offset_index]
    return offsets, [(entry.timestamp, entry.offset) for entry in segment.time_index]


def images(segment: LogSegment) -> dict[str, bytes]:
    """Return the bytes of all files."""
    files = segment._files
    assert isinstance(files, MemoryFiles)
    return files.images(DIRECTORY)
