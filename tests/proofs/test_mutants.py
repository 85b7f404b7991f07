# SPDX-License-Identifier: Apache-2.0
"""Proofs can fail: of each kernel a change of one operator or number is refuted.

docs/results/proofs.md has what became of every change; here one of each kernel.
"""

from random import Random

import pytest

from segproof_harness.claims.every_claim import CLAIMS

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.kernel_mutants import KernelMutant, is_refuted, mutants

MUTANTS_MAX = 12
"""So many changes of each kernel are drawn at most, until one is refuted."""
TRIED_LAST = {
    "records:decode_varint": 3, "records:plain_record": 4, "rocketmq_index:hash_of_utf8": 3,
    "rocketmq_index:put_entries": 2, "rocketmq_index:walk_chain": 1,
    "rocketmq_records:find_properties": 4,
}  # fmt: skip
"""So many of the changes drawn come last: z3 refutes none of them, and takes up to ten seconds."""


def drawn(name: str) -> list[KernelMutant]:
    """Return a few mutants of a kernel, by chance, the same in each run."""
    definition, _, _ = Prover().source(name)
    found = list(mutants(definition))
    Random(name).shuffle(found)
    late = TRIED_LAST.get(name, 0)
    return [*found[late:MUTANTS_MAX], *found[:late]]


@pytest.mark.parametrize("name", CLAIMS)
def test_a_changed_kernel_is_refuted(name: str) -> None:
    """z3 knows values for which a condition of the changed kernel fails."""
    changed = drawn(name)
    # What only calls others has nothing to change.
    assert not changed or any(is_refuted(name, mutant) for mutant in changed)
