# SPDX-License-Identifier: Apache-2.0
"""The laws' own arithmetic, never a function that they judge."""

from collections.abc import Iterable, Sequence
from itertools import pairwise


def is_rising(numbers: Sequence[int]) -> bool:
    """Return whether each number is greater than the number before it."""
    return all(one < two for one, two in pairwise(numbers))


def never_falls(numbers: Sequence[int]) -> bool:
    """Return whether no number is smaller than the number before it."""
    return all(one <= two for one, two in pairwise(numbers))


def toward_zero(number: int, factor: int) -> int:
    """Return the multiple of `factor` that is nearest to `number` on the side of zero."""
    return number // factor * factor if number >= 0 else -(-number // factor * factor)


def low_32_bits(number: int) -> int:
    """Return the low 32 bits as a signed number."""
    low = number & 0xFFFFFFFF
    return low - 2**32 if low >= 2**31 else low


def fits_31_bits(base_offset: int, offset: int) -> bool:
    """Return whether the distance, as 64 bits hold it, is from 0 to 2147483647."""
    distance = offset - base_offset
    return any(0 <= distance + lap * 2**64 < 2**31 for lap in (-1, 0, 1))


def greatest_not_above(numbers: Iterable[int], target: int) -> int:
    """Return the last place of a number <= target in numbers that increase, or -1."""
    return sum(1 for number in numbers if number <= target) - 1


def in_order(offsets: list[int]) -> set[int]:
    """Return the offsets without those that alone are above the next one or below the previous."""
    around = zip([-1, *offsets], offsets, [*offsets[1:], 2**63 - 1], strict=False)
    return {at for before, at, after in around if before > after or before <= at <= after}
