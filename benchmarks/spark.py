# SPDX-License-Identifier: Apache-2.0
"""Rows about the checks on Spark: two cores beside one, `spark verify` beside `verify --jobs 2`.

Each job runs in a process of its own, which starts Spark first. What is timed is the job, unless
the row says otherwise.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks import workloads
from benchmarks.contestants import Passes, python_environment
from benchmarks.measuring import MIB, Bench, rate, say, seconds_each, wait_until_quiet
from benchmarks.processes import segproof_command, timed
from benchmarks.table import Figure, Goal, NotRun, Row, Section
from segproof_spark.session import SparkNotRunError, check_spark

_JOB = """
import json, sys, time
from segproof_spark.session import start_session

begin = time.perf_counter()
asked = json.loads(sys.argv[1])
session = start_session(asked["master"])
session.range(1).mapInArrow(lambda batches: batches, "id bigint").count()
first_task = time.perf_counter() - begin
begin = time.perf_counter()
if asked["job"] == "replay":
    from segproof_harness.structures.structure import STRUCTURE_IDS
    from segproof_spark.replay import replay_on_spark

    found = replay_on_spark(session, STRUCTURE_IDS, seeds=range(asked["count"]), length=100)
    done, differ, peak = found.total.histories, len(found.findings), found.total.worker_peak_bytes
elif asked["job"] == "lookups":
    from segproof_spark.lookups.job import lookups_on_spark
    from segproof_spark.lookups.structures import drawn_units

    found = lookups_on_spark(session, drawn_units(asked["count"]))
    done, differ = found.lookups, found.differing
    peak = max(each.worker_peak_bytes for each in found.totals)
seconds = time.perf_counter() - begin
session.stop()
print(json.dumps([seconds, first_task, done, differ, peak]))
"""


def sections(bench: Bench) -> list[Section]:
    """Measure the jobs; without Java or Spark the rows say so."""
    try:
        check_spark()
    except SparkNotRunError as reason:
        cell = NotRun(str(reason))
        section = Section("Spark", "Checks on local Spark.", "one core")
        section.rows.append(Row("all rows", "", cell, cell))
        return [section]
    return [_two_cores(bench), _verify(bench)]


def _two_cores(bench: Bench) -> Section:
    section = Section(
        "Spark: two cores beside one",
        "The same job under `local[2]` and `local[1]`, the start of Spark not counted. Replay: "
        "histories of 100 operations, equally many of each structure, every answer and byte "
        "compared. Lookups: generated indexes and logs, compared with the definition swept in "
        "order. Ratio: `local[2]` to `local[1]`. Perfectly parallel Python reaches some 1.7 on "
        "two cores that share a cache.",
        "local[1]",
    )
    firsts: list[float] = []
    peaks: list[int] = []
    for job, count, unit in (
        ("replay", 20 if bench.quick else 300, "histories/s"),
        ("lookups", 10**6 if bench.quick else 10**8, "million/s"),
    ):
        say(f"spark {job}")
        results = {}
        scale = 1e6 if job == "lookups" else 1.0
        for cores in (1, 2):
            wait_until_quiet()
            seconds, first, done, differ, peak = _job(f"local[{cores}]", job, count)
            if differ:
                raise RuntimeError(f"{job} on Spark: {differ} differ")
            results[cores] = rate(Passes([seconds]), done, scale)
            firsts.append(first)
            peaks.append(peak)
        goal = Goal(1.6, is_ratio=True)
        section.rows.append(Row(job, unit, results[1], results[2], None, goal, True))
    start = Goal(15, is_ratio=False, at_least=False)
    to_first = seconds_each(Passes(firsts), 1, 1.0)
    section.rows.append(Row("start of Spark to the first task", "s", None, to_first, goal=start))
    memory = Goal(512, is_ratio=False, at_least=False)
    peak_mib = max(peaks) / (1 << 20)
    section.rows.append(
        Row("most memory of a Python worker", "MiB", None, Figure(peak_mib, peak_mib), goal=memory)
    )
    return section


def _job(master: str, job: str, count: int) -> tuple[float, float, int, int, int]:
    """Return seconds of the job and up to the first task, what was done, differences, bytes."""
    asked = json.dumps({"master": master, "job": job, "count": count})
    done = subprocess.run(
        [sys.executable, "-c", _JOB, asked],
        env=python_environment("auto"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, first, count_done, differ, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, first, count_done, differ, peak


def _verify(bench: Bench) -> Section:
    count, size = (8, 16 * MIB) if bench.quick else (160, 64 * MIB)
    section = Section(
        "Spark: verify of a data directory",
        f"`segproof spark verify --master local[2]` beside `segproof verify --jobs 2` on "
        f"{count * size // MIB} MiB in {count} partitions: whole processes, start-up of both "
        "included, output to the null device. Ratio: bytes a second on Spark to those without.",
        "verify --jobs 2",
    )
    for what, name, words in (
        ("16 KB batches", "16 KB", []),
        ("160 records a batch, --deep", "160 x 100 B", ["--deep"]),
    ):
        say(f"spark verify, {what}")
        data = bench.folder / "data"
        total = _write_partitions(data, name, count if not words else count // 8, size)
        wait_until_quiet()
        results = {"theirs": Passes(), "compiled": Passes()}
        for _ in range(1 if bench.quick else 3):
            for side, verb in (
                ("theirs", ["verify", "--jobs", "2"]),
                ("compiled", ["spark", "verify", "--master", "local[2]"]),
            ):
                command = segproof_command(*verb, *words, str(data))
                results[side].seconds.append(timed(command, python_environment("auto")))
        shutil.rmtree(data)
        cells = {side: rate(found, total, 1e6) for side, found in results.items()}
        goal = Goal(0.8, is_ratio=True)
        section.rows.append(Row(what, "MB/s", cells["theirs"], cells["compiled"], None, goal, True))
    return section


def _write_partitions(data: Path, name: str, count: int, size_bytes: int) -> int:
    """Write partitions of one segment each, which are links to one; return the bytes in all."""
    first = data / "t-0"
    segment = workloads.write_segment(first, workloads.SHAPES[name], size_bytes)
    for number in range(1, count):
        workloads.link_segment(segment.log, data / f"t-{number}")
        for suffix in (".index", ".timeindex"):
            source = segment.log.with_suffix(suffix)
            os.link(source, data / f"t-{number}" / source.name)
    return segment.size_bytes * count
