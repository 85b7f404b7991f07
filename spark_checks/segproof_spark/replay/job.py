# SPDX-License-Identifier: Apache-2.0
"""The whole job: plan the histories, run them, write or keep the results, add them up."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from segproof_spark.replay.histories import Seeds, histories_frame
from segproof_spark.replay.running import replay_frame
from segproof_spark.replay.summary import FINDINGS_MAX, Summary, summary
from segproof_spark.results import check_all_read, place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["replay_on_spark", "written"]


def replay_on_spark(
    session: "SparkSession",
    structures: Sequence[str],
    *,
    profile: str = "segproof",
    seeds: Seeds,
    length: int,
    subjects: Sequence[str] = ("model", "impl"),
    weights: Mapping[str, int] | None = None,
    findings_max: int = FINDINGS_MAX,
    out: str | None = None,
) -> Summary:
    """Run the history of each seed for each structure, and add up what was found.

    With `out`, a path or URL that every worker sees and where nothing is yet, the rows of results
    stay there as Parquet; without it they are kept on the workers' disks meanwhile.
    Raises: ValueError for weights with which nothing can be drawn, ResultsLostError.
    """
    histories = histories_frame(session, structures, profile, seeds, length, weights)
    results = replay_frame(histories, subjects)
    if out is not None:
        return summary(written(session, results, out), findings_max)
    from pyspark import StorageLevel

    kept = results.persist(StorageLevel.DISK_ONLY)
    try:
        return summary(kept, findings_max)
    finally:
        kept.unpersist()


def written(session: "SparkSession", results: "DataFrame", out: str) -> "DataFrame":
    """Write rows of results as Parquet, and return what can be read there.

    Raises: ResultsLostError if that is not what was counted while it was written.
    """
    from pyspark.sql import Observation, functions

    counted = Observation("replay")
    sums = {
        "histories": functions.count(functions.lit(1)),
        "operations": functions.sum("operations"),
    }
    place = place_of(out)
    observed = results.observe(counted, *(each.alias(name) for name, each in sums.items()))
    observed.write.parquet(place)
    read = session.read.parquet(place)
    found = read.agg(*(each.alias(name) for name, each in sums.items())).collect()[0].asDict()
    check_all_read(out, "histories", found, counted.get)
    return read
