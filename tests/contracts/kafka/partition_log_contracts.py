# SPDX-License-Identifier: Apache-2.0
"""Contracts of the log: which segment holds an offset, where one begins, what a read may see, what
retention removes.

Each is held against the definition, written down in the contract itself in exact numbers.

Mirrors: impl/segproof/kernels/log_rules.py.
"""

from segproof.kernels.log_rules import (
    breached_by_size,
    floor_place,
    max_position_of,
    offsets_may_go,
    roll_base,
    stable_bound,
)


def floor_by_definition(bases: list[int], offset: int) -> bool:
    """The floor of an offset is the last of the segments whose base is not above it.

    pre: len(bases) <= 5 and all(one < other for one, other in zip(bases, bases[1:]))
    post: _
    """
    return floor_place(bases, offset) == sum(base <= offset for base in bases) - 1


def base_of_roll(first_offset: int, last_offset: int, log_end: int) -> bool:
    """A new segment begins at the log end or above, and holds all offsets that follow in 31 bits.

    pre: first_offset >= -1 and last_offset >= first_offset and log_end >= 0
    post: _
    """
    base = roll_base(first_offset, last_offset, log_end)
    if first_offset >= 0:
        return base == (first_offset if first_offset > log_end else log_end)
    return base >= log_end and last_offset <= base + 2147483647 and base in (
        log_end, last_offset - 2147483647,
    )  # fmt: skip


def bound_of_read(base: int, size: int, bound_base: int, bound_position: int) -> bool:
    """No byte at the bound or behind it is given: not of its segment, and none of a later one.

    pre: min(base, size) >= 0 and bound_base >= -1 and bound_position >= -1
    post: _
    """
    limit = max_position_of(base, size, bound_base, bound_position)
    if base > bound_base:
        return limit == -1
    return limit == (bound_position if base == bound_base else size)


def stable_below_high_watermark(high_watermark: int, first_unstable: int) -> bool:
    """What is stable ends at the high watermark, or where a transaction is undecided before that.

    pre: high_watermark >= 0 and first_unstable >= -1
    post: _
    """
    bound = stable_bound(high_watermark, first_unstable)
    ends = [high_watermark] if first_unstable == -1 else [high_watermark, first_unstable]
    return bound == min(ends)


def removal_below_high_watermark(upper: int, high_watermark: int, is_last_and_empty: bool) -> bool:
    """A segment may go if each of its offsets is replicated and it is not the last, empty one.

    post: _
    """
    may_go = offsets_may_go(upper, high_watermark, is_last_and_empty)
    return may_go == (not is_last_and_empty and not high_watermark < upper)


def retention_by_size(sizes: list[int], retention_bytes: int) -> bool:
    """So many of the oldest segments go that what stays reaches the limit, and one less would not.

    pre: len(sizes) <= 4 and all(size >= 0 for size in sizes)
    post: _
    """
    count = breached_by_size(sizes, retention_bytes)
    if retention_bytes < 0:
        return count == 0
    stays = [sum(sizes[place:]) for place in range(len(sizes) + 1)]
    enough = [place for place, size in enumerate(stays) if size >= retention_bytes]
    return count == (enough[-1] if enough else 0)
