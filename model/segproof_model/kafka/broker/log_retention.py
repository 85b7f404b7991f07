# SPDX-License-Identifier: Apache-2.0
"""Which segments at the beginning of a log are deleted: by its start, its size, and their age.

Upstream: Kafka 4.4.0, UnifiedLog.deleteOldSegments. Otherwise: partition_log_releases, those before
    2.3 and 2.
Laws: LOG-17, LOG-18.
Not covered: remote storage.
"""

from collections.abc import Callable

from segproof_model.kafka.broker.log_steps import LogSteps
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.language.states import Released

Condition = Callable[[LogSegment, LogSegment | None], bool]


class LogRetention(Released):
    """One pass over the segments of a log."""

    def __init__(self, log: LogSteps) -> None:
        self.log, self.segments = log, log.log_segments

    def delete_old_segments(self) -> int:
        """Delete what breaches the start, then the size, then the age; return how many.

        A log that is only compacted keeps the latter two.
        """
        count = self.delete_before_start()
        if "delete" in self.log.config.cleanup_policy:
            count += self.delete_above_size()
            count += self.delete_too_old()
        return count

    def delete_before_start(self) -> int:
        """Delete the segments that end before the log begins."""
        start = self.log.log_start_offset
        return self.delete_while(
            lambda _, following: following is not None and following.base_offset <= start
        )

    def delete_above_size(self) -> int:
        """Delete as long as the rest is not smaller than the limit (LOG-18)."""
        limit = self.log.config.retention_bytes
        too_much = self.log.size - limit
        if limit < 0 or too_much < 0:
            return 0

        def fits(segment: LogSegment, _: LogSegment | None) -> bool:
            nonlocal too_much
            too_much -= segment.size
            return too_much >= 0

        return self.delete_while(fits)

    def delete_too_old(self) -> int:
        """Delete the segments whose largest timestamp lies too far back."""
        limit_ms, now_ms = self.log.config.retention_ms, self.log.files.now_ms
        if limit_ms < 0:
            return 0
        return self.delete_while(lambda segment, _: now_ms - segment.largest_timestamp > limit_ms)

    def delete_while(self, condition: Condition) -> int:
        """Delete the segments at the beginning that the condition holds of; return how many."""
        deletable = self.deletable_segments(condition)
        if deletable:
            self.delete_segments(deletable)
        return len(deletable)

    def deletable_segments(self, condition: Condition) -> list[LogSegment]:
        """Return the first segments of which the condition holds.

        Only below the high watermark, and not a last one that is empty (LOG-17).
        """
        segments, deletable = list(self.segments), list[LogSegment]()
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            end = self.log.log_end_offset if following is None else following.base_offset
            if not (self.is_replicated(end) and condition(segment, following)):
                break
            if following is None and segment.size == 0:
                break
            deletable.append(segment)
        return deletable

    def is_replicated(self, end_offset: int) -> bool:
        """Return whether what ends at the offset is below the high watermark."""
        return self.log.high_watermark >= end_offset

    def delete_segments(self, segments: list[LogSegment]) -> None:
        """Delete these segments at the beginning."""
        self.leave_one(segments)
        self.begin_log_behind(segments[-1])
        self.remove(segments)

    def leave_one(self, segments: list[LogSegment]) -> None:
        """Begin a new segment, if no other than these is left."""
        self.log.local_log.check_if_memory_mapped_buffer_closed()
        if len(segments) == self.segments.number_of_segments:
            self.log.roll()

    def begin_log_behind(self, segment: LogSegment) -> None:
        """Let the log begin with the segment that follows."""
        following = self.segments.higher_segment(segment.base_offset)
        assert following is not None
        self.log.maybe_increment_log_start_offset(following.base_offset)

    def remove(self, segments: list[LogSegment]) -> None:
        """Delete segments and their snapshots later."""
        self.log.local_log.remove_and_delete_segments(segments)
        self.log.delete_producer_snapshots(segments)
