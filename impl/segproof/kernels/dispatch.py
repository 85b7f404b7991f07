# SPDX-License-Identifier: Apache-2.0
"""One source for every inner loop: interpreted, or compiled by numba when that pays.

A kernel is a plain function over `bytes` or `memoryview` objects and ints. `@kernel` keeps that
function as `.interpreted`, which is what the contracts prove, and runs it until enough work was
seen; then numba, if it is installed, compiles the very same code object.

`SEGPROOF_KERNELS` decides: `auto` (the default), `compiled` (at the first call, an error without
numba), `interpreted` (never compiled).
"""

import os
import sys
import threading
import types
from collections.abc import Callable
from functools import cache, partial, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, ParamSpec, TypeVar

from segproof.files import own_directory

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

NUMBA_SETTINGS = ".numba_config.yaml"
"""What numba reads when it is imported, and again whenever it compiles."""
_NUMBA_LOCK = threading.Lock()
"""Held while numba's folder is ours: it is one for the whole process."""
COMPILE_AFTER_WORK = 100_000
"""Units of work after which `auto` compiles. A unit is some 5 microseconds when interpreted, as for
one record or one search: so as much time is lost at most as importing numba takes. A call is one
unit; bulk callers announce more."""

WATCH: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
"""Set by tests: wraps what Python calls of interpreted kernels, to look at the arguments."""


class KernelsError(ValueError):
    """`SEGPROOF_KERNELS` is no mode, or asks for what can't be had here."""


def kernel_mode() -> str:
    """Return `auto`, `compiled` or `interpreted`, from `SEGPROOF_KERNELS`. Raises: KernelsError."""
    mode = os.environ.get("SEGPROOF_KERNELS", "auto")
    if mode not in ("auto", "compiled", "interpreted"):
        raise KernelsError(
            f"SEGPROOF_KERNELS is {mode!a}; it must be auto, compiled or interpreted"
        )
    return mode


def numba_available() -> bool:
    """Return whether numba is there and may be used; does not import it."""
    if find_spec("numba") is None:
        return False
    if beside := _settings():
        _tell(f"slow, since {beside}")
    return not beside


def _missing() -> str:
    return "" if find_spec("numba") is not None else "numba is not installed (segproof[fast])"


def _settings() -> str:
    """Return in words that settings of numba keep it from being used, or nothing.

    In the present directory they may be anybody's: they name classes that numba imports, or keep
    it from being imported at all.
    """
    if not os.path.lexists(NUMBA_SETTINGS):
        return ""
    return f"nothing is compiled beside {os.path.abspath(NUMBA_SETTINGS)!a}"


class Kernel(Generic[Parameters, Result]):
    """A callable with the interpreted function and, once made, the compiled one."""

    def __init__(self, source: Callable[Parameters, Result]) -> None:
        self.source = source
        self.name = source.__qualname__
        self.call: Callable[Parameters, Result] = self._counting
        """The callable of the moment; hot loops may fetch it once per loop."""
        self.is_compiled = False
        """Whether calls now run compiled code."""
        self._work = 0
        self._was_decided = False
        self._interpreted: Callable[Parameters, Result] | None = None
        update_wrapper(self, source)

    @property
    def interpreted(self) -> Callable[Parameters, Result]:
        """The plain function, which calls the plain functions of its callees."""
        if self._interpreted is None:
            plain = linked(self.source, lambda function: function, {})
            self._interpreted = WATCH(plain) if WATCH else plain
        return self._interpreted

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the kernel."""
        return self.call(*args, **kwargs)

    def announce(self, work: int) -> None:
        """Say that `work` units are about to be asked of the kernel; may compile it."""
        self._work += work
        if self.call == self._counting:
            self._decide_if_due()

    def compile(self) -> None:
        """Compile now. Raises ModuleNotFoundError without numba."""
        if not self.is_compiled:
            self.call = compile_function(self.source)
            self.is_compiled = True

    def _counting(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        self._work += 1
        self._decide_if_due()
        return (self.interpreted if self.call == self._counting else self.call)(*args, **kwargs)

    def _decide_if_due(self) -> None:
        if self._was_decided and self._work <= COMPILE_AFTER_WORK:
            return
        self._was_decided = True
        mode = kernel_mode()
        if mode == "compiled" and (why_not := _settings() or _missing()):
            raise KernelsError(f"SEGPROOF_KERNELS is compiled, and {why_not}")
        if mode == "interpreted" or (mode == "auto" and not numba_available()):
            self.call = self.interpreted
        elif mode == "compiled" or self._work > COMPILE_AFTER_WORK:
            self.compile()


def kernel(function: Callable[Parameters, Result]) -> Kernel[Parameters, Result]:
    """Make a kernel of a plain function. Its callees must be kernels or builtins."""
    return Kernel(function)


def user_cache() -> str:
    """Return the folder of this user's caches; who has no home has one that can't be."""
    home = os.path.expanduser("~")
    usual = os.path.join(home if os.path.isabs(home) else "/dev/null", ".cache")
    return os.environ.get("XDG_CACHE_HOME") or usual


def cache_folder() -> str:
    """Return the folder that keeps compiled kernels."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return named or os.path.join(user_cache(), "segproof", "kernels")


