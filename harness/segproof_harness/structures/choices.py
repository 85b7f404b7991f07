# SPDX-License-Identifier: Apache-2.0
"""Where arguments come from: one small protocol of choices, and the biases that find defects.

An argument is described once, over `Choose`. Hypothesis draws through it in machines, so that what
it finds shrinks; a seeded generator draws through it in workloads, the same on every platform.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAGIC_NEWEST = 2


class Choose:
    """Someone who chooses. The first or smallest choice is the simplest one."""

    magic_max = MAGIC_NEWEST
    """The newest format of Kafka's batches that histories may begin with or append."""

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both inclusive."""
        raise NotImplementedError

    def one_of(self, items: Sequence[Item]) -> Item:
        """Return one of the items, which must not be empty."""
        return items[self.integer(0, len(items) - 1)]

    def data(self, size: int) -> bytes:
        """Return `size` bytes."""
        raise NotImplementedError

    def boolean(self) -> bool:
        """Return True or False."""
        raise NotImplementedError

    def one_in(self, count: int) -> bool:
        """Return True about once in `count` times; False is the simple choice."""
        return self.integer(0, count - 1) == count - 1

    def weighted(self, weights: Sequence[int]) -> int:
        """Return a place in `weights`, each as often as its weight says."""
        drawn = self.integer(0, sum(weights) - 1)
        for place, weight in enumerate(weights):
            drawn -= weight
            if drawn < 0:
                return place
        raise AssertionError("weights are not negative")

    def beside(self, value: int) -> int:
        """Return the value, or one of its two neighbours."""
        return value + self.one_of((0, -1, 1))


class RandomChoose(Choose):
    """Chooses by a seed, with `getrandbits` only: the same on every platform and release.

    >>> [RandomChoose("a", 1).integer(0, 99) for _ in range(3)]
    [22, 22, 22]
    """

    def __init__(self, purpose: str, seed: int) -> None:
        digest = hashlib.sha256(f"{purpose}/{seed}".encode()).digest()
        self._bits = random.Random(int.from_bytes(digest, "big")).getrandbits

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both inclusive."""
        width = high - low
        if width <= 0:
            return low
        length = width.bit_length()
        drawn = self._bits(length)
        while drawn > width:
            drawn = self._bits(length)
        return low + drawn

    def data(self, size: int) -> bytes:
        """Return `size` bytes."""
        return self._bits(8 * size).to_bytes(size, "big") if size else b""

    def boolean(self) -> bool:
        """Return True or False."""
        return bool(self._bits(1))


class HypothesisChoose(Choose):
    """Chooses through Hypothesis' interactive `data()`, so that failures shrink."""

    def __init__(self, data: Any) -> None:
        from hypothesis import strategies  # only machines need Hypothesis

        self._draw = data.draw
        self._strategies = strategies

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both inclusive."""
        return int(self._draw(self._strategies.integers(low, high)))

    def one_of(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        chosen: Item = self._draw(self._strategies.sampled_from(items))
        return chosen

    def data(self, size: int) -> bytes:
        """Return `size` bytes."""
        return bytes(self._draw(self._strategies.binary(min_size=size, max_size=size)))

    def boolean(self) -> bool:
        """Return True or False."""
        return bool(self._draw(self._strategies.booleans()))


def within(value: int, low: int, high: int) -> int:
    """Return the value, moved into [low, high]."""
    return max(low, min(high, value))
