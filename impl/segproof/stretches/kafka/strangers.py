# SPDX-License-Identifier: Apache-2.0
"""Whether batches can be of a log at all: what their headers state against those around them.

Offsets of another topic's block may fit by chance. Its leader epochs, the sequences of its
producers, its magic and the broker's timestamps need not. The checksum covers the sequences, the
timestamps and, before magic 2, the magic. It does not cover the leader epoch: a single batch whose
epoch differs in one bit proves nothing.

Upstream: Kafka 4.3.1: ProducerAppendInfo.inSequence, LeaderEpochFileCache.
Laws: BATCH-3, EPOCH-1, PROD-3.
"""

from itertools import pairwise

from segproof.integers import INT32_MAX
from segproof.stretches.kafka.facts import Rows

CLOCKS_MS = 24 * 60 * 60 * 1000
"""How far the clocks of two leaders are apart, at most: a day. With NTP they differ by less than a
second, and a wrong time zone makes 14 hours."""


def contradicts(earlier: Rows, head: Rows, tail: Rows, later: Rows) -> bool:
    """Return whether a block can't lie between two others.

    `earlier` and `later` are the batches around it, `head` and `tail` its own first and last ones.
    """
    if is_other_kind(earlier, head, tail, later) or _time_is_far(earlier, head, tail, later):
        return True
    return sequences_agree(earlier, head, tail, later) is False


def is_other_kind(earlier: Rows, head: Rows, tail: Rows, later: Rows) -> bool:
    """Return whether magic or leader epoch of a block can't lie between two others."""
    return _magic_differs(earlier, head, tail, later) or _epoch_falls(earlier, head, tail, later)


def _magic_differs(earlier: Rows, head: Rows, tail: Rows, later: Rows) -> bool:
    """Return whether the magic falls, or both sides have one magic, and the block has another.

    Between two magics a broker was upgraded, and any of them is right.
    """
    ends = [one["magic"].tolist() for one in (earlier[-1:], head[:1], tail[-1:], later[:1])]
    magics = [magic for one in ends for magic in one]
    around = {*earlier["magic"].tolist(), *later["magic"].tolist()}
    is_between = len(earlier) > 0 and len(later) > 0 and len(around) == 1
    is_other = is_between and {*head["magic"].tolist(), *tail["magic"].tolist()} != around
    return is_other or magics != sorted(magics)


def _epoch_falls(earlier: Rows, head: Rows, tail: Rows, later: Rows) -> bool:
    """Return whether the block's epochs are below those before it, or above those after it.

    Two neighbours have to agree, if there are two, and of several batches of the block the first
    two, and the last two, that have one epoch. So does a lone batch's epoch if one bit is changed:
    an epoch has no checksum. -1 is no epoch.
    """
    first, last = _shared(head["epoch"].tolist()), _shared(tail["epoch"].tolist()[::-1])
    if min(first, last) < 0:
        return False
    is_lone = len(head) == 1 and head["start"][0] == tail["start"][-1]
    before, after = earlier["epoch"][-2:].tolist(), later["epoch"][:2].tolist()
    for side, own, is_wrong in (
        (before, last, before[-1:] > [last]),
        (after, first, [-1] < after[:1] < [first]),
    ):
        is_agreed = len({*side}) == 1
        if is_agreed and is_wrong and not (is_lone and (side[0] ^ own).bit_count() == 1):
            return True
    return False


def _shared(epochs: list[int]) -> int:
    """Return the first epoch that two batches side by side have, or the only one; else -1."""
    pairs = pairwise(epochs if len(epochs) > 1 else epochs * 2)
    return next((one for one, other in pairs if one == other), -1)


def _time_is_far(earlier: Rows, head: Rows, tail: Rows, later: Rows) -> bool:
    """Return whether brokers wrote the timestamps, and those of a later batch are far before.

    A client's clock (CreateTime) may be wrong by any time, so its timestamps contradict nothing.
    """
    for before, after in ((earlier[-1:], head[:1]), (tail[-1:], later[:1])):
        are_both = len(before) > 0 and len(after) > 0
        if not (are_both and before["is_append_time"][0] and after["is_append_time"][0]):
            continue
        if after["max_time"][0] < before["max_time"][0] - CLOCKS_MS:
            return True
    return False


def lacks_room(before: Rows, after: Rows) -> bool:
    """Return whether more offsets than bytes are missing between the batches of one log.

    These are the last one of `before`, and the first one of `after`. An offset takes a byte at
    least, and compaction leaves nothing out after a record without a key.
    """
    if not len(before) or not len(after):
        return False
    one, two = before[-1], after[0]
    if not one["is_keyless"] or one["log"] != two["log"] or two["start"] < one["end"]:
        return False
    return bool(two["first"] - one["last"] - 1 > two["start"] - one["end"])


def sequences_agree(earlier: Rows, head: Rows, tail: Rows, later: Rows) -> bool | None:
    """Return whether sequences lead to a block, and from it; None if they state nothing.

    Each record of a producer takes one sequence and at least one offset: so from batch to batch the
    sequences rise no faster than the offsets. True if both rise alike on one side at least.
    A producer begins with 0 again after the broker has forgotten it, so 0 contradicts nothing.
    """
    agree: bool | None = None
    for before, after in ((earlier, head), (tail, later)):
        found = _pair(before, after)
        if found is None:
            continue
        by_sequence, by_offset = found
        if not 0 < by_sequence <= by_offset:
            return False
        agree = agree or by_sequence == by_offset or None
    return agree


def _pair(before: Rows, after: Rows) -> tuple[int, int] | None:
    """Return how far the sequence and the offset rise between two batches of one producer.

    They are the nearest ones that are of the same producer; None if there is no such pair.
    """
    names = ["producer", "producer_epoch"]
    known = before[before["sequence"] >= 0]
    for batch in after[after["sequence"] >= 0]:
        alike = known[[bool(one) for one in known[names] == batch[names]]]
        if not len(alike):
            continue
        near = alike[-1]
        if batch["sequence"] == 0:
            return None
        span = int(near["last"]) - int(near["first"])
        reached = int(near["sequence"]) + span
        by_sequence = (int(batch["sequence"]) - reached) % (INT32_MAX + 1)
        return by_sequence, int(batch["first"]) - int(near["last"])
    return None
