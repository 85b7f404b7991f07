# SPDX-License-Identifier: Apache-2.0
"""The answers of a real log, from the headers of its batches, and its segments opened to be read.

Headers of magic 2 are read by this package itself (`batch_headers`). Two things are read by the
implementation's own readers, beside which no lookup is asked: the headers of a segment that holds
older messages, with a note, and the records whose timestamps are looked for. Of small segments the
model is asked too (`logs`), which reads both for itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from segproof.files import File, Files
from segproof.kafka import LogConfig, LogSegment, LogSegments, RecordFile
from segproof.kafka.batch_table import BatchScan
from segproof.kafka.segment_names import segment_file_name
from segproof_spark.lookups.batch_headers import Headers, shorter, walk_headers
from segproof_spark.lookups.comparing import Comparison
from segproof_spark.lookups.drawing import Int64Array
from segproof_spark.lookups.log_images import Truth
from segproof_spark.lookups.logs import ask_models
from segproof_spark.lookups.read_only import ReadOnlyFiles
from segproof_spark.lookups.sweeps import INT64_MAX, INT64_MIN, Asked, Ranges

__all__ = ["ask_model_of", "opened_log", "read_truth"]

BATCHES_MAX = 1 << 19
"""So many batches of a log are asked for in one unit: what is known of them takes some 100 MiB."""
TIME_BATCHES = 400
"""The records of so many batches are read, for what timestamps find."""
MODEL_BYTES = 4 << 20
"""The model is asked of a segment whose files are smaller together: it holds all as objects."""
MODEL_SEGMENTS = 4
MODEL_SAMPLES = 8
"""About so many offsets, and timestamps, of these segments together."""
MODEL_FILES = (".log", ".index", ".timeindex", ".txnindex")
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
    try:
        found = walk_headers(file, BATCHES_MAX - before)
        if found is None:
            comparison.notes.append(f"{path}: older messages, told by segproof's own reader")
            found = _read_headers(file, BATCHES_MAX - before)
    finally:
        file.close()
    if found.reason:
        comparison.notes.append(f"asked up to byte {found.end_position} of {path}: {found.reason}")
    columns = found.columns
    return np.concatenate([np.full((1, columns.shape[1]), number), columns]), bool(found.reason)


def _read_headers(file: File, limit: int) -> Headers:
    """Return about so many headers of any magic, by the implementation's reader."""
    parts = [np.empty((len(COLUMNS), 0), np.int64)]
    scan = BatchScan(file, 0, file.size(), deep=False)
    count = 0
    for table in scan.tables():
        parts.append(np.stack([table[name].astype(np.int64) for name in COLUMNS]))
        count += len(table)
        if count >= limit:
            positions, sizes = parts[-1][:2]
            end = int(positions[-1] + sizes[-1])
            return Headers(np.concatenate(parts, axis=1), end, "enough batches")
    reason = "" if scan.error is None else str(scan.error)
    return Headers(np.concatenate(parts, axis=1), scan.end_position, reason)


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
                    raise shorter(paths[number])
                for timestamp, offset in batch.times():
                    if timestamp > largest:
                        found.append((largest + 1, timestamp, number, timestamp, offset))
                        largest = timestamp
    columns = np.array(found, np.int64).reshape(-1, 5).T.copy()
    return Ranges(columns[0], columns[1], (columns[2], columns[3], columns[4]))


# --- the model


def ask_model_of(
    comparison: Comparison,
    directory: str,
    base_offsets: Sequence[int],
    files: Files,
    samples: Sequence[Asked],
) -> None:
    """Ask the model a few of the offsets and timestamps that were asked, in small segments."""
    offsets = samples[0]
    images: dict[str, bytes] = {}
    asked: list[int] = []
    for number in np.unique(offsets.expected[0]).tolist():
        if number >= 0 and len(asked) < MODEL_SEGMENTS:
            found = _small(directory, base_offsets[number], files)
            images |= found
            asked += [number] if found else []
    if not asked:
        comparison.notes.append(f"not asked of the model: no segment below {MODEL_BYTES} bytes")
        return
    some = [_of_segments(sample, asked) for sample in samples]
    ask_models(comparison, base_offsets, images, some[0], some[1])


def _small(directory: str, base_offset: int, files: Files) -> dict[str, bytes]:
    """Return the files of a segment by name, or none if they are too large together."""
    names = [segment_file_name(base_offset, kind) for kind in MODEL_FILES]
    paths = {name: f"{directory}/{name}" for name in names}
    sizes = {
        name: status.size_bytes
        for name, path in paths.items()
        if (status := files.status(path)) is not None
    }
    if sum(sizes.values()) >= MODEL_BYTES:
        return {}
    images = {}
    for name, size in sizes.items():
        file = files.open(paths[name])
        try:
            images[name] = file.pread(size, 0)
        finally:
            file.close()
    return images


def _of_segments(asked: Asked, numbers: Sequence[int]) -> Asked:
    """Return a few of those targets whose answers lie in these segments."""
    places = np.flatnonzero(np.isin(asked.expected[0], numbers))
    parts = tuple(part[places] for part in asked.expected)
    return Asked(asked.targets[places], parts, asked.ranges[places]).sample(MODEL_SAMPLES)
