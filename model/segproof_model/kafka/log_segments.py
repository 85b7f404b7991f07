# SPDX-License-Identifier: Apache-2.0
"""The segments of a log, in the order of their base offsets.

Mirrors: impl/segproof/kafka/log_segments.py.
Upstream: Kafka, LogSegments (since 3.9.0); before, the skip list inside Log.
Laws: LOG-1 to LOG-3.
Not covered: threads that change the set while another iterates.
Used by: partition_log, the harness.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from segproof_model.directory import Directory
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.values import replace

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)


@dataclass(frozen=True, slots=True)
class LogSegments:
    """A set of segments with different base offsets.

    A search answers a segment, or None where there is none.
    """

    segments: tuple[LogSegment, ...] = ()
    """By rising base offset."""

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self.segments)

    def sees(self, directory: Directory) -> "LogSegments":
        """Return the same set over the directory as another operation left it."""
        seen = tuple(segment.sees(directory) for segment in self.segments)
        is_same = all(one is other for one, other in zip(seen, self.segments, strict=True))
        return self if is_same else LogSegments(seen)

    def at(self, now_ms: int) -> "LogSegments":
        """Return the same set at this time of the clock."""
        return LogSegments(tuple(replace(segment, now_ms=now_ms) for segment in self.segments))

    def add(self, segment: LogSegment) -> "LogSegments":
        """Add the segment in place of one with the same base offset (LOG-3)."""
        others = self.remove(segment.base_offset).segments
        by_base = sorted((*others, segment), key=lambda known: known.base_offset)
        return LogSegments(tuple(by_base))

    def remove(self, offset: int) -> "LogSegments":
        """Forget the segment with this base offset, if there is one."""
        kept = (segment for segment in self.segments if segment.base_offset != offset)
        return LogSegments(tuple(kept))

    def clear(self) -> "LogSegments":
        """Forget all segments."""
        return LogSegments()

    def get(self, offset: int) -> LogSegment | None:
        """Return the segment with this base offset."""
        return next((known for known in self.segments if known.base_offset == offset), None)

    def contains(self, offset: int) -> bool:
        """Return whether there is a segment with this base offset."""
        return self.get(offset) is not None

    def base_offsets(self) -> list[int]:
        """Return the base offsets, rising."""
        return [segment.base_offset for segment in self.segments]

    @property
    def number_of_segments(self) -> int:
        """How many segments there are."""
        return len(self.segments)

    @property
    def is_empty(self) -> bool:
        """Whether there is no segment."""
        return not self.segments

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all logs; not bounded by 32 bits (LOG-18)."""
        return sum(segment.size for segment in self.segments)

    def first_segment(self) -> LogSegment | None:
        """Return the segment with the smallest base offset."""
        return self.segments[0] if self.segments else None

    def last_segment(self) -> LogSegment | None:
        """Return the segment with the largest base offset."""
        return self.segments[-1] if self.segments else None

    @property
    def active_segment(self) -> LogSegment:
        """The last segment, which takes appends. Raises IndexError without segments."""
        return self.segments[-1]

    def floor_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset <= `offset` (LOG-1)."""
        return self._last_where(lambda base: base <= offset)

    def lower_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset < `offset` (LOG-1)."""
        return self._last_where(lambda base: base < offset)

    def higher_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the smallest base offset > `offset` (LOG-1)."""
        return next(iter(self.higher_segments(offset)), None)

    def higher_segments(self, base_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments whose base offsets are > `base_offset`."""
        return tuple(known for known in self.segments if known.base_offset > base_offset)

    def values(
        self, from_offset: int | None = None, to_offset: int | None = None
    ) -> tuple[LogSegment, ...] | Raised:
        """Return all segments, or those that a range of offsets touches (LOG-2).

        The range runs from the floor of `from_offset`, or from the first segment, to the last base
        offset < `to_offset`.
        """
        if from_offset is None or to_offset is None:
            return self.segments
        if to_offset < from_offset:
            return INVALID_ARGUMENT
        if from_offset == to_offset:
            return ()
        floor = self.floor_segment(from_offset)
        return tuple(
            segment
            for segment in self.segments
            if (floor is None or floor.base_offset <= segment.base_offset)
            and segment.base_offset < to_offset
        )

    def non_active_log_segments_from(self, from_offset: int) -> tuple[LogSegment, ...] | Raised:
        """Return the segments from the floor of `from_offset` on, without the active one."""
        active = self.active_segment.base_offset
        return () if from_offset > active else self.values(from_offset, active)

    def _last_where(self, holds: Callable[[int], bool]) -> LogSegment | None:
        found = [segment for segment in self.segments if holds(segment.base_offset)]
        return found[-1] if found else None
