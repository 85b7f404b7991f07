# SPDX-License-Identifier: Apache-2.0
"""The laws of the record file and its scanners.

`state` laws take a record file or a slice; `step` laws a transition whose states are such.

Used by: the harness, verify, the generated pages.
"""

from segproof_model.directory import Directory
from segproof_model.kafka.record_file import RecordFile, Scan, scan_memory
from segproof_model.language.integers import INT32_MAX, INT64_MIN, int32_at, int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.remembering import remembered
from segproof_model.profiles import NEWEST_KAFKA, Profile

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
SCANNER = "FileLogInputStream.nextBatch"


@remembered
def scan_of(file: RecordFile) -> Scan:
    """Return what a scan of the whole file or slice finds."""
    return file.batches()


def _end_of(scan: Scan, start: int) -> int:
    """Where the scan stopped, in bytes."""
    if not scan.batches:
        return start
    return scan.batches[-1].position + scan.batches[-1].size_bytes


def file_of(data: bytes, profile: Profile = NEWEST_KAFKA) -> RecordFile:
    """Return an open record file that holds exactly these bytes."""
    directory = Directory().write("0.log", data)
    opened = RecordFile.open("0.log", directory=directory, profile=profile).after
    assert isinstance(opened, RecordFile)
    return opened


@law("SCAN-1", structure="record-file", scope="state", source=f"{SCANNER} (1.1 on)")
def scan_ends_where_nothing_fits(file: RecordFile) -> bool:
    """The file scanner ends without an error at position p exactly when p >= end - 17, or when
    p > end - 12 - size after the size test."""
    if file.profile.scanner_limits_wrap or not file.is_open:
        return True
    scan = scan_of(file)
    position = _end_of(scan, file.start)
    fits_none = position >= file.end - 17
    size = 0 if fits_none else int32_at(file.image, position + 8)
    is_partial = not fits_none and size >= 14 and position > file.end - 12 - size
    return (scan.error is None) == (fits_none or is_partial)


@law("SCAN-2", structure="record-file", scope="state", source=SCANNER)
def small_sizes_are_corrupt(file: RecordFile) -> bool:
    """A size field < 14 met with at least 18 bytes left raises the corrupt-record error."""
    scan = scan_of(file)
    position = _end_of(scan, file.start)
    if not file.is_open or file.end - position < 18 or len(file.image) < position + 17:
        return True
    if position < file.start:  # limits that wrap have led out of the file
        return True
    return int32_at(file.image, position + 8) >= 14 or scan.error == CORRUPT_RECORD


@law("SCAN-3", structure="record-file", scope="pure", source=SCANNER)
def zeros_end_a_scan_or_break_it(batch: bytes, zeros: int) -> bool:
    """A valid batch followed by k zero bytes yields one batch and no error for k <= 17, and one
    batch and then the corrupt-record error for k >= 18."""
    scan = file_of(batch + bytes(zeros)).batches()
    return len(scan.batches) == 1 and scan.error == (None if zeros <= 17 else CORRUPT_RECORD)


@law("SCAN-4", structure="record-file", scope="pure", source=SCANNER)
def no_magic_is_rejected(batch: bytes, magic: int, profile: Profile) -> bool:
    """The scanner treats every magic < 2 (negative included) as legacy and every magic >= 2 as
    v2; it never rejects a magic."""
    data = batch[:16] + magic.to_bytes(1, "big", signed=True) + batch[17:]
    scan = file_of(data, profile).batches()
    if profile.magic_checked_in_files and magic not in (0, 1, 2):
        return scan == Scan((), CORRUPT_RECORD)
    return len(scan.batches) == 1 and scan.batches[0].is_legacy == (magic < 2)


@law("SCAN-5", structure="record-file", scope="state", source="FileRecords.batches")
def batches_tile_a_prefix(file: RecordFile) -> bool:
    """Batches returned by a scan tile a prefix of the range: each begins where the previous
    ends."""
    position = file.start
    for batch in scan_of(file).batches:
        if batch.position != position:
            return False
        position += batch.size_bytes
    return position <= max(file.end, file.start) or file.profile.scanner_limits_wrap


@law("SCAN-6", structure="record-file", scope="pure", source=f"{SCANNER} (1.1 on)")
def huge_sizes_end_a_scan(batch: bytes, below_largest: int, profile: Profile) -> bool:
    """Scanner limits are computed without 32-bit overflow (releases >= 1.1.1): a size field near
    2^31 ends the scan."""
    data = batch + batch[:8] + int32_bytes(INT32_MAX - below_largest) + batch[12:]
    scan = file_of(data, profile).batches()
    return profile.scanner_limits_wrap or (len(scan.batches) == 1 and scan.error is None)


@law("SCAN-7", structure="record-file", scope="state", source="RecordBatchIterator (2.8 on)")
def end_of_file_inside_is_corrupt(file: RecordFile) -> bool:
    """A short read is continued until the wanted bytes or the end of file are reached; the end of
    file inside the believed size raises the corrupt-record error (releases >= 2.8)."""
    scan = scan_of(file)
    position = _end_of(scan, file.start)
    if not 0 <= position < file.end - 17 or not file.is_open:
        return True
    is_short = len(file.image) < position + 17
    return not is_short or scan.error == Raised(file.profile.scanner_eof_kind)


