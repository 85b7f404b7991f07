# SPDX-License-Identifier: Apache-2.0
"""Rows about whole processes: the command line beside kafka-dump-log, imports, help.

Used by: __main__.
"""

import shutil
import subprocess
import sys
import time

from benchmarks import workloads
from benchmarks.contestants import DUMP, NotRunError, Passes, missing_kernels, python_environment
from benchmarks.measuring import MIB, Bench, rate, say, seconds_each
from benchmarks.table import Cell, Figure, Goal, NotRun, Row, Section

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
    part = (16 if bench.quick else 256) * MIB
    section = Section(
        "Whole processes",
        f"`segproof verify` with its default jobs on a directory of {count * size // MIB} MiB "
        f"({count} segments), beside kafka-dump-log on one log of {part // MIB} MiB of the same "
        "batches, in bytes a second: its time grows with the file, and it would need minutes. "
        "Start-up included, and the compiled kernels are loaded when the work seems to pay it; "
        "output to the null device. Interpreted: the same log as the tool.",
        "kafka-dump-log 4.2.1",
    )
    for what, name, deep, goal in (
        ("--deep beside --deep-iteration", "160 x 100 B", True, 30),
        ("plain beside plain", "16 KB", False, 8),
    ):
        section.rows.append(_beside_dump(bench, (what, name, deep, goal), count, size, part))
    return section


def _beside_dump(
    bench: Bench, row: tuple[str, str, bool, float], count: int, size: int, part: int
) -> Row:
    what, name, deep, goal = row
    say(f"whole processes, {what}, {name}")
    directory, small = bench.folder / "t-0", bench.folder / "part-0"
    shape = workloads.SHAPES[name]
    total = sum(one.size_bytes for one in workloads.write_segments(directory, shape, size, count))
    piece = workloads.write_segment(small, shape, part)
    words = ["verify", *(["--deep"] if deep else [])]
    sides: dict[str, tuple[int, list[str], dict[str, str] | None] | NotRun] = {}
    try:
        java = ["java", "-Xmx256M", "-cp", bench.java.classpath(DUMP), _DUMP_CLASS]
        java += ["--files", str(piece.log), *(["--deep-iteration"] if deep else [])]
        sides["theirs"] = (piece.size_bytes, java, None)
    except NotRunError as error:
        sides["theirs"] = NotRun(str(error))
    for kernels, path, size_bytes in (
        ("compiled", directory, total),
        ("interpreted", small, piece.size_bytes),
    ):
        reason = missing_kernels(kernels)
        command = segproof_command(*words, str(path))
        # The default compiles when it pays, which is what a user of the extra `fast` has.
        environment = python_environment("auto" if kernels == "compiled" else kernels)
        sides[kernels] = NotRun(reason) if reason else (size_bytes, command, environment)
    cells = _times(sides, 1 if bench.quick else 3)
    shutil.rmtree(directory)
    shutil.rmtree(small)
    return Row.of(f"{what}, {name} batches", "MB/s", cells, Goal(goal, is_ratio=True), True)


def _times(
    sides: dict[str, tuple[int, list[str], dict[str, str] | None] | NotRun], runs: int
) -> dict[str, Cell]:
    """Run the processes in turn; return the rate of each in MB/s."""
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
