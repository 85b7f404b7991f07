# SPDX-License-Identifier: Apache-2.0
"""Drawn mutants of healthy directories, and what no verb may do with one.

Each mutant is a copy of a partition or store with one to three drawn damages. Every verb is run on
it, and none may end with an internal error, by a signal, late, with too much memory, or after a
change of its input. What lookups answered on the healthy directory they answer on the mutant, or
`verify --deep` finds a defect; `UNPROTECTED` says what no checksum and no neighbour holds.

    python -m segproof_harness.mutants --seed 1 --count 1000 [--jobs 2] [--first 0] [PATH ...]

Not covered: memory where the system does not tell the peak of a process (it must be Linux).
Used by: people; the tests run a small part.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from segproof.errors import SegproofError
from segproof.lookup import PartitionReader
from segproof.rocketmq.message import string_to_message_properties
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.demo import scenarios, stores
from segproof_harness.mutant_damages import damage, old_times

__all__ = ["UNPROTECTED", "Failure", "check", "main", "sources"]

MEMORY_MIB = 192
"""What the verbs may take beside what the process has before, some 60 MiB: 256 in all."""
CPU_SECONDS = 60
"""How much of a processor all verbs together may take for one mutant."""
WALL_SECONDS = 600
"""And how long, busy or waiting, on a machine that may do other things too."""
ADDRESS_SPACE_BYTES = 6 << 30
ASKED = 24
"""So many lookups of each kind are held against the healthy directory."""
EXPECTED_CODES = (0, 1, 2)

UNPROTECTED = {
    "front": "segments that are gone from the front: retention removes them so",
    "end": "batches or messages that are gone from the end: they may never have been written",
    "gap": "offsets that no batch has: compaction leaves such gaps, and a base offset is in no"
    " checksum",
    "message": "fields of a RocketMQ record beside its body: no checksum holds them",
}
"""Where an answer may change, and no finding tells; with the reason."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that a verb must not do."""

    number: int
    what: str
    damages: tuple[str, ...] = ()


def sources(paths: Sequence[str] = ()) -> list[Path]:
    """Return the healthy directories: those that ship with the package, and the given ones."""
    from segproof_harness.reading.conformance import partition_of

    return [*map(partition_of, scenarios()), *stores(), *map(Path, paths)]


def check(seed: int, number: int, healthy: Sequence[Path]) -> list[Failure]:
    """Make one mutant, run the verbs on it, and return what went wrong."""
    draw = random.Random(f"{seed}/{number}")
    source, other = draw.choice(healthy), draw.choice(healthy)
    with tempfile.TemporaryDirectory(prefix="segproof-mutant-") as name:
        folder = Path(name) / "data" / source.name
        shutil.copytree(source, folder, copy_function=shutil.copyfile)
        damages = tuple(damage(draw, folder, other))
        old_times(folder)
        try:
            return [Failure(number, what, damages) for what in _wrong(draw, source, folder)]
        except Exception:  # of a lookup or of verify, called as a library
            return [Failure(number, traceback.format_exc()[-900:], damages)]


def _wrong(draw: random.Random, source: Path, folder: Path) -> Iterator[str]:
    before = _digest(folder)
    _forget_peak()
    at_rest = _peak_mib()
    for arguments in _commands(draw, source, folder):
        code, said = _run(arguments)
        shown = " ".join([*arguments[:1], *arguments[2:]])
        if code not in EXPECTED_CODES:
            yield f"{shown}: exit {code}: {said[-300:]}"
        if "Traceback (most recent" in said:
            yield f"{shown}: a traceback: {said[-300:]}"
    if (taken := _peak_mib() - at_rest) > MEMORY_MIB:
        yield f"{taken} MiB of memory"
    yield from _silent(source, folder)
    if _digest(folder) != before:
        yield "the input was changed"


def _commands(draw: random.Random, source: Path, folder: Path) -> Iterator[list[str]]:
    path = str(folder)
    yield ["verify", path, "--jobs", "1"]
    yield ["dump", path, *draw.choice(([], ["--records"]))]
    question, _ = draw.choice(_answers(source) or ((("--key", "TopicTest#key"), None),))
    yield ["lookup", path, *question, *draw.choice(([], ["--explain"]))]
    jobs = [] if _is_store(source) else ["--jobs", "1"]
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


# --- answers


Question = tuple[str, ...]


def _silent(source: Path, folder: Path) -> Iterator[str]:
    """Tell of answers that are others now, if `verify` finds nothing wrong."""
    if any(one.is_defect for one in verify(folder, deep=True)):
        return
    healthy = dict(_answers(source))
    found = dict(_asked(folder, list(healthy)))
    for question, answer in healthy.items():
        now = found[question]
        if now != answer and _excuse(question, answer, now, source, folder) is None:
            yield f"lookup {' '.join(question)} answers {now}, not {answer}, and nothing is found"
            return


@cache
def _answers(source: Path) -> tuple[tuple[Question, Any], ...]:
    """Return questions, and what the healthy directory answers."""
    return tuple(_asked(source, _questions(source)))


def _questions(source: Path) -> list[Question]:
    draw = random.Random(source.name)
    if _is_store(source):
        offsets, keys = _messages(source)
        asked = [("--offset", str(each)) for each in _some(draw, offsets)]
        return asked + [("--key", key) for key in _some(draw, keys)]
    offsets, times = [], []
    with PartitionReader(source) as reader:
        for base_offset in reader.base_offsets:
            for batch in reader.segment(base_offset).log.batches():
                offsets += [batch.base_offset, batch.last_offset]
                times.append(batch.max_timestamp)
    return [
        *(("--offset", str(each)) for each in _some(draw, offsets)),
        *(("--timestamp", str(each)) for each in _some(draw, times) if each >= 0),
    ]


