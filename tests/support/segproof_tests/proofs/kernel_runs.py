# SPDX-License-Identifier: Apache-2.0
"""Kernels and claims evaluated on numbers, by the very rules that make the conditions.

What comes out is compared with CPython. A claim is true of each run, and an invariant of each pass;
only how a loop is cut at its invariant has no counterpart in a run.
"""

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import z3

from segproof_harness.claims.claim import WORDS, Loop
from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.proofs.conditions import Prover, Way
from segproof_tests.proofs.expressions import Array, State, Term, number
from segproof_tests.proofs.forms import FORMATS, kind_of, refuse_forms

Argument = int | bytes | memoryview | Sequence[Any]


class NotRequiredError(Exception):
    """The arguments are not what the claim requires."""


class Run(Prover):
    """Follows the one way that given numbers take; every condition on it must come out true."""

    def run(
        self, name: str, arguments: Sequence[Argument], shown: Sequence[bool]
    ) -> tuple[Any, list[list[int]]]:
        """Return the result of a kernel, and what the `shown` arguments hold behind the call.

        Raises NotRequiredError if a line of what the claim requires is false.
        """
        definition, self.module, self.is_compiled = self.source(name)
        self.at, self.reached, claim = definition, set(), CLAIMS[name]
        refuse_forms(definition, self.module, self.is_compiled, claim)
        self.loops = self.loops_of(definition, claim)
        given = {
            parameter.arg: _constant(argument, kind_of(parameter, claim)[0])
            for parameter, argument in zip(definition.args.args, arguments, strict=True)
        }
        self.at_call = dict(given)
        if not self._are_true(claim.requires, given):
            raise NotRequiredError
        [(_, end, value)] = self._block(definition.body, State(dict(given), []))
        written = {one: end.names[one] for one, old in given.items() if isinstance(old, Array)}
        after = State({**given, **written, "result": value}, [])
        self.show(f"{claim.ensures}\n{claim.proves}", after, "ensures", definition)
        views = [
            [_number(end.names[parameter].at(z3.IntVal(place))) for place in range(len(argument))]
            for parameter, argument, is_shown in zip(given, arguments, shown, strict=True)
            if is_shown and isinstance(argument, memoryview)
        ]
        return _python(value), views

    def check(self, state: State, goal: Term, what: str, node: ast.AST) -> None:
        """Compute a condition."""
        goal = z3.simplify(z3.Implies(z3.And(*state.guards), goal))
        assert z3.is_true(goal), (what, getattr(node, "lineno", 0), goal)

    def value(self, node: ast.AST, state: State) -> Term:
        """Compute an expression."""
        match node:
            case ast.IfExp(test=test, body=one, orelse=other) if state.is_claim:
                return self.value(one if self._is_true(test, state) else other, state)
        found = super().value(node, state)
        return z3.simplify(found) if z3.is_expr(found) else found

    def _are_true(self, text: str, names: dict[str, Term]) -> bool:
        return all(z3.is_true(z3.simplify(goal)) for _, goal in self.lines(text, State(names, [])))

    def _is_true(self, node: ast.AST, state: State) -> bool:
        return bool(z3.is_true(z3.simplify(self.holds(node, state))))

    def word(self, name: str, values: list[Term]) -> Term:
        """Compute a word: a recursive one down to 0, another by the kernel that it stands for."""
        if name in WORDS:
            return self.meaning(name, values, State({}, []))
        [claim] = [claim for claim in CLAIMS.values() if claim.word == name]
        names = [one.arg for one in self.source(claim.kernel)[0].args.args]
        if self._are_true(claim.requires, dict(zip(names, values, strict=True))):
            return self._follow(claim.kernel, values)[1]
        return z3.IntVal(0)  # it may be any number there

    def _quantified(self, name: str, node: ast.Call, state: State) -> Term:
        """Go through the numbers of a range; those of `forall` are the places of all arrays."""
        *bounds, each = node.args
        assert isinstance(each, ast.Lambda)
        names = [argument.arg for argument in each.args.args]
        lengths = [_number(one.length) for one in state.names.values() if isinstance(one, Array)]
        low, high = [_number(self.value(one, state)) for one in bounds] or [0, max(lengths)]
        places = itertools.combinations(map(z3.IntVal, range(low, high)), len(names))
        inner = ({**state.names, **dict(zip(names, one, strict=True))} for one in places)
        found = (self._is_true(each.body, State(one, [], is_claim=True)) for one in inner)
        return z3.BoolVal(any(found) if name == "some" else all(found))

    def called(self, name: str, values: list[Term], node: ast.Call, state: State) -> Term:
        """Follow a call, and take what it wrote."""
        end, result = self._follow(self._kernel_named(name), values)
        for parameter, given in zip(end, node.args, strict=True):
            if isinstance(given, ast.Name) and isinstance(end[parameter], Array):
                state.names[given.id] = end[parameter]
        return result

    def _follow(self, name: str, values: list[Term]) -> tuple[dict[str, Term], Term]:
        """Return the parameters behind a call, and its result."""
        outer = self.module, self.is_compiled
        definition, self.module, self.is_compiled = self.source(name)
        names = [one.arg for one in definition.args.args]
        inner = State(dict(zip(names, values, strict=True)), [])
        [(_, end, result)] = self._block(definition.body, inner)
        self.module, self.is_compiled = outer
        return {one: end.names[one] for one in names}, result

    def _may_change(self, name: str) -> None:
        """Let every kernel write where it writes."""

    def _loop(
        self, node: ast.stmt, test: ast.expr, body: list[ast.stmt], state: State, name: str = ""
    ) -> Iterator[Way]:
        """Make passes, however many; the invariant is true of each, and what decreases does."""
        loop = self.loops.get(node, Loop())
        for ghost, (before, _) in loop.ghosts.items():
            state.names[ghost] = self.claimed(before, state)
        self.show(loop.invariant, state, "before the loop:", node)
        while self._is_true(test, state):
            left = self.claimed(loop.decreases or "1", state)
            [(how, state, value)] = self._block(body, State(dict(state.names), []))
            if how not in ("next", "continue"):
                yield ("next" if how == "break" else how), state, value
                return
            for ghost, (_, behind) in loop.ghosts.items():
                state.names[ghost] = self.claimed(behind, state)
            self.show(loop.invariant, state, "kept by each pass:", node)
            less = self.claimed(loop.decreases or "0", state)
            self.check(state, z3.And(left >= 0, less < left), "the loop ends", node)
        yield "next", state, None

    def _is_possible(self, state: State) -> bool:
        return True


def _constant(argument: Argument, width: int) -> Term:
    if isinstance(argument, int):
        return z3.BoolVal(argument) if isinstance(argument, bool) else z3.IntVal(argument)
    items = [one if isinstance(one, tuple) else (one,) for one in argument]
    columns = []
    for column in range(width):
        cells = z3.K(z3.IntSort(), z3.IntVal(0))
        for place, item in enumerate(items):
            cells = z3.Store(cells, place, int(item[column]))
        columns.append(cells)
    letter = "B" if isinstance(argument, bytes) else getattr(argument, "format", "int")
    return Array(tuple(columns), z3.IntVal(len(items)), FORMATS[letter])


def _number(term: Term) -> int:
    return int(z3.simplify(number(term)).as_long())


def _python(value: Term) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_python, value))
    if value is None or not z3.is_bool(value):
        return value if value is None else _number(value)
    return z3.is_true(z3.simplify(value))
