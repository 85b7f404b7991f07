# SPDX-License-Identifier: Apache-2.0
"""Each behaviour is right alone: on the newest release, which has it or lacks it.

Random histories, drawn as for a release, raise nothing but what a caller would see, leave earlier
states as they were, and break no law that the behaviour does not name.
"""

from copy import deepcopy
from itertools import product

import pytest

from segproof_harness.histories.workloads import choose_for, draw_operation
from segproof_harness.laws.every_law import LAWS
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.kafka.broker.partition_log_releases import ActiveSegmentIsNotPrepared
from segproof_model.kafka.format.index_releases import ClosingTrimsIndexes
from segproof_model.kafka.format.log_segment_releases import ClosingWritesLastEntry
from segproof_model.kafka.format.record_file_releases import ClosingTrimsRecordFiles
from segproof_model.language.behaviours import Behaviour
from segproof_model.laws.register import broken_state_laws, broken_step_laws
from segproof_model.releases import BEHAVIOURS, NEWEST_KAFKA, NEWEST_ROCKETMQ

SEEDS, STEPS, COPY_EVERY = 1, 40, 10
COMPANY: dict[type[Behaviour], tuple[type[Behaviour], ...]] = {
    ActiveSegmentIsNotPrepared: (
        ClosingTrimsIndexes,
        ClosingTrimsRecordFiles,
        ClosingWritesLastEntry,
    ),
}
"""What leaves to others what they do, and is right beside them."""
OTHERS = {
    "kafka.format": ("log-segment",),
    "kafka.broker": ("partition-log",),
    "rocketmq.format": ("index-service", "message-store"),
    "rocketmq.broker": ("message-store",),
}
"""Where a class is a part of, that is no structure of the harness."""


def structures_of(behaviour: type[Behaviour]) -> list[str]:
    """Return the structures whose histories meet what a behaviour changes."""
    found: dict[str, None] = {}
    for change in behaviour.changes():
        base = next(one for one in change.__bases__ if one.__name__ == change.__name__)
        _, system, floor, name = base.__module__.split(".")
        own = name.replace("_", "-")
        if name == "abstract_index":
            found |= dict.fromkeys(("offset-index", "time-index"))
        elif own in STRUCTURE_IDS:
            found[own] = None
        else:
            found |= dict.fromkeys(OTHERS[f"{system}.{floor}"])
    return list(found)


def broken_by(subject: ModelSubject) -> set[str]:
    """Return the laws that the last step breaks, or the state that it left, or a part of that."""
    states = [] if subject.state is None else [subject.state]
    states += [part for one in states for part in subject.structure.parts(one)]
    broken = [law for state in states for law in broken_state_laws(state)]
    return {*broken, *(law for step in subject.transitions for law in broken_step_laws(step))}


@pytest.mark.slow
@pytest.mark.checks(*LAWS)
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_behaviour_alone(behaviour: type[Behaviour]) -> None:
    """On the structures that it changes."""
    release = NEWEST_KAFKA if ".kafka." in behaviour.__module__ else NEWEST_ROCKETMQ
    for one in (behaviour, *COMPANY.get(behaviour, ())):
        release = release.flipped(one)
    for name, seed in product(structures_of(behaviour), range(SEEDS)):
        subject = ModelSubject(structure_named(name), release)
        choose = choose_for(name, seed, (release,))
        subject.start(subject.structure.draw_setup(choose))
        assert broken_by(subject) <= set(behaviour.laws), (name, seed)
        left = []
        for number in range(STEPS):
            if number % COPY_EVERY == 0:
                left.append((subject.state, deepcopy(subject.state)))
            operation = draw_operation(choose, subject)
            subject.apply(operation)
            assert broken_by(subject) <= set(behaviour.laws), (name, seed, operation)
        assert all(state == as_it_was for state, as_it_was in left), (name, seed)
