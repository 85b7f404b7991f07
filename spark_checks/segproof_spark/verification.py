# SPDX-License-Identifier: Apache-2.0
"""Verify files on Spark: the table `findings` of the data source, for several paths.

Used by: the verb `spark verify`, the demo.
"""

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from segproof_spark.findings import finding_of_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def findings_frame(
    session: "SparkSession",
    paths: Sequence[str | os.PathLike[str]],
    *,
    deep: bool = False,
    limit: int | None = None,
) -> "DataFrame":
    """Return the findings of all paths as a DataFrame with the fields of a finding.

    `deep` and `limit` are those of `segproof.verify`.
    """
    from segproof_spark.data_source import SegproofDataSource

    session.dataSource.register(SegproofDataSource)
    reader = (
        session.read.format("segproof")
        .option("table", "findings")
        .option("paths", json.dumps([os.path.abspath(path) for path in paths]))
        .option("deep", str(deep).lower())
    )
    if limit is not None:
        reader = reader.option("limit_bytes", str(limit))
    return reader.load()


def verify_on_spark(
    session: "SparkSession",
    paths: Sequence[str | os.PathLike[str]],
    *,
    deep: bool = False,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the findings of all paths, each as its fields by name, in the order of their files."""
    frame = findings_frame(session, paths, deep=deep, limit=limit).orderBy(
        "path", "position", "law"
    )
    for row in frame.toLocalIterator():
        yield finding_of_row(row.asDict())
