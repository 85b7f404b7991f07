# SPDX-License-Identifier: Apache-2.0
"""Do units of lookups on Spark or in this process, and add up the results.

On Spark a task does some of the units and sends one row for each. Every worker is sent the list of
all units, some 300 bytes each, and takes those of its task.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from segproof.tables.row_batches import batches_of
from segproof_spark.lookups.comparison import Unit
from segproof_spark.lookups.structures import STRUCTURES, run_unit, tasks_of
from segproof_spark.result_rows import (
    FINDING_COLUMNS,
    FINDING_STRUCT,
    add_up,
    arrow_fields,
    ddl,
    finding_row,
    kept_on_disk,
    written,
)
from segproof_spark.tasks import tasks_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


FINDINGS_SHOWN = 100
ROWS_A_PART = 10_000
ADDED = ("lookups", "by_model", "by_single", "differing", "seconds")
RESULT_COLUMNS = {
    "structure": "string",
    "source": "string",
    "index": "bigint",
    "entries": "bigint",
    **dict.fromkeys(ADDED[:-1], "bigint"),
    "worker_peak_bytes": "bigint",
    "notes": "string",
    "seconds": "double",
}
RESULT_DDL = f"{ddl(RESULT_COLUMNS)}, findings array<{FINDING_STRUCT}>"


@dataclass(slots=True)
class Total:
    """The units of one structure together; for the counts see `Comparison`."""

    structure: str
    units: int = 0
    lookups: int = 0
    by_model: int = 0
    by_single: int = 0
    differing: int = 0
    seconds: float = 0.0
    """Of all processes together."""
    worker_peak_bytes: int = 0
    """The largest process."""


@dataclass(slots=True)
class Summary:
    """The results of a run."""

    totals: list[Total] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    """The first of them, at most FINDINGS_SHOWN."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Source, and what of it was left out and why: the first, as many as findings."""
    left_out: int = 0
    """How many sources have notes."""

    @property
    def lookups(self) -> int:
        """Answers compared."""
        return sum(total.lookups for total in self.totals)

    @property
    def differing(self) -> int:
        """Answers that differ, and failed lookups."""
        return sum(total.differing for total in self.totals)


def summary_of(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Add up rows of results; one at a time is held."""
    totals = {name: Total(name) for name in STRUCTURES}
    summary = Summary()
    for row in rows:
        total = totals[row["structure"]]
        total.units += 1
        add_up(total, row, (*ADDED, "worker_peak_bytes"))
        room = FINDINGS_SHOWN - len(summary.findings)
        summary.findings += [finding_row(finding) for finding in row["findings"][:room]]
        if row["notes"]:
            summary.left_out += 1
            if len(summary.notes) < FINDINGS_SHOWN:
                summary.notes.append((row["source"], row["notes"]))
    summary.totals = [total for total in totals.values() if total.units]
    return summary


# --- on Spark


def lookups_frame(session: "SparkSession", units: Sequence[Unit], cores: int) -> "DataFrame":
    """Return one row of RESULT_DDL for each unit."""
    return tasks_frame(session, tasks_of(units, cores), _rows_of, RESULT_DDL)


def _rows_of(units: Iterable[Unit]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    found = pa.list_(pa.struct(arrow_fields(FINDING_COLUMNS)))
    schema = pa.schema([*arrow_fields(RESULT_COLUMNS), pa.field("findings", found)])
    return batches_of((run_unit(unit).row() for unit in units), schema, 1)


def lookups_on_spark(
    session: "SparkSession", units: Sequence[Unit], *, out: str | None = None
) -> Summary:
    """Do the units on Spark and add up the results.

    With `out`, a path or URL that every worker sees and where nothing is yet, the rows stay there
    as Parquet. The driver holds ROWS_A_PART of them at a time.
    Raises: ResultsLostError.
    """
    from segproof_spark.session import cores_of

    rows = lookups_frame(session, units, cores_of(session))
    if out is not None:
        return _added(written(session, rows, out, "units", len(units)), units)
    with kept_on_disk(rows) as kept:
        kept.count()  # does all of them in parallel; the rows are brought one part at a time
        return _added(kept, units)


def _added(rows: "DataFrame", units: Sequence[Unit]) -> Summary:
    parts = rows.coalesce(1 + len(units) // ROWS_A_PART)
    return summary_of(row.asDict(recursive=True) for row in parts.toLocalIterator())
