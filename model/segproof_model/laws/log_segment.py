# SPDX-License-Identifier: Apache-2.0
"""The laws of a segment's writing, reading and cutting.

Recovery: segment_recovery. Rolling and the files as files: segment_files. What the entries say of a
log (SEG-7) is stated with the laws of files beside each other: disk. Where a law needs a log
whose offsets rise, or indexes that tell the truth of it, it says so by passing.

Used by: the harness, the generated pages.
"""

from typing import Any

from segproof_model.kafka.log_segment import FetchDataInfo, LogSegment
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import low_32_bits, never_falls, raised, succeeded
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.segment_judging import (
    CLASS,
    STRUCTURE,
    Batch,
    after_of,
    batches_in,
    batches_of,
    can_hold,
    counters,
    first_reaching,
    has_sound_offsets,
    has_sound_times,
    is_judged,
    key_of,
    knows_indexes,
    largest_of,
    log_image,
    offset_entries,
    stored,
    time_entries,
    txn_entries,
)

APPEND = "Kafka LogSegment.append, since 1.1.1"
READ = "Kafka LogSegment.read, since 1.1.1"
TRUNCATE = "Kafka LogSegment.truncateTo, since 1.1.1"
CORRUPT_INDEX = Raised(ErrorKind.CORRUPT_INDEX)
DAMAGED = (Raised(ErrorKind.CORRUPT_RECORD), Raised(ErrorKind.KAFKA_ERROR))
Pairs = tuple[tuple[int, int], ...]
EVERY_SECOND: tuple[Pairs, Pairs] = (
    ((42, 140), (44, 280), (46, 420)),
    ((1020, 42), (1040, 44), (1060, 46)),
)
ALL_BUT_FIRST: tuple[Pairs, Pairs] = (
    tuple((41 + number, 70 + 70 * number) for number in range(7)),
    tuple((1010 + 10 * number, 41 + number) for number in range(7)),
)
SECOND_CALL: tuple[Pairs, Pairs] = (((47, 280),), ((1070, 47),))
TRACES = {
    (1, 8, 0): ALL_BUT_FIRST,
    (1, 8, 100): EVERY_SECOND,
    (4, 2, 0): SECOND_CALL,
    (4, 2, 100): SECOND_CALL,
    (8, 1, 0): ((), ()),
    (8, 1, 100): ((), ()),
}
"""What calls of so many batches, so many calls, and an interval leave where a call is indexed as a
whole; by batches every division of the eight leaves what calls of one do."""


@law("SEG-1", structure=STRUCTURE, scope="step", source=APPEND)
def empty_append_changes_nothing(transition: Transition) -> bool:
    """An append of no records changes nothing."""
    if not is_judged(transition, "append") or transition.arguments["records"]:
        return True
    return transition.outcome is None and bool(transition.after == transition.before)


@law("SEG-2", structure=STRUCTURE, scope="step", source=APPEND)
def far_offset_is_refused(transition: Transition) -> bool:
    """An append whose largest offset is too far from the base raises the segment-overflow error,
    up to 1.1 invalid-argument, and writes nothing; rollingBasedTimestamp may be set."""
    before = transition.before
    if not is_judged(transition, "append") or not transition.arguments["records"]:
        return True
    if can_hold(before, transition.arguments["largest_offset"]):
        return not raised(transition, ErrorKind.SEGMENT_OVERFLOW)
    checks = before.profile.check_relative_offset
    kind = ErrorKind.SEGMENT_OVERFLOW if checks else ErrorKind.INVALID_ARGUMENT
    # An index that cannot be opened is met first.
    is_loaded = before.offset_index is not None and before.time_index is not None
    is_right = raised(transition, kind) or not is_loaded
    return is_right and not succeeded(transition) and _keeps_bytes(transition)


def _keeps_bytes(transition: Transition) -> bool:
    before, after = transition.before, after_of(transition)
    return bool(after.size == before.size and after.log.image == before.log.image)


@law("SEG-3", structure=STRUCTURE, scope="step", source=APPEND)
def append_writes_what_it_gets(transition: Transition) -> bool:
    """After an append the log is the old bytes followed by the appended ones."""
    if not is_judged(transition, "append") or not succeeded(transition):
        return True
    records: bytes = transition.arguments["records"]
    return log_image(transition.after) == log_image(transition.before) + records


