# SPDX-License-Identifier: Apache-2.0
"""What a log asks of batches before it takes them, and what a leader writes into them.

Mirrors: impl/segproof/kafka/log_validator.py.
Upstream: Kafka 4.4.0, LogValidator, UnifiedLog.analyzeAndValidateRecords, LogAppendInfo. Otherwise:
    log_validator_releases, log_validator_deviations.
Laws: LOG-10, LOG-21.
Not covered: writing another format than magic 2; which of two errors is told where messages are
    wrong in different ways; the delete horizon of a batch that is compressed anew, and a
    coordinator's batch without records, of which nothing would be left.
Used by: partition_log.
"""

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.states import Released

if TYPE_CHECKING:
    from segproof_model.kafka.broker.producer_append_info import AppendOrigin

__all__ = ["UNKNOWN_OFFSET", "AppendAnalysis", "LogAppendInfo", "LogValidator", "ValidationResult"]

UNKNOWN_OFFSET = -1
NO_TIMESTAMP = -1


class LogAppendInfo(NamedTuple):
    """What became of a call of append."""

    first_offset: int
    """-1 if unknown: the first batch that a follower was given is of magic 0 or 1."""
    last_offset: int
    """Inclusive."""
    max_timestamp: int
    log_append_time: int
    """The broker's time in ms that every record got; -1 if they keep their own."""
    log_start_offset: int
    valid_bytes: int
    """Bytes of the batches that were looked at, as they were given."""
    last_offset_of_first_batch: int
    """As it was given."""

    @property
    def first_or_last_offset(self) -> int:
        """The first offset; unknown, the last one of the first batch."""
        is_unknown = self.first_offset == UNKNOWN_OFFSET
        return self.last_offset_of_first_batch if is_unknown else self.first_offset


class AppendAnalysis(Released):
    """What is asked of the batches of one call of append, as they were given.

    For a leader and a follower: `self.kind(AppendAnalysis)(...).analyze_and_validate_records(...)`.
    """

    def __init__(
        self,
        records: MemoryRecords,
        origin: "AppendOrigin",
        leader_epoch: int,
        max_message_bytes: int = INT32_MAX,
    ) -> None:
        self.records, self.origin, self.leader_epoch = records, origin, leader_epoch
        self.max_message_bytes = max_message_bytes
        """The largest batch that is taken."""

    def analyze_and_validate_records(self, log_start_offset: int) -> LogAppendInfo:
        """Check every batch on its own, and the order of the offsets that a follower is given.

        What a follower finds of an epoch later than its leader's, and all behind, is not looked
        at: `valid_bytes` of the answer are taken.
        """
        raise NotImplementedError

    def refuse_order(self, named: int = INT32_MAX) -> NoReturn:
        """Refuse offsets that a follower is given for their order.

        The error names those of the first records, up to `named`; what can't be read of these is
        refused instead.
        """
        raise NotImplementedError


class ValidationResult(NamedTuple):
    """The batches as a leader writes them."""

    validated_records: bytes
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    """What goes with it into a time index: the last offset."""
    message_size_maybe_changed: bool
    """Whether the records were written anew."""


class LogValidator(Released):
    """What a leader does with the records of one call: `self.kind(LogValidator)(...)`."""

    def __init__(
        self,
        records: MemoryRecords,
        now_ms: int,
        config: LogConfig,
        leader_epoch: int,
        origin: "AppendOrigin",
    ) -> None:
        raise NotImplementedError

    def validate_messages_and_assign_offsets(self, first_offset: int) -> ValidationResult:
        """Check the records, and give them offsets, the leader's epoch and timestamps (LOG-10)."""
        raise NotImplementedError
