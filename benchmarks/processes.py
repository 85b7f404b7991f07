# SPDX-License-Identifier: Apache-2.0
"""Rows about whole processes: the command line beside kafka-dump-log, imports, help."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import workloads
from benchmarks.contestants import DUMP, NotRunError, Passes, missing_kernels, python_environment
from benchmarks.measuring import MIB, Bench, rate, say, seconds_each, wait_until_quiet
from benchmarks.table import Cell, Figure, Goal, NotRun, Row, Section

Side = tuple[int, list[str], dict[str, str] | None]
"""Bytes that are read, the command, its environment."""

_DUMP_CLASS = "kafka.tools.DumpLogSegments"
_VERIFIER = "segproof.verification"
_HEAVY = ("numba", "pyspark", "hypothesis")


def sections(bench: Bench) -> list[Section]:
    """Measure `segproof verify` beside kafka-dump-log, and how fast nothing is done."""
    return [_against_the_dump_tool(bench), _start_up(bench)]


def timed(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Return the seconds that a process took whose output goes to the null device."""
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-2000:]}")
    return seconds


def segproof_command(*words: str) -> list[str]:
    """Return the command line of this checkout."""
    return [sys.executable, "-m", "segproof_harness.cli", *words]


def _against_the_dump_tool(bench: Bench) -> Section:
    count, size = (2, 32 * MIB) if bench.quick else (4, 1024 * MIB)
    section = Section(
        "Whole processes",
        f"`segproof verify` with its default jobs on a directory of {count * size // MIB} MiB "
        f"({count} segments), beside kafka-dump-log on the same logs, in bytes a second. With "
        "--deep-iteration, which takes a minute for so much, the tool gets one log of the four, "
        "and so do interpreted kernels: its time grows with the file. Start-up included, and the "
        "compiled kernels are loaded when the work seems to pay it; output to the null device. On "
        "200 MB the tool's own start-up is most of its time; on files as large as these it is "
        "several times as fast a byte.",
        "kafka-dump-log 4.2.1",
    )
    for what, name, deep, goal in (
        ("--deep beside --deep-iteration", "160 x 100 B", True, 30),
        ("plain beside plain", "16 KB", False, 8),
    ):
        say(f"whole processes, {what}, {name}")
        directory = bench.folder / "t-0"
        segments = workloads.write_segments(directory, workloads.SHAPES[name], size, count)
        cells = _times(_sides(bench, directory, segments, deep), 1 if bench.quick else 3)
        shutil.rmtree(directory)
        words = f"{what}, {name} batches"
        section.rows.append(Row.of(words, "MB/s", cells, Goal(goal, is_ratio=True), True))
    return section


def _sides(
    bench: Bench, directory: Path, segments: list[workloads.Segment], deep: bool
) -> dict[str, Side | NotRun]:
    """Return the commands that are compared, with the bytes that each reads."""
    total = sum(segment.size_bytes for segment in segments)
    few = segments[:1] if deep else segments
    few_bytes = sum(segment.size_bytes for segment in few)
    sides: dict[str, Side | NotRun] = {}
    try:
        java = ["java", "-Xmx256M", "-cp", bench.java.classpath(DUMP), _DUMP_CLASS]
        java += ["--files", ",".join(str(segment.log) for segment in few)]
        sides["theirs"] = (few_bytes, java + ["--deep-iteration"] * deep, None)
    except NotRunError as error:
        sides["theirs"] = NotRun(str(error))
    verify = segproof_command("verify", *["--deep"] * deep)
    for kernels, path, size_bytes in (
        ("compiled", directory, total),
        ("interpreted", few[0].log if deep else directory, few_bytes),
    ):
        # The default compiles when it pays, which is what a user of the extra `fast` has.
        environment = python_environment("auto" if kernels == "compiled" else kernels)
        reason = missing_kernels(kernels)
        sides[kernels] = (
            NotRun(reason) if reason else (size_bytes, [*verify, str(path)], environment)
        )
    return sides


def _times(sides: dict[str, Side | NotRun], runs: int) -> dict[str, Cell]:
    """Run the processes in turn; return the rate of each in MB/s."""
    wait_until_quiet()
    results = {name: Passes() for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            if not isinstance(side, NotRun):
                results[name].seconds.append(timed(side[1], side[2]))
    cells: dict[str, Cell] = {}
    for name, side in sides.items():
        cells[name] = side if isinstance(side, NotRun) else rate(results[name], side[0], 1e6)
    return cells


def _start_up(bench: Bench) -> Section:
    section = Section(
        "Start-up",
        "A fresh process each: the time of the import alone, and the whole of `segproof --help`. "
        f"Neither may load {', '.join(_HEAVY)}: the number of those loaded, and of all modules.",
        "",
    )
    runs = 5 if bench.quick else 11
    for module, limit in (("segproof", 0.2), ("segproof.kafka", None), (_VERIFIER, None)):
        say(f"import {module}")
        section.rows.append(_import_time(module, limit, runs))
    say("segproof --help")
    environment = python_environment("auto")
    help_words = segproof_command("--help")
    passes = Passes([timed(help_words, environment) for _ in range(runs)])
    goal = Goal(0.4, is_ratio=False, at_least=False)
    section.rows.append(Row("segproof --help", "s", None, seconds_each(passes, 1, 1.0), goal=goal))
    none = Goal(0, is_ratio=False, at_least=False)
    for what, code in (
        ("import segproof.kafka", "import segproof.kafka"),
        ("segproof --help", _HELP_IN_PROCESS),
    ):
        heavy, modules = _loaded(code)
        section.rows.append(
            Row(f"heavy modules of {what}", "modules", None, Figure(heavy, heavy), goal=none)
        )
        section.rows.append(
            Row(f"all modules of {what}", "modules", None, Figure(modules, modules))
        )
    return section


_HELP_IN_PROCESS = """
import contextlib, io, sys
from segproof_harness.cli import main
sys.argv = ["segproof", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
"""


def _import_time(module: str, limit: float | None, runs: int) -> Row:
    code = f"import time; a = time.perf_counter(); import {module}; print(time.perf_counter() - a)"
    passes = Passes([float(_output(code)) for _ in range(runs)])
    goal = None if limit is None else Goal(limit, is_ratio=False, at_least=False)
    return Row(f"import {module}", "s", None, seconds_each(passes, 1, 1.0), goal=goal)


def _loaded(code: str) -> tuple[int, int]:
    """Return how many heavy modules and how many in all a piece of Python loads."""
    words = _output(f"{code}\nimport sys\nprint(*sys.modules)").splitlines()[-1].split()
    return sum(name in words for name in _HEAVY), len(words)


def _output(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=python_environment("auto"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
