# SPDX-License-Identifier: Apache-2.0
"""Kernels run on numbers by the very rules that make the conditions, to compare with CPython."""

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import z3

from segproof_harness.claims.claim import Claim
from segproof_tests.proofs.conditions import Prover, Way
from segproof_tests.proofs.expressions import Array, State, Term
from segproof_tests.proofs.forms import FORMATS

Argument = int | bytes | memoryview | Sequence[Any]


class Run(Prover):
    """Follows the one way that given numbers take; every condition on it must come out true."""

    def run(
        self, name: str, arguments: Sequence[Argument], shown: Sequence[bool]
    ) -> tuple[Any, list[list[int]]]:
        """Return the result of a kernel, and what the `shown` arguments hold behind the call."""
        definition, self.module, self.is_compiled = self.source(name)
        parameters = [one.arg for one in definition.args.args]
        self.claim = Claim(name, "", "")
        self.loops, self.reached = {}, set()
        given = dict(zip(parameters, map(_constant, arguments), strict=True))
        [(_, end, value)] = self._block(definition.body, State(given, []))
        views = [
            [_number(end.names[parameter].at(z3.IntVal(place))) for place in range(len(argument))]
            for parameter, argument, is_shown in zip(parameters, arguments, shown, strict=True)
            if is_shown and isinstance(argument, memoryview)
        ]
        return _python(value), views

    def check(self, state: State, goal: Term, what: str, node: ast.AST) -> None:
        """Compute a condition."""
        goal = z3.simplify(z3.Implies(z3.And(*state.guards), goal))
        assert z3.is_true(goal), (what, getattr(node, "lineno", 0), goal)

    def value(self, node: ast.AST, state: State, is_claim: bool = False) -> Term:
        """Compute an expression."""
        found = super().value(node, state, is_claim)
        return z3.simplify(found) if z3.is_expr(found) else found

    def called(self, name: str, values: list[Term], node: ast.Call, state: State) -> Term:
        """Follow a call, and take what it wrote."""
        definition, module, _ = self.source(self._kernel_named(name))
        outer, self.module = self.module, module
        parameters = [one.arg for one in definition.args.args]
        inner = State(dict(zip(parameters, values, strict=True)), [])
        [(_, end, result)] = self._block(definition.body, inner)
        self.module = outer
        for parameter, given in zip(parameters, node.args, strict=True):
            if isinstance(given, ast.Name) and isinstance(end.names[parameter], Array):
                state.names[given.id] = end.names[parameter]
        return result

    def _may_change(self, name: str) -> None:
        """Let every kernel write where it writes."""

    def _passes(
        self, test: ast.expr, body: list[ast.stmt], state: State, left: int
    ) -> Iterator[Way]:
        """Make passes, however many."""
        while z3.is_true(z3.simplify(self.holds(test, state))):
            [(how, state, value)] = self._block(body, State(dict(state.names), []))
            if how not in ("next", "continue"):
                yield ("next" if how == "break" else how), state, value
                return
        yield "next", state, None

    def _is_possible(self, state: State) -> bool:
        return True


def _constant(argument: Argument) -> Term:
    if isinstance(argument, int):
        return z3.BoolVal(argument) if isinstance(argument, bool) else z3.IntVal(argument)
    items = [one if isinstance(one, tuple) else (one,) for one in argument]
    columns = []
    for column in range(len(items[0]) if items else 1):
        cells = z3.K(z3.IntSort(), z3.IntVal(0))
        for place, item in enumerate(items):
            cells = z3.Store(cells, place, int(item[column]))
        columns.append(cells)
    letter = "B" if isinstance(argument, bytes) else getattr(argument, "format", "")
    return Array(tuple(columns), z3.IntVal(len(items)), FORMATS.get(letter))


def _number(term: Term) -> int:
    return int(z3.simplify(term).as_long())


def _python(value: Term) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_python, value))
    if value is None or not z3.is_bool(value):
        return value if value is None else _number(value)
    return z3.is_true(z3.simplify(value))
