# SPDX-License-Identifier: Apache-2.0
"""The laws of a partition's log: appends, reads, truncation, rolls and retention.

A law that needs an open log, or a log whose offsets rise, passes for other logs, such as crafted
files. LOG-4 is a law of files.
"""

from segproof_model.kafka.broker import partition_log_deviations as ours
from segproof_model.kafka.broker import partition_log_releases as older
from segproof_model.kafka.broker import partition_log_releases_before_2 as before_2
from segproof_model.kafka.broker import partition_log_releases_before_2_3 as before_2_3
from segproof_model.kafka.broker import partition_log_releases_before_2_8 as before_2_8
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_segment import FetchDataInfo
from segproof_model.kafka.format.log_segment_releases_before_2 import TimeSearchBeginsAtEntry
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.broker.log_views import (
    APPENDS,
    leads_astray,
    log_view,
    overflows,
)
from segproof_model.laws.kafka.format.segment_views import appended
from segproof_model.laws.register import Transition, has, law

CLASS = "Kafka UnifiedLog and LocalLog, 4.3.1"
APPEND = "Kafka UnifiedLog.append"
TRUNCATE = "Kafka UnifiedLog.truncateTo"
RETENTION = f"{CLASS}: deletableSegments, deleteRetentionSizeBreached"
BY_TIME = f"{CLASS}: fetchOffsetByTimestamp, searchOffsetInLocalLog"
SEARCH, DELETION = "fetch_offset_by_timestamp", "delete_old_segments"
SPLIT = f"{CLASS}: splitOverflowedSegment"


# --- reading -------------------------------------------------------------------------------------


@law("LOG-5", PartitionLog, CLASS, on="read")
def reads_stay_in_range(step: Transition) -> bool:
    """A read is out of range exactly below the log start, above the log end, or below every
    segment.

    Up to 2.4 a read at the log end is answered wherever the log starts; from 2.4 to 3.7 a read
    whose bound lies outside of the log is out of range too. Finding the bound may read damaged
    bytes.
    """
    log, start, bases = step.before, step.arguments["start_offset"], log_view(step.before).bases
    if not log_view(log).is_open:
        return True
    if start == log.log_end_offset and has(log, before_2_8.ReadAtBoundGoesOn):
        return step.succeeded
    if max(log.log_start_offset, bases[0]) <= start <= log.log_end_offset:
        return not step.raised(ErrorKind.OUT_OF_RANGE) or has(log, older.BoundOutsideIsRefused)
    is_looked_up = step.arguments["isolation"] != "log_end"
    return step.raised(ErrorKind.OUT_OF_RANGE) or (is_looked_up and not step.succeeded)


def _fetched(step: Transition) -> FetchDataInfo | None:
    """Return the answer of a read of a sound log."""
    is_sound = step.succeeded and log_view(step.before).is_sound
    return step.answer if is_sound else None


@law("LOG-6", PartitionLog, CLASS, on="read")
def reads_begin_at_the_batch(step: Transition) -> bool:
    """A read returns batches from the first one, in the floor segment or later, that reaches the
    offset, and no batch that begins at or after the bound of the isolation level.

    The bound is the one after the read, which may move it. Kafka reads beyond a bound whose
    position is in a removed segment. Not judged: an index with wrong entries, and the bound up to
    2.4.
    """
    found, log, start = _fetched(step), log_view(step.after), step.arguments["start_offset"]
    if found is None or found.records is None:
        return True
    bound, segments = log.bound(step.arguments["isolation"]), log.from_floor(start)
    if any(leads_astray(one, at) for one in segments for at in (start, bound.message_offset)):
        return True
    reaching = [(one, batch) for one in segments if (batch := one.first_reaching(start))]
    (segment, first), begin = reaching[0], found.records.start
    taken = [one for one in segment.batches if begin <= one.position < begin + found.records.size]
    is_gone = bound.segment_base_offset not in (-1, *log.bases)
    is_bent = has(step.after, before_2_8.ReadAtBoundGoesOn) or (
        is_gone and not has(step.after, ours.BoundLeavesRemovedSegment)
    )
    is_first = found.fetch_offset_metadata.segment_base_offset == segment.base_offset
    is_below = is_bent or all(one.base_offset < bound.message_offset for one in taken)
    return is_first and begin == first.position and is_below


