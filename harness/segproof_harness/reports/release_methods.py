# SPDX-License-Identifier: Apache-2.0
"""The methods of a release as they result: what its behaviours say, above what the newest one says.

A method that several behaviours change is said as often: first as it is called, then what that
calls by `super()`, and so on; nothing behind what does not call the next.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.language.states import Released
from segproof_model.releases import BEHAVIOURS

Structure = type[Released]
FLOORS = ("kafka.format", "kafka.broker", "rocketmq.format", "rocketmq.broker")


@dataclass(frozen=True, slots=True)
class Words:
    """What one class says of a method or an attribute."""

    behaviour: type[Behaviour] | None
    """None: the structure's file says it, as the newest release does it."""
    around: str
    """What a behaviour does before the method, or has around it; mostly nothing."""
    source: str
    """Empty where a behaviour only says what is around."""

    @property
    def title(self) -> str:
        """Who says it, with the behaviour's sentence."""
        if self.behaviour is None:
            return "The newest release:"
        return f"`{self.behaviour.__name__}`{self.around}: {self.behaviour.sentence()}"


def structures_of(release: Release) -> list[Structure]:
    """Return the classes that the behaviours of a release change, floor by floor."""
    found = {
        base: [floor in base.__module__ for floor in FLOORS]
        for behaviour in release.behaviours
        for change in behaviour.changes()
        for base in change.__bases__
        if base.__name__ == change.__name__
    }
    return sorted(found, key=lambda one: found[one], reverse=True)


def classes_of(release: Release) -> list[Structure]:
    """Return the classes that a release has otherwise: also those derived from changed ones."""
    found = structures_of(release)
    for one in found:
        derived = [each for each in one.__subclasses__() if _is_structure(each)]
        found += [each for each in derived if each not in found]
    return found


def _is_structure(kind: Structure) -> bool:
    """Return whether a class stands in the file of a structure of the model."""
    is_of_model = kind.__module__.startswith("segproof_model.")
    return is_of_model and kind.release is None and "." not in kind.__qualname__


def methods_of(
    release: Release, structure: Structure, *, own: bool = False
) -> dict[str, list[Words]]:
    """Return what is said of each method that a release has otherwise.

    In the order of the structure's file, then what only older releases have. `own`: without those
    that are otherwise in a base class alone.
    """
    kind = release.kind(structure)
    said_by = {
        change: behaviour for behaviour in release.behaviours for change in behaviour.changes()
    }
    changes = [one for one in kind.__mro__ if one in said_by]
    asked = [one for one in changes if structure in one.__bases__] if own else changes
    classes = [(one, _sources(one)) for one in kind.__mro__[1:] if issubclass(one, Released)]
    newest_first = sorted(classes, key=lambda held: held[0] in said_by)
    names = dict.fromkeys(name for _, sources in newest_first for name in sources)
    return {
        name: list(_said(name, classes, said_by))
        for name in names
        if any(name in vars(change) for change in asked)
    }


def _said(
    name: str,
    classes: list[tuple[Structure, dict[str, str]]],
    said_by: dict[Structure, type[Behaviour]],
) -> Iterator[Words]:
    for one, sources in classes:
        source, around = sources.get(name, ""), _around(vars(one).get(name))
        if source or around:
            yield Words(said_by.get(one), around, source)
        if source and f"super().{name}" not in source:
            return


def _around(method: Any) -> str:
    """Return what `guarded` or `each` have put before or around a method, in words."""
    if not inspect.isfunction(method) or "own" not in method.__code__.co_freevars:
        return ""
    cells = [cell.cell_contents for cell in method.__closure__ or ()]
    held = dict(zip(method.__code__.co_freevars, cells, strict=True))
    if "check" in held:
        return f", behind `{held['check'].__qualname__}`"
    return f", inside of `{held['around'].__qualname__}`"


def _sources(kind: Structure) -> dict[str, str]:
    """Return the text of each method and attribute in a class, by name."""
    lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    (tree,) = ast.parse("\n".join(lines)).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for node in tree.body:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        first = min([node.lineno, *(one.lineno for one in decorators)])
        text = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
        found |= dict.fromkeys(_names(node), text.replace("@override\n", ""))
    return found


def _names(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a class gives a meaning to."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    return [name.id for one in targets for name in ast.walk(one) if isinstance(name, ast.Name)]


def place_of(thing: type) -> str:
    """Return the file of a class below `segproof_model`.

    >>> place_of(behaviour_named("SecondCloseFails"))
    'kafka/format/record_file_releases.py'
    """
    return f"{thing.__module__.partition('.')[2].replace('.', '/')}.py"


def releases_text(behaviour: type[Behaviour]) -> str:
    """Return who has a behaviour, in words.

    >>> releases_text(behaviour_named("TrimOfUnmappedFails"))
    'up to 4.0.0, but not 3.9.2'
    """
    span = behaviour.releases
    if span is None:
        return "segproof alone"
    text = f"up to {span.newest}" if span.oldest is None else f"{span.oldest} to {span.newest}"
    if span.oldest == span.newest:
        text = f"{span.newest} alone"
    text += f", but not {' and '.join(span.but)}" if span.but else ""
    return text + (", and segproof" if behaviour.of_segproof else "")


def behaviour_named(name: str) -> type[Behaviour]:
    """Return a behaviour. Raises KeyError."""
    return {one.__name__: one for one in BEHAVIOURS}[name]
