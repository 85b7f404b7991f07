# SPDX-License-Identifier: Apache-2.0
"""Choices: within their bounds, the same for a seed, of even chances."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.structures.choices import HypothesisChoose, RandomChoose


@given(seed=st.integers(0, 2**64), low=st.integers(-(2**63), 2**63), width=st.integers(0, 2**64))
def test_integers_are_in_bounds(seed: int, low: int, width: int) -> None:
    """Both bounds are inclusive, however far apart."""
    assert low <= RandomChoose("x", seed).integer(low, low + width) <= low + width


def test_seed_decides() -> None:
    """One seed and purpose give one sequence; another of either gives another."""

    def drawn(purpose: str, seed: int) -> tuple[object, ...]:
        choose = RandomChoose(purpose, seed)
        return choose.integer(0, 10**18), choose.data(9), choose.one_of("abc"), choose.boolean()

    assert drawn("a", 1) == drawn("a", 1)
    assert 4 == len({drawn(purpose, seed) for purpose in "ab" for seed in (1, 2)})


def test_values_are_known() -> None:
    """The generator is part of what a seed means: these numbers never change."""
    choose = RandomChoose("offset-index", 17)
    assert [[551, 972, 355, 527, 999, 534], "6fa6ac7a"] == [
        [choose.integer(0, 999) for _ in range(6)],
        choose.data(4).hex(),
    ]


def test_weights_are_kept() -> None:
    """What weighs three times as much is drawn about three times as often."""
    choose = RandomChoose("weights", 0)
    counts = Counter(choose.weighted((3, 1, 0)) for _ in range(4000))
    assert set(counts) == {0, 1}
    assert 2700 < counts[0] < 3300


@given(data=st.data())
def test_hypothesis_keeps_the_bounds(data: st.DataObject) -> None:
    """Hypothesis draws through the same protocol."""
    choose = HypothesisChoose(data)
    assert -3 <= choose.integer(-3, 5) <= 5
    assert choose.one_of("abc") in "abc"
    assert 7 == len(choose.data(7))
    assert choose.boolean() in (True, False)
