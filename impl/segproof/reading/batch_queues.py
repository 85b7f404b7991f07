# SPDX-License-Identifier: Apache-2.0
"""Queues of batches: which topics have them, and where in the log their units lead.

A topic whose `queue.type` in `topics.json` is BatchCQ has its queues in the folder
`batchconsumequeue`. A broker ends its start at a queue of a topic that is in the folder of the
other type. So a topic of queues of batches never gets an ordinary queue.

Layout: BATCH_UNIT of layouts/rocketmq.py.
Upstream: RocketMQ 5.0.0 to 5.5.1: BatchConsumeQueue, ConsumeQueueStore.queueTypeShouldBe,
QueueTypeUtils.
Laws: RMQDISK-37, RMQDISK-41, RMQDISK-56, RMQDISK-57.
Not covered: whether the units are right; topics whose type RocksDB keeps, if no file of their
queues is there.
"""

import posixpath
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.layouts.rocketmq import BATCH_UNIT
from segproof.reading.config_offsets import queue_types
from segproof.rocketmq.commit_log import named_offset
from segproof.rocketmq.consume_queue import CONSUME_QUEUE, folders_in, is_queue_name

__all__ = [
    "BATCH_QUEUES",
    "BATCH_TYPE",
    "BatchTopics",
    "batch_files",
    "batch_topics",
    "batch_units",
    "furthest_batch",
    "placed_units",
    "queues_with_files",
]

BATCH_QUEUES: Final = "batchconsumequeue"
BATCH_TYPE: Final = "BatchCQ"
UNIT_BYTES: Final = BATCH_UNIT.size
PIECE_BYTES: Final = UNIT_BYTES << 14


class BatchTopics(NamedTuple):
    """The topics of a store that have queues of batches."""

    topics: frozenset[str]
    """All of them: by their type, or by files in `batchconsumequeue` alone."""
    with_files: frozenset[str]
    """Those with a file of a queue in `batchconsumequeue`."""


def batch_topics(store: str, files: Files) -> BatchTopics:
    """Return the topics of a store that have queues of batches. What can't be read tells nothing.

    A topic with files in both folders has the type that `config` says.
    """
    found = queues_with_files(store, BATCH_QUEUES, files).keys()
    declared = {topic for topic, kind in queue_types(store, files).items() if kind == BATCH_TYPE}
    ordinary = queues_with_files(store, CONSUME_QUEUE, files).keys() if found else set()
    return BatchTopics(frozenset(declared | (found - ordinary)), frozenset(found))


def queues_with_files(store: str, folder: str, files: Files) -> dict[str, int]:
    """Return the topics in a folder of queues that have a file of a queue, each with the largest
    number of such a queue. What can't be read is left out.
    """
    found: dict[str, int] = {}
    with suppress(OSError):
        for topic in folders_in(posixpath.join(store, folder), files):
            for queue in folders_in(topic, files):
                number = posixpath.basename(queue)
                if is_queue_name(number) and any(
                    named_offset(one) is not None for one in files.list_directory(queue)
                ):
                    name = posixpath.basename(topic)
                    found[name] = max(found.get(name, 0), int(number))
    return found


def batch_files(store: str, topic: str, files: Files) -> Iterator[str]:
    """Yield the paths of the files of a topic's queues of batches. Raises: OSError."""
    for queue in folders_in(posixpath.join(store, BATCH_QUEUES, topic), files):
        for name in files.list_directory(queue):
            if named_offset(name) is not None:
                yield posixpath.join(queue, name)


def batch_units(store: str, files: Files) -> Iterator[NDArray[np.int64]]:
    """Yield offset and size of what the units of queues of batches lead to, in pieces.

    Raises: OSError.
    """
    for topic in _topics(store, files):
        for path in batch_files(store, topic, files):
            for rows in placed_units(path, files):
                yield rows[:, 1:]


def furthest_batch(store: str, files: Files) -> int:
    """Return the largest offset that a unit leads to; -1 without one, or if none can be read."""
    furthest = -1
    with suppress(OSError):
        for units in batch_units(store, files):
            furthest = max(furthest, int(units[:, 0].max(initial=-1)))
    return furthest


def _topics(store: str, files: Files) -> list[str]:
    return [posixpath.basename(one) for one in folders_in(_folder(store), files)]


def _folder(store: str) -> str:
    return posixpath.join(store, BATCH_QUEUES)


def placed_units(path: str, files: Files) -> Iterator[NDArray[np.int64]]:
    """Yield the byte at which each unit of a file begins, and offset and size of what it leads to,
    in pieces. Raises: OSError.
    """
    with closing(files.open(path)) as file:
        for begin, behind in file.data_ranges(0, file.size()):
            for at in range(begin - begin % UNIT_BYTES, behind, PIECE_BYTES):
                data = file.pread(min(PIECE_BYTES, behind - at + UNIT_BYTES), at)
                units = np.frombuffer(
                    data, BATCH_UNIT.dtype, min(PIECE_BYTES, len(data)) // UNIT_BYTES
                )
                places = at + UNIT_BYTES * np.arange(len(units), dtype=np.int64)
                led = (units[name].astype(np.int64) for name in ("commit_log_offset", "size"))
                rows = np.stack([places, *led], 1)
                yield rows[(rows[:, 1] >= 0) & (rows[:, 2] > 0)]
