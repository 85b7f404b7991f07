# SPDX-License-Identifier: Apache-2.0
"""The heaviest chain of rising intervals: which batches of a damaged log keep their place.

Laws: BATCH-3.
"""

from bisect import bisect_left
from collections.abc import Sequence


def heaviest_chain(
    firsts: Sequence[int], lasts: Sequence[int], weights: Sequence[int], joints: Sequence[int]
) -> list[int]:
    """Return which intervals [first, last] to keep, so that each lies behind the one before it.

    Of all such choices it has the greatest sum of weights, and of `joints` for each interval that
    is kept with the one before it in the order given; 0 if these do not go on. Of two intervals
    that end alike and weigh the same it keeps the later one.
    Cost: n log n for n intervals. Raises: never.
    """
    ends: list[int] = []
    """Where chains end: rising, and so are `sums`; other chains are of no use."""
    sums: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    reached = 0
    """The sum of the heaviest chain that ends with the interval before."""
    together = zip(firsts, lasts, weights, joints, strict=True)
    for number, (first, last, own, joint) in enumerate(together):
        place = bisect_left(ends, first)
        weight = own + (sums[place - 1] if place else 0)
        beside = own + reached + joint if joint else 0
        before.append(number - 1 if beside >= weight else tails[place - 1] if place else -1)
        weight = reached = max(weight, beside)
        start = bisect_left(ends, last)
        is_heavier = start < len(ends) and ends[start] == last and sums[start] > weight
        if is_heavier or (start and sums[start - 1] >= weight):
            continue
        stop = start
        while stop < len(ends) and sums[stop] <= weight:
            stop += 1
        ends[start:stop], sums[start:stop], tails[start:stop] = [last], [weight], [number]
    chain = list[int]()
    at = tails[-1] if tails else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]
