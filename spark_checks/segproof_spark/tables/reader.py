# SPDX-License-Identifier: Apache-2.0
"""The readers of all tables but `findings`: which tasks there are, and what a task yields.

A task has whole files, of about as many bytes as was asked for. Damage ends the rows of one file
and leaves the others alone, unless the job is to fail.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from segproof.errors import SegproofError
from segproof.files import Files
from segproof_harness.cli.common import reason_of
from segproof_spark.tables.conditions import passing
from segproof_spark.tables.files_below import Unit, is_foreign, units_below
from segproof_spark.tables.options import Request
from segproof_spark.tasks import packed

FILE_BYTES: Final = 256 << 10
"""What opening a file costs, in bytes read meanwhile: many small files are shared out too."""

Place = tuple[Files, str]
"""Where to read, and the path there."""


class DamagedFileError(SegproofError):
    """A file is damaged, and the job has to fail at damage."""


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

        Raises: OSError for a path that cannot be read; ValueError if all are files of other kinds.
        """
        priced = ((one[1].size_bytes + FILE_BYTES, one) for one in self._units())
        tasks = [FilesTask(tuple(units)) for _, units in packed(priced, self.request.task_bytes)]
        if not tasks and all(is_foreign(path, self.request, files) for files, path in self.places):
            path, table = self.places[0][1], self.request.table
            raise ValueError(f"segproof: option path: {path} is no file of table {table}")
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
        from segproof_spark.tables.columns import merged

        assert isinstance(partition, FilesTask)
        return merged(map(self._chosen, self._batches(partition)))

    def _chosen(self, batch: Any) -> Any:
        """Return the rows and columns of a batch that are wanted."""
        request = self.request
        if not request.where:
            return batch
        chosen = passing(batch, request.where)
        return chosen.select(list(request.columns[: request.shown]))

    def _batches(self, task: FilesTask) -> Iterator[Any]:
        read = _reading(self.request.table)
        for number, unit in task.units:
            try:
                if not unit.problem or self.request.table == "segments":
                    yield from read(unit, self.request, self.places[number][0])
                problem = unit.problem
            except SegproofError as error:
                problem = str(error)
            except OSError as error:
                problem = reason_of(error)
            if problem and self.request.fail_on_damage:
                where = "" if unit.path in problem else f"{unit.path}: "
                raise DamagedFileError(
                    f"{where}{problem}; the option on_damage=stop reads up to there"
                ) from None


class PushingTableReader(TableReader):
    """The same, where filters of queries are pushed down to it.

    Spark refuses a reader that takes filters where its setting is off, so there are two. And it
    keeps (seen in 4.3.0) the files that the first filtered query left for every later query on the
    same DataFrame, in silence; so this one is only for who asked for it.
    """

    def pushFilters(self, filters: Any) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Note what the filters leave out, and leave every one to Spark too."""
        for one in filters:
            self.request.filters.add(one)
        return list(filters)


def _reading(table: str) -> Callable[[Unit, Request, Files], Iterator[Any]]:
    """Return the function that reads a file of the table."""
    from segproof_spark.tables.batches import batches
    from segproof_spark.tables.index_files import aborted_transactions, index_entries
    from segproof_spark.tables.records import records
    from segproof_spark.tables.rocketmq import rocketmq_entries
    from segproof_spark.tables.segments import segments

    return {
        "segments": segments,
        "batches": batches,
        "records": records,
        "index_entries": index_entries,
        "time_index_entries": index_entries,
        "aborted_transactions": aborted_transactions,
        "rocketmq_entries": rocketmq_entries,
    }[table]


def places_of(paths: Sequence[str]) -> list[Place]:
    """Return where paths, URLs and globs of them lead.

    Raises: FileNotFoundError or ValueError for a glob that nothing fits.
    """
    from segproof_spark.arrow_files import expand, files_of

    return [files_of(path) for path in expand(paths)]
