# SPDX-License-Identifier: Apache-2.0
"""The decisions of the leader epoch cache: what stays after a change, and where an epoch ends.

Each is a pure function of pairs (epoch, start offset) in the order of both, and of ints, so that
the decision the cache takes is the very one that is proved and confirmed.

Mirrors: segproof_model/kafka/broker/leader_epoch_cache.py under the profile `segproof`.
Upstream: Kafka, LeaderEpochFileCache (4.3.1).
Laws: EPOCH-3 to EPOCH-10.
"""

from collections.abc import Sequence

Pairs = Sequence[tuple[int, int]]


def kept_by_assign(entries: Pairs, epoch: int, start_offset: int) -> int:
    """Return how many entries stay before the assigned one; -1 if nothing is assigned.

    Laws: EPOCH-3, EPOCH-4.
    """
    kept = len(entries)
    if kept and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
        return -1
    while kept and (entries[kept - 1][0] >= epoch or entries[kept - 1][1] >= start_offset):
        kept -= 1
    return kept


def end_offset(entries: Pairs, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
    """Return the greatest epoch up to the requested one, and where it ended; (-1, -1): unknown.

    Laws: EPOCH-5, EPOCH-6, EPOCH-7.
    """
    if requested_epoch == -1 or not entries or entries[-1][0] < requested_epoch:
        return -1, -1
    if entries[-1][0] == requested_epoch:
        return requested_epoch, log_end_offset
    higher = len(entries) - 1
    while higher and entries[higher - 1][0] > requested_epoch:
        higher -= 1
    epoch = entries[higher - 1][0] if higher else requested_epoch
    return epoch, entries[higher][1]


def kept_from_end(entries: Pairs, end_offset: int) -> int:
    """Return how many entries begin before `end_offset`; all of them where it is negative.

    Laws: EPOCH-8.
    """
    kept = len(entries)
    while end_offset >= 0 and kept and entries[kept - 1][1] >= end_offset:
        kept -= 1
    return kept


def last_not_behind(entries: Pairs, offset: int) -> int:
    """Return the place of the last entry that begins at `offset` or before it, or -1.

    Laws: EPOCH-9, EPOCH-10.
    """
    place = len(entries) - 1
    while place >= 0 and entries[place][1] > offset:
        place -= 1
    return place
