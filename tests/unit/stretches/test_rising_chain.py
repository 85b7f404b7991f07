# SPDX-License-Identifier: Apache-2.0
"""The heaviest chain of rising intervals, beside all choices of a few of them."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from segproof.stretches.kafka.rising_chain import heaviest_chain

INTERVALS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 4), st.integers(1, 4), st.integers(0, 3)),
    max_size=8,
)


@given(INTERVALS)
def test_no_other_chain_weighs_more(drawn: list[tuple[int, int, int, int]]) -> None:
    """What is chosen rises, and no choice that rises is heavier; some go on from the one before."""
    intervals = [(first, first + more, weight) for first, more, weight, _ in drawn]
    joints = [0] * len(drawn)
    for number in range(1, len(drawn)):
        if intervals[number - 1][1] < intervals[number][0]:
            joints[number] = drawn[number][3]

    def weight_of(chosen: tuple[int, ...]) -> int:
        rises = all(intervals[one][1] < intervals[other][0] for one, other in pairwise(chosen))
        weight = sum(intervals[number][2] for number in chosen)
        weight += sum(joints[two] for one, two in pairwise(chosen) if one + 1 == two)
        return weight if rises else -1

    numbers = range(len(intervals))
    choices = (choice for size in range(len(numbers) + 1) for choice in combinations(numbers, size))
    firsts, lasts, weights = ([one[place] for one in intervals] for place in range(3))
    found = heaviest_chain(firsts, lasts, weights, joints)
    assert max(map(weight_of, choices)) == weight_of(tuple(found))


def test_of_two_that_end_alike_the_later_one_is_kept() -> None:
    """Where the earlier one says the offset of the later one, it is the one that may be wrong."""
    assert [0, 2] == heaviest_chain([0, 2, 2], [0, 2, 2], [3, 2, 2], [0, 0, 0])
