# SPDX-License-Identifier: Apache-2.0
"""Drawn mutants of healthy directories, and what no verb may do with one.

Each mutant is a copy of a partition, a store or the data directory of a node with one to three
drawn damages. Every verb is run on it, and none may end with an internal error, by a signal, late,
with too much memory, or after a change of its input. Where `verify --deep` finds no defect, every
lookup answers what the mutant's log holds, and that log differs from the healthy one only in what
its files can't tell (`mutant_answers.UNPROTECTED`). Where `salvage` says that it kept everything,
what it wrote differs in no other way than the mutant. How often each difference came up is printed
at the end.

    python -m segproof_tests.mutants --seed 1 --count 1000 [--jobs 2] [--first 0] [--seconds 600]
        [PATH ...]

Not covered: memory where the system does not tell the peak of a process (it must be Linux).
"""

import argparse
import json
import math
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

from segproof.errors import SegproofError
from segproof.verification import verify
from segproof_tests.mutant_answers import (
    UNPROTECTED,
    WITHOUT_CHECKSUM,
    answers,
    differences,
    has_records_of,
    holds_nothing,
    is_store,
    wrong_answers,
)
from segproof_tests.mutant_damages import damage, old_times
from segproof_tests.mutant_sources import places, sources
from segproof_tests.mutant_verbs import (
    Asked,
    contents,
    ended_badly,
    rebuilt_in_place,
    saved,
    scanned,
)

__all__ = ["Verdict", "check", "main", "run"]

CPU_SECONDS = 60
"""How much of a processor all verbs together may take for one mutant."""
WALL_SECONDS = 600
"""And how long, busy or waiting, on a machine that may do other things too."""
ADDRESS_SPACE_BYTES = 6 << 30


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


def check(seed: int, number: int, healthy: Sequence[Path]) -> Verdict:
    """Make one mutant, run the verbs on it, and return what came of it."""
    draw = random.Random(f"{seed}/{number}")
    source, other = draw.choice(healthy), draw.choice(healthy)
    verdict = Verdict(number)
    with tempfile.TemporaryDirectory(prefix="segproof-mutant-") as name:
        scratch = Path(name)
        folder = scratch / "data" / source.name
        shutil.copytree(source, folder, copy_function=shutil.copyfile)
        verdict.damages = damage(draw, folder, other)
        old_times(folder.parent)  # links may lead beside it
        before = contents(folder.parent)
        asked = _asked(draw, source, folder)
        for part in (
            lambda: ended_badly(draw, asked, scratch),
            lambda: scanned(draw, asked),
            lambda: _answered_in_silence(source, folder, scratch, verdict),
            lambda: _lost_in_silence(draw, source, asked, scratch / "saved"),
            lambda: _changed(folder.parent, before),
            lambda: rebuilt_in_place(asked),
        ):
            try:
                verdict.wrong += part()
            except Exception:  # of a lookup or of verify, called as a library
                verdict.wrong.append(traceback.format_exc()[-900:])
    return verdict


def _asked(draw: random.Random, source: Path, folder: Path) -> Asked:
    questions = {}
    for place in places(source):
        known = answers(source / place) or ((("--key", "TopicTest#key"), None),)
        questions[place] = draw.choice(known)[0]
    has_parts = not is_store(source) or (is_store(folder) and (folder / "commitlog").is_dir())
    return Asked(folder, is_store(source), has_parts, questions)


def _changed(folder: Path, before: dict[str, str]) -> Iterator[str]:
    after = contents(folder)
    names = sorted(name for name in before | after if before.get(name) != after.get(name))
    if names:
        yield f"the input was changed: {names}"


def _answered_in_silence(
    source: Path, folder: Path, scratch: Path, verdict: Verdict
) -> Iterator[str]:
    """Tell of answers, and of a log, that changed though `verify` finds no defect."""
    # A whole commit log that is gone may lie elsewhere: that is a note.
    found = list(verify(folder, deep=True))
    if any(one.is_defect or one.law == "RMQDISK-23" for one in found):
        return
    verdict.unseen = set()
    for place in places(source):
        if not (folder / place).is_dir():
            verdict.unseen.add("partition")
            continue
        if is_store(source) and not is_store(folder):
            if (source / "commitlog").is_dir():
                yield "no part of a store is left, unseen"
            continue
        try:
            unseen = differences(source / place, folder / place)
            verdict.unseen |= unseen
            # A batch that a writer may have written makes index entries those of a log that was
            # truncated since: a note too.
            if "sound" not in unseen or not any(one.law == "DISK-9" for one in found):
                yield from wrong_answers(
                    source / place,
                    folder / place,
                    scratch / "log-alone",
                    is_index_missed=any(one.law == "RMQDISK-20" for one in found),
                )
        except SegproofError as error:
            if error.law != "LOAD-2":  # records wait in a .swap file: a lookup says so
                raise
    if strange := verdict.unseen - UNPROTECTED.keys():
        yield f"the log differs in {sorted(strange)}, unseen"


def _lost_in_silence(draw: random.Random, source: Path, asked: Asked, out: Path) -> Iterator[str]:
    """Tell of what `salvage` did not keep, though it says that it kept everything."""
    is_whole, wrong = saved(draw, asked, out)
    yield from wrong
    for place in places(source) if is_whole else ():
        kept = out if asked.is_store else out / (source.name if place == "." else place)
        if (asked.folder / place).is_dir() and not holds_nothing(asked.folder / place):
            lost = differences(source / place, kept) - _known(
                source / place, asked.folder / place, kept
            )
            if _logs(source / place) != _logs(asked.folder / place):
                lost.discard("segment")  # a log whose name is lost gets that of its first batch
            if lost:
                yield f"salvage says that it kept everything; what it kept differs in {lost}"


def _logs(partition: Path) -> set[str]:
    """Return the names of the logs of a partition."""
    return {path.name for path in partition.glob("*.log")}


def _known(source: Path, folder: Path, kept: Path) -> set[str]:
    """Return in what a mutant differs; where no reader can tell, in all that may stay unseen.

    Where bytes were put in or are gone, what lies behind is not read at its place. Then a field
    without a checksum may differ too, if `kept` has each record as it lies in one of the two.
    """
    try:
        known = differences(source, folder)
    except (SegproofError, OSError):
        return set(UNPROTECTED)
    is_excused = "damaged" in known and is_store(source) and has_records_of(kept, (source, folder))
    return known | set(WITHOUT_CHECKSUM) if is_excused else known


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
    seed: int,
    numbers: range,
    healthy: Sequence[Path],
    jobs: int,
    check: Check = check,
    until: float = math.inf,
) -> Iterator[Verdict]:
    """Yield the verdicts, as they come, from `jobs` processes; begin none after `until`.

    A process that dies is a failure of its mutant alone; another one goes on.
    """
    context = multiprocessing.get_context("spawn")
    idle: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()

    def one(number: int) -> Verdict | None:
        if time.monotonic() > until:
            return None
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
        yield from filter(None, threads.imap_unordered(one, numbers))
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
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none after them")
    asked = parser.parse_args(arguments)
    from segproof_harness.cli.common import progress

    print(f"seed {asked.seed}", flush=True)
    numbers = range(asked.first, asked.first + asked.count)
    verdicts = []
    with (
        tempfile.TemporaryDirectory(prefix="segproof-healthy-") as made,
        progress("mutants", unit="mutants") as show,
    ):
        healthy = sources(Path(made), asked.paths)
        until = time.monotonic() + asked.seconds
        for verdict in run(asked.seed, numbers, healthy, asked.jobs, until=until):
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
