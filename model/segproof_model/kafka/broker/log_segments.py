# SPDX-License-Identifier: Apache-2.0
"""The segments of a log, in the order of their base offsets.

Upstream: Kafka 4.4.0, LogSegments. Otherwise: log_loader_releases.
Laws: LOG-1 to LOG-3, LOG-18.
Not covered: threads that change the set while another iterates.
"""

from collections.abc import Iterator

from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse


class LogSegments(State):
    """A set of segments with different base offsets.

    A search answers a segment, or None where there is none.

    >>> from segproof_model.kafka.format.log_config import LogConfig
    >>> segments = LogSegments(Files())
    >>> for base_offset in (40, 0, 20):
    ...     segments.add(LogSegment(segments.files, "", base_offset, LogConfig()))
    >>> segments.base_offsets(), [one.base_offset for one in segments.values(39, 40)]
    ([0, 20, 40], [20])
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.segments: tuple[LogSegment, ...] = ()
        """By rising base offset."""

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self.segments)

    def add(self, segment: LogSegment) -> None:
        """Add the segment in place of one with the same base offset (LOG-3)."""
        self.remove(segment.base_offset)
        by_base = sorted((*self.segments, segment), key=lambda known: known.base_offset)
        self.segments = tuple(by_base)

    def remove(self, offset: int) -> None:
        """Forget the segment with this base offset, if there is one."""
        kept = [segment for segment in self.segments if segment.base_offset != offset]
        self.segments = tuple(kept)

    def clear(self) -> None:
        """Forget all segments."""
        self.segments = ()

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

    @property
    def active_segment(self) -> LogSegment:
        """The last segment, which takes appends. Raises IndexError without segments."""
        return self.segments[-1]

    def first_segment(self) -> LogSegment | None:
        """Return the segment with the smallest base offset."""
        return self.segments[0] if self.segments else None

    def last_segment(self) -> LogSegment | None:
        """Return the segment with the largest base offset."""
        return self.segments[-1] if self.segments else None

    def floor_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset <= `offset` (LOG-1)."""
        below = [known for known in self.segments if known.base_offset <= offset]
        return below[-1] if below else None

    def lower_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset < `offset` (LOG-1)."""
        below = [known for known in self.segments if known.base_offset < offset]
        return below[-1] if below else None

    def higher_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the smallest base offset > `offset` (LOG-1)."""
        return next(iter(self.higher_segments(offset)), None)

    def higher_segments(self, base_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments whose base offsets are > `base_offset`."""
        return tuple([known for known in self.segments if known.base_offset > base_offset])

    def values(self, from_offset: int, to_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments that a range of offsets touches (LOG-2).

        The range runs from the floor of `from_offset`, or from the first segment, to the last base
        offset < `to_offset`.
        """
        if from_offset == to_offset:
            return ()
        if to_offset < from_offset:
            refuse(ErrorKind.INVALID_ARGUMENT)
        return self.between_floor_and(from_offset, to_offset)

    def between_floor_and(self, from_offset: int, to_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments from the floor of one offset, or the first, on below another."""
        floor = self.floor_segment(from_offset)
        return tuple(
            [
                segment
                for segment in self.segments
                if (floor is None or floor.base_offset <= segment.base_offset)
                and segment.base_offset < to_offset
            ]
        )

    def non_active_log_segments_from(self, from_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments from the floor of `from_offset` on, without the active one."""
        active = self.active_segment.base_offset
        return () if from_offset > active else self.values(from_offset, active)
