# SPDX-License-Identifier: Apache-2.0
"""Every contract is confirmed up to its bound, and its bound is wide enough to see its mutants."""

import pytest

from segproof_tests.contract_checking import Verdict
from segproof_tests.contracts import Contract

pytestmark = pytest.mark.needs("crosshair")


def test_is_confirmed(contract: Contract, verdicts: dict[str, Verdict]) -> None:
    """CrossHair itself says that it looked at every path; not confirmed is not passed."""
    found = verdicts["contract"]
    print(f"{contract.id}: {contract.bound}: {found.message} ({found.seconds:.1f} s)")
    assert found.is_confirmed, f"{found.state}: {found.message}"


def test_mutants_are_caught(contract: Contract, verdicts: dict[str, Verdict]) -> None:
    """Each planted defect of the kernel gives a counterexample within the bound."""
    for number, mutant in enumerate(contract.mutants, 1):
        found = verdicts[f"mutant {number}"]
        print(f"{mutant.old!r} -> {mutant.new!r}: {found.message}")
        assert found.is_counterexample, f"{mutant}: {found.state}: {found.message}"


def test_is_not_vacuous(verdicts: dict[str, Verdict]) -> None:
    """Some input meets the preconditions: a mutant's, or the twin with `post: False` fails."""
    assert "post_fail" == verdicts["vacuity"].state, verdicts["vacuity"].message
