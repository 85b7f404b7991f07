# SPDX-License-Identifier: Apache-2.0
"""What a salvage says of its losses, and what a judge found of one draw."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

FAULTS = (
    "raised", "made up", "wrong offset", "twice", "falling", "below its name", "unframed",
    "unsound", "nowhere", "changed", "wrong number", "wrong unit", "not indexed",
    "changed when saved again", "told too few", "told too many", "verify tells otherwise",
)  # fmt: skip
"""What no salvage may do, by the names of `Verdict.counts`."""


class Told(NamedTuple):
    """How many offsets or messages a salvage calls lost."""

    lost: int
    is_exact: bool
    """Whether no more are lost; else this many are lost at least."""
    at_most: int | None = None
    """The most that are lost, if the salvage says so."""


Salvager = Callable[[Path, Path], Told | None]
"""Saves what is at the first path into a new directory, the second path.

It writes what it keeps as the log of a partition or store, and what it sets aside into other files,
whatever their names. None: it says nothing of losses.
"""


class Kept(NamedTuple):
    """A batch or message in an output that should not be there as it is."""

    name: str
    position: int
    first: int
    last: int
    """Its first and last offset."""
    fact: str
    """The fact that tells it apart; empty if none does."""


@dataclass
class Verdict:
    """One draw, judged."""

    system: str
    source: str
    """What the sound partition or store was."""
    damages: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[Kept] = field(default_factory=list)
    """Each batch or message that is counted as made up or at a wrong offset."""
    untold: list[Kept] = field(default_factory=list)
    """Those that no fact tells apart."""
    seed: int = -1
    """The seed that draws it again; -1 for what was not drawn."""
    error: str = ""
    """The last lines of an exception that the salvage raised."""

    @property
    def faults(self) -> dict[str, int]:
        """Return what no salvage may do, and how often it was done."""
        return {name: self.counts[name] for name in FAULTS if self.counts[name]}
