# SPDX-License-Identifier: Apache-2.0
"""The options of one log, with Kafka's names and defaults.

Upstream: Kafka, LogConfig and ProducerStateManagerConfig (4.3.1).
Not covered: options of remote storage. Segments may be as small as in Kafka's own tests, which
    matters to those who test; a broker since 4.0 wants at least 1 MiB.
"""

from dataclasses import dataclass, field, fields
from typing import Literal

from segproof.errors import InvalidArgumentError
from segproof.integers import INT32_MAX, INT64_MAX, INT64_MIN, in_range

_CHOICES = {
    "message_timestamp_type": ("CreateTime", "LogAppendTime"),
    "compression_type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
}


def _number(default: int, low: int, high: int) -> int:
    """Declare a number by its default, and its least and greatest value, both inclusive."""
    return field(default=default, metadata={"bounds": (low, high)})


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The options of one log.

    Raises: InvalidArgumentError for a value outside its range, naming the option and the range.
    """

    segment_bytes: int = _number(1073741824, 14, INT32_MAX)
    """A segment that would grow beyond these bytes is rolled."""
    segment_ms: int = _number(604800000, 1, INT64_MAX)
    segment_jitter_ms: int = _number(0, 0, INT64_MAX)
    """Exclusive bound of the random time by which a segment is rolled earlier; 0: none."""
    segment_index_bytes: int = _number(10485760, 0, INT32_MAX)
    """Bytes preallocated for each index."""
    index_interval_bytes: int = _number(4096, 0, INT32_MAX)
    preallocate: bool = False
    max_message_bytes: int = _number(1048588, 0, INT32_MAX)
    """The largest batch that a leader takes, in bytes, inclusive."""
    retention_ms: int = _number(604800000, -1, INT64_MAX)
    """-1: without limit."""
    retention_bytes: int = _number(-1, INT64_MIN, INT64_MAX)
    """Negative: without limit."""
    file_delete_delay_ms: int = _number(60000, 0, INT64_MAX)
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    message_timestamp_before_max_ms: int = _number(INT64_MAX, 0, INT64_MAX)
    message_timestamp_after_max_ms: int = _number(3600000, 0, INT64_MAX)
    cleanup_policy: str = "delete"
    """`delete`, `compact`, both with a comma between; or empty: neither, as 4.3.1 allows."""
    max_compaction_lag_ms: int = _number(INT64_MAX, 1, INT64_MAX)
    compression_type: str = "producer"
    flush_messages: int = _number(INT64_MAX, 1, INT64_MAX)
    producer_id_expiration_ms: int = _number(86400000, 1, INT32_MAX)
    max_transaction_timeout_ms: int = _number(900000, 1, INT32_MAX)

    def __post_init__(self) -> None:
        for option in fields(self):
            if option.metadata:
                in_range(getattr(self, option.name), option.name, *option.metadata["bounds"])
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
