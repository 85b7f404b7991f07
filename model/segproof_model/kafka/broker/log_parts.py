# SPDX-License-Identifier: Apache-2.0
"""What a log is made of: its segments, epochs and producers, and the offsets that bound it.

Upstream: Kafka 4.4.0, UnifiedLog. Otherwise: partition_log_releases_before_2.
Laws: LOG-6, PROD-10.
"""

from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.local_log import LocalLog
from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.language.states import State

EPOCH_FILE = "leader-epoch-checkpoint"


class LogParts(State):
    """The parts of a log, each with its own operations."""

    def __init__(self, local_log: LocalLog, log_start_offset: int) -> None:
        """Begin with parts that are not loaded: no segment, no producer."""
        self.files, self.local_log = local_log.files, local_log
        self.leader_epoch_cache = self.create_leader_epoch_cache()
        self.producer_state_manager = self.new_producer_state()
        self.log_start_offset = log_start_offset
        """The first offset that can be read, inclusive."""
        self.high_watermark_metadata = LogOffsetMetadata(0)
        self.first_unstable: LogOffsetMetadata | None = None
        """Where the earliest transaction begins that is open or not replicated, as it was when it
        was looked at last."""
        self.txn_places: tuple[LogOffsetMetadata, ...] = ()
        """Where the transactions begin that were begun since the producers were last loaded."""

    def create_leader_epoch_cache(self) -> LeaderEpochFileCache:
        """Read the epochs, whose file is made if there is none."""
        return self.kind(LeaderEpochFileCache)(self.files, self.local_log.prefix + EPOCH_FILE)

    def new_producer_state(self) -> ProducerStateManager:
        """Return a producer state that knows the names of the snapshots, and no producer yet."""
        config = self.local_log.config
        return self.kind(ProducerStateManager)(
            self.files,
            self.local_log.dir,
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            max_transaction_timeout_ms=config.max_transaction_timeout_ms,
        )

    @property
    def config(self) -> LogConfig:
        """The options."""
        return self.local_log.config

    @property
    def log_segments(self) -> LogSegments:
        """The segments."""
        return self.local_log.segments

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return self.log_segments.size_in_bytes

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.local_log.log_end_offset

    @property
    def recovery_point(self) -> int:
        """What lies below this offset is known to be durable."""
        return self.local_log.recovery_point

    @property
    def high_watermark(self) -> int:
        """The offset up to which everything is replicated, exclusive."""
        return self.high_watermark_metadata.message_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided and replicated."""
        unstable = self.first_unstable
        if unstable is not None and unstable.message_offset < self.high_watermark:
            return unstable.message_offset
        return self.high_watermark
