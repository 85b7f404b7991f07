# SPDX-License-Identifier: Apache-2.0
"""The one command of the benchmarks; see `python -m benchmarks --help`."""

import argparse
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / part) for part in ("model", "impl", "harness", "spark_checks")]

from benchmarks import (  # noqa: E402  (the path comes first)
    lookups,
    oracle,
    processes,
    rocketmq,
    rocketmq_rebuild,
    salvaging,
    segments,
    spark,
    tables,
    verifying,
)
from benchmarks.contestants import Java  # noqa: E402
from benchmarks.measuring import Bench, say  # noqa: E402
from benchmarks.table import Section, missing, section_lines, shortfalls  # noqa: E402

GROUPS: dict[str, Callable[[Bench], list[Section]]] = {
    "lookups": lookups.sections,
    "opening": lookups.opening,
    "verify": verifying.sections,
    "salvage": salvaging.sections,
    "recover": segments.recovery,
    "rebuild": segments.rebuilds,
    "logs": segments.logs,
    "reads": segments.reads,
    "appends": segments.appends,
    "processes": processes.sections,
    "rocketmq": rocketmq.sections,
    "rocketmq-rebuild": rocketmq_rebuild.sections,
    "oracle": oracle.sections,
    "spark": spark.sections,
    "tables": tables.sections,
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure segproof beside Kafka's and RocketMQ's classes (Java 17, Maven).",
    )
    parser.add_argument("--quick", action="store_true", help="small files and few passes")
    parser.add_argument(
        "--only", action="append", choices=sorted(GROUPS), help="one group; may be repeated"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--folder", type=Path, help="where to put files of up to 5 GiB")
    asked = parser.parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="segproof-bench-", dir=asked.folder))
    found: list[Section] = []
    try:
        with Java() as java:
            bench = Bench(folder, java, asked.quick)
            for name in asked.only or GROUPS:
                found += GROUPS[name](bench)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    page = "\n".join(page_lines(found, machine_lines(), asked.quick))
    print(page)
    if asked.write is not None:
        asked.write.write_text(page)
    for line in missing(found):
        say(line)
    return 0


def page_lines(found: Sequence[Section], machine: Sequence[str], quick: bool) -> list[str]:
    """Return the page: what it is, the machine, what falls short, the tables."""
    lines = [
        "# Performance",
        "",
        "Who should read this: everyone who asks what segproof costs, beside Kafka's and",
        "RocketMQ's own tools. Written by `python -m benchmarks`. Both sides ran in turn on the",
        "same files in one run; absolute times say little about another machine. A cell is the",
        "median of the passes and, in brackets, the best one; ratios are of medians, above 1 where",
        "segproof is faster. `compiled` is with the extra `fast` (numba), `interpreted` without.",
        "",
        *(["**A quick run: files too small and passes too few to be quoted.**", ""] * quick),
        *machine,
        "",
        "## What falls short",
        "",
        *(shortfalls(found) or ["Nothing: every goal was measured and reached."]),
        *missing(found),
        "",
    ]
    for section in found:
        lines += section_lines(section)
    return lines


def machine_lines() -> list[str]:
    """Return what the run happened on, in general terms."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    versions = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "numba", "awscrt"))
    return [
        f"- {datetime.date.today().isoformat()}; {system}, {memory:.0f} GiB of memory",
        f"- load average at the end: {os.getloadavg()[0]:.1f} (much above 1: other programs took",
        "  part, and rows with two processes show less than they could)",
        f"- Python {platform.python_version()}, {versions}",
        f"- Java: {_java_version()}",
    ]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _java_version() -> str:
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return "not installed"
    return (done.stderr.splitlines() or ["unknown"])[0].replace('"', "")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # `segproof bench` says it
