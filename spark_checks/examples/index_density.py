# SPDX-License-Identifier: Apache-2.0
"""How many bytes of log there are for an entry of each index: `index_density.py PATH...`.

A broker writes an entry every `index.interval.bytes` (4096) at least. Far more bytes an entry mean
an index that was cut short, and slow fetches.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from segproof_spark.data_source import register
from segproof_spark.session import start_session


def index_density(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return the segments that have a log, those with the most bytes for an entry first."""
    segments = spark.read.load(
        paths,
        "segproof",
        table="segments",
        columns="directory,segment_base_offset,log_bytes,offset_index_entries,time_index_entries",
    )
    return (
        segments.filter("log_bytes > 0")
        .withColumn(
            "bytes_an_entry",
            f.expr("log_bytes div greatest(coalesce(offset_index_entries, 0), 1)"),
        )
        .orderBy(f.desc("bytes_an_entry"), "directory", "segment_base_offset")
    )


if __name__ == "__main__":
    with start_session() as session:
        register(session)
        index_density(session, sys.argv[1:]).show(20, truncate=False)