@law("LOG-7", PartitionLog, CLASS, on="read", unless=before_2_8.ReadAtBoundGoesOn)
def reads_at_the_bound_are_empty(step: Transition) -> bool:
    """A read at its bound returns no records, and the bound with its position, if that is known.

    Up to 2.4 the read continues in the segments.
    """
    found, bound = _fetched(step), log_view(step.after).bound(step.arguments["isolation"])
    if found is None or step.arguments["start_offset"] != bound.message_offset:
        return True
    if bound.segment_base_offset < 0:
        # The found batch may be the next one, after a gap.
        return found.records is None or found.records.size == 0
    return found.records is None and found.fetch_offset_metadata == bound


@law("LOG-8", PartitionLog, CLASS, on="read")
def committed_reads_list_what_was_aborted(step: Transition) -> bool:
    """A read_committed read lists, in the order of the indexes, every aborted transaction that
    overlaps the returned records, and none that ended before them.

    The list ends at the first transaction with a last stable offset above these records
    (TXNIDX-10). Not judged: an index whose entry for the end of the read has too small an offset.
    """
    found, log, start = _fetched(step), log_view(step.after), step.arguments["start_offset"]
    if found is None or found.records is None or step.arguments["isolation"] != "txn_committed":
        return True
    segment = log.of(found.fetch_offset_metadata.segment_base_offset)
    end = found.records.start + found.records.size
    last = max([-1, *(one.last_offset for one in segment.batches if one.position < end)])
    if any(offset <= last for offset, position in segment.offsets if position >= end):
        return True
    known = log.aborted_from(segment.base_offset)
    visited = next((n for n, one in enumerate(known, 1) if one.last_stable_offset > last), None)
    needed = [one[1:] for one in known[:visited] if start <= one.last_offset]
    listed = [one[1:] for one in found.aborted_transactions or ()]
    may_be = [one[1:] for one in known if start <= one.last_offset]
    is_complete = all(one in listed for one in needed if one[1] <= last)
    return is_complete and listed == [one for one in may_be if one in listed]


# --- writing -------------------------------------------------------------------------------------


@law("LOG-9", PartitionLog, APPEND, on=APPENDS, unless=before_2_3.AppendEndsLogLast)
def log_end_comes_between(step: Transition) -> bool:
    """An append that moves the log end has its last batch at the end of the last segment; an append
    that keeps the log end touches no transaction index.

    Up to 2.1 the log end moves last.
    """
    before, after = log_view(step.before), log_view(step.after)
    if not before.is_sound:
        return True
    if after.ends[-1] == before.ends[-1]:
        return after.aborted_from(0) == before.aborted_from(0)
    return [one.last_offset + 1 for one in after.segments[-1].batches[-1:]] == after.ends[-1:]


@law("LOG-10", PartitionLog, APPEND, on=APPENDS)
def large_sets_are_refused(step: Transition) -> bool:
    """A record set larger than segment.bytes is refused before any byte is written."""
    before, after = log_view(step.before), log_view(step.after)
    if step.raised(ErrorKind.RECORD_BATCH_TOO_LARGE):
        return after.images == before.images
    return bool(step.after.size - step.before.size <= step.before.config.segment_bytes)


@law("LOG-11", PartitionLog, "Kafka UnifiedLog.maybeRoll, since 2.0", on=f"roll {APPENDS}")
def new_segments_begin_at_the_log_end(step: Transition) -> bool:
    """A new segment begins at the first offset of the append, or at the log end if that is greater.

    An unknown first offset of an append, and up to 1.1 any, is guessed: 2147483647 before the last
    one. The offsets answered for a duplicate batch don't count.
    """
    before, bases = step.before, log_view(step.after).bases
    if not step.succeeded:
        return True
    if step.operation == "roll":
        expected = max(step.arguments["expected_next_offset"] or 0, before.log_end_offset)
        is_last = expected == bases[-1] or has(before, before_2_3.EmptySegmentIsNotReplaced)
        return step.outcome == expected and expected in bases and is_last
    new = set(bases) - set(log_view(before).bases)
    is_known = step.answer.first_offset >= 0 and not has(before, before_2.RollKnowsLastOffset)
    first = step.answer.first_offset if is_known else step.answer.last_offset - INT32_MAX
    is_again = step.after.log_end_offset == before.log_end_offset
    return is_again or new <= {max(first, before.log_end_offset)}


