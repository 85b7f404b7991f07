# SPDX-License-Identifier: Apache-2.0
"""Give units of lookups to Spark: a task does some of them, and sends one row for each.

Every worker is sent the list of all units, some 300 bytes each, and takes those of its task.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from segproof_spark.findings import (
    FINDING_COLUMNS,
    FINDING_STRUCT,
    arrow_fields,
    ddl,
    finding_of_row,
    finding_row,
)
from segproof_spark.lookups.summary import FINDINGS_SHOWN, Summary, Total
from segproof_spark.lookups.unit_runs import run_unit
from segproof_spark.lookups.units import STRUCTURES, Unit, UnitResult, packed
from segproof_spark.results import check_all_read, place_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RESULT_COLUMNS", "RESULT_DDL", "lookups_frame", "lookups_on_spark"]

RESULT_COLUMNS = {
    "structure": "string",
    "source": "string",
    "index": "bigint",
    "entries": "bigint",
    "lookups": "bigint",
    "by_model": "bigint",
    "by_single": "bigint",
    "differing": "bigint",
    "worker_peak_bytes": "bigint",
    "notes": "string",
}
RESULT_DDL = f"{ddl(RESULT_COLUMNS)}, seconds double, findings array<{FINDING_STRUCT}>"


def lookups_frame(session: "SparkSession", units: Sequence[Unit], cores: int) -> "DataFrame":
    """Return one row of RESULT_DDL for each unit."""
    tasks = packed(units, cores)

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for unit in tasks[number]:
                    yield _row_of(run_unit(unit))

    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, RESULT_DDL)


def _row_of(result: UnitResult) -> "pa.RecordBatch":
    import pyarrow as pa

    comparison = result.comparison
    found = pa.list_(pa.struct(arrow_fields(FINDING_COLUMNS)))
    schema = pa.schema(
        [
            *arrow_fields(RESULT_COLUMNS),
            pa.field("seconds", pa.float64()),
            pa.field("findings", found),
        ]
    )
    row = {
        "structure": comparison.structure,
        "source": result.unit.source,
        "index": result.unit.index,
        "entries": comparison.entries,
        "lookups": comparison.lookups,
        "by_model": comparison.by_model,
        "by_single": comparison.by_single,
        "differing": comparison.differing,
        "worker_peak_bytes": result.worker_peak_bytes,
        "notes": "; ".join(comparison.notes),
        "seconds": result.seconds,
        "findings": [finding_row(finding.to_json()) for finding in comparison.findings],
    }
    return pa.RecordBatch.from_pylist([row], schema=schema)


def lookups_on_spark(
    session: "SparkSession", units: Sequence[Unit], *, out: str | None = None
) -> Summary:
    """Do the units on Spark and add up what they found.

    With `out`, a path or URL that every worker sees and where nothing is yet, the rows stay there
    as Parquet. At most FINDINGS_SHOWN findings and notes are brought to the driver.
    Raises: ResultsLostError.
    """
    from segproof_spark.session import cores_of

    rows = lookups_frame(session, units, cores_of(session))
    if out is not None:
        return _written(session, rows, units, out)
    kept = rows.persist()
    try:
        return _added(kept)
    finally:
        kept.unpersist()


def _written(
    session: "SparkSession", rows: "DataFrame", units: Sequence[Unit], out: str
) -> Summary:
    """Write the rows as Parquet, and add up what can be read there.

    Raises: ResultsLostError if that is not a row for each unit.
    """
    place = place_of(out)
    rows.write.parquet(place)
    # Where no file can be read, no schema can be found either: so it is given.
    summary = _added(session.read.schema(RESULT_DDL).parquet(place))
    found = {total.structure: total.units for total in summary.totals}
    wanted = Counter(unit.structure for unit in units)
    check_all_read(out, "units", found, wanted)
    return summary


def _added(rows: "DataFrame") -> Summary:
    grouped = rows.groupBy("structure").agg(
        dict.fromkeys(("lookups", "by_model", "by_single", "differing", "seconds"), "sum")
        | {"worker_peak_bytes": "max", "*": "count"}
    )
    totals = {row["structure"]: _total_of(row) for row in grouped.collect()}
    summary = Summary([totals[name] for name in STRUCTURES if name in totals])
    red = rows.filter("size(findings) > 0").select("findings").limit(FINDINGS_SHOWN)
    for row in red.collect():
        summary.findings += [finding_of_row(each.asDict()) for each in row["findings"]]
    del summary.findings[FINDINGS_SHOWN:]
    noted = rows.filter("notes != ''").select("source", "notes")
    summary.left_out = noted.count()
    summary.notes = [(row["source"], row["notes"]) for row in noted.limit(FINDINGS_SHOWN).collect()]
    return summary


def _total_of(row: Any) -> Total:
    return Total(
        row["structure"],
        row["count(1)"],
        row["sum(lookups)"],
        row["sum(by_model)"],
        row["sum(by_single)"],
        row["sum(differing)"],
        row["sum(seconds)"],
        row["max(worker_peak_bytes)"],
    )
