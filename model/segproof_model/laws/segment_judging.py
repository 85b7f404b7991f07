# SPDX-License-Identifier: Apache-2.0
"""How the laws of segments read a state: its batches and entries, decoded here.

Used by: the laws of segments.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import RecordFile, scan_memory
from segproof_model.kafka.segment_recovery import Recovered
from segproof_model.language.outcomes import Raised
from segproof_model.laws.judging import (
    ABORTED_TXN,
    OFFSET_ENTRY,
    TIME_ENTRY,
    is_in_file,
    is_regular,
    is_rising,
    low_32_bits,
    never_falls,
    pairs,
    remembers_last_slot,
)
from segproof_model.laws.registry import Transition
from segproof_model.laws.remembering import remembered, remembered_by

STRUCTURE = "log-segment"
CLASS = "Kafka LogSegment, since 1.1.1"


class Batch(NamedTuple):
    """What the laws ask of one batch."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def is_judged(transition: Transition, *operations: str) -> bool:
    """Return whether it is one of these operations of a segment that is not closed."""
    before = transition.before
    is_open = isinstance(before, LogSegment) and not before.is_closed
    return is_open and transition.operation in operations


def after_of(transition: Transition) -> Any:
    """Return the segment after the operation; a recovery leaves more than that."""
    after = transition.after
    return after.segment if isinstance(after, Recovered) else after


def of_batch(batch: RecordBatch, start: int = 0) -> Batch | None:
    """Return what the laws ask of a batch, or None where a field cannot be read."""
    fields = batch.base_offset, batch.last_offset, batch.max_timestamp
    numbers = [field for field in fields if not isinstance(field, Raised)]
    if len(numbers) < len(fields):
        return None
    return Batch(start + batch.position, batch.size_bytes, *numbers)


def what_a_scan_reads(file: RecordFile) -> tuple[object, ...]:
    """Return all that the batches of a file follow from."""
    return file.image, file.start, file.size, file.is_open, file.profile, file.codecs


def batches_of(segment: Any) -> list[Batch] | None:
    """Return the batches of the log; None if they end in an error or can't be read."""
    return _batches_in(segment.log)


@remembered_by(what_a_scan_reads)
def _batches_in(file: RecordFile) -> list[Batch] | None:
    scan = file.batches()
    found = [of_batch(batch) for batch in scan.batches]
    known = [batch for batch in found if batch is not None]
    return None if scan.error is not None or len(known) < len(found) else known


def batches_in(records: bytes, segment: Any) -> list[Batch] | None:
    """Return the batches of a call of append where they will lie; None as above."""
    scan = scan_memory(records, codecs=segment.log.codecs, profile=segment.profile)
    found = [of_batch(batch, segment.size) for batch in scan.batches]
    known = [batch for batch in found if batch is not None]
    return None if scan.error is not None or len(known) < len(found) else known


def are_ordered(batches: Sequence[Batch]) -> bool:
    """Return whether each batch begins behind the one before it."""
    ends = [number for batch in batches for number in (batch.base_offset - 1, batch.last_offset)]
    spans = all(batch.base_offset <= batch.last_offset for batch in batches)
    return spans and never_falls(ends)


def key_of(segment: Any, batch: Batch) -> int:
    """Return the offset that an entry for the batch gets."""
    is_first = segment.profile.index_key == "first_offset"
    return batch.base_offset if is_first else batch.last_offset


def can_hold(segment: Any, offset: int) -> bool:
    """Return whether an index can hold the distance of an offset from the base, which wraps."""
    distance = (offset - segment.base_offset + 2**63) % 2**64 - 2**63
    lowest = 0 if segment.profile.check_relative_offset else -(2**63)
    return bool(lowest <= distance < 2**31)


def stored(segment: Any, offset: int) -> int:
    """Return the offset as an index gives it back: up to 1.1 its distance is cut to 32 bits."""
    return int(segment.base_offset + low_32_bits(offset - segment.base_offset))


def offset_entries(segment: Any) -> list[tuple[int, int]]:
    """Return (offset, position) of each entry of the offset index; none if it is not loaded."""
    index = segment.offset_index
    if index is None:
        return []
    return [(segment.base_offset + key, value) for key, value in pairs(index)]


def time_entries(segment: Any) -> list[tuple[int, int]]:
    """Return (timestamp, offset) of each entry of the time index; none if it is not loaded."""
    index = segment.time_index
    if index is None:
        return []
    return [(key, segment.base_offset + value) for key, value in pairs(index)]


def txn_entries(segment: Any) -> list[tuple[int, ...]]:
    """Return producer id, first, last and last stable offset of each aborted transaction."""
    image = segment.directory.read(segment.names[3]) or b""
    whole = len(image) // ABORTED_TXN.size * ABORTED_TXN.size
    return [numbers[1:] for numbers in ABORTED_TXN.iter_unpack(image[:whole])]


