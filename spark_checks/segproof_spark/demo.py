# SPDX-License-Identifier: Apache-2.0
"""What the demo does on Spark: verify the real files once more, and replay random histories."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from segproof_harness.conformance.demo import (
    HISTORY_LENGTH,
    NOT_RUN,
    Row,
    Say,
    structure_ids,
    timed,
)
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_spark.replay import replay_on_spark
from segproof_spark.session import SparkNotRunError, start_session
from segproof_spark.verification import verify_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


HISTORIES = 100
"""Of each structure; starting Spark takes longer."""


def rows(say: Say) -> Iterator[Row]:
    """Yield the rows of local Spark, or one row with the reason why it was not run."""
    started = time.monotonic()
    try:
        session = start_session()
    except SparkNotRunError as reason:
        words = f"Spark: not run: {reason}"
        yield Row("verify and replay on Spark", NOT_RUN, words, time.monotonic() - started)
        return
    try:
        yield timed("verify on Spark", lambda: _verify(session, say))
        yield timed("replay on Spark", lambda: _replay(session, say))
    finally:
        session.stop()


def _verify(session: "SparkSession", say: Say) -> tuple[bool, str]:
    partitions = [partition_of(scenario) for scenario in scenarios()]
    wrong = notes = 0
    for finding in verify_on_spark(session, partitions, deep=True):
        if finding["severity"] == "note":
            notes += 1
        else:
            wrong += 1
            say(f"{finding['path']}: {finding['message']} [{finding['law']}]")
    return wrong == 0, f"{len(partitions)} directories: {wrong} findings, {notes} notes"


def _replay(session: "SparkSession", say: Say) -> tuple[bool, str]:
    seeds = range(HISTORIES)
    result = replay_on_spark(session, structure_ids(), seeds=seeds, length=HISTORY_LENGTH)
    total = result.total
    for finding in result.findings:
        say(f"{finding['message']}; {finding['reproduce']}")
    return not result.findings, (
        f"{total.histories} histories, {total.operations} operations, "
        f"{total.answers_compared} answers: {len(result.findings)} differ"
    )
