# SPDX-License-Identifier: Apache-2.0
"""How many offsets from the first to the last of a partition are in no batch, counted log by log.

A log tells only which offsets it lacks itself: before its first batch, between batches, and up to
the next segment. If names of logs are wrong, another log of the partition may have those before its
first batch and those up to the next segment.

Not covered: gaps of a log between offsets below its name.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from segproof.inventory.segments import Segment
from segproof.verifying.segment_carry import LogCarry


class MissingOffsets:
    """Give it each log of a partition, in the order of their names."""

    def __init__(self) -> None:
        self._between = 0
        """Offsets that are missing between batches of one log."""
        self._outside: list[tuple[int, int]] = []
        """Offsets that a log lacks before its first batch or after its last one, as ranges whose
        end is exclusive."""
        self._ranges: list[tuple[int, int]] = []
        """From the first offset of each log to its end, which is exclusive."""

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Take the next log."""
        base, following = segment.base_offset, segment.next_base_offset
        first, end, missing = carry.first_offset, carry.end_offset, carry.missing_offsets
        if first is None or end is None:
            self._between += missing
            return
        self._ranges.append((first, end))
        before = min(missing, max(0, first - base))
        end = max(base, end)
        after = 0 if following is None else min(missing - before, max(0, following - end))
        self._between += missing - before - after
        self._outside += [(first - before, first)] if before else []
        self._outside += [(end, end + after)] if after else []

    @property
    def count(self) -> int:
        """How many offsets no log has."""
        held = _joined(self._ranges)
        begins = [first for first, _ in held]
        sizes = [0, *accumulate(end - first for first, end in held)]

        def held_below(offset: int) -> int:
            index = bisect_left(begins, offset)
            return sizes[index] - (max(0, held[index - 1][1] - offset) if index else 0)

        outside = _joined(self._outside)
        return self._between + sum(
            end - first - (held_below(end) - held_below(first)) for first, end in outside
        )


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the offsets of ranges as ranges in order that do not overlap."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((first, end))
    return joined