def knows_indexes(segment: Any) -> bool:
    """Return whether the entries are known: the indexes are loaded, or their files not there."""
    names = segment.names
    offset_known = segment.offset_index is not None or names[1] not in segment.directory
    time_known = segment.time_index is not None or names[2] not in segment.directory
    return offset_known and time_known


@remembered
def has_sound_offsets(segment: Any) -> bool:
    """Return whether the offset index tells the truth of an ordered log (SEG-7)."""
    batches = batches_of(segment)
    if batches is None or not are_ordered(batches) or not knows_indexes(segment):
        return False
    if batches and batches[0].base_offset < segment.base_offset:
        return False
    index = segment.offset_index
    entries = offset_entries(segment)
    if index is not None and (len(entries) != index.entries or not index.is_mapped):
        return False
    return bool(segment.log.is_open) and is_true_of(entries, batches, segment)


def is_true_of(entries: Sequence[tuple[int, int]], batches: Sequence[Batch], segment: Any) -> bool:
    """Return whether each entry points to a batch, and all before it end below the key."""
    for offset, position in entries:
        if position not in [batch.position for batch in batches]:
            return False
        if offset not in [key_of(segment, one) for one in batches if one.position >= position]:
            return False
        if any(one.last_offset >= offset for one in batches if one.position < position):
            return False
    return is_rising([offset for offset, _ in entries])


def has_regular_times(segment: Any) -> bool:
    """Return whether the time index, if it is loaded, has the entries that it counts.

    After a failed resize it has not.
    """
    index = segment.time_index
    if index is None:
        return True
    whole = is_regular(index) and is_in_file(index)
    return whole and remembers_last_slot(index)


@remembered
def has_sound_times(segment: Any) -> bool:
    """Return whether each time entry is the largest timestamp up to the batch that it names."""
    batches = batches_of(segment)
    if batches is None or not has_sound_offsets(segment):
        return False
    index = segment.time_index
    entries = time_entries(segment)
    if index is not None and (len(entries) != index.entries or not index.is_mapped):
        return False
    return all(
        (timestamp, offset) == largest_of([one for one in batches if one.last_offset <= offset])
        for timestamp, offset in entries
    )


def largest_of(batches: Sequence[Batch]) -> tuple[int, int] | None:
    """Return the largest timestamp with the last offset of the first batch that has it."""
    if not batches:
        return None
    best = max(batches, key=lambda batch: batch.max_timestamp)
    return best.max_timestamp, best.last_offset


def first_reaching(batches: Sequence[Batch], offset: int) -> Batch | None:
    """Return the first batch whose last offset is not below this one."""
    return next((batch for batch in batches if batch.last_offset >= offset), None)


def indexed_by_recovery(
    segment: Any, batches: Sequence[Batch], seen_last: Sequence[tuple[int, int]] = ()
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the entries of both indexes that a recovery of these batches builds.

    `seen_last` is the largest timestamp and last offset of a batch that ended it, if they count.
    """
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    largest, last_indexed = (-1, segment.base_offset), 0
    for batch in batches:
        if batch.max_timestamp > largest[0]:
            largest = (batch.max_timestamp, batch.last_offset)
        if batch.position - last_indexed > segment.config.index_interval_bytes:
            offsets.append((key_of(segment, batch), batch.position))
            last_indexed = batch.position
            if largest[0] > (times[-1][0] if times else -1):
                times.append(largest)
    largest = max([largest, *seen_last], key=lambda one: one[0])
    if largest[0] > (times[-1][0] if times else -1):
        times.append(largest)
    return offsets, times


def counters(segment: Any, batches: Sequence[Batch]) -> Iterator[tuple[Batch, int]]:
    """Return each batch of a call with the count of bytes that its look at the index meets."""
    count = segment.bytes_since_last_index_entry
    for batch in batches:
        yield batch, count
        is_due = count > segment.config.index_interval_bytes
        count = batch.size_bytes + (0 if is_due else count)


def is_trimmed(segment: Any, entry: Any) -> bool:
    """Return whether an index file holds its entries and nothing else."""
    is_time = entry is TIME_ENTRY
    index = segment.time_index if is_time else segment.offset_index
    image = segment.directory.read(segment.names[2 if is_time else 1]) or b""
    return index is not None and len(image) == entry.size * index.entries


def are_trimmed(segment: Any) -> bool:
    """Return whether both index files hold their entries and nothing else."""
    return is_trimmed(segment, OFFSET_ENTRY) and is_trimmed(segment, TIME_ENTRY)


def log_image(segment: Any) -> bytes:
    """Return the bytes of the log up to its logical end."""
    return bytes(segment.log.image[: segment.size])
