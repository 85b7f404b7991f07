# SPDX-License-Identifier: Apache-2.0
"""The table of hints on the page of the findings: what following each of them does to files."""

import ast
import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import segproof
from segproof.hints import Effect, Hint
from segproof.verification import RULES

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
which it is usual, and those for which a check knows better.
"""
SECTIONS = {
    Effect.REMOVES: "Hints that remove files",
    Effect.CHANGES_FILES: "Hints that change files",
    Effect.WRITES_ELSEWHERE: "Hints that write elsewhere",
    Effect.READS: "Hints that only read",
}
NO_HINT = "No hint does.\n"
ROOT = Path(segproof.__file__).parent


class Given(NamedTuple):
    """A hint that a check gives in the place of the usual one."""

    law: str
    hint: Hint


def hint_tables(laws: Iterable[str]) -> str:
    """Return the section: a table for each class, the most dangerous first."""
    order = {law: number for number, law in enumerate(laws)}
    known: dict[Hint, set[str]] = {}
    for law, rule in RULES.items():
        known.setdefault(rule.hint, set()).add(law)
    for law, hint in given_hints():
        known.setdefault(hint, set()).add(law)
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
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                yield from _of_call(node, names)


def _of_call(node: ast.Call, names: dict[str, object]) -> Iterator[Given]:
    constants = [one.value for one in node.args if isinstance(one, ast.Constant)]
    laws = [one for one in constants if isinstance(one, str) and one in RULES]
    for keyword in node.keywords:
        if keyword.arg == "hint" and laws:
            for part in _branches(keyword.value):
                try:
                    hint = eval(compile(ast.Expression(part), "hint", "eval"), dict(names))
                except (NameError, AttributeError, KeyError):
                    continue  # a hint that a run makes of these
                if isinstance(hint, Hint):
                    yield Given(laws[0], hint)


def _branches(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _branches(node.body)
        yield from _branches(node.orelse)
    else:
        yield node


def _head(effect: Effect) -> tuple[str, str]:
    if effect in (Effect.REMOVES, Effect.CHANGES_FILES):
        return (
            "| laws | first, a copy | only if | then | if that is wrong |",
            "| --- | --- | --- | --- | --- |",
        )
    return "| laws | what to do |", "| --- | --- |"


def _row(hint: Hint, laws: list[str]) -> str:
    links = ", ".join(f"[{law}](#{law.lower()})" for law in laws)
    cells = [links, str(hint)]
    if hint.effect in (Effect.REMOVES, Effect.CHANGES_FILES):
        cells = [links, hint.copy_step, hint.only_if, hint.action, hint.if_wrong]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
