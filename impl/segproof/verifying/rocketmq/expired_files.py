# SPDX-License-Identifier: Apache-2.0
"""What is said of entries and units that lead before the first file of a commit log.

Laws: RMQDISK-28, RMQDISK-37.
"""

from segproof.verifying.rocketmq.log_records import LogRecords

BEFORE_LOG_HINT = (
    "stays while its last message is there; else look for the first file of the log where else the"
    " broker keeps its log, and on a replica"
)


def before_log(records: LogRecords) -> str:
    """Return words that say what became of the messages before a log, as far as files tell.

    A broker removes its oldest log files itself, and corrects where the queues begin (RocketMQ,
    CommitLog.deleteExpiredFile, ConsumeQueue.correctMinOffset): a lost first file looks the same.
    """
    found = records.lies_elsewhere(0, records.log.min_offset)
    return f"which expired with their file or were lost with it{found or ': no file tells which'}"
