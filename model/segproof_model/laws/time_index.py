# SPDX-License-Identifier: Apache-2.0
"""The laws of the time index.

Used by: the harness, `verify`'s tests, the generated pages.
"""

from dataclasses import replace
from typing import Any

from segproof_model.kafka.time_index import TimeIndex
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import (
    TIME_ENTRY,
    fits_31_bits,
    greatest_not_above,
    has_broken_length,
    is_full,
    is_in_file,
    is_ordered,
    is_refused,
    is_regular,
    is_rising,
    keys_of,
    low_32_bits,
    never_falls,
    pairs,
    probed_slots,
    raised,
    refused,
    remembers,
    remembers_last_slot,
    succeeded,
    values_of,
    was_resized,
    without_zero_tail,
)
from segproof_model.laws.registry import Transition, law

STRUCTURE = "time-index"
APPEND = "Kafka TimeIndex.maybeAppend, since 1.1.1"
TRUNCATE = "Kafka TimeIndex.truncateTo, since 1.1.1"
WARM_ENTRIES = 682


def _is_append(transition: Transition) -> bool:
    """Return whether this is an append that gets as far as being tested."""
    if transition.operation != "maybe_append" or is_refused(transition.before):
        return False
    return not isinstance(transition.before.last_entry, Raised)


def _skips(transition: Transition) -> bool:
    return bool(transition.arguments.get("skip_full_check", False))


def _has_room(transition: Transition) -> bool:
    """Return whether an append passes the test for a full index."""
    return _is_append(transition) and (_skips(transition) or not is_full(transition.before))


def _passes_offset(transition: Transition) -> bool:
    """Return whether an append passes the test of its offset too."""
    index = transition.before
    if not _has_room(transition):
        return False
    return bool(index.entries == 0 or transition.arguments["offset"] >= index.last_entry.offset)


def _writes(transition: Transition) -> bool:
    """Return whether an append passes every test and has something to store."""
    index = transition.before
    if not _passes_offset(transition) or not (index.is_mapped and index.writable):
        return False
    return bool(transition.arguments["timestamp"] > index.last_entry.timestamp)


def _representable(transition: Transition) -> bool:
    """Return whether the offset can be stored, or is cut by the profile."""
    index, offset = transition.before, transition.arguments["offset"]
    return not index.profile.check_relative_offset or fits_31_bits(index.base_offset, offset)


def _half_written(transition: Transition) -> bool:
    """Return whether exactly the timestamp was written, at the position."""
    before, start = transition.before, transition.before.position
    written = TIME_ENTRY.pack(transition.arguments["timestamp"], 0)[:8]
    image = before.image[:start] + written + before.image[start + 8 :]
    directory = before.directory.write(before.name, image)
    return bool(transition.after == replace(before, directory=directory, position=start + 8))


@law("TIMEIDX-1", structure=STRUCTURE, scope="file", source="Kafka TimeIndex, since 1.1.1")
def file_is_whole_entries(image: bytes, base_offset: int) -> bool:
    """The file is entries of 12 bytes, int64 timestamp and int32 offset - base, nothing else."""
    return len(image) % TIME_ENTRY.size == 0


@law("TIMEIDX-2", structure=STRUCTURE, scope="state", source="Kafka TimeIndex.isFull")
def full_means_one_free_slot(index: Any) -> bool:
    """The index is full as soon as only one slot is free: it is kept for the last entry."""
    return index.is_full is (index.entries >= index.max_entries - 1)


@law("TIMEIDX-3", structure=STRUCTURE, scope="step", source=APPEND)
def full_index_refuses(transition: Transition) -> bool:
    """Without the skip flag a full index refuses every append, even one that stores nothing."""
    if not _is_append(transition) or _has_room(transition):
        return True
    return refused(transition, ErrorKind.INVALID_ARGUMENT)


@law("TIMEIDX-4", structure=STRUCTURE, scope="step", source=APPEND)
def offset_never_falls(transition: Transition) -> bool:
    """An offset below the last one is refused, before the timestamp is looked at."""
    if not _has_room(transition):
        return True
    if _passes_offset(transition):
        return not raised(transition, ErrorKind.INVALID_OFFSET)
    return refused(transition, ErrorKind.INVALID_OFFSET)


@law("TIMEIDX-5", structure=STRUCTURE, scope="step", source=APPEND)
def timestamp_never_falls(transition: Transition) -> bool:
    """A timestamp below the last one is refused, where the offset is acceptable."""
    before = transition.before
    if not _passes_offset(transition) or before.entries == 0:
        return True
    if transition.arguments["timestamp"] >= before.last_entry.timestamp:
        return True
    return refused(transition, ErrorKind.ILLEGAL_STATE)


