# SPDX-License-Identifier: Apache-2.0
"""The segments of a log, in the order of their base offsets.

Upstream: Kafka, LogSegments (4.3.1).
Laws: LOG-1 to LOG-3.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from segproof.closing import attempt_all
from segproof.errors import IndexStateError, InvalidArgumentError
from segproof.kafka.segments.log_segment import LogSegment
from segproof.kernels.log_rules import floor_place


class _Published(NamedTuple):
    bases: tuple[int, ...]
    segments: tuple[LogSegment, ...]


class LogSegments:
    """A set of segments with different base offsets.

    One writer and any number of readers without a lock: a change publishes one new tuple, so a
    reader sees the set before it or after it. A search costs log2(segments) steps and answers a
    segment, or None.
    """

    def __init__(self) -> None:
        self._published = _Published((), ())

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._published.segments)

    def __len__(self) -> int:
        return len(self._published.bases)

    def __repr__(self) -> str:
        return f"LogSegments({', '.join(map(str, self._published.bases))})"

    def copy(self) -> "LogSegments":
        """Return another set with the same segments; changing one leaves the other."""
        other = LogSegments()
        other._published = self._published
        return other

    def add(self, segment: LogSegment) -> None:
        """Add the segment in place of one with the same base offset (LOG-3)."""
        bases, segments = self._published
        low = bisect_left(bases, segment.base_offset)
        high = bisect_right(bases, segment.base_offset)
        self._published = _Published(
            (*bases[:low], segment.base_offset, *bases[high:]),
            (*segments[:low], segment, *segments[high:]),
        )

    def remove(self, offset: int) -> None:
        """Forget the segment with this base offset, if there is one; its files stay."""
        bases, segments = self._published
        low, high = bisect_left(bases, offset), bisect_right(bases, offset)
        self._published = _Published(bases[:low] + bases[high:], segments[:low] + segments[high:])

    def clear(self) -> None:
        """Forget all segments; their files stay."""
        self._published = _Published((), ())

    def get(self, offset: int) -> LogSegment | None:
        """Return the segment with this base offset."""
        found = self.floor_segment(offset)
        return found if found is not None and found.base_offset == offset else None

    def contains(self, offset: int) -> bool:
        """Return whether there is a segment with this base offset."""
        return self.get(offset) is not None

    def base_offsets(self) -> list[int]:
        """Return the base offsets, rising."""
        return list(self._published.bases)

    @property
    def number_of_segments(self) -> int:
        """How many segments there are."""
        return len(self._published.bases)

    @property
    def is_empty(self) -> bool:
        """Whether there is no segment."""
        return not self._published.bases

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all logs; not bounded by 32 bits (LOG-18)."""
        return sum(segment.size for segment in self._published.segments)

    def first_segment(self) -> LogSegment | None:
        """Return the segment with the smallest base offset."""
        return self._at(self._published, 0)

    def last_segment(self) -> LogSegment | None:
        """Return the segment with the largest base offset."""
        published = self._published
        return self._at(published, len(published.bases) - 1)

    @property
    def active_segment(self) -> LogSegment:
        """The last segment, which takes appends.

        Raises: IndexStateError without segments.
        """
        active = self.last_segment()
        if active is None:
            raise IndexStateError("the log has no segment", law="LOG-1")
        return active

    def floor_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset <= `offset` (LOG-1)."""
        published = self._published
        return self._at(published, floor_place(published.bases, offset))

    def lower_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset < `offset` (LOG-1)."""
        published = self._published
        return self._at(published, bisect_left(published.bases, offset) - 1)

    def higher_segment(self, offset: int) -> LogSegment | None:
        """Return the segment with the smallest base offset > `offset` (LOG-1)."""
        published = self._published
        return self._at(published, bisect_right(published.bases, offset))

    def higher_segments(self, base_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments whose base offsets are > `base_offset`."""
        bases, segments = self._published
        return segments[bisect_right(bases, base_offset) :]

    def values(
        self, from_offset: int | None = None, to_offset: int | None = None
    ) -> tuple[LogSegment, ...]:
        """Return all segments, or those that a range of offsets touches (LOG-2).

        The range runs from the floor of `from_offset`, or from the first segment, to the last base
        offset < `to_offset`.

        Raises: InvalidArgumentError where `to_offset` is below `from_offset`.
        """
        bases, segments = self._published
        if from_offset is None or to_offset is None:
            return segments
        if to_offset < from_offset:
            raise InvalidArgumentError(
                "the range of offsets ends before it begins",
                law="LOG-2",
                expected=f"an end of at least {from_offset}",
                actual=to_offset,
            )
        if from_offset == to_offset:
            return ()
        return segments[
            max(0, bisect_right(bases, from_offset) - 1) : bisect_left(bases, to_offset)
        ]

    def non_active_log_segments_from(self, from_offset: int) -> tuple[LogSegment, ...]:
        """Return the segments from the floor of `from_offset` on, without the active one."""
        active = self.active_segment.base_offset
        return () if from_offset > active else self.values(from_offset, active)

    def close(self) -> None:
        """Close every segment. Raises: the first error, once all were closed."""
        attempt_all(*(segment.close for segment in self))

    def close_handlers(self) -> None:
        """Close every segment without writing or trimming. Raises: as `close`."""
        attempt_all(*(segment.close_handlers for segment in self))

    @staticmethod
    def _at(published: _Published, number: int) -> LogSegment | None:
        segments: Sequence[LogSegment] = published.segments
        return segments[number] if 0 <= number < len(segments) else None
