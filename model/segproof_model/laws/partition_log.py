# SPDX-License-Identifier: Apache-2.0
"""The laws of a partition's log: appending, reading, cutting, rolling and keeping.

They judge transitions whose states are logs. Some judge only logs whose offsets rise, which a
crafted file may not do. LOG-4 is stated with the laws of directories.

Used by: the harness, the generated pages.
"""

from itertools import pairwise
from typing import Any

from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.log_segment import FetchDataInfo
from segproof_model.kafka.log_validator import LogAppendInfo
from segproof_model.kafka.record_file import TimestampAndOffset, scan_memory
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import is_rising
from segproof_model.laws.log_judging import (
    APPENDS,
    STRUCTURE,
    Aborted,
    aborted_of,
    batches_of_segment,
    bound_of,
    has_overlap,
    index_entries,
    is_far,
    is_judged,
    is_sound,
    leads_astray,
    log_images,
)
from segproof_model.laws.registry import Transition, law

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
CORRUPT_INDEX = Raised(ErrorKind.CORRUPT_INDEX)
CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
OFFSET_ORDER = Raised(ErrorKind.OFFSET_ORDER)
OUT_OF_RANGE = Raised(ErrorKind.OUT_OF_RANGE)
RECORD_BATCH_TOO_LARGE = Raised(ErrorKind.RECORD_BATCH_TOO_LARGE)
CLASS = "Kafka UnifiedLog and LocalLog, 4.3.1"


@law("LOG-5", structure=STRUCTURE, scope="step", source=CLASS)
def reads_stay_in_range(transition: Transition) -> bool:
    """read(start) raises out-of-range for start < log start, start > log end, or no floor
    segment.

    Releases that answer a read at the log end first do so wherever the log starts; some raise it
    for a bound that lies outside of the log, too.
    """
    if not is_judged(transition, "read"):
        return True
    log, start = transition.before, transition.arguments["start_offset"]
    isolation = transition.arguments.get("isolation", "log_end")
    bound = bound_of(log, isolation).message_offset
    bases = log.log_segments.base_offsets()
    floors = [base for base in bases if base <= bound][-1:]
    first = max(log.log_start_offset, bases[0])
    unstable = log.producer_state_manager.first_unstable_offset()
    looked_up = (bound, log.high_watermark, bound if unstable is None else unstable)
    is_outside = not all(first <= one <= log.log_end_offset for one in looked_up)
    if is_outside and transition.outcome == OUT_OF_RANGE and log.profile.bound_outside_is_refused:
        return True
    is_damaged = not is_sound(log) or any(leads_astray(log, base, bound) for base in floors)
    is_refused = isinstance(transition.outcome, Raised)
    if transition.outcome == CORRUPT_INDEX or (is_refused and is_damaged):
        return True  # to know the bound, damage may have to be read
    if start == log.log_end_offset and not log.profile.read_at_bound_is_empty:
        return not is_refused
    is_within = log.log_start_offset <= start <= log.log_end_offset
    has_floor = any(base <= start for base in bases)
    return (transition.outcome == OUT_OF_RANGE) is not (is_within and has_floor)


def _fetched(transition: Transition) -> FetchDataInfo | None:
    """Return what a read of a sound log found, or None for any other step."""
    if not is_judged(transition, "read") or not is_sound(transition.before):
        return None
    return transition.outcome if isinstance(transition.outcome, FetchDataInfo) else None


def _is_left_behind(log: Any, bound: LogOffsetMetadata, start_offset: int) -> bool:
    """Whether a bound keeps its place at the end of a segment though another one begins there.

    A roll moves it only in releases whose log knows the high watermark. A read that begins at its
    bound goes on behind the bound's segment, if that has nothing from there on, in releases that do
    not end such a read at once.
    """
    base, offset = bound.segment_base_offset, bound.message_offset
    later = [one for one in log.log_segments.base_offsets() if 0 <= base < one]
    if not log.profile.log_knows_high_watermark:
        return any(one <= offset for one in later)
    if log.profile.read_at_bound_is_empty or start_offset != offset or not later:
        return False
    return all(batch.last_offset < offset for batch in batches_of_segment(log, base))


