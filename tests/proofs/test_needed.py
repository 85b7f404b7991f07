# SPDX-License-Identifier: Apache-2.0
"""Proofs can fail: without what a claim requires, or without the invariant of a loop."""

import itertools
from dataclasses import replace

import pytest

from segproof_harness.claims.every_claim import CLAIMS

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.kernel_mutants import is_refuted

REQUIRING = [name for name, claim in CLAIMS.items() if claim.requires]
ONE_OF_EACH_MODULE = [
    min(names, key=lambda name: (not CLAIMS[name].loops, len(str(CLAIMS[name]))))
    for _, names in itertools.groupby(sorted(CLAIMS), key=lambda name: name.partition(":")[0])
]
"""The kernel with the fewest claims, among those with a loop if there are any."""
LOOPS = [(name, number) for name, claim in CLAIMS.items() for number in range(len(claim.loops))]


@pytest.mark.parametrize("name", REQUIRING)
def test_requirements_are_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """z3 knows values that callers may not give, for which a condition fails."""
    monkeypatch.setitem(CLAIMS, name, replace(CLAIMS[name], requires=""))
    assert is_refuted(name)


@pytest.mark.parametrize(("name", "number"), LOOPS)
def test_invariants_are_needed(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """z3 knows values that a loop never has, for which a condition fails."""
    claim = CLAIMS[name]
    loops = [
        replace(loop, invariant="True") if place == number else loop
        for place, loop in enumerate(claim.loops)
    ]
    monkeypatch.setitem(CLAIMS, name, replace(claim, loops=tuple(loops)))
    assert is_refuted(name)


@pytest.mark.parametrize("name", ONE_OF_EACH_MODULE)
def test_nothing_is_refuted_that_is_proved(name: str) -> None:
    """Else what is refuted above would say nothing."""
    assert not is_refuted(name)
