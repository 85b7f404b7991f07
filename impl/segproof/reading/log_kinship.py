# SPDX-License-Identifier: Apache-2.0
"""Whether a part of a store was made of the commit log beside it, by its entries.

Laws: RMQDISK-44.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from segproof.stretches.rocketmq.witnesses import are_of_other_log


class Kin(Enum):
    """What a part is to the log."""

    OWN = "own"
    OTHER = "other"
    UNKNOWN = "unknown"
    """Nothing of it leads into the log."""


@dataclass(slots=True)
class Kinship:
    """How many entries of a part that lead into the log are right."""

    right: int = 0
    inside: int = 0
    """Wrong ones that lead to a byte before the end of the log."""
    beyond: int = 0
    """Wrong ones that lead to its end, or further."""

    @property
    def wrong(self) -> int:
        """How many are wrong. Where the log agrees with most entries that lead before its end, the
        later ones lead to what it has lost: they are not counted.
        """
        return self.inside if self.right > self.inside else self.inside + self.beyond

    @property
    def kin(self) -> Kin:
        """What the part is to the log."""
        if are_of_other_log(self.right, self.wrong):
            return Kin.OTHER
        return Kin.OWN if self.right else Kin.UNKNOWN


class MetInFiles:
    """Counts units and entries by the file of a log into which they lead: right and wrong ones."""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = np.array(starts, np.int64)
        self._right = np.zeros(len(starts), np.int64)
        self._wrong = np.zeros(len(starts), np.int64)

    def add(self, offsets: NDArray[np.int64], *, are_right: bool) -> None:
        """Add those that lead to some offsets; what lies before the log counts for no file."""
        numbers = np.searchsorted(self._starts, offsets, "right") - 1
        np.add.at(self._right if are_right else self._wrong, numbers[numbers >= 0], 1)

    @property
    def is_one_of_others(self) -> bool:
        """Whether a file may be of another store: none that leads into it is right, or few are."""
        found = zip(self._right.tolist(), self._wrong.tolist(), strict=True)
        return any(
            wrong and (not right or are_of_other_log(right, wrong)) for right, wrong in found
        )
