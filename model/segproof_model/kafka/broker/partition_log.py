# SPDX-License-Identifier: Apache-2.0
"""The log of one partition: its segments, epochs, producers, and the offsets that bound them.

Upstream: Kafka 4.4.0, UnifiedLog. Otherwise: partition_log_releases, those before 2.8, 2.3 and 2,
    partition_log_deviations, log_loader_deviations.
Laws: LOG-5, LOG-11 to LOG-14, LOAD-1 to LOAD-17, PROD-12.
Not covered: remote storage, partition.metadata, a rename to `-delete`.
"""

from collections.abc import Iterable, Mapping

from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.local_log import DELETED_SUFFIX, LocalLog
from segproof_model.kafka.broker.log_append import LogAppend
from segproof_model.kafka.broker.log_loader import LogLoader
from segproof_model.kafka.broker.log_retention import LogRetention
from segproof_model.kafka.broker.log_segments import LogSegments
from segproof_model.kafka.broker.log_validator import LogAppendInfo
from segproof_model.kafka.broker.offset_by_time import OffsetByTime
from segproof_model.kafka.broker.producer_append_info import AppendOrigin
from segproof_model.kafka.broker.producer_rebuild import ProducerRebuild
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.broker.read_bounds import Isolation, ReadBounds
from segproof_model.kafka.broker.segment_replacing import SegmentReplacing
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

__all__ = ["PartitionLog"]

EPOCH_FILE = "leader-epoch-checkpoint"


