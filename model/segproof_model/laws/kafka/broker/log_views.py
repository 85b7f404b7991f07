# SPDX-License-Identifier: Apache-2.0
"""A log as the laws see it: its segments, its bounds, and whether the offsets in it rise."""

from functools import cached_property
from itertools import pairwise
from typing import Any

from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.language.integers import INT32_MAX
from segproof_model.laws.kafka.format.segment_views import SegmentView, segment_view
from segproof_model.laws.kafka.format.transaction_index import Slot, slots_of
from segproof_model.laws.kept_answers import kept

APPENDS = "append_as_leader append_as_follower"


class LogView:
    """A log."""

    def __init__(self, log: Any) -> None:
        self.log = log
        self.bases: list[int] = [one.base_offset for one in log.log_segments]
        self.ends = [*self.bases[1:], int(log.log_end_offset)]
        """The latest end of each segment, exclusive."""
        self.is_open = bool(self.bases) and not log.local_log.is_closed
        """Whether laws apply: a failure between removal and creation leaves no segment."""

    @cached_property
    def segments(self) -> list[SegmentView]:
        """The segments."""
        return [segment_view(one) for one in self.log.log_segments]

    @property
    def images(self) -> dict[int, bytes]:
        """The bytes of each segment's log up to its logical end, by base offset."""
        return {one.base_offset: one.image for one in self.segments}

    def of(self, base_offset: int) -> SegmentView:
        """Return a segment."""
        return self.segments[self.bases.index(base_offset)]

    @cached_property
    def is_sound(self) -> bool:
        """Whether each segment is in order, wholly read, and ends before the next one begins."""
        both = zip(self.segments, self.ends, strict=False)
        return self.is_open and all(
            one.is_ordered and is_whole(one) and all(last.last_offset < end for last in one.batches)
            for one, end in both
        )

    @cached_property
    def has_overlap(self) -> bool:
        """Whether a batch reaches into the next segment."""
        return any(
            batch.last_offset >= following.base_offset
            for one, following in pairwise(self.segments)
            for batch in one.batches
        )

    def bound(self, isolation: str) -> LogOffsetMetadata:
        """Return the offset that a read of this isolation does not pass."""
        if isolation == "log_end":
            return LogOffsetMetadata(*self.log.local_log.log_end)
        bounds: list[LogOffsetMetadata] = [self.log.high_watermark_metadata]
        if isolation == "txn_committed" and self.log.first_unstable is not None:
            bounds.append(self.log.first_unstable)
        return min(bounds, key=lambda one: one.message_offset)

    def aborted_from(self, base_offset: int) -> list[Slot]:
        """Return the aborted transactions in the indexes from a segment on."""
        segments = [one for one in self.log.log_segments if one.base_offset >= base_offset]
        return [slot for one in segments for slot in slots_of(one.txn_index.image)]

    def from_floor(self, offset: int) -> list[SegmentView]:
        """Return the segments from the one that contains an offset on."""
        return self.segments[max(0, sum(base <= offset for base in self.bases) - 1) :]


@kept
def log_view(log: Any) -> LogView:
    """Return the laws' view of a log."""
    return LogView(log)


def is_whole(segment: SegmentView) -> bool:
    """Return whether a segment's batches are all of its log."""
    return sum(batch.size_bytes for batch in segment.batches) == len(segment.image)


def overflows(segment: SegmentView) -> bool:
    """Return whether the last offset is too far from the base for an index."""
    return any(one.last_offset - segment.base_offset > INT32_MAX for one in segment.batches[-1:])


def leads_astray(segment: SegmentView, offset: int) -> bool:
    """Return whether an index makes a search for an offset begin inside a batch, or after the batch
    that reaches it.
    """
    reaching = segment.first_reaching(offset)
    batches = [one for one in segment.batches if one.base_offset <= offset]
    known = {one.position for one in batches if reaching is None or one <= reaching}
    return not known.issuperset(position for key, position in segment.offsets if key <= offset)
