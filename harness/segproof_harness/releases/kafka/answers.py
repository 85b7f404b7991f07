# SPDX-License-Identifier: Apache-2.0
"""What Kafka's logs, segments and files answer, as the implementation's values.

Upstream: LogAppendInfo, FetchDataInfo, ProducerStateEntry, AbortedTxn, of every release.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from jpype import JInt

from segproof.kafka import EpochEntry
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.producer_append_info import TxnMetadata
from segproof.kafka.producer_snapshot import BatchMetadata, ProducerStateEntry
from segproof.kafka.transaction_index import AbortedTxn
from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.kafka.classes import get, items, optional
from segproof_harness.releases.kafka.records import bytes_of, java_errors

UNKNOWN = -1
Timed = tuple[int, int, int | None]
"""Timestamp, offset and leader epoch of a record."""


class Segment(NamedTuple):
    """What is shown of a segment."""

    base_offset: int
    size: int


class Slice:
    """A slice of a log's file, which a read has found."""

    def __init__(self, jvm: Jvm, real: Any) -> None:
        self.start = int(jvm.field(real, "start"))
        self._jvm = jvm
        self._real = real

    def size_in_bytes(self) -> int:
        """Call sizeInBytes."""
        return int(self._real.sizeInBytes())

    def read(self) -> bytes | None:
        """Read all of it by readInto."""
        with java_errors():
            buffer = self._jvm.java("java.nio.ByteBuffer").allocate(max(0, self.size_in_bytes()))
            self._real.readInto(buffer, JInt(0))
        return bytes_of(buffer)


class Fetched(NamedTuple):
    """The answer of a read."""

    fetch_offset_metadata: LogOffsetMetadata
    records: Slice | None
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


def _long(found: Any) -> int | None:
    """Return what an option of a number holds."""
    value = optional(found)
    return None if value is None else int(value)


# --- appending and reading -----------------------------------------------------------------------


def append_info(jvm: Any, info: Any) -> tuple[int, ...]:
    """Return what became of an append."""
    has_last = jvm.release.number >= (2,)
    first = optional(get(info, "firstOffset"))
    if hasattr(first, "messageOffset"):
        first = get(first, "messageOffset")
    names = ("lastOffset", "maxTimestamp", "logAppendTime", "logStartOffset", "validBytes")
    return (
        UNKNOWN if first is None else int(first),
        *(int(get(info, name)) if hasattr(info, name) else UNKNOWN for name in names),
        int(jvm.field(info, "lastOffsetOfFirstBatch")) if has_last else UNKNOWN,
    )


def _metadata(found: Any) -> LogOffsetMetadata:
    """Return an offset with its place."""
    names = ("messageOffset", "segmentBaseOffset", "relativePositionInSegment")
    return LogOffsetMetadata(*(int(get(found, name)) for name in names))


def fetched(jvm: Jvm, info: Any, segments: Iterable[Any] = ()) -> Fetched:
    """Return what a read has found; `segments` are all of the log."""
    place, records = _metadata(get(info, "fetchOffsetMetadata")), get(info, "records")
    knows_aborted = hasattr(info, "abortedTransactions")
    aborted = optional(get(info, "abortedTransactions")) if knows_aborted else None
    return Fetched(
        place,
        Slice(jvm, records) if hasattr(records, "channel") else None,
        bool(get(info, "firstEntryIncomplete")),
        None if aborted is None else _whole(items(aborted), place.segment_base_offset, segments),
    )


def _whole(
    aborted: Iterable[Any], base_offset: int, segments: Iterable[Any]
) -> tuple[AbortedTxn, ...]:
    """Return aborted transactions with all their fields.

    A read answers but producer and first offset; the rest is in the transaction indexes, in the
    same order.
    """
    known = iter(
        [
            found
            for segment in segments
            if segment.baseOffset() >= base_offset
            for found in aborted_txns(segment.txnIndex().allAbortedTxns())
        ]
    )
    pairs = [(int(get(one, "producerId")), int(get(one, "firstOffset"))) for one in aborted]
    return tuple(next(one for one in known if one[1:3] == pair) for pair in pairs)


def aborted_txns(found: Any) -> tuple[AbortedTxn, ...]:
    """Return aborted transactions; since 4.4 they have no version but 0."""
    names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
    return tuple(
        AbortedTxn(
            int(one.version()) if hasattr(one, "version") else 0,
            *(int(getattr(one, name)()) for name in names),
        )
        for one in items(found)
    )


def collected(found: Any) -> tuple[tuple[AbortedTxn, ...], bool]:
    """Return the aborted transactions that an index has found, and whether these are all."""
    return aborted_txns(get(found, "abortedTransactions")), bool(get(found, "isComplete"))


def found_place(found: Any) -> tuple[int, int, int] | None:
    """Return offset, position and size of the batch that a search by offset has found."""
    return None if found is None else (int(found.offset), int(found.position), int(found.size))


def timestamp_and_offset(found: Any) -> Timed | None:
    """Return what a search by timestamp has found."""
    has_more = hasattr(found, "timestampAndOffsetOpt")
    found = optional(found.timestampAndOffsetOpt() if has_more else found)
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
        return ((entry, "getValue") for entry in items(found.entrySet()))
    return ((entry, "_2") for entry in items(found))


def _entry(found: Any) -> ProducerStateEntry:
    """Return an entry; in 0.11 it is one batch, and has no other time than that of the batch."""
    has_batches = hasattr(found, "batchMetadata")
    batches = items(get(found, "batchMetadata")) if has_batches else (found,)
    return ProducerStateEntry(
        int(get(found, "producerId")),
        int(get(found, "producerEpoch")),
        int(get(found, "coordinatorEpoch")),
        int(get(found, "lastTimestamp" if has_batches else "timestamp")),
        _long(get(found, "currentTxnFirstOffset")),
        tuple(map(_batch, batches)),
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
        for one in items(found.values())
    )


def epochs(cache: Any) -> Epochs:
    """Return what a cache of leader epochs knows."""
    return Epochs(
        tuple(
            EpochEntry(int(get(one, "epoch")), int(get(one, "startOffset")))
            for one in items(cache.epochEntries())
        )
    )
