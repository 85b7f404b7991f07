# SPDX-License-Identifier: Apache-2.0
"""The options of one log, with Kafka's names and defaults.

Upstream: Kafka, LogConfig and ProducerStateManagerConfig (4.3.1).
Not covered: options of remote storage. Segments may be as small as in Kafka's own tests, which
    matters to those who test; a broker since 4.0 wants at least 1 MiB.
"""

from dataclasses import dataclass
from typing import Literal

from segproof.errors import InvalidArgumentError
from segproof.integers import INT32_MAX, INT64_MAX, INT64_MIN, in_range

_RANGES = {
    "segment_bytes": (14, INT32_MAX),
    "segment_ms": (1, INT64_MAX),
    "segment_jitter_ms": (0, INT64_MAX),
    "segment_index_bytes": (0, INT32_MAX),
    "index_interval_bytes": (0, INT32_MAX),
    "max_message_bytes": (0, INT32_MAX),
    "retention_ms": (-1, INT64_MAX),
    "retention_bytes": (INT64_MIN, INT64_MAX),
    "file_delete_delay_ms": (0, INT64_MAX),
    "message_timestamp_before_max_ms": (0, INT64_MAX),
    "message_timestamp_after_max_ms": (0, INT64_MAX),
    "max_compaction_lag_ms": (1, INT64_MAX),
    "flush_messages": (1, INT64_MAX),
    "producer_id_expiration_ms": (1, INT32_MAX),
    "max_transaction_timeout_ms": (1, INT32_MAX),
}
"""The least and the greatest value of each number, both inclusive."""

_CHOICES = {
    "message_timestamp_type": ("CreateTime", "LogAppendTime"),
    "compression_type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
}


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The options of one log.

    Raises: InvalidArgumentError for a value outside its range, naming the option and the range.
    """

    segment_bytes: int = 1073741824
    """A segment that would grow beyond these bytes is rolled."""
    segment_ms: int = 604800000
    segment_jitter_ms: int = 0
    """Exclusive bound of the random time by which a segment is rolled earlier; 0: none."""
    segment_index_bytes: int = 10485760
    """Bytes preallocated for each index."""
    index_interval_bytes: int = 4096
    preallocate: bool = False
    max_message_bytes: int = 1048588
    """The largest batch that a leader takes, in bytes, inclusive."""
    retention_ms: int = 604800000
    """-1: without limit."""
    retention_bytes: int = -1
    """Negative: without limit."""
    file_delete_delay_ms: int = 60000
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = 3600000
    cleanup_policy: str = "delete"
    """`delete`, `compact`, both with a comma between; or empty: neither, as 4.3.1 allows."""
    max_compaction_lag_ms: int = INT64_MAX
    compression_type: str = "producer"
    flush_messages: int = INT64_MAX
    producer_id_expiration_ms: int = 86400000
    max_transaction_timeout_ms: int = 900000

    def __post_init__(self) -> None:
        for name, bounds in _RANGES.items():
            in_range(getattr(self, name), name, *bounds)
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise InvalidArgumentError(f"{name} is {value!r}, not one of {', '.join(choices)}")
        if not self._policies <= {"delete", "compact"}:
            raise InvalidArgumentError(
                f"cleanup_policy is {self.cleanup_policy!r}, not delete, compact, both, or empty"
            )

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled; a compacted log's lag limits it as well."""
        if self.is_compacted:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @property
    def is_compacted(self) -> bool:
        """Whether only the last record of each key is kept."""
        return "compact" in self._policies

    @property
    def is_cut_by_retention(self) -> bool:
        """Whether time and size limit what is kept."""
        return "delete" in self._policies

    @property
    def _policies(self) -> frozenset[str]:
        policies = (policy.strip() for policy in self.cleanup_policy.split(","))
        return frozenset(policy for policy in policies if policy)
