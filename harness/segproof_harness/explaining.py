# SPDX-License-Identifier: Apache-2.0
"""Why two subjects answer differently, and rightly so: the flags in which their profiles differ.

Each subject is held against the model under its own profile. Where the models themselves part, the
subjects are expected to; the flag is found by giving one profile the other's value, flag by flag.

Used by: replay.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from segproof_harness.compare import Comparison, Parting
from segproof_harness.structures import structure_named
from segproof_harness.subjects import ModelSubject
from segproof_harness.traces import Trace
from segproof_model.profiles import differences, profile_named

__all__ = ["Expected", "flags_of"]

SEVERAL = "several flags together"
SECONDS = 5.0
"""What a history may take with one flag of another release."""


def flags_of(trace: Trace, parting: Parting) -> tuple[str, ...]:
    """Return the flags each of which alone moves the step where two profiles part.

    Empty where only several of them together do.
    """
    structure = structure_named(trace.structure_id)
    begun = replace(trace, operations=trace.operations[: parting.step])
    one, other = profile_named(parting.profile_name), profile_named(parting.other)
    found = []
    for flag, _, value, _, _ in differences(one, other):
        flipped = ModelSubject(structure, replace(one, **{flag: value}), name="flipped")
        if _moves(Comparison(structure, one.name, [flipped], image_every=1), begun):
            found.append(flag)
    return tuple(found)


def _moves(comparing: Comparison, begun: Trace) -> bool:
    """Return whether a flag alone is seen; it may be in that nothing ends, with it and no other."""
    try:
        return comparing.run(begun, SECONDS) is not None
    except TimeoutError:
        return True


@dataclass(slots=True)
class Expected:
    """The differences of a run that profiles explain."""

    histories: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How many first part so, by the two profiles and the flags, written with commas."""
    _known: dict[tuple[str, ...], str] = field(default_factory=dict)
    """What explained a parting of this kind: the next one of it is not looked into again."""

    def add(self, parting: Parting, make_trace: Callable[[], Trace]) -> None:
        """Count a history that parts; explain it, if it is the first that does so."""
        if parting.kind not in self._known:
            self._known[parting.kind] = ", ".join(flags_of(make_trace(), parting)) or SEVERAL
        self.histories[parting.profile_name, parting.other, self._known[parting.kind]] += 1

    def merge(self, other: "Expected") -> None:
        """Add another run's."""
        self.histories.update(other.histories)

    def lines(self) -> list[str]:
        """Return the differences in words, the most frequent first."""
        return [
            f"expected: {other} differs from {one} first by {flags}: {count} "
            + ("history" if count == 1 else "histories")
            for (one, other, flags), count in self.histories.most_common()
        ]
