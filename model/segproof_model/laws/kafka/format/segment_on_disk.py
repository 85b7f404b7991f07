# SPDX-License-Identifier: Apache-2.0
"""The laws of the files of segments as a verifier finds them, and of the content of their logs.

Indexes beside their log: index_of_log. `files` are the names of the files in a directory.
"""

import re
from collections.abc import Collection, Mapping

from segproof_model.kafka.format.compression import Codecs
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.integers import INT32_MAX, int32_at
from segproof_model.language.outcomes import Raised
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.format.batch_bytes import (
    entries_of,
    has_right_checksum,
    inner_of,
    records_of,
)
from segproof_model.laws.kafka.format.index_slots import without_zero_tail
from segproof_model.laws.kafka.format.log_bytes import (
    end_of,
    first_offset,
    valid_batches,
    with_records,
)
from segproof_model.laws.register import law

BATCH = "Kafka DefaultRecordBatch 4.3.1"

SEGMENT_NAME = re.compile(r"(-?[0-9]{20,})(\.log|\.index|\.timeindex|\.txnindex)")


def offsets_of_names(files: Collection[str], kind: str) -> list[int]:
    """Return the offsets in the names that go on as the pattern says, sorted."""
    found = [re.fullmatch(rf"(-?[0-9]+){kind}", name) for name in files]
    return sorted(int(match[1]) for match in found if match)


@law("DISK-1", LogSegment, "segproof")
def every_listed_file_is_read(listed: Collection[str], read: Mapping[str, bytes]) -> bool:
    """Every file that a directory lists can be opened and read."""
    return all(name in read for name in listed)


@law("DISK-2", LogSegment, "segproof")
def file_keeps_its_bytes(before: bytes, after: bytes | None) -> bool:
    """A file that is being read neither vanishes nor becomes shorter; it may grow."""
    return after is not None and len(after) >= len(before)


@law("DISK-4", LogSegment, "Kafka LogLoader 4.3.1 (removes the index)")
def index_has_its_log(files: Collection[str]) -> bool:
    """Every index file has the log of the same base offset beside it."""
    matches = [SEGMENT_NAME.fullmatch(name) for name in files]
    return all(match is None or match[1] + ".log" in files for match in matches)


@law("DISK-5", LogSegment, "Kafka LogSegment.onBecomeInactiveSegment")
def closed_segment_has_its_indexes(files: Collection[str]) -> bool:
    """Every segment but the last has its offset index and its time index."""
    closed = sorted((name[:-4] for name in files if name.endswith(".log")), key=int)[:-1]
    return all({stem + ".index", stem + ".timeindex"} <= set(files) for stem in closed)


@law("DISK-6", LogSegment, "Kafka AbstractIndex.trimToValidSize")
def closed_file_has_no_zero_tail(image: bytes, entry_size: int, is_closed: bool) -> bool:
    """Only the files of the last segment may end in preallocated zeros, and only before a clean
    stop.

    A time index may have one entry of timestamp 0 for its base offset. A log has entry size 1.
    """
    if entry_size == 1:
        tail = image[end_of(image) :]
        return not is_closed or not tail or any(tail)
    slots = len(image) // entry_size * entry_size
    return not is_closed or len(without_zero_tail(image, entry_size)) == slots


@law("DISK-7", LogSegment, "Kafka FileRecords, AbstractIndex 4.3.1")
def size_fits_31_bits(size_bytes: int) -> bool:
    """A log or index file has at most 2147483647 bytes."""
    return size_bytes <= INT32_MAX


# --- logs ----------------------------------------------------------------------------------------


@law("DISK-23", RecordFile, "Kafka ByteBufferLogInputStream 4.3.1")
def magic_is_known(log: bytes) -> bool:
    """Where a batch should begin, the magic is 0, 1 or 2."""
    rest = log[end_of(log) :]
    is_batch = len(rest) >= 18 and 14 <= int32_at(rest, 8) <= len(rest) - 12
    return not is_batch or rest[16] <= 2


@law("DUMP-6", RecordFile, "Kafka DumpLogSegments 4.3.1")
def log_ends_with_a_batch(log: bytes) -> bool:
    """Only a preallocated tail of zeros follows the last complete batch of a log."""
    return not any(log[end_of(log) :])


