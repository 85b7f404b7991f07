# SPDX-License-Identifier: Apache-2.0
"""Make the package `benchmarks` importable, which is in the checkout only."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import segproof_spark.session  # noqa: F401  (the installed one: benchmarks put the tree first)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _checkout_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the checkout first for one test, and forget then what came of it."""
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]
