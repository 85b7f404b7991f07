# SPDX-License-Identifier: Apache-2.0
"""What releases before 2.2 do otherwise with the log of a partition, newest first.

Used by: releases.
"""

from collections.abc import Iterable

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    log_loader,
    log_retention,
    offset_by_time,
    partition_log,
    producer_rebuild,
)
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.local_log import DELETED_SUFFIX
from segproof_model.kafka.broker.log_loader import recovered
from segproof_model.kafka.broker.log_validator import UNKNOWN_OFFSET, LogAppendInfo
from segproof_model.kafka.broker.offset_by_time import EARLIEST, EARLIEST_LOCAL, LATEST
from segproof_model.kafka.broker.producer_append_info import CompletedTxn
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refusal, refuse


class AppendEndsLogLast(Behaviour):
    """Producers and transactions know of an append before the log end moves, which stays where they
    fail; a transaction is no longer open when it is entered into its index.
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
            super().learn(segment)
            super().end_log()

        @override
        def complete(self, txn: CompletedTxn, segment: LogSegment) -> None:
            last_stable_offset = self.producers.last_stable_offset(txn)
            self.producers.complete_txn(txn)
            segment.update_txn_index(txn, last_stable_offset)


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
    """A roll to where a segment begins, be it empty, is refused when its files are removed and the
    segment is begun. A roll before the active segment, which may have been begun ahead of the log
    end, begins one there.
    """

    laws = ("LOG-12",)
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
            pass

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


class RebuildWritesAtSegments(Behaviour):
    """Building the producer state anew writes a snapshot at each segment that it reads, and none at
    its end.
    """

    laws = ("PROD-14",)
    releases = up_to("1.1.1")

    class ProducerRebuild(producer_rebuild.ProducerRebuild):
        """What builds a producer state."""

        @override
        def replay(self, segment: LogSegment, last_offset: int) -> None:
            start = max(segment.base_offset, self.producers.map_end_offset, self.log_start_offset)
            self.snapshot_at(start)
            self.learn(self.read(segment, start, last_offset))

        @override
        def end_at(self, last_offset: int) -> None:
            self.producers.update_map_end_offset(last_offset)


class FirstOffsetStandsForLast(Behaviour):
    """An append tells one offset as the first: that of the first batch, or its last one."""

    laws = ("LOG-9",)
    releases = up_to("1.1.1")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def append(self) -> LogAppendInfo:
            info = super().append()
            return info._replace(
                first_offset=info.first_or_last_offset, last_offset_of_first_batch=UNKNOWN_OFFSET
            )


class RollKnowsLastOffset(Behaviour):
    """A segment that an append begins is based where its last offset can just be held."""

    laws = ("LOG-11",)
    releases = up_to("1.1.1")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def base_of_next(self) -> int:
            return self.info.last_offset - INT32_MAX


class RollTrimsSegment(Behaviour):
    """A roll cuts what the segment that it ends does not use: that does not cut it itself."""

    laws = ("SEG-38", "LOG-11")
    releases = up_to("0.11.0.3")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def begin_segment(self, base_offset: int) -> None:
            active = self.segments.active_segment
            if base_offset == active.base_offset:
                super().begin_segment(base_offset)
                return
            self.remove_files_of_segment(base_offset)
            active.on_become_inactive_segment()
            trim(active)
            self.create_segment(base_offset)


class FlushRemovesSnapshots(Behaviour):
    """What makes the log durable up to an offset removes the snapshots before that and before the
    last two segments.
    """

    laws = ("PROD-6",)
    releases = up_to("0.11.0.3")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def flush_up_to(self, offset: int, including_offset: bool = False) -> None:
            flush_offset = offset + 1 if including_offset else offset
            if flush_offset > self.recovery_point:
                self.local_log.flush(flush_offset)
                kept = min(offset, *self.log_segments.base_offsets()[-2:])
                self.producer_state_manager.delete_snapshots_before(kept)
                self.local_log.mark_flushed(offset)


class AppendHidesLogStart(Behaviour):
    """An append does not tell where the log begins."""

    laws = ("LOG-9",)
    releases = up_to("0.11.0.3")

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def append(self) -> LogAppendInfo:
            return super().append()._replace(log_start_offset=UNKNOWN_OFFSET)


class UnopenedTransactionsStay(Behaviour):
    """The transaction index of a removed segment, if it is not open, stays as a `.deleted` file."""

    laws = ("TXNIDX-17",)
    releases = up_to("0.11.0.3")

    class LocalLog(local_log.LocalLog):
        """The segments."""

        @override
        def delete_segment_files(self, segments: Iterable[LogSegment]) -> None:
            names: list[str] = []
            for segment in segments:
                if not segment.has_suffix(DELETED_SUFFIX):
                    segment.change_file_suffixes("", DELETED_SUFFIX)
                index = segment.txn_index
                names += [one for one in segment.names if index.is_open or one != index.name]
            self.delete_files_later(names)


class NoEpochs(LeaderEpochFileCache):
    """Epochs that nobody tells of."""

    @override
    def assign(self, leader_epoch: int, start_offset: int) -> None:
        pass


class NoProducers(ProducerStateManager):
    """Producers that nobody tells of, and no snapshot."""

    @override
    def list_snapshots(self) -> dict[int, str]:
        return {}

    @override
    def take_snapshot(self) -> int | None:
        return None

    @override
    def update_map_end_offset(self, last_offset: int) -> None:
        pass

    @override
    def truncate_fully_and_start_at(self, offset: int) -> None:
        pass

    @override
    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        pass

    @override
    def delete_snapshots_before(self, offset: int) -> None:
        pass


class LogKnowsNoProducers(Behaviour):
    """A log knows no producers, transactions and leader epochs, and leaves their files alone."""

    laws = ("PROD-14", "LOAD-15")
    releases = up_to("0.10.2.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def create_leader_epoch_cache(self) -> LeaderEpochFileCache:
            return self.kind(NoEpochs)(self.files, None)

        @override
        def new_producer_state(self) -> ProducerStateManager:
            return self.kind(NoProducers)(self.files)

        @override
        def rebuild_producer_state(self, last_offset: int, is_clean: bool = False) -> None:
            pass

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def recover_segment(self, segment: LogSegment, epochs: LeaderEpochFileCache | None) -> int:
            return recovered(segment, None, None)

    class LogAppend(log_append.LogAppend):
        """A call."""

        @override
        def check_producers(self) -> None:
            pass


class LogBeginsWithSegment(Behaviour):
    """A log begins with its first segment, whatever the checkpoint says."""

    laws = ("LOAD-12", "LOG-14")
    releases = up_to("0.10.2.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @property
        @override
        def log_start_offset(self) -> int:  # type: ignore[override]  # nothing is kept
            return 0 if self.log_segments.is_empty else self.log_segments.base_offsets()[0]


class RetentionWaitsForNobody(Behaviour):
    """Retention removes segments that reach beyond the high watermark, too."""

    laws = ("LOG-17",)
    releases = up_to("0.10.2.2")

    class LogRetention(log_retention.LogRetention):
        """One pass over the segments."""

        @override
        def is_replicated(self, end_offset: int) -> bool:
            return True


class TruncationAtEndIsDone(Behaviour):
    """A truncation at the log end is done: it removes an empty segment behind it, and lowers the
    recovery point.
    """

    laws = ("LOG-13",)
    releases = up_to("0.10.2.2")

    class PartitionLog(partition_log.PartitionLog):
        """The log."""

        @override
        def truncate_to(self, target_offset: int) -> bool:
            if target_offset != self.log_end_offset:
                return super().truncate_to(target_offset)
            self.cut_at(target_offset)
            return True