@law("TIMEIDX-6", structure=STRUCTURE, scope="step", source=APPEND)
def equal_timestamp_stores_nothing(transition: Transition) -> bool:
    """The last timestamp again, with any acceptable offset, changes nothing."""
    before, after = transition.before, transition.after
    if not _passes_offset(transition):
        return True
    if transition.arguments["timestamp"] != before.last_entry.timestamp:
        return True
    return succeeded(transition) and bool(after == before)


@law("TIMEIDX-7", structure=STRUCTURE, scope="file", source=APPEND)
def timestamps_increase_and_offsets_never_fall(image: bytes, base_offset: int) -> bool:
    """Before the zero tail, timestamps strictly increase and offsets never decrease."""
    entries = list(TIME_ENTRY.iter_unpack(without_zero_tail(image, TIME_ENTRY.size)))
    return is_rising([key for key, _ in entries]) and never_falls([value for _, value in entries])


@law("TIMEIDX-8", structure=STRUCTURE, scope="step", source=APPEND)
def empty_index_stores_from_zero_on(transition: Transition) -> bool:
    """On an empty index a negative timestamp is never stored, and 0 is."""
    before, after = transition.before, transition.after
    if not _passes_offset(transition) or before.entries or not is_regular(before):
        return True
    if transition.arguments["timestamp"] < 0:
        return succeeded(transition) and bool(after == before)
    if not _writes(transition) or not _representable(transition) or before.length < 12:
        return True
    return succeeded(transition) and after.entries == 1


@law("TIMEIDX-9", structure=STRUCTURE, scope="step", source="Kafka TimeIndex.lastEntry")
def last_entry_is_that_of_the_last_slot(transition: Transition) -> bool:
    """The last entry is the last slot's, or (-1, base) in an empty index.

    Not judged: the states behind half an entry (TIMEIDX-14) and a failed resize (ABSIDX-9), and
    those after them, since further half entries can bring the position back to its place.
    """
    before, after = transition.before, transition.after
    if before is not None and not (is_regular(before) and _remembers(before)):
        return True
    return not isinstance(after, TimeIndex) or not is_regular(after) or _remembers(after)


def _remembers(index: Any) -> bool:
    """Return whether the last entry is right, as far as the file can be looked at."""
    return not (index.is_mapped and is_in_file(index)) or remembers_last_slot(index)


@law("TIMEIDX-10", structure=STRUCTURE, scope="step", source="Kafka TimeIndex.lookup")
def lookup_finds_the_greatest_not_above(transition: Transition) -> bool:
    """A lookup returns the entry with the greatest timestamp not above the target.

    Below the first entry it is timestamp -1 and the base offset.
    """
    index = transition.before
    if transition.operation != "lookup" or not index.is_mapped or not is_ordered(index):
        return True
    slot = greatest_not_above(keys_of(index), transition.arguments["target_timestamp"])
    timestamp, relative = pairs(index)[slot] if slot >= 0 else (-1, 0)
    return transition.outcome == (timestamp, index.base_offset + relative)