@law("LOG-12", PartitionLog, "Kafka LocalLog.roll, since 2.1", on="roll")
def an_empty_active_segment_is_replaced(step: Transition) -> bool:
    """roll onto the base of the active, empty segment replaces it; onto any other existing base, or
    below the active base, it is refused and deletes nothing.

    Up to 2.0 a roll onto an empty segment is refused too, and a segment can begin before another.
    """
    before, after = log_view(step.before), log_view(step.after)
    base = max(step.arguments["expected_next_offset"] or 0, before.ends[-1])
    if not before.is_open:
        return True
    if has(step.before, before_2_3.EmptySegmentIsNotReplaced):
        return base not in before.bases or (not step.succeeded and after.bases == before.bases)
    is_replaced = base == before.bases[-1] and not before.segments[-1].image
    if base > before.bases[-1] or is_replaced:
        is_empty = after.bases == before.bases and not after.segments[-1].image
        return not step.raised(ErrorKind.KAFKA_ERROR) and (is_empty or not is_replaced)
    is_kept = step.before.files.images.items() <= step.after.files.images.items()
    return not step.succeeded and is_kept


# --- cutting -------------------------------------------------------------------------------------


@law("LOG-13", PartitionLog, TRUNCATE, on="truncate_to")
def truncation_ends_the_log(step: Transition) -> bool:
    """truncate_to(t) is refused for t < 0; for t >= log end it only cuts the epochs and returns
    False; otherwise the log ends at t, and no segment begins after t.

    Up to 2.4 it keeps the epochs too; before 0.11 a truncation to the log end is done like one
    below it.
    """
    before, after, target = step.before, step.after, step.arguments["target_offset"]
    if target < 0 or not step.succeeded:
        return target >= 0 or (not step.succeeded and step.is_unchanged)
    if target >= before.log_end_offset + has(before, before_2.TruncationAtEndIsDone):
        keeps_epochs = has(before, before_2_8.TruncationAtEndKeepsEpochs)
        is_same = step.changed_only("" if keeps_epochs else "leader_epoch_cache files")
        return step.outcome is False and is_same
    is_end = after.log_end_offset == target and log_view(after).bases[-1] <= target
    return step.outcome is True and is_end


@law("LOG-14", PartitionLog, TRUNCATE, on="truncate_to")
def truncation_before_the_log_begins_anew(step: Transition) -> bool:
    """truncate_to below the first base leaves one empty segment at t.

    An earlier failure may have left a log that ends below its first base: this log is not cut.
    """
    target, before = step.arguments["target_offset"], log_view(step.before)
    is_before = target < min([*before.bases[:1], before.ends[-1]])
    return not (is_before and step.succeeded) or log_view(step.after).images == {target: b""}


@law("LOG-19", PartitionLog, SPLIT, on="split_overflowed_segment")
def splitting_keeps_every_batch(step: Transition) -> bool:
    """Splitting an overflowed segment keeps every batch byte-identical and in order, and leaves no
    overflow. It may yield a single segment."""
    before, after = log_view(step.before), log_view(step.after)
    if not step.succeeded or not before.is_sound:
        return True
    parts = [one for one in after.segments if one.base_offset in step.answer]
    old = before.images[step.arguments["base_offset"]]
    return b"".join(one.image for one in parts) == old and not any(map(overflows, parts))


@law("LOG-20", PartitionLog, SPLIT, on="split_overflowed_segment")
def only_overflow_is_split(step: Transition) -> bool:
    """Splitting a segment without overflow, or a missing segment, is refused."""
    log, base = log_view(step.before), step.arguments["base_offset"]
    may_split = not log.is_sound or (base in log.bases and overflows(log.of(base)))
    return may_split or (not step.succeeded and log_view(step.after).images == log.images)


@law("LOG-21", PartitionLog, APPEND, on="append_as_follower")
def given_offsets_rise(step: Transition) -> bool:
    """A follower's offsets that do not increase, or whose first is below the log end, are refused,
    and nothing is written.

    For messages of magic 0 and 1 the last offset of the first message counts as the first offset.
    """
    if step.raised(ErrorKind.OFFSET_ORDER):
        return log_view(step.after).images == log_view(step.before).images
    if not step.succeeded or step.answer.valid_bytes == 0:
        return True
    records = step.arguments["records"][: step.answer.valid_bytes]
    batches, _ = appended(step.before.log_segments.active_segment, records)
    first = batches[0].last_offset if records[16] < 2 else batches[0].base_offset
    is_behind = first >= step.before.log_end_offset
    return is_behind and is_rising([one.last_offset for one in batches])


