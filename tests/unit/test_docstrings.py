# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings give what they say."""

import doctest
import importlib
import pkgutil
from typing import Any

import pytest

PACKAGES = ("segproof_model", "segproof", "segproof_harness")


def modules() -> list[str]:
    """Return the names of all modules of the packages that need no Spark."""
    found: list[str] = []
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        names = [module.name for module in pkgutil.walk_packages(path, f"{package}.")]
        found += [package, *(name for name in names if not name.endswith("__main__"))]
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
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert 0 == failed


def test_some_are_found() -> None:
    """The finder sees examples at all."""
    outcomes = importlib.import_module("segproof_harness.structures.outcomes")
    assert doctest.testmod(outcomes).attempted > 0