@law("LOG-6", structure=STRUCTURE, scope="step", source=CLASS)
def reads_begin_at_the_batch(transition: Transition) -> bool:
    """read(start) returns batches from the first segment at or after floor(start) that has a batch
    with last offset >= start, never bytes beyond the bound of the isolation level.

    The bound is that behind the read, which may move it: whoever looks up the place of the high
    watermark looks anew at the first unstable offset. Kafka passes a bound whose place is in a
    segment that was removed, and up to 2.4 one whose place is at the end of a segment that a roll
    has ended since. An index that leads astray may give the bound a wrong place.
    """
    found = _fetched(transition)
    if found is None or found.records is None:
        return True
    log, start = transition.after, transition.arguments["start_offset"]
    bases = log.log_segments.base_offsets()
    floor = max(base for base in bases if base <= start)
    if any(leads_astray(log, base, start) for base in bases if base >= floor):
        return True
    places = [
        (base, batch.position)
        for base in bases
        for batch in batches_of_segment(log, base)
        if base >= floor and batch.last_offset >= start
    ]
    segment_base = found.fetch_offset_metadata.segment_base_offset
    bound = bound_of(log, transition.arguments.get("isolation", "log_end"))
    end = found.records.start + found.records.size
    is_gone = bound.segment_base_offset >= 0 and bound.segment_base_offset not in bases
    if [(segment_base, found.records.start)] != places[:1]:
        return False
    is_lost = any(leads_astray(log, base, bound.message_offset) for base in bases if base >= floor)
    if is_lost or _is_left_behind(log, bound, start):
        return True
    return (is_gone and log.profile.bound_stays_in_removed_segment) or all(
        batch.base_offset < bound.message_offset
        for batch in batches_of_segment(log, segment_base)
        if batch.position < end
    )


@law("LOG-7", structure=STRUCTURE, scope="step", source=CLASS)
def reads_at_the_bound_are_empty(transition: Transition) -> bool:
    """read at start = bound returns empty records with the bound's metadata.

    In releases that then read on in the segments: no bytes of them.
    """
    found = _fetched(transition)
    bound = (
        bound_of(transition.after, transition.arguments.get("isolation", "log_end"))
        if (found is not None)
        else None
    )
    if found is None or bound is None:
        return True
    is_at_bound = transition.arguments["start_offset"] == bound.message_offset
    start = transition.arguments["start_offset"]
    if not is_at_bound or _is_left_behind(transition.after, bound, start):
        return True
    is_exact = transition.after.profile.read_at_bound_is_empty or bound == transition.after.log_end
    if bound.segment_base_offset < 0 or not is_exact:
        # its place may be that of the next batch, behind a gap
        return found.records is None or found.records.size == 0
    return found.records is None and found.fetch_offset_metadata == bound


@law("LOG-8", structure=STRUCTURE, scope="step", source=CLASS)
def committed_reads_list_what_was_aborted(transition: Transition) -> bool:
    """A read_committed read lists every aborted transaction that overlaps [start, upper), upper
    being the fetch upper bound of the segment, else the next base, else the log end. An index whose
    first entry lies exactly at the end of the read passes it over, but for segproof.

    The first entry with a last stable offset >= upper is the last one that is visited (TXNIDX-10).
    A transaction that was ended twice has another entry behind it: truncation brings an ended one
    back where no producer was known and a snapshot still holds it as open.
    """
    found = _fetched(transition)
    if found is None or transition.arguments.get("isolation") != "txn_committed":
        return True
    log, listed = transition.after, found.aborted_transactions
    if found.records is None and not listed:
        return True
    place = found.fetch_offset_metadata
    size = 0 if found.records is None else found.records.size
    end = place.relative_position_in_segment + size
    entries = index_entries(log, place.segment_base_offset)
    if any(later <= earlier for earlier, later in pairwise(entries)):
        return True  # a crash has left slots behind the entries that were never written
    passed = not log.profile.upper_bound_exact and [position for _, position in entries[:1]] == [
        end
    ]
    uppers = [at for at, position in entries[1 if passed else 0 :] if position >= end]
    bases = [base for base in log.log_segments.base_offsets() if base > place.segment_base_offset]
    upper = [*uppers, *bases, log.log_end_offset][0]
    known = aborted_of(log, place.segment_base_offset)
    ends = [number for number, one in enumerate(known, 1) if one.last_stable_offset >= upper]
    expected = [
        one
        for one in known[: ends[0] if ends else None]
        if one.last_offset >= transition.arguments["start_offset"] and one.first_offset < upper
    ]
    return [Aborted(*one[1:5]) for one in listed or ()] == expected


