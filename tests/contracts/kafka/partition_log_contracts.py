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
from segproof_tests.contracts import Mutant, contract

LOGS = "segproof.kernels.log_rules"


@contract(
    f"{LOGS}:floor_place",
    "LOG-1",
    "any 0 to 5 strictly rising bases, any offset",
    Mutant("bases[middle] <= offset", "bases[middle] < offset"),
    Mutant("high = middle", "high = middle - 1"),
    Mutant("return low - 1", "return low"),
)
def floor_by_definition(bases: list[int], offset: int) -> bool:
    """The floor of an offset is the last of the segments whose base is not above it.

    pre: len(bases) <= 5 and all(one < other for one, other in zip(bases, bases[1:]))
    post: _
    """
    return floor_place(bases, offset) == sum(base <= offset for base in bases) - 1


@contract(
    f"{LOGS}:roll_base",
    "LOG-11",
    "any first offset from -1 on, any last offset not below it, any log end from 0 on",
    Mutant("2147483647", "2147483648"),
    Mutant("first_offset == -1", "first_offset <= 0"),
    Mutant("max(expected, log_end_offset)", "expected"),
)
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


@contract(
    f"{LOGS}:max_position_of",
    "LOG-6 LOG-7",
    "any base and size from 0 on, any bound, known or not",
    Mutant("segment_base < bound_base", "segment_base <= bound_base"),
    Mutant("segment_base == bound_base and ", ""),
    Mutant("bound_position >= 0", "bound_position > 0"),
)
def bound_of_read(base: int, size: int, bound_base: int, bound_position: int) -> bool:
    """No byte at the bound or behind it is given: not of its segment, and none of a later one.

    pre: min(base, size) >= 0 and bound_base >= -1 and bound_position >= -1
    post: _
    """
    limit = max_position_of(base, size, bound_base, bound_position)
    if base > bound_base:
        return limit == -1
    return limit == (bound_position if base == bound_base else size)


@contract(
    f"{LOGS}:stable_bound",
    "LOG-6 PROD-10",
    "any high watermark from 0 on, any first unstable offset or none",
    Mutant("0 <= first_unstable_offset", "0 < first_unstable_offset"),
    Mutant("return first_unstable_offset", "return high_watermark"),
)
def stable_below_high_watermark(high_watermark: int, first_unstable: int) -> bool:
    """What is stable ends at the high watermark, or where a transaction is undecided before that.

    pre: high_watermark >= 0 and first_unstable >= -1
    post: _
    """
    bound = stable_bound(high_watermark, first_unstable)
    ends = [high_watermark] if first_unstable == -1 else [high_watermark, first_unstable]
    return bound == min(ends)


@contract(
    f"{LOGS}:offsets_may_go",
    "LOG-17",
    "any ints",
    Mutant("high_watermark >= upper_bound", "high_watermark > upper_bound"),
    Mutant(" and not is_last_and_empty", ""),
)
def removal_below_high_watermark(upper: int, high_watermark: int, is_last_and_empty: bool) -> bool:
    """A segment may go if each of its offsets is replicated and it is not the last, empty one.

    post: _
    """
    may_go = offsets_may_go(upper, high_watermark, is_last_and_empty)
    return may_go == (not is_last_and_empty and not high_watermark < upper)


@contract(
    f"{LOGS}:breached_by_size",
    "LOG-18",
    "any 0 to 4 sizes from 0 on, any limit",
    Mutant("if excess < 0", "if excess <= 0"),
    Mutant("if retention_bytes < 0", "if retention_bytes < -1"),
    Mutant("excess -= size", "excess -= 0"),
)
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
