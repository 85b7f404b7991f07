# SPDX-License-Identifier: Apache-2.0
"""What releases from 2.0 to 2.2 do otherwise with the log of a partition, newest first."""

from collections.abc import Sequence

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    log_retention,
    offset_by_time,
    partition_log,
    producer_rebuild,
    read_bounds,
)
from segproof_model.kafka.broker.offset_by_time import EARLIEST, EARLIEST_LOCAL, LATEST
from segproof_model.kafka.format import segment_recovery
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refusal, refuse


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
    """The replica keeps the high watermark and tells it to the log, which neither moves nor bounds
    it.
    """

    laws = ("LOG-6", "LOG-13", "LOAD-13", "PROD-10")
    releases = up_to("2.2.2")

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        @override
        def of(self, isolation: read_bounds.Isolation) -> LogOffsetMetadata:
            """The bound of a read is the log end, together with the offset up to which it reads."""
            bound, log = ReplicaBound(*self.local_log.log_end), self.log
            if isolation != "log_end":
                is_high = isolation == "high_watermark"
                bound.below = log.high_watermark if is_high else log.last_stable_offset
            return bound

        @override
        def update_high_watermark(self, high_watermark: int) -> None:  # type: ignore[override]
            """What the replica tells is taken as it is, and nothing is answered."""
            self.update_high_watermark_metadata(LogOffsetMetadata(high_watermark))

        @override
        def update_high_watermark_metadata(self, metadata: LogOffsetMetadata) -> None:
            self.log.high_watermark_metadata = metadata
            self.log.producer_state_manager.on_high_watermark_updated(metadata.message_offset)
            self.maybe_increment_first_unstable_offset()

        @override
        def update_high_watermark_with_log_end_offset(self) -> None:
            """The high watermark does not follow the log end."""

        @override
        def maybe_convert_to_offset_metadata(self, offset: int) -> LogOffsetMetadata:
            """The segment of the first unstable offset says where that is."""
            segment = self.local_log.segments.floor_segment(offset)
            found = None if segment is None else segment.translate_offset(offset)
            if segment is None or found is None:
                refuse(ErrorKind.UNMAPPED)  # what trips over a null
            return LogOffsetMetadata(offset, segment.base_offset, found.position)

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def update_log_start_offset(self, offset: int) -> None:
            """The recovery point does not follow the log start."""
            recovery_point = self.recovery_point
            super().update_log_start_offset(offset)
            self.local_log.recovery_point = recovery_point

        @override
        def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
            if new_log_start_offset > self.log_end_offset:
                refuse(ErrorKind.OUT_OF_RANGE)
            return super().maybe_increment_log_start_offset(new_log_start_offset)

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def update_log_end_offset(self, offset: int) -> None:
            """The recovery point does not follow the log end."""
            recovery_point = self.recovery_point
            super().update_log_end_offset(offset)
            self.recovery_point = recovery_point

        @override
        def truncate_to(self, target_offset: int) -> Sequence[LogSegment]:
            """A truncation moves the recovery point."""
            deleted = super().truncate_to(target_offset)
            self.recovery_point = min(self.recovery_point, target_offset)
            return deleted

        @override
        def truncate_fully_and_start_at(self, new_offset: int) -> None:
            """A truncation moves the recovery point."""
            super().truncate_fully_and_start_at(new_offset)
            self.recovery_point = min(self.recovery_point, new_offset)

        @override
        def read_segment(
            self,
            segment: LogSegment,
            start_offset: int,
            max_length: int,
            min_one_message: bool,
            bound: LogOffsetMetadata,
        ) -> FetchDataInfo | None:
            """The end is looked up among the batches of the segment."""
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
            """The log may begin beyond the high watermark."""
            following = self.segments.higher_segment(segment.base_offset)
            if following is not None and following.base_offset > self.log.log_start_offset:
                self.log.increment_log_start_offset(following.base_offset)


