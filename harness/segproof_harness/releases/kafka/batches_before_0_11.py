# SPDX-License-Identifier: Apache-2.0
"""Batches of the releases before 0.11, which call them entries, with the names of later releases.

An entry is one message, or a wrapper of messages. It has no producer, no epoch and no count.

Upstream: LogEntry, Record, ByteBufferLogInputStream and FileRecords of 0.10.2.
"""

from collections.abc import Iterator
from typing import Any

from jpype import JInt

from segproof_harness.releases.jvm import invoked, reflected


class EntryRecord:
    """A message as later releases have a record."""

    def __init__(self, real: Any) -> None:
        self.offset = real.offset
        self.timestamp = real.record().timestamp
        self.key = real.record().key
        self.value = real.record().value

    def headers(self) -> tuple[()]:
        """Return none: there are no headers."""
        return ()

    def sequence(self) -> int:
        """Return -1: there are no sequence numbers."""
        return -1


OF_ENTRY = {
    **{name: name for name in ("position", "magic", "sizeInBytes", "nextOffset", "writeTo")},
    "baseOffset": "firstOffset",
    "lastOffset": "offset",
}
"""What an entry is asked of, by the name that a batch has for it."""
OF_RECORD = {
    **{name: name for name in ("checksum", "compressionType", "timestampType")},
    **{name: name for name in ("isValid", "ensureValid")},
    "maxTimestamp": "timestamp",
}
"""What its record is asked of."""
UNKNOWN = {
    "countOrNull": None,
    **dict.fromkeys(("partitionLeaderEpoch", "producerId", "producerEpoch"), -1),
    **dict.fromkeys(("baseSequence", "lastSequence"), -1),
    **dict.fromkeys(("isTransactional", "isControlBatch"), False),
}
"""What an entry does not know."""


class Entry:
    """An entry as later releases have a batch."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __iter__(self) -> Iterator[EntryRecord]:
        """Iterate over the messages of a wrapper; any other entry is its only message."""
        return map(EntryRecord, self._real)

    def __getattr__(self, name: str) -> Any:
        """Return a method of a batch."""
        if name in OF_ENTRY:
            return getattr(self._real, OF_ENTRY[name])
        if name in OF_RECORD:
            return lambda: getattr(self._real.record(), OF_RECORD[name])()
        if name in UNKNOWN:
            return lambda: UNKNOWN[name]
        raise AttributeError(name)


def batches_of(records: Any) -> Iterator[Any]:
    """Return the batches of records in memory or in a file, whatever they are called."""
    if hasattr(records, "batches"):
        return iter(records.batches())
    return map(Entry, records.shallowEntries())


def batches_from(kind: Any, records: Any, start: int) -> Iterator[Any]:
    """Return the batches of a file from a position on; `kind` is its class."""
    if hasattr(records, "batches"):
        return iter(invoked(reflected(kind, "batchesFrom", JInt), records, JInt(start)))
    entries = invoked(reflected(kind, "shallowEntriesFrom", JInt), records, JInt(start))
    return map(Entry, entries)


def next_batch(stream: Any) -> Any:
    """Return the next batch of a scanner of records in memory, or None."""
    if hasattr(stream, "nextBatch"):
        return stream.nextBatch()
    found = stream.nextEntry()
    return None if found is None else Entry(found)
