# SPDX-License-Identifier: Apache-2.0
"""Makes the measured files: full indexes with targets, and segments with their indexes.

All of it is the same for everybody: seeds are fixed, and the files are what Kafka would write (an
index entry once more than 4096 bytes lie behind the last one, the last offset as its key). Segments
repeat one batch, written by `segproof.kafka.write_batch`, in which the base offset, the timestamps
and the checksum are replaced, so that a gigabyte takes a few seconds.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from segproof.checksums import crc32c_function
from segproof.kafka import Record, write_batch
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.time_index import TimeIndex
from segproof.layouts.kafka import BATCH, CHECKED_FROM

INDEX_BYTES = 10_485_760
INDEX_INTERVAL_BYTES = 4096
FIRST_TIMESTAMP = 1_600_000_000_000
"""Milliseconds since 1970; the record at offset n has this timestamp plus n."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the batches of a segment look."""

    name: str
    records: int
    """Records in a batch."""
    value_bytes: int
    """Bytes of each value; keys are null."""


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("1 KB", 1, 953),
        Shape("16 KB", 1, 16_309),
        Shape("1 MB", 1, 1_048_500),
        Shape("160 x 100 B", 160, 91),
        Shape("10000 x 100 B", 10_000, 91),
        Shape("64 x 250 B", 64, 240),
        Shape("1 x 250 B", 1, 240),
    )
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that was written."""

    log: Path
    size_bytes: int
    records: int
    next_offset: int
    """The base offset of a segment that follows; exclusive end of this one."""


def write_segment(directory: Path, shape: Shape, size_bytes: int, base_offset: int = 0) -> Segment:
    """Write a log of about `size_bytes`, at least one batch, with its two indexes, and close them.

    The indexes are cut and the time index has its final entry, as after a roll.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{base_offset:020d}.log"
    template = _template(shape)
    batches = max(size_bytes // len(template), 1)
    with open(log, "wb", buffering=4 << 20) as file:
        for batch in _patched(template, shape.records, batches, base_offset):
            file.write(batch)
    _write_indexes(log, len(template), shape.records, batches, base_offset)
    records = batches * shape.records
    return Segment(log, batches * len(template), records, base_offset + records)


def write_segments(directory: Path, shape: Shape, size_bytes: int, count: int) -> list[Segment]:
    """Write `count` segments of about `size_bytes` each, one behind the other."""
    segments: list[Segment] = []
    for _ in range(count):
        base_offset = segments[-1].next_offset if segments else 0
        segments.append(write_segment(directory, shape, size_bytes, base_offset))
    return segments


def _template(shape: Shape) -> bytes:
    values = np.random.default_rng(1).bytes(shape.value_bytes * shape.records)
    size = shape.value_bytes
    records = [
        Record(number, number, None, values[number * size : (number + 1) * size])
        for number in range(shape.records)
    ]
    return write_batch(records, base_offset=0)


def _patched(template: bytes, records: int, batches: int, base_offset: int) -> Iterator[bytearray]:
    """Yield the same buffer with the next batch in it."""
    batch = bytearray(template)
    checked = memoryview(batch)[CHECKED_FROM:]
    checksum = crc32c_function()
    for offset in range(base_offset, base_offset + batches * records, records):
        first = FIRST_TIMESTAMP + offset
        BATCH["base_offset"].put(batch, offset)
        BATCH["base_timestamp"].put(batch, first)
        BATCH["max_timestamp"].put(batch, first + records - 1)
        BATCH["crc"].put(batch, checksum(checked, 0))
        yield batch


def _write_indexes(log: Path, size: int, records: int, batches: int, base_offset: int) -> None:
    # An entry is due when the bytes since the last one exceed the interval, and the batch that
    # finds this gets it; its own bytes then count for the next.
    step = INDEX_INTERVAL_BYTES // size + 1
    numbers = np.arange(step, batches, step, dtype=np.int64)
    last_offsets = base_offset + numbers * records + records - 1
    with OffsetIndex(log.with_suffix(".index"), base_offset, INDEX_BYTES, create=True) as index:
        index.append_many(last_offsets, numbers * size)
    end = base_offset + batches * records - 1
    with TimeIndex(log.with_suffix(".timeindex"), base_offset, INDEX_BYTES, create=True) as times:
        times.maybe_append_many(last_offsets + FIRST_TIMESTAMP, last_offsets)
        times.maybe_append(end + FIRST_TIMESTAMP, end, True)


def link_segment(log: Path, directory: Path) -> Path:
    """Give a log a second name in `directory`, without indexes, for a recovery that makes them."""
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / log.name
    os.link(log, target)
    return target


# --- indexes and targets for lookups


def write_offset_index(path: Path, size_bytes: int = INDEX_BYTES) -> None:
    """Write a full offset index: offset gaps 1 + U[0,100), positions + 1 + U[0,1500)."""
    entries = size_bytes // 8
    random = np.random.default_rng(1)
    offsets = np.cumsum(1 + random.integers(0, 100, entries))
    positions = np.cumsum(1 + random.integers(0, 1500, entries))
    with OffsetIndex(path, 0, size_bytes, create=True) as index:
        index.append_many(offsets, positions)


def write_time_index(path: Path, size_bytes: int = INDEX_BYTES) -> None:
    """Write a full time index: timestamp gaps 1 + U[0,20), offset gaps 1 + U[0,100)."""
    entries = size_bytes // 12
    random = np.random.default_rng(2)
    timestamps = FIRST_TIMESTAMP + np.cumsum(1 + random.integers(0, 20, entries))
    offsets = np.cumsum(1 + random.integers(0, 100, entries))
    with TimeIndex(path, 0, size_bytes, create=True) as index:
        index.maybe_append_many(timestamps[:-1], offsets[:-1])
        index.maybe_append(int(timestamps[-1]), int(offsets[-1]), True)


def write_targets(path: Path, index: OffsetIndex | TimeIndex, count: int, is_sorted: bool) -> None:
    """Write `count` targets, uniform over the keys of the index, as big-endian int64."""
    keys, _ = index.to_numpy()
    targets = np.random.default_rng(3).integers(int(keys[0]), int(keys[-1]) + 1, count)
    if is_sorted:
        targets.sort()
    path.write_bytes(targets.astype(">i8").tobytes())


def read_targets(path: Path) -> NDArray[np.int64]:
    """Return what `write_targets` wrote, native."""
    return np.fromfile(path, ">i8").astype(np.int64)
