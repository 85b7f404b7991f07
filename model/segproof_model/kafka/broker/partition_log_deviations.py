# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with the log of a partition."""

from collections.abc import Iterator

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    offset_by_time,
    partition_log,
    read_bounds,
)
from segproof_model.kafka.broker.log_validator import LogAppendInfo
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.record_batch import RecordBatch, Time
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.language.behaviours import Behaviour, guarded, override
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse, undone_if_refused


class FailedAppendIsUndone(Behaviour):
    """An append that fails has changed nothing, but for a new segment: what its indexes refuse is
    known when it is there.
    """

    laws = ("LOG-9",)
    of_segproof = True

    class LogAppend(log_append.LogAppend):
        """A call."""

        is_rolled = False

        @override
        def append_records(self) -> LogAppendInfo:
            size, refused = self.log.size, None
            with undone_if_refused(self.log):
                try:
                    return super().append_records()
                except Refused as error:
                    if not self.is_rolled or self.log.size != size:
                        raise
                    refused = error
            raise refused

        @override
        def maybe_roll(self) -> LogSegment:
            active = self.local_log.segments.active_segment
            segment = super().maybe_roll()
            self.is_rolled = segment is not active
            return segment


class AppendIsCheckedFirst(Behaviour):
    """An append is refused before anything is written, as far as that can be known then."""

    laws = ("LOG-9", "LOG-10")
    of_segproof = True

    class LogAppend(log_append.LogAppend):
        """A call."""

        is_checked = False

        @override
        def append_records(self) -> LogAppendInfo:
            self.check_size()
            for batch in self.records.batches():
                if not batch.is_legacy and min(batch.partition_leader_epoch, batch.base_offset) < 0:
                    refuse(ErrorKind.INVALID_ARGUMENT)
            if self.local_log.segments.active_segment.should_roll(self.roll_params()):
                self.check_roll(max(self.base_of_next(), self.log.log_end_offset))
            self.check_producers()
            self.is_checked = True
            return super().append_records()

        def check_roll(self, base_offset: int) -> None:
            """Refuse a new segment that cannot begin at this base offset, or hold the batches."""
            self.local_log.check_roll(base_offset)
            if self.info.last_offset - base_offset > INT32_MAX:
                refuse(ErrorKind.SEGMENT_OVERFLOW)

        @override
        def check_producers(self) -> None:
            if not self.is_checked:
                super().check_producers()


class FailedCutEndsLog(Behaviour):
    """A truncation that fails leaves a log that ends with what is left of it."""

    laws = ("LOG-13",)
    of_segproof = True

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_within(self, target_offset: int) -> None:
            deleted = self.log_segments.higher_segments(target_offset)
            size = self.size - sum(segment.size for segment in deleted)
            try:
                super().truncate_within(target_offset)
            except Refused:
                if self.log_end_offset > target_offset:
                    self.end_log_after(deleted, target_offset, is_cut=self.size < size)
                raise

        def end_log_after(
            self, deleted: tuple[LogSegment, ...], target_offset: int, is_cut: bool
        ) -> None:
            """Let the log end where it is cut, or else before the segments that are deleted."""
            if is_cut or deleted:
                end = target_offset
                if not is_cut:
                    end = min(deleted[0].base_offset, self.log_end_offset)
                self.local_log.update_log_end_offset(end)
                self.begin_log_at(min(end, self.log_start_offset))
            self.delete_producer_snapshots(deleted)


class SplitEndsLog(Behaviour):
    """A split of the active segment leaves a log that ends in its last part."""

    laws = ("LOG-19",)
    of_segproof = True

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def split_overflowed_segment(self, base_offset: int) -> tuple[int, ...]:
            is_active = base_offset == self.log_segments.active_segment.base_offset
            parts = super().split_overflowed_segment(base_offset)
            if is_active:
                self.local_log.update_log_end_offset(self.log_end_offset)
            return parts


class FailedRollRemovesNothing(Behaviour):
    """A roll that cannot end the active segment removes no files that stand in its way."""

    laws = ("LOG-12",)
    of_segproof = True

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def begin_segment(self, base_offset: int) -> None:
            self.segments.active_segment.on_become_inactive_segment()
            super().begin_segment(base_offset)


