# SPDX-License-Identifier: Apache-2.0
"""The decisions of a log: which segment holds an offset, where one is rolled, what may be read,
which segments retention removes.

Each is a pure function of ints, so that the decision the log takes is the very one whose
claim is proved.

Mirrors: segproof_model/kafka/broker/partition_log.py under the profile `segproof`.
Upstream: Kafka, LocalLog, LogSegments, UnifiedLog (4.3.1).
Laws: LOG-1, LOG-6, LOG-11, LOG-17, LOG-18.
"""

from collections.abc import Sequence


def floor_place(bases: Sequence[int], offset: int) -> int:
    """Return the place of the greatest base <= `offset` among rising ones; -1: all are greater.

    Law: LOG-1.
    """
    low, high = 0, len(bases)
    while low < high:
        middle = (low + high) // 2
        if bases[middle] <= offset:
            low = middle + 1
        else:
            high = middle
    return low - 1


def roll_base(first_offset: int, last_offset: int, log_end_offset: int) -> int:
    """Return the base offset of the segment that is rolled before some records. Law: LOG-11.

    `first_offset` is -1 where only reading the records would tell it: then the least that the first
    one can be, since offsets of one append differ by 31 bits at most.
    """
    expected = last_offset - 2147483647 if first_offset == -1 else first_offset
    return max(expected, log_end_offset)


def max_position_of(
    segment_base: int, segment_size: int, bound_base: int, bound_position: int
) -> int:
    """Return up to which byte of a segment a read may go, exclusive; -1: to none. Law: LOG-6.

    The bound of the read lies in the segment with base `bound_base`, at `bound_position`; both are
    -1 where that is not known.
    """
    if segment_base < bound_base:
        return segment_size
    if segment_base == bound_base and bound_position >= 0:
        return bound_position
    return -1


def stable_bound(high_watermark: int, first_unstable_offset: int) -> int:
    """Return the last stable offset, exclusive; -1 as first unstable offset: all are stable."""
    if 0 <= first_unstable_offset < high_watermark:
        return first_unstable_offset
    return high_watermark


def offsets_may_go(upper_bound: int, high_watermark: int, is_last_and_empty: bool) -> bool:
    """Return whether retention may take a segment with offsets below `upper_bound`. Law: LOG-17."""
    return high_watermark >= upper_bound and not is_last_and_empty


def breached_by_size(sizes: Sequence[int], retention_bytes: int) -> int:
    """Return how many of the oldest segments the limit of bytes removes. Law: LOG-18.

    A segment goes if what stays still reaches the limit; a negative limit removes none.
    """
    if retention_bytes < 0:
        return 0
    excess = sum(sizes) - retention_bytes
    count = 0
    for size in sizes:
        excess -= size
        if excess < 0:
            break
        count += 1
    return count
