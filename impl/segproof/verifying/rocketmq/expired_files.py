# SPDX-License-Identifier: Apache-2.0
"""What is said of entries and units that lead before the first file of a commit log.

Laws: RMQDISK-28, RMQDISK-37.
"""

BEFORE_LOG = "which expired with their file or were lost with it: no file tells which"
"""A broker removes its oldest log files itself, and corrects where the queues begin (RocketMQ,
CommitLog.deleteExpiredFile, ConsumeQueue.correctMinOffset): a lost first file looks the same."""
BEFORE_LOG_HINT = (
    "stays while its last message is there; else look for the first file of the log where else the"
    " broker keeps its log, and on a replica"
)
