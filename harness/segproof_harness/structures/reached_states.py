# SPDX-License-Identifier: Apache-2.0
"""Which states were really reached: a check that never meets a full index checks nothing of it."""

from collections import Counter
from collections.abc import Iterable

from segproof_harness.structures.outcomes import NOT_OPEN
from segproof_harness.structures.steps import Event
from segproof_harness.structures.structure import Structure


class Sometimes:
    """How often each state of a structure was reached."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.counts: Counter[str] = Counter()

    def see(self, event: Event) -> None:
        """Count the states that this step is in; a step on what is not open is in none."""
        if event.outcome.error == NOT_OPEN:
            return
        for name, holds in self.structure.sometimes.items():
            if holds(event):
                self.counts[name] += 1

    def missing(self, but_for: Iterable[str] = ()) -> list[str]:
        """Return the states that were never reached."""
        allowed = set(but_for)
        return [
            name
            for name in self.structure.sometimes
            if not self.counts[name] and name not in allowed
        ]
