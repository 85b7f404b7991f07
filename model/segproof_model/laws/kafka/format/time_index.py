# SPDX-License-Identifier: Apache-2.0
"""The laws of the time index."""

from typing import Any

from segproof_model.kafka.format import index_deviations as ours
from segproof_model.kafka.format import index_releases as older
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import greatest_not_above, is_rising, never_falls
from segproof_model.laws.kafka.format.index_slots import (
    TIME_ENTRY,
    is_full,
    is_in_file,
    is_ordered,
    is_regular,
    keys_of,
    pairs,
    probed_slots,
    time_entries,
    values_of,
)
from segproof_model.laws.kafka.format.offset_index import is_last_slot_remembered
from segproof_model.laws.register import Transition, has, law, retired

APPEND = "Kafka TimeIndex.maybeAppend, since 1.1.1"
TRUNCATE = "Kafka TimeIndex.truncateTo, since 1.1.1"
WARM_ENTRIES = 682


@law("TIMEIDX-1", TimeIndex, "Kafka TimeIndex, since 1.1.1")
def file_is_whole_entries(time_index: bytes) -> bool:
    """The file is entries of 12 bytes, int64 timestamp and int32 offset - base, nothing else."""
    return len(time_index) % TIME_ENTRY.size == 0


@law("TIMEIDX-2", TimeIndex, "Kafka TimeIndex.isFull")
def full_means_one_free_slot(state: Any) -> bool:
    """The index is full as soon as only one slot is free, which is reserved for the last entry."""
    return state.is_full is (state.entries >= state.max_entries - 1)


@law("TIMEIDX-3", TimeIndex, APPEND, on="maybe_append")
def full_index_refuses(step: Transition) -> bool:
    """Without the skip flag a full index refuses every append, even one that stores nothing."""
    is_skipped = step.arguments.get("skip_full_check", False)
    if is_skipped or not is_full(step.before):
        return True
    return not step.succeeded and step.is_unchanged


@law("TIMEIDX-4", TimeIndex, APPEND, on="maybe_append", unless=older.LastEntryIsRead)
def offset_never_falls(step: Transition) -> bool:
    """An offset below the last one is refused, and changes nothing."""
    before = step.before
    if not before.entries:
        return not step.raised(ErrorKind.INVALID_OFFSET)
    if step.arguments["offset"] >= before.remembered_entry.offset:
        return not step.raised(ErrorKind.INVALID_OFFSET)
    return not step.succeeded and step.is_unchanged


@law("TIMEIDX-5", TimeIndex, APPEND, on="maybe_append", unless=older.LastEntryIsRead)
def timestamp_never_falls(step: Transition) -> bool:
    """A timestamp below the last one is refused, and changes nothing."""
    before = step.before
    if not before.entries or step.arguments["timestamp"] >= before.remembered_entry.timestamp:
        return not step.raised(ErrorKind.ILLEGAL_STATE) or not is_regular(before)
    return not step.succeeded and step.is_unchanged


@law("TIMEIDX-6", TimeIndex, APPEND, on="maybe_append", unless=older.LastEntryIsRead)
def equal_timestamp_stores_nothing(step: Transition) -> bool:
    """The last timestamp again, with any acceptable offset, changes nothing."""
    is_equal = step.arguments["timestamp"] == step.before.remembered_entry.timestamp
    return not is_equal or step.is_unchanged


@law("TIMEIDX-7", TimeIndex, APPEND)
def timestamps_increase_and_offsets_never_fall(time_index: bytes) -> bool:
    """Before the zero tail, timestamps strictly increase and offsets never decrease."""
    entries = time_entries(time_index, 0)
    return is_rising([key for key, _ in entries]) and never_falls([value for _, value in entries])


@law("TIMEIDX-8", TimeIndex, APPEND, on="maybe_append")
def empty_index_stores_from_zero_on(step: Transition) -> bool:
    """On an empty index a negative timestamp is never stored, and 0 is."""
    before, after = step.before, step.after
    if before.entries or not is_regular(before) or not step.succeeded:
        return True
    return bool(after.entries == (step.arguments["timestamp"] >= 0))


@law("TIMEIDX-9", TimeIndex, "Kafka TimeIndex.lastEntry", unless=older.LastEntryIsRead)
def last_entry_is_that_of_the_last_slot(step: Transition) -> bool:
    """The last entry is the last slot's, or (-1, base) in an empty index.

    Not judged: the states after half an entry (TIMEIDX-14) or a failed resize (ABSIDX-9), since
    further half entries can restore the position.
    """
    before, after = step.before, step.after
    if after is before:  # the step that led there was judged
        return True
    if isinstance(before, TimeIndex) and not (
        is_regular(before) and is_last_slot_remembered(before)
    ):
        return True
    return not isinstance(after, TimeIndex) or is_last_slot_remembered(after)


