# SPDX-License-Identifier: Apache-2.0
"""What releases from 2.8 on do otherwise with the log of a partition, newest first."""

from collections.abc import Iterable

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    log_retention,
    offset_by_time,
    partition_log,
    read_bounds,
)
from segproof_model.kafka.broker.offset_by_time import EARLIEST_LOCAL, MAX_TIMESTAMP
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.kafka.format.log_segment_releases import Told, append_told
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse


class ClosedLogIsAsked(Behaviour):
    """A closed log, also one that could not be closed, does what its closed files and indexes still
    do.
    """

    laws = ("LOG-5", "LOG-9", "LOG-11", "LOG-13")
    releases = up_to("4.3.1")
    of_segproof = True

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def check_if_memory_mapped_buffer_closed(self) -> None:
            pass

        @override
        def close(self) -> None:
            try:
                super().close()
            finally:
                self.is_closed = True


class ActiveSegmentIsNotPrepared(Behaviour):
    """The log manager changes no active segment before it closes a log: closing does."""

    laws = ("LOAD-11",)
    releases = up_to("4.3.1")
    of_segproof = True

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def prepare_active_segment_for_close(self) -> None:
            pass


class AppendTellsMaximum(Behaviour):
    """An append tells the segment the largest timestamp of the call and its offset, for the index
    entry that stands for all of it.
    """

    laws = ("SEG-4", "SEG-5", "LOG-9")
    releases = up_to("4.0.0", but=("3.9.2",))

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def write_records(self, segment: LogSegment) -> None:
            is_given = self.is_follower
            offset = self.end_of_newest() if is_given else self.result.offset_of_max_timestamp
            told = Told(self.info.first_or_last_offset, self.info.max_timestamp, offset)
            append_told(segment, self.info.last_offset, self.records, told)

        def end_of_newest(self) -> int:
            """Return the last offset of the first batch with the largest timestamp; -1 if none."""
            newest = end = -1
            for batch in self.records.batches():
                if batch.max_timestamp > newest:
                    newest, end = batch.max_timestamp, batch.last_offset
            return end


class ReplacedSegmentLoadsNothing(Behaviour):
    """Rolling onto the active, empty segment does not load its indexes."""

    laws = ("LOG-12",)
    releases = up_to("3.9.2")
    of_segproof = True

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def replace_empty_segment(self, active: LogSegment) -> None:
            self.create_and_delete_segment(active.base_offset, active)


class BoundOutsideIsRefused(Behaviour):
    """A bound whose place is looked up, and that lies outside of the log, is out of range."""

    laws = ("LOG-6", "LOG-13", "PROD-10")
    releases = up_to("3.7.2", since="2.4.1")

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        @override
        def maybe_convert_to_offset_metadata(self, offset: int) -> LogOffsetMetadata:
            return self.local_log.convert_to_offset_metadata(offset)


class UnplacedBoundReadsToEnd(Behaviour):
    """A segment behind the bound of a read, or one whose bound has no place, is read to its end."""

    laws = ("LOG-6",)
    releases = up_to("3.7.2")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def max_position(self, segment: LogSegment, bound: LogOffsetMetadata) -> int | None:
            found = super().max_position(segment, bound)
            return segment.size if found is None else found


class LargestTimestampIsRemembered(Behaviour):
    """Asked for the record with the largest timestamp, a log answers what the segment remembers,
    with the latest epoch.
    """

    laws = ("LOG-16",)
    releases = up_to("3.7.2")

    class OffsetByTime(offset_by_time.OffsetByTime):
        """A search."""

        @override
        def newest_in(self, segment: LogSegment) -> TimestampAndOffset | None:
            largest, offset = segment.read_max_timestamp_and_offset_so_far()
            return TimestampAndOffset(largest, offset, self.log.leader_epoch_cache.latest_epoch())


class RefusedRollNamesMaximum(Behaviour):
    """The error of a roll to where no segment may begin names the largest timestamp of the segment
    in its way, whose time index is loaded for it, or made.
    """

    laws = ("LOG-12",)
    releases = up_to("3.6.2")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def check_roll(self, base_offset: int) -> None:
            try:
                super().check_roll(base_offset)
            except Refused:
                in_its_way = self.segments.get(base_offset) or self.segments.active_segment
                in_its_way.read_max_timestamp_and_offset_so_far()
                raise


class StartMovesAfterRemoval(Behaviour):
    """Retention moves the log start behind the removal of the segments: if it fails, they are gone
    already.
    """

    laws = ("LOG-17",)
    releases = up_to("3.6.2")

    class LogRetention(log_retention.LogRetention):
        """One pass over the segments."""

        @override
        def delete_segments(self, segments: list[LogSegment]) -> None:
            self.leave_one(segments)
            self.remove(segments)
            self.begin_log_behind(segments[-1])


class FullTruncationTakesNoStart(Behaviour):
    """A log that begins anew begins with its first segment, whatever start it is told."""

    laws = ("LOG-14",)
    releases = up_to("3.5.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_fully_and_start_at(
            self, new_offset: int, log_start_offset: int | None = None
        ) -> None:
            super().truncate_fully_and_start_at(new_offset)


