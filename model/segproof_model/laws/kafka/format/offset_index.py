# SPDX-License-Identifier: Apache-2.0
"""The laws of the offset index. `relative_offset` and `entry` of the time index obey them too."""

from collections.abc import Sequence
from typing import Any

from segproof_model.kafka.format import index_deviations as ours
from segproof_model.kafka.format import index_releases as older
from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import (
    fits_31_bits,
    greatest_not_above,
    is_rising,
    low_32_bits,
    never_falls,
)
from segproof_model.laws.kafka.format.index_slots import (
    OFFSET_ENTRY,
    first_of,
    is_full,
    is_in_file,
    is_ordered,
    is_regular,
    is_time,
    keys_of,
    last_of,
    offset_entries,
    pairs,
    values_of,
)
from segproof_model.laws.register import Transition, has, law, retired

APPEND = "Kafka OffsetIndex.append, since 1.1.1"
DISTANCE = "Kafka OffsetIndex.append, since 2.0"
LOOKUP = "Kafka OffsetIndex.lookup, since 1.1.1"
ENTRY = "Kafka OffsetIndex.entry, since 1.1.1"
UPPER = "Kafka OffsetIndex.fetchUpperBoundOffset, since 1.1.1"
TRUNCATE = "Kafka OffsetIndex.truncateTo, since 1.1.1"
SANITY = "Kafka OffsetIndex.sanityCheck, since 1.1.1"
STRICT = (older.BaseIsInsane, ours.SanityChecksAll)


@law("OFFIDX-1", OffsetIndex, "Kafka OffsetIndex, since 1.1.1")
def file_is_whole_entries(offset_index: bytes) -> bool:
    """The file is entries of 8 bytes, int32 offset - base and int32 position, and nothing else."""
    return len(offset_index) % OFFSET_ENTRY.size == 0


@law("OFFIDX-2", OffsetIndex, APPEND)
def offsets_strictly_increase(offset_index: bytes) -> bool:
    """The offsets of the entries before the zero tail strictly increase, from the base on."""
    return is_rising([-1, *(key for key, _ in offset_entries(offset_index, 0))])


def is_last_slot_remembered(index: Any) -> bool:
    """Return whether the remembered last entry is that of the last slot, as far as the file can be
    looked at. Where offsets are cut to 32 bits, so is the comparison.
    """
    if not (index.is_mapped and is_regular(index) and is_in_file(index)):
        return True
    if not index.entries:
        return last_of(index) == first_of(index)
    (timestamp, offset), (key, value) = last_of(index), pairs(index)[-1]
    distance = offset - index.base_offset
    cut = low_32_bits(distance) if has(index, older.DistanceIsCut) else distance
    return cut == key if timestamp is None else (timestamp, cut) == (key, value)


@law("OFFIDX-3", OffsetIndex, "Kafka OffsetIndex.lastOffset")
def last_offset_is_that_of_the_last_slot(state: Any) -> bool:
    """The remembered last offset is the last entry's, or the base offset of an empty index.

    Not judged: the state after a resize below the position (ABSIDX-9), and an open index whose file
    was removed, as by a refused roll up to 2.0.
    """
    return is_last_slot_remembered(state)


@law("OFFIDX-4", OffsetIndex, APPEND, on="append")
def full_index_refuses(step: Transition) -> bool:
    """An append to a full index is refused, and changes nothing."""
    return not is_full(step.before) or (not step.succeeded and step.is_unchanged)


@law("OFFIDX-5", OffsetIndex, APPEND, on="append")
def offset_must_grow(step: Transition) -> bool:
    """An offset not above the last one is refused, and changes nothing."""
    if step.before.entries == 0 or step.arguments["offset"] > step.before.last_offset:
        return not step.raised(ErrorKind.INVALID_OFFSET)
    return not step.succeeded and step.is_unchanged


@law("OFFIDX-6", OffsetIndex, DISTANCE, on="append", unless=older.DistanceIsCut)
def distance_has_31_bits(step: Transition) -> bool:
    """An offset is refused when its distance from the base is outside 0 to 2147483647."""
    if fits_31_bits(step.before.base_offset, step.arguments["offset"]):
        return not step.raised(ErrorKind.INDEX_OFFSET_OVERFLOW)
    return not step.succeeded and step.is_unchanged


