# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables of the Spark data source, read without Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segproof.tables.options import request_of
from segproof_spark.table_reader import TableReader, places_of


def reader_of(table: str, path: Path | str, **options: str) -> TableReader:
    """Return the reader of a table."""
    return TableReader(places_of([str(path)]), request_of({"table": table, **options}))


def rows_read(reader: TableReader, tasks: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return the rows of tasks, by default of all that a reader plans."""
    planned = reader.partitions() if tasks is None else tasks
    return [row for task in planned for batch in reader.read(task) for row in batch.to_pylist()]


def read_table(table: str, path: Path | str, **options: str) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return rows_read(reader_of(table, path, **options))
