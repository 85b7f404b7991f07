# SPDX-License-Identifier: Apache-2.0
"""Hold the model under each release's profile against that very release, and keep the figures.

Layout of the record: JSON lines, one for each release and structure, the last run of it:
`release, structure, first_seed, histories, length, operations, answers_compared, bytes_compared,
divergences, reproduce, seconds, date`.

Used by: the verb `oracle`, docs/results/oracle.md, tests/oracle.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from segproof.processes import process_context, quiet_fork
from segproof_harness.oracle.messages import reason_without
from segproof_harness.oracle.process import process_for
from segproof_harness.oracle.releases import Release, release_named
from segproof_harness.structures import STRUCTURE_IDS, structure_named

__all__ = [
    "LENGTH",
    "SLOW",
    "Conformance",
    "conform",
    "merged_into",
    "plan",
    "read_record",
    "run_task",
]

TASK_HISTORIES = 500
"""Histories that one process runs before its JVM ends: what old releases leak is freed then."""
SLOW = {"consume-queue": 2, "message-store": 12}
"""So many times fewer histories, as much shorter, tests run of it: opening loads a log, a store."""
FINDINGS_MAX = 3
"""After so many divergences of one task, the rest of it is not run."""
LENGTH = 100


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
        )


def plan(
    releases: Sequence[Release],
    structures: Sequence[str] = STRUCTURE_IDS,
    *,
    count: int,
    length: int = LENGTH,
    seed: int = 0,
) -> list[Conformance]:
    """Return the tasks: for each release and each structure that it serves, pieces of the seeds."""
    return [
        Conformance(
            release.name, structure, first, min(TASK_HISTORIES, seed + count - first), length
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
    from segproof_harness.replay import replay_seeds

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
    )


def conform(tasks: Sequence[Conformance], jobs: int) -> Iterator[Conformance]:
    """Run the tasks in `jobs` processes; yield each that is done, in any order.

    Raises: OracleError as `run_task`.
    """
    if jobs == 1:
        yield from map(run_task, tasks)
        return
    with quiet_fork(), ProcessPoolExecutor(jobs, mp_context=process_context()) as pool:
        for future in as_completed([pool.submit(run_task, task) for task in tasks]):
            yield future.result()


def merged(runs: Iterable[Conformance]) -> dict[tuple[str, str], Conformance]:
    """Return the runs of each release and structure as one."""
    found: dict[tuple[str, str], Conformance] = {}
    for run in runs:
        key = run.release, run.structure
        found[key] = found[key].and_then(run) if key in found else run
    return found


def read_record(path: Path) -> dict[tuple[str, str], Conformance]:
    """Return the record by release and structure; none for a file that is not there.

    Raises: ValueError for a file that is no record, OSError.
    """
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        rows = [Conformance(**json.loads(line)) for line in lines]
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no record of conformance runs: {error}") from None
    return {
        (row.release, row.structure): replace(row, reproduce=tuple(row.reproduce)) for row in rows
    }


def merged_into(path: Path, runs: Iterable[Conformance]) -> None:
    """Write the runs into a record; they take the place of older ones of the same kind."""
    rows = {**read_record(path), **merged(runs)}
    order = sorted(rows, key=lambda key: (list(STRUCTURE_IDS).index(key[1]), key[0]))
    lines = [
        json.dumps(asdict(replace(rows[key], seconds=round(rows[key].seconds, 1)))) for key in order
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
