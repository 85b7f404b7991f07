# SPDX-License-Identifier: Apache-2.0
"""The options of one log, with Kafka's names and defaults.

Upstream: Kafka 4.4.0, LogConfig and ProducerStateManagerConfig.
Not covered: refusing a bad value, which the implementation does; options of remote storage, of
    compaction (but for when it rolls a segment) and of flushing by time.
"""

from dataclasses import dataclass
from typing import Literal

from segproof_model.language.integers import INT64_MAX


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The options of one log. A name ends in its unit: `_ms` are milliseconds.

    >>> LogConfig(segment_ms=500).max_segment_ms
    500
    >>> LogConfig(segment_ms=500, cleanup_policy="compact", max_compaction_lag_ms=60).max_segment_ms
    60
    """

    segment_bytes: int = 1073741824
    """A segment that would grow beyond these bytes is rolled."""
    segment_ms: int = 604800000
    """A segment that is older is rolled."""
    segment_jitter_ms: int = 0
    """Exclusive bound of the random time by which a segment is rolled earlier; 0: none."""
    segment_index_bytes: int = 10485760
    """Bytes preallocated for each index."""
    index_interval_bytes: int = 4096
    """More bytes than these lie between the batches of two index entries."""
    preallocate: bool = False
    """Whether a new log file has all of `segment_bytes` at once."""
    max_message_bytes: int = 1048588
    """The largest batch that a leader takes, in bytes, inclusive."""
    retention_ms: int = 604800000
    """How long after its largest timestamp a segment is kept; -1: without limit."""
    retention_bytes: int = -1
    """How many bytes of the log are kept; negative: without limit."""
    file_delete_delay_ms: int = 60000
    """How long the files of a deleted segment stay."""
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    """How far a timestamp may lie before the broker's clock."""
    message_timestamp_after_max_ms: int = 3600000
    """How far behind it."""
    cleanup_policy: str = "delete"
    """`delete`, `compact`, both with a comma between; or empty: neither."""
    max_compaction_lag_ms: int = INT64_MAX
    """A compacted log rolls a segment that is older, too."""
    compression_type: str = "producer"
    flush_messages: int = INT64_MAX
    """After so many records the log is flushed."""
    producer_id_expiration_ms: int = 86400000
    """A producer that is silent for longer is forgotten."""
    max_transaction_timeout_ms: int = 900000

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled; a compacted log's lag limits it as well."""
        policies = [policy.strip() for policy in self.cleanup_policy.split(",")]
        if "compact" in policies and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms
