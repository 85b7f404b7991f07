# SPDX-License-Identifier: Apache-2.0
"""The laws of the files of a partition as a verifier finds them, each file beside the others.

Every predicate takes bytes. Where a log is damaged, only the batches whose checksums are right are
held to what their headers say. DISK-n speak of files as such; the others are laws of segments and
logs that need no history, only files.

Used by: the harness, the tests of `verify`, the generated pages.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from segproof_model.directory import Directory
from segproof_model.kafka.compression import NO_CODECS, Codecs
from segproof_model.kafka.record_batch import (
    RecordBatch,
    control_record_type,
)
from segproof_model.kafka.transaction_index import AbortedTxn, read_aborted_txns
from segproof_model.language.integers import INT32_MAX, int32_at
from segproof_model.language.outcomes import Raised
from segproof_model.laws.judging import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    is_rising,
    without_zero_tail,
)
from segproof_model.laws.registry import law

FILE = "log-segment"
LOG = "record-file"
BATCH = "record-batch"
PARTITION = "partition-log"
OFFSETS = "offset-index"
TIMES = "time-index"
TRANSACTIONS = "transaction-index"
DUMP = "Kafka DumpLogSegments 4.3.1"
SEGMENT = "Kafka LogSegment.append, recover, since 0.11.0"
OWN = "segproof"

SEGMENT_NAME = re.compile(r"(-?[0-9]{20,})(\.log|\.index|\.timeindex|\.txnindex)")
OTHER_NAME = re.compile(
    r"leader-epoch-checkpoint|partition\.metadata|quorum-state|remote_log_snapshot"
    r"|[0-9]{20,}\.snapshot|[0-9]{20,}-[0-9]{10,}\.checkpoint(\.part)?"
)

STRETCH_BYTES = 16 << 20
"""What a log may lawfully hold behind the last entry of its offset index."""
TIMED_STRETCH_BYTES = 64 << 10
"""The same, where the time index has more than TIMED_ENTRIES entries for it."""
TIMED_ENTRIES = 8
GAPS = 8
LEVELS = 16
"""Levels of directories that are searched below a path."""


# --- reading


def batches_of(log: bytes) -> list[RecordBatch]:
    """Return the batches up to the first place where none can be read."""
    found: list[RecordBatch] = []
    position = 0
    while position + 18 <= len(log):
        end = position + 12 + int32_at(log, position + 8)
        magic = log[position + 16]
        least = 61 if magic == 2 else 26
        if magic > 2 or end < position + 26 or end > len(log) or position + least > len(log):
            break
        found.append(RecordBatch(log[position:end], position, end - position))
        position = end
    return found


def end_of(log: bytes) -> int:
    """Return the byte behind the last of these batches."""
    return sum(batch.size_bytes for batch in batches_of(log))


def valid_batches(log: bytes, codecs: Codecs = NO_CODECS) -> list[RecordBatch]:
    """Return the batches whose size and checksum are right."""
    return [
        RecordBatch(batch.data, batch.position, batch.size_bytes, codecs=codecs)
        for batch in batches_of(log)
        if batch.is_valid() is True
    ]


def number(value: int | None | Raised) -> int:
    """Return a header field of a valid batch, which is always there."""
    assert isinstance(value, int)
    return value


def is_wrapper(batch: RecordBatch) -> bool:
    """Return whether the batch is a compressed message, whose first offset its header lacks."""
    return batch.is_legacy and batch.compression != "none"


def first_offset(batch: RecordBatch) -> int:
    """Return the base offset by the header alone; a message stands at its last offset."""
    return number(batch.last_offset if batch.is_legacy else batch.base_offset)


def offset_entries(index: bytes, base_offset: int) -> list[tuple[int, int]]:
    """Return (offset, position) of the entries before the zero tail."""
    used = without_zero_tail(index, OFFSET_ENTRY.size)
    return [(base_offset + distance, at) for distance, at in OFFSET_ENTRY.iter_unpack(used)]


def time_entries(index: bytes, base_offset: int) -> list[tuple[int, int]]:
    """Return (timestamp, offset) of the entries before the zero tail; a lone zero is an entry."""
    used = without_zero_tail(index, TIME_ENTRY.size)
    return [(time, base_offset + distance) for time, distance in TIME_ENTRY.iter_unpack(used)]


def control_type(batch: RecordBatch) -> str | Raised:
    """Return what the control record of a batch is; `EMPTY` if compaction took it."""
    records = batch.records_until_error()
    if not records.records:
        return records.error or "EMPTY"
    return control_record_type(records.records[0].key)


# --- files and names


@law("DISK-1", structure=FILE, scope="disk", source=OWN)
def every_listed_file_is_read(listed: Collection[str], read: Mapping[str, bytes]) -> bool:
    """Every file that a directory lists can be opened and read."""
    return all(name in read for name in listed)


@law("DISK-2", structure=FILE, scope="disk", source=OWN)
def file_keeps_its_bytes(before: bytes, after: bytes | None) -> bool:
    """A file that is being read neither vanishes nor becomes shorter; it may grow."""
    return after is not None and len(after) >= len(before)


@law("DISK-3", structure=PARTITION, scope="disk", source="Kafka LogFileUtils, UnifiedLog 4.3.1")
def names_are_known(directory: Directory) -> bool:
    """A partition directory holds files of segments and the partition's own files, no others."""

    def is_known(name: str) -> bool:
        plain = re.sub(r"\.(deleted|cleaned|swap|tmp)$", "", name)
        has_suffix = plain.endswith((".log", ".index", ".timeindex", ".txnindex"))
        return has_suffix or OTHER_NAME.fullmatch(plain) is not None

    return all(is_known(name) for name in directory)


