# SPDX-License-Identifier: Apache-2.0
"""The laws of a segment's appends, reads, truncation and rolls.

Its recovery: segment_recovery; its files: segment_files. A law that needs a log in order, or
indexes that fit the log, passes for other logs.
"""

from segproof_model.kafka.format import log_segment_deviations as ours
from segproof_model.kafka.format import log_segment_releases as older
from segproof_model.kafka.format import log_segment_releases_before_2 as before_2
from segproof_model.kafka.format.index_deviations import UpperBoundIsExact
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import differing, outcome_of
from segproof_model.laws.arithmetic import is_rising, low_32_bits
from segproof_model.laws.kafka.format.index_slots import is_full
from segproof_model.laws.kafka.format.segment_views import (
    Batch,
    appended,
    due,
    largest_of,
    segment_view,
)
from segproof_model.laws.kafka.format.transaction_index import slots_of
from segproof_model.laws.register import Transition, has, law, retired

APPEND = "Kafka LogSegment.append, since 1.1.1"
READ = "Kafka LogSegment.read, since 1.1.1"
TRUNCATE = "Kafka LogSegment.truncateTo, since 1.1.1"
ROLL = "Kafka LogSegment.shouldRoll, timeWaitedForRoll, since 1.1.1"
CHANGES = (
    "append append_many truncate_to resize_indexes sanity_check on_become_inactive_segment"
    " change_file_suffixes set_last_modified"
)
"""The operations that segproof does wholly or not at all."""
ALL_CHANGES = {*f"{CHANGES} open append_from_file recover close delete_if_exists".split()}
SEEN_LATE = (ErrorKind.CORRUPT_RECORD, ErrorKind.KAFKA_ERROR, ErrorKind.CORRUPT_INDEX)
"""The errors of what a truncation has left, which it reads when it has cut."""


# --- writing -------------------------------------------------------------------------------------


@law("SEG-1", LogSegment, APPEND, on="append")
def empty_append_changes_nothing(step: Transition) -> bool:
    """An append of no records changes nothing."""
    return bool(step.arguments["records"]) or step.is_unchanged


@law("SEG-2", LogSegment, APPEND, on="append")
def far_offset_is_refused(step: Transition) -> bool:
    """An append whose largest offset is too far from the base raises the segment-overflow error,
    up to 1.1 invalid-argument, and writes nothing."""
    before, after = segment_view(step.before), segment_view(step.after)
    if not step.arguments["records"] or before.can_hold(step.arguments["largest_offset"]):
        return not step.raised(ErrorKind.SEGMENT_OVERFLOW)
    is_old = has(step.before, before_2.FarOffsetIsInvalidArgument)
    kind = ErrorKind.INVALID_ARGUMENT if is_old else ErrorKind.SEGMENT_OVERFLOW
    # An index that cannot be opened is met first.
    is_right = step.raised(kind) or None in before.indexes or before.is_closed
    return is_right and not step.succeeded and after.image == before.image


@law("SEG-3", LogSegment, APPEND, on="append")
def append_writes_what_it_gets(step: Transition) -> bool:
    """After an append the log is the old bytes followed by the appended ones."""
    written = segment_view(step.before).image + step.arguments["records"]
    return not step.succeeded or segment_view(step.after).image == written


def _due(step: Transition) -> list[Batch] | None:
    """Return the batches of an append, up to 4.0 the call as one, for which an entry is due; None
    where it cannot be read."""
    before, records = step.before, step.arguments["records"]
    found, is_readable = appended(before, records)
    if not is_readable or sum(one.size_bytes for one in found) < len(records):
        return None
    if found and has(before, older.CallIsIndexedAsAWhole):
        last = step.arguments["largest_offset"]
        found = [Batch(before.size, len(records), found[0].base_offset, last, -1)]
    return due(found, segment_view(before).begun, before.config.index_interval_bytes)


@law("SEG-4", LogSegment, APPEND, on="append")
def entries_are_made_when_due(step: Transition) -> bool:
    """An offset index entry is made exactly when more bytes than the interval were appended since
    the last one: for each batch, with its last offset and position; up to 4.0 for each call, with
    its largest offset (up to 1.1 its first) and position."""
    before, after, entered = segment_view(step.before), segment_view(step.after), _due(step)
    if not step.succeeded or entered is None or not before.is_known:
        return True
    made = [(before.stored(before.key_of(one)), one.position) for one in entered]
    begun = entered[-1].position if entered else before.begun
    return after.offsets == before.offsets + made and after.begun == begun