retired(
    "OFFIDX-7",
    OffsetIndex,
    "Up to release 1.1 the low 32 bits of the distance are stored, without an error.",
    older.DistanceIsCut.AbstractIndex.check_distance,
)


@law("OFFIDX-8", OffsetIndex, APPEND, on="append")
def append_writes_one_slot(step: Transition) -> bool:
    """An append writes the 8 bytes of the first free slot, counts one more, and nothing else."""
    if not step.succeeded:
        return True
    before, after, start = step.before, step.after, 8 * step.before.entries
    distance = low_32_bits(step.arguments["offset"] - before.base_offset)
    written = OFFSET_ENTRY.pack(distance, low_32_bits(step.arguments["position"]))
    image = before.image[:start] + written + before.image[start + 8 :]
    grown = (after.entries, after.position) == (before.entries + 1, start + 8)
    only = step.changed_only("files entries position last_offset")
    return grown and only and after.files.images == {**before.files.images, before.name: image}


@law("OFFIDX-9", OffsetIndex, APPEND, on="append")
def position_is_not_judged(step: Transition) -> bool:
    """The position is stored as it is, be it negative, repeated or smaller than the last one."""
    position = low_32_bits(step.arguments["position"])
    return not step.succeeded or pairs(step.after)[-1][1] == position


@law("OFFIDX-10", OffsetIndex, "Kafka AbstractIndex.isFull")
def full_means_no_free_slot(state: Any) -> bool:
    """The index is full exactly when every slot is an entry."""
    return state.is_full is (state.entries >= state.max_entries)


@law("OFFIDX-11", OffsetIndex, LOOKUP, on="lookup")
def lookup_finds_the_greatest_not_above(step: Transition) -> bool:
    """A lookup returns the entry with the greatest offset not above the target.

    Below the first entry it is the base offset and position 0.
    """
    index = step.before
    if not is_ordered(index):
        return True
    slot = greatest_not_above(keys_of(index), step.arguments["target_offset"] - index.base_offset)
    key, position = pairs(index)[slot] if slot >= 0 else (0, 0)
    return step.outcome == (index.base_offset + key, position)


@law("OFFIDX-12", OffsetIndex, LOOKUP)
def lookup_is_monotone(target_offsets: Sequence[int], found_offsets: Sequence[int]) -> bool:
    """A greater target never finds a smaller offset (one ordered index, several lookups)."""
    by_target = sorted(zip(target_offsets, found_offsets, strict=True))
    return never_falls([found for _, found in by_target])


@law("OFFIDX-13", AbstractIndex, ENTRY, on="entry")
def entry_number_is_checked(step: Transition) -> bool:
    """An entry number from the count on, or a negative one, is refused."""
    return 0 <= step.arguments["n"] < step.before.entries or not step.succeeded


@law("OFFIDX-14", AbstractIndex, ENTRY, on="entry")
def entry_is_the_slot(step: Transition) -> bool:
    """An entry has its absolute offset, up to release 2.2 the relative one."""
    index = step.before
    if not index.is_mapped or not 0 <= step.arguments["n"] < len(pairs(index)):
        return not step.succeeded
    base_offset = 0 if has(index, older.EntryIsRelative) else index.base_offset
    key, value = pairs(index)[step.arguments["n"]]
    absolute = (key, base_offset + value) if is_time(index) else (base_offset + key, value)
    return step.outcome == absolute


@law("OFFIDX-15", OffsetIndex, UPPER, on="fetch_upper_bound_offset")
def upper_bound_is_the_entry_of_the_upper_slot(step: Transition) -> bool:
    """With increasing positions the upper bound of a fetch is the entry of the upper slot
    (ABSIDX-24) of position + size, or None.

    The sum wraps at 32 bits, but not in segproof.
    """
    index, is_exact = step.before, has(step.before, ours.UpperBoundIsExact)
    if not index.is_mapped or not is_in_file(index) or not is_rising(values_of(index)):
        return True
    bound = step.arguments["fetch_offset"].position + step.arguments["fetch_size"]
    bound = bound if is_exact else low_32_bits(bound)
    passed = int(not is_exact and values_of(index)[:1] == [bound])
    met = [(index.base_offset + key, at) for key, at in pairs(index)[passed:] if at >= bound]
    return step.outcome == next(iter(met), None)


