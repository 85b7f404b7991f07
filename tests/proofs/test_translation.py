# SPDX-License-Identifier: Apache-2.0
"""The translation of kernels and claims into conditions means what CPython does."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings

from segproof_harness.claims.claim import Loop
from segproof_harness.claims.every_claim import CLAIMS
from segproof_tests.kernel_arguments import (
    ARGUMENTS,
    KERNELS,
    PLAIN,
    arrays_of,
    is_written,
    of_plain,
    run,
    view,
)

pytest.importorskip("z3", reason="not run: z3 is not installed")
from segproof_tests.proofs.kernel_runs import NotRequiredError, Run
from segproof_tests.proofs.preconditions import PreconditionError, checked

SLOW = ("rocketmq_index:put_entries", "slot_search:lower_slots_of_random")
"""Kernels whose translation takes seconds in each run."""


@pytest.mark.parametrize("name", CLAIMS)
def test_translated_kernel_does_what_python_does(name: str) -> None:
    """The same result, the same numbers written, and the claim is true in both."""
    key, ran = name.replace(":", "."), []
    drawn = ARGUMENTS[key] if key in KERNELS else of_plain(PLAIN[key], CLAIMS[name].cases)
    kernel = checked(KERNELS[key].interpreted if key in KERNELS else PLAIN[key])

    @settings(max_examples=2 if name in SLOW else 4)
    @given(drawn)
    def agree(arguments: tuple[Any, ...]) -> None:
        changed = [is_written(one) for one in arguments]
        try:
            expected = run(kernel, arguments)
        except PreconditionError:
            with pytest.raises(NotRequiredError):
                Run().run(name, arrays_of(arguments), changed)
        else:
            assert expected == Run().run(name, arrays_of(arguments), changed)
            ran.append(arguments)

    agree()
    assert ran


@pytest.mark.parametrize(
    "change",
    [
        {"ensures": "result == 7"},
        {"proves": "each(0, entries, lambda s: s <= result)"},
        {"loops": (Loop("high == entries", "high - low"),)},
        {"loops": (Loop("True", "low - high"),)},
        {"loops": (Loop("ghost == 0", "high - low", {"ghost": ("0", "ghost + 1")}),)},
    ],
)
def test_a_run_shows_a_false_claim(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Promises, invariants, what decreases and ghosts are evaluated."""
    name = "slot_search:_lower_native_slot"
    arguments: list[Any] = [view([1, 3, 5]), 3, 2]
    shown = [False] * 3
    assert (0, []) == Run().run(name, arguments, shown)
    monkeypatch.setitem(CLAIMS, name, dataclasses.replace(CLAIMS[name], **change))
    with pytest.raises(AssertionError, match=r"ensures|the loop:|kept by each pass|loop ends"):
        Run().run(name, arguments, shown)
