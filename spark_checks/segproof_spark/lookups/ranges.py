# SPDX-License-Identifier: Apache-2.0
"""Ranges of targets with one answer each, and targets made from them, with their right answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof_spark.lookups.random_numbers import Draw, Int64Array

BLOCK = 1 << 18
"""So many targets are asked at once: with their answers they take some 10 MiB."""
INT64_MAX = (1 << 63) - 1
INT64_MIN = -INT64_MAX - 1

Columns = tuple[Int64Array, ...]
"""One array for each part of an answer."""


def rows_of(columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the answer of each target."""
    return list(zip(*(np.asarray(column).tolist() for column in columns), strict=False))


@dataclass(frozen=True, slots=True)
class Asked:
    """Some targets, and their right answers."""

    targets: Int64Array
    expected: Columns

    def at(self, places: "slice | NDArray[Any]") -> "Asked":
        """Return some of the targets, as arrays of their own."""
        return Asked(
            self.targets[places].copy(), tuple(part[places].copy() for part in self.expected)
        )

    def sample(self, count: int) -> "Asked":
        """Return about so many of the targets, evenly spread."""
        return self.at(slice(0, None, max(len(self.targets) // count, 1)))

    @classmethod
    def joined(cls, several: Sequence["Asked"]) -> "Asked":
        """Return all targets of several as one."""
        parts = zip(*(one.expected for one in several), strict=True)
        return cls(
            np.concatenate([one.targets for one in several]),
            tuple(np.concatenate(columns) for columns in parts),
        )


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of targets in rising order that do not meet, and the answer of each."""

    lows: Int64Array
    highs: Int64Array
    """Inclusive, and not below `lows`."""
    answers: Columns

    def __len__(self) -> int:
        return len(self.lows)

    def cut_at(self, lows: Int64Array) -> "Ranges":
        """Cut ranges that follow each other without a gap, so that each of `lows` begins one.

        A new first part of each answer is how many of the rising `lows` are not above, less one.
        """
        inside = lows[(lows >= self.lows[0]) & (lows <= self.highs[-1])]
        begins = np.union1d(self.lows, inside)
        ends = np.concatenate([begins[1:] - 1, self.highs[-1:]])
        owners = np.cumsum(np.isin(begins, self.lows)) - 1
        numbers = np.cumsum(np.isin(begins, lows)) - 1 + np.count_nonzero(lows < self.lows[0])
        return Ranges(begins, ends, (numbers, *(part[owners] for part in self.answers)))

    def blocks(self, draw: Draw, borders: Sequence[int], count: int) -> Iterator[Asked]:
        """Yield at least `count` targets in blocks, by turns rising and shuffled.

        First the borders, then the beginning of each range, what follows it, and its end, however
        small `count` is; then targets drawn from all ranges.
        """
        is_shuffled = bool(draw.number(0, 1))
        order = draw.order(BLOCK)
        for targets, ranges in self._targets(draw, borders, count):
            if is_shuffled:
                places = order[order < len(targets)]
                targets, ranges = targets[places], ranges[places]
            yield Asked(targets, tuple(part[ranges] for part in self.answers))
            is_shuffled = not is_shuffled

    def _targets(
        self, draw: Draw, borders: Sequence[int], count: int
    ) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield targets with the numbers of their ranges."""
        left = count
        for made in chain([self._at(borders)], self._ends()):
            left -= len(made[0])
            yield made
        while left > 0 and len(self):
            yield self._drawn(draw, min(BLOCK, left))
            left -= BLOCK

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

    def _ends(self) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield beginning, what follows it, and end of each range: a key and its neighbours."""
        step = BLOCK // 3
        for start in range(0, len(self), step):
            lows, highs = self.lows[start : start + step], self.highs[start : start + step]
            # The sum wraps only where the range ends at once, and then the end is the smaller.
            seconds = np.where(lows < highs, lows + 1, highs)
            targets = np.stack([lows, seconds, highs], axis=1).ravel()
            yield targets, np.repeat(np.arange(start, start + len(lows)), 3)

    def _drawn(self, draw: Draw, count: int) -> tuple[Int64Array, Int64Array]:
        """Return targets at random distances in ranges that are spread over all, rising."""
        shift = draw.number(0, len(self) - 1)
        ranges = np.arange(count) * len(self) // count
        if count < len(self):
            ranges = np.sort((ranges + shift) % len(self))
        lows = self.lows[ranges].view(np.uint64)
        # As 64 bits without a sign: a width of 0 stands for all 2^64.
        widths = self.highs[ranges].view(np.uint64) - lows + np.uint64(1)
        distances = draw.raw(count)
        targets = lows + distances % np.where(widths, widths, distances + np.uint64(1))
        return np.sort(targets.view(np.int64)), ranges  # each keeps its range: they do not meet


def ranges_of_keys(
    keys: Int64Array, answers: Sequence[Int64Array], missing: Sequence[int]
) -> Ranges:
    """Return the ranges of strictly increasing keys: each answers from itself to below the next.

    `missing` is the answer below the first key.
    """
    lows = np.concatenate([np.array([INT64_MIN]), keys])
    highs = np.concatenate([keys - 1, np.array([INT64_MAX])])
    kept = lows <= highs
    kept[0] &= not len(keys) or int(keys[0]) > INT64_MIN  # else the difference has wrapped
    columns = (
        np.concatenate([np.array([none]), column.astype(np.int64)])[kept]
        for none, column in zip(missing, answers, strict=True)
    )
    return Ranges(lows[kept], highs[kept], tuple(columns))
