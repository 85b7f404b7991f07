# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings give what they say."""

import doctest
import importlib
import pkgutil

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


@pytest.mark.parametrize("name", modules())
def test_examples_of_a_module(name: str) -> None:
    """Every `>>>` of the module."""
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert 0 == failed


def test_some_are_found() -> None:
    """The finder sees examples at all."""
    outcomes = importlib.import_module("segproof_harness.outcomes")
    assert doctest.testmod(outcomes).attempted > 0
