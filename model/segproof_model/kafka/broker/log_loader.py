# SPDX-License-Identifier: Apache-2.0
"""Loading the log of a partition from its directory, after a clean stop or a crash.

Upstream: Kafka 4.4.0, LogLoader. Otherwise: log_loader_releases, log_loader_releases_before_2,
    partition_log_releases_before_2, log_loader_deviations.
Laws: LOAD-2 and LOAD-4 to LOAD-17; with crash_remains, LOAD-1 to LOAD-3.
Not covered: files that cannot be read; a directory that is being deleted (`-delete`).
"""

from collections.abc import Callable

from segproof_model.kafka.broker.crash_remains import INDEXES, LOG, CrashRemains
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_rebuild import ProducerRebuild
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.broker.segment_replacing import SegmentReplacing
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse


class SegmentOverflow(Refused):
    """A segment that is recovered holds offsets too far from its base."""

    def __init__(self, segment: LogSegment) -> None:
        super().__init__(ErrorKind.SEGMENT_OVERFLOW)
        self.segment = segment


class LogLoader(CrashRemains):
    """What loads a log that has no segments yet, and whose start is the checkpointed one.

    It leaves segments, log end and recovery point in the local log, and the log start in the log.

    >>> from segproof_model.kafka.broker.partition_log import PartitionLog
    >>> from segproof_model.kafka.format.log_config import LogConfig
    >>> from segproof_model.language.files import Files
    >>> name = "00000000000000000005.log"
    >>> log = PartitionLog(Files({name: b"", "7.index": b"", f"{name}.cleaned": b""}), "",
    ...                    LogConfig(segment_index_bytes=96), 0, 0, last_shutdown_clean=False)
    >>> log.log_start_offset, log.log_end_offset, [n for n in log.files if name in n or "7" in n]
    (5, 5, ['00000000000000000005.log'])
    """

    def load(self, recovery_point: int, had_clean_shutdown: bool) -> None:
        """Load the log (LOAD-1 to LOAD-17). `recovery_point`: the checkpointed one."""
        self.recovery_point, self.had_clean_shutdown = recovery_point, had_clean_shutdown
        self.remove_temporary_files()
        self.load_segments()
        if not had_clean_shutdown:
            self.retry_on_offset_overflow(self.recover_log)
        end = self.find_end()
        active = self.log.log_segments.active_segment
        active.resize_indexes(self.log.local_log.config.segment_index_bytes)
        self.fit_epochs(end)
        self.log.log_start_offset = max(self.log.log_start_offset, self.first_offset_of_log())
        self.fit_producers(end)
        self.log.local_log.log_end = LogOffsetMetadata(end, active.base_offset, active.size)

    def load_segments(self) -> None:
        """Let swaps take their place, and open every segment."""
        self.complete_swaps()
        self.retry_on_offset_overflow(self.load_segment_files)

    def retry_on_offset_overflow(self, operation: Callable[[], None]) -> None:
        """Do something again as long as a segment overflows, which is split before (LOAD-6).

        A segment that overflows once more was left by its split, and there is no end.
        """
        split_bases = set[int]()
        while True:
            try:
                operation()
                return
            except SegmentOverflow as error:
                segment = error.segment
            if segment.base_offset in split_bases:
                refuse(ErrorKind.ENDLESS)
            split_bases.add(segment.base_offset)
            self.kind(SegmentReplacing)(self.log).split(segment)

    # --- segments ------------------------------------------------------------------------------

    def load_segment_files(self) -> None:
        """Open every segment, in the order of the names; remove an index without a log (LOAD-4)."""
        names = self.names()
        for segment in self.log.log_segments:
            segment.close()
        self.log.log_segments.clear()
        for name in names:
            if name.endswith(LOG):
                self.load_segment(self.offset_of_log(name))
            elif self.is_index_without_log(name):
                self.remove([name])

    def offset_of_log(self, name: str) -> int:
        """Return the offset in the name of a log."""
        return offset_of_name(name)

    def is_index_without_log(self, name: str) -> bool:
        """Return whether a name is that of an index without a log."""
        is_index = name.endswith(INDEXES)
        return is_index and not self.has(segment_file_name(offset_of_name(name), LOG))

    def load_segment(self, base_offset: int) -> None:
        """Open a segment; rebuild its indexes if they are missing or corrupt (LOAD-5)."""
        is_new = not self.has(segment_file_name(base_offset, ".timeindex"))
        segment = self.open_segment(base_offset)
        try:
            segment.sanity_check(is_new)
        except Refused as error:
            if error.kind not in (ErrorKind.FILE_NOT_FOUND, segment.txn_index.corrupt_kind):
                raise
            self.rebuild_indexes(segment, error.kind)
        self.log.log_segments.add(segment)

    def rebuild_indexes(self, segment: LogSegment, found: ErrorKind) -> None:
        """Build the indexes of a segment anew, one of which is missing or corrupt (LOAD-5)."""
        self.recover_segment(segment, self.log.leader_epoch_cache)

    # --- recovery ------------------------------------------------------------------------------

    def recover_log(self) -> None:
        """Recover the segments from the one with the recovery point on (LOAD-7 to LOAD-9).

        The first that loses bytes is the last one kept.
        """
        segments = self.log.log_segments
        for segment in segments.values(self.recovery_point, INT64_MAX):
            try:
                truncated_bytes = self.recover_segment(segment, self.log.leader_epoch_cache)
            except Refused as error:
                if error.kind is not ErrorKind.INVALID_OFFSET:
                    raise
                truncated_bytes = segment.truncate_to(segment.base_offset)
            if truncated_bytes > 0:
                later = segments.higher_segments(segment.base_offset)
                if later:
                    self.log.local_log.remove_and_delete_segments(later)
                    self.log.delete_producer_snapshots(later)
                return

    def recover_segment(self, segment: LogSegment, epochs: LeaderEpochFileCache | None) -> int:
        """Recover a segment with what the log below it says about producers; return bytes removed.

        `epochs`: where the epochs of its batches are entered.
        """
        producers = self.producers_below(segment.base_offset)
        truncated_bytes = recovered(segment, producers, epochs)
        producers.take_snapshot()
        return truncated_bytes

    def producers_below(self, offset: int) -> ProducerStateManager:
        """Return the producer state of the log below an offset."""
        producers = self.log.new_producer_state()
        self.rebuild_of(producers).rebuild(offset)
        return producers

    def rebuild_of(self, producers: ProducerStateManager) -> ProducerRebuild:
        """Return the rebuild of a producer state from the segments (PROD-14)."""
        log = self.log
        return self.kind(ProducerRebuild)(producers, log.log_segments, log.log_start_offset)

    # --- what the log knows after loading ------------------------------------------------------

    def find_end(self) -> int:
        """Return the end of the log, which begins again without segments; find the recovery point.

        After a crash the log is known to be durable where it was, but not behind its end (LOAD-13).
        """
        end = self.end_above_start()
        if self.log.log_segments.is_empty:
            self.log.local_log.create_segment(self.log.log_start_offset)
        is_trusted = self.had_clean_shutdown and end is not None
        if end is None:
            end = self.log.log_segments.active_segment.read_next_offset()
        self.log.local_log.recovery_point = self.recovery_point_below(end, is_trusted)
        return end

    def end_above_start(self) -> int | None:
        """Return the offset behind the last batch; a log that ends below its start is emptied, and
        has none, as one without segments (LOAD-12).
        """
        if self.log.log_segments.is_empty:
            return None
        end = self.log.log_segments.active_segment.read_next_offset()
        if end >= self.log.log_start_offset:
            return end
        self.empty()
        return None

    def empty(self) -> None:
        """Remove all segments, epochs and producers."""
        self.log.local_log.remove_and_delete_segments(tuple(self.log.log_segments))
        self.log.leader_epoch_cache.clear_and_flush()
        self.log.producer_state_manager.truncate_fully_and_start_at(self.log.log_start_offset)

    def recovery_point_below(self, end: int, is_trusted: bool) -> int:
        """Return the recovery point; `is_trusted`: after a clean stop it is the end of the log."""
        return end if is_trusted else min(self.recovery_point, end)

    def first_offset_of_log(self) -> int:
        """Return where the first segment begins."""
        return self.log.log_segments.base_offsets()[0]

    def fit_epochs(self, end: int) -> None:
        """Cut the epochs at the end of the log and at its checkpointed start (LOAD-15)."""
        self.log.leader_epoch_cache.truncate_from_end(end)
        self.log.leader_epoch_cache.truncate_from_start(self.log.log_start_offset)

    def fit_producers(self, end: int) -> None:
        """Let the producers be those of the log up to its end (LOAD-14)."""
        bases = self.log.log_segments.base_offsets()
        self.log.producer_state_manager.remove_stray_snapshots(bases)
        self.log.rebuild_producer_state(end, self.had_clean_shutdown)


def recovered(
    segment: LogSegment, producers: ProducerStateManager | None, epochs: LeaderEpochFileCache | None
) -> int:
    """Recover a segment; return bytes removed. Raises SegmentOverflow for one that overflows."""
    try:
        return segment.recover(producers, epochs)
    except Refused as error:
        if error.kind is ErrorKind.SEGMENT_OVERFLOW:
            raise SegmentOverflow(segment) from None
        raise
