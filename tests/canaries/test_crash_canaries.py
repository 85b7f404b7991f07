# SPDX-License-Identifier: Apache-2.0
"""Planted defects that only a crash shows: each is found within a bounded number of images."""

import pytest

from segproof_harness.canaries.crashes import CRASH_CANARIES, CrashCanary
from segproof_harness.crashes.explore import Settings, drawn_history, shrunk
from segproof_harness.crashes.fault_points import explores
from segproof_harness.machine.fault_model import mode_named

HISTORIES_MAX = 20


@pytest.mark.parametrize("canary", CRASH_CANARIES.values(), ids=lambda one: one.canary_id)
def test_is_caught(canary: CrashCanary) -> None:
    """A new violation is found, and the shortest history that shows it is short."""
    settings = Settings(tuple(map(mode_named, canary.modes)), bound=8, faults=canary.faults)
    explore = explores(settings)
    for seed in range(HISTORIES_MAX):
        history = drawn_history(canary.world.weights, seed, 8)
        found = explore(canary.world, seed, history, settings).new
        if found:
            break
    assert found, f"{canary.canary_id} got away: {canary.defect}"
    shortest = shrunk(canary.world, found[0], settings, explore)
    assert shortest.fault.kind == found[0].fault.kind
    assert len(shortest.history) <= 4
    assert shortest.known is None
