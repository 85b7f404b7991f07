# SPDX-License-Identifier: Apache-2.0
"""Whole logs across their segments, drawn or real, and the right answers of offsets and timestamps.

A log has no bulk lookup of its own. So this asks as its reader does (LOG-1, LOG-6, LOG-15): the
segment below an offset, then those behind it while none of its batches reaches the offset; for a
timestamp the first segment whose largest one is not below. In each segment the bulk lookup answers.
A sample is asked of the model of each segment and, of a drawn log, of `PartitionLog`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from segproof.files import File, Files
from segproof.kafka import (
    LogConfig,
    LogSegment,
    LogSegments,
    PartitionLog,
    Record,
    RecordFile,
    write_batch,
)
from segproof.kafka.batch_table import BatchScan
from segproof.kafka.segment_names import segment_file_name
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.structures.structure import creating
from segproof_model.kafka.format.log_config import LogConfig as ModelLogConfig
from segproof_model.kafka.format.log_segment import LogSegment as ModelLogSegment
from segproof_model.language.files import Files as ModelFiles
from segproof_model.releases import SEGPROOF
from segproof_spark.lookups.batch_headers import Headers, walk_headers
from segproof_spark.lookups.comparison import Question, Unit, one_by_one
from segproof_spark.lookups.random_numbers import Draw, Int64Array
from segproof_spark.lookups.ranges import INT64_MAX, INT64_MIN, Asked, Columns, Ranges, rows_of
from segproof_spark.lookups.read_only_files import read_file, read_only, shorter

FLOOR_LAW, OFFSET_LAW, TIME_LAW = "LOG-1", "LOG-6", "LOG-15"
FLOOR_SHARE = 16
"""For one in so many offsets the log is asked for the segment below it: there is no bulk lookup for
that, and a single one takes as long as all the rest. The others begin with the right segment."""
TIME_SHARE = 4
"""One in so many lookups is by timestamp, the others by offset."""
SLOW_TIME_SHARE = 2000
"""One in so many where each timestamp inflates a batch, or reads one of an older magic."""
SAMPLES = 160
"""So many offsets, and timestamps, are asked of the log itself and of the model."""

BATCHES_MAX = 1 << 19
"""So many batches of a real log are asked for in one unit: they take some 100 MiB."""
TIME_BATCHES = 400
"""Of so many batches of a real log the records are read, for what timestamps find."""
MODEL_BYTES = 4 << 20
"""The model is asked of a segment whose files are smaller together: it holds all as objects."""
MODEL_SEGMENTS = 4
"""Of so many segments of a real log at most."""
MODEL_SAMPLES = 8
"""About so many offsets, and timestamps, of these segments together."""
MODEL_BATCHES = 40_000
"""The model looks at a whole segment for each answer: at so many batches of a drawn log in all, or
a little more, so that of a large one fewer targets are asked of it."""

DIRECTORY = "/t-0"
BASES = (0, 0, 1000, (1 << 31) - 500, 1 << 40, (1 << 62) + 7)
SIZES = ((1, 6), (20, 200), (200, 1500), (1500, 5000))
"""How many batches."""
INTERVALS = (0, 100, 512, 4096)
COMPRESSIONS = ("gzip", "snappy", "lz4", "zstd", "none", "none")
FIRST_TIMES = (0, (1 << 31) - 1000, 1_700_000_000_000)


@dataclass(frozen=True, slots=True)
class Log:
    """A log's segments, and their right answers, from a table of its batches read once in order."""

    directory: str
    files: Files
    base_offsets: Sequence[int]
    entries: int
    """Its batches."""
    offsets: Ranges
    """Offsets to (number of the segment below, then of the batch a read begins with: number of the
    segment, position, size in bytes); -1: none."""
    times: Ranges
    """Timestamps to (segment, timestamp, offset) of the first record at or after; -1: none."""
    segments: LogSegments
    """Of a drawn log, still open as they were written; none of a real one."""
    config: LogConfig | None = None
    """Of a drawn log; None: real."""
    is_slow: bool = True
    """Whether timestamps are dear, so that few are asked beside those of the records."""
    notes: list[str] | None = None

    def questions(self, unit: Unit, draw: Draw) -> Iterator[Question]:
        """Yield offsets, then timestamps, then a sample of both one by one."""
        segments, real = self.segments, () if self.config else self.base_offsets
        try:
            for base in real:
                kind, files = unit.opened(LogSegment), read_only(self.files)
                segments.add(kind.open(self.directory, base, LogConfig(), True, files=files))
            by_time = unit.count // (SLOW_TIME_SHARE if self.is_slow else TIME_SHARE)
            offsets: list[Asked] = []
            for asked in self.offsets.blocks(draw, _borders(self.offsets), unit.count - by_time):
                yield from self._offset_questions(segments, asked)
                offsets.append(asked.sample(SAMPLES))
            times: list[Asked] = []
            for asked in self.times.blocks(draw, _borders(self.times), by_time):
                call, targets = "find_offset_by_timestamp_many across segments", asked.targets
                ask = partial(ask_times, segments, targets, self.base_offsets[0])
                yield Question(TIME_LAW, call, targets, asked.expected, ask)
                times.append(asked.sample(SAMPLES))
        finally:
            # Real files are closed without writing or trimming.
            (segments.close if self.config else segments.close_handlers)()
        samples = [Asked.joined(kept).sample(SAMPLES) for kept in (offsets, times)]
        yield from self._for_the_model(*samples)
        if self.config:
            yield from self._for_the_log(self.config, *samples)

    def _offset_questions(self, segments: LogSegments, asked: Asked) -> Iterator[Question]:
        floors, *places = asked.expected
        some = slice(0, None, FLOOR_SHARE if len(asked.targets) > FLOOR_SHARE**2 else 1)
        targets = asked.targets[some]
        ask: Callable[[], Columns] = partial(ask_floors, segments, targets)
        # Not counted: the same targets are, with their batches.
        yield Question(FLOOR_LAW, "floor_segment", targets, (floors[some],), ask, ())
        ask = partial(ask_offsets, segments, asked.targets, floors)
        yield Question(OFFSET_LAW, "read_many across segments", asked.targets, places, ask)

    def _for_the_model(self, offsets: Asked, times: Asked) -> Iterator[Question]:
        """Ask the model of the segment that holds the answer, as far as segments are small."""
        most = len(self.base_offsets) if self.config else MODEL_SEGMENTS
        count = max(MODEL_BATCHES // self.entries, 8) if self.config else MODEL_SAMPLES
        models: dict[int, Any] = {}
        for number in np.unique(offsets.expected[1]).tolist():
            model = self._model(number) if number >= 0 and len(models) < most else None
            models |= {} if model is None else {number: model}
        if not models and self.notes is not None:
            self.notes.append(f"not asked of the model: no segment below {MODEL_BYTES} bytes")

        def place(target: tuple[int, int]) -> tuple[int, int]:
            found = models[target[1]].translate_offset(target[0])
            return found.position, found.size_bytes

        def record(target: tuple[int, int]) -> tuple[int, int]:
            found = models[target[1]].find_offset_by_timestamp(target[0], self.base_offsets[0])
            return found.timestamp, found.offset

        for law, asked, numbers, ask in (
            (OFFSET_LAW, offsets, offsets.expected[1], place),
            (TIME_LAW, times, times.expected[0], record),
        ):
            few = asked.at(np.flatnonzero(np.isin(numbers, list(models)))).sample(count)
            *_, segments, first, second = few.expected
            targets = list(zip(few.targets.tolist(), segments.tolist(), strict=True))
            call, answers = "the model's answer (target, its segment)", rows_of((first, second))
            yield one_by_one(law, call, targets, answers, ask, "by_model")

    def _model(self, number: int) -> Any:
        """Return the model of a segment, or None where its files are too large together."""
        base, sizes = self.base_offsets[number], {}
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            name = segment_file_name(base, suffix)
            status = self.files.status(f"{self.directory}/{name}")
            if status is not None:
                sizes[name] = status.size_bytes
        if not sizes or sum(sizes.values()) >= MODEL_BYTES:
            return None
        images = {
            name: read_file(self.files, f"{self.directory}/{name}", MODEL_BYTES) or b""
            for name in sizes
        }
        kind, config = SEGPROOF.kind(ModelLogSegment), ModelLogConfig()
        return kind(ModelFiles(images), "", base, config, True, codecs=CODECS)

    def _for_the_log(self, config: LogConfig, offsets: Asked, times: Asked) -> Iterator[Question]:
        """Ask `PartitionLog`, opened from the files as they are now."""
        start, end = self.base_offsets[0], int(self.offsets.lows[-1])
        inside = (offsets.targets >= start) & (offsets.targets < end)  # outside, the log refuses
        offsets = offsets.at(np.flatnonzero(inside))
        with PartitionLog.open(
            self.directory,
            config,
            start,
            create=True,
            files=self.files,
            time=lambda: 0,
            draw=lambda: 0,
        ) as log:

            def read(target: int) -> tuple[int, int]:
                place = log.read(target, 1, "log_end", True).fetch_offset_metadata
                number = self.base_offsets.index(place.segment_base_offset)
                return number, place.relative_position_in_segment

            def fetch(target: int) -> tuple[int, int]:
                found = log.fetch_offset_by_timestamp(target)
                return (-1, -1) if found is None else (found.timestamp, found.offset)

            for law, call, asked, ask in (
                (OFFSET_LAW, "read of the log", offsets, read),
                (TIME_LAW, "fetch_offset_by_timestamp of the log", times, fetch),
            ):
                answers = rows_of(asked.expected[1:3])
                yield one_by_one(law, call, asked.targets.tolist(), answers, ask, "by_single")


def _borders(ranges: Ranges) -> list[int]:
    lows = ranges.lows
    middles = [0, 1 << 31, 1 << 32, INT64_MAX, *lows[:3].tolist(), *lows[-3:].tolist()]
    return [middle + step for middle in middles for step in (-1, 0, 1)]


# --- asking all segments


def ask_floors(segments: LogSegments, targets: Int64Array) -> Columns:
    """Return the number of the segment below each offset; -1 without a segment."""
    numbers = {id(segment): number for number, segment in enumerate(segments)}
    numbers[id(None)] = -1
    found = [numbers[id(segments.floor_segment(target))] for target in targets.tolist()]
    return (np.array(found, np.int64),)


def ask_offsets(segments: LogSegments, targets: Int64Array, floors: Int64Array) -> Columns:
    """Return number of the segment, position and size in bytes of the batch of each offset.

    `floors` are the numbers of the segments to begin with; -1: the log has no such offset.
    """
    asked = floors.copy()
    found, positions, sizes = np.full((3, len(targets)), -1, np.int64)
    for number, segment in enumerate(segments):
        places = np.flatnonzero(asked == number)
        if not len(places):
            continue
        positions[places], sizes[places] = segment.read_many(targets[places])
        is_missing = positions[places] < 0
        found[places[~is_missing]] = number
        asked[places[is_missing]] = number + 1
    return found, positions, sizes


def ask_times(segments: LogSegments, targets: Int64Array, start: int) -> Columns:
    """Return number of the segment, timestamp and offset of the first record of each timestamp.

    The last segment is asked whatever its largest timestamp: a log that is only read has not looked
    behind the last entry of its index (SEG-49).
    """
    found, timestamps, offsets = np.full((3, len(targets)), -1, np.int64)
    is_open = np.ones(len(targets), bool)
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        is_here = is_open if is_last else is_open & (targets <= segment.largest_timestamp)
        places = np.flatnonzero(is_here)
        if not len(places):
            continue
        answers = segment.find_offset_by_timestamp_many(targets[places], start)
        timestamps[places], offsets[places] = answers
        found[places[answers[1] >= 0]] = number
        is_open = is_open & ~is_here
    return found, timestamps, offsets


# --- the table of batches


def ranges_of_offsets(first: int, batches: Int64Array, is_whole: bool) -> Ranges:
    """Return which offsets find which batch: from the end of the previous batch to its last offset.

    `batches` has a column (segment, position, size in bytes, last offset) for each; `first` is the
    first offset of the log. Where the log `is_whole`, nothing is found before and behind it.
    """
    *places, last_offsets = batches
    lows = np.concatenate([np.array([INT64_MIN, first]), last_offsets + 1])
    highs = np.concatenate([np.array([first - 1]), last_offsets, np.array([INT64_MAX])])
    # Behind the greatest offset there is nothing.
    part = slice(0, None if last_offsets[-1] < INT64_MAX else -1) if is_whole else slice(1, -1)
    none = np.array([-1])
    answers = (np.concatenate([none, column, none])[part] for column in places)
    return Ranges(lows[part], highs[part], tuple(answers))


def ranges_of_times(records: Int64Array, is_whole: bool) -> Ranges:
    """Return which timestamps find which record: those above all before it, up to its own.

    `records` has a column (segment, timestamp, offset, a timestamp that one before reaches) for
    each. Where these are all of the log, nothing is found above them.
    """
    segments, timestamps, offsets, reached = records
    largest = np.maximum.accumulate(np.concatenate([np.array([-1]), timestamps]))
    before = np.maximum(largest[:-1], reached)
    found = np.flatnonzero(timestamps > before)
    lows, highs, answers = before[found] + 1, timestamps[found], [segments, timestamps, offsets]
    answers = [column[found] for column in answers]
    if is_whole and largest[-1] < INT64_MAX:
        lows, highs = np.append(lows, largest[-1] + 1), np.append(highs, INT64_MAX)
        answers = [np.append(column, -1) for column in answers]
    return Ranges(lows, highs, tuple(answers))


# --- real logs


def read_log(unit: Unit, files: Files, draw: Draw, notes: list[str]) -> Log | None:
    """Return segments of a real log that follow each other, or None, with a note why not.

    Headers of magic 2 are read by `batch_headers`. The implementation's own readers, which no
    lookup uses, read the headers of a segment with older messages, with a note, and records.
    Raises: OSError.
    """
    paths = [f"{unit.path}/{segment_file_name(base, '.log')}" for base in unit.segments]
    tables: list[Int64Array] = [np.empty((5, 0), np.int64)]
    is_cut = False
    for number, path in enumerate(paths):
        found = _headers(path, files, BATCHES_MAX - sum(len(table[0]) for table in tables), notes)
        is_cut = bool(found.reason)
        numbers = np.full((1, found.columns.shape[1]), number)
        tables.append(np.concatenate([numbers, found.columns]))
        if is_cut:
            notes.append(f"asked up to byte {found.end_position} of {path}: {found.reason}")
            break
    batches = np.concatenate(tables, axis=1)
    last_offsets, first = batches[3], unit.segments[0]
    if not len(last_offsets):
        notes.append("no batch")
        return None
    if np.any(np.diff(last_offsets) <= 0) or last_offsets[0] < first:
        notes.append("not asked: the offsets of its batches do not rise")
        return None
    offsets = ranges_of_offsets(first, batches[:4], not is_cut)
    times = ranges_of_times(_records_of(paths, files, batches), False)
    offsets = offsets.cut_at(np.array(unit.segments))
    count, segments = len(last_offsets), LogSegments()
    return Log(unit.path, files, unit.segments, count, offsets, times, segments, notes=notes)


def _headers(path: str, files: Files, limit: int, notes: list[str]) -> Headers:
    """Return the headers of a segment, up to a limit of their number."""
    with closing(files.open(path)) as file:
        found = walk_headers(file, limit)
        if found is None:
            notes.append(f"{path}: older messages, told by segproof's own reader")
            found = _older_headers(file, limit)
        return found


def _older_headers(file: File, limit: int) -> Headers:
    """Return about so many headers of any magic, by the implementation's reader."""
    parts = [np.empty((4, 0), np.int64)]
    scan, reason, count = BatchScan(file, 0, file.size(), deep=False), "", 0
    for table in scan.tables():
        names = ("position", "size_bytes", "last_offset", "max_timestamp")
        parts.append(np.stack([table[name].astype(np.int64) for name in names]))
        count += len(table)
        if count >= limit:
            reason = "enough batches"
            break
    else:
        reason = "" if scan.error is None else str(scan.error)
    columns = np.concatenate(parts, axis=1)
    end = int(columns[0, -1] + columns[1, -1]) if reason == "enough batches" else scan.end_position
    return Headers(columns, end, reason)


def _records_of(paths: Sequence[str], files: Files, batches: Int64Array) -> Int64Array:
    """Return the records of some batches that hold a timestamp above all before."""
    numbers, positions, *_, max_timestamps = batches
    before = np.maximum.accumulate(np.concatenate([np.array([-1]), max_timestamps]))[:-1]
    rows = np.flatnonzero(max_timestamps > before)
    rows = rows[:: max(len(rows) // TIME_BATCHES, 1)]
    found: list[tuple[int, int, int, int]] = []
    for number in np.unique(numbers[rows]).tolist():
        with RecordFile.open(paths[number], files=files) as log:
            for row in rows[numbers[rows] == number].tolist():
                batch = next(log.batches(int(positions[row])), None)
                if batch is None:
                    raise shorter(paths[number])
                reached = int(before[row])
                found += (
                    (number, timestamp, offset, reached) for timestamp, offset in batch.times()
                )
    return np.array(found, np.int64).reshape(-1, 4).T


# --- drawn logs


def draw_log(unit: Unit, draw: Draw) -> Log:
    """Return the log of a number, in memory; sizes go round, each fifth is compressed in part.

    Its segments stay open as they were written.
    """
    number = unit.index
    count = draw.number(*SIZES[number % len(SIZES)])
    segment_count = min(draw.number(1, 6), count)
    compressions = COMPRESSIONS if number % 5 == 4 else ("none",)
    magic = 1 if number % 7 == 6 else 2
    cuts = sorted(set(draw.below(count, segment_count - 1).tolist()) - {0})
    offset, now = draw.one_of(BASES), draw.one_of(FIRST_TIMES)
    gaps = draw.one_of((1, 1, 5, 2000))
    backwards = draw.one_of((0, 0, 40, 5000))
    contents: dict[int, bytes] = {}
    batches: list[tuple[int, int, int, int]] = []
    times: list[tuple[int, int, int, int]] = []
    for first, end in pairwise((0, *cuts, count)):
        base, data = offset, bytearray()
        for _ in range(first, end):
            start = offset + draw.number(0, gaps - 1)
            records = _draw_records(draw, start, now, backwards, 1 if magic == 1 else 8)
            now = max(now, *(record.timestamp for record in records))
            last = records[-1].offset + (draw.number(0, gaps - 1) if magic == 2 else 0)
            batch = _batch(records, start, last, magic, draw.one_of(compressions))
            segment = len(contents)
            batches.append((segment, len(data), len(batch), last))
            times += ((segment, record.timestamp, record.offset, -1) for record in records)
            data += batch
            offset = last + 1
        contents[base] = bytes(data)
        offset += draw.number(0, gaps - 1)
    config = LogConfig(index_interval_bytes=draw.one_of(INTERVALS), segment_index_bytes=1 << 20)
    files, segments = _written(contents, config, unit.opened(LogSegment))
    bases = tuple(contents)
    offsets = ranges_of_offsets(bases[0], np.array(batches).T, True).cut_at(np.array(bases))
    return Log(
        DIRECTORY,
        files,
        bases,
        count,
        offsets,
        ranges_of_times(np.array(times).T, True),
        segments,
        config,
        magic == 1 or len(compressions) > 1,
    )


def _draw_records(draw: Draw, offset: int, now: int, backwards: int, most: int) -> list[Record]:
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


def _written(
    contents: dict[int, bytes], config: LogConfig, opened: Any
) -> tuple[MemoryFiles, LogSegments]:
    """Write a log into memory; `opened` is the class of its segments."""
    files, segments = MemoryFiles(clock_ms=lambda: 0), LogSegments()
    files.make_directory(DIRECTORY)
    for base, data in contents.items():
        opening = partial(opened.open, DIRECTORY, base, config, **creating(opened.open))
        segment = opening(files=files, time=lambda: 0)
        segments.add(segment)
        segment.append_many(data)
        if base != max(contents):
            segment.on_become_inactive_segment()
    return files, segments
