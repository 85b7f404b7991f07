# SPDX-License-Identifier: Apache-2.0
"""The table `findings`: verify files in parallel.

The paths are walked as `segproof.verify` walks them, by its own functions; what names and
directories alone say is found there. Each task then holds partitions of about the same number of
bytes. What concerns several segments of one partition is judged in the task that has it, so a
partition is never cut. Findings name files by their absolute paths.

Used by: data_source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql.datasource import DataSourceReader, InputPartition

from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.verifying.reporting import Wanted
from segproof.verifying.running import Work, check, plan
from segproof_spark.findings import FINDING_FIELDS, finding_row

TASK_BYTES = 1 << 30
"""Bytes of files that one task is given, unless a single partition has more."""
Unit = TypeVar("Unit")


@dataclass
class Task(InputPartition):
    """What one task is given."""

    partitions: tuple[Work, ...] = ()
    """Partitions, and places of RocketMQ, to check."""
    findings: tuple[Finding, ...] = ()
    """Findings that are known already."""

    def __post_init__(self) -> None:
        super().__init__(None)


class FindingsReader(DataSourceReader):
    """Verify files in parallel."""

    def __init__(self, paths: list[str], deep: bool, limit: int | None = None) -> None:
        self.paths = paths
        self.deep = deep
        self.limit = limit

    @property
    def wanted(self) -> Wanted:
        """What the verifier is asked for."""
        return Wanted(deep=self.deep, limit=self.limit)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks: whole partitions, packed to about `TASK_BYTES`, largest first."""
        partitions: list[Work] = []
        findings: list[Finding] = []
        for path in self.paths:
            found, known = plan(path, self.wanted, REAL_FILES)
            partitions += found
            findings += known
        partitions.sort(key=lambda one: (one.size_bytes, one.directory), reverse=True)
        sized = [(one.size_bytes, one) for one in partitions]
        tasks = [Task(partitions=task) for task in packed(sized, TASK_BYTES)]
        return [Task(findings=tuple(findings)), *tasks]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the findings of one task."""
        assert isinstance(partition, Task)
        found = check(partition.partitions, self.wanted, REAL_FILES)
        for finding in (*partition.findings, *found):
            row = finding_row(finding.to_json())
            yield tuple(row[name] for name in FINDING_FIELDS)


def packed(units: Sequence[tuple[int, Unit]], task_bytes: int) -> list[tuple[Unit, ...]]:
    """Pack pairs of a size and a unit, largest first, into tasks of about `task_bytes`.

    >>> packed([(9, "a"), (5, "b"), (4, "c"), (1, "d")], 10)
    [('a', 'd'), ('b', 'c')]
    """
    tasks: list[list[Unit]] = []
    sizes: list[int] = []
    for size, unit in units:
        fitting = (place for place, taken in enumerate(sizes) if taken + size <= task_bytes)
        place = next(fitting, len(tasks))
        if place == len(tasks):
            tasks.append([])
            sizes.append(0)
        tasks[place].append(unit)
        sizes[place] += size
    return [tuple(task) for task in tasks]