@law("TIMEIDX-11", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_goes_by_offset(transition: Transition) -> bool:
    """With increasing offsets truncate_to keeps exactly the entries whose offset is below."""
    before, after = transition.before, transition.after
    if transition.operation != "truncate_to" or not before.is_mapped:
        return True
    values = values_of(before)
    if before.entries != len(values) or not is_rising(values):
        return True
    relative = transition.arguments["offset"] - before.base_offset
    kept = sum(1 for value in values if value < relative)
    return succeeded(transition) and (after.entries, after.position) == (kept, 12 * kept)


@law("TIMEIDX-12", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_of_equal_offsets_follows_the_search(transition: Transition) -> bool:
    """Where offsets repeat, truncate_to keeps what the literal search leads to.

    It keeps the entries before the slot that the search meets, and that slot too if it is below.
    """
    before, after = transition.before, transition.after
    if transition.operation != "truncate_to" or not before.is_mapped:
        return True
    values = values_of(before)
    if before.entries != len(values):
        return True
    relative = transition.arguments["offset"] - before.base_offset
    slot = probed_slots(values, relative, before.profile.search, WARM_ENTRIES)[0]
    kept = slot if slot >= 0 and values[slot] == relative else slot + 1
    return succeeded(transition) and bool(after.entries == kept)


@law("TIMEIDX-13", structure=STRUCTURE, scope="step", source="Kafka TimeIndex.resize, truncate")
def last_entry_is_read_again(transition: Transition) -> bool:
    """A resize that is made and a truncation read the last entry from the file again."""
    before, after = transition.before, transition.after
    resized = transition.operation == "resize" and was_resized(transition)
    truncated = transition.operation in ("truncate", "truncate_to") and succeeded(transition)
    if not (resized or truncated) or isinstance(after.last_entry, Raised):
        return True
    if after.entries == 0:
        return remembers(after, before.base_offset)
    timestamp, relative = pairs(after)[after.entries - 1]
    return remembers(after, before.base_offset + relative, timestamp)


@law("TIMEIDX-14", structure=STRUCTURE, scope="step", source="Kafka TimeIndex.maybeAppend, 2.0 on")
def overflow_leaves_half_an_entry(transition: Transition) -> bool:
    """An offset too far from the base is refused after the timestamp was written.

    The next append that stores something raises the position error after storing it 8 bytes too
    far. segproof tests first, and writes nothing.
    """
    if not _writes(transition):
        return True
    before, after = transition.before, transition.after
    room = before.length - before.position
    if room >= 8 and not _representable(transition):
        if before.profile.checks_before_changing:
            return refused(transition, ErrorKind.INDEX_OFFSET_OVERFLOW)
        return raised(transition, ErrorKind.INDEX_OFFSET_OVERFLOW) and _half_written(transition)
    if room < 12 or before.position == 12 * before.entries:
        return True
    start = before.position
    relative = low_32_bits(transition.arguments["offset"] - before.base_offset)
    stored = TIME_ENTRY.pack(transition.arguments["timestamp"], relative)
    return (
        raised(transition, before.profile.mismatch_kind)
        and after.image[start : start + 12] == stored
        and (after.entries, after.position) == (before.entries + 1, start + 12)
    )


@law("TIMEIDX-15", structure=STRUCTURE, scope="step", source=APPEND)
def no_room_changes_nothing(transition: Transition) -> bool:
    """With the skip flag and no room in a file of whole entries, the buffer overflows cleanly."""
    before = transition.before
    if not _writes(transition) or before.length - before.position >= 8:
        return True
    return refused(transition, ErrorKind.BUFFER_OVERFLOW)


@law("TIMEIDX-16", structure=STRUCTURE, scope="step", source=APPEND)
def little_room_leaves_half_an_entry(transition: Transition) -> bool:
    """With the skip flag and 8 to 11 spare bytes, the timestamp is written before the overflow.

    segproof tests first, and writes nothing.
    """
    before = transition.before
    if not _writes(transition) or not _representable(transition):
        return True
    if not 8 <= before.length - before.position <= 11:
        return True
    if before.profile.checks_before_changing:
        return refused(transition, ErrorKind.BUFFER_OVERFLOW)
    return raised(transition, ErrorKind.BUFFER_OVERFLOW) and _half_written(transition)


def _is_sane(index: Any) -> bool:
    """Return whether the profile's sanity_check passes the index."""
    if has_broken_length(index):
        return False
    keys, values = keys_of(index), values_of(index)
    if index.entries and index.last_entry.timestamp < keys[0]:
        return False
    if index.entries and index.last_entry.offset < index.base_offset:
        return False
    sorted_well = is_rising(keys) and never_falls(values)
    return not index.profile.sanity_checks_all or (sorted_well and min(keys + values + [0]) == 0)


@law("TIMEIDX-17", structure=STRUCTURE, scope="step", source="Kafka TimeIndex.sanityCheck")
def sanity_check_is_three_comparisons(transition: Transition) -> bool:
    """sanity_check refuses a last timestamp below the first, a last offset below the base, and a
    length that is no multiple of 12.

    segproof also refuses timestamps that don't increase, offsets that fall, negative numbers.
    """
    index = transition.before
    if transition.operation != "sanity_check" or not index.is_mapped:
        return True
    if isinstance(index.last_entry, Raised):
        return bool(transition.outcome == index.last_entry)
    if index.entries and not keys_of(index):
        return raised(transition, ErrorKind.INDEX_ERROR)
    if _is_sane(index):
        return transition.outcome is None
    return refused(transition, index.profile.sanity_kind)


@law("TIMEIDX-18", structure=STRUCTURE, scope="step", source=APPEND)
def one_slot_stays_free(transition: Transition) -> bool:
    """An append without the skip flag leaves room for one with it."""
    before, after = transition.before, transition.after
    if not _is_append(transition) or _skips(transition) or not is_regular(before):
        return True
    if before.entries >= before.max_entries or not is_regular(after):
        return True
    return bool(after.entries < after.max_entries and after.position + 12 <= after.length)


@law("TIMEIDX-19", structure=STRUCTURE, scope="state", source="Kafka TimeIndex.isFull")
def small_index_is_always_full(index: Any) -> bool:
    """An index of fewer than 24 bytes is always full."""
    return index.length >= 24 or index.is_full is True