@law("SCAN-8", structure="record-file", scope="state", source="FileRecords.slice")
def slices_keep_their_batches_inside(file: RecordFile) -> bool:
    """A scan of a slice never returns a batch that ends outside the slice."""
    return file.profile.scanner_limits_wrap or all(
        file.start <= batch.position and batch.position + batch.size_bytes <= file.end
        for batch in scan_of(file).batches
    )


@law("SCAN-9", structure="record-file", scope="pure", source="ByteBufferLogInputStream.nextBatch")
def memory_scan_tests_in_order(data: bytes, max_message_size_bytes: int) -> bool:
    """The in-memory scanner ends below 12 bytes, then rejects a size < 14 or above the limit, ends
    below 17 bytes, then rejects a magic outside 0..2, and ends on a partial batch."""
    scan = scan_memory(data, max_message_size_bytes)
    rest = data[_end_of(scan, 0) :]
    is_tiled = b"".join(batch.data for batch in scan.batches) + rest == data
    if len(rest) < 12:
        return is_tiled and scan.error is None
    size = int32_at(rest, 8)
    if size < 14 or size > max_message_size_bytes:
        return is_tiled and scan.error == CORRUPT_RECORD
    if len(rest) < 17:
        return is_tiled and scan.error is None
    if rest[16] > 2:
        return is_tiled and scan.error == CORRUPT_RECORD
    return is_tiled and scan.error is None and len(rest) < 12 + size


@law("SCAN-10", structure="record-file", scope="state", source="FileChannelRecordBatch (0.11 on)")
def short_headers_are_kafka_errors(file: RecordFile) -> bool:
    """Reading a v2 field of a file batch whose 61-byte header passes the end of file raises the
    Kafka error, not the corrupt-record error."""
    return not file.profile.header_is_read_alone or all(
        batch.last_offset == KAFKA_ERROR
        for batch in scan_of(file).batches
        if batch.magic >= 2 and batch.position + 61 > len(file.image)
    )


@law("SCAN-11", structure="record-file", scope="step", source="FileRecords.append (2.1 on)")
def append_writes_at_the_logical_end(step: Transition) -> bool:
    """append writes at the logical end and grows the logical size by exactly the bytes written;
    above 2147483647 it raises invalid-argument and writes nothing.

    Where something else has cut the file, the bytes up to that end are zeros, but for an append of
    none.
    """
    if step.operation != "append":
        return True
    before, after, records = step.before, step.after, step.arguments["records"]
    if isinstance(step.outcome, Raised) or not records:
        is_said = isinstance(step.outcome, Raised) or step.outcome == 0
        return bool(is_said and after == before)
    return (
        before.size + len(records) <= INT32_MAX
        and step.outcome == len(records)
        and after.size == before.size + len(records)
        and after.image[before.size : after.size] == records
        and after.image[: before.size] == before.image[: before.size].ljust(before.size, b"\0")
    )


@law("SCAN-12", structure="record-file", scope="step", source="FileRecords.truncateTo")
def truncation_is_within_the_file(step: Transition) -> bool:
    """truncate_to(n) raises the Kafka error for n < 0 or n > size and otherwise returns old size -
    n and leaves logical size n."""
    if step.operation != "truncate_to":
        return True
    before, after, target = step.before, step.after, step.arguments["target_size"]
    if not 0 <= target <= before.size:
        return step.outcome == KAFKA_ERROR and bool(after == before)
    is_tried = target < len(before.image) or before.profile.empty_change_is_refused
    if not before.is_open or before.is_slice or (is_tried and not before.writable):
        return isinstance(step.outcome, Raised) and bool(after == before)
    is_cut_outside = len(before.image) < before.size
    return step.outcome == before.size - target and bool(after.size == target or is_cut_outside)


@law("SCAN-13", structure="record-file", scope="step", source="FileRecords.trim, close")
def trimmed_files_end_at_their_size(step: Transition) -> bool:
    """trim, and close up to 4.3, leave a file whose physical length equals the logical size, also
    after preallocation. Since 4.4 close leaves it as it is."""
    if step.operation not in ("trim", "close") or isinstance(step.outcome, Raised):
        return True
    before, after = step.before, step.after
    is_left = step.operation == "close" and not before.profile.close_writes
    if is_left or before.is_slice or not before.is_open or not before.writable:
        return bool(after.image == before.image)
    return bool(len(after.image) == min(after.size, len(before.image)))


@law("SCAN-14", structure="record-file", scope="step", source="FileRecords.slice")
def slices_are_capped(step: Transition) -> bool:
    """slice raises invalid-argument for a negative position or size, and caps its end at the end
    of the file, also on 32-bit overflow; 0.11 caps it at the size of what is sliced."""
    if step.operation != "slice":
        return True
    position, size = step.arguments["position"], step.arguments["size"]
    if position < 0 or size < 0:
        return step.outcome == INVALID_ARGUMENT
    if isinstance(step.outcome, Raised):
        return bool(step.before.profile.slice_start_checked)
    assert isinstance(step.outcome, RecordFile)
    before = step.before
    limit = before.size if before.profile.slice_end_is_size else before.end
    return bool(step.outcome.end == min(before.start + position + size, limit))