class CutLeavesTimeSearch(Behaviour):
    """A truncation that lowers the log start leaves where a search by timestamp begins."""

    laws = ("LOG-15",)
    releases = up_to("3.5.2", since="3.5.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        searched_from: int
        """The log start when the log was loaded or told to begin later."""

        @override
        def begin_at_start(self) -> None:
            self.searched_from = self.log_start_offset
            super().begin_at_start()

        @override
        def increment_log_start_offset(self, offset: int) -> None:
            self.searched_from = offset
            super().increment_log_start_offset(offset)

    class OffsetByTime(offset_by_time.OffsetByTime):
        """A search."""

        log: "CutLeavesTimeSearch.PartitionLog"

        @override
        def starting_offset(self) -> int:
            return self.log.searched_from


class EarliestLocalIsATime(Behaviour):
    """-4 does not stand for the earliest local offset."""

    laws = ("LOG-15", "LOG-16")
    releases = up_to("3.4.1")

    class OffsetByTime(offset_by_time.OffsetByTime):
        """A search."""

        @override
        def fetch(self, target_timestamp: int) -> TimestampAndOffset | None:
            is_local = target_timestamp == EARLIEST_LOCAL
            return self.search(target_timestamp) if is_local else super().fetch(target_timestamp)


class MaxTimestampIsATime(Behaviour):
    """-3 does not stand for the record with the largest timestamp."""

    laws = ("LOG-15", "LOG-16")
    releases = up_to("2.8.2")

    class OffsetByTime(offset_by_time.OffsetByTime):
        """A search."""

        @override
        def fetch(self, target_timestamp: int) -> TimestampAndOffset | None:
            is_maximum = target_timestamp == MAX_TIMESTAMP
            return self.search(target_timestamp) if is_maximum else super().fetch(target_timestamp)


class TruncationSetsHighWatermark(Behaviour):
    """A truncation sets the high watermark anew, be it below the cut: its place is looked up, and
    the first unstable offset.
    """

    laws = ("LOG-6", "LOG-13", "PROD-10")
    releases = up_to("2.8.2", since="2.8.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def cut_at(self, target_offset: int) -> None:
            super().cut_at(target_offset)
            self.update_high_watermark(min(self.high_watermark, target_offset))

        @override
        def truncate_fully_and_start_at(
            self, new_offset: int, log_start_offset: int | None = None
        ) -> None:
            high_watermark = self.high_watermark
            super().truncate_fully_and_start_at(new_offset, log_start_offset)
            if high_watermark < new_offset:
                self.update_high_watermark(high_watermark)


class BoundIsPlacedLast(Behaviour):
    """A read is refused as out of range before its bound is looked up."""

    laws = ("LOG-5", "LOG-6")
    releases = up_to("2.8.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def read(
            self,
            start_offset: int,
            max_length: int,
            isolation: read_bounds.Isolation = "log_end",
            min_one_message: bool = True,
        ) -> FetchDataInfo:
            is_behind = start_offset > self.log_end_offset
            if is_behind or self.log_segments.floor_segment(start_offset) is None:
                refuse(ErrorKind.OUT_OF_RANGE)
            return super().read(start_offset, max_length, isolation, min_one_message)


class RetentionBeginsWithAge(Behaviour):
    """Retention removes what is too old first, then by size, then what lies before the start."""

    laws = ("LOG-17", "LOG-18")
    releases = up_to("2.8.2")

    class LogRetention(log_retention.LogRetention):
        """One pass over the segments."""

        @override
        def delete_old_segments(self) -> int:
            count = 0
            if "delete" in self.log.config.cleanup_policy:
                count += self.delete_too_old()
                count += self.delete_above_size()
            return count + self.delete_before_start()


class FlushIsNotForced(Behaviour):
    """A flush leaves an active, empty segment alone, though it is told to take it."""

    laws = ("LOAD-13",)
    releases = up_to("2.8.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def flush(self, force_flush_active_segment: bool = False) -> None:
            super().flush()


class SnapshotGoesWithSegment(Behaviour):
    """The snapshot at the beginning of a removed segment keeps its name, and goes with the files of
    the segment, if it is known then, and no other segment begins there at once.
    """

    laws = ("LOAD-1",)
    releases = up_to("2.8.2", since="2.8.2")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        pending_snapshots: tuple[tuple[int, int], ...] = ()
        """When each may be removed, and its offset."""

        @override
        def delete_segment_files(self, segments: Iterable[LogSegment]) -> None:
            removed = list(segments)
            super().delete_segment_files(removed)
            due_ms = self.files.now_ms + self.config.file_delete_delay_ms
            bases = [segment.base_offset for segment in removed]
            gone = [(due_ms, base) for base in bases if not self.segments.contains(base)]
            self.pending_snapshots = (*self.pending_snapshots, *gone)

        @override
        def delete_all_files(self) -> None:
            super().delete_all_files()
            self.pending_snapshots = ()

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        local_log: "SnapshotGoesWithSegment.LocalLog"

        @override
        def delete_producer_snapshots(self, segments: Iterable[LogSegment]) -> None:
            pass

        @override
        def delete_pending_files(self) -> None:
            super().delete_pending_files()
            waiting = self.local_log.pending_snapshots
            for due_ms, offset in waiting:
                if due_ms <= self.files.now_ms:
                    self.producer_state_manager.remove_and_delete_snapshot(offset)
            kept = [one for one in waiting if one[0] > self.files.now_ms]
            self.local_log.pending_snapshots = tuple(kept)
