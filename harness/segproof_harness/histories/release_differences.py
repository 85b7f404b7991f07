# SPDX-License-Identifier: Apache-2.0
"""Why two subjects answer differently, and rightly so: the behaviours in which releases differ.

Each subject is held against the model of its own release. Where the models themselves part, the
subjects are expected to; the behaviour is found by giving it to one release, or taking it away.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from segproof.counts import plural
from segproof_harness.histories.compare import Parting
from segproof_harness.histories.time_limit import time_limit
from segproof_harness.histories.traces import Trace
from segproof_harness.structures.structure import Structure, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.language.behaviours import Behaviour, Release, differences
from segproof_model.releases import release_named

SEVERAL = "several behaviours together"
SECONDS = 5.0
"""What a history may take with one behaviour of another release."""


def behaviours_of(trace: Trace, parting: Parting) -> tuple[type[Behaviour], ...]:
    """Return the behaviours each of which alone moves the step where two releases part.

    Empty where only several of them together do.
    """
    structure = structure_named(trace.structure_id)
    begun = replace(trace, operations=trace.operations[: parting.step])
    one, other = release_named(parting.profile_name), release_named(parting.other)
    usual = list(_seen(structure, one, begun))
    return tuple(
        behaviour
        for behaviour in differences(one, other)
        if behaviour.system() == structure.system
        and _moves(_seen(structure, one.flipped(behaviour), begun), usual)
    )


def _seen(structure: Structure, release: Release, trace: Trace) -> Iterator[tuple[Any, ...]]:
    """Yield what the model of a release shows at each step of a history."""
    model = ModelSubject(structure, release)
    yield model.start(trace.setup), model.observe(), model.image()
    for operation in trace.operations:
        yield model.apply(operation), model.observe(), model.image()


def _moves(flipped: Iterator[tuple[Any, ...]], usual: list[tuple[Any, ...]]) -> bool:
    """Return whether a behaviour alone is seen; it may be in that nothing ends, but for it."""
    try:
        with time_limit(SECONDS):
            return any(one != other for one, other in zip(flipped, usual, strict=True))
    except TimeoutError:
        return True


@dataclass(slots=True)
class Expected:
    """The differences of a run that releases explain."""

    histories: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How many first part so, by the two profiles and the behaviours, written with commas."""
    _known: dict[tuple[str, ...], str] = field(default_factory=dict)
    """What explained a parting of this kind: the next one of it is not looked into again."""

    def add(self, parting: Parting, make_trace: Callable[[], Trace]) -> None:
        """Count a history that parts; explain it, if it is the first that does so."""
        if parting.kind not in self._known:
            moved = behaviours_of(make_trace(), parting)
            self._known[parting.kind] = ", ".join(one.__name__ for one in moved) or SEVERAL
        self.histories[parting.profile_name, parting.other, self._known[parting.kind]] += 1

    def merge(self, other: "Expected") -> None:
        """Add another run's."""
        self.histories.update(other.histories)

    def lines(self) -> list[str]:
        """Return the differences in words, the most frequent first."""
        return [
            f"expected: {other} differs from {one} first by {names}: {plural(count, 'history')}"
            for (one, other, names), count in self.histories.most_common()
        ]
