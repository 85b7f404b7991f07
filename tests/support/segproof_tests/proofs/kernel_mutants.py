# SPDX-License-Identifier: Apache-2.0
"""Kernels with one operator or number changed, which their proofs must notice."""

import ast
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import z3

from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.expressions import State, Term, number
from segproof_tests.proofs.forms import RefusedError

Verdict = Literal["refuted", "given up", "refused", "survives"]
"""What the proof of a mutant comes to: z3 has values for which a condition fails; it gives up on a
condition; the source is refused or has a line that is never reached; all conditions hold."""
SMALL = 3
"""First each range of a claim has at most so many numbers: then z3 finds values soon."""
SMALL_STEPS, MUTANT_STEPS = 200_000, 2_000_000
"""After so many steps z3 gives up on a condition: where ranges are small, and else."""

CHANGED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""`not` and a sign are taken away. `& mask` changes with its number, and `item + 0` too."""


@dataclass(frozen=True)
class KernelMutant:
    """A kernel with one change."""

    definition: ast.FunctionDef
    change: str
    """Line, counted from the `def`, and the text before and after: `12: a < b -> a <= b`."""


def mutants(definition: ast.FunctionDef) -> Iterator[KernelMutant]:
    """Yield a kernel with each of its operators and numbers changed, one at a time."""
    for place, node in enumerate(ast.walk(definition)):
        for change in range(_changes(node)):
            copied = copy.deepcopy(definition)
            changed = list(ast.walk(copied))[place]
            _change(changed, change)
            before, after = ast.unparse(node), ast.unparse(changed)
            line = getattr(node, "lineno", 0)
            yield KernelMutant(copied, f"{line}: {before} -> {after}")


def _changes(node: ast.AST) -> int:
    """Return how many changes a node allows."""
    match node:
        case ast.Compare(ops=operators):
            return len(operators)
        case ast.BinOp(op=ast.Add(), right=ast.Constant(value=0)):
            return 0  # it only tells numba that the sum has a sign
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            return int(type(operator) in CHANGED)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return 1
        case ast.Constant(value=value):
            return int(type(value) is int)
    return 0


def _change(node: ast.AST, place: int) -> None:
    match node:
        case ast.Compare():
            node.ops[place] = CHANGED[type(node.ops[place])]()  # type: ignore[call-overload]
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            node.op = CHANGED[type(node.op)]()  # type: ignore[assignment]
        case ast.UnaryOp():
            node.operand = ast.copy_location(ast.UnaryOp(node.op, node.operand), node)
        case ast.Constant(value=int() as value):
            node.value = value + 1


class _EnoughError(Exception):
    """Ends the proof of a mutant."""


class _MutantProver(Prover):
    """Ends at values for which a condition fails, and at a condition that z3 gives up on."""

    def _decide(self, facts: list[Term], steps_max: int) -> Term:
        return super()._decide(facts, min(steps_max, MUTANT_STEPS))

    def _fail(self, what: str, node: ast.AST, counterexample: str) -> None:
        super()._fail(what, node, counterexample)
        if counterexample:
            raise _EnoughError


class _SmallProver(Prover):
    """Looks among small values only, and goes on behind a condition that z3 gives up on.

    That a range lies within 0..SMALL is a fact here, so that `each` is a number of cases. What
    fails here fails; what holds here is not proved.
    """

    def _decide(self, facts: list[Term], steps_max: int) -> Term:
        return super()._decide(facts, min(steps_max, SMALL_STEPS))

    def _fail(self, what: str, node: ast.AST, counterexample: str) -> None:
        super()._fail(what, node, counterexample)
        if "=" in counterexample:
            raise _EnoughError

    def _quantified(self, name: str, node: ast.Call, state: State) -> Term:
        if name == "forall":
            return super()._quantified(name, node, state)
        low, high = (number(self.value(one, state)) for one in node.args[:2])
        state.facts += [low >= 0, high <= SMALL]
        each = node.args[2]
        assert isinstance(each, ast.Lambda)
        names = [argument.arg for argument in each.args.args]
        cases = []
        for places in itertools.combinations(map(z3.IntVal, range(SMALL)), len(names)):
            inside = z3.And(low <= places[0], places[-1] < high)
            bound = dict(zip(names, places, strict=True))
            inner = State({**state.names, **bound}, state.facts, is_claim=True)
            cases.append((inside, self.holds(each.body, inner)))
        if name == "some":
            return z3.Or(*[z3.And(*case) for case in cases])
        return z3.And(*[z3.Implies(*case) for case in cases])


def judged(name: str, mutant: KernelMutant) -> Verdict:
    """Return what the proof of a mutant comes to. Only values count as a refutation."""
    if is_refuted(name, mutant):
        return "refuted"
    shown, is_refused = _shown(_MutantProver({name: mutant.definition}), name)
    if any("=" in one for one in shown):
        return "refuted"
    if "unknown" in shown:
        return "given up"
    return "refused" if is_refused or shown else "survives"


def is_refuted(name: str, mutant: KernelMutant | None = None) -> bool:
    """Return whether there are small values for which a condition of a kernel or mutant fails."""
    shown, _ = _shown(_SmallProver({name: mutant.definition} if mutant else None), name)
    return any("=" in one for one in shown)


def _shown(prover: Prover, name: str) -> tuple[list[str], bool]:
    """Return what is shown of each condition that fails, and whether the source is refused."""
    is_refused = False
    try:
        prover.prove(name)
    except (RefusedError, z3.Z3Exception):
        is_refused = True
    except _EnoughError:
        pass
    return [one.counterexample for one in prover.failures], is_refused
