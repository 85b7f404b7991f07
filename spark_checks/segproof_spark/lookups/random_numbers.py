# SPDX-License-Identifier: Apache-2.0
"""Seeded random numbers, the same with every release of numpy.

numpy promises to keep the bits of PCG64, so only those are used, and numbers are made of them
here.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
Chosen = TypeVar("Chosen")


class Draw:
    """Random numbers for one name, such as that of a unit of work and a seed."""

    def __init__(self, *name: object) -> None:
        digest = hashlib.sha256(repr(name).encode()).digest()
        words = np.random.SeedSequence(int.from_bytes(digest[:16], "big"))
        self._bits = np.random.PCG64(words)

    def raw(self, count: int) -> NDArray[np.uint64]:
        """Return so many numbers of 64 bits."""
        drawn: NDArray[np.uint64] = self._bits.random_raw(count)
        return drawn

    def below(self, limit: int, count: int) -> Int64Array:
        """Return numbers from 0 to `limit` - 1; `limit` is 1 to 2^63."""
        return (self.raw(count) % np.uint64(limit)).astype(np.int64)

    def number(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both inclusive and at most 2^64 apart."""
        return low + int(self.raw(1)[0]) % (high - low + 1)

    def one_of(self, choices: Sequence[Chosen]) -> Chosen:
        """Return one of the choices."""
        return choices[self.number(0, len(choices) - 1)]

    def order(self, count: int) -> Int64Array:
        """Return the numbers below `count` in a random order."""
        return np.argsort(self.raw(count), kind="stable")
