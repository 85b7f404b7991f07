# SPDX-License-Identifier: Apache-2.0
"""The claims of kernels, evaluated by CPython where Python calls one.

What a proof requires of callers is seen to hold there; and what it promises of the result is seen
to mean in CPython what it means to the prover. Calls between kernels need no such check: each is a
condition of the caller's proof. Of long ranges a required line is evaluated at their ends and at
places drawn by chance, and a promised line not at all.
"""

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import chain, islice, pairwise
from random import Random
from typing import Any

from segproof.kernels import dispatch
from segproof_harness.claims.claim import KERNELS, WORDS, Word, expressions_of
from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.proofs.forms import FORMATS, INT64

PLACES_MAX = 200
"""Of a longer range so many places are looked at, or none."""
ITERATED_MAX = 20
"""A call with a longer iterable, which can be read once only, is not checked."""
COPIED_MAX = 2**16
"""Lines that speak of `old` numbers are not evaluated where a larger buffer is changed."""
CHECKED: dict[str, int] = {}
"""How many calls of each kernel were checked in this process."""
KNOWN: dict[tuple[Any, ...], dict[int, Any]] = {}
"""Values of recursive words while one line is evaluated, by word and all arguments but the last."""
PLAIN = (int, bool, bytes, memoryview)
"""The kinds of nearly all arguments."""
OLD = re.compile(r"\bold\((\w+)\)")
Line = tuple[str, Callable[[dict[str, Any]], Any]]
"""An expression of a claim, and a function of the names that computes it."""


class PreconditionError(AssertionError):
    """A kernel was called with what its proof does not cover."""


class PromiseError(AssertionError):
    """A kernel gave something else than what is claimed of it."""


class _TooLongError(Exception):
    """A range is too long to look at all of it."""


def watch() -> None:
    """Check the calls of all kernels that this process interprets from now on."""
    dispatch.WATCH = checked
    for name in CLAIMS:
        module, _, function = name.partition(":")
        plain = getattr(import_module(KERNELS + module), function)
        if not isinstance(plain, dispatch.Kernel):
            _replace(plain, checked(plain))


def _replace(function: Callable[..., Any], twin: Callable[..., Any]) -> None:
    """Put another function in its place in each module that has it by now."""
    for module in [one for name, one in sys.modules.items() if name.startswith("segproof.")]:
        for name in [name for name, value in vars(module).items() if value is function]:
            setattr(module, name, twin)


