# SPDX-License-Identifier: Apache-2.0
"""Prove a kernel for input of every length: make conditions of its source, let z3 decide each.

The source is read with `inspect`, so the text that is proved is the text that runs. It is followed
way by way. A loop is cut at its invariant, as Floyd and Hoare did: the invariant holds before the
loop, each pass keeps it, and a number that is never negative falls with each pass; behind the loop
nothing but the invariant is known. A call of another kernel is judged by the claim of that kernel.
Forms that the translation does not have are refused.
"""

import ast
import inspect
import itertools
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import z3

from segproof.kernels.dispatch import Kernel
from segproof_harness.claims.claim import CLAIMS, KERNELS, Claim, Loop
from segproof_tests.proofs.expressions import (
    Array,
    Expressions,
    State,
    Term,
    fits,
    number,
    parameters,
    shape,
    unknown,
    word_symbol,
)
from segproof_tests.proofs.forms import INT64, RefusedError, counted_by, refuse_forms, refuse_if

CONDITION_STEPS = 8_000_000
"""After so many steps of z3, which count alike on each machine, a condition is not proved.

The longest of the proofs takes 5.3 million, in a second; so none comes to take more than two.
"""
BRANCH_STEPS = 500_000
"""After so many steps a way is followed that may be impossible."""
PASSES_MAX = 64
"""A loop without an invariant is followed pass by pass, up to so many."""
LENGTH_MAX = 2**60
Way = tuple[str, State, Term]
"""How a statement ends (`next`, `break`, `continue` or `return`), what is known, the result."""


@dataclass(frozen=True)
class Failure:
    """A condition that was not proved."""

    what: str
    line: int
    """Counted from the `def` of the kernel."""
    counterexample: str
    """Values for which it fails, or z3's word where it knows none."""


@dataclass(frozen=True)
class Condition:
    """A condition that was decided."""

    what: str
    seconds: float
    smt: str
    """In the language of SMT-LIB, where it is kept for a second solver."""


