# SPDX-License-Identifier: Apache-2.0
"""Batches that an idempotent producer has in a log twice: `duplicates_by_producer.py PATH...`.

A producer numbers its batches, so that the broker can refuse one that it has already. The same
number twice under one producer and epoch is a duplicate that slipped through, unless the sequence
numbers began again after 2147483647.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from segproof_spark.data_source import register
from segproof_spark.session import start_session


def duplicates_by_producer(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Return each first sequence number that several batches of a producer have, with offsets."""
    batches = spark.read.load(
        paths,
        "segproof",
        table="batches",
        columns="directory,base_offset,producer_id,producer_epoch,base_sequence,is_control",
        on_damage="skip",  # batches that are twice are looked for, and are no end of the read
    )
    return (
        batches.filter("producer_id >= 0 and base_sequence >= 0 and not is_control")
        .groupBy("directory", "producer_id", "producer_epoch", "base_sequence")
        .agg(f.sort_array(f.collect_list("base_offset")).alias("base_offsets"))
        .filter("size(base_offsets) > 1")
        .orderBy("directory", "producer_id", "base_sequence")
    )


if __name__ == "__main__":
    with start_session() as session:
        register(session)
        duplicates_by_producer(session, sys.argv[1:]).show(20, truncate=False)
