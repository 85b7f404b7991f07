# SPDX-License-Identifier: Apache-2.0
"""Random histories: seed, structure, profile and length make the same one on every platform.

The model runs along, so that arguments hit existing keys and borders.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache

from segproof_harness.histories.traces import Trace
from segproof_harness.structures.choices import Choose, RandomChoose
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import OperationKind, Structure, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.kafka.format.record_releases import MessagesAloneAreWritten
from segproof_model.language.behaviours import Release
from segproof_model.language.outcomes import ErrorKind
from segproof_model.releases import release_named

OTHERS = "others"
"""In weights: all operations that have none of their own there."""
WEIGHT_MAX = 10_000
Weights = Mapping[str, int]
"""How often operations are drawn, by name; those that are not named as often as usual."""


def draw_operation(
    choose: Choose, reference: ModelSubject, weights: Weights | None = None
) -> Operation:
    """Draw the next operation of a workload.

    Where nothing can succeed any more, every second one opens again, whatever the weights.
    Raises: ValueError for weights that `check_weights` refuses.
    """
    structure = reference.structure
    situation = reference.situation()
    if reference.state is None or (not reference.is_usable() and choose.boolean()):
        name = "crash_reopen" if choose.boolean() else "reopen"
        return structure.by_name()[name].draw(choose, situation)
    kinds, chances = _chances(structure, tuple(weights.items()) if weights else ())
    return kinds[chances[choose.integer(0, len(chances) - 1)]].draw(choose, situation)


@lru_cache(maxsize=64)
def _chances(
    structure: Structure, weights: tuple[tuple[str, int], ...]
) -> tuple[tuple[OperationKind, ...], tuple[int, ...]]:
    given = dict(weights)
    check_weights(structure, given)
    kinds = tuple(structure.by_name().values())
    times = [given.get(kind.name, given.get(OTHERS, kind.weight)) for kind in kinds]
    chances = [place for place, count in enumerate(times) for _ in range(count)]
    return kinds, tuple(chances)


def check_weights(structure: Structure, weights: Weights) -> None:
    """Raise ValueError, saying why, for weights with which nothing can be drawn."""
    known = structure.by_name()
    for name, weight in weights.items():
        if name not in known and name != OTHERS:
            words = ", ".join([*known, OTHERS])
            raise ValueError(f"{structure.structure_id} has no operation {name!r}; known: {words}")
        if not 0 <= weight <= WEIGHT_MAX:
            raise ValueError(f"the weight of {name} must be from 0 to {WEIGHT_MAX}")
    left = [weights.get(name, weights.get(OTHERS, kind.weight)) for name, kind in known.items()]
    if not any(left):
        raise ValueError(f"with these weights no operation of {structure.structure_id} is drawn")


def weights_for(structure: Structure, weights: Weights) -> Weights:
    """Return the weights of the operations that this structure has."""
    known = structure.by_name()
    return {name: one for name, one in weights.items() if name in known or name == OTHERS}


def written_weights(weights: Weights) -> str:
    """Return weights as the command line takes them.

    >>> written_weights({"append": 10, "lookup": 1})
    'append=10,lookup=1'
    """
    return ",".join(f"{name}={weight}" for name, weight in weights.items())


def choose_for(structure_id: str, seed: int, releases: Iterable[Release]) -> RandomChoose:
    """Return the generator of one history; of the releases only what they can write is part of it.

    Where one of them knows no batches of magic 2, none are drawn.
    """
    choose = RandomChoose(structure_id, seed)
    if any(release.has(MessagesAloneAreWritten) for release in releases):
        choose.magic_max = 1
    return choose


def _applied(reference: ModelSubject, operation: Operation) -> ModelSubject:
    """Return the model after an operation; what it was stays."""
    after = copy(reference)
    after.apply(operation)
    return after


def _drawn_setup(
    structure: Structure, choose: RandomChoose, references: list[ModelSubject], *, must_end: bool
) -> Setup:
    """Draw a setup and start the models with it; what a release is asked has to end."""
    while True:
        setup = structure.draw_setup(choose)
        outcomes = [reference.start(setup) for reference in references]
        if not must_end or all(outcome.error != ErrorKind.ENDLESS for outcome in outcomes):
            return setup


def make_history(
    structure_id: str,
    profile_name: str,
    seed: int,
    length: int,
    weights: Weights | None = None,
    *,
    releases: Sequence[str] = (),
    left_out: Counter[str] | None = None,
) -> Trace:
    """Return the history of this seed.

    One for real releases may be shorter: operations that one of them is not asked are drawn and
    left out, and counted by name in `left_out`.
    """
    structure = structure_named(structure_id)
    modelled = [release_named(name) for name in dict.fromkeys((profile_name, *releases))]
    choose = choose_for(structure_id, seed, modelled)
    references = [ModelSubject(structure, release) for release in modelled]
    setup = _drawn_setup(structure, choose, references, must_end=bool(releases))
    operations = []
    for _ in range(length):
        operation = draw_operation(choose, references[0], weights)
        after = [_applied(reference, operation) for reference in references]
        if releases and not all(structure.is_asked(one.event) for one in after if one.event):
            if left_out is not None:
                left_out[operation.name] += 1
            continue
        references = after
        operations.append(operation)
    return Trace(structure_id, profile_name, setup, tuple(operations), seed)
