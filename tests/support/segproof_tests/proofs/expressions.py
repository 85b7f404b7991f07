# SPDX-License-Identifier: Apache-2.0
"""What an expression of a kernel or of a claim means, as a term of z3.

Integers are z3's, without limit. An expression of a compiled kernel must be shown to stay within 64
bits, to read in range and to divide by positive numbers only; an expression of a claim need not.
"""

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import z3

from segproof_harness.claims.claim import CLAIMS, WORDS, Claim, expressions_of
from segproof_tests.proofs.forms import FORMATS, INT64, RefusedError, kind_of, refuse_if

Term = Any
"""A term of z3 (z3 has no types), a tuple of values, or an `Array`."""


@dataclass(frozen=True)
class Array:
    """A buffer or sequence: its items, how many there are, and the limits of an item."""

    columns: tuple[Term, ...]
    """One mapping from int to int for each number of an item."""
    length: Term
    limits: tuple[int, int] | None

    @staticmethod
    def cells(name: str) -> Term:
        """Return a mapping from int to int of which nothing is known."""
        return z3.Array(name, z3.IntSort(), z3.IntSort())

    def at(self, index: Term) -> Term:
        """Return an item: a number, or a tuple of numbers."""
        items = tuple(z3.Select(column, index) for column in self.columns)
        return items[0] if len(items) == 1 else items

    def stored(self, index: Term, value: Term) -> "Array":
        """Return the array with another number at one place."""
        return Array((z3.Store(self.columns[0], index, value),), self.length, self.limits)


@dataclass
class State:
    """What is known at one place of one way through a kernel."""

    names: dict[str, Term]
    facts: list[Term]
    guards: list[Term] = field(default_factory=list)
    """What holds where the present part of an expression is evaluated at all."""
    is_claim: bool = False
    """Whether what is evaluated is a claim, of which little is to be shown."""

    def fork(self, *facts: Term) -> "State":
        """Return a copy that knows more."""
        return State(dict(self.names), [*self.facts, *facts], list(self.guards))

    def shapes(self) -> dict[str, str]:
        """Return the kind of each variable."""
        return {name: shape(value) for name, value in self.names.items()}

    def of_claim(self) -> "State":
        """Return this state, not a copy, to evaluate claims in."""
        return State(self.names, self.facts, self.guards, is_claim=True)


def fits(value: Term, limits: tuple[int, int] | None) -> Term:
    """Return that a number lies within limits, both inclusive."""
    return z3.And(limits[0] <= value, value <= limits[1]) if limits else z3.BoolVal(True)


def unknown(kind: str, name: str) -> Term:
    """Return a value of which only the kind is known, in the words of an annotation."""
    match kind:
        case "None":
            return None
        case "int":
            return z3.Int(name)
        case "bool":
            return z3.Bool(name)
    return tuple(z3.Int(f"{name}.{place}") for place in range(kind.count("int")))


def parameters(definition: ast.FunctionDef, claim: Claim) -> dict[str, Term]:
    """Return the parameters of a kernel, of which only the kind is known."""
    found: dict[str, Term] = {}
    for parameter in definition.args.args:
        name, (width, letter) = parameter.arg, kind_of(parameter, claim)
        columns = tuple(Array.cells(f"{name}.{column}") for column in range(width))
        array = Array(columns, z3.Int(f"len({name})"), FORMATS[letter])
        kind = ast.unparse(parameter.annotation or parameter)
        found[name] = array if width else unknown(kind, name)
    return found


def shape(value: Term) -> str:
    """Return of which kind a value is, in the words of an annotation."""
    if isinstance(value, tuple):
        return f"tuple[{', '.join(map(shape, value))}]"
    if isinstance(value, Array):
        return f"array of {len(value.columns)} within {value.limits}"
    return "None" if value is None else "bool" if z3.is_bool(value) else "int"


def truth(value: Term) -> Term:
    """Return what an `if` makes of a value."""
    if isinstance(value, Array):
        return value.length > 0
    return value if z3.is_bool(value) else number(value) != 0