@law("LOAD-1", structure=PARTITION, scope="disk", source="Kafka LogLoader 4.3.1")
def no_pending_file_is_left(directory: Directory) -> bool:
    """Loading leaves no `.deleted`, `.cleaned` or `.swap` file."""
    return not any(name.endswith((".deleted", ".cleaned", ".swap")) for name in directory)


@law("DISK-4", structure=FILE, scope="disk", source="Kafka LogLoader 4.3.1 (removes the index)")
def index_has_its_log(directory: Directory) -> bool:
    """Every index file lies beside the log of the same base offset."""
    matches = [SEGMENT_NAME.fullmatch(name) for name in directory]
    return all(match is None or match[1] + ".log" in directory for match in matches)


@law("DISK-5", structure=FILE, scope="disk", source="Kafka LogSegment.onBecomeInactiveSegment")
def closed_segment_has_its_indexes(directory: Directory) -> bool:
    """Every segment but the last has its offset index and its time index."""
    logs = sorted((name[:-4] for name in directory if name.endswith(".log")), key=int)
    return all(
        stem + ".index" in directory and stem + ".timeindex" in directory for stem in logs[:-1]
    )


@law("DISK-6", structure=FILE, scope="disk", source="Kafka AbstractIndex.trimToValidSize")
def closed_file_has_no_zero_tail(image: bytes, entry_size: int, is_closed: bool) -> bool:
    """Only the files of the last segment, and no longer after a clean stop, end in preallocated
    zeros.

    A time index may hold one entry of timestamp 0 for its base offset. A log has entry size 1.
    """
    if entry_size == 1:
        return not is_closed or end_of(image) == len(image) or any(image[end_of(image) :])
    slots = len(image) // entry_size * entry_size
    return not is_closed or len(without_zero_tail(image, entry_size)) == slots


@law("DISK-7", structure=FILE, scope="disk", source="Kafka FileRecords, AbstractIndex 4.3.1")
def size_fits_31_bits(size_bytes: int) -> bool:
    """A log or index file has at most 2147483647 bytes."""
    return size_bytes <= INT32_MAX


@law("DISK-20", structure=PARTITION, scope="disk", source=OWN)
def there_is_something_to_verify(directory: Directory) -> bool:
    """A path that is given to be verified holds a file of a segment."""
    return any(SEGMENT_NAME.fullmatch(name) for name in directory)


@law("DISK-26", structure=PARTITION, scope="disk", source=OWN)
def directories_are_met_once(inside: Mapping[int, Sequence[int]], root: int) -> bool:
    """Below a path that is given to be verified no directory is met twice, by a link or a mount,
    and none that is searched lies more than 16 levels down: each is looked into once. A note.

    `inside` holds, by the identity of a directory, those of the directories in it. A partition is
    not searched.
    """
    met, level = [root], [root]
    for _ in range(LEVELS):
        level = [inner for each in level for inner in inside.get(each, ())]
        met += level
        if len(set(met)) < len(met):
            return False
    return not any(inside.get(each) for each in level)


# --- the log


@law("DISK-13", structure=FILE, scope="disk", source=SEGMENT)
def batch_offsets_rise_within_segment(log: bytes, base_offset: int) -> bool:
    """Each batch begins behind the offsets of the batches before it, and all offsets lie within
    2147483647 of the base offset of the segment."""
    reached = base_offset - 1
    for batch in valid_batches(log):
        last = number(batch.last_offset)
        if first_offset(batch) <= reached or last > base_offset + INT32_MAX or last < base_offset:
            return False
        reached = last
    return True


