# SPDX-License-Identifier: Apache-2.0
"""What releases from 2.3 to 2.7 do otherwise with the log of a partition, newest first."""

from typing import Any

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    partition_log,
    read_bounds,
)
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import FetchDataInfo
from segproof_model.language.behaviours import Behaviour, override, up_to


class HighWatermarkAtEndHasNoPlace(Behaviour):
    """A high watermark that is set to the end of the log, or beyond, gets no place before a read
    looks it up.
    """

    laws = ("LOG-6",)
    releases = up_to("2.4.1")

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        @override
        def update_high_watermark(self, high_watermark: int) -> int:
            start, end = self.log.log_start_offset, self.local_log.log_end_offset
            bounded = start if high_watermark < start else min(high_watermark, end)
            self.update_high_watermark_metadata(LogOffsetMetadata(bounded))
            return bounded


class StableBoundIsPlacedAlone(Behaviour):
    """A read up to the last stable offset looks the place of the high watermark up only where that
    is the bound.
    """

    laws = ("LOG-6",)
    releases = up_to("2.4.1")

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        @override
        def fetch_last_stable_offset_metadata(self) -> LogOffsetMetadata:
            self.local_log.check_if_memory_mapped_buffer_closed()
            unstable = self.log.first_unstable
            if unstable is None or unstable.message_offset >= self.log.high_watermark:
                return super().fetch_last_stable_offset_metadata()
            return self.placed(unstable)


class ReadAtBoundGoesOn(Behaviour):
    """A read at the log end gives no records before its bound or the log start is looked up, and a
    read at another bound reads what the segments have up to there.
    """

    laws = ("LOG-5", "LOG-6", "LOG-7")
    releases = up_to("2.4.1")

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
            if start_offset == self.log_end_offset:
                aborted = () if isolation == "txn_committed" else None
                return FetchDataInfo(self.local_log.log_end, None, False, aborted)
            return super().read(start_offset, max_length, isolation, min_one_message)

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def is_beyond(self, start_offset: int, bound: LogOffsetMetadata) -> bool:
            is_within = start_offset == bound.message_offset != self.log_end_offset
            return not is_within and super().is_beyond(start_offset, bound)


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

        def fit_recovery_point(self) -> None:
            """Let the recovery point not lie behind the log end."""
            self.recovery_point = min(self.recovery_point, self.log_end_offset)

    class ReadBounds(read_bounds.ReadBounds):
        """The bounds of a log."""

        local_log: "BoundsFollowEndAtOnce.LocalLog"

        @override
        def update_high_watermark_with_log_end_offset(self) -> None:
            super().update_high_watermark_with_log_end_offset()
            self.local_log.fit_recovery_point()

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        local_log: "BoundsFollowEndAtOnce.LocalLog"

        @override
        def truncate_within(self, target_offset: int) -> None:
            deleted = self.local_log.truncate_to(target_offset)
            self.bounds.update_high_watermark_with_log_end_offset()
            self.begin_log_at(min(target_offset, self.log_start_offset))
            self.delete_producer_snapshots(deleted)
            self.leader_epoch_cache.truncate_from_end(target_offset)
            self.rebuild_producer_state(target_offset)
            self.bounds.maybe_increment_first_unstable_offset()

        @override
        def truncate_fully_and_start_at(
            self, new_offset: int, log_start_offset: int | None = None
        ) -> None:
            super().truncate_fully_and_start_at(new_offset, log_start_offset)
            self.local_log.fit_recovery_point()


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
                self.bounds.update_high_watermark_metadata(LogOffsetMetadata(offset))


class FullTruncationOnlyForgets(Behaviour):
    """A log that begins anew begins with its first segment, forgets its producers, builds nothing
    anew, and lowers its high watermark to the end.
    """

    laws = ("LOG-14", "PROD-14")
    releases = up_to("2.4.1")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_fully_and_start_at(
            self, new_offset: int, log_start_offset: int | None = None
        ) -> None:
            self.local_log.truncate_fully_and_start_at(new_offset)
            self.bounds.update_high_watermark_with_log_end_offset()
            self.leader_epoch_cache.clear_and_flush()
            self.producer_state_manager.truncate_fully_and_start_at(new_offset)
            self.bounds.maybe_increment_first_unstable_offset()
            self.begin_log_at(new_offset)


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
