# SPDX-License-Identifier: Apache-2.0
"""Kafka's ProducerStateManager, made for a recovery, and what it then knows in plain form.

Upstream: kafka.log.ProducerStateManager up to 3.4, the same name in
org.apache.kafka.storage.internals.log since.
"""

from collections.abc import Iterator
from typing import Any

from jpype import JBoolean, JInt

from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.classes import get, items, optional, storage_class

__all__ = ["make_producers", "shown_producers"]

MAX_TRANSACTION_TIMEOUT_MS = 900_000
PRODUCER_ID_EXPIRATION_MS = 86_400_000
CONFIG_SINCE = (3, 4)
"""The first version that takes its options as an object, and a clock."""
VERIFICATION_SINCE = (3, 6)
"""The first version whose options say whether transactions are verified."""


def make_producers(jvm: Jvm, folder: str, time: Any) -> Any:
    """Return an empty producer state over a folder without snapshots."""
    partition = jvm.java("org.apache.kafka.common.TopicPartition")("topic", JInt(0))
    timeout = JInt(MAX_TRANSACTION_TIMEOUT_MS)
    kind = storage_class(jvm, "ProducerStateManager")
    if jvm.release.number < CONFIG_SINCE:
        return kind(partition, jvm.file(folder), timeout)
    options = [JInt(PRODUCER_ID_EXPIRATION_MS)]
    if jvm.release.number >= VERIFICATION_SINCE:
        options.append(JBoolean(False))
    config = storage_class(jvm, "ProducerStateManagerConfig")(*options)
    return kind(partition, jvm.file(folder), timeout, config, time)


def shown_producers(jvm: Jvm, producers: Any) -> tuple[Any, ...]:
    """Return entries by producer id, open and unreplicated transactions, and the end of the map."""
    return (
        tuple(sorted(map(_entry, _values(producers.activeProducers())))),
        tuple(_transaction(one) for one in jvm.field(producers, "ongoingTxns").values()),
        tuple(_transaction(one) for one in jvm.field(producers, "unreplicatedTxns").values()),
        int(producers.mapEndOffset()),
    )


def _values(known: Any) -> Iterator[Any]:
    """Return the values of a map of Java or of Scala, whose collection of them is not public."""
    if not hasattr(known, "valuesIterator"):
        yield from known.values()
        return
    steps = known.valuesIterator()
    while steps.hasNext():
        yield steps.next()


def _entry(real: Any) -> tuple[Any, ...]:
    first_offset = optional(real.currentTxnFirstOffset())
    has_batches = hasattr(real, "batchMetadata")
    return (
        int(real.producerId()),
        int(real.producerEpoch()),
        int(real.coordinatorEpoch()),
        int(real.lastTimestamp() if has_batches else real.timestamp()),
        None if first_offset is None else int(first_offset),
        tuple(map(_batch, items(real.batchMetadata()))) if has_batches else _only_batch(real),
    )


def _only_batch(real: Any) -> tuple[tuple[int, ...], ...]:
    """Return the one batch that an entry of 0.11 is."""
    names = ("lastSeq", "lastOffset", "offsetDelta", "timestamp")
    return (tuple(int(getattr(real, name)()) for name in names),)


def _batch(real: Any) -> tuple[int, ...]:
    names = ("lastSeq", "lastOffset", "offsetDelta", "timestamp")
    return tuple(int(get(real, name)) for name in names)


def _transaction(real: Any) -> tuple[Any, ...]:
    last_offset = optional(get(real, "lastOffset"))
    return (
        int(get(real, "producerId")),
        int(get(get(real, "firstOffset"), "messageOffset")),
        None if last_offset is None else int(last_offset),
    )