def _due(transition: Transition) -> tuple[list[tuple[int, int]], int] | None:
    """Return the entries that an append has to make, and the count of bytes it leaves."""
    before, records = transition.before, transition.arguments["records"]
    batches = batches_in(records, before)
    interval, count = before.config.index_interval_bytes, before.bytes_since_last_index_entry
    if batches is None:
        return None
    if before.profile.index_per_batch:
        met = list(counters(before, batches))
        entries = [(key_of(before, one), one.position) for one, count in met if count > interval]
        if met:
            last, count = met[-1]
            count = last.size_bytes + (0 if count > interval else count)
        return entries, count
    key = transition.arguments["largest_offset"]
    if before.profile.index_key == "first_offset" and batches:
        key = batches[0].base_offset
    if count > interval:
        return [(key, before.size)], len(records)
    return [], count + len(records)


@law("SEG-4", structure=STRUCTURE, scope="step", source=APPEND)
def entries_are_made_when_due(transition: Transition) -> bool:
    """An offset index entry is made exactly when more bytes than the interval were appended since
    the last one: by the newest releases for each batch, with its last offset and position; before,
    for each call, with its largest offset (up to 1.1 its first) and position."""
    if not is_judged(transition, "append") or not succeeded(transition):
        return True
    before, after = transition.before, transition.after
    due = _due(transition)
    if not transition.arguments["records"] or due is None or not knows_indexes(before):
        return True
    if after.bytes_since_last_index_entry != due[1]:
        return False
    made = [(stored(before, offset), position) for offset, position in due[0]]
    return offset_entries(after) == offset_entries(before) + made


@law("SEG-5", structure=STRUCTURE, scope="step", source="Kafka LogSegment.append, 1.1.1 to 4.0.0")
def call_makes_one_entry(transition: Transition) -> bool:
    """Where a call is indexed as a whole, it makes at most one offset index entry."""
    before, after = transition.before, transition.after
    if not is_judged(transition, "append") or before.profile.index_per_batch:
        return True
    if not knows_indexes(before):
        return True
    return len(offset_entries(after)) <= len(offset_entries(before)) + 1


@law("SEG-6", structure=STRUCTURE, scope="step", source=APPEND)
def first_bytes_are_not_indexed(transition: Transition) -> bool:
    """The first append into an empty segment is never indexed, be the interval 0; by batches, its
    first batch is not."""
    before, after = transition.before, transition.after
    if not is_judged(transition, "append") or not knows_indexes(before):
        return True
    if before.size > 0 or before.bytes_since_last_index_entry > 0:
        return True
    made = offset_entries(after)[len(offset_entries(before)) :]
    return all(position > 0 for _, position in made)


@law("SEG-8", structure=STRUCTURE, scope="step", source=APPEND)
def maximum_is_the_largest_so_far(transition: Transition) -> bool:
    """The largest timestamp is the largest of those passed since it was loaded or reset, with the
    offset passed at its first occurrence."""
    before, after = transition.before, transition.after
    if not is_judged(transition, "append") or before.max_pair is None or after.max_pair is None:
        return True
    if transition.operation != "append" or not succeeded(transition):
        return bool(after.max_pair.timestamp >= before.max_pair.timestamp)
    batches = batches_in(transition.arguments["records"], before)
    if batches is None:
        return True
    passed = largest_of(batches)
    if transition.arguments["records"] and not before.profile.index_per_batch:
        timestamp = transition.arguments.get("largest_timestamp")
        offset = transition.arguments.get("shallow_offset_of_max_timestamp")
        of_batches = passed or (-1, -1)
        passed = (
            of_batches[0] if timestamp is None else timestamp,
            of_batches[1] if offset is None else offset,
        )
    is_larger = passed is not None and passed[0] > before.max_pair.timestamp
    return bool(after.max_pair == (passed if is_larger else before.max_pair))


WRITE_TIMES = (
    "append",
    "append_many",
    "append_from_file",
    "recover",
    "on_become_inactive_segment",
    "close",
    "truncate_to",
    "resize_indexes",
    "sanity_check",
    "delete_if_exists",
)
"""The operations after which the time index may have other entries."""


