# SPDX-License-Identifier: Apache-2.0
"""What a proof requires of callers, checked where Python calls a kernel.

Calls between kernels need no such check: each is a condition of the caller's proof. Long ranges are
checked at their ends and at places drawn by chance; all else is checked at every call.
"""

import ast
import functools
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import pairwise
from random import Random
from typing import Any

from segproof.kernels import dispatch
from segproof_harness.claims.claim import KERNELS, WORDS, Word, expressions_of
from segproof_harness.claims.every_claim import CLAIMS

PLACES_MAX = 200
"""Of a longer range so many places are looked at."""
CHECKED: dict[str, int] = {}
"""How many calls of each kernel were checked in this process."""


class PreconditionError(AssertionError):
    """A kernel was called with what its proof does not cover."""


def watch() -> None:
    """Check the calls of all kernels that this process interprets from now on."""
    dispatch.WATCH = checked


def checked(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that first checks what its claim requires."""
    name = f"{kernel.__module__.removeprefix(KERNELS)}:{kernel.__qualname__}"
    if name not in CLAIMS:
        return kernel
    signature = inspect.signature(kernel)

    @functools.wraps(kernel)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for line, holds in requirements(name):
            if not holds(given):
                raise PreconditionError(f"{name} requires {line}: {shown(given)}")
        CHECKED[name] = CHECKED.get(name, 0) + 1
        return kernel(*args, **kwargs)

    return call


def shown(arguments: dict[str, Any]) -> str:
    """Return arguments in words: numbers, and the lengths of buffers."""
    parts = (
        f"{name}={one}" if isinstance(one, int) else f"len({name})={len(one)}"
        for name, one in arguments.items()
    )
    return ", ".join(parts)


@functools.cache
def requirements(name: str) -> tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...]:
    """Return each line that a claim requires, with a function of the arguments that computes it."""
    module = import_module(KERNELS + name.partition(":")[0])
    names = {**vars(module), **_words()}

    def computed(line: str) -> Callable[[dict[str, Any]], Any]:
        code = _python(line)
        return lambda given: eval(code, {**names, **given})

    return tuple((line, computed(line)) for line in expressions_of(CLAIMS[name].requires))


@functools.cache
def _words() -> dict[str, Any]:
    """Return what the claims can say, as Python's functions."""
    names: dict[str, Any] = {"each": _each, "some": _some, "pairs": _pairs}
    for name, word in WORDS.items():
        names[name] = _word(name, word, names)
    for name, claim in CLAIMS.items():
        if claim.word:
            module, _, function = name.partition(":")
            kernel = getattr(import_module(KERNELS + module), function)
            names[claim.word] = dispatch.linked(kernel.source, lambda plain: plain, {})
    return names


def _word(name: str, word: Word, names: dict[str, Any]) -> Callable[..., Any]:
    code = _python(word.meaning)

    def value(*args: Any) -> Any:
        own: dict[str, Any] = {}
        if word.is_recursive:  # from the bottom up: a definition may be thousands of calls deep
            *others, last = args
            for number in range(min(last, 0), last):
                own[name] = _constant(_eval(code, names, word, (*others, number), own))
        return _eval(code, names, word, args, own)

    return value


def _eval(
    code: Any, names: dict[str, Any], word: Word, args: tuple[Any, ...], own: dict[str, Any]
) -> Any:
    return eval(code, {**names, **own, **dict(zip(word.parameters, args, strict=True))})


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args: value


class _Lazy(ast.NodeTransformer):
    """Evaluates what an implication implies only where it counts, as the proof does."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "implies":
            one, other = node.args
            return ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), one), other])
        if isinstance(node.func, ast.Name) and node.func.id == "iff":
            negated = [ast.UnaryOp(ast.Not(), one) for one in node.args]
            return ast.Compare(negated[0], [ast.Eq()], [negated[1]])
        return node


def _python(line: str) -> Any:
    tree = _Lazy().visit(ast.parse(line, mode="eval"))
    return compile(ast.fix_missing_locations(tree), line, "eval")


def _places(low: int, high: int) -> Iterable[int]:
    if high - low <= PLACES_MAX:
        return range(low, high)
    random = Random(high - low)
    drawn = (random.randrange(low, high) for _ in range(PLACES_MAX - 4))
    return (low, low + 1, *drawn, high - 2, high - 1)


def _each(low: int, high: int, holds: Callable[[int], Any]) -> bool:
    return all(holds(place) for place in _places(low, high))


def _some(low: int, high: int, holds: Callable[[int], Any]) -> bool:
    return any(holds(place) for place in range(low, high))


def _pairs(low: int, high: int, holds: Callable[[int, int], Any]) -> bool:
    """Look at neighbours; of what is no order, this is a part."""
    places = sorted(set(_places(low, high)))
    return all(holds(one, other) for one, other in pairwise(places))
