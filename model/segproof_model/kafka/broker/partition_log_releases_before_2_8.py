# SPDX-License-Identifier: Apache-2.0
"""What releases from 2.2 to 2.7 do otherwise with the log of a partition, newest first.

Used by: releases.
"""

from collections.abc import Sequence
from typing import Any

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    log_retention,
    partition_log,
    producer_rebuild,
)
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class HighWatermarkAtEndHasNoPlace(Behaviour):
    """A high watermark that is set to the end of the log, or beyond, gets no place before a read
    looks it up.
    """

    laws = ("LOG-6",)
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def update_high_watermark(self, high_watermark: int) -> int:
            bounded = max(self.log_start_offset, min(high_watermark, self.log_end_offset))
            self.update_high_watermark_metadata(LogOffsetMetadata(bounded))
            return bounded


class StableBoundIsPlacedAlone(Behaviour):
    """A read up to the last stable offset looks the place of the high watermark up only where that
    is the bound.
    """

    laws = ("LOG-6",)
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def fetch_last_stable_offset_metadata(self) -> LogOffsetMetadata:
            self.local_log.check_if_memory_mapped_buffer_closed()
            unstable = self.first_unstable
            if unstable is None or unstable.message_offset >= self.high_watermark:
                return super().fetch_last_stable_offset_metadata()
            if unstable.segment_base_offset < 0:
                unstable = self.first_unstable = self.placed(unstable.message_offset)
            return unstable


class ReadAtBoundGoesOn(Behaviour):
    """A read that begins at the log end gives no records before its bound is looked up, or the log
    start; one that begins at another bound reads what the segments have up to there.
    """

    laws = ("LOG-5", "LOG-6")
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def read(
            self,
            start_offset: int,
            max_length: int,
            isolation: partition_log.Isolation = "log_end",
            min_one_message: bool = True,
        ) -> FetchDataInfo:
            if start_offset == self.log_end_offset:
                aborted = () if isolation == "txn_committed" else None
                return FetchDataInfo(self.local_log.log_end, None, False, aborted)
            return super().read(start_offset, max_length, isolation, min_one_message)

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def read(
            self,
            start_offset: int,
            max_length: int,
            min_one_message: bool,
            bound: LogOffsetMetadata,
            with_aborted: bool,
        ) -> FetchDataInfo:
            if start_offset == bound.message_offset != self.log_end_offset:
                bound = bound._replace(message_offset=start_offset + 1)
            return super().read(start_offset, max_length, min_one_message, bound, with_aborted)


class TruncationAtEndKeepsEpochs(Behaviour):
    """A truncation at the log end or behind it leaves the epochs as they are."""

    laws = ("LOG-13",)
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_to(self, target_offset: int) -> bool:
            return target_offset < self.log_end_offset and super().truncate_to(target_offset)


class BoundsFollowEndAtOnce(Behaviour):
    """Wherever the log end moves, the high watermark is fitted to it first, then the recovery
    point: so in a truncation, before epochs and producers are cut.
    """

    laws = ("LOG-13", "PROD-10")
    releases = up_to("2.4.1")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def update_log_end_offset(self, offset: int) -> None:
            recovery_point = self.recovery_point
            super().update_log_end_offset(offset)
            self.recovery_point = recovery_point

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def update_high_watermark_with_log_end_offset(self) -> None:
            super().update_high_watermark_with_log_end_offset()
            self.fit_recovery_point()

        def fit_recovery_point(self) -> None:
            """Let the recovery point not lie behind the log end."""
            self.local_log.recovery_point = min(self.recovery_point, self.log_end_offset)

        @override
        def truncate_within(self, target_offset: int) -> None:
            deleted = self.local_log.truncate_to(target_offset)
            self.update_high_watermark_with_log_end_offset()
            self.begin_log_at(min(target_offset, self.log_start_offset))
            self.delete_producer_snapshots(deleted)
            self.leader_epoch_cache.truncate_from_end(target_offset)
            self.rebuild_producer_state(target_offset)
            self.maybe_increment_first_unstable_offset()

        @override
        def truncate_fully_and_start_at(
            self, new_offset: int, log_start_offset: int | None = None
        ) -> None:
            super().truncate_fully_and_start_at(new_offset, log_start_offset)
            self.fit_recovery_point()


