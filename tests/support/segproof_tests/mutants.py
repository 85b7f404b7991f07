# SPDX-License-Identifier: Apache-2.0
"""Drawn mutants of healthy directories, and what no verb may do with one.

Each mutant is a copy of a partition or store with one to three drawn damages. Every verb is run on
it, and none may end with an internal error, by a signal, late, with too much memory, or after a
change of its input. Where `verify --deep` finds no defect, every lookup answers what the mutant's
log holds, and that log differs from the healthy one only in what its files can't tell
(`mutant_answers.UNPROTECTED`). How often each such difference came up is printed at the end.

    python -m segproof_tests.mutants --seed 1 --count 1000 [--jobs 2] [--first 0] [PATH ...]

Not covered: memory where the system does not tell the peak of a process (it must be Linux).
"""

import argparse
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue

from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import partition_of, scenarios, stores
from segproof_tests.mutant_answers import (
    UNPROTECTED,
    answers,
    differences,
    is_store,
    wrong_answers,
)
from segproof_tests.mutant_damages import damage, old_times

__all__ = ["Verdict", "check", "main", "run", "sources"]

MEMORY_MIB = 192
"""What the verbs may take beside what the process has before, some 60 MiB: 256 in all."""
CPU_SECONDS = 60
"""How much of a processor all verbs together may take for one mutant."""
WALL_SECONDS = 600
"""And how long, busy or waiting, on a machine that may do other things too."""
ADDRESS_SPACE_BYTES = 6 << 30
EXPECTED_CODES = (0, 1)


@dataclass(slots=True)
class Verdict:
    """What came of one mutant."""

    number: int
    damages: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What a verb must not do, and did."""
    unseen: set[str] | None = None
    """How the log differs from the healthy one; None if `verify` finds a defect."""


Check = Callable[[int, int, Sequence[Path]], Verdict]


def sources(paths: Sequence[str] = ()) -> list[Path]:
    """Return the healthy directories: those that ship with the package, and the given ones."""
    return [*map(partition_of, scenarios()), *stores(), *map(Path, paths)]


def check(seed: int, number: int, healthy: Sequence[Path]) -> Verdict:
    """Make one mutant, run the verbs on it, and return what came of it."""
    draw = random.Random(f"{seed}/{number}")
    source, other = draw.choice(healthy), draw.choice(healthy)
    verdict = Verdict(number)
    with tempfile.TemporaryDirectory(prefix="segproof-mutant-") as name:
        folder = Path(name) / "data" / source.name
        shutil.copytree(source, folder, copy_function=shutil.copyfile)
        verdict.damages = damage(draw, folder, other)
        old_times(folder)
        before = _digest(folder)
        try:
            verdict.wrong += _verbs(draw, source, folder)
            # A whole commit log that is gone may lie elsewhere: that is a note.
            found = list(verify(folder, deep=True))
            if not any(one.is_defect or one.law == "RMQDISK-23" for one in found):
                verdict.unseen = differences(source, folder)
                # A batch that a writer may have written makes index entries those of a log that
                # was truncated since: a note too.
                if "sound" not in verdict.unseen or not any(one.law == "DISK-9" for one in found):
                    verdict.wrong += wrong_answers(source, folder, Path(name) / "log-alone")
                if strange := verdict.unseen - UNPROTECTED.keys():
                    verdict.wrong.append(f"the log differs in {sorted(strange)}, unseen")
        except Exception:  # of a lookup or of verify, called as a library
            verdict.wrong.append(traceback.format_exc()[-900:])
        if _digest(folder) != before:
            verdict.wrong.append("the input was changed")
    return verdict


def _verbs(draw: random.Random, source: Path, folder: Path) -> Iterator[str]:
    """Run every verb, and tell of those that end badly."""
    _forget_peak()
    at_rest = _peak_mib()
    for arguments in _commands(draw, source, folder):
        code, said = _run(arguments)
        shown = " ".join([*arguments[:1], *arguments[2:]])
        # A file that can't be read is usage, so is what lookup and rebuild lack to begin, and a
        # folder in which neither log nor index is left.
        may_be_usage = arguments[0] in ("lookup", "rebuild") or not os.path.isdir(arguments[1])
        may_be_usage |= is_store(source) and not is_store(folder)
        if code not in (*EXPECTED_CODES, *[2] * may_be_usage):
            yield f"{shown}: exit {code}: {said[-300:]}"
        if "Traceback (most recent" in said:
            yield f"{shown}: a traceback: {said[-300:]}"
    if (taken := _peak_mib() - at_rest) > MEMORY_MIB:
        yield f"{taken} MiB of memory"


def _commands(draw: random.Random, source: Path, folder: Path) -> Iterator[list[str]]:
    path = str(folder)
    yield ["verify", path, "--jobs", "1"]
    yield ["dump", path, *draw.choice(([], ["--records"]))]
    question, _ = draw.choice(answers(source) or ((("--key", "TopicTest#key"), None),))
    yield ["lookup", path, *question, *draw.choice(([], ["--explain"]))]
    jobs = [] if is_store(source) else ["--jobs", "1"]
    yield ["rebuild", path, "--out", str(folder.parent.parent / "rebuilt"), *jobs]
    files = [each for each in sorted(folder.rglob("*")) if not each.is_dir()]
    if files:
        yield [draw.choice(("verify", "dump")), str(draw.choice(files))]


def _run(arguments: list[str]) -> tuple[int, str]:
    """Run a command line in this process; return its exit code and the end of what it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(_Nowhere()), contextlib.redirect_stderr(said):
        code = cli.run(arguments)
    return code, said.getvalue()


