# SPDX-License-Identifier: Apache-2.0
"""Placing: one pure function from the facts of a partition to the fate of each batch.

`rules.RULES` is the table of what is decided and why.

Laws: BATCH-3, BATCH-19, EPOCH-1, PROD-3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segproof.stretches.kafka.desk import Desk, Gap, parts_that_meet
from segproof.stretches.kafka.facts import Facts, Int64s, NeedsBatches
from segproof.stretches.kafka.rules import ORDER, RULES, Rule


@dataclass(frozen=True, slots=True)
class Placement:
    """What becomes of each row of `Facts.rows`, in the same order."""

    fates: NDArray[np.int8]
    """Values of `Fate`. A stretch's fate is that of all its batches."""
    rules: NDArray[np.int8]
    """For each row, the index in `RULES` of the rule that decided it."""
    firsts: Int64s
    """For each row, the first offset that it gets if it is kept."""
    kept: Int64s
    """The rows that are kept, in the order of their offsets."""
    gaps: tuple[Gap, ...]
    """In the order of their offsets."""

    def why(self, row: int) -> Rule:
        """Return the rule that decided a row."""
        return RULES[self.rules[row]]


def place(facts: Facts) -> Placement | NeedsBatches:
    """Return what becomes of each batch of a partition, or which stretches must be opened first.

    Pure: the same facts give the same answer; and facts with every stretch opened give the same
    fates. Memory: about 100 bytes for each row, and some hundred for each that another one
    contradicts. Cost: n log n for n rows. Raises: never.
    """
    parts = parts_that_meet(facts.rows)
    if parts:
        return NeedsBatches(parts)
    desk = Desk(facts)
    for rule in ORDER:
        desk.rule = RULES.index(rule)
        rule.apply(desk)
        if desk.asked:
            return NeedsBatches(tuple(desk.asked[row] for row in sorted(desk.asked)))
    return Placement(desk.fates, desk.rules, desk.firsts, desk.kept, tuple(desk.gaps()))


def place_all(
    facts: Facts, open_stretches: Callable[[Facts, NeedsBatches], Facts]
) -> tuple[Facts, Placement]:
    """Place a partition, and open stretches as long as placing asks for it.

    Return the facts with the rows that the placement speaks of. Raises: what `open_stretches` does.
    """
    while isinstance(answer := place(facts), NeedsBatches):
        facts = open_stretches(facts, answer)
    return facts, answer
