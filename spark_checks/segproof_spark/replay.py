# SPDX-License-Identifier: Apache-2.0
"""Replay random histories on Spark: seeds in, findings and counters out.

A row of the input is one history: structure, profile, seed, length. `mapInArrow` runs the same
function as the verb `replay`; one row comes back for each history, so the totals are exact however
Spark cuts the work.

Used by: the verb `spark replay`, the demo.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from segproof_spark.findings import (
    FINDING_COLUMNS,
    FINDING_STRUCT,
    arrow_fields,
    ddl,
    finding_of_row,
    finding_row,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

RESULT_COLUMNS = {
    "structure": "string",
    "profile": "string",
    "seed": "bigint",
    "operations": "bigint",
    "answers_compared": "bigint",
    "bytes_compared": "bigint",
    "sometimes": "string",
}
RESULT_DDL = f"{ddl(RESULT_COLUMNS)}, findings array<{FINDING_STRUCT}>"
HISTORIES_A_TASK = 250


@dataclass(slots=True)
class SparkReplay:
    """What a replay on Spark found, and how much it compared."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    findings_cut: int = 0
    """Findings that there were too many to bring here."""
    histories: int = 0
    operations: int = 0
    answers_compared: int = 0
    bytes_compared: int = 0
    sometimes: dict[str, int] = field(default_factory=dict)


def replay_on_spark(
    session: "SparkSession",
    structures: Sequence[str],
    *,
    profile: str = "segproof",
    seeds: Iterable[int],
    length: int,
    subjects: Sequence[str] = ("model", "impl"),
    findings_max: int = 100,
) -> SparkReplay:
    """Run the history of each seed for each structure, and gather what was found."""
    histories = [(name, profile, seed, length) for seed in seeds for name in structures]
    tasks = max(1, len(histories) // HISTORIES_A_TASK)
    tasks = max(tasks, min(len(histories), session.sparkContext.defaultParallelism))
    frame = session.createDataFrame(
        session.sparkContext.parallelize(histories, tasks),
        "structure string, profile string, seed bigint, length bigint",
    )
    return gather(replay_frame(frame, subjects), findings_max)


def replay_frame(histories: "DataFrame", subjects: Sequence[str]) -> "DataFrame":
    """Return one row of results for each row (structure, profile, seed, length)."""
    names = tuple(subjects)

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return _run_batches(batches, names)

    return histories.mapInArrow(run, RESULT_DDL)


def gather(results: "DataFrame", findings_max: int) -> SparkReplay:
    """Add up the rows; at most `findings_max` findings are brought to the driver, and the others
    are counted.
    """
    total = SparkReplay()
    kept = results.persist()
    try:
        found = 0
        counted = kept.selectExpr("*", "size(findings) as found").drop("findings")
        for row in counted.toLocalIterator():
            found += row["found"]
            total.histories += 1
            total.operations += row["operations"]
            total.answers_compared += row["answers_compared"]
            total.bytes_compared += row["bytes_compared"]
            for state, count in json.loads(row["sometimes"]).items():
                total.sometimes[state] = total.sometimes.get(state, 0) + count
        for row in kept.filter("size(findings) > 0").limit(findings_max).collect():
            total.findings += [finding_of_row(each.asDict()) for each in row["findings"]]
        del total.findings[findings_max:]
        total.findings_cut = found - len(total.findings)
    finally:
        kept.unpersist()
    return total


def _run_batches(
    batches: "Iterator[pa.RecordBatch]", subjects: tuple[str, ...]
) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    found = pa.list_(pa.struct(arrow_fields(FINDING_COLUMNS)))
    schema = pa.schema([*arrow_fields(RESULT_COLUMNS), pa.field("findings", found)])
    for batch in batches:
        rows = [_run_history(row, subjects) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _run_history(row: dict[str, Any], subjects: tuple[str, ...]) -> dict[str, Any]:
    from segproof_harness.replay import replay_seed

    result = replay_seed(row["structure"], row["profile"], row["seed"], row["length"], subjects)
    counters = result.counters.to_json()
    return {
        "structure": row["structure"],
        "profile": row["profile"],
        "seed": row["seed"],
        "operations": counters["operations"],
        "answers_compared": counters["answers_compared"],
        "bytes_compared": counters["bytes_compared"],
        "sometimes": json.dumps(counters["sometimes"]),
        "findings": [finding_row(found.to_json()) for found in result.findings],
    }
