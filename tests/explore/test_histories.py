# SPDX-License-Identifier: Apache-2.0
"""New histories of all structures in each run, on the implementation and under each release.

What Hypothesis finds is kept in `.hypothesis/` and tried first in the next run.
"""

import random
from pathlib import Path

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from segproof_harness.histories.machines import machine_for
from segproof_harness.histories.replay import comparison, replay_seeds, run_seed
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_tests.exploring import SEED, rounds

SHARE = 3 * len(STRUCTURE_IDS)
EXAMPLES_AT_ONCE = 20
LENGTH = 100


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_the_machine_finds_nothing(structure_id: str) -> None:
    """Examples found in an earlier run are tried first."""
    machine = machine_for(structure_id)
    explored = settings(
        settings.get_profile("explore"),
        max_examples=EXAMPLES_AT_ONCE,
        stateful_step_count=LENGTH,
    )
    for number in rounds(f"{structure_id}, {EXAMPLES_AT_ONCE} examples of the machine", SHARE):
        seed(SEED + number)(machine)
        run_state_machine_as_test(machine, settings=explored)


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_model_and_implementation_agree(structure_id: str, tmp_path: Path) -> None:
    """A finding brings its trace."""
    comparing = comparison(structure_id, "segproof", ("model", "impl"))
    for number in rounds(f"{structure_id}, a history of {LENGTH} operations", SHARE):
        one = SEED * 1_000_000 + number
        if run_seed(comparing, one, LENGTH) is not None:
            found = replay_seeds(structure_id, "segproof", [one], LENGTH, traces=tmp_path)
            texts = [path.read_text() for path in tmp_path.iterdir()]
            pytest.fail(f"{found.findings[0]}\n{''.join(texts)}")


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_the_model_keeps_its_laws_under_each_release(structure_id: str) -> None:
    """Which release is asked is drawn as well."""
    names = structure_named(structure_id).profile_names
    for number in rounds(f"{structure_id}, ten histories of a release", SHARE):
        name = random.Random(SEED + number).choice(names)
        first = SEED * 1_000_000 + 10 * number
        found = replay_seeds(structure_id, name, range(first, first + 10), subjects=("model",))
        assert [] == [(finding.message, finding.reproduce) for finding in found.findings]