class PartitionLog(State):
    """A log.

    >>> from segproof_model.kafka.format.batch_writing import write_batch
    >>> from segproof_model.kafka.format.record import Record
    >>> log = PartitionLog(Files(), "", LogConfig(segment_index_bytes=96))
    >>> batch = write_batch([Record(0, 1000, None, b"hello")], base_offset=0)
    >>> log.append_as_leader(batch, 5).last_offset
    0
    >>> log.log_end_offset, log.leader_epoch_cache.latest_epoch(), log.high_watermark
    (1, 5, 0)
    """

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
        self.kind(LogLoader)(self, modified_ms or {}).load(recovery_point, last_shutdown_clean)
        self.begin_at_start()

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

    def begin_at_start(self) -> None:
        """Let what bounds the log begin at its start; replication tells the high watermark."""
        self.update_log_start_offset(self.log_start_offset)
        self.bounds.update_high_watermark_metadata(LogOffsetMetadata(self.log_start_offset))

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

    # --- writing -------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        origin: AppendOrigin = "client",
        transaction_version: int = -1,
    ) -> LogAppendInfo:
        """Give the records offsets and append them (LOG-9 to LOG-11).

        `origin` is "coordinator" for markers of transactions, which say their version.
        """
        call = self.kind(LogAppend)(self, records, leader_epoch, origin, transaction_version)
        return call.append()

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches that have their offsets (LOG-9, LOG-21).

        Batches from the first of a later epoch on are left out.
        """
        return self.kind(LogAppend)(self, records, leader_epoch, "replication").append()

    def roll(self, expected_next_offset: int | None = None) -> int:
        """Begin a new segment; return its base offset (LOG-11, LOG-12).

        A snapshot of the producers is written there, and what lies before is made durable.
        """
        base_offset = self.local_log.roll(expected_next_offset or 0)
        self.producer_state_manager.update_map_end_offset(base_offset)
        self.producer_state_manager.take_snapshot()
        self.bounds.update_high_watermark_with_log_end_offset()
        self.flush_up_to(base_offset)
        return base_offset

    def flush(self, force_flush_active_segment: bool = False) -> None:
        """Make the log durable from the recovery point on, and move that to the log's end.

        An active segment that is empty is flushed only if it is forced.
        """
        self.flush_up_to(self.log_end_offset, force_flush_active_segment)

    def flush_up_to(self, offset: int, including_offset: bool = False) -> None:
        """Make the segments durable that begin before the offset, or also at it."""
        flush_offset = offset + 1 if including_offset else offset
        if flush_offset > self.recovery_point:
            self.local_log.flush(flush_offset)
            self.local_log.mark_flushed(offset)

    # --- cutting -------------------------------------------------------------------------------

    def truncate_to(self, target_offset: int) -> bool:
        """Let the log end at the offset; return whether anything was cut (LOG-13, LOG-14)."""
        if target_offset < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if target_offset >= self.log_end_offset:
            # There may be an epoch that began at the end, of which nothing was written.
            self.leader_epoch_cache.truncate_from_end(self.log_end_offset)
            return False
        self.cut_at(target_offset)
        return True

    def cut_at(self, target_offset: int) -> None:
        """Cut what lies at the offset and behind it."""
        self.local_log.check_if_memory_mapped_buffer_closed()
        if target_offset < self.log_segments.base_offsets()[0]:
            self.truncate_fully_and_start_at(target_offset)
        else:
            self.truncate_within(target_offset)

    def truncate_within(self, target_offset: int) -> None:
        """Cut at an offset that does not lie before the first segment."""
        deleted = self.local_log.truncate_to(target_offset)
        self.begin_log_at(min(target_offset, self.log_start_offset))
        self.delete_producer_snapshots(deleted)
        self.leader_epoch_cache.truncate_from_end(target_offset)
        self.rebuild_producer_state(target_offset)
        self.bounds.update_high_watermark_with_log_end_offset()

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Delete everything, and begin anew at the offset (LOG-14).

        The start of the log may lie before it, where other copies have what is gone here.
        """
        self.local_log.truncate_fully_and_start_at(new_offset)
        self.leader_epoch_cache.clear_and_flush()
        self.producer_state_manager.truncate_fully_and_start_at(new_offset)
        self.begin_log_at(new_offset if log_start_offset is None else log_start_offset)
        self.rebuild_producer_state(new_offset)
        self.update_high_watermark(new_offset)

    def begin_log_at(self, offset: int) -> None:
        """Let a log that was cut begin at the offset."""
        self.log_start_offset = offset

    def rebuild_producer_state(self, last_offset: int, is_clean: bool = False) -> None:
        """Let the producer state be that of the log up to the offset, exclusive (PROD-14).

        After a clean stop that left no snapshot nothing is read. The state that ends there already
        stays, and with it what is known of the places of its transactions.
        """
        producers = self.producer_state_manager
        if producers.map_end_offset != last_offset or not producers.ongoing_txns:
            self.txn_places = ()
        self.kind(ProducerRebuild)(producers, self.log_segments, self.log_start_offset).rebuild(
            last_offset, is_clean
        )

    def split_overflowed_segment(self, base_offset: int) -> tuple[int, ...]:
        """Split a segment that overflows; return the base offsets of its parts (LOG-19, LOG-20).

        No such segment raises invalid-argument.
        """
        segment = self.log_segments.get(base_offset)
        if segment is None:
            refuse(ErrorKind.INVALID_ARGUMENT)
        return self.kind(SegmentReplacing)(self).split(segment)

    def delete_producer_snapshots(self, segments: Iterable[LogSegment]) -> None:
        """Rename the snapshots at the beginning of these segments; they go later."""
        producers = self.producer_state_manager
        names = []
        for segment in segments:
            name = producers.snapshots.get(segment.base_offset)
            if producers.remove_and_mark_snapshot_for_deletion(segment.base_offset) is not None:
                names.append(f"{name}{DELETED_SUFFIX}")
        if names:
            self.local_log.delete_files_later(names)

    # --- the bounds ----------------------------------------------------------------------------

    @property
    def bounds(self) -> ReadBounds:
        """Up to where the log may be read."""
        return self.kind(ReadBounds)(self)

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, not outside of the log; return what it has become."""
        return self.bounds.update_high_watermark(high_watermark)

    def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
        """Let the log begin later; return whether it does.

        Beyond the high watermark raises out-of-range.
        """
        if new_log_start_offset > self.high_watermark:
            refuse(ErrorKind.OUT_OF_RANGE)
        self.local_log.check_if_memory_mapped_buffer_closed()
        if new_log_start_offset <= self.log_start_offset:
            return False
        self.increment_log_start_offset(new_log_start_offset)
        return True

    def increment_log_start_offset(self, offset: int) -> None:
        """Let the log begin later, and forget what was before."""
        self.update_log_start_offset(offset)
        self.leader_epoch_cache.truncate_from_start(offset)
        self.producer_state_manager.on_log_start_offset_incremented(offset)
        self.bounds.maybe_increment_first_unstable_offset()

    def update_log_start_offset(self, offset: int) -> None:
        """Let the log begin at the offset, and be durable up to there."""
        self.log_start_offset = offset
        self.local_log.recovery_point = max(self.recovery_point, offset)

    # --- reading -------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: Isolation = "log_end",
        min_one_message: bool = True,
    ) -> FetchDataInfo:
        """Return the batches from the one that reaches the offset on (LOG-5 to LOG-8).

        Not beyond the end of the log, the high watermark or the last stable offset. At least one
        batch, even if it is larger than `max_length` bytes, if `min_one_message`.
        """
        if start_offset < self.log_start_offset:
            refuse(ErrorKind.OUT_OF_RANGE)
        bound = self.bounds.of(isolation)
        with_aborted = isolation == "txn_committed"
        return self.local_log.read(start_offset, max_length, min_one_message, bound, with_aborted)

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """Return the aborted transactions that ended since the log start, up to a bound (LOG-8).

        The search begins with the segment of the start.
        """
        segment = self.log_segments.floor_segment(start_offset)
        if segment is None:
            return []
        return self.local_log.collect_aborted_transactions(
            self.log_start_offset, upper_bound_offset, segment
        )

    def fetch_offset_by_timestamp(self, target_timestamp: int) -> TimestampAndOffset | None:
        """Return the first record at or after the timestamp, or None (LOG-15, LOG-16).

        -1: the log's end, -2 and -4: its start, -3: the first record with the largest timestamp.
        """
        return self.kind(OffsetByTime)(self).fetch(target_timestamp)

    # --- what is done from time to time --------------------------------------------------------

    def delete_old_segments(self) -> int:
        """Delete segments at the beginning that nobody needs; return how many (LOG-17, LOG-18)."""
        return self.kind(LogRetention)(self).delete_old_segments()

    def remove_expired_producers(self) -> None:
        """Forget the producers that are silent for too long (PROD-12)."""
        self.producer_state_manager.remove_expired_producers(self.files.now_ms)

    def delete_pending_files(self) -> None:
        """Do what is scheduled: write the epochs, and remove `.deleted` files after their delay."""
        self.leader_epoch_cache.run_scheduled_write()
        self.local_log.delete_due_files()

    # --- the end -------------------------------------------------------------------------------

    def prepare_active_segment_for_close(self) -> None:
        """Write and cut in the active segment what is left to be written."""
        self.log_segments.active_segment.on_become_inactive_segment()

    def close(self) -> None:
        """Write a snapshot of the producers, and close every segment."""
        self.local_log.check_if_memory_mapped_buffer_closed()
        self.producer_state_manager.take_snapshot()
        self.local_log.close()

    def close_handlers(self) -> None:
        """Give every file up as it is."""
        self.local_log.close_handlers()

    def delete(self) -> None:
        """Remove every file of the log's directory."""
        self.local_log.delete_all_files()
        self.leader_epoch_cache.clear()
