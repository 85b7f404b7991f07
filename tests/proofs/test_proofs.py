# SPDX-License-Identifier: Apache-2.0
"""Each kernel does what is claimed of it, for input of every length and content."""

import graphlib
import os
import subprocess
import sys
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


def test_conditions_do_not_depend_on_the_order_of_sets() -> None:
    """Python draws the order of a set of names in each process; z3 may then give up."""
    code = """if True:
        import hashlib
        import segproof_harness.claims.every_claim
        from segproof_tests.proofs.conditions import Prover
        prover = Prover(keeps_smt=True)
        prover.prove("records:summarise_batches")
        print(hashlib.sha256("".join(one.smt for one in prover.conditions).encode()).hexdigest())
    """
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in range(2)
    }
    assert len(told) == 1


def test_every_kernel_has_a_claim_or_a_reason() -> None:
    """None is left out without a word."""
    kernels = [name.replace(".", ":") for name in every_kernel()]
    assert sorted({*CLAIMS, *NOT_PROVED}) == sorted(kernels)
    assert set() == set(CLAIMS) & set(NOT_PROVED)