@law("SEG-9", structure=STRUCTURE, scope="step", source=CLASS)
def time_entries_come_with_offset_entries(transition: Transition) -> bool:
    """A time index entry is written only together with an offset index entry, or by roll, close
    and recovery, and only if the largest timestamp grew since the last one."""
    before, after = transition.before, after_of(transition)
    if not isinstance(before, LogSegment) or not knows_indexes(before):
        return True
    old, new = time_entries(before), time_entries(after)
    if transition.operation not in WRITE_TIMES:
        return before.time_index is None or new == old
    if transition.operation != "append" or before.is_closed or not succeeded(transition):
        return True
    made = len(offset_entries(after)) - len(offset_entries(before))
    grows = all(
        one[0] < two[0] for one, two in zip(new[len(old) - 1 :], new[len(old) :], strict=False)
    )
    return new[: len(old)] == old and len(new) - len(old) <= made and (grows or not old)


@law("SEG-10", structure=STRUCTURE, scope="step", source=APPEND)
def failed_indexing_keeps_the_bytes(transition: Transition) -> bool:
    """If indexing fails, the appended bytes and the largest timestamp stay, and the bytes of that
    batch or call are not counted. In segproof nothing was written, and nothing else changed."""
    before, after = transition.before, transition.after
    if not is_judged(transition, "append") or succeeded(transition):
        return True
    count = after.bytes_since_last_index_entry
    if before.profile.checks_before_changing:
        is_unchanged = count == before.bytes_since_last_index_entry
        is_same = before.max_pair is None or after.max_pair == before.max_pair
        return is_unchanged and is_same and _keeps_bytes(transition)
    records = transition.arguments["records"]
    if _keeps_bytes(transition):
        return bool(count == before.bytes_since_last_index_entry)
    if log_image(after) != log_image(before) + records:
        return False
    batches = batches_in(records, before)
    if batches is None or not before.profile.index_per_batch:
        return before.profile.index_per_batch or bool(count == before.bytes_since_last_index_entry)
    return count in [met for _, met in counters(before, batches)]


