# SPDX-License-Identifier: Apache-2.0
"""Batches that are older than one before them: `timestamps_going_back.py PATH...`.

Producers may send what they like (CreateTime), and a lookup by timestamp then answers with the
first offset that is young enough, not with the only one.
"""

import sys

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from segproof_spark.data_source import register
from segproof_spark.session import start_session


def timestamps_going_back(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return each batch whose largest timestamp is below that of an earlier one, with how far."""
    batches = spark.read.load(
        paths,
        "segproof",
        table="batches",
        columns="directory,base_offset,position,max_timestamp,is_control",
        on_damage="skip",  # batches that are twice are shown, and are no end of the read
    )
    before = (
        Window.partitionBy("directory")
        .orderBy("base_offset", "position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        batches.filter("not is_control and max_timestamp >= 0")
        .withColumn("newest_before", f.max("max_timestamp").over(before))
        .withColumn("back_ms", f.expr("newest_before - max_timestamp"))
        .filter("back_ms > 0")
        .select("directory", "base_offset", "max_timestamp", "back_ms")
        .orderBy(f.desc("back_ms"), "directory", "base_offset")
    )


if __name__ == "__main__":
    with start_session() as session:
        register(session)
        timestamps_going_back(session, sys.argv[1:]).show(20, truncate=False)
