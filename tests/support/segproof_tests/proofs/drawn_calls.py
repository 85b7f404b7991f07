# SPDX-License-Identifier: Apache-2.0
"""Calls of a kernel on drawn arguments, to see whether a change of its source changes anything."""

import ast
import functools
import inspect
import signal
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from segproof.kernels import dispatch
from segproof_harness.claims.claim import KERNELS
from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.kernel_arguments import ARGUMENTS, arrays_of, of_plain, run
from segproof_tests.proofs.preconditions import requirements

CALLS = 1000
"""So many calls of each kernel are drawn, the same in each run."""
RUNS = 50
"""Within one run of Hypothesis many examples are much like the one before."""
SECONDS_MAX = 2
"""A changed kernel that takes longer for one call, of microseconds, is seen to differ."""
Arguments = tuple[Any, ...]


class _TooLongError(Exception):
    """A call did not end in time."""


def changes_something(name: str, definition: ast.FunctionDef) -> bool:
    """Return whether a changed kernel gives or writes something else on one of the drawn calls."""
    changed = _function(name, definition)
    return any(_answer(changed, one) != expected for one, expected in _calls(name))


@functools.lru_cache(maxsize=4)
def _calls(name: str) -> list[tuple[Arguments, Any]]:
    """Return drawn arguments, and what the kernel gives and writes."""
    module, _, function = name.partition(":")
    kernel = getattr(import_module(KERNELS + module), function)
    kernel = getattr(kernel, "interpreted", kernel)
    key = name.replace(":", ".")
    strategy = ARGUMENTS[key] if key in ARGUMENTS else of_plain(kernel, CLAIMS[name].cases)
    names = list(inspect.signature(kernel).parameters)

    def is_covered(arguments: Arguments) -> bool:
        given = dict(zip(names, arrays_of(arguments), strict=True))
        return all(holds(given) for _, holds in requirements(name))

    return [(one, _answer(kernel, one)) for one in _drawn(strategy) if is_covered(one)]


def _answer(function: Callable[..., Any], arguments: Arguments) -> Any:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_MAX)
    try:
        return run(function, arguments)
    except Exception as error:
        return type(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _function(name: str, definition: ast.FunctionDef) -> Callable[..., Any]:
    """Return a changed kernel as a function, which calls the interpreted kernels."""
    module, _, function = name.partition(":")
    plain = ast.FunctionDef(**{**dict(ast.iter_fields(definition)), "decorator_list": []})
    names = dict(vars(import_module(KERNELS + module)))
    tree = ast.fix_missing_locations(ast.Module([ast.copy_location(plain, definition)], []))
    exec(compile(tree, name, "exec"), names)
    changed: Callable[..., Any] = dispatch.linked(names[function], lambda one: one, {})
    return changed


def _drawn(strategy: SearchStrategy[Arguments]) -> list[Arguments]:
    drawn: list[Arguments] = []

    @settings(
        max_examples=CALLS // RUNS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(arguments: Arguments) -> None:
        drawn.append(arguments)

    for number in range(RUNS):
        seed(number)(keep)()
    return drawn