@law("DISK-13", LogSegment, "Kafka LogSegment.append, recover, since 0.11.0")
def batch_offsets_rise_within_segment(log: bytes, base_offset: int) -> bool:
    """Each batch begins above the offsets of the batches before it, and all offsets are at most
    2147483647 above the base offset of the segment.
    """
    reached = base_offset - 1
    for batch in valid_batches(log):
        last = batch.last_offset
        if first_offset(batch) <= reached or not 0 <= last - base_offset <= INT32_MAX:
            return False
        reached = last
    return True


@law("DISK-14", RecordBatch, BATCH)
def count_fits_the_offsets(log: bytes) -> bool:
    """A batch of magic 2 has no more records than offsets from its first to its last."""
    return all(
        max(batch.record_count - 1, 0) <= batch.last_offset - batch.base_offset
        for batch in valid_batches(log)
        if not batch.is_legacy
    )


@law("DISK-15", RecordBatch, BATCH)
def unused_attribute_bits_are_zero(log: bytes) -> bool:
    """Attribute bits that no release uses are 0: 7 to 15 in magic 2, 4 to 7 before."""
    batches = valid_batches(log)
    return not any(batch.attributes & ~(0x0F if batch.is_legacy else 0x7F) for batch in batches)


@law("DISK-16", RecordBatch, BATCH)
def record_offsets_rise_within_batch(log: bytes, codecs: Codecs) -> bool:
    """The offsets of the records of a magic 2 batch rise from its base to at most its last."""
    return all(
        is_rising([batch.base_offset - 1, *(one.offset for one in records), batch.last_offset + 1])
        for batch, records in with_records(log, codecs)
        if not batch.is_legacy
    )


@law("DISK-17", RecordBatch, "Kafka MemoryRecordsBuilder 4.3.1")
def max_timestamp_is_the_largest(log: bytes, codecs: Codecs) -> bool:
    """The header's largest timestamp is the largest of the records, if the batch has records."""
    return all(
        max(one.timestamp for one in records) == batch.max_timestamp
        for batch, records in with_records(log, codecs)
        if batch.magic > 0
    )


@law("DISK-18", RecordBatch, "segproof")
def records_decompress(log: bytes, codecs: Codecs) -> bool:
    """The compressed records of a batch can be decompressed; a batch beyond a limit is not
    decompressed, and gives a warning.
    """
    compressed = [batch for batch in valid_batches(log, codecs) if batch.attributes % 8]
    return not any(isinstance(records_of(batch), Raised) for batch in compressed)


@law("DISK-56", RecordBatch, "Kafka LegacyRecord.ensureValid, since 0.8")
def inner_messages_are_valid(log: bytes, codecs: Codecs) -> bool:
    """Each message inside a compressed one of magic 0 or 1 has a right checksum, and they fill its
    value to the end. Not judged: a compressed message whose records can't be read (BATCH-11).
    """
    wrappers = [
        inner_of(batch) or b""
        for batch, _ in with_records(log, codecs)
        if batch.is_legacy and batch.compression != "none"
    ]
    return all(
        sum(map(len, entries_of(inner))) == len(inner)
        and all(map(has_right_checksum, entries_of(inner)))
        for inner in wrappers
    )


@law("DISK-57", RecordBatch, "Kafka LogValidator 4.3.1 (message.timestamp.after.max.ms)")
def timestamps_are_milliseconds(log: bytes) -> bool:
    """The largest timestamp of a batch is not beyond the year 9999, where microseconds and
    nanoseconds lie. It does not lie from 10^9 to 4.2 * 10^9, where seconds of 2001 to 2103 lie,
    unless another batch of the segment has one between these and 10^12: historical event times
    would. It is not 10^13 (in 2286) or more, and it is not 0. No timestamp is negative, but for
    -1, which stands for none. A warning; a note for 0, and for those from 2286 on if no batch of
    the segment has one from 10^12 to 10^13, since a producer may set any time.
    """
    batches = valid_batches(log)
    times = [batch.max_timestamp for batch in batches]
    if any(min(one.max_timestamp, one.base_timestamp or 0) < -1 for one in batches):
        return False
    if any(time == 0 or time >= 10**13 for time in times):
        return False
    has_history = any(42 * 10**8 <= time < 10**12 for time in times)
    return not any(
        time > 253_402_300_799_999 or (10**9 <= time < 42 * 10**8 and not has_history)
        for time in times
    )
