# SPDX-License-Identifier: Apache-2.0
"""How many messages the consume queues of a store lead to in some stretches of its log.

Laws: RMQCQ-1.
Not covered: queues kept in RocksDB; queues that other queues' messages are dispatched to, whose
  units lead to messages that have a unit elsewhere.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from segproof.files import File, Files
from segproof.integers import INT32_MAX
from segproof.reading.store_pieces import Gap
from segproof.rocketmq.commit_log import named_offset
from segproof.rocketmq.consume_queue import CONSUME_QUEUE, UNIT_BYTES, UNITS, folders_in

PIECE_BYTES = UNIT_BYTES << 16
SPOKEN_FOR_OTHERS = "%LMQ%"


def messages_in(store: str, gaps: Sequence[Gap], files: Files) -> list[int] | None:
    """Return how many units lead into each gap of the log; None without queues.

    The gaps are in order.

    Cost: all files of queues are read once, without their holes. Raises: OSError.
    """
    starts = np.array([gap.start for gap in gaps], np.int64)
    ends = np.array([gap.end for gap in gaps], np.int64)
    found, has_queues = np.zeros(len(gaps), np.int64), False
    for topic in folders_in(os.path.join(store, CONSUME_QUEUE), files):
        if SPOKEN_FOR_OTHERS in os.path.basename(topic):
            continue
        for queue in folders_in(topic, files):
            for offsets in _offsets(queue, files):
                has_queues = True
                place = np.searchsorted(starts, offsets, "right") - 1
                inside = place[(place >= 0) & (offsets < ends[place])] if len(gaps) else place[:0]
                found += np.bincount(inside, minlength=len(gaps))
    counts: list[int] = found.tolist()
    return counts if has_queues else None


def _offsets(queue: str, files: Files) -> Iterator[NDArray[np.int64]]:
    """Yield the offsets of the log in the units of a queue, but for fillers."""
    for name in files.list_directory(queue):
        if named_offset(name) is None:
            continue
        with closing(files.open(os.path.join(queue, name))) as file:
            yield from _in_file(file)


def _in_file(file: File) -> Iterator[NDArray[np.int64]]:
    for units in units_in(file):
        yield units["commit_log_offset"].astype(np.int64)


def units_in(file: File) -> Iterator[NDArray[np.void]]:
    """Yield the units of a file of a queue, but for fillers. Raises: OSError."""
    for begin, behind in file.data_ranges(0, file.size()):
        for at in range(begin - begin % UNIT_BYTES, behind, PIECE_BYTES):
            data = file.pread(min(PIECE_BYTES, behind - at + UNIT_BYTES), at)
            units = np.frombuffer(data, UNITS, min(PIECE_BYTES, len(data)) // UNIT_BYTES)
            is_unit = (units["commit_log_offset"] >= 0) & (units["size"] > 0)
            is_unit &= units["size"] != INT32_MAX
            yield units[is_unit]
