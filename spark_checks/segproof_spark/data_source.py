# SPDX-License-Identifier: Apache-2.0
"""The Spark data source `segproof`: `spark.read.format("segproof").option("table", "batches")`.

The tables, their columns and the options stand in `segproof/tables/schemas.py` and on the
reference page. `session.dataSource.register(SegproofDataSource)` makes the format
known to a session, and so does `register(session)`.
"""

import json
import os
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from segproof.tables.options import columns_of, flag, number, request_of, table_of
from segproof.tables.schemas import TABLES, ddl_of
from segproof.wording.reporting import Wanted
from segproof_spark.findings_reader import FindingsReader
from segproof_spark.table_reader import PushingTableReader, TableReader, places_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SegproofDataSource", "register"]


class SegproofDataSource(DataSource):
    """The data source `segproof`; see the module's docstring."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "segproof"

    def schema(self) -> str:
        """Return the columns of the table. Raises: ValueError."""
        return ddl_of(columns_of(table_of(self.options), self.options, with_damage=True))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the table. Raises: ValueError; OSError for a glob in vain."""
        given = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        request = request_of(self.options, given, with_damage=True)
        paths = self._paths()
        if request.table == "findings":
            return self._findings_reader(paths, request.columns)
        pushes = flag(self.options, "push_filters")
        return (PushingTableReader if pushes else TableReader)(places_of(paths), request)

    def _findings_reader(self, paths: list[str], columns: tuple[str, ...]) -> DataSourceReader:
        from segproof_spark.arrow_files import expand, is_url

        if columns != TABLES["findings"].names:
            raise ValueError("segproof: schema: the table findings is read with all its columns")
        places = [each if is_url(each) else os.path.abspath(each) for each in expand(paths)]
        limit = number(self.options, "limit_bytes", 0) or None
        return FindingsReader(places, Wanted(deep=flag(self.options, "deep"), limit=limit))

    def _paths(self) -> list[str]:
        text = self.options.get("paths", "[]")
        try:
            paths = json.loads(text)
        except ValueError:
            paths = None
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise ValueError(f"segproof: option paths: {text!r} is no JSON list of texts")
        if "path" in self.options:
            paths.append(self.options["path"])
        if not paths:
            raise ValueError("segproof: option path: there is none; use .load(PATH)")
        return paths


def register(session: "SparkSession") -> None:
    """Make the format `segproof` known to a session."""
    session.dataSource.register(SegproofDataSource)
