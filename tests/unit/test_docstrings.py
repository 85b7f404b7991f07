# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings give what they say."""

import doctest
import importlib
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("segproof_model", "segproof", "segproof_harness")


def modules() -> list[str]:
    """Return the names of the modules with examples, of the packages that need no Spark."""
    found: list[str] = []
    for package in PACKAGES:
        [folder] = importlib.import_module(package).__path__
        for path in sorted(Path(folder).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(folder).with_suffix("").parts
                found.append(".".join((package, *parts)).removesuffix(".__init__"))
    return found


NEED_JPYPE: tuple[str, ...] = (
    "segproof_harness.releases.kafka",
    "segproof_harness.releases.rocketmq",
)
NEED_JPYPE += ("segproof_harness.releases.child", "segproof_harness.releases.jvm")


def parameters() -> list[Any]:
    """Return the names, those marked that only a child of the oracle imports."""
    needs = pytest.mark.needs("jpype")
    return [
        pytest.param(name, marks=needs if name.startswith(NEED_JPYPE) else ()) for name in modules()
    ]


@pytest.mark.parametrize("name", parameters())
def test_examples_of_a_module(name: str) -> None:
    """Every `>>>` of the module."""
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert 0 == result.failed
    assert result.attempted > 0