def _some(draw: random.Random, all_of_them: list[Any]) -> list[Any]:
    found = sorted(set(all_of_them))
    return draw.sample(found, min(ASKED, len(found)))


def _is_store(path: Path) -> bool:
    return (path / "commitlog").is_dir() or (path / "index").is_dir()


def _messages(store: Path) -> tuple[list[int], list[str]]:
    """Return where the messages of a store lie, and their keys as `lookup` takes them."""
    log = StoreReader(store).log
    offsets: list[int] = []
    found: list[str] = []
    for offset, result in log.scan() if log is not None else ():
        if result.message is not None:
            offsets.append(offset)
            properties = dict(string_to_message_properties(result.message.properties))
            keys = [*properties.get("KEYS", "").split(), properties.get("UNIQ_KEY", "")]
            found += [f"{result.message.topic}#{key}" for key in keys if key]
    return offsets, found


def _asked(path: Path, questions: Sequence[Question]) -> Iterator[tuple[Question, Any]]:
    """Yield each question with its answer, or with the error in words."""
    try:
        reader: Any = StoreReader(path) if _is_store(path) else PartitionReader(path)
    except (SegproofError, OSError) as error:
        yield from ((question, f"error: {error}") for question in questions)
        return
    for question in questions:
        try:
            yield question, _answer(reader, *question)
        except (SegproofError, OSError) as error:
            yield question, f"error: {error}"


def _answer(reader: Any, kind: str, target: str) -> Any:
    if kind == "--key":
        return list(reader.lookup_key(target).phy_offsets)
    if isinstance(reader, StoreReader):
        message = reader.look_message(int(target))
        return message and [message.topic, message.queue_offset, message.body.hex()]
    if kind == "--offset":
        found = reader.lookup_offset(int(target))
        return [found.segment_base_offset, found.batch_base_offset, found.batch_position]
    found = reader.lookup_timestamp(int(target))
    return [found.timestamp, found.offset]


def _excuse(question: Question, was: Any, now: Any, source: Path, folder: Path) -> str | None:
    """Return which row of `UNPROTECTED` explains another answer; None: none does."""
    if isinstance(now, str):  # an error, loud as it is, wants a finding too
        return None
    if _is_store(source):
        return "message" if _differ_in("commitlog", source, folder) else None
    try:
        with PartitionReader(source) as old, PartitionReader(folder) as new:
            first, last = new.base_offsets[0], _end(new)
            if first > old.base_offsets[0] and (int(was[1] or 0) < first):
                return "front"
            if last < _end(old) and (now[1] is None or was[1] is None or was[1] > last):
                return "end"
            if question[0] == "--offset" and _is_covered_by_none(new, int(question[1])):
                return "gap"
    except (SegproofError, OSError):
        return None
    return None


def _end(reader: PartitionReader) -> int:
    last = -1
    for base_offset in reader.base_offsets[-2:]:
        for batch in reader.segment(base_offset).log.batches():
            last = batch.last_offset
    return last


def _is_covered_by_none(reader: PartitionReader, offset: int) -> bool:
    base_offset = reader.floor_segment(offset)
    if base_offset is None:
        return True
    batches = reader.segment(base_offset).log.batches()
    return not any(each.base_offset <= offset <= each.last_offset for each in batches)


def _differ_in(part: str, source: Path, folder: Path) -> bool:
    return _digest(source / part) != _digest(folder / part)


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


def _work(pipe: Connection, seed: int, numbers: range, healthy: list[Path]) -> None:
    """Check mutants in a process of its own, which a late one ends by a signal."""
    for late in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(late, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    for number in numbers:
        pipe.send((number, None))
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.alarm(WALL_SECONDS)
        failures = check(seed, number, healthy)
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send((number, failures))
    pipe.close()


def run(
    seed: int, numbers: range, healthy: list[Path], jobs: int, method: str = "spawn"
) -> Iterator[tuple[int, list[Failure]]]:
    """Yield each number with its failures, as they come, from `jobs` processes."""
    context: Any = multiprocessing.get_context(method)
    workers: dict[Connection, tuple[Any, range, int]] = {}

    def start(part: range) -> None:
        if part:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, seed, part, healthy))
            process.start()
            theirs.close()
            workers[ours] = (process, part, part[0])

    for job in range(jobs):
        start(numbers[job::jobs])
    while workers:
        for pipe in wait(list(workers)):
            assert isinstance(pipe, Connection)
            process, part, at = workers[pipe]
            try:
                number, failures = pipe.recv()
            except EOFError:
                del workers[pipe]
                process.join()
                if process.exitcode:
                    words = f"the process ended with {process.exitcode} (a signal if negative)"
                    yield at, [Failure(at, words)]
                    start(part[part.index(at) + 1 :])
                continue
            workers[pipe] = (process, part, number)
            if failures is not None:
                yield number, failures


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
    wrong = 0
    with progress("mutants", unit="mutants") as show:
        found = run(asked.seed, numbers, sources(asked.paths), asked.jobs)
        for done, (number, failures) in enumerate(found, 1):
            show(done, asked.count)
            for one in failures:
                wrong += 1
                again = f"--seed {asked.seed} --first {number} --count 1 --jobs 1"
                command = " ".join([f"python -m segproof_harness.mutants {again}", *asked.paths])
                row = {"what": one.what, "damages": one.damages, "reproduce": command}
                print(json.dumps(row), flush=True)
    print(f"{asked.count} mutants, {wrong} failures", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
