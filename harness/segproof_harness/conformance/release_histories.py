# SPDX-License-Identifier: Apache-2.0
"""Hold the model under each release's profile against that very release, and keep the figures.

Layout of the record: JSON lines: `release, structure, first_seed, histories, length, operations,
answers_compared, bytes_compared, divergences, reproduce, seconds, date, is_fresh, left_out`. Of
seeds that were also used to mend by, one line for each release and structure, the last run of it.
Of fresh ones each run is kept, with what it found, though that is mended since.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from segproof.processes import Meter, Workers
from segproof_harness.histories.compare import Counters
from segproof_harness.releases.child_messages import reason_without
from segproof_harness.releases.pinned import Release, release_named
from segproof_harness.releases.process import process_for
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

TASK_HISTORIES = 500
"""Histories that one process runs before its JVM ends: what old releases leak is freed then."""
SLOW = {"consume-queue": 2, "message-store": 12}
"""So many times fewer histories, as much shorter, tests run of it: opening loads a log, a store."""
FINDINGS_MAX = 3
"""After so many divergences of one task, the rest of it is not run."""
LENGTH = 100
OPTIONAL = frozenset({"is_fresh", "left_out"})
"""Fields that a row of the record lacks where they say nothing."""
FRESH_STEP = 100_000
"""Fresh seeds begin at a multiple of this."""


@dataclass(frozen=True, slots=True)
class Conformance:
    """One release held against its profile, on one structure; before it is run, the task."""

    release: str
    structure: str
    first_seed: int
    histories: int
    length: int
    operations: int = 0
    answers_compared: int = 0
    bytes_compared: int = 0
    divergences: int = 0
    reproduce: tuple[str, ...] = ()
    """Commands that show the divergences."""
    seconds: float = 0.0
    """Of all processes together."""
    date: str = ""
    is_fresh: bool = False
    """Whether nothing had been mended by these seeds when they were run."""
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By operation: how often it was drawn and not asked, and how often it was drawn."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What a later run has in common whose figures take the place of these."""
        return self.release, self.structure, self.first_seed if self.is_fresh else -1

    def and_then(self, other: "Conformance") -> "Conformance":
        """Return the figures of both runs; `other` has seeds of its own."""
        return replace(
            self,
            first_seed=min(self.first_seed, other.first_seed),
            histories=self.histories + other.histories,
            operations=self.operations + other.operations,
            answers_compared=self.answers_compared + other.answers_compared,
            bytes_compared=self.bytes_compared + other.bytes_compared,
            divergences=self.divergences + other.divergences,
            reproduce=(*self.reproduce, *other.reproduce),
            seconds=self.seconds + other.seconds,
            date=max(self.date, other.date),
            left_out=added_left_out([self, other]),
        )


def plan(
    releases: Sequence[Release],
    structures: Sequence[str] = STRUCTURE_IDS,
    *,
    count: int,
    length: int = LENGTH,
    seed: int = 0,
    is_fresh: bool = False,
) -> list[Conformance]:
    """Return the tasks: for each release and each structure that it serves, pieces of the seeds."""
    return [
        Conformance(
            release.name,
            structure,
            first,
            min(TASK_HISTORIES, seed + count - first),
            length,
            is_fresh=is_fresh,
        )
        for release in releases
        for structure in structures
        if structure_named(structure).system == release.system
        and reason_without(structure, release) is None
        for first in range(seed, seed + count, TASK_HISTORIES)
    ]


def run_task(task: Conformance, *, ends: bool = True) -> Conformance:
    """Run the histories of a task; its JVM ends with it, unless it is kept for the next one.

    Raises: OracleError where the release can't be started.
    """
    from segproof_harness.histories.replay import replay_seeds

    started = time.perf_counter()
    release = release_named(task.release)
    seeds = range(task.first_seed, task.first_seed + task.histories)
    try:
        result = replay_seeds(
            task.structure,
            release.name,
            seeds,
            task.length,
            ("model", release.name),
            findings_max=FINDINGS_MAX,
        )
    finally:
        if ends:
            process_for(release.name).end()
    counted = result.counters
    return replace(
        task,
        histories=counted.histories,
        operations=counted.operations,
        answers_compared=counted.answers_compared,
        bytes_compared=counted.bytes_compared,
        divergences=len(result.findings),
        reproduce=tuple(finding.reproduce for finding in result.findings),
        seconds=time.perf_counter() - started,
        date=datetime.now(UTC).date().isoformat(),
        left_out=_left_out(counted),
    )


def _left_out(counted: Counters) -> dict[str, tuple[int, int]]:
    """Return how often each operation was left out, and drawn."""
    asked = {name: one.operations for name, one in counted.by_operation.items()}
    left = counted.left_out
    return {name: (left[name], left[name] + asked.get(name, 0)) for name in {*asked, *left}}


def conform(tasks: Sequence[Conformance], jobs: int) -> Iterator[Conformance]:
    """Run the tasks in `jobs` processes; yield each that is done, in any order.

    Raises: OracleError as `run_task`.
    """
    if jobs == 1:
        yield from map(run_task, tasks)
        return
    with Workers(jobs, Meter(None, 0)) as workers:
        futures = [workers.submit(run_task, task) for task in tasks]
        for future in as_completed(futures):
            yield future.result()


def added_left_out(runs: Iterable[Conformance]) -> dict[str, tuple[int, int]]:
    """Return how often each operation was left out, and drawn, in all of these runs."""
    total: dict[str, tuple[int, int]] = {}
    for run in runs:
        for name, (count, drawn) in run.left_out.items():
            before = total.get(name, (0, 0))
            total[name] = before[0] + count, before[1] + drawn
    return total


def merged(runs: Iterable[Conformance]) -> list[Conformance]:
    """Return the runs of each release and structure as one."""
    found: dict[tuple[str, str], Conformance] = {}
    for run in runs:
        key = run.release, run.structure
        found[key] = found[key].and_then(run) if key in found else run
    return list(found.values())


def unused_seed(path: Path) -> int:
    """Return the first seed of a hundred thousand that no run of a record has used.

    Raises: as `read_record`.
    """
    ends = [row.first_seed + row.histories for row in read_record(path)]
    return -(-max(ends, default=0) // FRESH_STEP) * FRESH_STEP


def read_record(path: Path) -> list[Conformance]:
    """Return the rows of a record; none for a file that is not there.

    Raises: ValueError for a file that is no record, OSError.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        rows = [Conformance(**json.loads(line)) for line in lines]
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no record of conformance runs: {error}") from None
    return [
        replace(
            row,
            reproduce=tuple(row.reproduce),
            left_out={name: (one[0], one[1]) for name, one in row.left_out.items()},
        )
        for row in rows
    ]


def merged_into(path: Path, runs: Iterable[Conformance]) -> None:
    """Write the runs into a record; they take the place of older ones of the same kind."""
    rows = {row.key: row for row in (*read_record(path), *merged(runs))}
    order = sorted(rows, key=lambda key: (list(STRUCTURE_IDS).index(key[1]), key[0], key[2]))
    lines = [json.dumps(_to_json(rows[key])) for key in order]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _to_json(row: Conformance) -> dict[str, Any]:
    """Return a row of the record; of its operations only those are told that were left out."""
    left_out = {name: row.left_out[name] for name in sorted(row.left_out) if row.left_out[name][0]}
    told = asdict(replace(row, seconds=round(row.seconds, 1), left_out=left_out))
    return {name: value for name, value in told.items() if value or name not in OPTIONAL}
