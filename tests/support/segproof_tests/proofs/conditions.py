# SPDX-License-Identifier: Apache-2.0
"""Prove a kernel for input of every length: make conditions of its source, let z3 decide each.

The source is read with `inspect`, so the text that is proved is the text that runs. It is followed
way by way. A loop is cut at its invariant, as Floyd and Hoare did: the invariant holds before the
loop, each pass keeps it, and a number that is never negative falls with each pass; behind the loop
nothing but the invariant is known. A call of another kernel is judged by the claim of that kernel.
Forms that the translation does not have are refused.
"""

import ast
import contextlib
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
from segproof_harness.claims.claim import CLAIMS, KERNELS, Claim, Loop, expressions_of
from segproof_tests.proofs.expressions import (
    Array,
    Expressions,
    State,
    Term,
    number,
    shape,
    word_symbol,
)
from segproof_tests.proofs.forms import (
    FORMATS,
    LEAST,
    MOST,
    RefusedError,
    counted_by,
    kind_of,
    refuse_forms,
    refuse_if,
)

CONDITION_STEPS = 20_000_000
"""After so many steps of z3, which count alike on each machine, a condition is not proved."""
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
    steps: int
    smt: str
    """In the language of SMT-LIB, where it is kept for a second solver."""


class _FirstFailureError(Exception):
    """Ends the proof of a mutant."""


