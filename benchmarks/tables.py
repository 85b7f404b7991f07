# SPDX-License-Identifier: Apache-2.0
"""Rows about `segproof.scan`, beside the parser of a Python client, and `dump` beside it."""

import resource
import shutil
import sys
from functools import partial
from importlib.util import find_spec

from benchmarks import workloads
from benchmarks.contestants import (
    Contestant,
    NotRunError,
    Passes,
    missing_kernels,
    ours,
    python_environment,
)
from benchmarks.measuring import MIB, Bench, race, say, seconds_each
from benchmarks.processes import segproof_command, timed
from benchmarks.table import Cell, Goal, NotRun, Row, Section

_BYTES, _QUICK_BYTES = 24 * MIB, 4 * MIB
_MILLION = 1e-6
_SHAPES = ("160 x 100 B", "64 x 250 B", "1 x 250 B")
_SCAN = "import segproof, sys; print(sum(one.num_rows for one in segproof.scan(sys.argv[1])))"


def sections(bench: Bench) -> list[Section]:
    """Measure a scan of all columns of records, and a dump of them as Parquet."""
    size = _QUICK_BYTES if bench.quick else _BYTES
    return [_scans(bench, size), _dumps(bench, size)]


def _scans(bench: Bench, size: int) -> Section:
    section = Section(
        "scan of records",
        f"Processor time of `segproof.scan` of all columns, in microseconds a record; {size // MIB}"
        " MiB, page cache warm. The other side is the compiled parser of aiokafka, which makes a"
        " Python object of each record; both make all checksums.",
        "aiokafka",
    )
    for name in _SHAPES:
        say(f"scan, {name}")
        directory = bench.folder / "t-0"
        segment = workloads.write_segment(directory, workloads.SHAPES[name], size)
        results = race(
            {
                "theirs": partial(_theirs, segment.log),
                "compiled": partial(ours, "compiled", "scan-records", 2, segment.log),
                "interpreted": partial(ours, "interpreted", "scan-records", 1, segment.log),
            },
            bench.passes,
        )
        shutil.rmtree(directory)
        cells = {side: _each(result, segment) for side, result in results.items()}
        section.rows.append(Row.of(f"{name} batches", "us", cells, Goal(1, is_ratio=True)))
    return section


def _each(result: Passes | NotRun, segment: workloads.Segment) -> Cell:
    """Return the processor time of a record, in microseconds."""
    of_processor = result.of_processor if isinstance(result, Passes) else result
    return seconds_each(of_processor, segment.records, _MILLION)


def _dumps(bench: Bench, size: int) -> Section:
    section = Section(
        "dump of records as Parquet",
        "Processor time of `segproof dump --records --format parquet` beside `segproof.scan` of all"
        f" columns, in microseconds a record; {size // MIB} MiB, page cache warm. The goal is at"
        " most 1.5 times as much, a ratio of 0.67. In one process the dump goes to a file. Whole"
        " processes start and load what they need, and their output goes to the null device.",
        "scan",
        ours="dump",
    )
    goal = Goal(0.67, is_ratio=True)
    for name in _SHAPES:
        say(f"dump, {name}")
        directory = bench.folder / "t-0"
        segment = workloads.write_segment(directory, workloads.SHAPES[name], size)
        results = race(
            {
                "scan": partial(ours, "compiled", "scan-records", 2, segment.log),
                "dump": partial(ours, "compiled", "dump-records", 2, segment.log),
            },
            bench.passes,
        )
        for where, found in (
            ("in one process", results),
            ("whole processes", _whole_processes(segment, bench.passes)),
        ):
            theirs, mine = (_each(found[side], segment) for side in ("scan", "dump"))
            section.rows.append(Row(f"{where}, {name} batches", "us", theirs, mine, None, goal))
        shutil.rmtree(directory)
    return section


def _whole_processes(segment: workloads.Segment, runs: int) -> dict[str, Passes | NotRun]:
    """Let processes run in turn; return the processor time of each."""
    if reason := missing_kernels("compiled"):
        return dict.fromkeys(("scan", "dump"), NotRun(reason))
    log, environment = str(segment.log), python_environment("compiled")
    commands = {
        "scan": [sys.executable, "-c", _SCAN, log],
        "dump": segproof_command("dump", log, "--records", "--format", "parquet"),
    }
    results = {side: Passes() for side in commands}
    for _ in range(runs):
        for side, command in commands.items():
            before = _of_children()
            timed(command, environment)
            results[side].processor_seconds.append(_of_children() - before)
    return dict(results)


def _of_children() -> float:
    """Return the processor time in seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _theirs(log: object) -> Contestant:
    if find_spec("aiokafka") is None:
        raise NotRunError("aiokafka is not installed")
    return ours("interpreted", "aiokafka-records", 2, log)