retired(
    "SEG-5",
    LogSegment,
    "Where a call is indexed as a whole, it makes at most one offset index entry.",
    older.CallIsIndexedAsAWhole.LogSegment.append,
)


@law("SEG-6", LogSegment, APPEND, on="append")
def first_bytes_are_not_indexed(step: Transition) -> bool:
    """The first append into an empty segment is never indexed, be the interval 0; by batches, its
    first batch is not."""
    before, counted = segment_view(step.before), step.before.bytes_since_last_index_entry
    made = segment_view(step.after).offsets[len(before.offsets) :]
    return counted > 0 or not before.is_known or all(position > 0 for _, position in made)


@law("SEG-8", LogSegment, APPEND, on="append")
def maximum_is_the_largest_so_far(step: Transition) -> bool:
    """The largest timestamp is the largest one passed since it was loaded or reset, with the offset
    passed at its first occurrence.

    If a call gets one index entry at most, or fails, the law only requires that the timestamp does
    not fall.
    """
    known, after = segment_view(step.before).maximum, segment_view(step.after).maximum
    batches, is_readable = appended(step.before, step.arguments["records"])
    if known in (None, (-1, -1)) or not is_readable:  # the pair is unknown too from 3.4 to 3.6
        return True
    if not step.succeeded or has(step.before, older.CallIsIndexedAsAWhole):
        return bool(after.timestamp >= known.timestamp)
    passed = largest_of(batches)
    return bool(after == (passed if batches and passed[0] > known.timestamp else known))


@law("SEG-9", LogSegment, "Kafka LogSegment, since 1.1.1")
def time_entries_come_with_offset_entries(step: Transition) -> bool:
    """A time index entry is written only together with an offset index entry, or by roll, close
    and recovery, and only if the largest timestamp grew since the last one."""
    is_append = step.operation == "append" and step.succeeded
    if step.after is step.before or (step.operation in ALL_CHANGES and not is_append):
        return True
    before, after = segment_view(step.before), segment_view(step.after)
    count, made = len(before.times), len(after.offsets) - len(before.offsets)
    grows = is_rising([timestamp for timestamp, _ in after.times[max(count - 1, 0) :]])
    is_lawful = after.times[:count] == before.times and len(after.times) - count <= made
    return not before.is_known or (is_lawful and grows)


@law("SEG-10", LogSegment, APPEND, on="append", unless=ours.FailedSegmentChangeIsUndone)
def failed_indexing_keeps_the_bytes(step: Transition) -> bool:
    """If indexing fails, all appended bytes stay; without appended bytes, the count stays."""
    old, new = segment_view(step.before).image, segment_view(step.after).image
    was, count = (one.bytes_since_last_index_entry for one in (step.before, step.after))
    is_kept = new == old + step.arguments["records"]
    return step.succeeded or is_kept or (new == old and count == was)


retired(
    "SEG-11",
    LogSegment,
    "Eight batches of 70 bytes leave the known entries of both indexes, by calls and by batches.",
    LogSegment.append,
)


@law("SEG-42", LogSegment, "Kafka LogSegment.appendFromFile", on="append_from_file")
def copying_stops_at_a_far_offset(step: Transition) -> bool:
    """append_from_file copies batches as they are, while their last offset is near enough to the
    base, and returns the bytes copied."""
    if not step.succeeded:
        return True
    before, copied = segment_view(step.before), step.answer
    source = step.arguments["records"][step.arguments["start"] :]
    added, left = appended(step.before, source[:copied]), appended(step.before, source[copied:])
    is_near = all(before.can_hold(one.last_offset) for one in added[0])
    is_far = not any(before.can_hold(one.last_offset) for one in left[0][:1])
    return is_near and is_far and segment_view(step.after).image == before.image + source[:copied]


@law("SEG-50", LogSegment, "segproof", on=CHANGES, only=ours.FailedSegmentChangeIsUndone)
def failed_change_is_undone(step: Transition) -> bool:
    """A failed operation on a segment of segproof has changed nothing, except that it may load
    indexes. A truncation may meet damage in the remaining log, and entries that lead nowhere.
    """
    is_late = step.operation == "truncate_to" and any(map(step.raised, SEEN_LATE))
    if step.succeeded or is_late:
        return True
    before, after = segment_view(step.before), segment_view(step.after)
    names = "files lazy_offset_index lazy_time_index max_timestamp_and_offset_so_far"
    is_kept = step.before.files.images.items() <= step.after.files.images.items()
    is_same = before.maximum in (None, after.maximum) and step.changed_only(names) and is_kept
    indexes = zip(before.lazy_indexes, after.lazy_indexes, strict=True)
    loaded = [differing(one, other) for one, other in indexes if one.index is not None]
    return is_same and all(names <= {"files"} for names in loaded)


