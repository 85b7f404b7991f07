# SPDX-License-Identifier: Apache-2.0
"""Targets made from what they must find: ranges of targets with one answer each, in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from segproof_spark.lookups.drawing import Draw, Int64Array

__all__ = ["BLOCK", "Asked", "Ranges", "ranges_of_keys"]

BLOCK = 1 << 18
"""So many targets are asked at once: with their answers they take some 10 MiB."""
INT64_MAX = (1 << 63) - 1
INT64_MIN = -INT64_MAX - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """Some targets, and what they must find."""

    targets: Int64Array
    expected: tuple[Int64Array, ...]
    """One array for each part of an answer."""
    ranges: Int64Array
    """The number of the range that each target was made from."""

    def sample(self, count: int) -> "Asked":
        """Return about so many of the targets, evenly spread, as arrays of their own."""
        step = slice(0, None, max(len(self.targets) // count, 1))
        parts = tuple(part[step].copy() for part in self.expected)
        return Asked(self.targets[step].copy(), parts, self.ranges[step].copy())

    @classmethod
    def joined(cls, several: Sequence["Asked"]) -> "Asked":
        """Return all targets of several as one."""
        parts = zip(*(one.expected for one in several), strict=True)
        return cls(
            np.concatenate([one.targets for one in several]),
            tuple(np.concatenate(columns) for columns in parts),
            np.concatenate([one.ranges for one in several]),
        )

    def rows(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each target with its answer."""
        answers = zip(*(part.tolist() for part in self.expected), strict=True)
        return zip(self.targets.tolist(), answers, strict=True)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of targets in rising order that do not meet, and the answer of each."""

    lows: Int64Array
    highs: Int64Array
    """Inclusive, and not below `lows`."""
    answers: tuple[Int64Array, ...]

    def __len__(self) -> int:
        return len(self.lows)

    def split_at(self, lows: Int64Array) -> tuple["Ranges", Int64Array]:
        """Cut ranges that follow each other without a gap, so that each of `lows` begins one.

        Return also how many of the rising `lows` are not above each range, less one.
        """
        inside = lows[(lows >= self.lows[0]) & (lows <= self.highs[-1])]
        begins = np.union1d(self.lows, inside)
        ends = np.concatenate([begins[1:] - 1, self.highs[-1:]])
        owners = np.cumsum(np.isin(begins, self.lows)) - 1
        numbers = np.cumsum(np.isin(begins, lows)) - 1 + np.count_nonzero(lows < self.lows[0])
        return Ranges(begins, ends, tuple(part[owners] for part in self.answers)), numbers

    def blocks(
        self, draw: Draw, borders: Sequence[int], count: int, first_shuffled: bool
    ) -> Iterator[Asked]:
        """Yield at least `count` targets, every second block shuffled, the others rising.

        First the borders, then the ends of every range with what follows its beginning, whatever
        `count` says, then targets drawn from all ranges.
        """
        order = draw.order(BLOCK)
        is_shuffled = first_shuffled
        done = 0
        for targets, ranges in self._all(draw, borders, count):
            done += len(targets)
            if is_shuffled:
                places = order if len(targets) == BLOCK else order[order < len(targets)]
                targets, ranges = targets[places], ranges[places]
            yield Asked(targets, tuple(part[ranges] for part in self.answers), ranges)
            is_shuffled = not is_shuffled
        assert done >= count or not len(self)

    def _all(
        self, draw: Draw, borders: Sequence[int], count: int
    ) -> Iterator[tuple[Int64Array, Int64Array]]:
        done = 0
        for made in chain([self._at(borders)], self._ends_in_blocks()):
            done += len(made[0])
            yield made
        while done < count and len(self):
            made = self._random(draw, min(BLOCK, count - done))
            done += len(made[0])
            yield made

    def _at(self, values: Sequence[int]) -> tuple[Int64Array, Int64Array]:
        """Return those values that lie in a range, rising, with its number: by looking at each."""
        found = [
            (value, int(number))
            for value in sorted(set(values))
            if INT64_MIN <= value <= INT64_MAX
            for number in np.flatnonzero((self.lows <= value) & (value <= self.highs))
        ]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def _ends_in_blocks(self) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield beginning, what follows it, and end of each range: a key and its neighbours."""
        step = BLOCK // 3
        for start in range(0, len(self), step):
            lows, highs = self.lows[start : start + step], self.highs[start : start + step]
            # The sum wraps only where the range ends at once, and then the end is the smaller.
            seconds = np.where(lows < highs, lows + 1, highs)
            targets = np.stack([lows, seconds, highs], axis=1).ravel()
            yield targets, np.repeat(np.arange(start, start + len(lows)), 3)

    def _random(self, draw: Draw, count: int) -> tuple[Int64Array, Int64Array]:
        """Return targets at random distances in ranges that are spread over all, rising."""
        shift = draw.number(0, len(self) - 1)
        if count >= len(self):
            ranges = np.arange(count) * len(self) // count
        else:
            ranges = np.sort((np.arange(count) * len(self) // count + shift) % len(self))
        lows = self.lows[ranges].view(np.uint64)
        # As 64 bits without a sign: 0 stands for all 2^64, of which any distance is one.
        widths = self.highs[ranges].view(np.uint64) - lows + np.uint64(1)
        distances = draw.raw(count)
        targets = (lows + distances % np.where(widths, widths, distances + np.uint64(1))).view(
            np.int64
        )
        targets.sort()  # ranges do not meet, so each target keeps its range
        return targets, ranges


def ranges_of_keys(
    keys: Int64Array,
    answers: Sequence[Int64Array],
    missing: Sequence[int],
    low: int = INT64_MIN,
    high: int = INT64_MAX,
) -> Ranges:
    """Return the ranges of strictly increasing keys: key i answers from itself to below the next.

    `missing` is the answer below the first key; `low` and `high` are the first and last target that
    is asked, both inclusive. Keys outside of them have no range.
    """
    lows = np.concatenate([np.array([low], np.int64), keys])
    highs = np.concatenate([keys - 1, np.array([high], np.int64)])
    columns = [
        np.concatenate([np.array([none], np.int64), column.astype(np.int64)])
        for none, column in zip(missing, answers, strict=True)
    ]
    # Nothing lies below the least number: there the difference has wrapped.
    kept = (lows <= highs) & (lows >= low) & (lows <= high)
    if len(keys) and int(keys[0]) == INT64_MIN:
        kept[0] = False
    return Ranges(lows[kept], np.minimum(highs[kept], high), tuple(part[kept] for part in columns))
