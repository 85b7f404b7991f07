# SPDX-License-Identifier: Apache-2.0
"""Batches of the releases before 0.11, which call them entries, with the names of later releases.

An entry is one message, or a wrapper of messages. It has no producer, no epoch and no count.

Upstream: LogEntry, Record, ByteBufferLogInputStream and FileRecords of 0.10.2.
"""

from collections.abc import Iterator
from typing import Any

from jpype import JInt

from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.reflection import invoked, reflected

__all__ = ["Entry", "batches_from", "batches_of", "next_batch"]


class EntryRecord:
    """A message as later releases have a record."""

    def __init__(self, real: Any) -> None:
        self._entry = real
        self._record = real.record()

    def offset(self) -> Any:
        """Call offset."""
        return self._entry.offset()

    def timestamp(self) -> Any:
        """Call timestamp."""
        return self._record.timestamp()

    def key(self) -> Any:
        """Call key."""
        return self._record.key()

    def value(self) -> Any:
        """Call value."""
        return self._record.value()

    def headers(self) -> tuple[()]:
        """Return none: there are no headers."""
        return ()

    def sequence(self) -> int:
        """Return -1: there are no sequence numbers."""
        return -1


class Entry:
    """An entry as later releases have a batch."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __iter__(self) -> Iterator[EntryRecord]:
        """Iterate over the messages of a wrapper; any other entry is its only message."""
        return map(EntryRecord, self._real)

    def position(self) -> Any:
        """Call position, of an entry in a file."""
        return self._real.position()

    def magic(self) -> Any:
        """Call magic."""
        return self._real.magic()

    def sizeInBytes(self) -> Any:  # noqa: N802 - Kafka's name
        """Call sizeInBytes."""
        return self._real.sizeInBytes()

    def baseOffset(self) -> Any:  # noqa: N802 - Kafka's name
        """Call firstOffset."""
        return self._real.firstOffset()

    def lastOffset(self) -> Any:  # noqa: N802 - Kafka's name
        """Call offset."""
        return self._real.offset()

    def nextOffset(self) -> Any:  # noqa: N802 - Kafka's name
        """Call nextOffset."""
        return self._real.nextOffset()

    def checksum(self) -> Any:
        """Call checksum."""
        return self._real.record().checksum()

    def compressionType(self) -> Any:  # noqa: N802 - Kafka's name
        """Call compressionType."""
        return self._real.record().compressionType()

    def timestampType(self) -> Any:  # noqa: N802 - Kafka's name
        """Call timestampType."""
        return self._real.record().timestampType()

    def maxTimestamp(self) -> Any:  # noqa: N802 - Kafka's name
        """Call timestamp."""
        return self._real.record().timestamp()

    def isValid(self) -> Any:  # noqa: N802 - Kafka's name
        """Call isValid."""
        return self._real.record().isValid()

    def ensureValid(self) -> None:  # noqa: N802 - Kafka's name
        """Call ensureValid."""
        self._real.record().ensureValid()

    def writeTo(self, buffer: Any) -> None:  # noqa: N802 - Kafka's name
        """Call writeTo."""
        self._real.writeTo(buffer)

    def countOrNull(self) -> None:  # noqa: N802 - Kafka's name
        """Return nothing: an entry has no count."""

    def _minus_one(self) -> int:
        return -1

    def _no(self) -> bool:
        return False

    partitionLeaderEpoch = producerId = producerEpoch = _minus_one  # noqa: N815 - Kafka's names
    baseSequence = lastSequence = _minus_one  # noqa: N815 - Kafka's names
    isTransactional = isControlBatch = _no  # noqa: N815 - Kafka's names


def batches_of(records: Any) -> Iterator[Any]:
    """Return the batches of records in memory or in a file, whatever they are called."""
    if hasattr(records, "batches"):
        return iter(records.batches())
    return map(Entry, records.shallowEntries())


def batches_from(jvm: Jvm, kind: Any, records: Any, start: int) -> Iterator[Any]:
    """Return the batches of a file from a position on; `kind` is its class."""
    number = jvm.java("java.lang.Integer").TYPE
    if hasattr(records, "batches"):
        return iter(invoked(reflected(kind, "batchesFrom", number), records, JInt(start)))
    entries = invoked(reflected(kind, "shallowEntriesFrom", number), records, JInt(start))
    return map(Entry, entries)


def next_batch(stream: Any) -> Any:
    """Return the next batch of a scanner of records in memory, or None."""
    if hasattr(stream, "nextBatch"):
        return stream.nextBatch()
    found = stream.nextEntry()
    return None if found is None else Entry(found)