class FoundBoundDoesNotMove(Behaviour):
    """A high watermark or first unstable offset whose place is looked up stays as it is."""

    laws = ("LOG-7", "PROD-10")
    of_segproof = True

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        @override
        def maybe_increment_first_unstable_offset(self) -> None:
            self.local_log.check_if_memory_mapped_buffer_closed()
            offset = self.log.producer_state_manager.first_unstable_offset()
            self.log.first_unstable = None
            if offset is not None:
                bound = max(offset, self.log.log_start_offset)
                self.log.first_unstable = LogOffsetMetadata(bound)

        @override
        def fetch_high_watermark_metadata(self) -> LogOffsetMetadata:
            self.local_log.check_if_memory_mapped_buffer_closed()
            known = self.log.high_watermark_metadata
            is_placed = known.segment_base_offset >= 0
            return known if is_placed else self.maybe_convert_to_offset_metadata(known[0])

        @override
        def fetch_last_stable_offset_metadata(self) -> LogOffsetMetadata:
            high_watermark = self.fetch_high_watermark_metadata()
            unstable = self.log.first_unstable
            if unstable is None or unstable.message_offset >= self.log.high_watermark:
                return high_watermark
            return self.placed(unstable)

        @override
        def placed(self, unstable: LogOffsetMetadata) -> LogOffsetMetadata:
            return self.maybe_convert_to_offset_metadata(unstable.message_offset)


class BoundLeavesRemovedSegment(Behaviour):
    """A high watermark before a gap loses its place in a segment behind it that is removed."""

    laws = ("LOG-6",)
    of_segproof = True

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        @override
        def update_high_watermark_with_log_end_offset(self) -> None:
            super().update_high_watermark_with_log_end_offset()
            base_offset = self.log.high_watermark_metadata.segment_base_offset
            if not self.local_log.segments.contains(base_offset):
                self.log.high_watermark_metadata = LogOffsetMetadata(self.log.high_watermark)


class TruncationMovesUnstable(Behaviour):
    """A truncation below which the high watermark lies looks anew at the first unstable offset."""

    laws = ("LOG-13", "PROD-10")
    of_segproof = True

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_within(self, target_offset: int) -> None:
            super().truncate_within(target_offset)
            self.bounds.maybe_increment_first_unstable_offset()


class AbortedSinceOffset(Behaviour):
    """Aborted transactions that are asked for alone are those that ended since the offset that is
    asked for, not since the log start.
    """

    laws = ("LOG-8",)
    of_segproof = True

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def collect_aborted_transactions(
            self, start_offset: int, upper_bound_offset: int
        ) -> list[AbortedTxn]:
            segment = self.log_segments.floor_segment(start_offset)
            if segment is None:
                return []
            return self.local_log.collect_aborted_transactions(
                start_offset, upper_bound_offset, segment
            )


class NewestBatchIsReadWhole(Behaviour):
    """Of the batch with the largest timestamp every record is read, so that damage behind the one
    that is asked for is seen.
    """

    laws = ("LOG-16",)
    of_segproof = True

    class OffsetByTime(offset_by_time.OffsetByTime):
        """A search."""

        @override
        def times_of(self, batch: RecordBatch) -> Iterator[Time]:
            return batch.times()


def check_open(log: partition_log.PartitionLog) -> None:
    """Refuse any use of a log that was closed."""
    if log.local_log.is_closed:
        refuse(ErrorKind.UNMAPPED)


class ClosedLogIsClosed(Behaviour):
    """Every use of a closed log raises the unmapped error, but closing it again does nothing."""

    laws = ("LOG-5", "LOG-9", "LOG-11", "LOG-13", "LOAD-16")
    of_segproof = True

    @guarded(
        "append_as_leader append_as_follower roll flush truncate_to truncate_fully_and_start_at"
        " split_overflowed_segment update_high_watermark maybe_increment_log_start_offset read"
        " collect_aborted_transactions fetch_offset_by_timestamp delete_old_segments"
        " remove_expired_producers delete",
        check_open,
    )
    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def close(self) -> None:
            if not self.local_log.is_closed:
                super().close()