@law("LOG-4", structure=PARTITION, scope="disk", source="Kafka LogSegments, LocalLog.roll 4.3.1")
def segments_do_not_overlap(log: bytes, next_base_offset: int) -> bool:
    """Segments do not overlap: every batch of a segment has last offset < the next segment's
    base."""
    return all(number(batch.last_offset) < next_base_offset for batch in valid_batches(log))


@law("DISK-19", structure=PARTITION, scope="disk", source=OWN)
def offsets_have_no_gaps(log: bytes, base_offset: int, next_base_offset: int | None) -> bool:
    """Each batch begins right behind the one before it, the first at the base offset, and the next
    segment right behind the last. A note: compaction leaves gaps."""
    expected = base_offset
    for batch in valid_batches(log):
        if not is_wrapper(batch) and first_offset(batch) != expected:
            return False
        expected = number(batch.last_offset) + 1
    return next_base_offset is None or next_base_offset == expected


@law("DISK-25", structure=PARTITION, scope="disk", source="Kafka Cleaner, LogValidator 4.3.1")
def no_offsets_are_lost_between_segments(
    log: bytes, next_base_offset: int | None, codecs: Codecs
) -> bool:
    """Where the last batch of records in a closed segment has a record without a key, the next
    segment begins right behind the last batch: compaction has left nothing out.

    Compaction goes from the start of a log and takes records without a key, whatever follows them;
    a compacted topic accepts none. Where all records have keys, nothing in the files tells a lost
    segment from a compacted one. A damaged log, or a batch beyond a limit, tells nothing.
    """
    batches, valid = batches_of(log), valid_batches(log, codecs)
    is_whole = bool(valid) and valid[-1].position == batches[-1].position
    if next_base_offset is None or not is_whole or end_of(log) != len(log):
        return True
    holding = [batch for batch in valid if batch.is_legacy or _holds_data(batch)]
    if not holding or number(valid[-1].last_offset) + 1 >= next_base_offset:
        return True
    records = holding[-1].records()
    return isinstance(records, Raised) or all(record.key is not None for record in records)


def _holds_data(batch: RecordBatch) -> bool:
    """Return whether a batch of magic 2 has records of producers."""
    return not batch.is_control and number(batch.record_count) > 0


@law("DISK-23", structure=LOG, scope="disk", source="Kafka ByteBufferLogInputStream 4.3.1")
def magic_is_known(log: bytes) -> bool:
    """Where a batch should begin, the magic is 0, 1 or 2."""
    end = end_of(log)
    if len(log) - end < 18 or not 14 <= int32_at(log, end + 8) <= len(log) - end - 12:
        return True
    return log[end + 16] <= 2


@law("DUMP-6", structure=LOG, scope="disk", source=DUMP)
def log_ends_with_a_batch(log: bytes) -> bool:
    """Behind the last complete batch of a log lies nothing but a preallocated tail of zeros."""
    return not any(log[end_of(log) :])


@law("DISK-14", structure=BATCH, scope="disk", source="Kafka DefaultRecordBatch 4.3.1")
def count_fits_the_offsets(log: bytes) -> bool:
    """A batch of magic 2 has no more records than offsets from its first to its last."""
    return all(
        number(batch.last_offset) >= number(batch.base_offset)
        and number(batch.record_count) <= number(batch.last_offset) - number(batch.base_offset) + 1
        for batch in valid_batches(log)
        if not batch.is_legacy
    )


@law("DISK-15", structure=BATCH, scope="disk", source="Kafka DefaultRecordBatch 4.3.1")
def unused_attribute_bits_are_zero(log: bytes) -> bool:
    """Attribute bits that no release uses are 0: 7 to 15 in magic 2, 4 to 7 before."""
    return all(
        number(batch.attributes) & ~(0x0F if batch.is_legacy else 0x7F) == 0
        for batch in valid_batches(log)
    )


# --- records


@law("DISK-16", structure=BATCH, scope="disk", source="Kafka DefaultRecordBatch 4.3.1")
def record_offsets_rise_within_batch(log: bytes, codecs: Codecs) -> bool:
    """The offsets of the records of a magic 2 batch rise from its base to at most its last."""

    def is_right(batch: RecordBatch) -> bool:
        records = batch.records()
        if isinstance(records, Raised):
            return True
        offsets = [record.offset for record in records]
        bounds = range(number(batch.base_offset), number(batch.last_offset) + 1)
        return is_rising(offsets) and all(offset in bounds for offset in offsets)

    return all(is_right(batch) for batch in valid_batches(log, codecs) if not batch.is_legacy)


