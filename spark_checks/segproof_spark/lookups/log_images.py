# SPDX-License-Identifier: Apache-2.0
"""Generated logs of several segments, and what is known of a log without searching in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from segproof.kafka import LogConfig, LogSegment, LogSegments, Record, write_batch
from segproof_harness.files.memory_files import MemoryFiles
from segproof_spark.lookups.drawing import Draw, Int64Array
from segproof_spark.lookups.sweeps import INT64_MAX, INT64_MIN, Ranges

__all__ = ["DIRECTORY", "BatchRow", "LogImage", "Truth", "build_log", "draw_log", "truth_of"]

DIRECTORY = "/t-0"
BASES = (0, 0, 1000, (1 << 31) - 500, 1 << 40, (1 << 62) + 7)
SIZES = ((1, 6), (20, 200), (200, 1500), (1500, 5000))
"""How many batches."""
INTERVALS = (0, 100, 512, 4096)
CODECS = ("gzip", "snappy", "lz4", "zstd")
FIRST_TIMES = (0, (1 << 31) - 1000, 1_700_000_000_000)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch: in which segment (counted from 0) and where it lies, and its records."""

    segment: int
    position: int
    size_bytes: int
    last_offset: int
    times: tuple[tuple[int, int], ...] = ()
    """(timestamp in ms, offset) of each record."""


@dataclass(frozen=True, slots=True)
class LogImage:
    """What is written into a log: of each segment the base offset and its batches as bytes."""

    segments: tuple[tuple[int, tuple[bytes, ...]], ...]
    rows: tuple[BatchRow, ...]
    interval_bytes: int
    is_slow: bool
    """Whether some batches are compressed or of an older magic: each timestamp reads one anew."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a log answers, made from a table of its batches by going through it once."""

    offsets: Ranges
    """Offsets to (segment, position, size in bytes) of the batch a read begins with; -1: none."""
    floors: Int64Array
    """Of each of these ranges the number of the segment with the greatest base offset not above it;
    -1: below all."""
    times: Ranges
    """Timestamps to (segment, timestamp, offset) of the first record at or after; -1: none."""
    batches: int


def truth_of(base_offsets: Sequence[int], rows: Iterable[BatchRow]) -> Truth:
    """Return the answers of a log whose segments have these base offsets.

    A batch answers the offsets behind the one before it, up to its last one. A record answers the
    timestamps above all before it, up to its own.
    """
    first_offset = base_offsets[0]
    offsets = [(INT64_MIN, first_offset - 1, -1, -1, -1)] if first_offset > INT64_MIN else []
    times: list[tuple[int, int, int, int, int]] = []
    next_offset, largest, count = first_offset, -1, 0
    for row in rows:
        count += 1
        place = (row.segment, row.position, row.size_bytes)
        offsets.append((next_offset, row.last_offset, *place))
        next_offset = row.last_offset + 1
        for timestamp, offset in row.times:
            if timestamp > largest:
                times.append((largest + 1, timestamp, row.segment, timestamp, offset))
                largest = timestamp
    offsets.append((next_offset, INT64_MAX, -1, -1, -1))
    if largest < INT64_MAX:
        times.append((largest + 1, INT64_MAX, -1, -1, -1))
    cut, floors = _ranges(offsets).split_at(np.array(base_offsets, np.int64))
    return Truth(cut, floors, _ranges(times), count)


def _ranges(rows: list[tuple[int, int, int, int, int]]) -> Ranges:
    columns = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    return Ranges(columns[0], columns[1], (columns[2], columns[3], columns[4]))


# --- generated logs


def draw_log(draw: Draw, number: int) -> LogImage:
    """Return the log of a number; sizes go round, each fifth one is compressed in part."""
    count = draw.number(*SIZES[number % len(SIZES)])
    segment_count = min(draw.number(1, 6), count)
    codecs = (*CODECS, "none", "none") if number % 5 == 4 else ("none",)
    magic = 1 if number % 7 == 6 else 2
    cuts = sorted(set(draw.below(count, segment_count - 1).tolist()) - {0})
    offset, now = draw.one_of(BASES), draw.one_of(FIRST_TIMES)
    gaps = draw.one_of((1, 1, 5, 2000))
    backwards = draw.one_of((0, 0, 40, 5000))
    segments: list[tuple[int, tuple[bytes, ...]]] = []
    rows: list[BatchRow] = []
    for first, end in pairwise((0, *cuts, count)):
        base, data, position = offset, [], 0
        for _ in range(first, end):
            start = offset + draw.number(0, gaps - 1)
            records = _records(draw, start, now, backwards, 1 if magic == 1 else 8)
            now = max(now, *(record.timestamp for record in records))
            last = records[-1].offset + (draw.number(0, gaps - 1) if magic == 2 else 0)
            data.append(_batch(records, start, last, magic, draw.one_of(codecs)))
            times = tuple((record.timestamp, record.offset) for record in records)
            rows.append(BatchRow(len(segments), position, len(data[-1]), last, times))
            position += len(data[-1])
            offset = last + 1
        segments.append((base, tuple(data)))
        offset += draw.number(0, gaps - 1)
    is_slow = magic == 1 or len(codecs) > 1
    return LogImage(tuple(segments), tuple(rows), draw.one_of(INTERVALS), is_slow)


def _records(draw: Draw, offset: int, now: int, backwards: int, most: int) -> list[Record]:
    records = []
    for _ in range(draw.number(1, most)):
        timestamp = max(now + draw.number(0, 30) - draw.number(0, backwards), 0)
        records.append(Record(offset, timestamp, None, bytes(draw.number(0, 60))))
        offset += 1 + (draw.number(0, 9) == 0)
    return records


def _batch(records: list[Record], base: int, last: int, magic: int, codec: str) -> bytes:
    if magic == 1:
        return write_batch(records, magic=1, base_offset=records[0].offset)
    return write_batch(
        records, base_offset=base, last_offset=last, compression=codec, partition_leader_epoch=0
    )


def build_log(image: LogImage, opened: Any = LogSegment) -> tuple[MemoryFiles, LogSegments]:
    """Write the log into memory; `opened` is the class of its segments."""
    files = MemoryFiles(clock_ms=lambda: 0)
    files.make_directory(DIRECTORY)
    config = LogConfig(index_interval_bytes=image.interval_bytes, segment_index_bytes=1 << 20)
    segments = LogSegments()
    for base, batches in image.segments:
        segment = opened.open(DIRECTORY, base, config, files=files, time=lambda: 0)
        segment.append_many(b"".join(batches))
        if base != image.segments[-1][0]:
            segment.on_become_inactive_segment()
        segments.add(segment)
    return files, segments
