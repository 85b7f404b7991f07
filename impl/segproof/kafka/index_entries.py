# SPDX-License-Identifier: Apache-2.0
"""Which index entries appended or recovered batches get, and whether the indexes would take them.

An append plans its entries first, asks the indexes, writes the batches, and stores the entries
last: so an entry that an index would refuse is known before anything is written.

Upstream: Kafka 4.3.1: LogSegment.append, recover.
Laws: SEG-4 to SEG-10, SEG-22, SEG-23, SEG-25, SEG-26.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    SegmentOffsetOverflowError,
    SegproofError,
)
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.kafka.batch_table import BatchTable, HeaderTable, read_batch_headers
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.record_batch import read_batch
from segproof.kafka.record_file import RecordFile, scan_memory
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kernels.index_rules import APPEND_NOTHING, APPEND_STORE, offset_append, time_append
from segproof.kernels.segment_rules import fits_segment, indexed_batches
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES, LOG_OVERHEAD_BYTES

Int64Array = NDArray[np.int64]
_HEADER = BATCH.struct(only=("base_offset", "size", "magic", "last_offset_delta", "max_timestamp"))
_V2_SIZE = BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES
_PIECE_BYTES = 1 << 20


class BatchFacts(NamedTuple):
    """What indexing wants to know of a batch."""

    max_timestamp: int
    last_offset: int
    size_bytes: int


class IndexEntry(NamedTuple):
    """An entry of the offset index and, with it, the largest timestamp so far."""

    offset: int
    position: int
    max_pair: TimestampOffset


def facts_of(records: bytes) -> list[BatchFacts]:
    """Return what there is to know of the batches of some records, in their order.

    Raises: CorruptRecordError as the scanner of records in memory, and for a batch smaller than its
    header.
    """
    facts, position, end = [], 0, len(records)
    while end - position >= BATCH_HEADER_BYTES:
        base, size, magic, delta, max_timestamp = _HEADER.unpack_from(records, position)
        behind, last_offset = position + LOG_OVERHEAD_BYTES + size, base + delta
        if magic != 2 or size < _V2_SIZE or behind > end or last_offset > INT64_MAX:
            return _facts_of_any(records)
        facts.append(BatchFacts(max_timestamp, last_offset, size + LOG_OVERHEAD_BYTES))
        position = behind
    return facts if position == end else _facts_of_any(records)


def _facts_of_any(records: bytes) -> list[BatchFacts]:
    facts = []
    for batch in scan_memory(records):
        if batch.magic >= 2 and batch.size_bytes < BATCH_HEADER_BYTES:
            raise smaller_than_header(batch.position)
        facts.append(BatchFacts(batch.max_timestamp, batch.last_offset, batch.size_bytes))
    return facts


def smaller_than_header(position: int) -> CorruptRecordError:
    """Return the error for a batch of some records that can't even hold its header."""
    return CorruptRecordError(
        "a batch is smaller than its header",
        law="BATCH-14",
        position=position,
        expected=f"at least {BATCH_HEADER_BYTES} bytes",
    )


class Indexing(NamedTuple):
    """How batches get entries, and what is known of those before them."""

    interval: int
    """A batch gets an entry if more bytes than these lie between the last indexed one and it."""
    bytes_since: int
    """Bytes since the last indexed batch, that included."""
    max_pair: TimestampOffset
    """The largest timestamp so far."""
    is_first_offset_key: bool
    """Whether entries have first offsets. Reading one raises SegproofError where it lies inside an
    old compressed message that can't be read."""


Plan = tuple[list[IndexEntry], int, TimestampOffset]
"""The entries of an append, the bytes since the last indexed batch after it, the largest pair."""


def plan_batches(
    records: bytes, position: int, before: Indexing, entries: list[IndexEntry]
) -> Plan:
    """Fill and return the entries of batches that begin at `position`; each batch may get one.

    What reading a first offset raises leaves the entries before it. Laws: SEG-4, SEG-26.
    """
    interval, bytes_since, max_pair, is_first_offset_key = before
    start = position
    for max_timestamp, last_offset, size_bytes in facts_of(records):
        if max_timestamp > max_pair.timestamp:
            max_pair = TimestampOffset(max_timestamp, last_offset)
        if bytes_since > interval:
            key = last_offset
            if is_first_offset_key:
                key = read_batch(records, position - start).base_offset
            entries.append(IndexEntry(key, position, max_pair))
            bytes_since = 0
        position += size_bytes
        bytes_since += size_bytes
    return entries, bytes_since, max_pair


def plan_append(
    records: bytes,
    position: int,
    before: Indexing,
    largest_offset: int,
    given: tuple[int | None, int | None],
) -> Plan:
    """Return the one entry, if any, of an append of these records.

    It has the largest offset, or the first one. `given` is the largest timestamp and its offset;
    None: those of the batches. Laws: SEG-4, SEG-5.
    """
    interval, bytes_since, max_pair, is_first_offset_key = before
    timestamp, offset = given
    largest = max(facts_of(records), key=lambda one: one.max_timestamp, default=None)
    if timestamp is None and largest is not None:
        timestamp = largest.max_timestamp
    if offset is None and largest is not None:
        offset = largest.last_offset
    if timestamp is not None and offset is not None and timestamp > max_pair.timestamp:
        max_pair = TimestampOffset(timestamp, offset)
    if bytes_since <= interval:
        return [], bytes_since + len(records), max_pair
    key = largest_offset
    if is_first_offset_key and largest is not None:
        key = read_batch(records).base_offset
    return [IndexEntry(key, position, max_pair)], len(records), max_pair


