# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that the batches around them prove wrong.

No checksum covers the leader epoch of a batch. In a log epochs never fall, so a batch between two
of one epoch is of that epoch. In 5 9 5 9 5 that is said of three batches side by side, and they
contradict each other: then none of them is proved wrong.

Laws: EPOCH-1.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.kafka.batch_table import check_batches
from segproof.kafka.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile

EPOCH_POSITION = 12


def keep_leader_epochs(old: str, new: str, end_offset: int, files: Files) -> None:
    """Let a new checkpoint of epochs hold the old entries, if the kept batches agree with them.

    The batches do not tell an epoch in which nothing was written, such as the one after the last
    batch, nor where an epoch began before compaction. `end_offset` is the offset after the last
    batch. Raises: OSError for the new file.
    """
    made = LeaderEpochCheckpointFile(new, writable=True, files=files)
    by_batches = made.read()
    try:
        before = LeaderEpochCheckpointFile(old, files=files).read()
    except (OSError, SegproofError):
        return  # as the batches say
    starts = {entry.epoch: entry.start_offset for entry in before}
    rises = all(
        one.epoch < other.epoch and one.start_offset <= other.start_offset
        for one, other in pairwise(before)
    )
    first = by_batches[0] if by_batches else EpochEntry(-1, end_offset)
    agrees = all(starts.get(one.epoch) == one.start_offset for one in by_batches[1:])
    agrees &= not by_batches or starts.get(first.epoch, end_offset) <= first.start_offset
    known = {entry.epoch for entry in by_batches}
    others = (entry for entry in before if entry.epoch not in known)
    is_outside = all(
        entry.epoch < first.epoch or entry.start_offset >= end_offset for entry in others
    )
    if rises and agrees and is_outside and before != by_batches:
        made.write(before)


def restore_leader_epochs(paths: Sequence[str], files: Files) -> int:
    """Write the right leader epoch where both neighbours of a batch prove it; return how often.

    `paths` are the logs of a partition in their order. Raises: OSError.
    """
    odd = [*_odd_epochs(paths, files)]
    rows = {one.row for one in odd}
    wrong = [one for one in odd if rows.isdisjoint((one.row - 1, one.row + 1))]
    for path, places in groupby(wrong, key=attrgetter("path")):
        with closing(files.open(path, writable=True)) as log:
            for one in places:
                epoch = one.epoch_around.to_bytes(4, "big", signed=True)
                log.pwrite(epoch, one.position + EPOCH_POSITION)
            log.sync()
    return len(wrong)


class _OddEpoch(NamedTuple):
    """A batch whose epoch is not the one that both batches around it have."""

    row: int
    """How many batches of magic 2 the partition has before it."""
    path: str
    position: int
    epoch_around: int


def _odd_epochs(paths: Sequence[str], files: Files) -> Iterator[_OddEpoch]:
    held = np.empty(0, np.int64), np.empty(0, np.int64)
    held_paths = list[str]()
    count = 0
    for path in paths:
        with closing(files.open(path)) as log:
            for table in check_batches(log).tables():
                new = table[table["magic"] == 2]
                positions = np.concatenate([held[0], new["position"]])
                epochs = np.concatenate([held[1], new["partition_leader_epoch"]])
                is_odd = (epochs[:-2] == epochs[2:]) & (epochs[1:-1] != epochs[2:])
                for row in (np.flatnonzero(is_odd) + 1).tolist():
                    own = held_paths[row] if row < len(held_paths) else path
                    number = count - len(held_paths) + row
                    yield _OddEpoch(number, own, int(positions[row]), int(epochs[row + 1]))
                count += len(new)
                held_paths = [*held_paths, *[path] * min(2, len(new))][-2:]
                held = positions[-2:], epochs[-2:]
