# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables of the Spark data source, read without Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segproof.tables.options import request_of
from segproof_spark.table_reader import TableReader, places_of


def reader_of(table: str, path: Path | str, **options: str) -> TableReader:
    """Return the reader of a table."""
    request = request_of({"table": table, **options}, with_damage=True)
    return TableReader(places_of([str(path)]), request)


def rows_read(reader: TableReader, tasks: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return the rows of tasks, by default of all that a reader plans."""
    planned = reader.partitions() if tasks is None else tasks
    return [row for task in planned for batch in reader.read(task) for row in batch.to_pylist()]


def rows_and_damage(
    table: str, path: Path | str, on_damage: str, **options: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows without the column `damage`, and what the rows of damage tell in it."""
    rows: list[dict[str, Any]] = []
    told: list[str] = []
    for row in read_table(table, path, on_damage=on_damage, **options):
        damage = row.pop("damage")
        if damage is None:
            rows.append(row)
        else:
            told.append(damage)
            known = ("path", "directory", "segment_base_offset")
            assert all(value is None for name, value in row.items() if name not in known)
    return rows, told


def read_table(table: str, path: Path | str, **options: str) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return rows_read(reader_of(table, path, **options))
