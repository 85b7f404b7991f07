# SPDX-License-Identifier: Apache-2.0
"""The answers of a real log, from the headers of its batches, and its segments opened to be read.

Used by: real_files.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.kafka import LogConfig, LogSegment, LogSegments, RecordFile
from segproof.kafka.batch_table import BatchScan
from segproof.kafka.segment_names import segment_file_name
from segproof_spark.lookups.comparing import Comparison
from segproof_spark.lookups.drawing import Int64Array
from segproof_spark.lookups.log_images import Truth
from segproof_spark.lookups.read_only import ReadOnlyFiles
from segproof_spark.lookups.sweeps import INT64_MAX, INT64_MIN, Ranges

__all__ = ["opened_log", "read_truth"]

BATCHES_MAX = 1 << 19
"""So many batches of a log are asked for in one unit: what is known of them takes some 100 MiB."""
TIME_BATCHES = 400
"""The records of so many batches are read, for what timestamps find."""
COLUMNS = ("position", "size_bytes", "last_offset", "max_timestamp")


@contextmanager
def opened_log(
    directory: str, base_offsets: Sequence[int], files: Files, opened: type[LogSegment] = LogSegment
) -> Iterator[LogSegments]:
    """Open segments of a directory, whose files are only read."""
    segments = LogSegments()
    try:
        for base in base_offsets:
            read_only = ReadOnlyFiles(files)
            segments.add(opened.open(directory, base, LogConfig(), True, files=read_only))
        yield segments
    finally:
        segments.close_handlers()


def read_truth(
    comparison: Comparison, directory: str, base_offsets: Sequence[int], files: Files
) -> Truth | None:
    """Return what segments that follow each other answer, or None, with a note why not."""
    tables: list[NDArray[np.int64]] = []
    first, is_cut = base_offsets[0], False
    for number, base in enumerate(base_offsets):
        path = f"{directory}/{segment_file_name(base, '.log')}"
        table, is_cut = _table_of(
            comparison, number, path, files, sum(table.shape[1] for table in tables)
        )
        tables.append(table)
        if is_cut:
            break
    rows = np.concatenate(tables, axis=1)
    if not rows.shape[1]:
        comparison.notes.append("no batch")
        return None
    numbers, positions, sizes, last_offsets, max_timestamps = rows
    if bool(np.any(np.diff(last_offsets) <= 0)) or int(last_offsets[0]) < first:
        comparison.notes.append("not asked: the offsets of its batches do not rise")
        return None
    starts = np.concatenate([[first], last_offsets[:-1] + 1])
    offsets = Ranges(starts, last_offsets, (numbers, positions, sizes))
    if not is_cut:
        offsets = _with_ends(offsets, first)
    paths = [f"{directory}/{segment_file_name(base, '.log')}" for base in base_offsets]
    times = _times(paths, files, numbers, positions, max_timestamps)
    cut, floors = offsets.split_at(np.array(base_offsets, np.int64))
    return Truth(cut, floors, times, rows.shape[1])


def _table_of(
    comparison: Comparison, number: int, path: str, files: Files, before: int
) -> tuple[NDArray[np.int64], bool]:
    """Return the columns of a segment's batches, and whether they end before the segment does."""
    file = files.open(path)
    parts = [np.empty((5, 0), np.int64)]
    count = before
    try:
        scan = BatchScan(file, 0, file.size(), deep=False)
        for table in scan.tables():
            columns = [table[name].astype(np.int64) for name in COLUMNS]
            parts.append(np.stack([np.full(len(table), number, np.int64), *columns]))
            count += len(table)
            if count >= BATCHES_MAX:
                comparison.notes.append(f"asked up to byte {int(columns[0][-1])} of {path}")
                return np.concatenate(parts, axis=1), True
        if scan.error is not None:
            comparison.notes.append(f"asked up to byte {scan.end_position} of {path}: {scan.error}")
        return np.concatenate(parts, axis=1), scan.error is not None
    finally:
        file.close()


def _shorter(path: str) -> OSError:
    return OSError(errno.EIO, "the file became shorter while it was read", path)


def _with_ends(ranges: Ranges, first: int) -> Ranges:
    """Return the ranges with those before and behind the log, which have no answer."""
    last = int(ranges.highs[-1])
    before = first > INT64_MIN
    behind = last < INT64_MAX
    lows = [*([INT64_MIN] if before else []), *([last + 1] if behind else [])]
    highs = [*([first - 1] if before else []), *([INT64_MAX] if behind else [])]

    def framed(column: Int64Array, ends: Sequence[int]) -> Int64Array:
        head, tail = ends[: int(before)], ends[int(before) :]
        return np.concatenate([np.array(head, np.int64), column, np.array(tail, np.int64)])

    none = [-1] * len(lows)
    answers = tuple(framed(part, none) for part in ranges.answers)
    return Ranges(framed(ranges.lows, lows), framed(ranges.highs, highs), answers)


def _times(
    paths: Sequence[str],
    files: Files,
    numbers: Int64Array,
    positions: Int64Array,
    max_timestamps: Int64Array,
) -> Ranges:
    """Return what timestamps find in some of the batches that have a largest one so far."""
    before = np.maximum.accumulate(np.concatenate([[-1], max_timestamps]))[:-1]
    batches = np.flatnonzero(max_timestamps > before)
    batches = batches[:: max(len(batches) // TIME_BATCHES, 1)]
    found: list[tuple[int, int, int, int, int]] = []
    for number in np.unique(numbers[batches]).tolist():
        with RecordFile.open(paths[number], False, files=files) as log:
            for row in batches[numbers[batches] == number].tolist():
                largest = int(before[row])
                batch = next(log.batches(int(positions[row])), None)
                if batch is None:
                    raise _shorter(paths[number])
                for timestamp, offset in batch.times():
                    if timestamp > largest:
                        found.append((largest + 1, timestamp, number, timestamp, offset))
                        largest = timestamp
    columns = np.array(found, np.int64).reshape(-1, 5).T.copy()
    return Ranges(columns[0], columns[1], (columns[2], columns[3], columns[4]))
