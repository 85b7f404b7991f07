# SPDX-License-Identifier: Apache-2.0
"""Fuzzing within a budget of seconds: new histories in each run, for all structures.

SEGPROOF_FUZZ_SECONDS is the budget of all structures together. What Hypothesis finds is kept in
`.hypothesis/` and tried first in the next run; the printed seed makes the same random histories
again (SEGPROOF_FUZZ_SEED).
"""

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from segproof_harness.histories.machines import machine_for
from segproof_harness.histories.replay import comparison, replay_seeds, run_seed
from segproof_harness.structures.structure import STRUCTURE_IDS

SECONDS = float(os.environ.get("SEGPROOF_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("SEGPROOF_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES_AT_ONCE = 20


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_machine(structure_id: str) -> None:
    """The machine finds nothing in half of the structure's time, known examples first."""
    print(f"\n{structure_id}: SEGPROOF_FUZZ_SEED={SEED}")
    until = time.monotonic() + SECONDS / len(STRUCTURE_IDS) / 2
    machine = machine_for(structure_id)
    number = 0
    while number == 0 or time.monotonic() < until:
        seed(SEED + number)(machine)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES_AT_ONCE,
                stateful_step_count=100,
                derandomize=False,
                database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
                deadline=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
        number += 1
    print(f"{structure_id}: {number * EXAMPLES_AT_ONCE} examples of the machine")


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_replay(structure_id: str, tmp_path: Path) -> None:
    """Seeded histories find nothing in the other half; a finding brings its trace."""
    print(f"\n{structure_id}: SEGPROOF_FUZZ_SEED={SEED}")
    until = time.monotonic() + SECONDS / len(STRUCTURE_IDS) / 2
    comparing = comparison(structure_id, "segproof", ("model", "impl"))
    number = SEED * 1_000_000
    while time.monotonic() < until:
        if run_seed(comparing, number, 100) is not None:
            found = replay_seeds(structure_id, "segproof", [number], 100, traces=tmp_path)
            texts = [path.read_text() for path in tmp_path.iterdir()]
            pytest.fail(f"{found.findings[0]}\n{''.join(texts)}")
        number += 1
    print(f"{structure_id}: {comparing.counters.histories} histories of 100 operations")
