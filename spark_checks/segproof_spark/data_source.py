# SPDX-License-Identifier: Apache-2.0
"""The Spark data source `segproof`: `spark.read.format("segproof").option("table", "findings")`.

Options: `path` (one file, partition directory, data directory or store of RocketMQ; several as a
JSON list in `paths`), `table` (`findings`), `deep` (`true` reads every record), `limit_bytes`
(bytes that a batch may have, and inflate to, for its records to be read).

Used by: `spark verify`, and anyone with a Spark session.
"""

import json
import os

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from segproof_spark.findings import FINDING_DDL
from segproof_spark.tables.findings import FindingsReader


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

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the table."""
        paths = json.loads(self.options.get("paths", "[]"))
        if "path" in self.options:
            paths.append(self.options["path"])
        if not paths:
            raise ValueError("segproof: no path; use .load(PATH) or .option('path', PATH)")
        deep = self.options.get("deep", "false").lower() == "true"
        limit = int(self.options["limit_bytes"]) if "limit_bytes" in self.options else None
        if limit is not None and limit < 1:
            raise ValueError("segproof: limit_bytes must be 1 or more")
        return FindingsReader([os.path.abspath(path) for path in paths], deep, limit)
