# SPDX-License-Identifier: Apache-2.0
"""Salvages of drawn damage, judged on Spark or in this process, and the results added up.

A task judges some draws of one system and sends a row for each. A draw follows from its seed, so
nothing but seeds goes to a worker.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from segproof.tables.row_batches import batches_of
from segproof_harness.salvage_draws.draws import judge_draw
from segproof_harness.salvage_draws.verdict import FAULTS, Salvager, Verdict
from segproof_spark.result_rows import arrow_fields, ddl, kept_on_disk, peak_bytes, written
from segproof_spark.tasks import tasks_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


SYSTEMS = ("kafka", "rocketmq")
SEEDS_A_TASK = 100
"""Draws of a task: some ten seconds, long beside the start of a task."""
ROWS_A_BATCH = 50
ROWS_A_PART = 10_000
"""Rows of results that the driver holds at a time."""
SHOWN = 100
"""Draws with faults that are shown; the others are counted."""
SEEDS_SHOWN = 8
"""Number of seeds that are printed for each fault, the smallest first."""
RESULT_COLUMNS = {
    "system": "string",
    "seed": "bigint",
    "source": "string",
    "damages": "string",
    "error": "string",
    "seconds": "double",
    "worker_peak_bytes": "bigint",
}
RESULT_DDL = f"{ddl(RESULT_COLUMNS)}, counts map<string, bigint>, facts map<string, bigint>"
"""A row for each draw that was judged."""


@dataclass(frozen=True, slots=True)
class Task:
    """Draws of one system, judged one after another."""

    system: str
    seeds: Sequence[int]
    salvager: str = ""
    """`package.module:function` in place of `segproof salvage`; empty: that."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row of results for each draw."""
        salvager = named_salvager(self.salvager) if self.salvager else None
        for seed in self.seeds:
            started = perf_counter()
            verdict = judge_draw(self.system, seed, salvager)
            yield row_of(verdict) | {
                "seconds": perf_counter() - started,
                "worker_peak_bytes": peak_bytes(),
            }


def named_salvager(name: str) -> Salvager:
    """Return the function of a name `package.module:function`. Raises: ValueError."""
    module, _, attribute = name.partition(":")
    try:
        found: Salvager = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no function {name!r}, as package.module:function: {error}") from error
    if not callable(found):
        raise ValueError(f"{name!r} cannot be called")
    return found


def tasks_of(systems: Sequence[str], seeds: range, salvager: str = "") -> list[Task]:
    """Return the tasks that judge the draws of all seeds of each system."""
    return [
        Task(system, seeds[start : start + SEEDS_A_TASK], salvager)
        for start in range(0, len(seeds), SEEDS_A_TASK)
        for system in systems
    ]


def row_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a row, without what was measured."""
    return {
        "system": verdict.system,
        "seed": verdict.seed,
        "source": verdict.source,
        "damages": "; ".join(verdict.damages),
        "error": verdict.error,
        "counts": list((+verdict.counts).items()),
        "facts": list(Counter(one.fact for one in verdict.wrong).items()),
    }


@dataclass(slots=True)
class Total:
    """The draws of one system together."""

    draws: int = 0
    faulty: int = 0
    """Draws with a fault."""
    counts: Counter[str] = field(default_factory=Counter)
    draws_with: Counter[str] = field(default_factory=Counter)
    """How many draws have each count above 0."""
    facts: Counter[str] = field(default_factory=Counter)
    """For what is made up or at a wrong offset, which fact tells it apart."""
    seeds: dict[str, list[int]] = field(default_factory=dict)
    """The smallest seeds of each fault."""
    seconds: float = 0.0
    """Of all processes together."""
    worker_peak_bytes: int = 0
    """The largest process."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the row of a draw."""
        counts, facts = dict(row["counts"]), dict(row["facts"])
        self.draws += 1
        self.counts.update(counts)
        self.draws_with.update(counts.keys())
        self.facts.update(facts)
        faults = [name for name in FAULTS if counts.get(name)]
        self.faulty += bool(faults)
        for name in faults:
            self.seeds[name] = sorted([*self.seeds.get(name, ()), row["seed"]])[:SEEDS_SHOWN]
        self.seconds += row["seconds"]
        self.worker_peak_bytes = max(self.worker_peak_bytes, row["worker_peak_bytes"])


@dataclass(slots=True)
class Summary:
    """The results of a run."""

    totals: dict[str, Total] = field(default_factory=dict)
    """By system."""
    faulty: list[dict[str, Any]] = field(default_factory=list)
    """The first draws with faults, at most SHOWN."""

    @property
    def faulty_draws(self) -> int:
        """How many draws have a fault."""
        return sum(total.faulty for total in self.totals.values())


def summary_of(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Add up rows of results; one at a time is held."""
    summary = Summary()
    for row in rows:
        summary.totals.setdefault(row["system"], Total()).add(row)
        counts = dict(row["counts"])
        faults = {name: counts[name] for name in FAULTS if counts.get(name)}
        if faults and len(summary.faulty) < SHOWN:
            shown = {name: row[name] for name in ("system", "seed", "source", "damages")}
            error = {"error": row["error"]} if row["error"] else {}
            summary.faulty.append(shown | {"faults": faults} | error)
    return summary


# --- on Spark


def check_on_spark(
    session: "SparkSession", tasks: Sequence[Task], *, out: str | None = None
) -> Summary:
    """Judge the draws of all tasks on Spark and add up the results.

    With `out`, a path or URL that every worker sees and where nothing is yet, the rows stay there
    as Parquet. The driver holds ROWS_A_PART of them at a time.
    Raises: ResultsLostError.
    """
    rows = tasks_frame(session, tasks, _batches_of, RESULT_DDL)
    count = sum(len(task.seeds) for task in tasks)
    if out is not None:
        return _added(written(session, rows, out, "draws", count), count)
    with kept_on_disk(rows) as kept:
        kept.count()  # does all of them in parallel; the rows are brought one part at a time
        return _added(kept, count)


def _batches_of(task: Task) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    names = pa.map_(pa.string(), pa.int64())
    schema = pa.schema(
        [*arrow_fields(RESULT_COLUMNS), pa.field("counts", names), pa.field("facts", names)]
    )
    return batches_of(task.rows(), schema, ROWS_A_BATCH)


def _added(rows: "DataFrame", count: int) -> Summary:
    parts = rows.coalesce(1 + count // ROWS_A_PART)
    return summary_of(row.asDict(recursive=True) for row in parts.toLocalIterator())
