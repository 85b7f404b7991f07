# SPDX-License-Identifier: Apache-2.0
"""The table `findings`: verify files in parallel.

The paths are walked as `segproof.verify` walks them, by its own functions; what names and
directories alone say is found there. Each task then holds partitions of about the same number of
bytes. A data source has one stage, and what concerns several segments of one partition is judged
in the task that has it, so a partition is never cut here; `spark verify` and `findings_frame` cut
large ones, and find the same. Findings name files by their absolute paths.

Used by: data_source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql.datasource import DataSourceReader, InputPartition

from segproof.findings import Finding
from segproof.verifying.reporting import Wanted
from segproof.verifying.running import Work, check, plan
from segproof_spark.findings import FINDING_FIELDS, finding_row
from segproof_spark.verify.running import with_command
from segproof_spark.verify.units import open_place

TASK_BYTES = 1 << 30
"""Bytes of files that one task is given, unless a single partition has more."""
Unit = TypeVar("Unit")


@dataclass
class Task(InputPartition):
    """What one task is given."""

    partitions: tuple[Work, ...] = ()
    """Partitions, and places of RocketMQ, to check."""
    places: tuple[str, ...] = ()
    """For each of them, the path or URL at or below which it lies."""
    findings: tuple[tuple[str, Finding], ...] = ()
    """Findings that are known already, each with the place that was given."""

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
        works: list[tuple[str, Work]] = []
        findings: list[tuple[str, Finding]] = []
        for place in self.paths:
            files, path = open_place(place)
            found, known = plan(path, self.wanted, files)
            works += ((place, work) for work in found)
            findings += ((place, one) for one in known)
        works.sort(key=lambda one: (one[1].size_bytes, one[1].directory), reverse=True)
        tasks: list[InputPartition] = [Task(findings=tuple(findings))]
        for task in packed([(one[1].size_bytes, one) for one in works], TASK_BYTES):
            places, partitions = zip(*task, strict=True)
            tasks.append(Task(partitions=partitions, places=places))
        return tasks

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the findings of one task."""
        assert isinstance(partition, Task)
        for place, finding in self._found(partition):
            row = finding_row(with_command(finding.to_json(), place))
            yield tuple(row[name] for name in FINDING_FIELDS)

    def _found(self, task: Task) -> Iterator[tuple[str, Finding]]:
        yield from task.findings
        for place, work in zip(task.places, task.partitions, strict=True):
            files, _ = open_place(place)
            for finding in check([work], self.wanted, files):
                yield place, finding


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