@cache
def _may_keep(folder: str) -> bool:
    """Make a folder if it is missing, and return whether what it keeps may be run.

    numba unpickles what lies there: a user who may write to it runs code as the user who compiles.
    """
    is_new = not os.path.isdir(folder)
    try:
        is_ours = own_directory(folder)
    except OSError:
        return False
    if is_new:
        _tell("compiling kernels, once for this machine")
    if not is_ours:
        _tell(
            f"compiled kernels are neither taken from {folder!a} nor kept there: others own or"
            " may write it, or what is in it; remove it, or name another in NUMBA_CACHE_DIR"
        )
    return is_ours


@cache
def _tell(text: str) -> None:
    if sys.stderr is not None:
        print(f"segproof: {text}", file=sys.stderr)


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function`, and the kernels it calls, keeping the result in the user's cache.

    Out of a zip, or where nothing may be kept, each process compiles it again.
    Raises: KernelsError beside settings of numba; ModuleNotFoundError without numba.
    """
    if beside := _settings():
        raise KernelsError(beside)
    config: Any = import_module("numba.core.config")
    with _NUMBA_LOCK:
        before, config.CACHE_DIR = config.CACHE_DIR, cache_folder()
        try:
            # A zip that Spark ships lies elsewhere in each run: kept by its path is kept for ever.
            if os.path.isfile(function.__code__.co_filename) and _may_keep(config.CACHE_DIR):
                return linked(function, partial(_compiled, is_kept=True), {})
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
        finally:
            config.CACHE_DIR = before
        return linked(function, _compiled, {})


def _compiled(plain: Callable[..., Any], *, is_kept: bool = False) -> Callable[..., Any]:
    """Compile; keep the result if asked. Raises: RuntimeError where no folder can be written."""
    import numba  # half a second; never on `import segproof`

    compiled: Callable[..., Any] = numba.njit(plain, cache=is_kept)
    return compiled


def linked(
    source: Callable[..., Any],
    make: Callable[[Callable[..., Any]], Callable[..., Any]],
    made: dict[str, Callable[..., Any]],
) -> Callable[..., Any]:
    """Return `make` of `source`, in which every kernel it calls is `make` of that kernel too."""
    assert isinstance(source, types.FunctionType)
    names = dict(source.__globals__)
    for name in source.__code__.co_names:
        callee = names.get(name)
        if isinstance(callee, Kernel):
            if callee.name not in made:
                made[callee.name] = linked(callee.source, make, made)
            names[name] = made[callee.name]
    twin = types.FunctionType(source.__code__, names, source.__name__, source.__defaults__)
    twin.__qualname__ = source.__qualname__
    twin.__module__ = source.__module__
    twin.__annotations__ = source.__annotations__
    twin.__doc__ = source.__doc__
    return make(twin)
