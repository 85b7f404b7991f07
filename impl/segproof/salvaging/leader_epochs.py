# SPDX-License-Identifier: Apache-2.0
"""Leader epochs that the batches around them prove wrong.

No checksum covers the leader epoch of a batch. In a log epochs never fall, so a batch between two
of one epoch is of that epoch.

Laws: EPOCH-1.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter

import numpy as np

from segproof.files import Files
from segproof.kafka.batch_table import check_batches

EPOCH_POSITION = 12


def restore_leader_epochs(paths: Sequence[str], files: Files) -> int:
    """Write the right leader epoch where both neighbours of a batch prove it; return how often.

    `paths` are the logs of a partition in their order. Raises: OSError.
    """
    wrong = [*_wrong_epochs(paths, files)]
    for path, places in groupby(wrong, key=itemgetter(0)):
        with closing(files.open(path, writable=True)) as log:
            for _, position, epoch in places:
                log.pwrite(epoch.to_bytes(4, "big", signed=True), position + EPOCH_POSITION)
            log.sync()
    return len(wrong)


def _wrong_epochs(paths: Sequence[str], files: Files) -> Iterator[tuple[str, int, int]]:
    """Yield log, position and right epoch of each batch whose epoch differs from both around it."""
    held = np.empty(0, np.int64), np.empty(0, np.int64)
    held_paths = list[str]()
    for path in paths:
        with closing(files.open(path)) as log:
            for table in check_batches(log).tables():
                new = table[table["magic"] == 2]
                positions = np.concatenate([held[0], new["position"]])
                epochs = np.concatenate([held[1], new["partition_leader_epoch"]])
                is_wrong = (epochs[:-2] == epochs[2:]) & (epochs[1:-1] != epochs[2:])
                for row in (np.flatnonzero(is_wrong) + 1).tolist():
                    own = held_paths[row] if row < len(held_paths) else path
                    yield own, int(positions[row]), int(epochs[row + 1])
                held_paths = [*held_paths, *[path] * min(2, len(new))][-2:]
                held = positions[-2:], epochs[-2:]
