# SPDX-License-Identifier: Apache-2.0
"""Make the package `benchmarks` importable, which is in the checkout only."""

import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture
def answer() -> Callable[..., int]:
    """Return what gives the checksum of two passes of a mode, which have to agree."""
    from benchmarks import passes  # noqa: F401 -- registers all modes
    from benchmarks.modes import MODES, next_pass

    def of(mode: str, *arguments: object) -> int:
        work = MODES[mode](*map(str, arguments))
        first, second = next_pass(work)()(), next_pass(work)()()
        assert first == second
        return first

    return of
