# SPDX-License-Identifier: Apache-2.0
"""How large the batches are, by powers of two: `batch_size_histogram.py PATH...`.

Many small batches make a log larger and slower to read than it has to be.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from segproof_spark.data_source import register
from segproof_spark.session import start_session


def batch_size_histogram(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return for each codec and power of two how many batches have as many bytes, or up to twice.

    Also their bytes and records.
    """
    batches = spark.read.load(
        paths, "segproof", table="batches", columns="compression,size,record_count"
    )
    return (
        batches.withColumn("at_least_bytes", f.expr("shiftleft(1L, length(bin(size)) - 1)"))
        .groupBy("compression", "at_least_bytes")
        .agg(
            f.count("*").alias("batches"),
            f.sum("size").alias("bytes"),
            f.sum("record_count").alias("records"),
        )
        .orderBy("compression", "at_least_bytes")
    )


if __name__ == "__main__":
    with start_session() as session:
        register(session)
        batch_size_histogram(session, sys.argv[1:]).show(100, truncate=False)
