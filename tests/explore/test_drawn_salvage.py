# SPDX-License-Identifier: Apache-2.0
"""New damaged partitions in each run: what `salvage` makes of them, judged by what was there."""

from collections import Counter

from segproof_harness.salvage_draws.draws import judge_draw
from segproof_tests.exploring import SEED, rounds

FAULTY_MAX = {"nowhere": 0.0, "unframed": 0.0, "twice": 0.0, "raised": 0.0, "made up": 0.06}
"""The share of draws that may have a fault, as long as `salvage` has it."""


def test_drawn_partitions_are_saved() -> None:
    """A failure prints the seeds; the same seed makes the same damages."""
    seen, seeds = Counter[str](), dict[str, list[int]]()
    for number in rounds("a damaged partition", 1):
        verdict = judge_draw(SEED + number)
        seen["draws"] += 1
        for fault in verdict.faults:
            seen[fault] += 1
            seeds.setdefault(fault, []).append(verdict.seed)
    print(dict(seen))
    for fault, share in FAULTY_MAX.items():
        assert seen[fault] <= max(2 * bool(share), share * seen["draws"]), (fault, seeds[fault])
