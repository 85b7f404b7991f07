# SPDX-License-Identifier: Apache-2.0
"""The register of contracts is complete, and its mutants can be planted."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from segproof_tests import contract_checking
from segproof_tests.contract_checking import Verdict, verdicts
from segproof_tests.contracts import Contract, every_contract

FOLDER = Path(__file__).resolve().parent


def test_every_contract_is_registered() -> None:
    """No function with a postcondition is left out, and no id is used twice."""
    written = [
        f"{path.stem.removesuffix('_contracts')}.{node.name}"
        for path in sorted(FOLDER.glob("*/*_contracts.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and "post: " in (ast.get_docstring(node) or "")
    ]
    assert written == [contract.id for contract in every_contract()]


def test_contract_is_complete(contract: Contract) -> None:
    """It names laws and a bound, has mutants, and one postcondition that can be made false."""
    assert contract.laws
    assert all(re.fullmatch(r"[A-Z]+-[0-9]+", law) for law in contract.laws)
    assert contract.bound
    assert contract.mutants
    lines = [line.strip() for line in contract.docstring.splitlines()]
    assert 1 == lines.count("post: _")
    assert not [line for line in lines if line.startswith("post:") and line != "post: _"]


def test_mutants_can_be_planted(contract: Contract) -> None:
    """The text to replace stands once in the source of the kernel, and the result differs."""
    for mutant in contract.mutants:
        _, text = contract_checking.mutated(
            contract.kernel, mutant.function, mutant.old, mutant.new
        )
        _, original = contract_checking.source_of(contract.kernel.partition(":")[0])
        compile(text, "mutant", "exec")
        assert text != original


def test_a_mutant_that_is_gone_leaves_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its text no longer stands in the kernel, the mutant is not caught; all else is judged.

    It ended the whole process, so that what CrossHair had said of the contract was lost.
    """
    known = every_contract()[0]
    gone = replace(known.mutants[0], old="no such text")
    monkeypatch.setattr(
        contract_checking, "analyse", lambda _, variant: Verdict(variant, "confirmed", "", 0.0)
    )
    found = {one.variant: one for one in verdicts(replace(known, mutants=(gone,)))}
    assert ["contract", "mutant 1", "vacuity"] == list(found)
    assert ("not planted", False) == (found["mutant 1"].state, found["mutant 1"].is_counterexample)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("cannot_confirm", "Not confirmed."),
        ("pre_unsat", "Unable to meet precondition."),
        ("none", "0 verdicts, expected one"),
        ("confirmed", "in other words"),
    ],
)
def test_only_confirmed_is_confirmed(state: str, message: str) -> None:
    """Whatever else CrossHair says counts neither as confirmed nor as a counterexample."""
    verdict = Verdict("contract", state, message, 1.0)
    assert not verdict.is_confirmed
    assert not verdict.is_counterexample