class Prover(Expressions):
    """Judges kernels by their claims."""

    def __init__(
        self,
        changed: Mapping[str, ast.FunctionDef] | None = None,
        keeps_smt: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.solver = z3.Solver()
        self.definitions: dict[str, ast.stmt] = {**(changed or {})}
        """The sources of kernels, first those that are another one, as a mutant's."""
        self.keeps_smt = keeps_smt
        self.seed = seed
        """Decides what z3 tries first."""
        self.failures: list[Failure] = []
        self.conditions: list[Condition] = []
        self.relied_on: set[str] = set()
        """The kernels of whose calls the claim was used."""

    # --- a kernel

    def prove(self, name: str) -> None:
        """Make and decide the conditions of a kernel; `failures` then has what is not proved."""
        # What z3 tries first depends on what its context has seen: each proof gets a new one.
        z3.z3._main_ctx = None
        self.claim = CLAIMS[name]
        definition, self.module, self.is_compiled = self.source(name)
        self.at: ast.stmt = definition
        try:
            self._prove(definition)
        except RefusedError as error:
            text = ast.unparse(self.at).partition("\n")[0]
            raise RefusedError(f"{name}, line {self.at.lineno}: {text}: {error}") from None

    def _prove(self, definition: ast.FunctionDef) -> None:
        self.reached = {definition.lineno}
        refuse_forms(definition, self.module, self.is_compiled, self.claim)
        self.loops = self.loops_of(definition, self.claim)
        names = list(self.claim.cases)
        for values in itertools.product(*self.claim.cases.values()):
            self._prove_case(definition, dict(zip(names, values, strict=True)))
        self._show_cases_are_all(definition)
        for node in ast.walk(definition):
            if isinstance(node, ast.stmt) and node.lineno not in self.reached:
                self._fail("this line is never reached", node, "")

    def _prove_case(self, definition: ast.FunctionDef, case: dict[str, int]) -> None:
        state = self._arguments(definition, case)
        self.at_call = dict(state.names)
        for _, goal in self.lines(self.claim.requires, state):
            state.facts.append(goal)
        if self._decide([*state.facts, *self._limits(state)], CONDITION_STEPS) != z3.sat:
            self._fail("some input meets what is required", definition, "")
        for _, end, value in self._block(definition.body, state):
            returns = ast.unparse(definition.returns or ast.Constant(None))
            refuse_if(shape(value) != returns, f"{shape(value)} is returned, not {returns}")
            arrays = {n: end.names[n] for n, one in self.at_call.items() if isinstance(one, Array)}
            after = State({**self.at_call, **arrays, "result": value}, list(end.facts))
            self.show(f"{self.claim.ensures}\n{self.claim.proves}", after, "ensures", definition)

    def _limits(self, state: State) -> Iterator[Term]:
        """Yield that all items are within their limits; elsewhere only those that are read are."""
        place = z3.Int("place")
        for array in state.names.values():
            if isinstance(array, Array):
                yield z3.ForAll(place, fits(array.at(place), array.limits))

    def _show_cases_are_all(self, definition: ast.FunctionDef) -> None:
        state = self._arguments(definition, {})
        for _, goal in self.lines(self.claim.requires if self.claim.cases else "", state):
            state.facts.append(goal)
        for name, values in self.claim.cases.items():
            known = z3.Or(*[state.names[name] == value for value in values])
            self.check(state, known, "no other case", definition)

    def loops_of(self, definition: ast.FunctionDef, claim: Claim) -> dict[ast.AST, Loop]:
        """Return what is claimed of each loop."""
        loops = [one for one in ast.walk(definition) if isinstance(one, ast.While | ast.For)]
        loops.sort(key=lambda loop: loop.lineno)
        claimed = len(claim.loops)
        refuse_if(claimed not in (0, len(loops)), f"{len(loops)} loops, {claimed} in the claim")
        return dict(zip(loops, claim.loops, strict=False))

    def source(self, name: str) -> tuple[ast.FunctionDef, ModuleType, bool]:
        """Return a kernel's definition, its module, and whether it is compiled."""
        module_name, _, function = name.partition(":")
        module = import_module(KERNELS + module_name)
        found = getattr(module, function)
        if name not in self.definitions:
            text = textwrap.dedent(inspect.getsource(getattr(found, "source", found)))
            [self.definitions[name]] = ast.parse(text).body
        definition = self.definitions[name]
        assert isinstance(definition, ast.FunctionDef)
        return definition, module, isinstance(found, Kernel)

    def _arguments(self, definition: ast.FunctionDef, case: dict[str, int]) -> State:
        state = State(parameters(definition, self.claim), [])
        for name, value in state.names.items():
            if name in case:
                state.names[name] = z3.IntVal(case[name])
            elif isinstance(value, Array):
                state.facts.append(fits(value.length, (0, LENGTH_MAX)))
            elif self.is_compiled and shape(value) == "int":
                state.facts.append(fits(value, INT64))
        return state

    # --- conditions

    def _decide(self, facts: list[Term], steps_max: int) -> Term:
        self.solver = z3.Solver()
        self.solver.set("rlimit", steps_max)
        self.solver.set("random_seed", self.seed)
        self.solver.add(*facts)
        return self.solver.check()

    def _is_possible(self, state: State) -> bool:
        return bool(self._decide(state.facts, BRANCH_STEPS) != z3.unsat)

    def _fail(self, what: str, node: ast.AST, counterexample: str) -> None:
        self.failures.append(Failure(what, getattr(node, "lineno", 0), counterexample))

    def check(self, state: State, goal: Term, what: str, node: ast.AST) -> None:
        """Prove a condition. It is a fact from then on, so that one defect is told once."""
        if state.guards:
            goal = z3.Implies(z3.And(*state.guards), goal)
        if z3.is_true(z3.simplify(goal)):
            return
        began = time.process_time()
        answer = self._decide([*state.facts, z3.Not(goal)], CONDITION_STEPS)
        smt = self.solver.to_smt2() if self.keeps_smt else ""
        self.conditions.append(Condition(what, time.process_time() - began, smt))
        if answer != z3.unsat:
            shown = str(answer)
            if answer == z3.sat:
                model = self.solver.model()
                numbers = {name: one for name, one in state.names.items() if z3.is_expr(one)}
                shown = ", ".join(
                    f"{name}={model.eval(one, True)}" for name, one in numbers.items()
                )
            self._fail(what, node, shown)
        state.facts.append(goal)

    # --- statements

    def _block(self, body: list[ast.stmt], state: State) -> Iterator[Way]:
        if not body:
            yield "next", state, None
            return
        for how, after, value in self._statement(body[0], state):
            if how == "next":
                yield from self._block(body[1:], after)
            else:
                yield how, after, value

    def _statement(self, node: ast.stmt, state: State) -> Iterator[Way]:
        self.at = node
        self.reached.add(node.lineno)
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                yield "next", state, None
            case ast.Expr(value=ast.Call() as call):
                self.value(call, state)
                yield "next", state, None
            case ast.Assign(targets=[target], value=assigned):
                self._assign(target, self.value(assigned, state), state, node)
                yield "next", state, None
            case ast.AugAssign(target=target, op=operator, value=change):
                both = ast.copy_location(ast.BinOp(target, operator, change), node)
                self._assign(target, self.value(both, state), state, node)
                yield "next", state, None
            case ast.Return(value=result):
                yield "return", state, self.value(result, state) if result else None
            case ast.Break():
                yield "break", state, None
            case ast.Continue():
                yield "continue", state, None
            case ast.If(test=test, body=body, orelse=orelse):
                for is_true, way in self._outcomes(test, state):
                    yield from self._block(body if is_true else orelse, way)
            case ast.While(orelse=[]):
                yield from self._loop(node, node.test, node.body, state)
            case ast.For(orelse=[]):
                yield from self._for(node, state)
            case _:
                raise RefusedError("a statement that is not known")

    def _outcomes(self, test: ast.expr, state: State) -> Iterator[tuple[bool, State]]:
        """Yield each outcome of a test that is possible, and what is known then."""
        holds = z3.simplify(self.holds(test, state))
        for outcome, fact in ((True, holds), (False, z3.simplify(z3.Not(holds)))):
            way = state.fork(fact)
            if not z3.is_false(fact) and (z3.is_true(fact) or self._is_possible(way)):
                yield outcome, way

    def _assign(self, target: ast.expr, value: Term, state: State, node: ast.AST) -> None:
        match target:
            case ast.Name(id=name):
                is_plain = {"int", "bool"} >= {shape(value), state.shapes().get(name, "int")}
                refuse_if(not is_plain, "a variable holds what is no number and no truth")
                state.names[name] = value
            case ast.Tuple(elts=targets):
                refuse_if(not isinstance(value, tuple), "parts of what is no tuple")
                refuse_if(len(targets) != len(value), f"{len(value)} parts")
                for one, part in zip(targets, value, strict=True):
                    self._assign(one, part, state, node)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                self._may_change(name)
                at, value = number(self.value(index, state)), number(value)
                array = state.names[name]
                self.check(state, z3.And(at >= 0, at < array.length), f"{name} in range", node)
                self.check(state, fits(value, array.limits), f"{name} can hold it", node)
                state.names[name] = array.stored(at, value)
            case _:
                raise RefusedError(ast.unparse(target))

    def _may_change(self, name: str) -> None:
        refuse_if(name not in self.claim.changes, f"the claim does not say that {name} changes")

    # --- loops

    def _for(self, node: ast.For, state: State) -> Iterator[Way]:
        """Follow a `for` loop as the `while` loop that does the same."""
        name = counted_by(node)
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[*first, end], keywords=[]):
                refuse_if(len(first) > 1, "a range with steps")
                bounds, taken = [*first, end], f"next_{name}"
            case ast.Name(id=array):
                bounds = [ast.parse(f"len({array})", mode="eval").body]
                taken = f"{array}[next_{name}]"
            case _:
                raise RefusedError("a loop over what is no range and no array")
        *start, stop = [number(self.value(one, state)) for one in bounds]
        state.names[f"next_{name}"] = start[0] if start else z3.IntVal(0)
        state.names[f"end_{name}"] = stop
        line = f"{ast.unparse(node.target)} = {taken}; next_{name} = next_{name} + 1"
        head = ast.parse("\n" * (node.lineno - 1) + line).body
        test = ast.parse(f"next_{name} < end_{name}", mode="eval").body
        yield from self._loop(node, test, [*head, *node.body], state, name)

    def _loop(
        self, node: ast.stmt, test: ast.expr, body: list[ast.stmt], state: State, name: str = ""
    ) -> Iterator[Way]:
        """Follow a loop: by its invariant, or pass by pass; `name` is what a `for` loop counts."""
        loop = self.loops.get(node)
        if loop is None:
            yield from self._passes(test, body, state, PASSES_MAX)
            return
        for ghost, (before, _) in loop.ghosts.items():
            state.names[ghost] = self.claimed(before, state)
        self.unfold(loop.unfolds, state)
        self.show(loop.invariant, state, "before the loop:", node)
        first = state.names.get(f"next_{name}")
        self._forget([test, *body], state, set(loop.ghosts))
        state.facts += [goal for _, goal in self.lines(loop.invariant, state)]
        if name:  # so a range counts
            at, end = state.names[f"next_{name}"], state.names[f"end_{name}"]
            state.facts += [first <= at, z3.Or(at <= end, at == first)]
        for is_inside, way in self._outcomes(test, state):
            if is_inside:
                yield from self._one_pass(node, loop, body, way, name)
            else:
                yield "next", way, None

    def _one_pass(
        self, node: ast.stmt, loop: Loop, body: list[ast.stmt], state: State, name: str
    ) -> Iterator[Way]:
        decreases = loop.decreases or (f"end_{name} - next_{name}" if name else "")
        refuse_if(not decreases, "the claim does not say why this loop ends")
        self.unfold(loop.unfolds, state)
        before, shapes = self.claimed(decreases, state), state.shapes()
        for how, end, value in self._block(body, state):
            if how in ("next", "continue"):
                for ghost, (_, behind) in loop.ghosts.items():
                    end.names[ghost] = self.claimed(behind, end)
                is_same = shapes.items() <= end.shapes().items()
                refuse_if(not is_same, "a variable holds numbers and truths")
                self.show(loop.invariant, end, "kept by each pass:", node)
                after = self.claimed(decreases, end)
                self.check(end, z3.And(before >= 0, after < before), "the loop ends", node)
            else:
                yield ("next" if how == "break" else how), end, value

    def _passes(
        self, test: ast.expr, body: list[ast.stmt], state: State, left: int
    ) -> Iterator[Way]:
        for is_inside, way in self._outcomes(test, state):
            refuse_if(is_inside and left == 0, "a loop without an invariant takes many passes")
            for how, end, value in self._block(body, way) if is_inside else [("break", way, None)]:
                if how in ("next", "continue"):
                    yield from self._passes(test, body, end, left - 1)
                else:
                    yield ("next" if how == "break" else how), end, value

    def _forget(self, body: list[ast.AST], state: State, ghosts: set[str]) -> None:
        """Forget what the passes of a loop may change, and the values of its ghosts."""
        names = set[str]()
        for node in itertools.chain.from_iterable(map(ast.walk, body)):
            ghosts |= set(self.loops[node].ghosts) if node in self.loops else set()
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    names.add(name)
                case ast.For():
                    names |= {f"next_{counted_by(node)}", f"end_{counted_by(node)}"}
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                    names.add(name)
                case ast.Call(func=ast.Name(id=function), args=arguments):
                    called = self._kernel_named(function)
                    if called in CLAIMS:
                        pairs = zip(self.source(called)[0].args.args, arguments, strict=True)
                        changes = CLAIMS[called].changes
                        names |= {ast.unparse(given) for one, given in pairs if one.arg in changes}
        # In one order, as the same condition may take z3 many more steps in another.
        for name in sorted((names | ghosts) & set(state.names)):
            state.names[name] = value = self._any_like(name, state.names[name])
            # Each assignment was shown to stay within 64 bits; that of a ghost was not.
            if self.is_compiled and shape(value) == "int" and name not in ghosts:
                state.facts.append(fits(value, INT64))

    def _any_like(self, name: str, before: Term) -> Term:
        fresh = f"{name}!{next(self.fresh)}"
        if isinstance(before, Array):
            refuse_if(len(before.columns) > 1, f"{name}: only numbers can be written")
            return Array((Array.cells(fresh),), before.length, before.limits)
        return unknown(shape(before), fresh)

    # --- calls

    def _kernel_named(self, name: str) -> str:
        """Return the full name of a kernel as the present module calls it, or nothing."""
        found = getattr(self.module, name, None)
        found = getattr(found, "source", found)
        if not inspect.isfunction(found):
            return ""
        return f"{found.__module__.removeprefix(KERNELS)}:{found.__qualname__}"

    def called(self, name: str, values: list[Term], node: ast.Call, state: State) -> Term:
        """Return what a call of a kernel gives, by its claim."""
        full = self._kernel_named(name)
        refuse_if(full not in CLAIMS, f"{name} has no claim")
        claim, (definition, module, is_compiled) = CLAIMS[full], self.source(full)
        self.relied_on.add(full)
        refuse_if(is_compiled != self.is_compiled, "compiled and other code call each other")
        wanted = parameters(definition, claim)
        is_like = [*map(shape, values)] == [*map(shape, wanted.values())]
        refuse_if(not is_like, "arguments of another kind or format")
        names = list(wanted)
        inner = State(dict(zip(names, values, strict=True)), state.facts, state.guards)
        outer = self.at_call, self.module
        self.at_call, self.module = dict(inner.names), module
        self.show(claim.requires, inner, f"{definition.name} requires", node)
        for name in claim.changes:
            given = ast.unparse(node.args[names.index(name)])
            is_alone = node is getattr(self.at, "value", None)
            refuse_if(not is_alone, "a call that writes, inside of an expression")
            refuse_if([*map(ast.unparse, node.args)].count(given) > 1, "an array given twice")
            self._may_change(given)
            inner.names[name] = state.names[given] = self._any_like(name, inner.names[name])
        result = inner.names["result"] = self._any_result(definition, state)
        known = [goal for _, goal in self.lines(claim.ensures, inner)]
        if claim.word:
            refuse_if(claim.changes or shape(result) != "int", "a word for what is no number")
            known.append(result == word_symbol(claim.word, values))
        here = z3.And(*state.guards)
        state.facts += [z3.Implies(here, one) for one in known] if state.guards else known
        self.at_call, self.module = outer
        return result

    def _any_result(self, definition: ast.FunctionDef, state: State) -> Term:
        returns = ast.unparse(definition.returns or ast.Constant(None))
        result = unknown(returns, f"{definition.name}!{next(self.fresh)}")
        refuse_if(shape(result) != returns, f"a result of the kind {returns}")
        for one in result if isinstance(result, tuple) else [result]:
            if self.is_compiled and shape(one) == "int":
                state.facts.append(fits(one, INT64))
        return result
