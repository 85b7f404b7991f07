# SPDX-License-Identifier: Apache-2.0
"""Do units of lookups on Spark or in this process, and add up what was found.

On Spark a task does some of the units and sends one row for each. Every worker is sent the list of
all units, some 300 bytes each, and takes those of its task.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from segproof_spark.lookups.comparison import Unit
from segproof_spark.lookups.structures import STRUCTURES, packed, run_unit
from segproof_spark.result_rows import (
    FINDING_COLUMNS,
    FINDING_STRUCT,
    arrow_fields,
    check_all_read,
    ddl,
    finding_of_row,
    place_of,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Summary", "Total", "lookups_frame", "lookups_on_spark", "summary_of", "written"]

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
    """What a run found."""

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
        """Answers that differ, and what could not be asked."""
        return sum(total.differing for total in self.totals)


def summary_of(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Add up rows of results; one at a time is held."""
    totals = {name: Total(name) for name in STRUCTURES}
    summary = Summary()
    for row in rows:
        total = totals[row["structure"]]
        total.units += 1
        for name in ADDED:
            setattr(total, name, getattr(total, name) + row[name])
        total.worker_peak_bytes = max(total.worker_peak_bytes, row["worker_peak_bytes"])
        room = FINDINGS_SHOWN - len(summary.findings)
        summary.findings += [finding_of_row(finding) for finding in row["findings"][:room]]
        if row["notes"]:
            summary.left_out += 1
            if len(summary.notes) < FINDINGS_SHOWN:
                summary.notes.append((row["source"], row["notes"]))
    summary.totals = [total for total in totals.values() if total.units]
    return summary


# --- on Spark


def lookups_frame(session: "SparkSession", units: Sequence[Unit], cores: int) -> "DataFrame":
    """Return one row of RESULT_DDL for each unit."""
    tasks = packed(units, cores)

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        found = pa.list_(pa.struct(arrow_fields(FINDING_COLUMNS)))
        schema = pa.schema([*arrow_fields(RESULT_COLUMNS), pa.field("findings", found)])
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for unit in tasks[number]:
                    yield pa.RecordBatch.from_pylist([run_unit(unit).row()], schema=schema)

    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, RESULT_DDL)


def lookups_on_spark(
    session: "SparkSession", units: Sequence[Unit], *, out: str | None = None
) -> Summary:
    """Do the units on Spark and add up what they found.

    With `out`, a path or URL that every worker sees and where nothing is yet, the rows stay there
    as Parquet. The driver holds ROWS_A_PART of them at a time.
    Raises: ResultsLostError.
    """
    from segproof_spark.session import cores_of

    rows = lookups_frame(session, units, cores_of(session))
    if out is not None:
        return written(session, rows, units, out)
    kept = rows.persist()
    try:
        kept.count()  # does all of them in parallel; the rows are brought one part at a time
        return _added(kept, units)
    finally:
        kept.unpersist()


def written(session: "SparkSession", rows: "DataFrame", units: Sequence[Unit], out: str) -> Summary:
    """Write the rows as Parquet, and add up what can be read there.

    Raises: ResultsLostError if that is not a row for each unit.
    """
    place = place_of(out)
    rows.write.parquet(place)
    # Where no file can be read, no schema can be found either: so it is given.
    summary = _added(session.read.schema(RESULT_DDL).parquet(place), units)
    found = {total.structure: total.units for total in summary.totals}
    check_all_read(out, "units", found, Counter(unit.structure for unit in units))
    return summary


def _added(rows: "DataFrame", units: Sequence[Unit]) -> Summary:
    parts = rows.coalesce(1 + len(units) // ROWS_A_PART)
    return summary_of(row.asDict(recursive=True) for row in parts.toLocalIterator())