def _is_begun_ahead(log: Any) -> bool:
    """Whether a segment begins behind the log end, before which some releases go on writing."""
    is_ahead = log.log_segments.base_offsets()[-1] > log.log_end_offset
    return bool(is_ahead and not log.profile.empty_segment_is_replaced)


@law("LOG-9", structure=STRUCTURE, scope="step", source="Kafka UnifiedLog.append")
def log_end_comes_between(transition: Transition) -> bool:
    """The log end offset advances after the bytes are in the log and before the transaction index
    is touched (releases >= 2.2; older ones touch the index first).

    Where a roll has begun a segment ahead of the log end, older releases write to one before it.
    """
    if not is_judged(transition, *APPENDS) or not is_sound(transition.before):
        return True
    before, after = transition.before, transition.after
    has_advanced = after.log_end_offset > before.log_end_offset
    bases = after.log_segments.base_offsets()
    written = bases if _is_begun_ahead(before) else bases[-1:]
    last = [one for base in written for one in batches_of_segment(after, base)[-1:]]
    is_written = after.log_end_offset in [one.last_offset + 1 for one in last]
    ends_first = before.profile.append_ends_log_first
    is_touched = ends_first and aborted_of(after, 0) != aborted_of(before, 0)
    return (is_written or not has_advanced) and (has_advanced or not is_touched)


@law("LOG-10", structure=STRUCTURE, scope="step", source="Kafka UnifiedLog.append")
def large_sets_are_refused(transition: Transition) -> bool:
    """A record set larger than segment.bytes is refused before any byte is written."""
    if not is_judged(transition, *APPENDS):
        return True
    before, after = transition.before, transition.after
    if transition.outcome == RECORD_BATCH_TOO_LARGE:
        return log_images(after) == log_images(before)
    return bool(after.size - before.size <= before.config.segment_bytes)


@law("LOG-11", structure=STRUCTURE, scope="step", source="Kafka UnifiedLog.maybeRoll, since 2.0")
def new_segments_begin_at_the_log_end(transition: Transition) -> bool:
    """The new base at roll is max(expected, log end): expected = first offset when known (>= 2.0),
    else last offset - 2147483647."""
    if not is_judged(transition, "roll", *APPENDS) or isinstance(transition.outcome, Raised):
        return True
    before, outcome = transition.before, transition.outcome
    bases = transition.after.log_segments.base_offsets()
    if isinstance(outcome, int):
        expected = max(transition.arguments.get("expected_next_offset") or 0, before.log_end_offset)
        is_last = expected == bases[-1] or not before.profile.empty_segment_is_replaced
        return bool(outcome == expected and expected in bases and is_last)
    assert isinstance(outcome, LogAppendInfo)
    new = [base for base in bases if base not in before.log_segments.base_offsets()]
    if not new or transition.after.log_end_offset == before.log_end_offset:
        return True
    is_known = before.profile.roll_knows_first_offset and outcome.first_offset >= 0
    expected = outcome.first_offset if is_known else outcome.last_offset - INT32_MAX
    return new == [max(expected, before.log_end_offset)]


