# SPDX-License-Identifier: Apache-2.0
"""The log of one partition: its segments, epochs, producers, and the offsets that bound them.

Mirrors: impl/segproof/kafka/partition_log.py.
Upstream: Kafka 4.4.0, UnifiedLog. Otherwise: partition_log_releases, partition_log_deviations.
Laws: LOG-1 to LOG-21, LOAD-1 to LOAD-17, PROD-14.
Not covered: remote storage, partition.metadata, a rename to `-delete`.
Used by: log_manager, the harness.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.local_log import LocalLog
from segproof_model.kafka.broker.log_loader import LogLoader
from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.broker.log_validator import LogAppendInfo
from segproof_model.kafka.broker.producer_append_info import AppendOrigin
from segproof_model.kafka.broker.producer_rebuild import ProducerRebuild
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.language.files import Files
from segproof_model.language.states import State

__all__ = ["LogAppendInfo", "PartitionLog"]

EPOCH_FILE = "leader-epoch-checkpoint"
Isolation = Literal["log_end", "high_watermark", "txn_committed"]


class PartitionLog(State):
    """A log."""

    not_compared = frozenset({"txn_places"})

    def __init__(
        self,
        files: Files,
        dir: str,  # noqa: A002 - the name that Kafka gives it
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        last_shutdown_clean: bool = True,
        *,
        codecs: Codecs = NO_CODECS,
        draw: int = 0,
        modified_ms: Mapping[str, int] | None = None,
    ) -> None:
        """Load the log of a directory, or begin one (LOAD-1 to LOAD-17).

        `log_start_offset` and `recovery_point` are what the checkpoints say, `modified_ms` when the
        logs were changed, by name.
        """
        self.files = files
        self.local_log = self.kind(LocalLog)(files, dir, config, codecs=codecs, draw=draw)
        self.leader_epoch_cache = self.kind(LeaderEpochFileCache)(
            files, self.local_log.prefix + EPOCH_FILE
        )
        self.producer_state_manager = self.new_producer_state()
        self.log_start_offset = log_start_offset
        """The first offset that can be read, inclusive."""
        self.high_watermark_metadata = LogOffsetMetadata(0)
        self.first_unstable: LogOffsetMetadata | None = None
        """Where the earliest transaction begins that is open or not replicated, as it was when it
        was looked at last."""
        self.txn_places: tuple[LogOffsetMetadata, ...] = ()
        """Where the transactions begin that were begun since the producers were last loaded."""
        # The loader leaves the segments, the log end and the recovery point in the local log, the
        # log start here, and epochs and producers as they are then.
        self.kind(LogLoader)(self, modified_ms or {}).load(recovery_point, last_shutdown_clean)
        self.begin_at_start()

    def new_producer_state(self) -> ProducerStateManager:
        """Return a producer state that lists the snapshots, and knows nothing yet."""
        config = self.local_log.config
        return self.kind(ProducerStateManager)(
            self.files,
            self.local_log.dir,
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            max_transaction_timeout_ms=config.max_transaction_timeout_ms,
        )

    def begin_at_start(self) -> None:
        """Let what bounds the log begin at its start; replication tells the high watermark."""
        raise NotImplementedError

    @property
    def log_segments(self) -> LogSegments:
        """The segments."""
        return self.local_log.segments

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

    def rebuild_producer_state(self, last_offset: int, is_clean: bool = False) -> None:
        """Let the producer state be that of the log up to the offset, exclusive (PROD-14)."""
        self.kind(ProducerRebuild)(
            self.producer_state_manager, self.log_segments, self.log_start_offset
        ).rebuild(last_offset, is_clean)

    def delete_producer_snapshots(self, segments: Iterable[LogSegment]) -> None:
        """Rename the snapshots at the beginning of these segments; they go later."""
        raise NotImplementedError

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        origin: AppendOrigin = "client",
        transaction_version: int = -1,
    ) -> LogAppendInfo:
        """Give the records offsets and append them."""
        raise NotImplementedError

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches that have their offsets (LOG-21)."""
        raise NotImplementedError

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: Isolation = "log_end",
        min_one_message: bool = True,
    ) -> FetchDataInfo:
        """Return the batches from the one that reaches the offset on (LOG-5 to LOG-8)."""
        raise NotImplementedError

    def fetch_offset_by_timestamp(self, target_timestamp: int) -> TimestampAndOffset | None:
        """Return the first record at or after the timestamp, or None (LOG-15, LOG-16)."""
        raise NotImplementedError

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """Return the aborted transactions that meet [start, upper) (LOG-8)."""
        raise NotImplementedError

    # roll(expected_next_offset=None) -> int, flush(force_flush_active_segment=False),
    # flush_up_to(offset, more=0), truncate_to(target_offset) -> bool,
    # truncate_fully_and_start_at(new_offset, log_start_offset=None),
    # update_high_watermark(high_watermark) -> int, maybe_increment_log_start_offset(new) -> bool,
    # delete_old_segments() -> int, delete_pending_files(), remove_expired_producers(),
    # split_overflowed_segment(base_offset) -> tuple[int, ...], close(),
    # prepare_active_segment_for_close(), close_handlers(), delete()