class _Nowhere(io.TextIOBase):
    """A stream that keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)


# --- what a process took and left


def _digest(folder: Path) -> str:
    """Return a digest of names, kinds and bytes; of what lies in holes only the length."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        whole.update(f"{path.relative_to(folder)} {status.st_mode} {status.st_size}".encode())
        if path.is_symlink():
            whole.update(os.readlink(path).encode())
        elif path.is_file() and status.st_size < 1 << 28:
            whole.update(path.read_bytes())
    return whole.hexdigest()


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) >> 10
    return 0


# --- the run


def _in_time(check: Check, seed: int, number: int, healthy: Sequence[Path]) -> Verdict:
    """Check a mutant; a signal ends the process if it takes too long."""
    for late in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(late, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.alarm(WALL_SECONDS)
    try:
        return check(seed, number, healthy)
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def run(
    seed: int, numbers: range, healthy: Sequence[Path], jobs: int, check: Check = check
) -> Iterator[Verdict]:
    """Yield the verdicts, as they come, from `jobs` processes.

    A process that dies is a failure of its mutant alone; another one goes on.
    """
    context = multiprocessing.get_context("spawn")
    idle: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()

    def one(number: int) -> Verdict:
        pool = idle.get()
        try:
            return pool.submit(_in_time, check, seed, number, healthy).result()
        except BrokenProcessPool:
            pool.shutdown()
            pool = ProcessPoolExecutor(1, context)
            return Verdict(number, wrong=["the process died: by a signal, or it took too long"])
        finally:
            idle.put(pool)

    for _ in range(jobs):
        idle.put(ProcessPoolExecutor(1, context))
    with ThreadPool(jobs) as threads:
        yield from threads.imap_unordered(one, numbers)
    while not idle.empty():
        idle.get().shutdown()


def main(arguments: Sequence[str]) -> int:
    """Run from a command line; return 1 if something went wrong."""
    parser = argparse.ArgumentParser(description="Run the verbs on mutants of healthy directories.")
    parser.add_argument("paths", nargs="*", help="further healthy partitions and stores")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args(arguments)
    from segproof_harness.cli.common import progress

    print(f"seed {asked.seed}", flush=True)
    numbers = range(asked.first, asked.first + asked.count)
    verdicts = []
    with progress("mutants", unit="mutants") as show:
        for verdict in run(asked.seed, numbers, sources(asked.paths), asked.jobs):
            verdicts.append(verdict)
            show(len(verdicts), asked.count)
            again = f"--seed {asked.seed} --first {verdict.number} --count 1 --jobs 1"
            command = " ".join([f"python -m segproof_tests.mutants {again}", *asked.paths])
            for what in verdict.wrong:
                row = {"what": what, "damages": verdict.damages, "reproduce": command}
                print(json.dumps(row), flush=True)
    print(_summary(verdicts), flush=True)
    return 1 if any(verdict.wrong for verdict in verdicts) else 0


def _summary(verdicts: Sequence[Verdict]) -> str:
    """Return in words what came of all, and how often nothing told of a difference."""
    sound = [verdict.unseen for verdict in verdicts if verdict.unseen is not None]
    unseen = Counter(name for names in sound for name in names)
    failures = sum(len(verdict.wrong) for verdict in verdicts)
    lines = [
        f"{len(verdicts)} mutants, {failures} failures",
        f"verify finds a defect in {len(verdicts) - len(sound)}",
        f"the log is as it was in {sum(not names for names in sound)}",
        f"the log differs, and nothing tells, in {sum(map(bool, sound))}:",
    ]
    lines += [f"{n:6} {name}: {UNPROTECTED.get(name)}" for name, n in unseen.most_common()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
