# SPDX-License-Identifier: Apache-2.0
"""Proofs can fail: of each kernel a change of one operator or number is refuted."""

from itertools import islice
from random import Random

import pytest

from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.kernel_mutants import KernelMutant, mutants

pytestmark = pytest.mark.needs("z3")
MUTANTS_MAX = 12
"""One of so many must be refuted: what is changed may be nothing that a claim speaks of."""
STEPS_MAX = 1_000_000


def drawn(name: str) -> list[KernelMutant]:
    """Return the mutants of a kernel in an order that chance decides, the same in each run."""
    definition, _, _ = Prover().source(name)
    found = list(mutants(definition))
    Random(name).shuffle(found)
    return list(islice(found, MUTANTS_MAX))


@pytest.mark.parametrize("name", CLAIMS)
def test_a_changed_kernel_is_refuted(name: str) -> None:
    """The conditions of the kernel with one change are not all proved."""
    changed = drawn(name)
    for mutant in changed:
        prover = Prover({name: mutant.definition})
        prover.condition_steps = STEPS_MAX
        if prover.is_refuted(name):
            print(f"{name}: {mutant.change}")
            return
    # What only calls others has nothing to change.
    assert [] == [mutant.change for mutant in changed]
