# SPDX-License-Identifier: Apache-2.0
"""Proofs by other ways of z3 and by a second solver, and changed kernels that they do not see."""

from random import Random

import pytest

from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.exploring import SEED, rounds

pytest.importorskip("cvc5", reason="not run: cvc5 is not installed")
from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.kernel_mutants import judged, mutants
from segproof_tests.proofs.second_opinion import decide

NAMES = sorted(CLAIMS)


def test_a_second_solver_contradicts_no_condition() -> None:
    """cvc5 agrees with z3, or does not know within its time."""
    random, said = Random(SEED), {"unsat": 0, "unknown": 0}
    for _ in rounds("a second opinion", 2):
        name = random.choice(NAMES)
        prover = Prover(keeps_smt=True)
        prover.prove(name)
        for condition in prover.conditions:
            answer = decide(condition.smt)
            assert answer in said, f"{name}: {condition.what}: cvc5 says {answer}"
            said[answer] += 1
    print(said)
    assert said["unsat"] > said["unknown"]


def test_a_proof_holds_whatever_z3_tries_first() -> None:
    """A proof that holds for some seeds of z3 alone breaks at the next change beside it."""
    random, failed = Random(SEED), []
    for _ in rounds("another seed of z3", 2):
        name, seed = random.choice(NAMES), random.randrange(2**31)
        prover = Prover(seed=seed)
        prover.prove(name)
        failed += [f"{name}, seed {seed}: {one}" for one in prover.failures]
    assert failed == []


def test_changed_kernels_are_mostly_refuted() -> None:
    """Those that are not are printed: nothing is claimed of what was changed."""
    random, refuted, survived = Random(SEED), 0, []
    for _ in rounds("a changed kernel", 2):
        name = random.choice(NAMES)
        changed = list(mutants(Prover().source(name)[0]))
        if changed:
            mutant = random.choice(changed)
            if judged(name, mutant) == "refuted":
                refuted += 1
            else:
                survived.append(f"{name}: {mutant.change}")
    print(f"{refuted} refuted, not refuted:", *survived, sep="\n  ")
    assert refuted > len(survived)
