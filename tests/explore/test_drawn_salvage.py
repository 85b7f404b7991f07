# SPDX-License-Identifier: Apache-2.0
"""New damaged partitions and stores in each run, saved, and judged by what was there before."""

from collections import Counter

import pytest

from segproof_harness.salvage_draws.draws import judge_draw
from segproof_tests.exploring import SEED, rounds

FAULTY_MAX = {
    "kafka": {"nowhere": 0.0, "unframed": 0.0, "twice": 0.0, "raised": 0.0, "made up": 0.06},
    "rocketmq": {"unframed": 0.0, "raised": 0.0, "made up": 0.02, "nowhere": 0.04},
}
"""The share of draws that may have a fault, as long as `salvage` has it."""


@pytest.mark.parametrize("system", FAULTY_MAX)
def test_what_is_drawn_is_saved(system: str) -> None:
    """A failure prints the seeds; the same seed makes the same damages."""
    seen, seeds = Counter[str](), dict[str, list[int]]()
    for number in rounds(f"a damaged log of {system}", len(FAULTY_MAX)):
        verdict = judge_draw(system, SEED + number)
        seen["draws"] += 1
        for fault in verdict.faults:
            seen[fault] += 1
            seeds.setdefault(fault, []).append(verdict.seed)
    print(dict(seen))
    for fault, share in FAULTY_MAX[system].items():
        assert seen[fault] <= max(2 * bool(share), share * seen["draws"]), (fault, seeds[fault])
