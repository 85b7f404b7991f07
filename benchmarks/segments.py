# SPDX-License-Identifier: Apache-2.0
"""Rows about a segment (recovery, rebuild, reads, searches, appends) and the opening of a log.

Shapes of 200 MB, an index entry every 4096 bytes, full-size indexes of 10 MiB, magic 2. Each side
recovers a directory of its own with a second name of the same log, and what all of them leave
behind is compared byte by byte.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import workloads
from benchmarks.contestants import Contestant, Passes, ours
from benchmarks.measuring import MIB, Bench, race, rate, say, seconds_each
from benchmarks.table import Goal, NotRun, Row, Section

TARGETS = 100_000
TIMESTAMPS = 20_000
APPENDED_AT_ONCE = MIB
"""Bytes of ready batches in a call of `append_many`: what a fetch of a replica brings."""
FULL_BYTES, QUICK_BYTES = 200_000_000, 32 * MIB
"""How large a segment is, and in a quick run."""
SEGMENTS, SEGMENTS_QUICK = 1000, 100
SMALL_SEGMENT_BYTES = 64 << 10
_NS, _US = 1e-9, 1e-6
_SCALAR_LIMIT_US = 10
_APPENDS_A_SECOND = 50_000
_KERNELS = ("compiled", "interpreted")


def _size(bench: Bench) -> int:
    return QUICK_BYTES if bench.quick else FULL_BYTES


def _sides(
    bench: Bench,
    modes: tuple[str, str],
    warmups: tuple[int, int],
    *arguments: object,
) -> dict[str, Callable[[], Contestant]]:
    """Return all sides of a row with the same arguments; modes and warm-ups of theirs and ours."""

    def start(kernels: str) -> Callable[[], Contestant]:
        return lambda: ours(kernels, modes[1], warmups[1], *arguments)

    sides = {kernels: start(kernels) for kernels in _KERNELS}
    return {"theirs": lambda: bench.java.contestant(modes[0], warmups[0], *arguments), **sides}


# --- recovery


def recovery(bench: Bench) -> list[Section]:
    """Measure `LogSegment.recover`."""
    section = Section(
        "LogSegment.recover",
        f"{_size(bench) // 10**6} MB, page cache warm; headers, checksums, all indexes made new. A "
        "producer state without producers. Every side leaves the same bytes in both indexes.",
        "Kafka 4.3.1",
    )
    for name in ("1 KB", "16 KB", "1 MB", "160 x 100 B", "10000 x 100 B"):
        section.rows.append(_recover(bench, name, "recover"))
    return [section]


def rebuilds(bench: Bench) -> list[Section]:
    """Measure what `segproof rebuild --in-place` calls."""
    section = Section(
        "rebuild of a partition",
        f"One segment of {_size(bench) // 10**6} MB, in place, with the interval given: the same "
        "work, and the new indexes are made durable and renamed, which a recovery leaves to a "
        "later flush. Kafka recovers the same log (`LogSegment.recover`). Same bytes in both "
        "indexes.",
        "Kafka 4.3.1",
    )
    for name in ("1 KB", "16 KB", "1 MB"):
        section.rows.append(_recover(bench, name, "rebuild"))
    return [section]


def _recover(bench: Bench, name: str, mode: str) -> Row:
    say(f"{mode}, {name} batches")
    made = bench.folder / "made"
    segment = workloads.write_segment(made, workloads.SHAPES[name], _size(bench))
    folders = {side: bench.folder / side / "t-0" for side in ("theirs", *_KERNELS)}
    for folder in folders.values():
        workloads.link_segment(segment.log, folder)
    results = race(
        {
            "theirs": lambda: bench.java.contestant("recover", 2, folders["theirs"]),
            "compiled": lambda: ours("compiled", mode, 2, folders["compiled"]),
            "interpreted": lambda: ours("interpreted", mode, 1, folders["interpreted"]),
        },
        bench.passes,
    )
    for side, result in results.items():
        if isinstance(result, Passes):
            expect_same_indexes(segment.log, folders[side])
    for folder in (made, *folders.values()):
        shutil.rmtree(folder)
    cells = {side: rate(result, segment.size_bytes) for side, result in results.items()}
    return Row.of(f"{name} batches", "GB/s", cells, Goal(1, is_ratio=True), True)


def expect_same_indexes(log: Path, folder: Path) -> None:
    """Raise RuntimeError unless both indexes in `folder` are those beside `log`, byte by byte."""
    for suffix in (".index", ".timeindex"):
        expected, found = log.with_suffix(suffix), folder / log.with_suffix(suffix).name
        if found.read_bytes() != expected.read_bytes():
            raise RuntimeError(f"{found} is not what it should be")


# --- opening


def logs(bench: Bench) -> list[Section]:
    """Measure how long a log of many segments takes to open."""
    count = SEGMENTS_QUICK if bench.quick else SEGMENTS
    section = Section(
        "Opening a log",
        f"{count} segments of {SMALL_SEGMENT_BYTES // 1024} KiB with their indexes, closed "
        "cleanly; page cache warm, indexes opened when needed. Kafka: `UnifiedLog.create`.",
        "Kafka 4.3.1",
    )
    say(f"opening a log of {count} segments")
    folders = {side: bench.folder / side / "t-0" for side in ("theirs", "ours")}
    for folder in folders.values():
        workloads.write_segments(folder, workloads.SHAPES["1 KB"], SMALL_SEGMENT_BYTES, count)
    results = race(
        {
            "theirs": lambda: bench.java.contestant("open-log", 3, folders["theirs"]),
            "ours": lambda: ours("auto", "open-log", 2, folders["ours"]),
        },
        bench.passes,
    )
    for folder in folders.values():
        shutil.rmtree(folder)
    cells = {side: seconds_each(result, 1, 1.0) for side, result in results.items()}
    goal = Goal(1, is_ratio=False, at_least=False)
    row = Row(f"{count} segments", "s", cells["theirs"], cells["ours"], goal=goal)
    section.rows.append(row)
    section.ours = "segproof"
    return [section]


# --- reads


def reads(bench: Bench) -> list[Section]:
    """Measure reads by offset and searches by timestamp, many at once and one by one."""
    many = Section(
        "Many reads of a segment",
        f"`read_many` of {TARGETS} random offsets and `find_offset_by_timestamp_many` of "
        f"{TIMESTAMPS} random timestamps: where each begins, no record bytes. The JVM calls "
        "`LogSegment.read(offset, 1)` and `findOffsetByTimestamp` for each. Same files, same "
        "answers.",
        "Kafka 4.3.1",
    )
    single = Section(
        "One read of a segment from Python",
        "A call, median of passes over the same offsets and timestamps, beside the call in the "
        "JVM.",
        "Kafka 4.3.1",
    )
    for name in ("1 KB", "16 KB", "160 x 100 B"):
        directory = bench.folder / "read"
        segment = workloads.write_segment(directory, workloads.SHAPES[name], _size(bench))
        offsets, times = bench.folder / "read.offsets", bench.folder / "read.times"
        _write_random(offsets, TARGETS, segment.records, 0)
        _write_random(times, TIMESTAMPS, segment.records, workloads.FIRST_TIMESTAMP)
        for what, modes, targets in (
            ("read_many", ("segment-read", "segment-read-many"), offsets),
            ("find_offset_by_timestamp_many", ("segment-time", "segment-time-many"), times),
        ):
            sides = _sides(bench, modes, (3, 2), directory, targets)
            goal = Goal(2, is_ratio=True)
            many.rows.append(_reads(f"{what}, {name} batches", sides, bench.passes, _NS, goal))
        for what, mode, targets in (
            ("read", "segment-read", offsets),
            ("translate_offset", "segment-translate", offsets),
            ("find_offset_by_timestamp", "segment-time", times),
        ):
            theirs = "segment-read" if mode == "segment-translate" else mode
            sides = _sides(bench, (theirs, mode), (2, 1), directory, targets)
            goal = Goal(_SCALAR_LIMIT_US, is_ratio=False, at_least=False)
            single.rows.append(_reads(f"{what}, {name} batches", sides, 3, _US, goal))
        shutil.rmtree(directory)
    return [many, single]


def _write_random(path: Path, count: int, records: int, first: int) -> None:
    """Write `count` numbers, uniform over so many from `first` on, as big-endian int64."""
    numbers = np.random.default_rng(4).integers(0, records, count) + first
    path.write_bytes(numbers.astype(">i8").tobytes())


def _reads(
    what: str, sides: dict[str, Callable[[], Contestant]], passes: int, scale: float, goal: Goal
) -> Row:
    say(what)
    results = race(sides, passes)
    count = TIMESTAMPS if what.startswith("find") else TARGETS
    cells = {side: seconds_each(result, count, scale) for side, result in results.items()}
    return Row.of(what, "ns" if scale == _NS else "us", cells, goal)


# --- appends


def appends(bench: Bench) -> list[Section]:
    """Measure appends of ready batches, many at once and one by one."""
    many = Section(
        "append_many of ready batches",
        f"{_size(bench) // 10**6} MB into a new segment in buffers of {APPENDED_AT_ONCE // MIB} "
        "MiB, written to the page cache and indexed; the JVM calls `LogSegment.append` for each "
        "batch. Same bytes, same number of index entries.",
        "Kafka 4.3.1",
    )
    single = Section("append of one ready batch", "A call a batch on both sides.", "Kafka 4.3.1")
    for name in ("1 KB", "16 KB"):
        shape = workloads.SHAPES[name]
        made = bench.folder / "made"
        segment = workloads.write_segment(made, shape, _size(bench))
        say(f"append_many, {name} batches")
        results = _append(bench, segment.log, "segment-append-many", APPENDED_AT_ONCE)
        cells = {side: rate(result, segment.size_bytes) for side, result in results.items()}
        many.rows.append(Row.of(f"{name} batches", "GB/s", cells, Goal(1, is_ratio=True), True))
        say(f"append, {name} batches")
        results = _append(bench, segment.log, "segment-append")
        # A thousand appends a second.
        cells = {side: rate(result, segment.records, 1e3) for side, result in results.items()}
        goal = Goal(_APPENDS_A_SECOND / 1e3, is_ratio=False) if name == "1 KB" else None
        single.rows.append(Row.of(f"{name} batches", "1000/s", cells, goal, True))
        shutil.rmtree(made)
    return [many, single]


def _append(bench: Bench, log: Path, mode: str, *arguments: object) -> dict[str, Passes | NotRun]:
    folders = {side: bench.folder / f"filled-{side}" for side in ("theirs", *_KERNELS)}
    for folder in folders.values():
        folder.mkdir()

    def start(kernels: str) -> Callable[[], Contestant]:
        return lambda: ours(kernels, mode, 2, folders[kernels], log, *arguments)

    sides = {kernels: start(kernels) for kernels in _KERNELS}
    theirs = {"theirs": lambda: bench.java.contestant("segment-append", 3, folders["theirs"], log)}
    results = race(theirs | sides, bench.passes)
    for folder in folders.values():
        shutil.rmtree(folder)
    return results