@law("TIMEIDX-10", TimeIndex, "Kafka TimeIndex.lookup", on="lookup")
def lookup_finds_the_greatest_not_above(step: Transition) -> bool:
    """A lookup returns the entry with the greatest timestamp not above the target.

    Below the first entry it is timestamp -1 and the base offset.
    """
    index = step.before
    if not is_ordered(index):
        return True
    slot = greatest_not_above(keys_of(index), step.arguments["target_timestamp"])
    timestamp, relative = pairs(index)[slot] if slot >= 0 else (-1, 0)
    return step.outcome == (timestamp, index.base_offset + relative)


@law("TIMEIDX-11", TimeIndex, TRUNCATE, on="truncate_to")
def truncation_goes_by_offset(step: Transition) -> bool:
    """With increasing offsets truncate_to keeps exactly the entries whose offset is below."""
    before, after, values = step.before, step.after, values_of(step.before)
    if not before.is_mapped or not is_in_file(before) or not is_rising(values):
        return True
    relative = step.arguments["offset"] - before.base_offset
    kept = sum(1 for value in values if value < relative)
    return step.succeeded and (after.entries, after.position) == (kept, 12 * kept)


@law("TIMEIDX-12", TimeIndex, TRUNCATE, on="truncate_to")
def truncation_of_equal_offsets_follows_the_search(step: Transition) -> bool:
    """Where offsets repeat, truncate_to depends on the literal search.

    It keeps the entries before the slot that the search finds, and that slot too if it is below the
    offset.
    """
    before, values = step.before, values_of(step.before)
    if not before.is_mapped or not is_in_file(before):
        return True
    relative = step.arguments["offset"] - before.base_offset
    slot = probed_slots(values, relative, None if has(before, older.PlainSearch) else WARM_ENTRIES)[
        0
    ]
    kept = slot if slot >= 0 and values[slot] == relative else slot + 1
    return step.succeeded and bool(step.after.entries == kept)


retired(
    "TIMEIDX-13",
    TimeIndex,
    "A resize that is made and a truncation read the last entry from the file again.",
    TimeIndex.resize,
)


@law("TIMEIDX-14", TimeIndex, "Kafka TimeIndex.maybeAppend, 2.0 on", on="maybe_append")
def overflow_leaves_half_an_entry(step: Transition) -> bool:
    """An append that is refused after its timestamp was written leaves the timestamp in the file:
    one whose offset is too far from the base.

    segproof checks first, and writes nothing.
    """
    before, after = step.before, step.after
    timestamp = TIME_ENTRY.pack(step.arguments["timestamp"], 0)[:8]
    is_left = after.image[before.position :].startswith(timestamp)
    is_whole = step.succeeded or step.is_unchanged
    return is_whole or (is_left and not has(before, ours.FailedIndexChangeIsUndone))


@law("TIMEIDX-15", TimeIndex, APPEND, on="maybe_append")
def no_room_changes_nothing(step: Transition) -> bool:
    """With the skip flag and no room in a file of whole entries, the buffer overflows cleanly."""
    before = step.before
    return before.length - before.position >= 8 or step.is_unchanged


retired(
    "TIMEIDX-16",
    TimeIndex,
    "With the skip flag and 8 to 11 spare bytes, the timestamp is written before the overflow;"
    " segproof tests first, and writes nothing.",
    TimeIndex.maybe_append,
)


@law("TIMEIDX-17", TimeIndex, "Kafka TimeIndex.sanityCheck", on="sanity_check")
def sanity_check_refuses_what_no_index_is(step: Transition) -> bool:
    """sanity_check refuses a last timestamp below the first and a last offset below the base.

    segproof also refuses timestamps that don't increase, offsets that fall, negative numbers.
    """
    index, keys, values = step.before, keys_of(step.before), values_of(step.before)
    last = index.remembered_entry
    is_broken = bool(index.entries) and last.offset < index.base_offset
    is_broken |= bool(keys) and last.timestamp < keys[0]
    if has(index, ours.SanityChecksAll):
        is_broken |= not is_rising(keys) or not never_falls(values) or min([*keys, *values, 0]) < 0
        is_broken |= bool(index.length % 12)
    is_judged = not has(index, older.LastEntryIsRead) or is_regular(index)
    return step.is_unchanged and not (is_judged and is_broken and step.succeeded)


@law("TIMEIDX-18", TimeIndex, APPEND, on="maybe_append")
def one_slot_stays_free(step: Transition) -> bool:
    """An append without the skip flag leaves room for an append with the flag."""
    before, after = step.before, step.after
    if step.arguments.get("skip_full_check", False) or not (
        is_regular(before) and is_regular(after)
    ):
        return True
    if before.entries >= before.max_entries:
        return True
    return bool(after.entries < after.max_entries and after.position + 12 <= after.length)


@law("TIMEIDX-19", TimeIndex, "Kafka TimeIndex.isFull")
def small_index_is_always_full(state: Any) -> bool:
    """An index of fewer than 24 bytes is always full."""
    return state.length >= 24 or state.is_full is True
