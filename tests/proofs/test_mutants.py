# SPDX-License-Identifier: Apache-2.0
"""Proofs can fail: of each kernel a change of one operator or number is refuted."""

from itertools import islice
from random import Random

import pytest

from segproof_harness.claims.every_claim import CLAIMS

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.kernel_mutants import KernelMutant, mutants

MUTANTS_MAX = 12
"""One of so many must be refuted: what is changed may be nothing that a claim mentions."""


def drawn(name: str) -> list[KernelMutant]:
    """Return the mutants of a kernel in an order that chance decides, the same in each run."""
    definition, _, _ = Prover().source(name)
    found = list(mutants(definition))
    Random(name).shuffle(found)
    return list(islice(found, MUTANTS_MAX))


@pytest.mark.parametrize("name", CLAIMS)
def test_a_changed_kernel_is_refuted(name: str) -> None:
    """z3 knows values for which a condition of the kernel with one change fails."""
    changed = drawn(name)
    for mutant in changed:
        if Prover({name: mutant.definition}).is_refuted(name):
            print(f"{name}: {mutant.change}")
            return
    # What only calls others has nothing to change.
    assert [] == [mutant.change for mutant in changed]