@law("LOG-22", PartitionLog, CLASS)
def operations_keep_segments_apart(step: Transition) -> bool:
    """No operation makes segments of a log overlap that did not overlap before.

    Up to 2.0 an append may, before a segment that a roll has begun ahead of the log end.
    """
    if step.operation == "open" or not log_view(step.before).is_sound:
        return True
    may_overlap = step.operation in APPENDS and has(
        step.before, before_2_3.EmptySegmentIsNotReplaced
    )
    return may_overlap or not log_view(step.after).has_overlap


# --- searching and keeping -----------------------------------------------------------------------


@law("LOG-15", PartitionLog, BY_TIME, on=SEARCH)
def one_segment_is_searched_by_timestamp(step: Transition) -> bool:
    """The offset for a timestamp comes from the first segment whose largest timestamp reaches it,
    and from no other.

    Not judged: a log with a batch whose checksum is wrong; its records may have any offset.
    """
    log, target = log_view(step.after), step.arguments["target_timestamp"]
    if target < 0 or not step.succeeded or not log.is_sound:
        return True
    start = 0 if has(step.after, TimeSearchBeginsAtEntry) else step.after.log_start_offset
    for one, end in zip(log.segments, log.ends, strict=True):
        segment = one.segment
        if not all(batch.is_valid() for batch in segment.log.batches()):
            return True
        largest, _ = segment.max_timestamp_and_offset_so_far or (-1, -1)
        if (largest if largest >= 0 else segment.last_modified) >= target:
            found = step.answer
            is_within = found and max(one.base_offset, start) <= found.offset < end
            return found is None or bool(is_within and found.timestamp >= target)
    return step.outcome is None


@law("LOG-16", PartitionLog, BY_TIME, on=SEARCH, unless=older.MaxTimestampIsATime)
def largest_timestamp_is_exact(step: Transition) -> bool:
    """MAX_TIMESTAMP (-3) returns the largest timestamp that a segment remembers, and the first
    record of its batch that has it; from 3.0 to 3.7 it returns the remembered timestamp and offset.
    """
    log, found = log_view(step.after), step.answer
    is_asked = step.arguments["target_timestamp"] == -3 and step.succeeded and found is not None
    if not (is_asked and log.is_sound):
        return True
    pairs = [one.max_timestamp_and_offset_so_far for one in step.after.log_segments]
    if found.timestamp != max(pair.timestamp for pair in pairs if pair is not None):
        return False
    if has(step.after, older.LargestTimestampIsRemembered):
        return bool(found[:2] in pairs)
    batches = [batch for one in step.after.log_segments for batch in one.log.batches()]
    named = [one for one in batches if one.base_offset <= found.offset <= one.last_offset]
    times = [time for batch in named for time in batch.streamed_times()]
    return found.offset in [at for ms, at in times if ms == found.timestamp][:1]


@law("LOG-17", PartitionLog, RETENTION, on=DELETION, unless=before_2.LogBeginsWithSegment)
def retention_removes_a_prefix(step: Transition) -> bool:
    """Retention removes a prefix of the segments, only below the high watermark, never a last empty
    segment, and afterwards the log starts at or after the base of the first remaining segment.

    Releases before 0.11 have no high watermark, and their logs start at the first segment.
    """
    before, old, new = step.before, log_view(step.before).bases, log_view(step.after).bases
    gone = [base for base in old if base not in new]
    if not step.succeeded or not gone:
        return not step.succeeded or step.outcome == 0
    is_prefix = gone == old[: len(gone)] and step.outcome == len(gone)
    is_last_empty = before.log_segments.active_segment.size == 0 and old[-1] in gone
    is_replicated = new[0] <= before.high_watermark
    return (
        is_prefix and is_replicated and not is_last_empty and step.after.log_start_offset >= new[0]
    )


@law("LOG-18", PartitionLog, RETENTION, on=DELETION)
def size_retention_keeps_the_limit(step: Transition) -> bool:
    """Size retention sums in 64 bits and removes while total - retention.bytes - segment size >=
    0."""
    config, old, after = step.before.config, log_view(step.before), log_view(step.after)
    limit, size = config.retention_bytes, step.after.size
    if limit < 0 or "delete" not in config.cleanup_policy or not step.succeeded:
        return True
    first = len(after.segments[0].image)
    is_replicated = after.ends[0] <= step.after.high_watermark
    may_go = is_replicated or has(step.after, before_2.RetentionWaitsForNobody)
    if may_go and (after.bases[1:] or first > 0) and size - first >= limit:
        return False
    is_by_size = after.bases[0] > max(step.before.log_start_offset, old.bases[0])
    return size >= limit or not is_by_size or config.retention_ms >= 0
