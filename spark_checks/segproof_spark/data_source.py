# SPDX-License-Identifier: Apache-2.0
"""The Spark data source `segproof`: `spark.read.format("segproof").option("table", "findings")`.

Options: `path` (one file, partition directory or data directory; several as a JSON list in
`paths`), `table` (`findings`), `deep` (`true` reads every record), `limit_bytes` (bytes that a
batch may have, and inflate to, for its records to be read).

A task holds directories or files of about the same number of bytes, and runs `segproof.verify`:
the very function of the command line. What concerns several segments of one directory is judged
in the task that has the directory, so a partition directory is never cut.

Used by: `spark verify`, and anyone with a Spark session.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from segproof_spark.findings import FINDING_DDL, FINDING_FIELDS, finding_row

TASK_BYTES = 1 << 30
"""Bytes of files that one task is given, unless a single directory has more."""


@dataclass
class PathsPartition(InputPartition):
    """The files and partition directories of one task."""

    paths: tuple[str, ...]

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(None)
        self.paths = paths


class SegproofDataSource(DataSource):
    """The data source `segproof`; see the module's docstring for its options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "segproof"

    def schema(self) -> str:
        """Return the columns of the table."""
        table = self.options.get("table", "findings")
        if table != "findings":
            raise ValueError(f"segproof has no table {table!r}; known: findings")
        return FINDING_DDL

    def reader(self, schema: StructType) -> "FindingsReader":
        """Return the reader of the table."""
        paths = json.loads(self.options.get("paths", "[]"))
        if "path" in self.options:
            paths.append(self.options["path"])
        if not paths:
            raise ValueError("segproof: no path; use .load(PATH) or .option('path', PATH)")
        deep = self.options.get("deep", "false").lower() == "true"
        limit = self.options.get("limit_bytes")
        return FindingsReader(
            [os.path.abspath(path) for path in paths], deep, None if limit is None else int(limit)
        )


class FindingsReader(DataSourceReader):
    """Verify files in parallel."""

    def __init__(self, paths: list[str], deep: bool, limit: int | None = None) -> None:
        self.paths = paths
        self.deep = deep
        self.limit = limit

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks: whole directories, packed to about `TASK_BYTES`, largest first."""
        units = sorted(
            ((size_bytes(unit), unit) for path in self.paths for unit in units_of(path)),
            reverse=True,
        )
        return [PathsPartition(paths) for paths in packed(units, TASK_BYTES)]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield the findings of one task."""
        from segproof.verification import verify

        assert isinstance(partition, PathsPartition)
        for path in partition.paths:
            for finding in verify(path, deep=self.deep, limit=self.limit):
                row = finding_row(finding.to_json())
                yield tuple(row[name] for name in FINDING_FIELDS)


def units_of(path: str) -> list[str]:
    """Return what a path is cut into: the partition directories of a data directory, or itself."""
    if not os.path.isdir(path):
        return [path]
    entries = [entry for entry in os.scandir(path) if entry.is_dir()]
    has_files = any(entry.is_file() and entry.name.endswith(".log") for entry in os.scandir(path))
    return [path] if has_files or not entries else sorted(entry.path for entry in entries)


def size_bytes(path: str) -> int:
    """Return the bytes of the files below a path; what cannot be read counts nothing."""
    if not os.path.isdir(path):
        return os.path.getsize(path) if os.path.exists(path) else 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            total += os.path.getsize(full) if os.path.isfile(full) else 0
    return total


def packed(units: Sequence[tuple[int, str]], task_bytes: int) -> list[tuple[str, ...]]:
    """Pack (size, path) pairs, largest first, into tasks of about `task_bytes`.

    >>> packed([(9, "a"), (5, "b"), (4, "c"), (1, "d")], 10)
    [('a', 'd'), ('b', 'c')]
    """
    tasks: list[list[str]] = []
    sizes: list[int] = []
    for size, path in units:
        fitting = (place for place, taken in enumerate(sizes) if taken + size <= task_bytes)
        place = next(fitting, len(tasks))
        if place == len(tasks):
            tasks.append([])
            sizes.append(0)
        tasks[place].append(path)
        sizes[place] += size
    return [tuple(task) for task in tasks]
