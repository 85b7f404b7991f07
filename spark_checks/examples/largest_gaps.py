# SPDX-License-Identifier: Apache-2.0
"""The largest gaps between the offsets of neighbouring batches: `largest_gaps.py PATH...`.

Compaction and aborted leaders leave gaps; in a log that nobody compacts one may be a loss.
"""

import sys

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from segproof_spark.data_source import register
from segproof_spark.session import start_session


def largest_gaps(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return each gap in each directory, the largest first."""
    batches = spark.read.load(
        paths,
        "segproof",
        table="batches",
        columns="directory,base_offset,last_offset",
        on_damage="skip",  # a gap that is proved to be a loss is shown, and is no end of the read
    )
    in_order = Window.partitionBy("directory").orderBy("base_offset")
    return (
        batches.withColumn("next_base_offset", f.lead("base_offset").over(in_order))
        .withColumn("missing", f.expr("next_base_offset - last_offset - 1"))
        .filter("missing > 0")
        .select("directory", "last_offset", "next_base_offset", "missing")
        .orderBy(f.desc("missing"), "directory", "last_offset")
    )


if __name__ == "__main__":
    with start_session() as session:
        register(session)
        largest_gaps(session, sys.argv[1:]).show(20, truncate=False)