@law("LOG-12", structure=STRUCTURE, scope="step", source="Kafka LocalLog.roll, since 2.1")
def an_empty_active_segment_is_replaced(transition: Transition) -> bool:
    """roll onto the base of the active, empty segment replaces it; onto any other existing base, or
    below the active base, it raises the Kafka error and deletes nothing.

    Where that error names a largest timestamp, it may make a time index, or fail to read one.
    """
    if not is_judged(transition, "roll"):
        return True
    before, after = transition.before, transition.after
    bases = before.log_segments.base_offsets()
    base = max(transition.arguments.get("expected_next_offset") or 0, before.log_end_offset)
    if not before.profile.empty_segment_is_replaced:
        is_kept = after.log_segments.base_offsets() == bases
        is_refused = isinstance(transition.outcome, Raised)
        return (is_refused and is_kept) if base in bases else transition.outcome != KAFKA_ERROR
    if base == bases[-1] and before.log_segments.active_segment.size == 0:
        is_replaced = after.log_segments.active_segment.size == 0
        return bool(after.log_segments.base_offsets() == bases and is_replaced)
    if base <= bases[-1]:
        names = list(before.directory)
        added = [name for name in after.directory if name not in before.directory]
        is_kept = all(before.directory.read(name) == after.directory.read(name) for name in names)
        if not before.profile.overflow_names_maximum:
            return transition.outcome == KAFKA_ERROR and is_kept and not added
        is_time = all(name.endswith(".timeindex") for name in added)
        return isinstance(transition.outcome, Raised) and is_kept and is_time
    return transition.outcome != KAFKA_ERROR


@law("LOG-13", structure=STRUCTURE, scope="step", source="Kafka UnifiedLog.truncateTo")
def truncation_ends_the_log(transition: Transition) -> bool:
    """truncate_to(t) raises invalid-argument for t < 0; for t >= log end it only truncates the
    epoch cache and returns false; otherwise log end = t and no segment has base > t.

    Up to 2.4 a truncation to the log end or behind it leaves the epochs, too; before 0.11 one to
    the log end is done as one below it.
    """
    if not is_judged(transition, "truncate_to"):
        return True
    before, after = transition.before, transition.after
    target = transition.arguments["target_offset"]
    if target < 0:
        return transition.outcome == INVALID_ARGUMENT and bool(after == before)
    if isinstance(transition.outcome, Raised):
        return True
    is_at_end = target == before.log_end_offset and before.profile.truncation_at_end_is_done
    if target >= before.log_end_offset and not is_at_end:
        is_same = log_images(after) == log_images(before)
        is_end = after.log_end_offset == before.log_end_offset
        is_kept = before.profile.truncation_at_end_cuts_epochs or bool(after == before)
        return transition.outcome is False and is_same and is_end and is_kept
    bases = after.log_segments.base_offsets()
    return transition.outcome is True and after.log_end_offset == target and max(bases) <= target


@law("LOG-14", structure=STRUCTURE, scope="step", source="Kafka UnifiedLog.truncateTo")
def truncation_before_the_log_begins_anew(transition: Transition) -> bool:
    """truncate_to below the first base leaves one empty segment at t.

    What failed before may have left a log that ends below its first base: nothing is cut there.
    """
    if not is_judged(transition, "truncate_to") or isinstance(transition.outcome, Raised):
        return True
    target, before = transition.arguments["target_offset"], transition.before
    if target >= min(before.log_segments.base_offsets()[0], before.log_end_offset):
        return True
    return [(one.base_offset, one.size) for one in transition.after.log_segments] == [(target, 0)]


