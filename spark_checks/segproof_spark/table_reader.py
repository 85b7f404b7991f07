# SPDX-License-Identifier: Apache-2.0
"""The readers of all tables but `findings`: which tasks there are, and what a task yields.

A task has whole files, of about as many bytes as was asked for. Damage ends the job, or costs rows
of one file and leaves the others alone, as the request says.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from segproof.files import Files
from segproof.tables.files_below import Unit, refuse_foreign, units_below
from segproof.tables.options import Filters, Request
from segproof.tables.scan import read_units
from segproof_spark.tasks import packed

FILE_BYTES: Final = 256 << 10
"""What opening a file costs, in bytes read meanwhile: many small files are shared out too."""

_KINDS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "In": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "StringStartsWith": "starts",
    "StringEndsWith": "ends",
    "StringContains": "contains",
}
"""What Spark's filters say, by the names of their classes."""

Place = tuple[Files, str]
"""Where to read, and the path there."""


@dataclass
class FilesTask(InputPartition):
    """The input of one task."""

    units: tuple[tuple[int, Unit], ...] = ()
    """Files, each with the number of the place that it lies in."""

    def __post_init__(self) -> None:
        super().__init__(None)


class TableReader(DataSourceReader):
    """Reads the rows of one table."""

    def __init__(self, places: Sequence[Place], request: Request) -> None:
        self.places = list(places)
        self.request = request

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks: whole files, packed in order.

        Raises: OSError for a path that cannot be read; InvalidArgumentError if all are files of
        other kinds.
        """
        priced = ((one[1].size_bytes + FILE_BYTES, one) for one in self._units())
        tasks = [FilesTask(tuple(units)) for _, units in packed(priced, self.request.task_bytes)]
        if not tasks:
            refuse_foreign(self.places, self.request)
        return tasks or [FilesTask()]

    def _units(self) -> Iterator[tuple[int, Unit]]:
        seen: set[str] = set()
        for number, (files, path) in enumerate(self.places):
            for unit in units_below(path, self.request, files):
                if unit.path not in seen:
                    seen.add(unit.path)
                    yield number, unit

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as Arrow batches. Raises: DamagedFileError, if asked to."""
        assert isinstance(partition, FilesTask)
        units = ((self.places[number][0], unit) for number, unit in partition.units)
        return read_units(units, self.request)


class PushingTableReader(TableReader):
    """The same, where filters of queries are pushed down to it.

    Spark refuses a reader that takes filters where its setting is off, so there are two. And it
    keeps (seen in 4.3.0) the files that the first filtered query left for every later query on the
    same DataFrame, in silence; so this one is only for who asked for it.
    """

    def pushFilters(self, filters: Any) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Note what the filters leave out, and leave every one to Spark too."""
        for one in filters:
            push(self.request.filters, one)
        return list(filters)


def push(filters: Filters, pushed: object) -> None:
    """Take in one filter of Spark's; what is not understood leaves nothing out.

    Told by the name of its class: before 4.1 PySpark has none of these classes.
    """
    kind = type(pushed).__name__
    attribute: Sequence[str] = getattr(pushed, "attribute", ())
    value: Any = getattr(pushed, "value", None)
    if kind in _KINDS and len(attribute) == 1:
        filters.note(attribute[0], _KINDS[kind], tuple(value) if kind == "In" else (value,))


def places_of(paths: Sequence[str]) -> list[Place]:
    """Return where paths, URLs and globs of them lead.

    Raises: FileNotFoundError or ValueError for a glob that nothing fits.
    """
    from segproof_spark.arrow_files import expand, files_of

    return [files_of(path) for path in expand(paths)]