def piece_of(records: RecordFile, position: int, base_offset: int) -> tuple[int, int]:
    """Return the last offset and the bytes of the batches that are copied at once.

    At most 1 MiB, or one batch, and only batches that fit a segment with this base offset.
    """
    last_offset, size = -1, 0
    for batch in records.batches(position):
        if not fits_segment(batch.last_offset, base_offset):
            break
        if size and size + batch.size_bytes >= _PIECE_BYTES:
            break
        last_offset, size = batch.last_offset, size + batch.size_bytes
    return last_offset, size


def check_room_after_truncation(
    offset_index: OffsetIndex, time_index: TimeIndex, offset: int
) -> None:
    """Return if the entries below `offset` fit the full size of each index.

    Raises: InvalidArgumentError otherwise.
    """
    for index in (offset_index, time_index):
        room = index.max_index_size_bytes // index.ENTRY_SIZE
        kept = index.entries_below(offset) if index.entries > room else 0
        if kept > room:
            raise InvalidArgumentError(
                f"{index.max_index_size_bytes} bytes do not hold the {kept} entries that stay",
                law="ABSIDX-9",
                path=index.file,
                expected=f"at least {kept * index.ENTRY_SIZE}",
                actual=index.max_index_size_bytes,
            )


def segment_overflow(offset: int, base_offset: int, path: str) -> SegmentOffsetOverflowError:
    """Return the error for an offset that does not fit into the segment."""
    return SegmentOffsetOverflowError(
        f"offset {offset} cannot be told from the base offset {base_offset} in 31 bits",
        law="SEG-2",
        path=path,
        expected=f"{base_offset} to {base_offset + INT32_MAX}",
        actual=offset,
        hint="roll a new segment, or split this one",
    )


def check_entries(
    offset_index: OffsetIndex, time_index: TimeIndex, entries: Sequence[IndexEntry]
) -> None:
    """Return if both indexes would take the entries, else raise what the first refused one raises.

    Nothing is stored.
    """
    base = offset_index.base_offset
    count, last_offset = offset_index.entries, offset_index.last_offset
    times, last_time = time_index.entries, time_index.last_entry
    for number, (offset, position, pair) in enumerate(entries):
        verdict = offset_append(count, offset_index.max_entries, last_offset, base, offset)
        if verdict != APPEND_STORE or position > INT32_MAX:
            # The last of these is refused, so none is stored.
            rows = entries[: number + 1]
            offset_index.append_many([row.offset for row in rows], [row.position for row in rows])
            raise AssertionError("the offset index took what its rules refuse")
        verdict = time_append(times, time_index.length, *last_time, base, *pair, False)
        if verdict == APPEND_STORE:
            times, last_time = times + 1, pair
        elif verdict != APPEND_NOTHING:
            pairs = [row.max_pair for row in entries[: number + 1]]
            time_index.maybe_append_many(
                [one.timestamp for one in pairs], [one.offset for one in pairs]
            )
            raise AssertionError("the time index took what its rules refuse")
        count, last_offset = count + 1, offset


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of many batches, as arrays of one length, and what they leave behind."""

    offsets: Int64Array
    positions: Int64Array
    timestamps: Int64Array
    """The largest timestamp up to each entry's batch, that included, in ms."""
    timestamp_offsets: Int64Array
    """The last offset of the first batch that has it."""
    bytes_since: int
    """Bytes since the last indexed batch, that included."""
    max_pair: TimestampOffset
    """The largest timestamp after the last batch."""

    def row(self, number: int) -> IndexEntry:
        """Return one entry."""
        pair = TimestampOffset(int(self.timestamps[number]), int(self.timestamp_offsets[number]))
        return IndexEntry(int(self.offsets[number]), int(self.positions[number]), pair)

    def rows(self) -> list[IndexEntry]:
        """Return all entries."""
        return [self.row(number) for number in range(len(self.offsets))]


