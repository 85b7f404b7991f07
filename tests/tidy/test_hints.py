# SPDX-License-Identifier: Apache-2.0
"""The hints of findings: each says what to do, and not only what may be the cause."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import segproof.verifying
from segproof.verification import RULES

VERBS = (
    "ask", "check", "compare", "copy", "correct", "find", "give", "keep", "look", "make", "mend",
    "move", "nothing", "recover", "remove", "rename", "say", "stop", "verify",
)  # fmt: skip
ACTION = re.compile(rf"(?:^|[;:,.] |\b(?:else|or|and) )(?:{'|'.join(VERBS)})\b", re.IGNORECASE)


def texts_of(node: ast.AST) -> Iterator[str]:
    """Yield the texts in an expression; of an f-string all that is fixed, as one."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts_of(node.body)
        yield from texts_of(node.orelse)


def own_hints() -> list[str]:
    """Return the hints that the checks give in the place of those of the rules."""
    found: list[str] = []
    for path in sorted(Path(segproof.verifying.__path__[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                found += texts_of(node.value)
    return found


def test_the_hint_of_each_rule_says_what_to_do() -> None:
    """A cause alone leaves the reader where he was; `nothing` is an answer too."""
    assert [] == [law for law in RULES if not ACTION.search(RULES[law].hint)]


def test_the_hints_of_the_checks_say_what_to_do() -> None:
    """Also where a check knows better than the rule of its law."""
    hints = own_hints()
    assert len(hints) > 8
    assert [] == [hint for hint in hints if not ACTION.search(hint)]
