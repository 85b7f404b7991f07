# SPDX-License-Identifier: Apache-2.0
"""Whether a part of a store was made of the commit log beside it, by its entries.

Laws: RMQDISK-44.
"""

from dataclasses import dataclass
from enum import Enum

WRONG_MIN = 8
"""With fewer wrong entries, each is reported by itself."""
WRONG_TIMES = 3
"""Wrong entries for each right one from which on a part is of another log. A log that was damaged
or mended keeps most entries right; of another log almost none is, and those by chance."""


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
        if self.wrong >= WRONG_MIN and self.wrong > WRONG_TIMES * self.right:
            return Kin.OTHER
        return Kin.OWN if self.right else Kin.UNKNOWN
