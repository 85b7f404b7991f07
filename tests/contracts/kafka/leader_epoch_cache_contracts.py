# SPDX-License-Identifier: Apache-2.0
"""Contracts of the leader epoch cache: what an assignment or a truncation keeps, where epochs end.

The entries are any four that a cache can hold, or the first of them.

Mirrors: model/segproof_model/kafka/broker/leader_epoch_cache.py, impl/segproof/kernels/epochs.py.
"""

from segproof.kernels.epochs import kept_by_assign, kept_from_end, last_not_behind
from segproof_model.kafka.broker.checkpoint_file import EpochEntry
from segproof_model.kafka.broker.leader_epoch_cache import (
    LeaderEpochFileCache,
    without_end,
    without_start,
)
from segproof_model.language.files import Files
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

EPOCHS = "segproof.kernels.epochs"
EPOCH_BOUND = "any 0 to 4 entries with strictly increasing epochs and start offsets from 0 on"

Pair = tuple[int, int]
Four = tuple[Pair, Pair, Pair, Pair]


class _Cache(SEGPROOF.kind(LeaderEpochFileCache)):  # type: ignore[misc]  # as it is made
    """The model's cache without a file; of what may be an epoch nothing is asked here."""

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        super().__init__(Files(), None)
        self.entries = tuple([EpochEntry(epoch, start_offset) for epoch, start_offset in pairs])

    def check(self, entry: EpochEntry) -> None:
        """Take any numbers."""


def _is_sorted(pairs: tuple[Pair, ...]) -> bool:
    """Return whether epochs and start offsets strictly increase, from 0 on."""
    epoch, start_offset = -1, -1
    for pair in pairs:
        if pair[0] <= epoch or pair[1] <= start_offset:
            return False
        epoch, start_offset = pair
    return True


@contract(
    f"{EPOCHS}:kept_by_assign",
    "EPOCH-3 EPOCH-4",
    f"{EPOCH_BOUND}, any epoch, any offset",
    Mutant("[0] >= epoch", "[0] > epoch"),
    Mutant("[1] >= start_offset", "[1] > start_offset"),
    Mutant("[1] <= start_offset", "[1] < start_offset"),
)
def assign_keeps(four: Four, count: int, epoch: int, start: int) -> bool:
    """Keep before an assigned entry what the model keeps, or assign nothing as it does.

    pre: 0 <= count <= 4
    pre: _is_sorted(four[:count])
    post: _
    """
    pairs = four[:count]
    kept = kept_by_assign(pairs, epoch, start)
    cache = _Cache(pairs)
    if not cache.enter(EpochEntry(epoch, start)):
        return kept == -1
    return bool(kept >= 0 and (*pairs[:kept], (epoch, start)) == cache.entries)


@contract(
    f"{EPOCHS}:kept_from_end",
    "EPOCH-8",
    f"{EPOCH_BOUND}, any offset",
    Mutant("[1] >= end_offset", "[1] > end_offset"),
    Mutant("end_offset >= 0 and ", ""),
)
def end_keeps(four: Four, count: int, end: int) -> bool:
    """Keep before an offset what the model keeps.

    pre: 0 <= count <= 4
    pre: _is_sorted(four[:count])
    post: _
    """
    pairs = four[:count]
    expected = _Cache(pairs).entries
    return pairs[: kept_from_end(pairs, end)] == (
        expected if end < 0 else without_end(expected, end)
    )


@contract(
    f"{EPOCHS}:last_not_behind",
    "EPOCH-9 EPOCH-10",
    f"{EPOCH_BOUND}, any offset",
    Mutant("[1] > offset", "[1] >= offset"),
)
def start_keeps(four: Four, count: int, start: int) -> bool:
    """Find the entry that covers an offset, which a truncation from the start moves to it.

    pre: 0 <= count <= 4
    pre: _is_sorted(four[:count])
    post: _
    """
    pairs = four[:count]
    cache, place = _Cache(pairs), last_not_behind(pairs, start)
    if place < 0:
        return (
            cache.epoch_for_offset(start) is None
            and without_start(cache.entries, start) == cache.entries
        )
    epoch = pairs[place][0]
    moved = ((epoch, start), *pairs[place + 1 :])
    return cache.epoch_for_offset(start) == epoch and without_start(cache.entries, start) == moved
