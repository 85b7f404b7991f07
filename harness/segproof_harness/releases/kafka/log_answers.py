# SPDX-License-Identifier: Apache-2.0
"""What a partition's log of Kafka answers, as the implementation's values.

Upstream: LogAppendInfo, FetchDataInfo, ProducerStateEntry, AbortedTxn, of every release.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from segproof.kafka import EpochEntry
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.producer_append_info import TxnMetadata
from segproof.kafka.producer_snapshot import BatchMetadata, ProducerStateEntry
from segproof.kafka.transaction_index import AbortedTxn
from segproof_harness.releases.kafka.classes import get, optional, txn_fields

UNKNOWN = -1
Timed = tuple[int, int, int | None]
"""Timestamp, offset and leader epoch of a record."""


class Segment(NamedTuple):
    """What is shown of a segment."""

    base_offset: int
    size: int


class Records(NamedTuple):
    """What a read has found."""

    start: int
    size: int
    data: bytes

    def size_in_bytes(self) -> int:
        """Return how many bytes there are."""
        return self.size

    def read(self) -> bytes:
        """Return the bytes."""
        return self.data


class Fetched(NamedTuple):
    """The answer of a read."""

    fetch_offset_metadata: LogOffsetMetadata
    records: Records | None
    first_entry_incomplete: bool
    aborted_transactions: tuple[AbortedTxn, ...] | None


class Producers(NamedTuple):
    """What the producer state knows."""

    active_producers: dict[int, ProducerStateEntry]
    ongoing_txns: tuple[TxnMetadata, ...]
    unreplicated_txns: tuple[TxnMetadata, ...]
    map_end_offset: int


class Epochs(NamedTuple):
    """What the cache of leader epochs knows."""

    entries: tuple[EpochEntry, ...]

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """Return the entries."""
        return self.entries


def each(found: Any) -> Iterator[Any]:
    """Go through a collection of Java or Scala."""
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _long(found: Any) -> int | None:
    """Return what an option of a number holds."""
    value = optional(found)
    return None if value is None else int(value)


# --- appending and reading -----------------------------------------------------------------------


def append_info(jvm: Any, info: Any) -> tuple[int, ...]:
    """Return what became of an append."""
    has_last = jvm.release.number >= (2,)
    first = get(info, "firstOffset")
    if not isinstance(first, int):
        first = optional(first)
        first = UNKNOWN if first is None else getattr(first, "messageOffset", first)
        first = first() if callable(first) else first
    return (
        int(first),
        *(
            int(get(info, name)) if hasattr(info, name) else UNKNOWN
            for name in (
                "lastOffset",
                "maxTimestamp",
                "logAppendTime",
                "logStartOffset",
                "validBytes",
            )
        ),
        int(jvm.field(info, "lastOffsetOfFirstBatch")) if has_last else UNKNOWN,
    )


def metadata(found: Any) -> LogOffsetMetadata:
    """Return an offset with its place."""
    names = ("messageOffset", "segmentBaseOffset", "relativePositionInSegment")
    return LogOffsetMetadata(*(int(get(found, name)) for name in names))


def fetched(jvm: Any, info: Any, segments: Iterable[Any]) -> Fetched:
    """Return what a read has found; `segments` are all of the log."""
    place = metadata(get(info, "fetchOffsetMetadata"))
    knows_aborted = hasattr(info, "abortedTransactions")
    aborted = optional(get(info, "abortedTransactions")) if knows_aborted else None
    return Fetched(
        place,
        _records(jvm, get(info, "records")),
        bool(get(info, "firstEntryIncomplete")),
        None if aborted is None else _whole(each(aborted), place.segment_base_offset, segments),
    )


def _records(jvm: Any, records: Any) -> Records | None:
    """Return the bytes; None for the empty records that stand for nothing to read."""
    if str(records.getClass().getSimpleName()) != "FileRecords":
        return None
    size = int(records.sizeInBytes())
    buffer = jvm.java("java.nio.ByteBuffer").allocate(size)
    records.readInto(buffer, 0)
    return Records(int(jvm.field(records, "start")), size, bytes(buffer.array())[: buffer.limit()])


def _whole(
    aborted: Iterable[Any], base_offset: int, segments: Iterable[Any]
) -> tuple[AbortedTxn, ...]:
    """Return aborted transactions with all their fields.

    A read answers but producer and first offset; the rest is in the transaction indexes, in the
    same order.
    """
    known = iter(
        [
            AbortedTxn(*fields)
            for segment in segments
            if segment.baseOffset() >= base_offset
            for fields in map(txn_fields, each(segment.txnIndex().allAbortedTxns()))
        ]
    )
    pairs = [(int(get(one, "producerId")), int(get(one, "firstOffset"))) for one in aborted]
    found = []
    for pair in pairs:
        found.append(next(one for one in known if one[1:3] == pair))
    return tuple(found)


def timestamp_and_offset(found: Any) -> Timed | None:
    """Return what a search by timestamp has found."""
    if hasattr(found, "timestampAndOffsetOpt"):
        found = found.timestampAndOffsetOpt()
    found = optional(found)
    if found is None:
        return None
    epoch = _long(get(found, "leaderEpoch")) if hasattr(found, "leaderEpoch") else None
    return int(get(found, "timestamp")), int(get(found, "offset")), epoch


# --- what the log knows --------------------------------------------------------------------------


def producers(jvm: Any, manager: Any) -> Producers:
    """Return what a producer state knows."""
    entries = (_entry(get(one, name)) for one, name in _values(manager.activeProducers()))
    return Producers(
        {entry.producer_id: entry for entry in entries},
        _txns(jvm.field(manager, "ongoingTxns")),
        _txns(jvm.field(manager, "unreplicatedTxns")),
        int(manager.mapEndOffset()),
    )


def _values(found: Any) -> Iterator[tuple[Any, str]]:
    """Go through the entries of a map of Java or Scala, with the name of their value."""
    if hasattr(found, "entrySet"):
        return ((entry, "getValue") for entry in each(found.entrySet()))
    return ((entry, "_2") for entry in each(found))


def _entry(found: Any) -> ProducerStateEntry:
    if not hasattr(found, "batchMetadata"):
        return _flat_entry(found)
    return ProducerStateEntry(
        int(get(found, "producerId")),
        int(get(found, "producerEpoch")),
        int(get(found, "coordinatorEpoch")),
        int(get(found, "lastTimestamp")),
        _long(get(found, "currentTxnFirstOffset")),
        tuple(_batch(one) for one in each(get(found, "batchMetadata"))),
    )


def _flat_entry(found: Any) -> ProducerStateEntry:
    """Return an entry of a release that remembers one batch of a producer, and no other time."""
    batch = _batch(found)
    return ProducerStateEntry(
        int(get(found, "producerId")),
        int(get(found, "producerEpoch")),
        int(get(found, "coordinatorEpoch")),
        batch.timestamp,
        _long(get(found, "currentTxnFirstOffset")),
        (batch,),
    )


def _batch(found: Any) -> BatchMetadata:
    names = ("lastSeq", "lastOffset", "offsetDelta", "timestamp")
    return BatchMetadata(*(int(get(found, name)) for name in names))


def _txns(found: Any) -> tuple[TxnMetadata, ...]:
    return tuple(
        TxnMetadata(
            int(get(one, "producerId")),
            int(get(get(one, "firstOffset"), "messageOffset")),
            _long(get(one, "lastOffset")),
        )
        for one in each(found.values())
    )


def epochs(cache: Any) -> Epochs:
    """Return what a cache of leader epochs knows."""
    return Epochs(
        tuple(
            EpochEntry(int(get(one, "epoch")), int(get(one, "startOffset")))
            for one in each(cache.epochEntries())
        )
    )