@law("SEG-11", structure=STRUCTURE, scope="pure", source="Kafka LogSegment.append, since 1.1.1")
def eight_batches_leave_their_trace(
    batches_per_call: int, interval: int, is_per_batch: bool, offsets: Pairs, times: Pairs
) -> bool:
    """Eight batches of 70 bytes with one record each, offsets from 40 on, timestamps 1000, 1010
    and so on, leave the known entries of both indexes, by calls and by batches."""
    size = 1 if is_per_batch else batches_per_call
    known = TRACES[size, 8 // size, interval]
    return (tuple(offsets), tuple(times)) == known


@law("SEG-12", structure=STRUCTURE, scope="step", source="Kafka LogSegment.translateOffset")
def translation_ignores_density(transition: Transition) -> bool:
    """translate_offset returns the first batch that reaches the offset, or nothing, however many
    entries the index has."""
    before, outcome = transition.before, transition.outcome
    if not is_judged(transition, "translate_offset") or not has_sound_offsets(before):
        return True
    if transition.arguments.get("starting_file_position") or isinstance(outcome, Raised):
        return True
    found = first_reaching(batches_of(before) or [], transition.arguments["offset"])
    if found is None or outcome is None:
        return found is None and outcome is None
    return isinstance(outcome, tuple) and outcome[1:] == (found.position, found.size_bytes)


@law("SEG-13", structure=STRUCTURE, scope="step", source=READ)
def negative_size_is_refused(transition: Transition) -> bool:
    """read raises invalid-argument for a negative size."""
    if not is_judged(transition, "read") or transition.arguments["max_size"] >= 0:
        return True
    return raised(transition, ErrorKind.INVALID_ARGUMENT)


@law("SEG-14", structure=STRUCTURE, scope="step", source=READ)
def read_finds_what_reaches(transition: Transition) -> bool:
    """read returns nothing exactly when no batch reaches the offset."""
    before = transition.before
    if not is_judged(transition, "read") or not has_sound_offsets(before):
        return True
    if isinstance(transition.outcome, Raised):
        return True
    found = first_reaching(batches_of(before) or [], transition.arguments["start_offset"])
    return (transition.outcome is None) == (found is None)


def _read(transition: Transition) -> tuple[FetchDataInfo, Batch, int] | None:
    """Return what a read found, its first batch, and the adjusted size."""
    if not is_judged(transition, "read") or not isinstance(transition.outcome, FetchDataInfo):
        return None
    position = transition.outcome.fetch_offset_metadata.relative_position_in_segment
    batches = batches_of(transition.before) or []
    first = next((batch for batch in batches if batch.position == position), None)
    if first is None:
        return None
    size = transition.arguments["max_size"]
    if transition.arguments.get("min_one_message", False):
        size = max(size, first.size_bytes)
    return transition.outcome, first, size


@law("SEG-15", structure=STRUCTURE, scope="step", source=READ)
def read_starts_at_a_batch(transition: Transition) -> bool:
    """What is read starts with the first byte of the first batch that reaches the offset, so maybe
    with smaller offsets. The metadata has that batch's base offset, up to 3.9 the start offset."""
    read, before = _read(transition), transition.before
    if read is None or not has_sound_offsets(before):
        return True
    info, first, _ = read
    start_offset = transition.arguments["start_offset"]
    is_base = before.profile.search_answers_base_offset
    offset = first.base_offset if is_base else start_offset
    expected = offset, before.base_offset, first.position
    starts = info.records is None or info.records.start == first.position
    is_first = first_reaching(batches_of(before) or [], start_offset) == first
    return starts and is_first and tuple(info.fetch_offset_metadata) == expected


@law("SEG-16", structure=STRUCTURE, scope="step", source=READ)
def read_is_bounded(transition: Transition) -> bool:
    """read returns at most the bytes up to max_position and the adjusted size: max_size, under
    min_one_message no less than the first batch. A negative number raises invalid-argument."""
    read = _read(transition)
    if read is None or read[0].records is None:
        return True
    info, first, size = read
    room = transition.arguments.get("max_position", 2**31 - 1) - first.position
    limit = low_32_bits(room) if transition.before.profile.read_size_wraps else room
    assert info.records is not None
    available: int = transition.before.size - first.position
    return bool(info.records.size == min(limit, size, available))


@law("SEG-17", structure=STRUCTURE, scope="step", source=READ)
def incomplete_looks_at_the_size(transition: Transition) -> bool:
    """The first entry is incomplete if it is larger than the adjusted size, wherever max_position
    lies."""
    read = _read(transition)
    if read is None or read[0].records is None:
        return read is None or read[0].first_entry_incomplete is False
    info, first, size = read
    return info.first_entry_incomplete is (size < first.size_bytes)


@law("SEG-18", structure=STRUCTURE, scope="step", source="Kafka LogSegment.read, since 3.8.0")
def nothing_asked_is_nothing_read(transition: Transition) -> bool:
    """read with an adjusted size of 0 or without a max_position returns metadata, no records."""
    read = _read(transition)
    if read is None:
        return True
    is_empty = read[2] == 0 or transition.arguments.get("max_position", 0) is None
    return (read[0].records is None) is is_empty


@law("SEG-19", structure=STRUCTURE, scope="step", source="Kafka LogSegment.fetchUpperBoundOffset")
def upper_bound_is_the_index_entry(transition: Transition) -> bool:
    """fetch_upper_bound_offset is the offset of the first entry behind the fetch, or nothing."""
    before = transition.before
    if not is_judged(transition, "fetch_upper_bound_offset") or not has_sound_offsets(before):
        return True
    entries = offset_entries(before)
    if before.offset_index is None or not never_falls([position for _, position in entries]):
        return True
    is_exact = before.profile.upper_bound_exact
    start, size = (transition.arguments[n] for n in ("start_offset_position", "fetch_size"))
    target = start[1] + size if is_exact else low_32_bits(start[1] + size)
    behind = [
        offset
        for number, (offset, position) in enumerate(entries)
        if position > target or (position == target and (number > 0 or is_exact))
    ]
    if len({position for _, position in entries}) < len(entries):
        return True
    return transition.outcome == (behind[0] if behind else None)


@law("SEG-31", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_removes_whole_batches(transition: Transition) -> bool:
    """truncate_to removes exactly the batches from the first on that reaches the offset, and
    returns their bytes."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "truncate_to") or not has_sound_offsets(before):
        return True
    if not succeeded(transition):
        return True
    found = first_reaching(batches_of(before) or [], transition.arguments["offset"])
    end = before.size if found is None else found.position
    is_cut = log_image(after) == log_image(before)[:end]
    return is_cut and transition.outcome == before.size - end


def _finds_no_match(transition: Transition) -> bool:
    """Return whether a truncation found no batch to cut, under a profile that then does nothing."""
    needs_match: bool = transition.before.profile.truncation_needs_match
    return needs_match and transition.outcome == 0


@law("SEG-32", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_cuts_every_index(transition: Transition) -> bool:
    """truncate_to cuts all three indexes and gives the first two their largest size, even when no
    byte is removed. In segproof an error of an index changes none of them; damaged batches, and
    entries that point outside of the log, are met after the cut."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "truncate_to"):
        return True
    if not succeeded(transition):
        is_inside = all(position < after.size for _, position in offset_entries(after))
        is_astray = transition.outcome == CORRUPT_INDEX and not is_inside
        is_damage = transition.outcome in DAMAGED or is_astray
        is_safe = before.profile.checks_before_changing and not is_damage
        keeps = _keeps_bytes(transition) and txn_entries(after) == txn_entries(before)
        return keeps or not is_safe
    if _finds_no_match(transition):
        return offset_entries(after) == offset_entries(before)
    offset, size = transition.arguments["offset"], before.config.segment_index_bytes
    names = before.names
    lengths = [len(after.directory.read(name) or b"") for name in names[1:3]]
    known = has_sound_offsets(before) and has_sound_times(before)
    kept = [one for one, _ in offset_entries(after)] + [one for _, one in time_entries(after)]
    kept += [entry[2] for entry in txn_entries(after)] if after.txn_index.is_open else []
    is_below = all(one < offset for one in kept) or not known
    return lengths == [size // 8 * 8, size // 12 * 12] and is_below


@law("SEG-33", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_begins_counting_again(transition: Transition) -> bool:
    """truncate_to counts bytes from 0 again; a log that is empty after it is as old as now, and
    has no first timestamp."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "truncate_to") or not succeeded(transition):
        return True
    if _finds_no_match(transition):
        return bool(after.max_pair == before.max_pair)
    if after.bytes_since_last_index_entry != 0:
        return False
    if after.size > 0:
        return bool(after.created_ms == before.created_ms)
    return bool(after.created_ms == before.now_ms and after.rolling_based_timestamp is None)


@law("SEG-34", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_finds_the_maximum(transition: Transition) -> bool:
    """After truncate_to the largest timestamp is that of the remaining batches, the earliest of
    equal ones, if it was known and not negative before."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "truncate_to") or not succeeded(transition):
        return True
    if _finds_no_match(transition):
        return bool(after.max_pair == before.max_pair)
    if before.max_pair is None or before.max_pair.timestamp < 0 or not has_sound_times(before):
        return True
    remaining = largest_of(batches_of(after) or [])
    if remaining is None or remaining[0] < 0:
        remaining = (-1, before.base_offset)
    return tuple(after.max_pair) == remaining


@law("SEG-35", structure=STRUCTURE, scope="step", source="Kafka LogSegment.readNextOffset")
def next_offset_is_behind_the_last_batch(transition: Transition) -> bool:
    """read_next_offset is the offset behind the last complete batch at or after the last index
    entry, or the base offset: without one, and when the index ends beyond the data."""
    before = transition.before
    if not is_judged(transition, "read_next_offset") or isinstance(transition.outcome, Raised):
        return True
    if not has_sound_offsets(before):
        return True
    return transition.outcome == next_offset_of(before)


def next_offset_of(segment: Any) -> int:
    """Return the offset behind the last batch of a segment with a sound index."""
    batches, entries = batches_of(segment) or [], offset_entries(segment)
    last = entries[-1][0] if entries else segment.base_offset
    reaches = first_reaching(batches, last) is not None
    return batches[-1].last_offset + 1 if reaches else segment.base_offset