class Prover(Expressions):
    """Judges kernels by their claims."""

    def __init__(
        self, changed: Mapping[str, ast.FunctionDef] | None = None, keeps_smt: bool = False
    ) -> None:
        super().__init__()
        self.solver = z3.Solver()
        self.changed = changed or {}
        """Kernels whose source is another one, as a mutant's."""
        self.keeps_smt = keeps_smt
        self.ends_at_failure = False
        self.failures: list[Failure] = []
        self.conditions: list[Condition] = []
        self.steps = 0
        self.relied_on: set[str] = set()
        """The kernels of whose calls the claim was used."""

    # --- a kernel

    def is_refuted(self, name: str) -> bool:
        """Return whether the first condition that fails comes with values for which it does.

        A condition that z3 gives up on refutes nothing, nor does source that is refused.
        """
        self.ends_at_failure = True
        with contextlib.suppress(_FirstFailureError, RefusedError, z3.Z3Exception):
            self.prove(name)
        return any("=" in one.counterexample for one in self.failures)

    def prove(self, name: str) -> None:
        """Make and decide the conditions of a kernel; `failures` then has what is not proved."""
        self.claim = CLAIMS[name]
        definition, self.module, self.is_compiled = self.source(name)
        self.at: ast.stmt = definition
        try:
            self._prove(definition)
        except RefusedError as error:
            text = ast.unparse(self.at).partition("\n")[0]
            raise RefusedError(f"{name}, line {self.at.lineno}: {text}: {error}") from None

    def _prove(self, definition: ast.FunctionDef) -> None:
        self.reached = set[int]()
        refuse_forms(definition, self.module, self.is_compiled, self.claim)
        loops = [one for one in ast.walk(definition) if isinstance(one, ast.While | ast.For)]
        loops.sort(key=lambda loop: loop.lineno)
        claimed = len(self.claim.loops)
        refuse_if(claimed not in (0, len(loops)), f"{len(loops)} loops, {claimed} in the claim")
        self.loops: dict[ast.stmt, Loop] = dict(zip(loops, self.claim.loops, strict=False))
        names = list(self.claim.cases)
        for values in itertools.product(*self.claim.cases.values()):
            self._prove_case(definition, dict(zip(names, values, strict=True)))
        self._show_cases_are_all(definition)
        for node in definition.body[1 if ast.get_docstring(definition) else 0 :]:
            for inner in ast.walk(node):
                if isinstance(inner, ast.stmt) and inner.lineno not in self.reached:
                    self._fail("this line is never reached", inner, "")

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
            for what, goal in self.lines(f"{self.claim.ensures}\n{self.claim.proves}", after):
                self.check(after, goal, f"ensures {what}", definition)

    def _limits(self, state: State) -> Iterator[Term]:
        """Yield that all items are within their limits; elsewhere only those that are read are."""
        place = z3.Int("place")
        for array in state.names.values():
            if isinstance(array, Array) and array.limits:
                item, (least, most) = array.at(place), array.limits
                yield z3.ForAll(place, z3.And(least <= item, item <= most))

    def _show_cases_are_all(self, definition: ast.FunctionDef) -> None:
        if self.claim.cases:
            state = self._arguments(definition, {})
            facts = [goal for _, goal in self.lines(self.claim.requires, state)]
            known = [
                z3.Or(*[state.names[name] == value for value in values])
                for name, values in self.claim.cases.items()
            ]
            self.check(state.fork(*facts), z3.And(*known), "no other case", definition)

    def source(self, name: str) -> tuple[ast.FunctionDef, ModuleType, bool]:
        """Return a kernel's definition, its module, and whether it is compiled."""
        module_name, _, function = name.partition(":")
        module = import_module(KERNELS + module_name)
        found = getattr(module, function)
        if name in self.changed:
            return self.changed[name], module, isinstance(found, Kernel)
        text = textwrap.dedent(inspect.getsource(getattr(found, "source", found)))
        definition = ast.parse(text).body[0]
        assert isinstance(definition, ast.FunctionDef)
        return definition, module, isinstance(found, Kernel)

    def _arguments(self, definition: ast.FunctionDef, case: dict[str, int]) -> State:
        state = State(self._parameters(definition, self.claim), [])
        for name, value in state.names.items():
            if name in case:
                state.names[name] = z3.IntVal(case[name])
            elif isinstance(value, Array):
                state.facts += [value.length >= 0, value.length <= LENGTH_MAX]
            elif self.is_compiled and shape(value) == "int":
                state.facts += [value >= LEAST, value <= MOST]
        return state

    def _parameters(self, definition: ast.FunctionDef, claim: Claim) -> dict[str, Term]:
        """Return parameters of which only the kind is known."""
        found: dict[str, Term] = {}
        for parameter in definition.args.args:
            name, (width, letter) = parameter.arg, kind_of(parameter, claim)
            if width:
                columns = tuple(self._cells(f"{name}.{column}") for column in range(width))
                found[name] = Array(columns, z3.Int(f"len({name})"), FORMATS[letter])
            else:
                is_bool = ast.unparse(parameter).endswith(": bool")
                found[name] = z3.Bool(name) if is_bool else z3.Int(name)
        return found

    def _cells(self, name: str) -> Term:
        return z3.Array(name, z3.IntSort(), z3.IntSort())

    # --- conditions

    def _decide(self, facts: list[Term], steps_max: int) -> Term:
        self.solver = z3.Solver()
        self.solver.set("rlimit", steps_max)
        self.solver.add(*facts)
        return self.solver.check()

    def _steps(self) -> int:
        """Return how many steps z3 took since this was asked before."""
        before, self.steps = self.steps, self.solver.statistics().get_key_value("rlimit count")
        return int(self.steps - before)

    def _is_possible(self, state: State) -> bool:
        return bool(self._decide(state.facts, BRANCH_STEPS) != z3.unsat)

    def _fail(self, what: str, node: ast.AST, counterexample: str) -> None:
        self.failures.append(Failure(what, getattr(node, "lineno", 0), counterexample))
        if self.ends_at_failure:
            raise _FirstFailureError

    def check(self, state: State, goal: Term, what: str, node: ast.AST) -> None:
        """Prove a condition. It is a fact from then on, so that one defect is told once."""
        if state.guards:
            goal = z3.Implies(z3.And(*state.guards), goal)
        if z3.is_true(z3.simplify(goal)):
            return
        began, _ = time.process_time(), self._steps()
        answer = self._decide([*state.facts, z3.Not(goal)], CONDITION_STEPS)
        smt = self.solver.to_smt2() if self.keeps_smt else ""
        seconds, steps = time.process_time() - began, self._steps()
        self.conditions.append(Condition(what, seconds, steps, smt))
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
                before = ast.parse(ast.unparse(target), mode="eval").body
                both = ast.copy_location(ast.BinOp(before, operator, change), node)
                both = ast.fix_missing_locations(both)
                self._assign(target, self.value(both, state), state, node)
                yield "next", state, None
            case ast.Return(value=result):
                yield "return", state, self.value(result, state) if result else None
            case ast.Break():
                yield "break", state, None
            case ast.Continue():
                yield "continue", state, None
            case ast.If(test=test, body=body, orelse=orelse):
                yield from self._branches(test, body, orelse, state)
            case ast.While(orelse=[]):
                yield from self._loop(node, node.test, node.body, state)
            case ast.For(orelse=[]):
                yield from self._for(node, state)
            case _:
                raise RefusedError("a statement that is not known")

    def _branches(
        self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], state: State
    ) -> Iterator[Way]:
        holds = z3.simplify(self.holds(test, state))
        for branch, fact in ((body, holds), (orelse, z3.simplify(z3.Not(holds)))):
            way = state.fork(fact)
            if not z3.is_false(fact) and (z3.is_true(fact) or self._is_possible(way)):
                yield from self._block(branch, way)

    def _assign(self, target: ast.expr, value: Term, state: State, node: ast.AST) -> None:
        match target:
            case ast.Name(id=name):
                refuse_if(shape(value) not in ("int", "bool"), f"{shape(value)} in a variable")
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
                if array.limits:
                    fits = z3.And(value >= array.limits[0], value <= array.limits[1])
                    self.check(state, fits, f"{name} can hold it", node)
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
            case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
                *first, end = [number(self.value(bound, state)) for bound in bounds]
                refuse_if(len(first) > 1, "a range with steps")
                state.names[f"end_{name}"] = end
                state.names[f"next_{name}"] = first[0] if first else z3.IntVal(0)
                taken = f"next_{name}"
            case ast.Name(id=array):
                refuse_if(not isinstance(state.names.get(array), Array), f"{array} is no array")
                state.names[f"end_{name}"] = state.names[array].length
                state.names[f"next_{name}"] = z3.IntVal(0)
                taken = f"{array}[next_{name}]"
            case _:
                raise RefusedError("a loop over what is no range and no array")
        text = f"{ast.unparse(node.target)} = {taken}\nnext_{name} = next_{name} + 1"
        head = ast.parse(text).body
        for inner in itertools.chain.from_iterable(map(ast.walk, head)):
            ast.copy_location(inner, node)
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
        self._unfold(loop.unfolds, state)
        for what, goal in self.lines(loop.invariant, state):
            self.check(state, goal, f"before the loop: {what}", node)
        first = state.names.get(f"next_{name}")
        self._forget([test, *body], state, set(loop.ghosts))
        state.facts += [goal for _, goal in self.lines(loop.invariant, state)]
        if name:  # so a range counts
            at, end = state.names[f"next_{name}"], state.names[f"end_{name}"]
            state.facts += [first <= at, z3.Or(at <= end, at == first)]
        holds = self.holds(test, state)
        inside, outside = state.fork(holds), state.fork(z3.Not(holds))
        if self._is_possible(inside):
            yield from self._one_pass(node, loop, body, inside, name)
        if self._is_possible(outside):
            yield "next", outside, None

    def _one_pass(
        self, node: ast.stmt, loop: Loop, body: list[ast.stmt], state: State, name: str
    ) -> Iterator[Way]:
        decreases = loop.decreases or (f"end_{name} - next_{name}" if name else "")
        refuse_if(not decreases, "the claim does not say why this loop ends")
        self._unfold(loop.unfolds, state)
        before, shapes = self.claimed(decreases, state), _shapes(state)
        for how, end, value in self._block(body, state):
            if how in ("next", "continue"):
                for ghost, (_, behind) in loop.ghosts.items():
                    end.names[ghost] = self.claimed(behind, end)
                is_same = all(_shapes(end)[one] == kind for one, kind in shapes.items())
                refuse_if(not is_same, "a variable holds numbers and truths")
                for what, goal in self.lines(loop.invariant, end):
                    self.check(end, goal, f"kept by each pass: {what}", node)
                after = self.claimed(decreases, end)
                self.check(end, z3.And(before >= 0, after < before), "the loop ends", node)
            else:
                yield ("next" if how == "break" else how), end, value

    def _unfold(self, text: str, state: State) -> None:
        """Learn that recursive words are what their definition says, for these arguments."""
        for line in expressions_of(text):
            node = ast.parse(line, mode="eval").body
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Name)
            values = [self.value(one, state, is_claim=True) for one in node.args]
            meaning = self.meaning(node.func.id, values, state)
            state.facts.append(word_symbol(node.func.id, values) == meaning)

    def _passes(
        self, test: ast.expr, body: list[ast.stmt], state: State, left: int
    ) -> Iterator[Way]:
        holds = z3.simplify(self.holds(test, state))
        outside, inside = state.fork(z3.Not(holds)), state.fork(holds)
        if not z3.is_true(holds) and self._is_possible(outside):
            yield "next", outside, None
        if z3.is_false(holds) or not self._is_possible(inside):
            return
        refuse_if(left == 0, f"a loop without an invariant takes more than {PASSES_MAX} passes")
        for how, end, value in self._block(body, inside):
            if how in ("next", "continue"):
                yield from self._passes(test, body, end, left - 1)
            else:
                yield ("next" if how == "break" else how), end, value

    def _forget(self, body: list[ast.AST], state: State, ghosts: set[str]) -> None:
        """Forget what the passes of a loop may change, and the values of its ghosts."""
        names = set[str]()
        for node in itertools.chain.from_iterable(map(ast.walk, body)):
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
                        parameters = [one.arg for one in self.source(called)[0].args.args]
                        pairs = zip(parameters, arguments, strict=True)
                        changes = CLAIMS[called].changes
                        names |= {ast.unparse(given) for one, given in pairs if one in changes}
        for name in names & set(state.names):
            state.names[name] = value = self._any_like(name, state.names[name])
            if self.is_compiled and shape(value) == "int":
                # Each assignment was shown to stay within 64 bits.
                state.facts += [value >= LEAST, value <= MOST]
        for ghost in ghosts:
            state.names[ghost] = self._any_like(ghost, state.names[ghost])

    def _any_like(self, name: str, before: Term) -> Term:
        fresh = f"{name}!{next(self.fresh)}"
        if isinstance(before, Array):
            refuse_if(len(before.columns) > 1, f"{name}: only numbers can be written")
            return Array((self._cells(fresh),), before.length, before.limits)
        return z3.Bool(fresh) if z3.is_bool(before) else z3.Int(fresh)

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
        return self._by_claim(full, values, node, state)

    def _by_claim(self, full: str, values: list[Term], node: ast.Call, state: State) -> Term:
        claim, (definition, module, is_compiled) = CLAIMS[full], self.source(full)
        self.relied_on.add(full)
        refuse_if(is_compiled != self.is_compiled, "compiled and other code call each other")
        wanted = self._parameters(definition, claim)
        names = list(wanted)
        is_like = [*map(shape, values)] == [*map(shape, wanted.values())]
        refuse_if(not is_like, "arguments of another kind or format")
        inner = State(dict(zip(names, values, strict=True)), state.facts, state.guards)
        outer = self.at_call, self.module
        self.at_call, self.module = dict(inner.names), module
        for what, goal in self.lines(claim.requires, inner):
            self.check(inner, goal, f"{definition.name} requires {what}", node)
        for name in claim.changes:
            given = ast.unparse(node.args[names.index(name)])
            is_alone = node is getattr(self.at, "value", None)
            refuse_if(not is_alone, "a call that writes, inside of an expression")
            refuse_if([*map(ast.unparse, node.args)].count(given) > 1, "an array given twice")
            self._may_change(given)
            inner.names[name] = state.names[given] = self._any_like(name, inner.names[name])
        result = inner.names["result"] = self._any_result(definition, is_compiled, state)
        known = [goal for _, goal in self.lines(claim.ensures, inner)]
        if claim.word:
            refuse_if(claim.changes or shape(result) != "int", "a word for what is no number")
            known.append(result == word_symbol(claim.word, values))
        here = z3.And(*state.guards)
        state.facts += [z3.Implies(here, one) for one in known] if state.guards else known
        self.at_call, self.module = outer
        return result

    def _any_result(self, definition: ast.FunctionDef, is_compiled: bool, state: State) -> Term:
        returns, name = ast.unparse(definition.returns or ast.Constant(None)), definition.name
        if returns in ("bool", "None"):
            return z3.Bool(f"{name}!{next(self.fresh)}") if returns == "bool" else None
        numbers = [z3.Int(f"{name}!{next(self.fresh)}") for _ in range(returns.count("int"))]
        if is_compiled:
            state.facts += [z3.And(one >= LEAST, one <= MOST) for one in numbers]
        return numbers[0] if returns == "int" else tuple(numbers)


def _shapes(state: State) -> dict[str, str]:
    return {name: shape(value) for name, value in state.names.items()}
