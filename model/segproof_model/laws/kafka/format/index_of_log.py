# SPDX-License-Identifier: Apache-2.0
"""The laws of the indexes beside their log: what entries say of it, as a verifier finds them."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from segproof_model.kafka.format.compression import Codecs
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.language.integers import INT32_MAX
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.format.index_slots import offset_entries, time_entries
from segproof_model.laws.kafka.format.log_bytes import (
    batches_of,
    end_of,
    ended_transactions,
    first_offset,
    is_wrapper,
    valid_batches,
)
from segproof_model.laws.kafka.format.transaction_index import Slot, slots_of
from segproof_model.laws.register import law

SEGMENT = "Kafka LogSegment.append, recover, since 0.11.0"
PRODUCERS = "ProducerStateManager 4.3.1"
STRETCH_BYTES = 16 << 20
"""The number of bytes that a log may have after the last entry of its offset index."""
TIMED_STRETCH_BYTES = 64 << 10
"""The same limit if the time index has more than TIMED_ENTRIES entries for these bytes."""
TIMED_ENTRIES = 8
GAPS = 8
INTERVAL_BYTES = 4096
"""The default of `index.interval.bytes`."""


# --- offset index --------------------------------------------------------------------------------


@law("DISK-8", OffsetIndex, SEGMENT)
def positions_strictly_increase(offset_index: bytes) -> bool:
    """The positions of the entries before the zero tail strictly increase."""
    return is_rising([position for _, position in offset_entries(offset_index, 0)])


def _is_key_of(batches: Sequence[RecordBatch], row: int, offset: int) -> bool:
    """Return whether an entry for the batch may have this offset: its last or its first one."""
    batch, previous = batches[row], batches[row - 1].last_offset if row else -1
    if is_wrapper(batch):
        return previous < offset <= batch.last_offset
    return offset in (batch.last_offset, first_offset(batch))


@law("SEG-7", OffsetIndex, SEGMENT)
def entry_points_at_batch(log: bytes, offset_index: bytes, base_offset: int) -> bool:
    """Every offset-index entry (o, p) has p at a batch start, o the last offset of some batch at or
    after p, and no batch before p with last offset >= o.

    Up to 1.1 o is a first offset, which the header of a compressed message lacks.
    """
    batches = batches_of(log)
    ends = {batch.position: batch.last_offset for batch in batches}

    def is_right(offset: int, position: int) -> bool:
        is_key = any(_is_key_of(batches, row, offset) for row in range(len(batches)))
        before = [last for start, last in ends.items() if start < position]
        return is_key and position in ends and all(last < offset for last in before)

    return all(is_right(*entry) for entry in offset_entries(offset_index, base_offset))


@law("DISK-24", OffsetIndex, SEGMENT)
def offset_index_goes_on_with_its_log(
    log: bytes, offset_index: bytes, time_index: bytes, base_offset: int
) -> bool:
    """No batch begins more than 16 MiB, or 8 times the widest gap between entries of the offset
    index if that is more, behind the last of these entries; nor more than 64 KiB where more than 8
    entries of the time index are for offsets behind that entry's and in the log. Byte 0 counts as
    an entry. All segments are meant, the open one as far as its log went before its indexes were
    read: a broker's entries are in the page cache as soon as they are written.

    One append of about 1 MiB needs no entry of its own; a follower's holds many batches and gets at
    most one up to 4.0. A time entry is written with an offset entry, but for the one of closing.
    """
    batches, entries = batches_of(log), offset_entries(offset_index, base_offset)
    positions = [0, *(position for _, position in entries)]
    widest = max((after - before for before, after in pairwise(positions)), default=0)
    indexed = max((offset for offset, _ in entries), default=base_offset - 1)
    reached = max((batch.last_offset for batch in batches), default=base_offset - 1)
    times = time_entries(time_index, base_offset)
    is_timed = sum(indexed < offset <= reached for _, offset in times) > TIMED_ENTRIES
    allowed = TIMED_STRETCH_BYTES if is_timed else max(STRETCH_BYTES, GAPS * widest)
    return not batches or batches[-1].position - max(positions) <= allowed


# --- both ----------------------------------------------------------------------------------------


@law("DISK-69", LogSegment, "segproof")
def log_is_that_of_its_indexes(
    log: bytes,
    offset_index: bytes,
    time_index: bytes,
    base_offset: int,
    next_base_offset: int | None,
) -> bool:
    """The two indexes of a segment were made of its log. They were not if both are in order, 8 or
    more of their entries are wrong, and each has more than three times as many wrong entries as
    right ones. A log that holds each offset from its base offset to the next segment is not judged,
    nor a damaged one.

    An entry of the offset index is right if a batch begins at its position, and wrong if none does
    and the position is in the log. An entry of the time index is right if the batch that holds its
    offset has its timestamp, and wrong if that batch has another one; so it is if no batch of the
    log holds the offset and all have earlier timestamps, or all later ones. Others are not counted.
    """
    valid, reaches = valid_batches(log), [base_offset - 1]
    if len(valid) != len(batches_of(log)) or any(log[end_of(log) :]) or not valid:
        return True
    firsts = []
    for batch in valid:
        firsts.append(reaches[-1] + 1 if is_wrapper(batch) else first_offset(batch))
        reaches.append(max(reaches[-1], batch.last_offset))
    is_dense = all(first == reach + 1 for first, reach in zip(firsts, reaches, strict=False))
    if next_base_offset == reaches[-1] + 1 and is_dense:
        return True
    positions, times = offset_entries(offset_index, base_offset), time_entries(time_index, 0)
    are_in_order = [is_rising([at for at, _ in positions]), is_rising([at for _, at in positions])]
    are_in_order.append(is_rising([time for time, _ in times]))
    offsets = [offset for _, offset in times]
    if not all(are_in_order) or offsets != sorted(offsets):
        return True
    starts, inside = {batch.position for batch in valid}, [at for _, at in positions]
    inside = [at for at in inside if at < end_of(log)]
    timed = [_time_is_right(valid, firsts, reaches, time, base_offset + at) for time, at in times]
    right = [sum(at in starts for at in inside), sum(one is True for one in timed)]
    wrong = [len(inside) - right[0], sum(one is False for one in timed)]
    is_other = all(bad > 3 * good for bad, good in zip(wrong, right, strict=True))
    return sum(wrong) < 8 or not is_other


def _time_is_right(
    valid: Sequence[RecordBatch],
    firsts: Sequence[int],
    reaches: Sequence[int],
    timestamp: int,
    offset: int,
) -> bool | None:
    """Return whether an entry of the time index fits the log; None where that is not known."""
    later = [row for row, reach in enumerate(reaches[1:]) if reach >= offset]
    if later and firsts[later[0]] <= offset:
        return valid[later[0]].max_timestamp == timestamp
    times = [batch.max_timestamp for batch in valid]
    return None if min(times) <= timestamp <= max(times) else False


@law("DISK-70", LogSegment, SEGMENT)
def no_batches_are_cut_out(
    log: bytes,
    offset_index: bytes,
    time_index: bytes,
    base_offset: int,
    next_base_offset: int | None,
) -> bool:
    """No index shows that batches were cut out of the log. It lacks them in a gap: offsets before a
    batch of the segment that no batch of the log has, with sound batches on both sides.

    An entry of the time index shows it if its offset lies in the gap, its timestamp is larger than
    those of all batches before the gap and is that of no batch, and both fields are in order with
    the entries beside it. In the last segment, which may have entries of a truncation, a later
    entry has the timestamp of a batch.

    Two entries of the offset index, one after the other, show it if the gap lies between them and
    the entry before, and one distance makes the positions of both right, not the position of the
    entry before. It makes them smaller, and none makes both larger: bytes that were put into the
    log shift its batches too. The last entry has a wrong position too, as each one after a cut has.
    Only entries for offsets of sound batches count, and a position is right at a batch after that
    of the entry before, up to the batch of the offset: an append has one entry, and may have
    several batches.
    """
    sound = {one.position for one in valid_batches(log)}
    gaps = _gaps(log, base_offset, next_base_offset, sound)
    times, is_last = time_entries(time_index, base_offset), next_base_offset is None
    if any(_is_timed(log, times, gap, is_last=is_last) for gap in gaps.values()):
        return False
    entries = offset_entries(offset_index, base_offset)
    return not _are_displaced(_distances(log, entries, base_offset, sound), [*gaps])


def is_older_copy(
    log: bytes, offset_index: bytes, time_index: bytes, base_offset: int, next_base_offset: int
) -> bool:
    """Return whether an index of a closed log shows that the log is from before it was closed.

    The offset index does if it ends in zeros, else the time index. The log has every offset up to
    its last batch, so the cleaner was not in it. From the batch of the last entry to the last batch
    are at most two of the widest distances between entries of the offset index, or two intervals:
    a disk would leave zeros in place of entries. Beside an empty log, an index has zeros only, for
    more entries than the segment has offsets, or than the largest log has intervals.
    """
    entries, times = offset_entries(offset_index, base_offset), time_entries(time_index, 0)
    if not log:
        most = min(next_base_offset - base_offset, INT32_MAX // INTERVAL_BYTES)
        slots = len(offset_index) // 8, len(time_index) // 12
        return not any(offset_index + time_index) and max(slots) > max(1, most)
    batches, firsts = batches_of(log), _firsts(log, base_offset)
    ends = [base_offset, *(one.last_offset + 1 for one in batches)]
    if not batches or any(first != end for first, end in zip(firsts, ends, strict=False)):
        return False
    if len(offset_index) // 8 > max(1, len(entries)):
        last = entries[-1][1] if entries else 0
    elif len(time_index) // 12 > max(1, len(times)):
        offset = base_offset + times[-1][1] if times else -1
        held = [one.position for one in batches if one.last_offset >= offset]
        last = held[0] if times and held else batches[-1].position if times else 0
    else:
        return False
    positions = [0, *(position for _, position in entries)]
    widest = max([INTERVAL_BYTES, *(after - before for before, after in pairwise(positions))])
    return batches[-1].position - last <= 2 * widest


def _firsts(log: bytes, base_offset: int) -> list[int]:
    """Return the first offset of each batch; a compressed message follows the batch before it."""
    ends = [base_offset - 1, *(one.last_offset for one in batches_of(log))]
    return [
        end + 1 if is_wrapper(one) else first_offset(one)
        for end, one in zip(ends, batches_of(log), strict=False)
    ]


def _gaps(
    log: bytes, base_offset: int, next_base_offset: int | None, sound: Collection[int]
) -> dict[int, range]:
    """Return the offsets that are missing before a batch, by the number of that batch."""
    batches, firsts = batches_of(log), _firsts(log, base_offset)
    found = {}
    for row, first in enumerate(firsts):
        start = batches[row - 1].last_offset + 1 if row else base_offset
        are_sound = all(one.position in sound for one in batches[max(0, row - 1) : row + 1])
        is_held = any(
            begin < first and start <= one.last_offset
            for begin, one in zip(firsts, batches, strict=True)
        )
        is_here = next_base_offset is None or first < next_base_offset
        if are_sound and is_here and start < first and not is_held:
            found[row] = range(start, first)
    return found


def _is_timed(log: bytes, entries: Sequence[tuple[int, int]], gap: range, *, is_last: bool) -> bool:
    """Return whether an entry of the time index shows that the log held an offset of the gap."""
    valid = valid_batches(log)
    times = {one.max_timestamp for one in valid}
    earlier = max((one.max_timestamp for one in valid if one.last_offset < gap.start), default=-1)

    def is_proof(number: int) -> bool:
        time, offset = entries[number]
        beside = entries[max(0, number - 1) : number + 2]
        is_in_order = is_rising([at for at, _ in beside]) and all(
            one <= other for (_, one), (_, other) in pairwise(beside)
        )
        is_followed = any(later in times for later, _ in entries[number + 1 :])
        is_gone = offset in gap and time > earlier and time not in times
        return is_gone and is_in_order and (is_followed or not is_last)

    return any(map(is_proof, range(len(entries))))


def _distances(
    log: bytes, entries: Sequence[tuple[int, int]], base_offset: int, sound: Collection[int]
) -> list[tuple[int, int, set[int]]]:
    """Return what is known of each entry of an offset index whose offset a sound batch has.

    That is the first and the last batch that may be at its position, and how much too large the
    position is for each batch after that of the entry before, up to the last.
    """
    batches, firsts = batches_of(log), _firsts(log, base_offset)
    found: list[tuple[int, int, set[int]]] = []
    before = -1
    for offset, position in entries:
        row = next((at for at, one in enumerate(batches) if one.last_offset >= offset), None)
        if row is None or firsts[row] > offset or batches[row].position not in sound:
            continue
        rows = range(min(before + 1, row), row + 1)
        begin = next((at for at in rows if batches[at].position == position), row)
        found.append((begin, row, {position - batches[at].position for at in rows}))
        before = row
    return found


def _are_displaced(entries: Sequence[tuple[int, int, set[int]]], gaps: Sequence[int]) -> bool:
    """Return whether two entries are displaced by one distance after a gap."""
    if not entries or 0 in entries[-1][2]:
        return False
    for number, (one, other) in enumerate(pairwise(entries)):
        before = entries[number - 1] if number else (-1, -1, set[int]())
        is_after_gap = any(before[0] < gap <= one[1] for gap in gaps)
        shared = one[2] & other[2]
        is_cut = bool(shared - before[2]) and min(shared) > 0  # below 0: bytes were put in
        if is_after_gap and is_cut and 0 not in one[2] | other[2]:
            return True
    return False


# --- time index ----------------------------------------------------------------------------------


@law("DISK-22", TimeIndex, "Kafka TimeIndex.maybeAppend 4.3.1")
def time_entries_are_in_range(time_index: bytes, base_offset: int) -> bool:
    """No entry of a time index has a timestamp below 0 or an offset below the base offset."""
    return all(min(time, distance) >= 0 for time, distance in time_entries(time_index, 0))


@law("DISK-9", TimeIndex, SEGMENT)
def entry_tells_largest_timestamp(log: bytes, time_index: bytes, base_offset: int) -> bool:
    """Every time-index entry (t, o) has o inside a batch whose largest timestamp is t, and no
    earlier batch has a larger timestamp, nor the same unless the broker set it.

    Releases write the record's own offset, or the batch's first or last one. The first batch with a
    timestamp counts; in one append with the broker's time, the last offset of the append counts.
    """

    def is_right(time: int, offset: int) -> bool:
        previous, largest = base_offset - 1, -1
        for batch in valid_batches(log):
            first = previous + 1 if is_wrapper(batch) else first_offset(batch)
            if first <= offset <= batch.last_offset:
                is_first = largest < time or batch.timestamp_type == "LogAppendTime"
                return batch.max_timestamp == time >= largest and is_first
            previous, largest = batch.last_offset, max(largest, batch.max_timestamp)
        return False

    return all(is_right(*entry) for entry in time_entries(time_index, base_offset))


@law("DISK-10", TimeIndex, "LogSegment.onBecomeInactiveSegment, close")
def closed_segment_tells_its_largest_timestamp(
    log: bytes, time_index: bytes, next_base_offset: int | None
) -> bool:
    """The last time-index entry of a closed segment has the largest timestamp of its batches."""
    largest = max((batch.max_timestamp for batch in valid_batches(log)), default=-1)
    told = [time for time, _ in time_entries(time_index, 0)][-1:]
    return next_base_offset is None or largest < 0 or (told or [-1]) == [largest]


# --- transaction index ---------------------------------------------------------------------------


@law("DISK-21", TransactionIndex, "Kafka TransactionIndex.append 4.3.1")
def aborted_transactions_are_in_range(transaction_index: bytes, base_offset: int) -> bool:
    """Entries are in the order of their last offsets, which are at or above the base offset; a
    transaction begins before it ends, and its last stable offset is at most its last offset + 1.
    """
    slots = slots_of(transaction_index)
    ends = [base_offset - 1, *(slot.last_offset for slot in slots)]
    return is_rising(ends) and all(
        0 <= slot.first_offset <= slot.last_offset
        and 0 <= slot.last_stable_offset <= slot.last_offset + 1
        for slot in slots
    )


@law("DISK-11", TransactionIndex, PRODUCERS)
def aborted_transaction_has_its_marker(
    log: bytes,
    transaction_index: bytes,
    base_offset: int,
    next_base_offset: int | None,
    codecs: Codecs,
) -> bool:
    """Every entry's last offset is the offset of an ABORT marker of its producer, and the entry
    begins at or before the first batch of that transaction in the log, after the producer's
    previous marker. Where the log lacks the offset of a marker, it may be lost: see DISK-74.
    """
    ended = {one[1:4]: one[4:] for one in ended_transactions([log], codecs)}

    def is_right(slot: Slot) -> bool:
        begin, previous = ended.get((slot.producer_id, slot.last_offset, "ABORT"), (-1, -1))
        return previous < slot.first_offset and (begin is None or slot.first_offset <= begin)

    lost = _shown_as_lost(log, transaction_index, base_offset, next_base_offset, codecs)
    return all(slot in lost or is_right(slot) for slot in slots_of(transaction_index))


@law("DISK-74", LogSegment, PRODUCERS)
def ends_of_transactions_are_there(
    log: bytes,
    transaction_index: bytes,
    base_offset: int,
    next_base_offset: int | None,
    codecs: Codecs,
) -> bool:
    """No missing offset held the end of a transaction, as far as the transaction index shows it: by
    an entry that ends there, before the next segment, if the log has a batch of it or begins after
    it does, or by one that begins after offsets are missing from what the log has as one
    transaction. An entry of an offset in another segment is of that one. `verify` also reports
    a producer snapshot by which a transaction had ended that the log has open, if the log lacks
    offsets or the snapshot knows its last batch, and a transaction that was open where a segment is
    gone, and whose producer begins to send after it.
    """
    return not _shown_as_lost(log, transaction_index, base_offset, next_base_offset, codecs)


def _shown_as_lost(
    log: bytes,
    transaction_index: bytes,
    base_offset: int,
    next_base_offset: int | None,
    codecs: Codecs,
) -> list[Slot]:
    """Return the entries which show that the log lacks a marker."""
    batches = valid_batches(log, codecs)
    gaps = [
        range(one.last_offset + 1, first_offset(other))
        for one, other in pairwise(batches)
        if one.last_offset + 1 < first_offset(other)
    ]
    data = [
        (one.producer_id, first_offset(one))
        for one in batches
        if one.is_transactional and not one.is_control
    ]
    begins = {one[1:4]: one[4] for one in ended_transactions([log], codecs)}

    def is_missing(offset: int) -> bool:
        return not any(first_offset(one) <= offset <= one.last_offset for one in batches)

    def is_shown(slot: Slot) -> bool:
        producer, first, last = slot.producer_id, slot.first_offset, slot.last_offset
        if is_missing(last):
            is_own = base_offset <= last and (next_base_offset is None or last < next_base_offset)
            is_of_earlier_log = bool(batches) and first < first_offset(batches[0])
            is_here = any(one == producer and first <= offset < last for one, offset in data)
            return is_own and (is_of_earlier_log or is_here)
        begin = begins.get((producer, last, "ABORT"))
        return (
            begin is not None
            and begin < first
            and ((producer, first) in data or is_missing(first))
            and any(begin < gap.start <= first for gap in gaps)
        )

    return list(filter(is_shown, slots_of(transaction_index)))


@law("DISK-12", TransactionIndex, PRODUCERS)
def abort_marker_has_its_entry(
    logs: Sequence[bytes], transaction_indexes: Sequence[bytes], codecs: Codecs
) -> bool:
    """Every ABORT marker that ends a transaction with a batch in the log has its entry in the
    transaction index of its segment; a transaction may span segments."""
    known = [
        {(slot.producer_id, slot.last_offset) for slot in slots_of(transaction_index)}
        for transaction_index in transaction_indexes
    ]
    return all(
        (producer, end) in known[number]
        for number, producer, end, kind, begin, _ in ended_transactions(logs, codecs)
        if kind == "ABORT" and begin is not None
    )