@law("DISK-17", structure=BATCH, scope="disk", source="Kafka MemoryRecordsBuilder 4.3.1")
def max_timestamp_is_the_largest(log: bytes, codecs: Codecs) -> bool:
    """The largest timestamp in the header is the largest of the records, where there are any."""

    def is_right(batch: RecordBatch) -> bool:
        records = batch.records()
        if isinstance(records, Raised) or not records or batch.magic == 0:
            return True
        return max(record.timestamp for record in records) == batch.max_timestamp

    return all(is_right(batch) for batch in valid_batches(log, codecs))


@law("DISK-18", structure=BATCH, scope="disk", source=OWN)
def records_decompress(log: bytes, codecs: Codecs) -> bool:
    """The compressed records of a batch can be decompressed; a batch that is only larger than a
    limit is not looked into, and a warning says so."""
    compressed = [batch for batch in valid_batches(log, codecs) if number(batch.attributes) % 8]
    return not any(isinstance(batch.records(), Raised) for batch in compressed)


# --- offset index and log


@law("DISK-8", structure=OFFSETS, scope="disk", source=SEGMENT)
def positions_strictly_increase(index: bytes) -> bool:
    """The positions of the entries before the zero tail strictly increase."""
    return is_rising([position for _, position in offset_entries(index, 0)])


@law("SEG-7", structure=OFFSETS, scope="disk", source=SEGMENT)
def entry_points_at_batch(log: bytes, index: bytes, base_offset: int) -> bool:
    """Every offset-index entry (o, p) has p at a batch start, o the last offset of some batch at or
    after p, and no batch before p with last offset >= o.

    Up to 1.1 it is a first offset; what a compressed message begins with, its header does not say.
    """
    batches = batches_of(log)
    starts = {batch.position for batch in batches}

    def is_right(offset: int, position: int) -> bool:
        before = [number(b.last_offset) for b in batches if b.position < position]
        return (
            position in starts
            and all(last < offset for last in before)
            and any(_is_key_of(batches, row, offset) for row in range(len(batches)))
        )

    return all(is_right(offset, at) for offset, at in offset_entries(index, base_offset))


