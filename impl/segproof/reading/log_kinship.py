# SPDX-License-Identifier: Apache-2.0
"""Whether a part of a store was made of the commit log beside it, by its entries.

Laws: RMQDISK-44.
"""

from dataclasses import dataclass
from enum import Enum

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