# --- reading -------------------------------------------------------------------------------------


@law("SEG-12", LogSegment, "Kafka LogSegment.translateOffset", on="translate_offset")
def translation_ignores_density(step: Transition) -> bool:
    """translate_offset returns the first batch that reaches the offset, or nothing, however many
    entries the index has."""
    before = segment_view(step.before)
    if step.arguments["starting_file_position"] or not before.is_true or not step.succeeded:
        return True
    found = before.first_reaching(step.arguments["offset"])
    place = found and (found.position, found.size_bytes)
    return bool((step.answer and step.answer[1:]) == place)


@law("SEG-13", LogSegment, READ, on="read")
def negative_size_is_refused(step: Transition) -> bool:
    """read raises invalid-argument for a negative size."""
    is_refused = step.raised(ErrorKind.INVALID_ARGUMENT) or segment_view(step.before).is_closed
    return step.arguments["max_size"] >= 0 or is_refused


@law("SEG-14", LogSegment, READ, on="read")
def read_finds_what_reaches(step: Transition) -> bool:
    """read returns nothing exactly when no batch reaches the offset."""
    before = segment_view(step.before)
    is_there = before.first_reaching(step.arguments["start_offset"]) is not None
    return not step.succeeded or not before.is_true or (step.outcome is not None) == is_there


def _found(step: Transition) -> list[tuple[FetchDataInfo, Batch, int]]:
    """Return what a read found, if something, with its first batch and the adjusted size."""
    info, size = step.outcome, step.arguments["max_size"]
    if not isinstance(info, FetchDataInfo):
        return []
    place = info.fetch_offset_metadata.relative_position_in_segment
    first = [one for one in segment_view(step.before).batches if one.position == place]
    least = step.arguments["min_one_message"]
    return [(info, one, max(size, one.size_bytes) if least else size) for one in first]


@law("SEG-15", LogSegment, READ, on="read")
def read_starts_at_a_batch(step: Transition) -> bool:
    """A read starts with the first byte of the first batch that reaches the offset, so perhaps with
    smaller offsets. The metadata has that batch's base offset, up to 3.9 the start offset.
    """
    before, start_offset = segment_view(step.before), step.arguments["start_offset"]
    is_asked = has(step.before, older.ReadAnswersOffsetAskedFor)
    return not before.is_true or all(
        before.first_reaching(start_offset) == first
        and (info.records is None or info.records.start == first.position)
        and info.fetch_offset_metadata
        == (start_offset if is_asked else first.base_offset, before.base_offset, first.position)
        for info, first, _ in _found(step)
    )


@law("SEG-16", LogSegment, READ, on="read")
def read_is_bounded(step: Transition) -> bool:
    """read returns at most the bytes up to max_position and the adjusted size: max_size, under
    min_one_message no less than the first batch. A negative number raises invalid-argument."""
    for info, first, size in _found(step):
        room = (step.arguments["max_position"] or 0) - first.position
        limit = room if has(step.before, ours.NumbersOfSegmentDoNotWrap) else low_32_bits(room)
        least = min(limit, size, step.before.size - first.position)
        return info.records is None or bool(info.records.size == least)
    return True


@law("SEG-17", LogSegment, READ, on="read")
def incomplete_looks_at_the_size(step: Transition) -> bool:
    """The first entry is incomplete if it is larger than the adjusted size, for any max_position;
    not if no records are read.
    """
    return all(
        info.first_entry_incomplete is (info.records is not None and size < first.size_bytes)
        for info, first, size in _found(step)
    )


@law("SEG-18", LogSegment, "Kafka LogSegment.read, since 3.8.0", on="read")
def nothing_asked_is_nothing_read(step: Transition) -> bool:
    """read with an adjusted size of 0 or without a max_position returns metadata, no records."""
    is_open = step.arguments["max_position"] is None
    return all((info.records is None) is (is_open or not size) for info, _, size in _found(step))


