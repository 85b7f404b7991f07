# SPDX-License-Identifier: Apache-2.0
"""Each kernel does what is claimed of it, for input of every length and content."""

import graphlib
from collections.abc import Iterator
from typing import Any

import pytest

from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED
from segproof_tests.kernel_arguments import every_kernel

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.conditions import Prover

PROVED: dict[str, Prover] = {}
"""The kernels that this run proved."""


@pytest.fixture(scope="module", autouse=True)
def _table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close with how many conditions there were, and which took the most steps."""
    yield
    reporter: Any = request.config.pluginmanager.get_plugin("terminalreporter")
    conditions = [(one, name) for name, prover in PROVED.items() for one in prover.conditions]
    if not conditions:
        return
    slowest, name = max(conditions, key=lambda pair: pair[0].seconds)
    reporter.write_line(
        f"\n{len(PROVED)} kernels proved for every length, {len(conditions)} conditions,"
        f" {sum(one.seconds for one, _ in conditions):.0f} s; the slowest took"
        f" {slowest.seconds:.1f} s: {name}, {slowest.what}"
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_kernel_is_proved_for_every_length(name: str) -> None:
    """It ends, reads and writes in range, stays within 64 bits, and its result obeys its claim."""
    prover = Prover()
    prover.prove(name)
    assert [] == prover.failures
    PROVED[name] = prover


def test_no_proof_leans_on_itself() -> None:
    """A kernel that uses the claim of another one is not used by it in turn."""
    order = graphlib.TopologicalSorter({name: prover.relied_on for name, prover in PROVED.items()})
    assert len(PROVED) == len(list(order.static_order()))


def test_every_kernel_has_a_claim_or_a_reason() -> None:
    """None is left out without a word."""
    kernels = [name.replace(".", ":") for name in every_kernel()]
    assert sorted({*CLAIMS, *NOT_PROVED}) == sorted(kernels)
    assert set() == set(CLAIMS) & set(NOT_PROVED)