@law("LOG-15", structure=STRUCTURE, scope="step", source=f"{CLASS}: searchOffsetInLocalLog")
def one_segment_is_searched_by_timestamp(transition: Transition) -> bool:
    """The offset for a timestamp comes from the first segment, in ascending order, whose
    largest_timestamp >= the target, and from no other.

    Not judged: a log with a batch whose checksum is wrong; its records may have any offset.
    """
    if not is_judged(transition, "fetch_offset_by_timestamp") or not is_sound(transition.before):
        return True
    if not _are_valid(transition.before):
        return True
    log, target = transition.after, transition.arguments["target_timestamp"]
    outcome = transition.outcome
    if -log.profile.special_timestamps <= target <= -1 or isinstance(outcome, Raised):
        return True
    bases = log.log_segments.base_offsets()
    for segment, end in zip(log.log_segments, [*bases[1:], log.log_end_offset], strict=True):
        largest = segment.max_pair.timestamp if segment.max_pair is not None else -1
        if (largest if largest >= 0 else segment.last_modified) >= target:
            start = log.log_start_offset if log.profile.time_search_has_start else 0
            return outcome is None or (
                isinstance(outcome, TimestampAndOffset)
                and max(segment.base_offset, start) <= outcome.offset < end
                and outcome.timestamp >= target
            )
    return outcome is None


def _are_valid(log: Any) -> bool:
    """Return whether every batch has the checksum that it names."""
    logs = [segment.log for segment in log.log_segments]
    return all(batch.is_valid() is True for one in logs for batch in one.batches().batches)


@law("LOG-16", structure=STRUCTURE, scope="step", source=f"{CLASS}: fetchOffsetByTimestamp")
def largest_timestamp_is_exact(transition: Transition) -> bool:
    """MAX_TIMESTAMP (-3) returns, in >= 3.8, the first record with the maximal timestamp in the
    first batch carrying it; in 3.0 to 3.7 the stored pair."""
    if not is_judged(transition, "fetch_offset_by_timestamp") or not is_sound(transition.before):
        return True
    outcome, profile = transition.outcome, transition.after.profile
    if transition.arguments["target_timestamp"] != -3 or profile.special_timestamps < 3:
        return True
    if not isinstance(outcome, TimestampAndOffset):
        return True
    pairs = [one.max_pair for one in transition.after.log_segments if one.max_pair]
    known = [pair.timestamp for pair in pairs]
    if not profile.largest_timestamp_is_searched:
        return outcome.timestamp == max(known) and tuple(outcome[:2]) in pairs
    holders = [
        batch
        for segment in transition.after.log_segments
        for batch in segment.log.batches().batches
        if batch.base_offset <= outcome.offset <= batch.last_offset
    ]
    times = holders[0].times_until_error(profile.largest_timestamp_is_streamed).times
    first = next(one for one in times if one.timestamp == outcome.timestamp)
    return bool(outcome.timestamp == max(known) and first.offset == outcome.offset)


@law("LOG-17", structure=STRUCTURE, scope="step", source=f"{CLASS}: deletableSegments")
def retention_removes_a_prefix(transition: Transition) -> bool:
    """Retention removes a prefix of the segments, only below the high watermark, never a last empty
    segment, and afterwards log start >= base of the first survivor.

    The log starts behind that base where records before the start were deleted. Releases before
    0.11 know no high watermark, and a log of theirs starts where its segments do.
    """
    if not is_judged(transition, "delete_old_segments") or isinstance(transition.outcome, Raised):
        return True
    before, after = transition.before, transition.after
    old, new = before.log_segments.base_offsets(), after.log_segments.base_offsets()
    gone = [base for base in old if base not in new]
    ends = dict(zip(old, [*old[1:], before.log_end_offset], strict=True))
    is_last_empty = before.log_segments.active_segment.size == 0
    waits = before.profile.retention_waits_for_replicas
    start, old_start = after.log_start_offset, before.log_start_offset
    may_start = start >= max(new[0] if gone else 0, old_start)
    if not before.profile.log_start_is_kept:
        may_start = start == new[0] or old_start != old[0]
    return (
        gone == old[: len(gone)]
        and (not waits or all(ends[base] <= before.high_watermark for base in gone))
        and transition.outcome == len(gone)
        and not (is_last_empty and old[-1] in gone)
        and may_start
    )


