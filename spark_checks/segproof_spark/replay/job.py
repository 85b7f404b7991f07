# SPDX-License-Identifier: Apache-2.0
"""The whole job: plan the histories, run each in a task of Spark, write or keep a row for each.

The subjects work on files in memory; bytes are compared at every tenth step and at the end, as
under the verb `replay`. A worker holds one history and the results of some that are done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from segproof.tables.row_batches import batches_of
from segproof_spark.replay.histories import Seeds, histories_frame, seeds_of
from segproof_spark.replay.summary import FINDINGS_MAX, Summary, summary
from segproof_spark.result_rows import (
    FINDING_COLUMNS,
    FINDING_STRUCT,
    arrow_fields,
    ddl,
    finding_row,
    kept_on_disk,
    peak_bytes,
    written,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from segproof_harness.histories.compare import Comparison


RESULT_COLUMNS = {
    "structure": "string",
    "profile": "string",
    "seed": "bigint",
    "length": "bigint",
    "operations": "bigint",
    "answers_compared": "bigint",
    "images_compared": "bigint",
    "bytes_compared": "bigint",
    "seconds": "double",
    "worker_peak_bytes": "bigint",
}
OPERATION_COLUMNS = {
    "operation": "string",
    "operations": "bigint",
    "answers_compared": "bigint",
    "findings": "bigint",
    "seconds": "double",
}
RESULT_DDL = (
    f"{ddl(RESULT_COLUMNS)}, by_operation array<struct<{ddl(OPERATION_COLUMNS, ': ')}>>, "
    f"sometimes map<string, bigint>, findings array<{FINDING_STRUCT}>"
)
"""A row for each history that was run."""
ROWS_A_BATCH = 50
"""Rows of results that a worker holds until they are sent: some 2 KB each, and their findings."""


def replay_frame(histories: "DataFrame", subjects: Sequence[str]) -> "DataFrame":
    """Return one row of `RESULT_DDL` for each history, a row of `HISTORY_DDL`."""
    return histories.mapInArrow(Runner(tuple(subjects)), RESULT_DDL)


@dataclass
class Runner:
    """Runs the histories of one task; also without Spark."""

    subjects: tuple[str, ...]
    _comparing: "tuple[str, str, Comparison] | None" = field(default=None, init=False)
    """The subjects of the last history, and whose history it was."""

    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """Yield the results of the histories, in bounded batches."""
        rows = (self.result_of(history) for batch in batches for history in batch.to_pylist())
        return batches_of(rows, _schema(), ROWS_A_BATCH)

    def result_of(self, history: Mapping[str, Any]) -> dict[str, Any]:
        """Run one history, and return its row of results."""
        from segproof_harness.histories.replay import run_seed, seed_command

        started = perf_counter()
        structure, profile = history["structure"], history["profile"]
        seed, length = history["seed"], history["length"]
        weights = None if history["weights"] is None else dict(history["weights"])
        comparing = self._comparison_of(structure, profile)
        found = run_seed(comparing, seed, length, weights)
        counted = comparing.take_counters()
        findings = []
        if found is not None:
            line = seed_command(structure, profile, seed, length, self.subjects, weights)
            findings.append(finding_row(found.to_finding(structure, line).to_json()))
        return {
            "structure": structure,
            "profile": profile,
            "seed": seed,
            "length": length,
            "operations": counted.operations,
            "answers_compared": counted.answers_compared,
            "images_compared": counted.images_compared,
            "bytes_compared": counted.bytes_compared,
            "seconds": perf_counter() - started,
            "worker_peak_bytes": peak_bytes(),
            "by_operation": [
                {
                    "operation": name,
                    "operations": one.operations,
                    "answers_compared": one.answers_compared,
                    "findings": one.findings,
                    "seconds": one.seconds,
                }
                for name, one in counted.by_operation.items()
            ],
            "sometimes": list(counted.sometimes.items()),
            "findings": findings,
        }

    def _comparison_of(self, structure: str, profile: str) -> "Comparison":
        from segproof_harness.histories.replay import comparison

        if self._comparing is None or self._comparing[:2] != (structure, profile):
            self._comparing = structure, profile, comparison(structure, profile, self.subjects)
        return self._comparing[2]


def _schema() -> "pa.Schema":
    import pyarrow as pa

    operation = pa.struct(arrow_fields(OPERATION_COLUMNS))
    return pa.schema(
        [
            *arrow_fields(RESULT_COLUMNS),
            pa.field("by_operation", pa.list_(operation)),
            pa.field("sometimes", pa.map_(pa.string(), pa.int64())),
            pa.field("findings", pa.list_(pa.struct(arrow_fields(FINDING_COLUMNS)))),
        ]
    )


def replay_on_spark(
    session: "SparkSession",
    structures: Sequence[str],
    *,
    profile: str = "segproof",
    seeds: Seeds,
    length: int,
    subjects: Sequence[str] = ("model", "impl"),
    weights: Mapping[str, int] | None = None,
    findings_max: int = FINDINGS_MAX,
    out: str | None = None,
) -> Summary:
    """Run the history of each seed for each structure, and add up what was found.

    With `out`, a path or URL that every worker sees and where nothing is yet, the rows of results
    stay there as Parquet; without it they are kept on the workers' disks meanwhile.
    Raises: ValueError for weights with which nothing can be drawn, ResultsLostError.
    """
    histories = histories_frame(session, structures, profile, seeds, length, weights)
    results = replay_frame(histories, subjects)
    if out is not None:
        count = sum(len(seeds_of(name, seeds)) for name in structures)
        return summary(written(session, results, out, "histories", count), findings_max)
    with kept_on_disk(results) as kept:
        return summary(kept, findings_max)