@law("SEG-19", LogSegment, "Kafka OffsetIndex.fetchUpperBoundOffset", on="fetch_upper_bound_offset")
def upper_bound_is_the_index_entry(step: Transition) -> bool:
    """fetch_upper_bound_offset is the offset of the first entry at or after the end of the fetch,
    or nothing; only segproof answers it if it is the very first entry.
    """
    before, is_exact = segment_view(step.before), has(step.before, UpperBoundIsExact)
    end = step.arguments["start_offset_position"].position + step.arguments["fetch_size"]
    end = end if is_exact else low_32_bits(end)
    passed = int(not is_exact and [at for _, at in before.offsets[:1]] == [end])
    met = next((offset for offset, at in before.offsets[passed:] if at >= end), None)
    return not step.succeeded or not before.is_true or step.outcome == met


@law("SEG-35", LogSegment, "Kafka LogSegment.readNextOffset", on="read_next_offset")
def next_offset_is_behind_the_last_batch(step: Transition) -> bool:
    """read_next_offset is the offset after the last complete batch at or after the last index
    entry, or the base offset without such a batch, and when the index ends beyond the data.
    """
    before = segment_view(step.before)
    return not step.succeeded or not before.is_true or step.outcome == before.next_offset


@law("SEG-39", LogSegment, "Kafka LogSegment.findOffsetByTimestamp", on="find_offset_by_timestamp")
def search_by_time_finds_the_first(step: Transition) -> bool:
    """find_offset_by_timestamp returns the first record in the order of the file that is at or
    after both the timestamp and the offset, in batches whose header promises one; or nothing. 0.10
    has no offset argument.

    Unreadable records may be skipped, and a record with an offset beyond its batch's last.
    """
    segment, timestamp = step.after, step.arguments["timestamp_ms"]
    if not step.succeeded or not segment_view(segment).is_true_of_times:
        return True
    has_start = not has(segment, before_2.TimeSearchBeginsAtEntry)
    start = step.arguments["starting_offset"] if has_start else -(2**63)
    found = (
        (at, offset, offset <= batch.last_offset)
        for batch in segment.log.batches()
        for at, offset in segment.log.times_of(batch)
        if batch.max_timestamp >= timestamp <= at and offset >= start
    )
    answer = step.answer and step.answer[:2]
    expected = outcome_of(next, found, None)
    if isinstance(expected, Raised) or (expected and not expected[2]):
        return True
    return bool(answer == (expected and expected[:2]))


@law("SEG-40", LogSegment, "Kafka LogSegment.largestTimestamp", on="largest_timestamp")
def largest_timestamp_falls_back_on_the_file(step: Transition) -> bool:
    """largest_timestamp is the largest timestamp if that is 0 or more, else the log's time of
    modification."""
    maximum, log = segment_view(step.after).maximum, step.before.log
    modified = log.modified_ms if log.name in step.before.files else 0
    expected = maximum.timestamp if maximum and maximum.timestamp >= 0 else modified
    return not step.succeeded or step.outcome == expected


@law("SEG-41", LogSegment, "Kafka LogSegment.hasOverflow", on="has_overflow")
def overflow_is_a_far_last_offset(step: Transition) -> bool:
    """has_overflow holds exactly when the next offset is above the base and the offset before it is
    too far from the base.
    """
    before = segment_view(step.before)
    is_used = before.next_offset > before.base_offset
    is_far = is_used and not before.can_hold(before.next_offset - 1)
    return not step.succeeded or not before.is_true or step.outcome is is_far


# --- cutting -------------------------------------------------------------------------------------


@law("SEG-31", LogSegment, TRUNCATE, on="truncate_to")
def truncation_removes_whole_batches(step: Transition) -> bool:
    """truncate_to removes exactly the batches from the first one that reaches the offset, and
    returns their number of bytes.
    """
    before, after = segment_view(step.before), segment_view(step.after)
    found = before.first_reaching(step.arguments["offset"])
    end = step.before.size if found is None else found.position
    is_cut = after.image == before.image[:end] and step.outcome == step.before.size - end
    return not step.succeeded or not before.is_true or is_cut


