# SPDX-License-Identifier: Apache-2.0
"""Random histories: seed, structure, profile and length make the same one on every platform.

The model runs along, so that arguments hit existing keys and borders.
Used by: replay, Spark, golden tests.
"""

from functools import cache

from segproof_harness.generation import Choose, RandomChoose
from segproof_harness.operations import Operation
from segproof_harness.structures import OperationKind, Structure, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_harness.traces import Trace
from segproof_model.profiles import profile_named


def draw_operation(choose: Choose, reference: ModelSubject) -> Operation:
    """Draw the next operation of a workload.

    Where nothing can succeed any more, every second one opens again.
    """
    structure = reference.structure
    situation = reference.situation()
    if reference.state is None or (not reference.is_usable() and choose.boolean()):
        name = "crash_reopen" if choose.boolean() else "reopen"
        return structure.by_name()[name].draw(choose, situation)
    kinds, chances = _chances(structure)
    return kinds[chances[choose.integer(0, len(chances) - 1)]].draw(choose, situation)


@cache
def _chances(structure: Structure) -> tuple[tuple[OperationKind, ...], tuple[int, ...]]:
    kinds = tuple(structure.by_name().values())
    chances = [place for place, kind in enumerate(kinds) for _ in range(kind.weight)]
    return kinds, tuple(chances)


def choose_for(structure_id: str, seed: int) -> RandomChoose:
    """Return the generator of one history; the profile is no part of it."""
    return RandomChoose(structure_id, seed)


def make_history(structure_id: str, profile_name: str, seed: int, length: int) -> Trace:
    """Return the history of this seed."""
    structure = structure_named(structure_id)
    choose = choose_for(structure_id, seed)
    reference = ModelSubject(structure, profile_named(profile_name))
    setup = structure.draw_setup(choose)
    reference.start(setup)
    operations = []
    for _ in range(length):
        operation = draw_operation(choose, reference)
        reference.apply(operation)
        operations.append(operation)
    return Trace(structure_id, profile_name, setup, tuple(operations), seed)