class BoundsFollowStart(Behaviour):
    """Where a truncation lets the log begin at another offset, the high watermark and the recovery
    point are not left below it.
    """

    laws = ("LOG-14", "PROD-10")
    releases = up_to("2.4.1", since="2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def begin_log_at(self, offset: int) -> None:
            self.update_log_start_offset(offset)
            if self.high_watermark < offset:
                self.update_high_watermark_metadata(LogOffsetMetadata(offset))


class FullTruncationOnlyForgets(Behaviour):
    """A log that begins anew only forgets its producers, and lowers its high watermark to the end."""

    laws = ("LOG-14", "PROD-14")
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_fully_and_start_at(
            self, new_offset: int, log_start_offset: int | None = None
        ) -> None:
            self.local_log.truncate_fully_and_start_at(new_offset)
            self.update_high_watermark_with_log_end_offset()
            self.leader_epoch_cache.clear_and_flush()
            self.producer_state_manager.truncate_fully_and_start_at(new_offset)
            self.maybe_increment_first_unstable_offset()
            self.begin_log_at(new_offset if log_start_offset is None else log_start_offset)


class FollowerSizeIsLimited(Behaviour):
    """A follower refuses batches above max.message.bytes, too."""

    laws = ("LOG-10", "LOG-21")
    releases = up_to("2.4.1")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def max_message_bytes(self) -> int:
            return self.config.max_message_bytes


class RemovedSnapshotStays(Behaviour):
    """The snapshot at the beginning of a removed segment stays, with its name."""

    laws = ("LOAD-1",)
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def delete_producer_snapshots(self, segments: Any) -> None:
            pass


class SegmentsAreRemovedOneByOne(Behaviour):
    """Segments are removed one after the other: none behind one whose files can't be renamed."""

    laws = ("LOG-13", "LOG-14", "LOG-17")
    releases = up_to("2.2.2")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def remove_and_delete_segments(self, segments: Sequence[LogSegment]) -> None:
            for segment in segments:
                super().remove_and_delete_segments([segment])


class RebuildEndsInEachSegment(Behaviour):
    """Building the producer state anew looks its end up in each segment that it reads, behind where
    it begins there.
    """

    laws = ("PROD-14",)
    releases = up_to("2.2.2")

    class ProducerRebuild(producer_rebuild.ProducerRebuild):
        """What builds a producer state."""

        @override
        def read(self, segment: LogSegment, start: int, last_offset: int) -> FetchDataInfo | None:
            first = segment.translate_offset(start)
            if first is None or last_offset < start:
                return None
            end = segment.translate_offset(last_offset, first.position)
            position = segment.size if end is None else end.position
            return segment.read(start, INT32_MAX, position)


class ReplicaBound(LogOffsetMetadata):
    """The end of the log, and the offset up to which the replica lets a reader come."""

    below: int | None = None
    """Exclusive; None: the log's end."""


class ReplicaKnowsHighWatermark(Behaviour):
    """The log does not know the high watermark: its replica does, and tells it, whatever it is.

    It follows neither the log start nor the log end. A read is given an offset that no batch
    reaches; where the first unstable offset is, its segment says. Retention lets the log begin
    beyond it, too, and the recovery point stays below the log start.
    """

    laws = ("LOG-6", "LOG-13", "PROD-10")
    releases = up_to("2.2.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def begin_at_start(self) -> None:
            self.update_high_watermark_metadata(LogOffsetMetadata(self.log_start_offset))

        @override
        def update_high_watermark(self, high_watermark: int) -> int:
            self.update_high_watermark_metadata(LogOffsetMetadata(high_watermark))
            return high_watermark

        @override
        def update_high_watermark_metadata(self, metadata: LogOffsetMetadata) -> None:
            self.high_watermark_metadata = metadata
            self.producer_state_manager.on_high_watermark_updated(metadata.message_offset)
            self.maybe_increment_first_unstable_offset()

        @override
        def update_high_watermark_with_log_end_offset(self) -> None:
            pass

        @override
        def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
            if new_log_start_offset > self.log_end_offset:
                refuse(ErrorKind.OUT_OF_RANGE)
            return super().maybe_increment_log_start_offset(new_log_start_offset)

        @override
        def update_log_start_offset(self, offset: int) -> None:
            self.log_start_offset = offset

        @override
        def bound_of(self, isolation: partition_log.Isolation) -> LogOffsetMetadata:
            bound = ReplicaBound(*self.local_log.log_end)
            if isolation != "log_end":
                is_high = isolation == "high_watermark"
                bound.below = self.high_watermark if is_high else self.last_stable_offset
            return bound

        @override
        def placed(self, offset: int) -> LogOffsetMetadata:
            segment = self.log_segments.floor_segment(offset)
            found = None if segment is None else segment.translate_offset(offset)
            if segment is None or found is None:
                refuse(ErrorKind.UNMAPPED)  # what trips over a null
            return LogOffsetMetadata(offset, segment.base_offset, found.position)

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def update_log_end_offset(self, offset: int) -> None:
            recovery_point, is_cut = self.recovery_point, offset < self.log_end_offset
            super().update_log_end_offset(offset)
            self.recovery_point = min(recovery_point, offset) if is_cut else recovery_point

        @override
        def read_segment(
            self,
            segment: LogSegment,
            start_offset: int,
            max_length: int,
            min_one_message: bool,
            bound: LogOffsetMetadata,
        ) -> FetchDataInfo | None:
            below = bound.below if isinstance(bound, ReplicaBound) else None
            position = self.max_position(segment, bound)
            if below is not None and position is not None:
                found = segment.read(start_offset, max_length, None, min_one_message)
                is_nothing = below < start_offset or (max_length == 0 and not min_one_message)
                if found is None or is_nothing:
                    return found
                start = found.fetch_offset_metadata.relative_position_in_segment
                end = segment.translate_offset(below, start)
                position = min(position, segment.size if end is None else end.position)
            return segment.read(start_offset, max_length, position, min_one_message)

    class LogRetention(log_retention.LogRetention):
        """One pass over the segments."""

        @override
        def begin_log_behind(self, segment: LogSegment) -> None:
            following = self.segments.higher_segment(segment.base_offset)
            if following is not None and following.base_offset > self.log.log_start_offset:
                self.log.increment_log_start_offset(following.base_offset)


class OneTransactionIsPlaced(Behaviour):
    """Where a transaction begins is remembered of the first batch of a call alone, whatever it is;
    others are looked up.
    """

    laws = ("PROD-10", "LOG-7")
    releases = up_to("2.2.2")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def txn_places(self, segment: LogSegment) -> list[LogOffsetMetadata]:
            first = self.info.first_or_last_offset
            begun = [info.started_transactions[:1] for info in self.updated_producers.values()]
            if not any(txn.first_offset == first for txns in begun for txn in txns):
                return []
            return [LogOffsetMetadata(first, segment.base_offset, segment.size)]


class CompactionLagLimitsNothing(Behaviour):
    """A segment of a compacted log takes more after max.compaction.lag.ms, up to segment.ms."""

    laws = ("LOG-11",)
    releases = up_to("2.2.2")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def roll_params(self) -> RollParams:
            return super().roll_params()._replace(max_segment_ms=self.config.segment_ms)


class ProducersAreCheckedFirst(Behaviour):
    """What a producer sends is checked before a new segment is begun for it, not behind that."""

    laws = ("LOG-9", "LOG-11")
    releases = up_to("2.2.2")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def maybe_roll(self) -> LogSegment:
            super().check_producers()
            is_known = self.duplicate is not None
            return self.local_log.segments.active_segment if is_known else super().maybe_roll()

        @override
        def check_producers(self) -> None:
            pass