@law("SEG-32", LogSegment, TRUNCATE, on="truncate_to", unless=before_2.TruncationNeedsMatch)
def truncation_cuts_every_index(step: Transition) -> bool:
    """truncate_to cuts all three indexes and gives the first two their largest size, even when no
    byte is removed."""
    after, txn_index = segment_view(step.after), step.after.txn_index
    size = step.before.config.segment_index_bytes
    lengths = [len(index.image) for index in after.indexes if index is not None]
    slots = slots_of(txn_index.image) if txn_index.is_open else []
    kept = [slot.last_offset for slot in slots] + [offset for offset, _ in after.offsets]
    kept += [offset for _, offset in after.times]
    is_below = all(offset < step.arguments["offset"] for offset in kept)
    is_cut = is_below or not segment_view(step.before).is_true_of_times
    return not step.succeeded or (is_cut and lengths == [size // 8 * 8, size // 12 * 12])


@law("SEG-33", LogSegment, TRUNCATE, on="truncate_to", unless=before_2.TruncationNeedsMatch)
def truncation_begins_counting_again(step: Transition) -> bool:
    """truncate_to sets the count of bytes to 0; an empty log then has the age 0 and no first
    timestamp.
    """
    before, after = step.before, step.after
    age, now = (after.created_ms, after.rolling_based_timestamp), before.files.now_ms
    is_aged = age[0] == before.created_ms if after.size else age == (now, None)
    return not step.succeeded or (is_aged and bool(after.bytes_since_last_index_entry == 0))


@law("SEG-34", LogSegment, TRUNCATE, on="truncate_to", unless=before_2.TruncationNeedsMatch)
def truncation_finds_the_maximum(step: Transition) -> bool:
    """After truncate_to the largest timestamp is the largest of the remaining batches, the earliest
    of equal ones, if it was known and not negative before.
    """
    before, after = segment_view(step.before), segment_view(step.after)
    is_asked = before.maximum is not None and before.maximum.timestamp >= 0
    largest = largest_of(after.batches)
    expected = largest if largest[0] >= 0 else (-1, before.base_offset)
    is_judged = step.succeeded and is_asked and before.is_true_of_times
    return not is_judged or bool(after.maximum == expected)


# --- when the next segment begins ----------------------------------------------------------------


def _in_64_bits(segment: LogSegment, milliseconds: int) -> int:
    """Return a time as the release keeps it: segproof does not cut it to 64 bits."""
    is_cut = not has(segment, ours.NumbersOfSegmentDoNotWrap)
    return (milliseconds + 2**63) % 2**64 - 2**63 if is_cut else milliseconds


def _age(segment: LogSegment, now: int, message_timestamp: int) -> int:
    """Return the age that a message gives a segment."""
    first = segment.rolling_based_timestamp
    if first is None:
        first = next((one.max_timestamp for one in segment_view(segment).batches), -1)
    waited = message_timestamp - first if first >= 0 else now - segment.created_ms
    return _in_64_bits(segment, waited)


@law("SEG-36", LogSegment, ROLL, on="time_waited_for_roll")
def age_counts_from_the_first_batch(step: Transition) -> bool:
    """time_waited_for_roll is the message's timestamp minus the largest of the first batch (up to
    4.0 of the first call), where that is 0 or more; else now minus the time of creation."""
    age = _age(step.before, step.arguments["now"], step.arguments["message_timestamp"])
    return not (step.succeeded and segment_view(step.before).is_readable) or step.outcome == age


@law("SEG-37", LogSegment, ROLL, on="should_roll")
def segment_rolls_for_four_reasons(step: Transition) -> bool:
    """should_roll is: too large with the append, or not empty and too old, or an index is full, or
    the largest offset is too far from the base. Only the times overflow, and not in segproof.
    """
    segment, before, what = step.before, segment_view(step.before), step.arguments["roll_params"]
    limit_ms = _in_64_bits(segment, what.max_segment_ms - segment.roll_jitter_ms)
    is_old = _age(segment, what.now, what.max_timestamp_in_messages) > limit_ms
    rolls = (
        segment.size > what.max_segment_bytes - what.messages_size
        or (segment.size > 0 and is_old)
        or any(index is not None and is_full(index) for index in segment_view(step.after).indexes)
        or not before.can_hold(what.max_offset_in_messages)
    )
    return not (step.succeeded and before.is_readable) or step.outcome is rolls


@law("SEG-38", LogSegment, ROLL, on="on_become_inactive_segment")
def inactive_segment_is_trimmed(step: Transition) -> bool:
    """on_become_inactive_segment writes the last time entry, into the reserved slot too, and leaves
    the log and both indexes trimmed."""
    after = segment_view(step.after)
    if not step.succeeded or not segment_view(step.before).is_last_time_known:
        return True
    is_trimmed = after.is_trimmed and len(step.after.log.image) == step.after.size
    is_cut = is_trimmed or has(step.after, before_2.InactiveSegmentIsLeft)
    return is_cut and bool(after.maximum and after.maximum.timestamp <= after.last_time)
