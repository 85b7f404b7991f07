# SPDX-License-Identifier: Apache-2.0
"""Where the implementation builds hints inside of functions, and which hints a run builds.

A hint whose words are one constant is read from the source. The words of any other hint are known
only when a run builds it, so each such place needs a situation: see `built_hints.py`.
"""

import ast
import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import segproof
import segproof.hints
from segproof.hints import Hint
from segproof.verification import RULES
from segproof_tests.hint_commands import followed_commands

ROOT = Path(segproof.__file__).parent
MAKERS = ("reads", "writes", "changes", "removes", "Hint", "after")


class Place(NamedTuple):
    """A call that builds a hint, in a function."""

    name: str
    """File and function, such as `wording/loose_files._steps`; with a number if several calls
    stand in one function.
    """
    file: str
    first_line: int
    last_line: int


class Built(NamedTuple):
    """A hint that a run has built."""

    place: str
    """The name of its place."""
    hint: Hint


@cache
def built_places() -> tuple[Place, ...]:
    """Return the calls in functions that build hints which the source alone does not tell."""
    return tuple(one for path in sorted(ROOT.rglob("*.py")) for one in places_in(path, ROOT))


def places_in(path: Path, root: Path) -> list[Place]:
    """Return the places in one file below `root`."""
    if path.name == "hints.py":
        return []
    module = path.relative_to(root).with_suffix("").as_posix()
    found = [
        (f"{module}.{'.'.join(names)}", call)
        for names, call in _calls(ast.parse(path.read_text(encoding="utf-8")), ())
        if not is_constant(call)
    ]
    counts, seen = Counter(name for name, _ in found), Counter[str]()
    places = []
    for name, call in found:
        seen[name] += 1
        number = f" {seen[name]}" if counts[name] > 1 else ""
        places.append(Place(name + number, str(path), call.lineno, call.end_lineno or call.lineno))
    return places


def _calls(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.Call]]:
    """Yield the calls of makers in functions, with the names of classes and functions around."""
    for child in ast.iter_child_nodes(node):
        inner = names
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (*names, child.name)
        elif isinstance(child, ast.Lambda):
            inner = (*names, "lambda")
        elif isinstance(child, ast.Call) and names and maker_of(child):
            yield names, child
        yield from _calls(child, inner)


def constant_calls(module: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls in functions whose hints the source tells."""
    return (call for _, call in _calls(module, ()) if is_constant(call))


def maker_of(call: ast.Call) -> str:
    """Return which maker of hints is called; empty if none is."""
    function = call.func
    is_method = isinstance(function, ast.Attribute)
    name = getattr(function, "attr" if is_method else "id", "")
    return name if name in MAKERS and is_method is (name == "after") else ""


def is_constant(call: ast.Call) -> bool:
    """Return whether a call tells its whole hint: constant words without a command to follow."""
    maker = maker_of(call)
    words = [one.value for one in call.args if isinstance(one, ast.Constant)]
    if maker not in ("reads", "writes") or len(words) != 1:
        return False
    return not followed_commands(str(words[0]))


@cache
def constants() -> dict[str, Hint]:
    """Return the hints that modules keep under a name, or in a table, and that are of no rule.

    The names are like those of places; a hint in a table has its number in it.
    """
    usual = {rule.hint for rule in RULES.values()}
    found: dict[str, Hint] = {}
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "hints import" in source:
            module = path.relative_to(ROOT).with_suffix("").as_posix()
            known = vars(importlib.import_module(f"segproof.{module.replace('/', '.')}"))
            for name in _assigned(ast.parse(source)):
                for number, hint in enumerate(_hints_in(known[name])):
                    if hint not in usual and hint not in found.values():
                        label = f"{module}.{name}"
                        found[label if isinstance(known[name], Hint) else f"{label} {number}"] = (
                            hint
                        )
    return found


def _assigned(module: ast.Module) -> list[str]:
    """Return the names that a module gives values, and does not import."""
    assignments = [one for one in module.body if isinstance(one, ast.Assign | ast.AnnAssign)]
    targets = [one.targets if isinstance(one, ast.Assign) else [one.target] for one in assignments]
    return [one.id for some in targets for one in some if isinstance(one, ast.Name)]


def _hints_in(value: object) -> list[Hint]:
    if isinstance(value, Hint):
        return [value]
    values = list(value.values()) if isinstance(value, dict) else value
    parts = values if isinstance(values, list | tuple) else ()
    return [one for one in parts if isinstance(one, Hint)]


@contextmanager
def recorded() -> Iterator[list[Built]]:
    """Note the hints that are built meanwhile in functions of the implementation."""
    found: list[Built] = []
    make = Hint.__new__

    def noted(kind: type[Hint], *parts: Any, **named: Any) -> Hint:
        hint = make(kind, *parts, **named)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == segproof.hints.__file__:
            frame = frame.f_back
        place = None if frame is None else place_at(frame.f_code.co_filename, frame.f_lineno)
        if place is not None:
            found.append(Built(place.name, hint))
        return hint

    with mock.patch.object(Hint, "__new__", staticmethod(noted)):
        yield found


def place_at(file: str, line: int) -> Place | None:
    """Return the innermost place that a line of a file is in."""
    here = [one for one in built_places() if one.file == file]
    around = [one for one in here if one.first_line <= line <= one.last_line]
    return min(around, key=lambda one: one.last_line - one.first_line, default=None)