class OneTransactionIsPlaced(Behaviour):
    """An append remembers where a transaction begins only if that begins with the first batch of
    the call, and the places of others are looked up.
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


class AppendEndsLogLast(Behaviour):
    """Producers and transactions know of an append before the log end moves, and a transaction is
    no longer open when it is entered into its index.
    """

    laws = ("LOG-9", "PROD-11")
    releases = up_to("2.1.1")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def end_log(self) -> None:
            pass

        @override
        def learn(self, segment: LogSegment) -> None:
            """Where producers or transactions fail, the log end stays."""
            super().learn(segment)
            super().end_log()

        @override
        def complete(self, txn: CompletedTxn, segment: LogSegment) -> None:
            last_stable_offset = self.producers.last_stable_offset(txn)
            self.producers.complete_txn(txn)
            segment.update_txn_index(txn, last_stable_offset)

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def complete(self, txn: CompletedTxn, producers: segment_recovery.LearnsProducers) -> None:
            last_stable_offset = producers.last_stable_offset(txn)
            producers.complete_txn(txn)
            self.segment.update_txn_index(txn, last_stable_offset)


class LegacyBatchKeepsEpochs(Behaviour):
    """A message of magic 0 or 1 that is appended leaves the epochs of the log as they are."""

    laws = ("LOG-9",)
    releases = up_to("2.1.1")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def assign_epochs(self) -> None:
            for batch in self.records.batches():
                if not batch.is_legacy:
                    epoch, base_offset = batch.partition_leader_epoch, batch.base_offset
                    self.log.leader_epoch_cache.assign(epoch, base_offset)


class BoundsHaveNoEpoch(Behaviour):
    """A search for the earliest or the latest offset does not answer a leader epoch."""

    laws = ("LOG-15", "LOG-16")
    releases = up_to("2.1.1")

    class OffsetByTime(offset_by_time.OffsetByTime):
        """A search."""

        @override
        def fetch(self, target_timestamp: int) -> TimestampAndOffset | None:
            found = super().fetch(target_timestamp)
            is_bound = target_timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL)
            return found._replace(leader_epoch=None) if found is not None and is_bound else found


class CompactedLogIsNotTrimmed(Behaviour):
    """Retention leaves a log that is only compacted alone, also before its start."""

    laws = ("LOG-17",)
    releases = up_to("2.0.1")

    class LogRetention(log_retention.LogRetention):
        """One pass over the segments."""

        @override
        def delete_old_segments(self) -> int:
            is_deleted = "delete" in self.log.config.cleanup_policy
            return super().delete_old_segments() if is_deleted else 0


class EmptySegmentIsNotReplaced(Behaviour):
    """A roll to where a segment begins, even an empty one, removes the segment's files, begins it
    anew, and is then refused.
    """

    laws = ("LOG-9", "LOG-12")
    releases = up_to("2.0.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def roll(self, expected_next_offset: int | None = None) -> int:
            base_offset = max(expected_next_offset or 0, self.log_end_offset)
            if not self.log_segments.contains(base_offset):
                return super().roll(expected_next_offset)
            self.local_log.check_if_memory_mapped_buffer_closed()
            self.local_log.begin_segment(base_offset)
            self.producer_state_manager.update_map_end_offset(base_offset)
            self.producer_state_manager.take_snapshot()
            return refuse(ErrorKind.KAFKA_ERROR)

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def check_roll(self, base_offset: int) -> None:
            """A roll before the active segment, which may begin ahead of the log end, is made."""

        @override
        def begin_segment(self, base_offset: int) -> None:
            active = self.segments.active_segment
            if base_offset != active.base_offset:
                super().begin_segment(base_offset)
                return
            # What it writes is lost with the files that it has, but not what it cuts.
            error = refusal(active.write_maximum)
            self.remove_files_of_segment(base_offset)
            if error is not None:
                raise error
            trim(active)
            self.create_segment(base_offset)

    class LogRetention(log_retention.LogRetention):
        """One pass over the segments."""

        @override
        def begin_log_behind(self, segment: LogSegment) -> None:
            if self.segments.higher_segment(segment.base_offset) is not None:
                super().begin_log_behind(segment)


def trim(segment: LogSegment) -> None:
    """Cut what no entry and no batch of a segment uses."""
    segment.offset_index.trim_to_valid_size()
    segment.time_index.trim_to_valid_size()
    segment.log.trim()
