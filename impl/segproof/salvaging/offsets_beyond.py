# SPDX-License-Identifier: Apache-2.0
"""Offsets in `config` that lie beyond the end of their queue in a saved store.

A salvage copies the files of `config` as they are. A queue whose last messages are lost ends
earlier than before, and a queue without a message is not made: its next message gets number 0. A
consumer that stays at its offset passes over the new messages that get the numbers in between.

Upstream: RocketMQ 4.9.8 and 5.5.1: ConsumerOffsetManager, DefaultMessageStore.getMessage.
Laws: RMQDISK-54.
Not covered: static topics; light queues (%LMQ%); queues of batches; offsets that RocksDB keeps.
"""

import posixpath
from collections.abc import Callable
from typing import NamedTuple

from segproof.files import Files
from segproof.reading.config_offsets import read_offsets

__all__ = ["OffsetBeyond", "offsets_beyond"]


class OffsetBeyond(NamedTuple):
    """One offset of a consumer group, or of a level of delayed messages, beyond its queue."""

    file: str
    """In the folder `config`."""
    position: int
    """The byte of the file at which the number stands."""
    topic: str
    queue_id: int
    group: str
    """Empty for delayed messages."""
    offset: int
    end: int
    """The number that the next message of the queue gets in the new store."""
    words: str
    """Who has read which queue: the begin of a sentence."""


def offsets_beyond(
    store: str, end_of: Callable[[str, int], int | None], files: Files
) -> list[OffsetBeyond]:
    """Return each offset in the old store's `config` that is beyond the end of its new queue.

    `end_of` returns the end of a queue, by its topic and number; None if the end is not known.
    """
    found = []
    for path, stored in read_offsets(store, files).items():
        for one in stored:
            end = end_of(*one.queue)
            if end is not None and one.offset > end:
                name, reader = posixpath.basename(path), (one.topic, one.queue_id, one.group)
                found.append(OffsetBeyond(name, one.position, *reader, one.offset, end, one.words))
    return found
