# SPDX-License-Identifier: Apache-2.0
"""The histories to run, cut into tasks that take about the same time.

A history of a partition's log takes some ten times as long as one of an index, so tasks of equally
many histories would leave cores idle. The time of a history is estimated from `COSTS_US`; the
longest tasks come first, and small ones fill the end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from segproof.tables.row_batches import batches_of
from segproof_harness.histories.workloads import check_weights, weights_for
from segproof_harness.structures.structure import structure_named
from segproof_spark.tasks import dearest_first, tasks_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


Seeds = Sequence[int] | Mapping[str, Sequence[int]]
"""The seeds of every structure, or those of each by its name; ranges travel as their bounds."""

HISTORY_DDL = "structure string, profile string, seed bigint, length int, weights map<string, int>"
"""A row for each history; the usual weights are null."""
TASK_SECONDS = 10.0
"""The approximate time of a task: long beside the 50 ms of a start, short beside a job."""
TASKS_PER_CORE_MIN = 2
ROWS_A_BATCH = 1000
COSTS_US: Mapping[str, int] = {
    "offset-index": 85,
    "time-index": 85,
    "transaction-index": 95,
    "record-batch": 85,
    "record-file": 105,
    "log-segment": 380,
    "partition-log": 1000,
    "index-file": 200,
    "index-service": 350,
    "store-checkpoint": 50,
    "commit-log": 150,
    "consume-queue": 200,
    "message-store": 300,
}
"""Microseconds an operation on the model and the implementation together, at length 100.

Measured once, of a dozen histories each, on one core of a cloud machine with CPython 3.11; only
their ratios matter. They grow with the length, and with each further subject.
"""
COST_US = max(COSTS_US.values())
"""Of a structure that is not in the table."""


@dataclass(frozen=True, slots=True)
class Task:
    """Histories of one structure that are run one after another."""

    structure: str
    profile: str
    seeds: Sequence[int]
    length: int
    weights: tuple[tuple[str, int], ...] | None = None

    @property
    def seconds(self) -> float:
        """The expected time."""
        cost = COSTS_US.get(self.structure, COST_US)
        return len(self.seeds) * self.length * cost / 1e6

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the histories as rows of `HISTORY_DDL`."""
        for seed in self.seeds:
            yield {
                "structure": self.structure,
                "profile": self.profile,
                "seed": seed,
                "length": self.length,
                "weights": self.weights,
            }


def histories_frame(
    session: "SparkSession",
    structures: Sequence[str],
    profile: str,
    seeds: Seeds,
    length: int,
    weights: Mapping[str, int] | None = None,
) -> "DataFrame":
    """Return the histories of each seed for each structure, cut into tasks.

    Of the weights each structure gets those of its own operations.
    Raises: ValueError for weights with which nothing can be drawn.
    """
    from segproof_spark.session import cores_of

    tasks = planned(structures, profile, seeds, length, weights, cores_of(session))
    return tasks_frame(session, tasks, histories_of, HISTORY_DDL)


def planned(
    structures: Sequence[str],
    profile: str,
    seeds: Seeds,
    length: int,
    weights: Mapping[str, int] | None,
    cores: int,
) -> tuple[Task, ...]:
    """Return the tasks, the dearest first: of about `TASK_SECONDS`, or shorter for all cores."""
    whole = [
        Task(
            name,
            profile,
            seeds_of(name, seeds),
            length,
            _weights_of(name, weights),
        )
        for name in structures
    ]
    total = sum(one.seconds for one in whole)
    seconds = min(TASK_SECONDS, total / (TASKS_PER_CORE_MIN * cores))
    parts = (part for one in whole for part in _cut(one, seconds))
    return tuple(dearest_first((part.seconds, part) for part in parts))


def seeds_of(structure: str, seeds: Seeds) -> Sequence[int]:
    """Return the seeds of a structure."""
    return seeds[structure] if isinstance(seeds, Mapping) else seeds


def shared(structures: Sequence[str], total: int, first_seed: int = 0) -> dict[str, range]:
    """Return so many seeds altogether, and of each structure so many that all take as long.

    Every structure has one at least.

    >>> seeds = shared(["time-index", "partition-log"], 1000)
    >>> sum(map(len, seeds.values())), len(seeds["time-index"]) > 5 * len(seeds["partition-log"])
    (1000, True)
    """
    speeds = {name: 1 / COSTS_US.get(name, COST_US) for name in structures}
    whole = sum(speeds.values())
    counts = {name: max(1, int(total * speed / whole)) for name, speed in speeds.items()}
    fastest = max(speeds, key=lambda name: speeds[name])
    counts[fastest] += max(0, total - sum(counts.values()))
    return {name: range(first_seed, first_seed + count) for name, count in counts.items()}


def _weights_of(
    structure: str, weights: Mapping[str, int] | None
) -> tuple[tuple[str, int], ...] | None:
    if weights is None:
        return None
    described = structure_named(structure)
    own = weights_for(described, weights)
    check_weights(described, own)
    return tuple(own.items())


def _cut(task: Task, seconds: float) -> Iterator[Task]:
    """Yield parts of a task of about equally many histories, that take at most so long."""
    count = len(task.seeds)
    parts = min(count, -int(-task.seconds // seconds)) if seconds else 0
    for part in range(parts):
        seeds = task.seeds[part * count // parts : (part + 1) * count // parts]
        yield Task(task.structure, task.profile, seeds, task.length, task.weights)


def histories_of(task: Task) -> "Iterator[pa.RecordBatch]":
    """Yield the histories of a task, in batches."""
    import pyarrow as pa

    schema = pa.schema(
        [
            pa.field("structure", pa.string()),
            pa.field("profile", pa.string()),
            pa.field("seed", pa.int64()),
            pa.field("length", pa.int32()),
            pa.field("weights", pa.map_(pa.string(), pa.int32())),
        ]
    )
    return batches_of(task.rows(), schema, ROWS_A_BATCH)
