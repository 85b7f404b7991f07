# SPDX-License-Identifier: Apache-2.0
"""The page of the API shows every name that the packages offer."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: (\S+)\n(?:   :members:(.*)\n)?", re.MULTILINE)


def shown_on(text: str) -> tuple[set[str], set[str]]:
    """Return the names of things that a page shows, and of modules with all that is in them."""
    things, modules = set(), set()
    for kind, name, members in DIRECTIVE.findall(text):
        if kind != "module":
            things.add(name)
        elif members.strip():
            things |= {f"{name}.{member.strip()}" for member in members.split(",")}
        else:
            modules.add(name)
    return things, modules


@pytest.mark.parametrize("package", ["segproof", "segproof.kafka", "segproof.rocketmq"])
def test_every_name_is_shown(package: str) -> None:
    """By the name of the package, or that of the module in which it is defined."""
    things, modules = shown_on(PAGE.read_text(encoding="utf-8"))
    assert {"segproof.findings", "segproof.errors"} <= modules
    module = importlib.import_module(package)
    missing = []
    for name in module.__all__:
        home = getattr(module, name).__module__
        if not {f"{package}.{name}", f"{home}.{name}"} & things and home not in modules:
            missing.append(name)
    assert [] == missing


def test_directives_are_read() -> None:
    """A class by name, a module with some members, and one with all."""
    text = (
        ".. autoclass:: a.B\n   :members:\n.. automodule:: c\n   :members: D, E\n"
        ".. automodule:: f\n   :members:\n"
    )
    assert ({"a.B", "c.D", "c.E"}, {"f"}) == shown_on(text)
