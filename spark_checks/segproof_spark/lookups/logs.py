# SPDX-License-Identifier: Apache-2.0
"""Compare the lookups of a whole log, across its segments, with a table of its batches.

A log has no bulk lookup of its own. So this asks as its reader does (LOG-1, LOG-6, LOG-15): the
segment below an offset, then those behind it while none of its batches reaches the offset; for a
timestamp the first segment whose largest one is not below. In each segment the bulk lookup answers.
A sample is asked of `PartitionLog`, and of the model of each segment.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from segproof.kafka import LogConfig, LogSegments, PartitionLog
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles
from segproof_model.kafka.format.log_config import LogConfig as ModelLogConfig
from segproof_model.kafka.format.log_segment import LogSegment as ModelLogSegment
from segproof_model.language.files import Files
from segproof_model.releases import SEGPROOF
from segproof_spark.lookups.comparing import Comparison
from segproof_spark.lookups.drawing import Draw, Int64Array
from segproof_spark.lookups.log_images import DIRECTORY, LogImage, Truth
from segproof_spark.lookups.sweeps import INT64_MAX, Asked, Ranges

__all__ = ["Answers", "ask_models", "ask_offsets", "ask_times", "check_log", "check_log_samples"]

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
MODEL_LEAST = 8
MODEL_BATCHES = 40_000
"""The model looks at a whole segment for each answer: at so many batches in all, or a little more,
so that of a large log fewer targets are asked of it."""

Answers = tuple[Int64Array, Int64Array, Int64Array]


def check_log(
    comparison: Comparison,
    segments: LogSegments,
    truth: Truth,
    draw: Draw,
    count: int,
    is_slow: bool,
) -> list[Asked]:
    """Look up at least `count` offsets and timestamps; return a sample of both, in this order.

    `is_slow`: whether timestamps are dear, so that few are asked beside those of the records.
    """
    comparison.entries = truth.batches
    start = segments.base_offsets()[0]
    each = count // (SLOW_TIME_SHARE if is_slow else TIME_SHARE)
    return [
        _sweep_offsets(comparison, segments, truth, draw, count - each),
        _sweep_times(comparison, segments, truth.times, draw, each, start),
    ]


def _sweep_offsets(
    comparison: Comparison, segments: LogSegments, truth: Truth, draw: Draw, count: int
) -> Asked:
    """Look up offsets: first the segment below some of them, then the batches in segments."""
    ranges, kept = truth.offsets, []
    for asked in ranges.blocks(draw, _borders(ranges.lows), count, bool(draw.number(0, 1))):
        floors = truth.floors[asked.ranges]
        some = slice(0, None, FLOOR_SHARE if len(asked.targets) > FLOOR_SHARE**2 else 1)
        targets = asked.targets[some]
        comparison.compare(
            FLOOR_LAW,
            "floor_segment",
            targets,
            (floors[some],),
            partial(_floors, segments, targets),
        )
        comparison.lookups -= len(targets)  # the same targets are counted with their batches
        comparison.compare(
            OFFSET_LAW,
            "read_many across segments",
            asked.targets,
            asked.expected,
            partial(ask_offsets, segments, asked.targets, floors),
        )
        kept.append(asked.sample(SAMPLES))
    return Asked.joined(kept).sample(SAMPLES)


def _sweep_times(
    comparison: Comparison,
    segments: LogSegments,
    ranges: Ranges,
    draw: Draw,
    count: int,
    start: int,
) -> Asked:
    """Look up timestamps."""
    kept = []
    for asked in ranges.blocks(draw, _borders(ranges.lows), count, bool(draw.number(0, 1))):
        comparison.compare(
            TIME_LAW,
            "find_offset_by_timestamp_many across segments",
            asked.targets,
            asked.expected,
            partial(ask_times, segments, asked.targets, start),
        )
        kept.append(asked.sample(SAMPLES))
    return Asked.joined(kept).sample(SAMPLES)


def _borders(lows: Int64Array) -> list[int]:
    middles = [0, 1 << 31, 1 << 32, INT64_MAX, *lows[:3].tolist(), *lows[-3:].tolist()]
    return [middle + step for middle in middles for step in (-1, 0, 1)]


# --- asking all segments


def _floors(segments: LogSegments, targets: Int64Array) -> tuple[Int64Array]:
    """Return the number of the segment below each offset; -1 where there is none."""
    numbers = {id(segment): number for number, segment in enumerate(segments)}
    numbers[id(None)] = -1
    found = [numbers[id(segments.floor_segment(target))] for target in targets.tolist()]
    return (np.array(found, np.int64),)


def ask_offsets(segments: LogSegments, targets: Int64Array, floors: Int64Array) -> Answers:
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


def ask_times(segments: LogSegments, targets: Int64Array, start: int) -> Answers:
    """Return number of the segment, timestamp and offset of the first record of each timestamp.

    The last segment is asked whatever its largest timestamp: a log that is only read has not looked
    behind the last entry of its index (SEG-49).
    """
    found, timestamps, offsets = np.full((3, len(targets)), -1, np.int64)
    is_open = np.ones(len(targets), bool)
    last = len(segments) - 1
    for number, segment in enumerate(segments):
        is_here = is_open if number == last else is_open & (targets <= segment.largest_timestamp)
        places = np.flatnonzero(is_here)
        if not len(places):
            continue
        answers = segment.find_offset_by_timestamp_many(targets[places], start)
        timestamps[places], offsets[places] = answers
        found[places[answers[1] >= 0]] = number
        is_open = is_open & ~is_here
    return found, timestamps, offsets


# --- the sample


def check_log_samples(
    comparison: Comparison, image: LogImage, files: MemoryFiles, samples: list[Asked]
) -> None:
    """Ask the model of each segment, then the log itself, for a sample of all that was asked."""
    offsets, times = samples
    images = files.images(DIRECTORY)
    some = max(MODEL_BATCHES // len(image.rows), MODEL_LEAST)
    bases = [base for base, _ in image.segments]
    model = ModelLogConfig(index_interval_bytes=image.interval_bytes)
    ask_models(comparison, bases, images, offsets.sample(some), times.sample(some), model)
    start = bases[0]
    config = LogConfig(index_interval_bytes=image.interval_bytes, segment_index_bytes=1 << 20)
    log = PartitionLog.open(DIRECTORY, config, start, files=files, time=lambda: 0, draw=lambda: 0)
    with log:
        _ask_log(comparison, log, image, offsets, times)


def _ask_log(
    comparison: Comparison, log: PartitionLog, image: LogImage, offsets: Asked, times: Asked
) -> None:
    bases = [base for base, _ in image.segments]
    end = image.rows[-1].last_offset + 1

    def read(target: int) -> tuple[int, ...]:
        place = log.read(target, 1, "log_end", True).fetch_offset_metadata
        return bases.index(place.segment_base_offset), place.relative_position_in_segment

    def fetch(target: int) -> tuple[int, ...] | None:
        found = log.fetch_offset_by_timestamp(target)
        return None if found is None else (found.timestamp, found.offset)

    for target, expected in offsets.rows():
        if bases[0] <= target < end:  # outside, the log refuses
            comparison.compare_one(
                OFFSET_LAW,
                f"read({target}) of the log",
                expected[:2],
                partial(read, target),
            )
            comparison.by_single += 1
    for target, expected in times.rows():
        right = None if expected[0] < 0 else expected[1:]

        comparison.compare_one(
            TIME_LAW,
            f"fetch_offset_by_timestamp({target}) of the log",
            right,
            partial(fetch, target),
        )
        comparison.by_single += 1


def ask_models(
    comparison: Comparison,
    bases: Sequence[int],
    images: Mapping[str, bytes],
    offsets: Asked,
    times: Asked,
    config: ModelLogConfig | None = None,
) -> None:
    """Ask the model of the segment that holds the answer; `images` are files by name."""
    config = config or ModelLogConfig()
    models: dict[int, Any] = {}

    def model(number: int) -> Any:
        if number not in models:
            stem = f"{bases[number]:020d}."
            own = {name: data for name, data in images.items() if name.startswith(stem)}
            models[number] = SEGPROOF.kind(ModelLogSegment)(
                Files(own), "", bases[number], config, True, codecs=CODECS
            )
        return models[number]

    def position(number: int, target: int) -> tuple[int, int]:
        found = model(number).translate_offset(target)
        return found.position, found.size_bytes

    def record(number: int, target: int) -> tuple[int, int]:
        found = model(number).find_offset_by_timestamp(target, bases[0])
        return found.timestamp, found.offset

    for law, sample, ask in ((OFFSET_LAW, offsets, position), (TIME_LAW, times, record)):
        for target, (number, *expected) in sample.rows():
            if number >= 0:
                comparison.compare_one(
                    law,
                    f"the model's answer for {target} in segment {bases[number]}",
                    tuple(expected),
                    partial(ask, number, target),
                )
                comparison.by_model += 1