def number(value: Term) -> Term:
    """Return a value as an integer; Python's True is 1."""
    refuse_if(shape(value) not in ("int", "bool"), f"{shape(value)} is no number")
    return z3.If(value, z3.IntVal(1), z3.IntVal(0)) if z3.is_bool(value) else value


def choose(holds: Term, one: Term, other: Term) -> Term:
    """Return `one if holds else other`, also of tuples."""
    refuse_if(shape(one) != shape(other) or isinstance(one, Array), "a choice of two kinds")
    if isinstance(one, tuple):
        return tuple(choose(holds, a, b) for a, b in zip(one, other, strict=True))
    return z3.If(holds, one, other)


def multiply(one: Term, other: Term) -> Term:
    """Multiply; a choice is multiplied branch by branch, so that products stay linear."""
    for a, b in ((one, other), (other, one)):
        if z3.is_app_of(a, z3.Z3_OP_ITE):
            return z3.If(a.arg(0), multiply(a.arg(1), b), multiply(a.arg(2), b))
    return one * other


def word_symbol(name: str, values: Sequence[Term]) -> Term:
    """Return an application of the function that stands for a word."""
    parts: list[Term] = []
    for value in values:
        is_array = isinstance(value, Array)
        parts += [*value.columns, value.length] if is_array else [number(value)]
    return z3.Function(name, *[part.sort() for part in parts], z3.IntSort())(*parts)


def _is_mask(value: int) -> bool:
    """Return whether a number has ones only behind its leading zeros."""
    return value >= 0 and value & (value + 1) == 0


COMPARED: dict[type[ast.cmpop], Callable[[Term, Term], Term]] = {
    ast.Lt: lambda one, other: one < other,
    ast.LtE: lambda one, other: one <= other,
    ast.Gt: lambda one, other: one > other,
    ast.GtE: lambda one, other: one >= other,
    ast.Eq: lambda one, other: one == other,
    ast.NotEq: lambda one, other: one != other,
}


