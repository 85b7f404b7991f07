# SPDX-License-Identifier: Apache-2.0
"""New mutants of healthy directories in each run: no verb may end badly on one."""

from segproof_tests.exploring import SEED, rounds
from segproof_tests.mutants import check, sources


def test_no_verb_ends_badly() -> None:
    """A failure tells the mutant's damages; `python -m segproof_tests.mutants` makes it again."""
    healthy = sources()
    for number in rounds("a mutant", 1):
        verdict = check(SEED, number, healthy)
        again = f"python -m segproof_tests.mutants --seed {SEED} --first {number} --count 1"
        assert [] == verdict.wrong, f"{verdict.damages}\n{again}"