def checked(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that checks what its claim requires, and what it promises."""
    name = f"{kernel.__module__.removeprefix(KERNELS)}:{kernel.__qualname__}"
    if name not in CLAIMS:
        return kernel
    signature, fits = inspect.signature(kernel), _kinds(name, kernel)
    names = tuple(signature.parameters)

    @functools.wraps(kernel)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == len(names) and not kwargs:
            bound = dict(zip(names, args, strict=True))
        else:
            bound = signature.bind(*args, **kwargs).arguments
        given = dict(bound)
        for one, value in bound.items():
            if type(value) not in PLAIN and not isinstance(value, Sequence):
                rest = iter(value)
                given[one] = first = list(islice(rest, ITERATED_MAX + 1))
                if len(first) > ITERATED_MAX:
                    return kernel(**{**bound, one: chain(first, rest)})
        for one, value in given.items():
            if not fits[one](value):
                raise PreconditionError(f"{name}: {one} is of another kind: {shown(given)}")
        for line, holds in requirements(name):
            if not holds(given):
                raise PreconditionError(f"{name} requires {line}: {shown(given)}")
        before = {f"old_{one}": _copied(given[one]) for one in recalled(name)}
        result = kernel(**given)
        known = {**given, **before, "result": result}
        for line, holds in promises(name):
            if not holds(known):
                raise PromiseError(f"{name} promises {line}: {shown(given)}, result={result}")
        CHECKED[name] = CHECKED.get(name, 0) + 1
        return result

    return call


def _kinds(name: str, kernel: Callable[..., Any]) -> dict[str, Callable[[Any], bool]]:
    """Return for each parameter whether an argument is of the kind that the proof assumes."""
    module, _, function = name.partition(":")
    is_compiled = isinstance(getattr(import_module(KERNELS + module), function), dispatch.Kernel)
    formats, changes = CLAIMS[name].formats, CLAIMS[name].changes

    def kind(parameter: inspect.Parameter) -> Callable[[Any], bool]:
        usual = "q" if parameter.annotation is memoryview else "B"
        wanted = formats.get(parameter.name, usual)
        limits = FORMATS[wanted] or INT64

        def fits(value: Any) -> bool:
            if isinstance(value, memoryview):
                letter = value.format.replace("l", "q")  # both have 64 bits here
                if letter == wanted or parameter.name in changes:
                    return letter == wanted
                least, most = FORMATS.get(letter) or (limits[0] - 1, 0)
                return limits[0] <= least and most <= limits[1]
            return not (is_compiled and type(value) is int) or INT64[0] <= value <= INT64[1]

        return fits

    return {one.name: kind(one) for one in inspect.signature(kernel).parameters.values()}


def _copied(value: Any) -> Any:
    """Return an argument as it is now; nothing for a large buffer."""
    if not isinstance(value, memoryview) or value.readonly:
        return value
    return value.tolist() if value.nbytes <= COPIED_MAX else None


def shown(arguments: dict[str, Any]) -> str:
    """Return arguments in words: numbers, and the lengths of buffers."""
    parts = (
        f"{name}={one}" if isinstance(one, int) else f"len({name})={len(one)}"
        for name, one in arguments.items()
    )
    return ", ".join(parts)


@functools.cache
def requirements(name: str) -> tuple[Line, ...]:
    """Return each line that a claim requires."""
    return tuple(_lines(name, CLAIMS[name].requires, is_exact=False))


@functools.cache
def promises(name: str) -> tuple[Line, ...]:
    """Return each line that a claim promises."""
    claim = CLAIMS[name]
    return tuple(_lines(name, f"{claim.ensures}\n{claim.proves}", is_exact=True))


@functools.cache
def recalled(name: str) -> tuple[str, ...]:
    """Return the arguments whose `old` numbers a claim's promises speak of."""
    claim = CLAIMS[name]
    return tuple(sorted({*OLD.findall(f"{claim.ensures}\n{claim.proves}")}))


def _lines(name: str, text: str, *, is_exact: bool) -> Iterable[Line]:
    module, _, function = name.partition(":")
    kernel = getattr(import_module(KERNELS + module), function)
    names = {**vars(import_module(KERNELS + module)), **_words(is_exact=is_exact)}
    own = list(inspect.signature(kernel).parameters)
    parameters = [f"{one}=None" for one in (*own, *(f"old_{one}" for one in own), "result")]

    def computed(line: str) -> Callable[[dict[str, Any]], Any]:
        function, olds = _function(line, parameters, names), OLD.findall(line)

        def holds(given: dict[str, Any]) -> Any:
            if any(given[f"old_{one}"] is None for one in olds):
                return True
            KNOWN.clear()
            try:
                return function(**given)
            except _TooLongError:
                return True
            except IndexError:  # a promise holds whatever lies behind a buffer
                if not is_exact:
                    raise
                return True

        return holds

    return [(line, computed(line)) for line in expressions_of(text)]


@functools.cache
def _words(*, is_exact: bool) -> dict[str, Any]:
    """Return what the claims can say, as Python's functions."""
    places = functools.partial(_places, is_exact)
    names: dict[str, Any] = {
        "each": lambda low, high, holds: all(map(holds, places(low, high))),
        "some": lambda low, high, holds: any(map(holds, range(low, high))),
        # Neighbours are enough of an order; of another relation they are a part.
        "pairs": lambda low, high, holds: all(
            holds(one, other) for one, other in pairwise(sorted({*places(low, high)}))
        ),
        "forall": _forall,
    }
    for name, word in WORDS.items():
        names[name] = _word(name, word, names, is_exact)
    for name, claim in CLAIMS.items():
        if claim.word:
            module, _, function = name.partition(":")
            kernel = getattr(import_module(KERNELS + module), function)
            names[claim.word] = dispatch.linked(kernel.source, lambda plain: plain, {})
    return names


def _word(name: str, word: Word, names: dict[str, Any], is_exact: bool) -> Callable[..., Any]:
    if not word.is_recursive:
        return _function(word.meaning, word.parameters, names)
    meaning = _function(word.meaning, (name, *word.parameters), names)

    def value(*args: Any) -> Any:
        # From the bottom up: a definition may be thousands of calls deep.
        *others, last = args
        if is_exact and last > PLACES_MAX:
            raise _TooLongError
        known = KNOWN.setdefault((name, *(n if isinstance(n, int) else id(n) for n in others)), {})
        first = last
        while first > 0 and first not in known:
            first -= 1
        for number in range(first, last + 1):
            if number not in known:
                below = _constant(known[number - 1]) if number - 1 in known else names[name]
                known[number] = meaning(below, *others, number)
        return known[last]

    return value


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args: value


class _Lazy(ast.NodeTransformer):
    """Evaluates what an implication implies only where it counts, and `old(name)` as a name."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "old":
            return ast.Name(f"old_{ast.unparse(node.args[0])}", ast.Load())
        if isinstance(node.func, ast.Name) and node.func.id == "implies":
            one, other = node.args
            return ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), one), other])
        if isinstance(node.func, ast.Name) and node.func.id == "iff":
            negated = [ast.UnaryOp(ast.Not(), one) for one in node.args]
            return ast.Compare(negated[0], [ast.Eq()], [negated[1]])
        return node


def _function(line: str, parameters: Iterable[str], names: dict[str, Any]) -> Callable[..., Any]:
    """Return an expression as a function of the parameters, which knows the names too."""
    tree = _Lazy().visit(ast.parse(f"lambda {', '.join(parameters)}: ({line})", mode="eval"))
    function: Callable[..., Any] = eval(
        compile(ast.fix_missing_locations(tree), line, "eval"), names
    )
    return function


def _places(is_exact: bool, low: int, high: int) -> Iterable[int]:
    if high - low <= PLACES_MAX:
        return range(low, high)
    if is_exact:
        raise _TooLongError
    random = Random(high - low)
    drawn = (random.randrange(low, high) for _ in range(PLACES_MAX - 4))
    return (low, low + 1, *drawn, high - 2, high - 1)


def _forall(holds: Callable[[int], Any]) -> bool:
    """Look at the first places that the arrays have, and at some of the others."""
    place = 0
    try:
        while place < 2**62:
            if not holds(place):
                return False
            place += 1 + place // PLACES_MAX * place
    except IndexError:
        pass
    return True