@law("DISK-24", structure=OFFSETS, scope="disk", source=SEGMENT)
def offset_index_goes_on_with_its_log(
    log: bytes, index: bytes, times: bytes, base_offset: int
) -> bool:
    """No batch begins more than 16 MiB, or 8 times the widest gap between entries of the offset
    index if that is more, behind the last of these entries; nor more than 64 KiB where more than 8
    entries of the time index are for offsets behind that entry's and in the log. Byte 0 counts as
    an entry. All segments are meant, the open one as far as its log went before its indexes were
    read: a broker's entries are in the page cache as soon as they are written.

    One append of about 1 MiB needs no entry of its own; a follower's holds many batches and gets at
    most one up to 4.0. A time entry is written with an offset entry, but for the one of closing.
    """
    batches = batches_of(log)
    entries = offset_entries(index[: len(index) // 8 * 8], base_offset)
    positions = [0, *(position for _, position in entries)]
    widest = max((after - before for before, after in pairwise(positions)), default=0)
    indexed = max((offset for offset, _ in entries), default=base_offset - 1)
    reached = max((number(batch.last_offset) for batch in batches), default=base_offset - 1)
    timed = [
        offset
        for _, offset in time_entries(times[: len(times) // 12 * 12], base_offset)
        if indexed < offset <= reached
    ]
    allowed = max(STRETCH_BYTES, GAPS * widest)
    if len(timed) > TIMED_ENTRIES:
        allowed = TIMED_STRETCH_BYTES
    return not batches or batches[-1].position - max(positions) <= allowed


def _is_key_of(batches: Sequence[RecordBatch], row: int, offset: int) -> bool:
    batch = batches[row]
    last = number(batch.last_offset)
    if is_wrapper(batch):
        previous = number(batches[row - 1].last_offset) if row else -1
        return previous < offset <= last
    return offset in (last, first_offset(batch))


# --- time index and log


@law("DISK-22", structure=TIMES, scope="disk", source="Kafka TimeIndex.maybeAppend 4.3.1")
def time_entries_are_in_range(index: bytes, base_offset: int) -> bool:
    """No entry of a time index has a timestamp below 0 or an offset below the base offset."""
    entries = time_entries(index[: len(index) // 12 * 12], base_offset)
    return all(time >= 0 and offset >= base_offset for time, offset in entries)


@law("DISK-9", structure=TIMES, scope="disk", source=SEGMENT)
def entry_tells_largest_timestamp(log: bytes, index: bytes, base_offset: int) -> bool:
    """Every time-index entry (t, o) has o inside a batch whose largest timestamp is t, and no
    batch before that one has a larger timestamp, nor the same unless the broker set it.

    Releases write the record's own offset, the batch's first or its last one. A timestamp is
    remembered when it is first met; of what is appended at once, all with the broker's time, the
    offset of the end is.
    """
    batches = valid_batches(log)

    def is_right(time: int, offset: int) -> bool:
        previous, largest = base_offset - 1, -1
        for batch in batches:
            last = number(batch.last_offset)
            first = previous + 1 if is_wrapper(batch) else first_offset(batch)
            if first <= offset <= last:
                is_first = largest < time or batch.timestamp_type == "LogAppendTime"
                return number(batch.max_timestamp) == time and largest <= time and is_first
            previous, largest = last, max(largest, number(batch.max_timestamp))
        return False

    entries = time_entries(index[: len(index) // 12 * 12], base_offset)
    return all(is_right(time, offset) for time, offset in entries)


@law("DISK-10", structure=TIMES, scope="disk", source="LogSegment.onBecomeInactiveSegment, close")
def closed_segment_tells_its_largest_timestamp(log: bytes, index: bytes) -> bool:
    """The last time-index entry of a closed segment has the largest timestamp of its batches."""
    largest = max((number(batch.max_timestamp) for batch in valid_batches(log)), default=-1)
    entries = time_entries(index[: len(index) // 12 * 12], 0)
    return largest < 0 or (entries[-1][0] if entries else -1) == largest


# --- transaction index and log


@law("DISK-21", structure=TRANSACTIONS, scope="disk", source="Kafka TransactionIndex.append 4.3.1")
def aborted_transactions_are_in_range(index: bytes, base_offset: int) -> bool:
    """Entries are in the order of their last offsets, which lie at or above the base offset; a
    transaction begins before it ends, and its last stable offset is at most behind its end."""
    entries = read_aborted_txns(index)
    return is_rising([entry.last_offset for entry in entries]) and all(
        base_offset <= entry.last_offset
        and 0 <= entry.first_offset <= entry.last_offset
        and 0 <= entry.last_stable_offset <= entry.last_offset + 1
        for entry in entries
    )


@law("DISK-11", structure=TRANSACTIONS, scope="disk", source="ProducerStateManager 4.3.1")
def aborted_transaction_has_its_marker(log: bytes, index: bytes, codecs: Codecs) -> bool:
    """Every entry's last offset is that of an ABORT marker of its producer, and it begins at or
    before the first batch of that transaction in the log, behind the producer's last marker."""
    return all(_is_told_by(log, entry, codecs) for entry in read_aborted_txns(index))


def _is_told_by(log: bytes, entry: AbortedTxn, codecs: Codecs) -> bool:
    first: int | None = None
    previous_marker = -1
    for batch in _transactional(log, codecs):
        offset = number(batch.base_offset)
        if batch.producer_id != entry.producer_id:
            continue
        if not batch.is_control:
            first = offset if first is None else first
            continue
        kind = control_type(batch)
        if offset == entry.last_offset and kind == "ABORT":
            begins = entry.first_offset
            return (first is None or begins <= first) and begins > previous_marker
        if kind in ("ABORT", "COMMIT"):
            first, previous_marker = None, offset
    return False


@law("DISK-12", structure=TRANSACTIONS, scope="disk", source="ProducerStateManager 4.3.1")
def abort_marker_has_its_entry(logs: Sequence[tuple[bytes, bytes]], codecs: Codecs) -> bool:
    """Every ABORT marker that ends a transaction with a batch in the log has its entry in the
    transaction index of its segment.

    `logs` holds log and transaction index of each segment, in order: a transaction may span them.
    """
    is_open: set[int] = set()
    for log, index in logs:
        entries = {(one.producer_id, one.last_offset) for one in read_aborted_txns(index)}
        for batch in _transactional(log, codecs):
            producer_id = number(batch.producer_id)
            if not batch.is_control:
                is_open.add(producer_id)
                continue
            kind = control_type(batch)
            if kind not in ("ABORT", "COMMIT"):
                continue
            has_entry = (producer_id, number(batch.base_offset)) in entries
            if kind == "ABORT" and producer_id in is_open and not has_entry:
                return False
            is_open.discard(producer_id)
    return True


def _transactional(log: bytes, codecs: Codecs) -> list[RecordBatch]:
    return [
        batch
        for batch in valid_batches(log, codecs)
        if not batch.is_legacy and (batch.is_transactional or batch.is_control)
    ]
