# SPDX-License-Identifier: Apache-2.0
"""What releases before 2.0 do otherwise with the log of a partition, newest first."""

from collections.abc import Iterable

from segproof_model.kafka.broker import (
    local_log,
    log_append,
    log_loader,
    log_retention,
    partition_log,
    producer_rebuild,
)
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.local_log import DELETED_SUFFIX
from segproof_model.kafka.broker.log_loader import recovered
from segproof_model.kafka.broker.log_validator import UNKNOWN_OFFSET, LogAppendInfo
from segproof_model.kafka.broker.partition_log_releases_before_2_3 import trim
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX


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

    laws = ("LOG-9", "LOG-11")
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
        def update_producer(self, batch: RecordBatch) -> None:
            pass


class LogBeginsWithSegment(Behaviour):
    """A log begins with its first segment, whatever the checkpoint says."""

    laws = ("LOAD-12", "LOAD-15", "LOG-14", "LOG-17")
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
