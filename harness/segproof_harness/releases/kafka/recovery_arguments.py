# SPDX-License-Identifier: Apache-2.0
"""What a recovery of Kafka's LogSegment teaches: a producer state and a cache of leader epochs.

Upstream: kafka.log.ProducerStateManager and kafka.server.epoch.LeaderEpochFileCache up to 3.4, the
same names in org.apache.kafka.storage.internals.{log,epoch} since.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jpype import JInt, JLong

from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.classes import storage_class
from segproof_harness.releases.kafka.log_environment import failure_channel, producer_config

CACHES = (
    "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache",
    "kafka.server.epoch.LeaderEpochFileCache",
)
CHECKPOINTS = (
    "org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile",
    "kafka.server.checkpoints.LeaderEpochCheckpointFile",
)
MAX_TRANSACTION_TIMEOUT_MS = 900_000
PRODUCER_ID_EXPIRATION_MS = 86_400_000
CONFIG_SINCE = (3, 4)
"""The first version whose producer state takes its options as an object, and a clock."""
LOG_END_UP_TO = (3, 0)
"""Below this version the cache asks a function for the log's end; a recovery does not call it."""
SCHEDULER_SINCE = (3, 8)
"""The first version whose cache takes a scheduler, which a recovery does not use."""


def make_producers(jvm: Jvm, folder: str, time: Any) -> Any:
    """Return an empty producer state over a folder without snapshots."""
    given = (_partition(jvm), jvm.file(folder), JInt(MAX_TRANSACTION_TIMEOUT_MS))
    is_old = jvm.release.number < CONFIG_SINCE
    more = () if is_old else (producer_config(jvm, PRODUCER_ID_EXPIRATION_MS), time)
    return storage_class(jvm, "ProducerStateManager")(*given, *more)


def make_epochs(jvm: Jvm, path: str, entries: Iterable[tuple[int, int]]) -> Any:
    """Return a cache with these epochs, assigned one by one, over a new file."""
    Path(path).unlink(missing_ok=True)
    channel = failure_channel(jvm)
    checkpoint = jvm.first(*CHECKPOINTS)(jvm.file(path), *(() if channel is None else (channel,)))
    number = jvm.release.number
    log_end = (None,) if number < LOG_END_UP_TO else ()
    scheduler = (None,) if number >= SCHEDULER_SINCE else ()
    cache = jvm.first(*CACHES)(_partition(jvm), *log_end, checkpoint, *scheduler)
    for epoch, start_offset in entries:
        cache.assign(JInt(epoch), JLong(start_offset))
    return cache


def _partition(jvm: Jvm) -> Any:
    return jvm.java("org.apache.kafka.common.TopicPartition")("topic", JInt(0))
