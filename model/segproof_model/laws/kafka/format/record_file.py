# SPDX-License-Identifier: Apache-2.0
"""The laws of the record file, of its slices, and of the scanners of files and of memory."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from segproof_model.kafka.format import record_file_releases as older
from segproof_model.kafka.format import record_releases as earlier
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_deviations import MagicIsCheckedInFiles
from segproof_model.kafka.format.record_file import FileSlice, RecordFile, RecordRange
from segproof_model.language.integers import INT32_MAX, INT64_MIN, int32_at
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import Refused, outcome_of
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.format.batch_bytes import asked
from segproof_model.laws.kept_answers import kept, kept_by
from segproof_model.laws.register import Transition, has, law, retired

SCANNER = "FileLogInputStream.nextBatch, since 1.1"
IN_MEMORY = "ByteBufferLogInputStream.nextBatch, since 2.0"
CORRUPT = ErrorKind.CORRUPT_RECORD


class Scan(NamedTuple):
    """What a scan finds."""

    batches: Sequence[RecordBatch]
    error: ErrorKind | None
    """The error that ends it, if any."""
    stop: int
    """The position where it ends."""
    left: int
    """The number of bytes after that position."""
    size: int | None
    """The size field there, if it was read in a file or a slice."""


def _read_of(one: Any, *start: int) -> tuple[object, ...]:
    """Return what a scan depends on: a log often stays as it is where its segment changes."""
    if not isinstance(one, RecordRange):
        return one, *start
    return type(one), one.codecs, one.image, one.start, one.size, one.is_open, *start


@kept
@kept_by(_read_of)
def scan_of(records: Any, *start: int) -> Scan:
    """Return what a scan of a file, a slice, or records in memory finds, or one from a place on."""
    batches: list[RecordBatch] = []
    error, stop = None, start[0] if start else getattr(records, "start", 0)
    try:
        for batch in records.batches(*start):
            batches.append(batch)
            stop = batch.position + batch.size_bytes
    except Refused as refused:
        error = refused.kind
    if not isinstance(records, RecordRange):
        return Scan(batches, error, stop, len(records.data) - stop, None)
    left, image = records.end - stop, records.image
    is_read = records.is_open and left >= 18 and 0 <= stop <= len(image) - 17
    return Scan(batches, error, stop, left, int32_at(image, stop + 8) if is_read else None)


# --- scanning ------------------------------------------------------------------------------------


@law("SCAN-1", RecordRange, SCANNER, unless=(older.ScannerLimitsWrap, earlier.ScannersAskForSizes))
def scan_ends_where_nothing_fits(state: Any) -> bool:
    """The file scanner ends without an error at position p exactly when p >= end - 17, or when
    p > end - 12 - size after the size test.
    """
    _, error, _, left, size = scan_of(state)
    fits_none = left <= 17 if size is None else size >= 14 and left < 12 + size
    return (error is None) == fits_none


@law("SCAN-2", RecordRange, SCANNER)
def small_sizes_are_corrupt(state: Any) -> bool:
    """A size field < 14 met with at least 18 bytes left raises the corrupt-record error."""
    scan = scan_of(state)
    return scan.size is None or scan.size >= 14 or scan.error == CORRUPT


@law("SCAN-3", RecordRange, SCANNER, unless=earlier.ScannersAskForSizes)
def zeros_end_a_scan_or_break_it(state: Any) -> bool:
    """A valid batch followed by k zero bytes yields one batch and no error for k <= 17, and one
    batch and then the corrupt-record error for k >= 18.
    """
    _, error, stop, left, _ = scan_of(state)
    is_range = state.is_open and 0 <= stop <= state.end
    is_zeros = is_range and state.image[stop : state.end] == bytes(left)
    return not is_zeros or error == (None if left <= 17 else CORRUPT)


@law("SCAN-4", RecordRange, SCANNER)
def no_magic_is_rejected(state: Any) -> bool:
    """The scanner treats every magic < 2 (negative included) as legacy and every magic >= 2 as
    v2; it never rejects a magic. segproof rejects what is not 0, 1 or 2.
    """
    scan = scan_of(state)
    is_small = scan.size is None or scan.size < 14
    if has(state, MagicIsCheckedInFiles):
        is_small |= not is_small and state.image[scan.stop + 16] > 2
    is_right = all(one.is_legacy == (one.magic < 2) for one in scan.batches)
    return is_right and (is_small or scan.error != CORRUPT)


@law("SCAN-5", RecordRange, "FileRecords.batches")
def batches_tile_a_prefix(state: Any) -> bool:
    """Batches returned by a scan tile a prefix of the range: each begins where the previous
    ends.
    """
    batches = scan_of(state).batches
    ends = [batch.position + batch.size_bytes for batch in batches]
    return [batch.position for batch in batches] == [state.start, *ends][: len(batches)]


@law("SCAN-6", RecordRange, SCANNER, unless=older.ScannerLimitsWrap)
def huge_sizes_end_a_scan(state: Any) -> bool:
    """Scanner limits are computed without 32-bit overflow (releases >= 1.1.1): a size field near
    2^31 ends the scan.
    """
    scan = scan_of(state)
    return (scan.size or 0) <= INT32_MAX - 12 or scan.error is None


@law("SCAN-7", RecordRange, "RecordBatchIterator, since 2.8", unless=earlier.ScannersAskForSizes)
def end_of_file_inside_is_corrupt(state: Any) -> bool:
    """A short read is continued until the wanted bytes or the end of file are reached; the end of
    file inside the recorded size raises the corrupt-record error (releases >= 2.8).
    """
    scan = scan_of(state)
    is_short = state.is_open and scan.left >= 18 and len(state.image) < scan.stop + 17
    kind = ErrorKind.KAFKA_ERROR if has(state, older.ShortFileIsKafkaError) else CORRUPT
    return not is_short or scan.stop < 0 or scan.error == kind


@law("SCAN-8", RecordRange, "FileRecords.slice", unless=older.ScannerLimitsWrap)
def slices_keep_their_batches_inside(state: Any) -> bool:
    """A scan of a slice never returns a batch that ends outside the slice."""
    places = [(one.position, one.position + one.size_bytes) for one in scan_of(state).batches]
    return all(state.start <= position and end <= state.end for position, end in places)


@law("SCAN-9", MemoryRecords, IN_MEMORY, unless=earlier.SizeIsCheckedBeforeMagic)
def memory_scan_tests_in_order(state: Any) -> bool:
    """The in-memory scanner ends below 12 bytes, then rejects a size < 14 or above the limit, ends
    below 17 bytes, then rejects a magic outside 0..2, and ends on a partial batch.

    Which of two comes first is not judged.
    """
    scan = scan_of(state)
    rest = state.data[scan.stop :]
    is_tiled = b"".join(batch.data for batch in scan.batches) + rest == state.data
    size = int32_at(rest, 8)
    is_good = 14 <= size <= state.max_message_size_bytes and rest[16:17] <= b"\2"
    if scan.error == CORRUPT:
        return is_tiled and not is_good
    return is_tiled and (len(rest) < 17 or (is_good and len(rest) < 12 + size))


@law("SCAN-10", RecordRange, "FileChannelRecordBatch, since 0.11", unless=earlier.WholeBatchIsRead)
def short_headers_are_kafka_errors(state: Any) -> bool:
    """Reading a v2 field of a file batch whose 61-byte header passes the end of file raises the
    Kafka error, not the corrupt-record error.
    """
    batches = [batch for batch in scan_of(state).batches if not batch.is_legacy]
    short = [batch for batch in batches if batch.position + 61 > len(state.image)]
    return all(asked(batch, "last_offset") == Raised(ErrorKind.KAFKA_ERROR) for batch in short)


@law("SCAN-20", RecordRange, "FileRecords, since 0.11")
def preallocated_bytes_stay_unseen(state: Any) -> bool:
    """No read of a preallocated file returns bytes beyond its logical size."""
    content = outcome_of(state.read)
    return isinstance(content, Raised) or len(content) <= max(state.size, 0)


# --- changing ------------------------------------------------------------------------------------


@law("SCAN-11", RecordFile, "FileRecords.append, since 2.1", on="append")
def append_writes_at_the_logical_end(step: Transition) -> bool:
    """append writes at the logical end and grows the logical size by exactly the bytes written;
    above 2147483647 it raises invalid-argument and writes nothing.

    If another process has cut the file, the bytes up to the logical end are zeros, except for an
    append of no bytes.
    """
    before, after, records = step.before, step.after, step.arguments["records"]
    if not step.succeeded or not records:
        return step.is_unchanged and (not step.succeeded or step.outcome == 0)
    kept, end = before.image[: before.size].ljust(before.size, b"\0"), before.size + len(records)
    is_written = after.image == kept + records + before.image[end:]
    return is_written and after.size == end <= INT32_MAX and step.outcome == len(records)


@law("SCAN-12", RecordFile, "FileRecords.truncateTo", on="truncate_to")
def truncation_is_within_the_file(step: Transition) -> bool:
    """truncate_to(n) raises the Kafka error for n < 0 or n > size and otherwise returns old size -
    n and leaves logical size n.
    """
    before, after, target = step.before, step.after, step.arguments["target_size"]
    if not 0 <= target <= before.size:
        return step.refused(ErrorKind.KAFKA_ERROR)
    if not step.succeeded:
        return step.is_unchanged and not (before.is_open and before.writable)
    is_cut_outside = len(before.image) < before.size and step.is_unchanged
    is_cut = after.size == target and after.image == before.image[:target]
    may_be = before.is_open and (before.writable or step.is_unchanged)
    return may_be and step.outcome == before.size - target and (is_cut or is_cut_outside)


@law("SCAN-13", RecordFile, "FileRecords.trim, close", on="trim close")
def trimmed_files_end_at_their_size(step: Transition) -> bool:
    """trim, and close up to 4.3, leave a file whose physical length equals the logical size, also
    after preallocation. Since 4.4 close leaves it as it is.
    """
    before, after = step.before, step.after
    is_left = step.operation == "close" and not has(before, older.ClosingTrimsRecordFiles)
    if not step.succeeded or is_left or not (before.is_open and before.writable):
        return bool(after.image == before.image)
    return bool(len(after.image) == min(after.size, len(before.image)))


# --- slices --------------------------------------------------------------------------------------


@law("SCAN-14", RecordRange, "FileRecords.slice", on="slice")
def slices_are_capped(step: Transition) -> bool:
    """slice raises invalid-argument for a negative position or size, and caps its end at the end
    of the file, also on 32-bit overflow; 0.11 caps it at the size of what is sliced.
    """
    before, position, size = step.before, step.arguments["position"], step.arguments["size"]
    if position < 0 or size < 0:
        return step.raised(ErrorKind.INVALID_ARGUMENT)
    if not step.succeeded:
        return position > before.size - before.start and not has(before, older.SliceBeginsAnywhere)
    if position > before.size:
        return has(before, older.SliceBeginsAnywhere)
    limit = before.size if has(before, older.SliceEndsAtSize) else before.end
    return bool(step.answer.end == min(before.start + position + size, limit))


WIDTH = "No slice is wider than it was asked for, also beside an append: the size is read once."
retired("SCAN-15", RecordRange, WIDTH, RecordRange.slice)


@law("SCAN-16", FileSlice, "FileRecords.slice (KAFKA-18683)", on="slice")
def slices_of_slices_lie_inside(step: Transition) -> bool:
    """A slice of a slice lies inside the outer slice, except that releases from 2.1 up to and
    including 4.0 refuse a position greater than size - start.
    """
    outer, inner, position = step.before, step.answer, step.arguments["position"]
    if step.succeeded:
        is_behind = outer.start <= inner.start or has(outer, older.SliceBeginsAnywhere)
        return bool(is_behind and inner.end <= outer.end)
    limit = outer.size - outer.start if has(outer, older.SliceOfSliceIsRefused) else outer.size
    return bool(min(position, step.arguments["size"]) < 0 or position > limit)


# --- searching -----------------------------------------------------------------------------------


@law("SCAN-17", RecordFile, "searchForOffsetWithSize", on="search_for_offset_with_size")
def offset_search_finds_the_first(step: Transition) -> bool:
    """search_for_offset_with_size(t, s) returns the first batch at or after position s with last
    offset >= t, or nothing. Since 4.1 it relies on offsets that increase from batch to batch.
    """
    target, start = step.arguments["target_offset"], step.arguments["starting_position"]
    batches = scan_of(step.before, start).batches
    offsets = [(asked(one, "base_offset"), asked(one, "last_offset")) for one in batches]
    if not step.succeeded or any(isinstance(one, Raised) for pair in offsets for one in pair):
        return True
    # Each base is not above its last offset, and that is below the next base.
    is_ordered = is_rising([edge for base, last in offsets for edge in (2 * base, 2 * last + 1)])
    if not is_ordered and not has(step.before, older.SearchComparesLastOffsets):
        return True
    found = [one for one, (_, last) in zip(batches, offsets, strict=True) if last >= target]
    place, answer = [(one.position, one.size_bytes) for one in found[:1]], step.answer
    return place == ([] if answer is None else [answer[1:]])


@law("SCAN-18", RecordFile, "FileRecords.searchForTimestamp", on="search_for_timestamp")
def timestamp_search_finds_the_first(step: Transition) -> bool:
    """search_for_timestamp(ts, s, o) returns the first record, in file order from s, with timestamp
    >= ts and offset >= o, or nothing; 0.10 has no o.

    A batch whose header has a smaller maximum is skipped.
    """
    before, target = step.before, step.arguments["target_timestamp"]
    least = INT64_MIN if has(before, older.AnyOffsetHasTime) else step.arguments["starting_offset"]
    scanned = scan_of(before, step.arguments["starting_position"]).batches
    batches = (batch for batch in scanned if batch.max_timestamp >= target)
    times = (time for batch in batches for time in before.times_of(batch))
    found = (time for time in times if time.timestamp >= target and time.offset >= least)
    first = outcome_of(next, found, None)
    return not step.succeeded or first == (step.answer and step.answer[:2])


@law("SCAN-19", RecordFile, "FileRecords.largestTimestampAfter", on="largest_timestamp_after")
def largest_timestamp_is_the_earliest(step: Transition) -> bool:
    """largest_timestamp_after(s) returns the strictly largest batch maxTimestamp with that batch's
    last offset (the earliest on a tie), or (-1, -1).
    """
    if not step.succeeded:
        return True
    batches = scan_of(step.before, step.arguments["starting_position"]).batches
    pairs = [(one.max_timestamp, one.last_offset) for one in batches]
    return bool(step.answer[:2] == max([(-1, -1), *pairs], key=itemgetter(0)))
