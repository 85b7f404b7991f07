# SPDX-License-Identifier: Apache-2.0
"""Kafka's LeaderEpochFileCache, made for a recovery, and what it then knows in plain form.

Upstream: kafka.server.epoch.LeaderEpochFileCache up to 3.4, the same name in
org.apache.kafka.storage.internals.epoch since.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jpype import JInt, JLong

from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.classes import get, items

__all__ = ["make_epochs", "shown_epochs"]

CACHES = (
    "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache",
    "kafka.server.epoch.LeaderEpochFileCache",
)
CHECKPOINTS = (
    "org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile",
    "kafka.server.checkpoints.LeaderEpochCheckpointFile",
)
FAILURE_CHANNELS = (
    "org.apache.kafka.storage.internals.log.LogDirFailureChannel",
    "kafka.server.LogDirFailureChannel",
)
CHANNEL_SINCE = (1, 0)
"""The first version whose checkpoint reports what fails to somebody."""
LOG_END_UP_TO = (3, 0)
"""Below this version the cache asks a function for the log's end; a recovery does not call it."""
SCHEDULER_SINCE = (3, 8)
"""The first version that takes a scheduler, which a recovery does not use."""


def make_epochs(jvm: Jvm, path: str, entries: Iterable[tuple[int, int]]) -> Any:
    """Return a cache with these epochs, assigned one by one, over a new file."""
    Path(path).unlink(missing_ok=True)
    checkpoint = _checkpoint(jvm, path)
    partition = jvm.java("org.apache.kafka.common.TopicPartition")("topic", JInt(0))
    kind, number = jvm.first(*CACHES), jvm.release.number
    if number < LOG_END_UP_TO:
        cache = kind(partition, None, checkpoint)
    elif number < SCHEDULER_SINCE:
        cache = kind(partition, checkpoint)
    else:
        cache = kind(partition, checkpoint, None)
    for epoch, start_offset in entries:
        cache.assign(JInt(epoch), JLong(start_offset))
    return cache


def _checkpoint(jvm: Jvm, path: str) -> Any:
    kind = jvm.first(*CHECKPOINTS)
    if jvm.release.number < CHANNEL_SINCE:
        return kind(jvm.file(path))
    return kind(jvm.file(path), jvm.first(*FAILURE_CHANNELS)(JInt(1)))


def shown_epochs(cache: Any) -> tuple[tuple[int, int], ...]:
    """Return each epoch with its first offset, the earliest first."""
    return tuple(
        (int(get(entry, "epoch")), int(get(entry, "startOffset")))
        for entry in items(cache.epochEntries())
    )
