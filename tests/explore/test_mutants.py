# SPDX-License-Identifier: Apache-2.0
"""New mutants of healthy directories in each run: no verb may end badly on one."""

from pathlib import Path

from segproof_tests.exploring import SEED, rounds
from segproof_tests.mutant_sources import sources
from segproof_tests.mutants import check


def test_no_verb_ends_badly(tmp_path: Path) -> None:
    """A failure tells the mutant's damages; `python -m segproof_tests.mutants` makes it again."""
    healthy = sources(tmp_path)
    for number in rounds("a mutant", 1):
        verdict = check(SEED, number, healthy)
        again = f"python -m segproof_tests.mutants --seed {SEED} --first {number} --count 1"
        assert [] == verdict.wrong, f"{verdict.damages}\n{again}"