retired(
    "OFFIDX-16",
    OffsetIndex,
    "A fetch that ends at the position of the first entry gives the second entry, or none; in"
    " segproof the first one.",
    ours.UpperBoundIsExact.AbstractIndex.slots,
)


@law("OFFIDX-17", OffsetIndex, TRUNCATE, on="truncate_to")
def truncation_keeps_what_is_below(step: Transition) -> bool:
    """With increasing offsets, truncate_to keeps exactly the entries below the offset."""
    before, after = step.before, step.after
    if not is_ordered(before):
        return True
    relative = step.arguments["offset"] - before.base_offset
    kept = sum(1 for key in keys_of(before) if key < relative)
    return step.succeeded and (after.entries, after.position) == (kept, 8 * kept)


retired(
    "OFFIDX-18",
    OffsetIndex,
    "After truncate_to the last offset is below the offset; and then it changes nothing more.",
    OffsetIndex.truncate_to,
)


@law("OFFIDX-19", AbstractIndex, "Kafka OffsetIndex.truncate", on="truncate")
def truncate_forgets_all(step: Transition) -> bool:
    """After truncate the index is empty, and the last offset is the base."""
    after = step.after
    return not step.succeeded or (
        (after.entries, after.position) == (0, 0) and last_of(after) == first_of(after)
    )


@law("OFFIDX-20", OffsetIndex, SANITY, on="sanity_check")
def sanity_check_refuses_what_no_index_is(step: Transition) -> bool:
    """sanity_check refuses a last offset below the base (up to 1.1: at or below) and a partial
    entry.

    segproof also refuses offsets that don't increase, positions that fall, negative numbers.
    """
    index, keys, values = step.before, keys_of(step.before), values_of(step.before)
    lowest = index.base_offset + has(index, older.BaseIsInsane)
    is_broken = bool(index.entries) and index.last_offset < lowest
    if has(index, ours.SanityChecksAll):
        is_broken |= not is_rising(keys) or not never_falls(values) or min([*keys, *values, 0]) < 0
        is_broken |= bool(index.length % 8)
    return step.is_unchanged and not (is_broken and step.succeeded)


@law("OFFIDX-21", OffsetIndex, SANITY, on="sanity_check", unless=STRICT)
def zeros_are_sane(step: Transition) -> bool:
    """A file of zero slots passes sanity_check; up to release 1.1 only an empty file does."""
    index = step.before
    is_zero = not any(index.image) and len(index.image) == index.length and not index.length % 8
    return not (is_zero and is_regular(index) and is_last_slot_remembered(index)) or step.succeeded


@law("OFFIDX-22", OffsetIndex, LOOKUP, on="lookup")
def zero_tail_makes_lookups_slow_not_wrong(step: Transition) -> bool:
    """With a zero tail counted as entries, a lookup still never answers too far.

    Its offset is not above the target or the base, and its position is not above the position
    without the tail.
    """
    index = step.before
    genuine = offset_entries(index.image[: index.position], 0)
    keys, positions = [key for key, _ in genuine], [position for _, position in genuine]
    is_judged = is_rising([-1, *keys]) and never_falls([0, *positions]) and is_regular(index)
    if not is_judged or not index.is_mapped or len(genuine) == index.entries:
        return True
    target, answer = step.arguments["target_offset"], step.outcome
    slot = greatest_not_above(keys, target - index.base_offset)
    limits = (max(target, index.base_offset), positions[slot] if slot >= 0 else 0)
    return isinstance(answer, tuple) and answer[0] <= limits[0] and answer[1] <= limits[1]


@law("OFFIDX-23", OffsetIndex, APPEND, on="append")
def read_only_index_refuses(step: Transition) -> bool:
    """An append to a read-only index is refused, and changes nothing."""
    return bool(step.before.writable) or (not step.succeeded and step.is_unchanged)
