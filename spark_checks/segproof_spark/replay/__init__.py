# SPDX-License-Identifier: Apache-2.0
"""Replay random histories on Spark: seeds in, findings and counters out.

A row of the input is one history. The same function runs it as under the verb `replay`, and one
row of results comes back, so the totals are exact however Spark cuts the work.

`histories` plans the tasks, `job` runs them, `summary` adds up, `report` reads results back.
"""

from segproof_spark.replay.histories import HISTORY_DDL, histories_frame, shared
from segproof_spark.replay.job import RESULT_DDL, replay_frame, replay_on_spark
from segproof_spark.replay.summary import Summary, summary

__all__ = [
    "HISTORY_DDL",
    "RESULT_DDL",
    "Summary",
    "histories_frame",
    "replay_frame",
    "replay_on_spark",
    "shared",
    "summary",
]
