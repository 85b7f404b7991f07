# SPDX-License-Identifier: Apache-2.0
"""The pages of the API show every name that the packages offer."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"
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
    """By the name of the package or its module; if not, add it to docs/generators/api.py."""
    things, modules = shown_on("".join(page.read_text("utf-8") for page in PAGES.glob("*.md")))
    assert {"segproof.findings", "segproof.errors"} <= modules
    module = importlib.import_module(package)
    missing = []
    for name in module.__all__:
        home = getattr(module, name).__module__
        if not {f"{package}.{name}", f"{home}.{name}"} & things and home not in modules:
            missing.append(name)
    assert [] == missing


PATHS = {"path", "file", "file_name", "dir", "directory", "log_dir", "store_path"}


def parameters_of(function: Any) -> dict[str, str]:
    """Return the parameters of a function with their types; none for what has no signature."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {one.name: str(one.annotation) for one in found}


@pytest.mark.parametrize("package", ["segproof", "segproof.kafka", "segproof.rocketmq"])
def test_a_path_may_be_a_path_object(package: str) -> None:
    """What opens, reads or moves a file takes `os.PathLike` wherever it takes a path."""
    module = importlib.import_module(package)
    found: dict[str, str] = {}
    for name in module.__all__:
        public = getattr(module, name)
        members = [(name, public)]  # of a class with `open`, that is what users call
        if isinstance(public, type):
            members = [one for one in inspect.getmembers(public, callable) if one[0][0] != "_"]
            if not hasattr(public, "open") and "files" in parameters_of(public):
                members.append((name, public))
        for called, function in members:
            for parameter, kind in parameters_of(function).items():
                if parameter in PATHS:
                    found[f"{name}.{called}({parameter})"] = kind
    assert {} == {place: kind for place, kind in found.items() if "PathLike" not in kind}
    assert len(found) > (1 if package == "segproof" else 4)


def test_directives_are_read() -> None:
    """A class by name, a module with some members, and one with all."""
    text = (
        ".. autoclass:: a.B\n   :members:\n.. automodule:: c\n   :members: D, E\n"
        ".. automodule:: f\n   :members:\n"
    )
    assert ({"a.B", "c.D", "c.E"}, {"f"}) == shown_on(text)