@law("LOG-18", structure=STRUCTURE, scope="step", source=f"{CLASS}: deleteRetentionSizeBreached")
def size_retention_keeps_the_limit(transition: Transition) -> bool:
    """Size retention sums in 64 bits and removes while total - retention.bytes - segment size >=
    0."""
    if not is_judged(transition, "delete_old_segments") or isinstance(transition.outcome, Raised):
        return True
    before, after = transition.before, transition.after
    limit, config = before.config.retention_bytes, before.config
    if limit < 0 or "delete" not in config.cleanup_policy:
        return True
    first, *others = after.log_segments
    end = others[0].base_offset if others else after.log_end_offset
    waits = after.profile.retention_waits_for_replicas
    is_replicated = not waits or end <= after.high_watermark
    may_go = is_replicated and (others or first.size > 0)
    if may_go and after.size - first.size >= limit:
        return False
    old, new = before.log_segments.base_offsets(), after.log_segments.base_offsets()
    is_by_size = (
        config.retention_ms < 0
        and old[0] not in new
        and new[0] > max(before.log_start_offset, old[0])
    )
    return not is_by_size or after.size >= limit


@law("LOG-19", structure=STRUCTURE, scope="step", source=f"{CLASS}: splitOverflowedSegment")
def splitting_keeps_every_batch(transition: Transition) -> bool:
    """Splitting an overflowed segment keeps every batch byte-identical and in order, leaves no
    overflow, and may yield a single segment."""
    if not is_judged(transition, "split_overflowed_segment"):
        return True
    bases = transition.outcome
    if not isinstance(bases, list) or not is_sound(transition.before):
        return True
    old = dict(log_images(transition.before))[transition.arguments["base_offset"]]
    new = [image for base, image in log_images(transition.after) if base in bases]
    return b"".join(new) == old and not any(
        is_far(batches_of_segment(transition.after, base), base) for base in bases
    )


@law("LOG-20", structure=STRUCTURE, scope="step", source=f"{CLASS}: splitOverflowedSegment")
def only_overflow_is_split(transition: Transition) -> bool:
    """Splitting a segment without overflow raises invalid-argument.

    Where an index of another segment leads into a batch, that is found first.
    """
    if not is_judged(transition, "split_overflowed_segment") or not is_sound(transition.before):
        return True
    base = transition.arguments["base_offset"]
    known = transition.before.log_segments.contains(base)
    if known and is_far(batches_of_segment(transition.before, base), base):
        return True
    return transition.outcome in (INVALID_ARGUMENT, CORRUPT_INDEX, CORRUPT_RECORD)


@law("LOG-21", structure=STRUCTURE, scope="step", source="Kafka UnifiedLog.append")
def given_offsets_rise(transition: Transition) -> bool:
    """An append with given offsets is refused with the offset-order error and writes nothing when
    its first offset is below the log end offset or its offsets do not increase.

    Of messages of magic 0 and 1 the last offset of the first stands for the first.
    """
    if not is_judged(transition, "append_as_follower"):
        return True
    before, outcome = transition.before, transition.outcome
    if outcome == OFFSET_ORDER:
        return log_images(transition.after) == log_images(before)
    if not isinstance(outcome, LogAppendInfo) or outcome.valid_bytes == 0:
        return True
    records = transition.arguments["records"][: outcome.valid_bytes]
    batches = scan_memory(records, codecs=before.codecs).batches
    lasts: list[Any] = [batch.last_offset for batch in batches]
    first = lasts[0] if batches[0].is_legacy else batches[0].base_offset
    return is_rising(lasts) and bool(first >= before.log_end_offset)


@law("LOG-22", structure=STRUCTURE, scope="step", source=CLASS)
def operations_keep_segments_apart(transition: Transition) -> bool:
    """No operation makes segments of a log overlap that did not overlap before.

    Up to 2.0 an append may, before a segment that a roll has begun ahead of the log end.
    """
    if not is_judged(transition, transition.operation) or not is_sound(transition.before):
        return True
    if transition.operation in APPENDS and _is_begun_ahead(transition.before):
        return True
    return not has_overlap(transition.after)
