# SPDX-License-Identifier: Apache-2.0
"""The log of one partition: its segments, epochs, producers, and the offsets that bound them.

Upstream: Kafka 4.4.0, UnifiedLog. Otherwise: partition_log_releases, those before 2.8, 2.3 and 2,
    partition_log_deviations, log_loader_deviations.
Laws: LOG-5, LOG-11 to LOG-14, LOAD-1 to LOAD-17, PROD-12.
Not covered: remote storage, partition.metadata, a rename to `-delete`.
"""

from collections.abc import Mapping

from segproof_model.kafka.broker.local_log import LocalLog
from segproof_model.kafka.broker.log_append import LogAppend
from segproof_model.kafka.broker.log_loader import LogLoader
from segproof_model.kafka.broker.log_retention import LogRetention
from segproof_model.kafka.broker.log_steps import LogSteps
from segproof_model.kafka.broker.log_validator import LogAppendInfo
from segproof_model.kafka.broker.offset_by_time import OffsetByTime
from segproof_model.kafka.broker.producer_append_info import AppendOrigin
from segproof_model.kafka.broker.read_bounds import Isolation
from segproof_model.kafka.broker.segment_replacing import SegmentReplacing
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class PartitionLog(LogSteps):
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
        local_log = self.kind(LocalLog)(files, dir, config, codecs=codecs, draw=draw)
        super().__init__(local_log, log_start_offset)
        self.kind(LogLoader)(self, modified_ms or {}).load(recovery_point, last_shutdown_clean)
        self.begin_at_start()

    def begin_at_start(self) -> None:
        """Let what bounds the log begin at its start; replication tells the high watermark."""
        self.update_log_start_offset(self.log_start_offset)
        self.bounds.update_high_watermark_metadata(LogOffsetMetadata(self.log_start_offset))

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

    def split_overflowed_segment(self, base_offset: int) -> tuple[int, ...]:
        """Split a segment that overflows; return the base offsets of its parts (LOG-19, LOG-20).

        No such segment raises invalid-argument.
        """
        segment = self.log_segments.get(base_offset)
        if segment is None:
            refuse(ErrorKind.INVALID_ARGUMENT)
        return self.kind(SegmentReplacing)(self).split(segment)

    # --- the bounds ----------------------------------------------------------------------------

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, not outside of the log; return what it has become."""
        return self.bounds.update_high_watermark(high_watermark)

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
