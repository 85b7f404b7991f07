# SPDX-License-Identifier: Apache-2.0
"""The steps that appending, cutting, deleting and loading share: a roll, a flush, a later start.

Upstream: Kafka 4.4.0, UnifiedLog. Otherwise: partition_log_releases, those before 2.8, 2.3 and 2.
Laws: LOG-11, LOG-12, LOG-14, PROD-14.
"""

from collections.abc import Iterable

from segproof_model.kafka.broker.local_log import DELETED_SUFFIX
from segproof_model.kafka.broker.log_parts import LogParts
from segproof_model.kafka.broker.producer_rebuild import ProducerRebuild
from segproof_model.kafka.broker.read_bounds import ReadBounds
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class LogSteps(LogParts):
    """A log as the classes of its larger operations see it."""

    @property
    def bounds(self) -> ReadBounds:
        """Up to where the log may be read."""
        return self.kind(ReadBounds)(self)

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

    # --- the start -----------------------------------------------------------------------------

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

    # --- producers -----------------------------------------------------------------------------

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
