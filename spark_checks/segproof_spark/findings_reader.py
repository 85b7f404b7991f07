# SPDX-License-Identifier: Apache-2.0
"""The table `findings`: verify files in parallel.

The tasks are those of `spark verify`, see verify/plan.py and verify/tasks.py. A data source has
one stage, and one task checks what concerns several segments of a partition, so a partition is
never cut here; `spark verify` and `findings_frame` cut large ones, and find the same. Findings name
files by their absolute paths.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import DataSourceReader, InputPartition

from segproof.wording.reporting import Wanted
from segproof_spark.result_rows import FINDING_FIELDS
from segproof_spark.verify.plan import make_plan
from segproof_spark.verify.tasks import Verifying

TASK_BYTES = 1 << 30
"""Bytes of files that one task is given, unless a single partition has more."""


@dataclass
class Task(InputPartition):
    """What one task is given."""

    units: bytes | None = None
    """One of `Plan.tasks`."""

    def __post_init__(self) -> None:
        super().__init__(None)


class FindingsReader(DataSourceReader):
    """Verify files in parallel."""

    def __init__(self, paths: list[str], wanted: Wanted) -> None:
        self.paths, self.wanted = paths, wanted

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks: whole partitions, packed to about `TASK_BYTES`, dearest first."""
        plan = make_plan(self.paths, self.wanted, 1, TASK_BYTES, is_cut=False)
        # Spark wants one task at least.
        return [Task(units) for units in plan.tasks] or [Task()]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the findings of one task."""
        assert isinstance(partition, Task)
        tasks = [] if partition.units is None else [partition.units]
        for row in Verifying(self.wanted, ()).check_units(tasks):
            if row.finding is not None:
                yield tuple(row.finding[name] for name in FINDING_FIELDS)