class Expressions:
    """Translates expressions; the subclass says what is done with a condition and with a call."""

    module: ModuleType
    """Where names that are no variables are looked up."""
    is_compiled: bool
    """Whether what is translated is compiled, and so must stay within 64 bits."""
    at_call: dict[str, Term]
    """The arguments of the kernel, for `old`."""

    def __init__(self) -> None:
        self.fresh = itertools.count()

    def check(self, state: State, goal: Term, what: str, node: ast.AST) -> None:
        """Show that `goal` holds here."""
        raise NotImplementedError

    def called(self, name: str, values: list[Term], node: ast.Call, state: State) -> Term:
        """Return what a call of another kernel gives."""
        raise NotImplementedError

    # --- claims

    def lines(self, text: str, state: State) -> Iterator[tuple[str, Term]]:
        """Yield each expression of a claim's text with its meaning."""
        for line in expressions_of(text):
            node = ast.parse(line, mode="eval").body
            yield line, self.holds(node, state.of_claim())

    def show(self, text: str, state: State, why: str, node: ast.AST) -> None:
        """Show that each expression of a claim's text holds here."""
        for what, goal in self.lines(text, state):
            self.check(state, goal, f"{why} {what}", node)

    def claimed(self, text: str, state: State) -> Term:
        """Return what an expression of a claim means; nothing is to be shown of it."""
        return self.value(ast.parse(text, mode="eval").body, state.of_claim())

    # --- expressions

    def value(self, node: ast.AST, state: State) -> Term:
        """Return what an expression means, and show that evaluating it is harmless."""
        match node:
            case ast.Constant(value=bool() as value):
                return z3.BoolVal(value)
            case ast.Constant(value=int() as value):
                return self._constant(value, state)
            case ast.Name(id=name):
                return self._named(name, state)
            case ast.Tuple(elts=parts):
                return tuple(self.value(part, state) for part in parts)
            case ast.UnaryOp(op=ast.Not()):
                return self.holds(node, state)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                negated = -number(self.value(inner, state))
                return self._within_64_bits(negated, node, state)
            case ast.BoolOp():
                return self._in_order(node, state, self._bool)
            case ast.IfExp(test=test, body=one, orelse=other):
                holds = self.holds(test, state)
                first = self._guarded(one, holds, state)
                return choose(holds, first, self._guarded(other, z3.Not(holds), state))
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._compared([left, *others], operators, state)
            case ast.BinOp():
                return self._computed(node, state)
            case ast.Subscript(value=base, slice=index):
                item = self.value(index, state)
                return self._item(self.value(base, state), item, node, state)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node, state)
        raise RefusedError(ast.unparse(node))

    def holds(self, node: ast.AST, state: State) -> Term:
        """Return what an `if` makes of an expression."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return z3.Not(self.holds(inner, state))
            case ast.BoolOp():
                return self._in_order(node, state, self.holds)
        value = self.value(node, state)
        is_array = isinstance(value, Array)
        refuse_if(is_array and (state.is_claim or self.is_compiled), "an array as a truth")
        return truth(value)

    def _bool(self, node: ast.AST, state: State) -> Term:
        value = self.value(node, state)
        refuse_if(shape(value) != "bool", "`and` or `or` of what is no bool, as a value")
        return value

    def _constant(self, value: int, state: State) -> Term:
        is_far = value not in range(INT64[0], INT64[1] + 1)
        refuse_if(is_far and self.is_compiled and not state.is_claim, "more than 64 bits")
        return z3.IntVal(value)

    def _named(self, name: str, state: State) -> Term:
        if name in state.names:
            return state.names[name]
        found = getattr(self.module, name, None)
        if not isinstance(found, int) or isinstance(found, bool):
            raise RefusedError(f"{name} has no value here")
        return self._constant(found, state)

    def _guarded(self, node: ast.AST, guard: Term, state: State) -> Term:
        state.guards.append(guard)
        value = self.value(node, state)
        state.guards.pop()
        return value

    def _in_order(self, node: ast.BoolOp, state: State, meaning: Callable[..., Term]) -> Term:
        """Each part is evaluated only if those before it leave the answer open."""
        before, values, is_and = len(state.guards), [], isinstance(node.op, ast.And)
        for part in node.values:
            values.append(meaning(part, state))
            state.guards.append(values[-1] if is_and else z3.Not(values[-1]))
        del state.guards[before:]
        return z3.And(*values) if is_and else z3.Or(*values)

    def _compared(self, parts: list[ast.expr], operators: list[ast.cmpop], state: State) -> Term:
        values = [number(self.value(part, state)) for part in parts]
        refuse_if({*map(type, operators)} - set(COMPARED), "an operator that is not known")
        pairs = zip(operators, itertools.pairwise(values), strict=True)
        return z3.And(*[COMPARED[type(operator)](*pair) for operator, pair in pairs])

    def _within_64_bits(self, value: Term, node: ast.AST, state: State) -> Term:
        if not state.is_claim and self.is_compiled:
            self.check(state, fits(value, INT64), "within 64 bits", node)
        return value

    def _computed(self, node: ast.BinOp, state: State) -> Term:
        one, other = (number(self.value(part, state)) for part in (node.left, node.right))
        constant = other.as_long() if z3.is_int_value(other) else None
        match node.op:
            case ast.Add():
                return self._within_64_bits(one + other, node, state)
            case ast.Sub():
                return self._within_64_bits(one - other, node, state)
            case ast.Mult():
                return self._within_64_bits(multiply(one, other), node, state)
            case ast.FloorDiv() | ast.Mod():
                # z3 divides as Python does where the divisor is positive.
                self.check(state, other > 0, "a positive divisor", node)
                return one / other if isinstance(node.op, ast.FloorDiv) else one % other
            case ast.BitAnd() if constant is not None and _is_mask(constant):
                return one % (constant + 1)
            case ast.RShift() if constant is not None and 0 <= constant < 64:
                return one / 2**constant
        raise RefusedError(ast.unparse(node))

    def _item(self, base: Term, index: Term, node: ast.AST, state: State) -> Term:
        index = z3.simplify(number(index))
        if isinstance(base, tuple):
            is_known = z3.is_int_value(index) and 0 <= index.as_long() < len(base)
            refuse_if(not is_known, "an item of a tuple")
            return base[index.as_long()]
        refuse_if(not isinstance(base, Array), "an item of what is no array")
        if z3.is_int_value(index) and index.as_long() < 0:
            index = base.length + index
        if not state.is_claim:
            self.check(state, z3.And(index >= 0, index < base.length), "read in range", node)
        item = base.at(index)
        # What lies outside the array is never seen, so its limits may be assumed as well.
        state.facts.append(fits(item, base.limits))
        return item

    # --- calls

    def _call(self, name: str, node: ast.Call, state: State) -> Term:
        refuse_if(node.keywords, "a keyword")
        if state.is_claim and name in ("forall", "each", "some", "pairs"):
            return self._quantified(name, node, state)
        if state.is_claim and name == "old":
            [argument] = map(ast.unparse, node.args)
            refuse_if(argument not in self.at_call, f"{argument} is no parameter")
            return self.at_call[argument]
        if state.is_claim and name in ("implies", "iff"):
            one, other = (self.holds(argument, state) for argument in node.args)
            return z3.Implies(one, other) if name == "implies" else one == other
        values = [self.value(argument, state) for argument in node.args]
        if name in ("len", "sum"):
            [array] = values
            refuse_if(not isinstance(array, Array), f"{name} of what is no array")
            refuse_if(name == "sum" and self.is_compiled, "a compiled sum")
            return array.length if name == "len" else self.word("sum_of", [array, array.length])
        if name in ("min", "max"):
            is_known = len(values) > 1 and {*map(shape, values)} == {"int"}
            refuse_if(not is_known, f"{name} of one value, or of what is no number")
            least, *others = values
            for other in others:
                least = choose(other < least if name == "min" else other > least, other, least)
            return least
        if not state.is_claim:
            return self.called(name, values, node, state)
        if name in WORDS and not WORDS[name].is_recursive:
            return self.meaning(name, values, state)
        return self.word(name, values)

    def word(self, name: str, values: list[Term]) -> Term:
        """Return what a word that is not replaced by its meaning gives."""
        is_known = name in WORDS or any(claim.word == name for claim in CLAIMS.values())
        refuse_if(not is_known, f"{name} is no word of the claims")
        return word_symbol(name, values)

    def meaning(self, name: str, values: list[Term], state: State) -> Term:
        """Return what a word stands for."""
        word = WORDS[name]
        inner = State(dict(zip(word.parameters, values, strict=True)), state.facts)
        return self.claimed(word.meaning, inner)

    def unfold(self, text: str, state: State) -> None:
        """Learn that recursive words are what their definition says, for these arguments."""
        for line in expressions_of(text):
            node = ast.parse(line, mode="eval").body
            assert isinstance(node, ast.Call)
            name, values = ast.unparse(node.func), [self.value(one, state) for one in node.args]
            meaning = self.meaning(name, values, state)
            state.facts.append(word_symbol(name, values) == meaning)

    def _quantified(self, name: str, node: ast.Call, state: State) -> Term:
        *bounds, each = node.args
        assert isinstance(each, ast.Lambda)
        names = [argument.arg for argument in each.args.args]
        refuse_if(len(names) != 1 + (name == "pairs"), f"{len(names)} names in `{name}`")
        refuse_if(set(names) & set(state.names), "a bound name is taken")
        bound = [z3.Int(f"{one}!{next(self.fresh)}") for one in names]
        # What is learned of items whose index is bound is no fact outside.
        inner = State({**state.names, **dict(zip(names, bound, strict=True))}, [], is_claim=True)
        holds = self.holds(each.body, inner)
        if name == "forall":
            return z3.ForAll(bound, holds)
        low, high = (number(self.value(one, state)) for one in bounds)
        inside = z3.And(low <= bound[0], *[a < b for a, b in itertools.pairwise([*bound, high])])
        if name == "some":
            return z3.Exists(bound, z3.And(inside, holds))
        return z3.ForAll(bound, z3.Implies(inside, holds))
