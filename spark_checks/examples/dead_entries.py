# SPDX-License-Identifier: Apache-2.0
"""Index entries that lead nowhere or that nobody reaches: `dead_entries.py PATH...`.

Of Kafka's offset indexes those whose position is not the beginning of a batch; of RocketMQ's index
files those that no chain of their slot leads to.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from segproof_spark.data_source import register
from segproof_spark.session import start_session


def entries_without_a_batch(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return the entries of offset indexes at whose position no batch begins."""
    entries = spark.read.load(paths, "segproof", table="index_entries")
    batches = spark.read.load(
        paths,
        "segproof",
        table="batches",
        columns="directory,segment_base_offset,position",
        on_damage="skip",  # an entry may lead behind the damage of a log
    )
    place = ["directory", "segment_base_offset", "position"]
    return entries.join(batches, place, "left_anti").orderBy("path", "entry")


def unreachable_entries(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return the entries of RocketMQ's index files that are neither last in their slot nor linked.

    A slot leads to its last entry, and every entry to the one before it.
    """
    entries = spark.read.load(paths, "segproof", table="rocketmq_entries")
    heads = entries.groupBy("path", "slot").agg(f.max("index").alias("index"))
    linked = entries.select("path", "slot", f.col("prev_index").alias("index"))
    reached = heads.unionByName(linked)
    return entries.join(reached, ["path", "slot", "index"], "left_anti").orderBy("path", "index")


if __name__ == "__main__":
    with start_session() as session:
        register(session)
        entries_without_a_batch(session, sys.argv[1:]).show(20, truncate=False)
        unreachable_entries(session, sys.argv[1:]).show(20, truncate=False)
