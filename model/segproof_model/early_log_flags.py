# SPDX-License-Identifier: Apache-2.0
"""What the whole logs of Kafka before 0.11 do otherwise than all later ones.

Used by: early_flags, and through it the logs of partitions.
"""

from dataclasses import dataclass

from segproof_model.declaring import flag
from segproof_model.rocketmq_flags import RocketMQFlags

__all__ = ["EarlyLogFlags"]


@dataclass(frozen=True, slots=True)
class EarlyLogFlags(RocketMQFlags):
    """The flags of logs without producers and epochs."""

    log_knows_producers: bool = flag(
        True,
        "a log knows producers, transactions and leader epochs; otherwise it leaves their files as"
        " they are",
        "PROD-14",
        "LOAD-15",
    )
    log_start_is_kept: bool = flag(
        True,
        "a log begins where its checkpoint says; otherwise with its first segment, always",
        "LOAD-12",
        "LOG-14",
    )
    leader_keeps_messages: bool = flag(
        False,
        "a leader writes messages of magic 1, not batches: each gets its offset where it is, and"
        " all that is compressed becomes one wrapper, which is kept as it is where it can be",
        "LOG-9",
        "LOG-10",
    )
    missing_time_is_taken: bool = flag(
        True,
        "a message without a timestamp is never too old",
        "LOG-10",
    )
    retention_waits_for_replicas: bool = flag(
        True, "retention removes no segment that reaches beyond the high watermark", "LOG-17"
    )
    swap_spares_time_indexes: bool = flag(
        False,
        "loading removes the offset index of a swap, and the one in its place, but no time index",
        "LOAD-2",
    )
    truncation_at_end_is_done: bool = flag(
        False,
        "a truncation at the log end removes an empty segment behind it, and lowers the recovery"
        " point",
        "LOG-13",
    )
    recovery_limits_messages: bool = flag(
        False,
        "a recovery ends at a message that is larger than max.message.bytes, as at a damaged one",
        "SEG-20",
        "LOAD-7",
    )
