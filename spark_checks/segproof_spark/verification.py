# SPDX-License-Identifier: Apache-2.0
"""Verify files on Spark: the findings of `segproof.verify`.

The paths are walked by the program that asks, as `verify` walks them. Then units of about the same
cost are checked in parallel; large partitions are cut into segments, large segments into pieces,
and joined afterwards: see verify/plan.py and verify/tasks.py. Findings are kept on the disks of
the workers until they are told: a sort over several parts looks at all rows first, and must not
make them a second time. The program holds one part of them at a time.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from segproof.wording.reporting import Wanted
from segproof_spark.arrow_files import is_url
from segproof_spark.result_rows import add_up, finding_row, kept_on_disk
from segproof_spark.tasks import tasks_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from segproof_spark.verify.plan import Plan

__all__ = ["Totals", "findings_frame", "verify_on_spark"]

Path = str | os.PathLike[str]


@dataclass(slots=True)
class Totals:
    """The costs of a verification; complete after its last finding."""

    tasks: int = 0
    units: int = 0
    """Partitions, segments and pieces of segments that were checked."""
    units_recalled: int = 0
    """How many of them were taken from the checkpoint."""
    units_unkept: int = 0
    """How many could not be written to the checkpoint."""
    bytes_read: int = 0
    worker_peak_bytes: int = 0
    """The most memory that a Python worker had."""

    def add(self, payload: bytes) -> None:
        """Add the report of a task."""
        told = json.loads(payload)
        add_up(self, {"tasks": 1, **told}, ("tasks", *told))


class Asked(TypedDict, total=False):
    """What may be asked of files: as of `segproof.verify`, and how the work is done."""

    deep: bool
    limit: int | None
    laws: Collection[str] | None
    position: int | None
    hash_slots: int | None
    segment_index_bytes: int | None
    checkpoint: Path | None
    """A folder, a path or URL that all workers can write to: what a run has put there another one
    of the same question does not read again."""
    task_bytes: int | None
    """About what a task reads; by default as much as suits the data."""


def findings_frame(
    session: "SparkSession", paths: Sequence[Path], **asked: Unpack[Asked]
) -> "DataFrame":
    """Return the findings of all paths and URLs as a DataFrame with the fields of a finding.

    The paths are walked now, by this process; all workers must see the files under the same paths.

    Raises: OSError where a path can't be read; CheckpointError where its folder can't be made.
    """
    rows = _rows(session, paths, **asked)
    return rows.filter("finding IS NOT NULL").select("finding.*")


def verify_on_spark(
    session: "SparkSession",
    paths: Sequence[Path],
    *,
    totals: Totals | None = None,
    **asked: Unpack[Asked],
) -> Iterator[dict[str, Any]]:
    """Yield the findings of all paths, each as its fields by name, in the order of their files.

    `totals` is filled meanwhile.
    Raises: OSError where a path can't be read; CheckpointError where its folder can't be made.
    """
    rows = _rows(session, paths, **asked)
    told = rows.select("payload", "kind", "finding.*")
    with kept_on_disk(told) as kept:
        for row in kept.orderBy("path", "position", "law", "message", "kind").toLocalIterator():
            if row["law"] is not None:
                yield finding_row(row.asDict())
            elif totals is not None:
                totals.add(bytes(row["payload"]))


def _rows(
    session: "SparkSession",
    paths: Sequence[Path],
    *,
    laws: Collection[str] | None = None,
    checkpoint: Path | None = None,
    task_bytes: int | None = None,
    **asked: Any,
) -> "DataFrame":
    """Return the rows of all stages, see verify/rows.py."""
    from segproof_spark.session import cores_of
    from segproof_spark.verify.checkpoint import open_checkpoint
    from segproof_spark.verify.plan import make_plan

    wanted = Wanted(None if laws is None else frozenset(laws), **asked)
    places = [os.fspath(path) for path in paths]
    places = [path if is_url(path) else os.path.abspath(path) for path in places]
    cores = cores_of(session)
    kept = None if checkpoint is None else open_checkpoint(os.fspath(checkpoint), wanted)
    plan = make_plan(places, wanted, cores, task_bytes)
    return _stages(session, plan, wanted, kept, cores)


def _stages(
    session: "SparkSession", plan: "Plan", wanted: Wanted, checkpoint: Any, cores: int
) -> "DataFrame":
    from segproof_spark.verify.rows import KEYS, ROW_DDL, batches_of_rows, rows_of_batches
    from segproof_spark.verify.tasks import Verifying

    verifying = Verifying(wanted, tuple(plan.partitions), checkpoint)

    def check(task: bytes) -> "Iterator[pa.RecordBatch]":
        return batches_of_rows(verifying.check_units([task]))

    def check_logs(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return batches_of_rows(verifying.check_logs(rows_of_batches(batches)))

    def join(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return batches_of_rows(verifying.join_partitions(rows_of_batches(batches)))

    rows = tasks_frame(session, plan.tasks, check, ROW_DDL)
    if plan.logs:
        rows = rows.repartition(min(plan.logs, 4 * cores), "partition", "segment")
        rows = rows.sortWithinPartitions(*KEYS).mapInArrow(check_logs, ROW_DDL)
    if plan.partitions:
        rows = rows.repartition(min(len(plan.partitions), 4 * cores), "partition")
        rows = rows.sortWithinPartitions(*KEYS).mapInArrow(join, ROW_DDL)
    return rows
