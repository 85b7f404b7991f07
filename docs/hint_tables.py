# SPDX-License-Identifier: Apache-2.0
"""The table of hints on the page of the findings: what following each of them does to files."""

import ast
import importlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import segproof
from segproof.hints import Effect, Hint
from segproof.verification import RULES
from segproof_tests import partition_hints, store_hints
from segproof_tests.built_hints import PARTITION, STORE, built_by
from segproof_tests.hint_places import constant_calls

EFFECTS = {
    Effect.READS: "reads only",
    Effect.WRITES_ELSEWHERE: "writes elsewhere",
    Effect.CHANGES_FILES: "changes files",
    Effect.REMOVES: "removes files",
}
OPENING = """\
## What following a hint does

The class of each hint is declared in the code, and a test compares it with the verbs of the hint. A
hint that changes or removes files begins with the step that keeps a copy, and says when it is right
and what is lost if it is not. A hint stands here under the laws whose findings have it: those for
which it is usual, and those for which a check knows better. Where a check builds its hint of what
it has found, an example stands here: DIR is the partition, STORE the store, COPY a name of its own
for each copy, and other paths are those of small damaged directories, in which a test follows the
hint to its end.
"""
SECTIONS = {
    Effect.REMOVES: "Hints that remove files",
    Effect.CHANGES_FILES: "Hints that change files",
    Effect.WRITES_ELSEWHERE: "Hints that write elsewhere",
    Effect.READS: "Hints that only read",
}
NO_HINT = "No hint does.\n"
SHOWN = (
    (PARTITION, "DIR"),
    (STORE, "STORE"),
    (r"(?<=/)[0-9a-f]{8}(?![0-9a-f])", "COPY"),
    (r"this process is \d+", "this process is PID"),
)
"""What a hint that a run builds says, and how the page names it."""
ROOT = Path(segproof.__file__).parent


class Given(NamedTuple):
    """A hint that a check gives in the place of the usual one."""

    law: str
    """Empty where a check gives it to findings of several laws."""
    hint: Hint


def hint_tables(laws: Iterable[str]) -> str:
    """Return the section: a table for each class, the most dangerous first."""
    order = {law: number for number, law in enumerate(laws)}
    known: dict[Hint, set[str]] = {}
    for law, rule in RULES.items():
        known.setdefault(rule.hint, set()).add(law)
    for law, hint in (*given_hints(), *built_hints()):
        known.setdefault(hint, set()).update({law} - {""})
    parts = [OPENING]
    for effect, title in SECTIONS.items():
        rows = [
            _row(hint, sorted(found, key=lambda one: order.get(one, -1)))
            for hint, found in known.items()
            if hint.effect is effect
        ]
        parts.append(f"### {title}\n")
        parts.append("\n".join([*_head(effect), *sorted(rows), ""]) if rows else NO_HINT)
    return "\n".join(parts)


def given_hints() -> Iterator[Given]:
    """Yield the hints that stand beside a finding in the code, as far as no run is needed."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "segproof.hints" not in text and "hint=" not in text:
            continue
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        names = vars(importlib.import_module(".".join(parts)))
        given = list(_of_scope(ast.parse(text), names))
        yield from given
        told = {*(one.hint for one in given), *(rule.hint for rule in RULES.values())}
        for value in list(names.values()):
            yield from (Given("", one) for one in hints_in(value) if one not in told)
        made = (eval(ast.unparse(call), dict(names)) for call in constant_calls(ast.parse(text)))
        yield from (Given("", one) for one in made if one not in told)


def built_hints() -> Iterator[Given]:
    """Yield the hints that functions build of what is found, each from a damaged directory."""
    for situation in (*partition_hints.SITUATIONS, *store_hints.SITUATIONS):
        with tempfile.TemporaryDirectory(prefix="segproof-") as folder:
            hints, _ = built_by(situation, Path(folder))
        for hint in hints:
            yield Given(situation.law, _shown(hint, folder))


def _shown(hint: Hint, folder: str) -> Hint:
    """Return a hint with names for the paths of a directory that is gone."""

    def named(words: str) -> str:
        words = words.replace(f"{folder}/", "")
        for path, name in SHOWN:
            words = re.sub(path, name, words)
        return words

    parts = (hint.only_if, hint.if_wrong, hint.copy_step)
    return Hint(named(hint), hint.effect, *map(named, parts))


def hints_in(value: object) -> Iterator[Hint]:
    """Yield a hint, or those in a mapping or a sequence."""
    if isinstance(value, Hint):
        yield value
    elif isinstance(value, Mapping):
        yield from hints_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from hints_in(one)


def _of_scope(scope: ast.AST, names: dict[str, object]) -> Iterator[Given]:
    """Yield the hints of the calls in a module or a function."""
    inner = (ast.FunctionDef, ast.ClassDef)
    nodes = [one for one in ast.walk(scope) if isinstance(one, ast.Call)]
    for one in ast.walk(scope):
        if isinstance(one, inner) and one is not scope:
            yield from _of_scope(one, names)
    values: dict[str, list[ast.expr]] = {}
    for one in ast.walk(scope):
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
            for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(one.value)
    laws_here = _laws_in(names, scope) if isinstance(scope, ast.FunctionDef) else []
    for node in nodes:
        laws = _laws_in(names, *node.args) or laws_here
        for keyword in node.keywords:
            if keyword.arg == "hint" and laws:
                for hint in _reached(keyword.value, names, values):
                    yield Given(laws[0], hint)


def _laws_in(names: Mapping[str, object], *nodes: ast.AST) -> list[str]:
    parts = [one for node in nodes for one in ast.walk(node)]
    said = [one.value for one in parts if isinstance(one, ast.Constant)]
    named = [names.get(one.id) for one in parts if isinstance(one, ast.Name)]
    return [one for one in (*said, *named) if isinstance(one, str) and one in RULES]


def _reached(
    node: ast.expr, names: dict[str, object], values: Mapping[str, list[ast.expr]]
) -> Iterator[Hint]:
    """Yield the hints that an expression may give: those of its constants, or of the constants of
    the module that it and the variables in it name.
    """
    try:
        hint = eval(compile(ast.Expression(node), "hint", "eval"), dict(names))
    except Exception:
        parts = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
        for name in parts:
            if name in names:
                yield from hints_in(names[name])
            elif name in values:
                left = {key: value for key, value in values.items() if key != name}
                for value in values[name]:
                    yield from _reached(value, names, left)
    else:
        yield from hints_in(hint)


def _head(effect: Effect) -> tuple[str, str]:
    if effect in (Effect.REMOVES, Effect.CHANGES_FILES):
        return (
            "| laws | first, a copy | only if | then | if that is wrong |",
            "| --- | --- | --- | --- | --- |",
        )
    return "| laws | what to do |", "| --- | --- |"


def _row(hint: Hint, laws: list[str]) -> str:
    links = ", ".join(f"[{law}](#{law.lower()})" for law in laws) or "several"
    cells = [links, str(hint)]
    if hint.effect in (Effect.REMOVES, Effect.CHANGES_FILES):
        cells = [links, hint.copy_step, hint.only_if, hint.action, hint.if_wrong]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
