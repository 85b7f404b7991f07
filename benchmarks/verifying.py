# SPDX-License-Identifier: Apache-2.0
"""Rows about `verify`, beside LogSegment.recover and the iteration of records in the JVM.

The JVM recovers its own directory with a second name of the same log, since a recovery rewrites the
indexes. All files are in the page cache.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks import workloads
from benchmarks.contestants import Contestant, Passes, ours
from benchmarks.measuring import MIB, Bench, memory, race, rate, say
from benchmarks.table import Goal, NotRun, Row, Section

_GOALS = {"1 KB": 2.5, "16 KB": 1.5, "1 MB": 1.5}
_INTERPRETED_PART = 16
"""Interpreted kernels verify the records of a file so many times smaller: they need minutes."""
_MEMORY_LIMIT_MIB = 200


def sections(bench: Bench) -> list[Section]:
    """Measure the verification of one segment, of its records, of two segments, and its memory."""
    size = (64 if bench.quick else 1024) * MIB
    plain = Section(
        "verify of one segment",
        f"Headers, checksums, index and time index against the log; {size // MIB} MiB, one "
        "process, page cache warm. Kafka recovers the same log (`LogSegment.recover`). Batches of "
        "one record each.",
        "Kafka 4.3.1",
    )
    deep = Section(
        "verify --deep of one segment",
        f"The same and every record; batches of 160 records of 100 bytes; {size // MIB} MiB "
        f"(interpreted: a {_INTERPRETED_PART}th of it). Kafka iterates over the records in "
        "process, which checks nothing.",
        "Kafka 4.3.1",
    )
    memories = Section(
        "Memory",
        "The most that the verifying process of a row above had at once (resident, MiB).",
        "",
    )
    for name, goal in _GOALS.items():
        plain.rows.append(_plain(bench, name, size, goal, memories))
    deep.rows.append(_deep(bench, size, memories))
    return [plain, deep, _two_jobs(bench, size), memories]


def _start(kernels: str, *arguments: object) -> Callable[[], Contestant]:
    return lambda: ours(kernels, "verify", 1, *arguments)


def _plain(bench: Bench, name: str, size: int, goal: float, memories: Section) -> Row:
    say(f"verify, {name} batches")
    directory, recovered = bench.folder / "t-0", bench.folder / "recovered"
    segment = workloads.write_segment(directory, workloads.SHAPES[name], size)
    workloads.link_segment(segment.log, recovered)
    results = race(
        {
            "theirs": lambda: bench.java.contestant("recover", 2, recovered),
            "compiled": _start("compiled", directory),
            "interpreted": _start("interpreted", directory),
        },
        bench.passes,
    )
    _expect(results, 0)
    memories.rows.append(_memory(f"verify, {name} batches", results))
    _remove(directory, recovered)
    cells = {side: rate(result, segment.size_bytes) for side, result in results.items()}
    return Row.of(f"{name} batches", "GB/s", cells, Goal(goal, is_ratio=True), True)


def _deep(bench: Bench, size: int, memories: Section) -> Row:
    shape = workloads.SHAPES["160 x 100 B"]
    say(f"verify --deep, {shape.name}")
    directory, small = bench.folder / "t-0", bench.folder / "small-0"
    segment = workloads.write_segment(directory, shape, size)
    part = workloads.write_segment(small, shape, size // _INTERPRETED_PART)
    results = race(
        {
            "theirs": lambda: bench.java.contestant("iterate", 2, segment.log),
            "compiled": _start("compiled", directory, 1, "deep"),
            "interpreted": lambda: ours("interpreted", "verify", 0, small, 1, "deep"),
        },
        3 if bench.quick else 5,
        same_answers=False,
    )
    _expect({side: result for side, result in results.items() if side != "theirs"}, 0)
    _expect({"theirs": results["theirs"]}, segment.records * shape.value_bytes)
    memories.rows.append(_memory(f"verify --deep, {shape.name}", results))
    _remove(directory, small)
    sizes = {"interpreted": part.size_bytes}
    cells = {
        side: rate(result, sizes.get(side, segment.size_bytes)) for side, result in results.items()
    }
    goal = Goal(1, is_ratio=True)
    return Row.of(shape.name, "GB/s", cells, goal, True)


def _two_jobs(bench: Bench, size: int) -> Section:
    say("verify --jobs 2")
    directory = bench.folder / "t-0"
    segments = workloads.write_segments(directory, workloads.SHAPES["1 KB"], size, 2)
    total = sum(segment.size_bytes for segment in segments)
    rows = []
    for kernels in ("compiled", "interpreted"):
        results = race(
            {str(jobs): _start(kernels, directory, jobs) for jobs in (1, 2)}, bench.passes
        )
        _expect(results, 0)
        cells = [rate(results["1"], total), rate(results["2"], total)]
        goal = Goal(1.7, is_ratio=True) if kernels == "compiled" else None
        what = f"two segments of 1 KB batches, {kernels} kernels"
        rows.append(Row(what, "GB/s", cells[0], cells[1], goal=goal, higher_is_better=True))
    _remove(directory)
    words = f"Two segments of {size // MIB} MiB in one directory: one process beside two."
    return Section("verify --jobs 2", words, "--jobs 1", rows, "--jobs 2")


def _memory(what: str, results: dict[str, Passes | NotRun]) -> Row:
    cells = {side: memory(results[side]) for side in ("compiled", "interpreted")}
    goal = Goal(_MEMORY_LIMIT_MIB, is_ratio=False, at_least=False)
    return Row.of(what, "MiB", cells, goal)


def _expect(results: dict[str, Passes | NotRun], checksum: int) -> None:
    """Raise unless every side says that the file is in order."""
    for side, result in results.items():
        if isinstance(result, Passes) and result.checksum != checksum:
            raise RuntimeError(f"{side}: {result.checksum} on a healthy file, not {checksum}")


def _remove(*directories: Path) -> None:
    for directory in directories:
        shutil.rmtree(directory)