def plan_table(
    table: BatchTable, before: Indexing, first_offset: Callable[[int], int], start: int = 0
) -> Entries:
    """Return the entries of the batches of a header table.

    Positions are those of the table plus `start`. `first_offset` tells that of a row whose header
    does not, where it is asked for (BATCH-12).
    """
    interval, bytes_since, max_pair, is_first_offset_key = before
    sizes = np.ascontiguousarray(table["size_bytes"])
    rows = np.empty(len(table), np.int64)
    indexed_batches.announce(len(table) // 8)
    count, bytes_since = indexed_batches(sizes.data, len(table), interval, bytes_since, rows.data)
    rows = rows[:count]
    timestamps, last_offsets = table["max_timestamp"], table["last_offset"]
    so_far = np.maximum.accumulate(np.concatenate(([max_pair.timestamp], timestamps)))
    # The batch that has the largest timestamp so far: the first of those that share it.
    holders = np.where(timestamps > so_far[:-1], np.arange(len(table)), -1)
    holders = np.maximum.accumulate(holders)
    offsets_so_far = np.where(holders >= 0, last_offsets[holders], max_pair.offset)
    if len(table):
        max_pair = TimestampOffset(int(so_far[-1]), int(offsets_so_far[-1]))
    return Entries(
        _keys(table, rows, first_offset if is_first_offset_key else None),
        table["position"][rows] + start,
        so_far[1:][rows],
        offsets_so_far[rows],
        int(bytes_since),
        max_pair,
    )


def _keys(
    table: BatchTable, rows: Int64Array, first_offset: Callable[[int], int] | None
) -> Int64Array:
    if first_offset is None:
        keys: Int64Array = table["last_offset"][rows]
        return keys
    keys = table["base_offset"][rows]
    for number in np.flatnonzero(table["record_count"][rows] == -1).tolist():
        if table["magic"][rows[number]] < 2:
            keys[number] = first_offset(int(rows[number]))
    return keys


def plan_many(
    records: bytes,
    log: RecordFile,
    offset_index: OffsetIndex,
    time_index: TimeIndex,
    before: Indexing,
) -> Entries:
    """Return the index entries of ready batches that would be appended to the log.

    Raises: CorruptRecordError unless the buffer holds whole batches; SegmentOffsetOverflowError and
    what reading a first offset raises, or before it what an index raises that takes no entry.
    """
    found = read_batch_headers(records)
    _check_whole(found, len(records))
    base_offset = offset_index.base_offset
    distances = found.table["last_offset"] - base_offset  # wraps at 64 bits, as upstream
    far = (distances < 0) | (distances > INT32_MAX)
    first_far = int(np.argmax(far)) if bool(far.any()) else len(far)
    table = found.table[:first_far]

    asked_row = 0

    def first_offset(row: int) -> int:
        nonlocal asked_row
        asked_row = row
        return read_batch(records, int(table["position"][row])).base_offset

    asked = before, first_offset, log.size_in_bytes()
    try:
        plan = plan_table(table, *asked)
    except SegproofError:
        check_entries(offset_index, time_index, plan_table(table[:asked_row], *asked).rows())
        raise
    if first_far < len(far):
        check_entries(offset_index, time_index, plan.rows())
        last_offset = int(found.table["last_offset"][first_far])
        raise segment_overflow(last_offset, base_offset, log.name)
    return plan


def _check_whole(found: HeaderTable, size_bytes: int) -> None:
    """Return if the batches fill the buffer and none is smaller than its header."""
    if isinstance(found.error, CorruptRecordError):
        raise found.error
    if found.error is not None:  # where a log would end inside of a header, a batch does
        raise smaller_than_header(found.end_position)
    table = found.table
    small = (table["magic"] == 2) & (table["size_bytes"] < BATCH_HEADER_BYTES)
    if bool(small.any()):
        raise smaller_than_header(int(table["position"][int(np.argmax(small))]))
    if found.end_position != size_bytes:
        raise CorruptRecordError(
            "the last batch is cut off",
            law="SCAN-9",
            position=found.end_position,
            expected=f"a batch that ends at {size_bytes}",
        )


def entries_fit(offset_index: OffsetIndex, time_index: TimeIndex, entries: Entries) -> bool:
    """Return whether both indexes surely take the entries; where False, ask them one by one."""
    count = len(entries.offsets)
    if not count:
        return True
    base, last = offset_index.base_offset, time_index.last_entry
    if offset_index.entries + count > offset_index.max_entries:
        return False
    if time_index.entries + count > time_index.max_entries - 2:
        return False
    for offsets in (entries.offsets, entries.timestamp_offsets):
        least, largest = int(offsets.min()), int(offsets.max())
        if least < base or largest - base > INT32_MAX:
            return False
    follows = not offset_index.entries or int(entries.offsets[0]) > offset_index.last_offset
    if time_index.entries:
        follows &= int(entries.timestamp_offsets[0]) >= last.offset
        follows &= int(entries.timestamps[0]) >= last.timestamp
    return (
        follows
        and int(entries.positions[-1]) <= INT32_MAX
        and bool((np.diff(entries.offsets) > 0).all())
        and bool((np.diff(entries.timestamp_offsets) >= 0).all())
    )


def store_entries(offset_index: OffsetIndex, time_index: TimeIndex, entries: Entries) -> None:
    """Store entries that fit."""
    if len(entries.offsets):
        offset_index.append_many(entries.offsets, entries.positions)
        time_index.maybe_append_many(entries.timestamps, entries.timestamp_offsets)


def store_each(offset_index: OffsetIndex, time_index: TimeIndex, entries: Entries) -> None:
    """Store the entries one by one, as upstream does, up to the first that is refused.

    Raises: what storing that one raises.
    """
    for offset, position, pair in entries.rows():
        offset_index.append(offset, position)
        time_index.maybe_append(*pair)