@law("SCAN-15", structure="record-file", scope="step", source="FileRecords.availableBytes (3.0 on)")
def slices_are_never_wider(step: Transition) -> bool:
    """slice takes its bound from a single reading of the size: a concurrent append never widens a
    slice beyond the requested size."""
    if step.operation != "slice" or not isinstance(step.outcome, RecordFile):
        return True
    return step.outcome.size <= int(step.arguments["size"])


@law("SCAN-16", structure="record-file", scope="step", source="FileRecords.slice (KAFKA-18683)")
def slices_of_slices_lie_inside(step: Transition) -> bool:
    """A slice of a slice lies inside the outer slice, except that releases from 2.1 up to and
    including 4.0 refuse a position greater than size - start."""
    if step.operation != "slice" or not step.before.is_slice:
        return True
    outer, inner, position = step.before, step.outcome, int(step.arguments["position"])
    if isinstance(inner, Raised):
        is_outside = position < 0 or position > outer.size or int(step.arguments["size"]) < 0
        is_refused = outer.profile.slice_start_refused and position > outer.size - outer.start
        return is_outside or is_refused
    assert isinstance(inner, RecordFile)
    return bool(outer.start <= inner.start and inner.end <= outer.end)


@law("SCAN-17", structure="record-file", scope="step", source="searchForOffsetWithSize")
def offset_search_finds_the_first(step: Transition) -> bool:
    """search_for_offset_with_size(t, s) returns the first batch at or after position s with last
    offset >= t, or nothing."""
    if step.operation != "search_for_offset_with_size" or isinstance(step.outcome, Raised):
        return True
    found = None
    scan = step.before.batches(step.arguments["starting_position"])
    for batch in scan.batches:
        if isinstance(batch.last_offset, Raised):
            return True
        if batch.last_offset >= step.arguments["target_offset"]:
            found = batch
            break
    if step.before.profile.search_compares_base_offsets and not _offsets_increase(scan):
        return True
    answer = step.outcome
    if found is None or not isinstance(answer, tuple):
        return found is None and answer is None
    return bool(answer[1:] == (found.position, found.size_bytes))


def _offsets_increase(scan: Scan) -> bool:
    """Whether each batch begins behind the one before it; the newest releases rely on it.

    The scan is the search's own: begun inside a batch it finds others than one of the whole file.
    """
    last = -1
    for batch in scan.batches:
        base, next_last = batch.base_offset, batch.last_offset
        if (
            isinstance(base, Raised)
            or isinstance(next_last, Raised)
            or not last < base <= next_last
        ):
            return False
        last = next_last
    return True


@law("SCAN-18", structure="record-file", scope="step", source="FileRecords.searchForTimestamp")
def timestamp_search_finds_the_first(step: Transition) -> bool:
    """search_for_timestamp(ts, s, o) returns the first record, in file order from s, with
    timestamp >= ts and offset >= o, or nothing; 0.10 knows no o."""
    if step.operation != "search_for_timestamp" or isinstance(step.outcome, Raised):
        return True
    target, starting_offset = step.arguments["target_timestamp"], step.arguments["starting_offset"]
    if not step.before.profile.time_search_has_start:
        starting_offset = INT64_MIN
    is_streamed = step.before.profile.time_search_is_streamed
    for batch in step.before.batches(step.arguments["starting_position"]).batches:
        for timestamp, offset in batch.times_until_error(is_streamed).times:
            # A batch whose header gives too small a maximum is passed over as a whole.
            if batch.max_timestamp >= target <= timestamp and offset >= starting_offset:
                return isinstance(step.outcome, tuple) and step.outcome[:2] == (timestamp, offset)
    return step.outcome is None


@law("SCAN-19", structure="record-file", scope="step", source="FileRecords.largestTimestampAfter")
def largest_timestamp_is_the_earliest(step: Transition) -> bool:
    """largest_timestamp_after(s) returns the strictly largest batch maxTimestamp with that batch's
    last offset (the earliest on a tie), or (-1, -1)."""
    if step.operation != "largest_timestamp_after" or isinstance(step.outcome, Raised):
        return True
    batches = step.before.batches(step.arguments["starting_position"]).batches
    pairs = [(batch.max_timestamp, batch.last_offset) for batch in batches]
    expected = max([(-1, -1), *pairs], key=lambda pair: pair[0])
    return isinstance(step.outcome, tuple) and step.outcome[:2] == expected


@law("SCAN-20", structure="record-file", scope="state", source="FileRecords (0.11 on)")
def preallocated_bytes_stay_unseen(file: RecordFile) -> bool:
    """No read of a preallocated file returns bytes beyond its logical size."""
    ends = [batch.position + batch.size_bytes for batch in scan_of(file).batches]
    content = file.read()
    return (isinstance(content, Raised) or len(content) <= max(file.size, 0)) and (
        file.profile.scanner_limits_wrap or all(end <= file.end for end in ends)
    )
