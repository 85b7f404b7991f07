# SPDX-License-Identifier: Apache-2.0
"""The laws of the offset index. `relative_offset` and `entry` of the time index obey them too.

Used by: the harness, `verify`'s tests, the generated pages.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import (
    OFFSET_ENTRY,
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
    remembers_last_slot,
    succeeded,
    values_of,
    without_zero_tail,
)
from segproof_model.laws.registry import Transition, law

STRUCTURE = "offset-index"
APPEND = "Kafka OffsetIndex.append, since 1.1.1"
LOOKUP = "Kafka OffsetIndex.lookup, since 1.1.1"
ENTRY = "Kafka OffsetIndex.entry, since 1.1.1"
UPPER = "Kafka OffsetIndex.fetchUpperBoundOffset, since 1.1.1"
TRUNCATE = "Kafka OffsetIndex.truncateTo, since 1.1.1"
SANITY = "Kafka OffsetIndex.sanityCheck, since 1.1.1"
WARM_ENTRIES = 1024


def _passes_order(transition: Transition) -> bool:
    """Return whether an append passes all that is tested before the distance from the base."""
    index = transition.before
    if transition.operation != "append" or is_refused(index) or is_full(index):
        return False
    return bool(index.entries == 0 or transition.arguments["offset"] > index.last_offset)


def _passes_distance(transition: Transition) -> bool:
    """Return whether an append passes the distance from the base too, where it is tested."""
    if not _passes_order(transition):
        return False
    index, offset = transition.before, transition.arguments["offset"]
    return not index.profile.check_relative_offset or fits_31_bits(index.base_offset, offset)


def _must_succeed(transition: Transition) -> bool:
    """Return whether nothing is in the way of an append."""
    index = transition.before
    ready = _passes_distance(transition) and index.is_mapped and index.writable
    return ready and is_regular(index)


@law("OFFIDX-1", structure=STRUCTURE, scope="file", source="Kafka OffsetIndex, since 1.1.1")
def file_is_whole_entries(image: bytes, base_offset: int) -> bool:
    """The file is entries of 8 bytes, int32 offset - base and int32 position, and nothing else."""
    return len(image) % OFFSET_ENTRY.size == 0


@law("OFFIDX-2", structure=STRUCTURE, scope="file", source=APPEND)
def offsets_strictly_increase(image: bytes, base_offset: int) -> bool:
    """The offsets of the entries before the zero tail strictly increase, from the base on."""
    used = without_zero_tail(image, OFFSET_ENTRY.size)
    keys = [key for key, _ in OFFSET_ENTRY.iter_unpack(used)]
    return is_rising(keys) and all(key >= 0 for key in keys)


@law("OFFIDX-3", structure=STRUCTURE, scope="state", source="Kafka OffsetIndex.lastOffset")
def last_offset_is_that_of_the_last_slot(index: Any) -> bool:
    """The remembered last offset is that of the last entry, or the base of an empty index.

    Not judged: the state behind a resize below the position (ABSIDX-9), and an index whose file was
    removed while it was open, as a refused roll up to 2.0 does.
    """
    can_look = index.is_mapped and is_regular(index) and is_in_file(index)
    return not can_look or remembers_last_slot(index)


@law("OFFIDX-4", structure=STRUCTURE, scope="step", source=APPEND)
def full_index_refuses(transition: Transition) -> bool:
    """An append to a full index is refused before any other test, and changes nothing."""
    before = transition.before
    if transition.operation != "append" or is_refused(before) or not is_full(before):
        return True
    return refused(transition, ErrorKind.INVALID_ARGUMENT)


@law("OFFIDX-5", structure=STRUCTURE, scope="step", source=APPEND)
def offset_must_grow(transition: Transition) -> bool:
    """An offset not above the last one is refused, and changes nothing."""
    before = transition.before
    if transition.operation != "append" or is_refused(before) or is_full(before):
        return True
    if before.entries == 0 or transition.arguments["offset"] > before.last_offset:
        return not raised(transition, ErrorKind.INVALID_OFFSET)
    return refused(transition, ErrorKind.INVALID_OFFSET)


@law("OFFIDX-6", structure=STRUCTURE, scope="step", source="Kafka OffsetIndex.append, since 2.0")
def distance_has_31_bits(transition: Transition) -> bool:
    """An offset is refused when its distance from the base is outside 0 to 2147483647."""
    before = transition.before
    if not _passes_order(transition) or not before.profile.check_relative_offset:
        return True
    if fits_31_bits(before.base_offset, transition.arguments["offset"]):
        return not raised(transition, ErrorKind.INDEX_OFFSET_OVERFLOW)
    return refused(transition, ErrorKind.INDEX_OFFSET_OVERFLOW)


@law("OFFIDX-7", structure=STRUCTURE, scope="step", source="Kafka OffsetIndex.append, up to 1.1")
def distance_is_cut(transition: Transition) -> bool:
    """Up to release 1.1 the low 32 bits of the distance are stored, without an error."""
    before, after = transition.before, transition.after
    if not _must_succeed(transition) or before.profile.check_relative_offset:
        return True
    stored = low_32_bits(transition.arguments["offset"] - before.base_offset)
    return succeeded(transition) and pairs(after)[-1][0] == stored


@law("OFFIDX-8", structure=STRUCTURE, scope="step", source=APPEND)
def append_writes_one_slot(transition: Transition) -> bool:
    """An append writes the 8 bytes of the first free slot, counts one more, and nothing else."""
    if transition.operation != "append" or not succeeded(transition):
        return True
    before, after = transition.before, transition.after
    start, offset = 8 * before.entries, transition.arguments["offset"]
    written = OFFSET_ENTRY.pack(
        low_32_bits(offset - before.base_offset), low_32_bits(transition.arguments["position"])
    )
    image = before.image[:start] + written + before.image[start + 8 :]
    grown = replace(
        before,
        directory=before.directory.write(before.name, image),
        entries=before.entries + 1,
        position=start + 8,
        last_offset=offset,
    )
    return bool(after == grown)


@law("OFFIDX-9", structure=STRUCTURE, scope="step", source=APPEND)
def position_is_not_judged(transition: Transition) -> bool:
    """The position is stored as it is, be it negative, repeated or smaller than the last one."""
    if not _must_succeed(transition):
        return True
    position = low_32_bits(transition.arguments["position"])
    return succeeded(transition) and pairs(transition.after)[-1][1] == position


@law("OFFIDX-10", structure=STRUCTURE, scope="state", source="Kafka AbstractIndex.isFull")
def full_means_no_free_slot(index: Any) -> bool:
    """The index is full exactly when every slot is an entry."""
    return index.is_full is (index.entries >= index.max_entries)


@law("OFFIDX-11", structure=STRUCTURE, scope="step", source=LOOKUP)
def lookup_finds_the_greatest_not_above(transition: Transition) -> bool:
    """A lookup returns the entry with the greatest offset not above the target.

    Below the first entry it is the base offset and position 0.
    """
    index = transition.before
    if transition.operation != "lookup" or not index.is_mapped or not is_ordered(index):
        return True
    relative = transition.arguments["target_offset"] - index.base_offset
    slot = greatest_not_above(keys_of(index), relative)
    key, position = pairs(index)[slot] if slot >= 0 else (0, 0)
    return transition.outcome == (index.base_offset + key, position)


@law("OFFIDX-12", structure=STRUCTURE, scope="pure", source=LOOKUP)
def lookup_is_monotone(target_offsets: Sequence[int], found_offsets: Sequence[int]) -> bool:
    """A greater target never finds a smaller offset (one ordered index, several lookups)."""
    by_target = sorted(zip(target_offsets, found_offsets, strict=True))
    return never_falls([found for _, found in by_target])


@law("OFFIDX-13", structure=STRUCTURE, scope="step", source=ENTRY)
def entry_number_is_checked(transition: Transition) -> bool:
    """An entry number from the count on is an invalid argument, a negative one an index error."""
    if transition.operation != "entry" or is_refused(transition.before):
        return True
    number = transition.arguments["n"]
    if number >= transition.before.entries:
        return raised(transition, ErrorKind.INVALID_ARGUMENT)
    if number < 0 and transition.before.is_mapped:
        return raised(transition, ErrorKind.INDEX_ERROR)
    return True


@law("OFFIDX-14", structure=STRUCTURE, scope="step", source=ENTRY)
def entry_is_the_slot(transition: Transition) -> bool:
    """An entry carries its absolute offset, but up to release 2.2 the relative one."""
    index = transition.before
    if transition.operation != "entry" or not index.is_mapped:
        return True
    number = transition.arguments["n"]
    if not 0 <= number < len(pairs(index)):
        return isinstance(transition.outcome, Raised)
    key, position = pairs(index)[number]
    base_offset = index.base_offset if index.profile.absolute_entry else 0
    return transition.outcome == (base_offset + key, position)


def _upper_bound(transition: Transition) -> int:
    """Return the position behind the fetch, as the profile computes it."""
    arguments = transition.arguments
    bound = int(arguments["fetch_offset"].position + arguments["fetch_size"])
    return bound if transition.before.profile.upper_bound_exact else low_32_bits(bound)


@law("OFFIDX-15", structure=STRUCTURE, scope="step", source=UPPER)
def upper_bound_is_the_entry_of_the_upper_slot(transition: Transition) -> bool:
    """The upper bound of a fetch is the entry of the upper slot of position + size, or none.

    The sum wraps at 32 bits, but not in segproof, where the slot is the first at or behind it.
    """
    index = transition.before
    if transition.operation != "fetch_upper_bound_offset" or not index.is_mapped:
        return True
    values, target = values_of(index), _upper_bound(transition)
    if index.entries != len(values):
        return True
    if index.profile.upper_bound_exact:
        if not is_rising(values):
            return True
        below = sum(1 for value in values if value < target)
        slot = below if below < len(values) else -1
    else:
        slot = probed_slots(values, target, index.profile.search, WARM_ENTRIES)[1]
    if slot < 0:
        return transition.outcome is None
    key, position = pairs(index)[slot]
    return transition.outcome == (index.base_offset + key, position)


@law("OFFIDX-16", structure=STRUCTURE, scope="step", source=UPPER)
def upper_bound_passes_over_the_first(transition: Transition) -> bool:
    """A fetch that ends at the position of the first entry gives the second entry, or none.

    segproof gives the first one.
    """
    index = transition.before
    if transition.operation != "fetch_upper_bound_offset" or not index.is_mapped:
        return True
    values = values_of(index)
    if not values or index.entries != len(values) or not is_rising(values):
        return True
    if _upper_bound(transition) != values[0]:
        return True
    slot = 0 if index.profile.upper_bound_exact else 1
    if slot >= len(values):
        return transition.outcome is None
    key, position = pairs(index)[slot]
    return transition.outcome == (index.base_offset + key, position)


@law("OFFIDX-17", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_keeps_what_is_below(transition: Transition) -> bool:
    """With increasing offsets, truncate_to keeps exactly the entries below the offset."""
    before, after = transition.before, transition.after
    if transition.operation != "truncate_to" or not before.is_mapped or not is_ordered(before):
        return True
    relative = transition.arguments["offset"] - before.base_offset
    kept = sum(1 for key in keys_of(before) if key < relative)
    return succeeded(transition) and (after.entries, after.position) == (kept, 8 * kept)


@law("OFFIDX-18", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_is_idempotent(transition: Transition) -> bool:
    """After truncate_to the last offset is below the offset; and then it changes nothing more."""
    before, after = transition.before, transition.after
    if transition.operation != "truncate_to" or not before.is_mapped or not is_ordered(before):
        return True
    relative = transition.arguments["offset"] - before.base_offset
    if is_regular(before) and all(key < relative for key in keys_of(before)):
        same = (after.entries, after.directory) == (before.entries, before.directory)
        return succeeded(transition) and same
    return not keys_of(after) or keys_of(after)[-1] < relative


@law("OFFIDX-19", structure=STRUCTURE, scope="step", source="Kafka OffsetIndex.truncate")
def truncate_forgets_all(transition: Transition) -> bool:
    """After truncate there is no entry, and the last offset is the base."""
    before, after = transition.before, transition.after
    if transition.operation != "truncate" or not before.is_mapped:
        return True
    left = (after.entries, after.position, after.last_offset)
    return succeeded(transition) and left == (0, 0, before.base_offset)


def _is_sane(index: Any) -> bool:
    """Return whether the profile's sanity_check passes the index."""
    last_is_sane = index.last_offset >= index.base_offset + (not index.profile.sanity_allows_base)
    if has_broken_length(index) or (index.entries and not last_is_sane):
        return False
    keys, values = keys_of(index), values_of(index)
    sorted_well = is_rising(keys) and never_falls(values)
    return not index.profile.sanity_checks_all or (sorted_well and min(keys + values + [0]) == 0)


@law("OFFIDX-20", structure=STRUCTURE, scope="step", source=SANITY)
def sanity_check_is_two_comparisons(transition: Transition) -> bool:
    """sanity_check refuses a last offset below the base (up to 1.1: at it) and a broken length.

    segproof also refuses offsets that don't increase, positions that fall, negative numbers.
    """
    if transition.operation != "sanity_check" or is_refused(transition.before):
        return True
    if _is_sane(transition.before):
        return transition.outcome is None
    return refused(transition, transition.before.profile.sanity_kind)


@law("OFFIDX-21", structure=STRUCTURE, scope="step", source=SANITY)
def zeros_are_sane(transition: Transition) -> bool:
    """A file of zero entries passes sanity_check, but up to release 1.1 only an empty one does.

    In segproof zeros at the end are no entries; more than one that were appended can't be.
    """
    index = transition.before
    if transition.operation != "sanity_check" or not index.is_mapped or not is_regular(index):
        return True
    zero_file = not any(index.image) and len(index.image) == index.length
    if not zero_file or index.length % 8 or not remembers_last_slot(index):
        return True
    if index.profile.sanity_checks_all and index.entries > 1:
        return True
    return succeeded(transition) is (index.profile.sanity_allows_base or index.entries == 0)


@law("OFFIDX-22", structure=STRUCTURE, scope="step", source=LOOKUP)
def zero_tail_makes_lookups_slow_not_wrong(transition: Transition) -> bool:
    """With a zero tail counted as entries, a lookup still never answers too far.

    Its offset is not above the target or the base, and its position not above the one that it would
    be without the tail.
    """
    index = transition.before
    if transition.operation != "lookup" or not index.is_mapped:
        return True
    genuine = list(OFFSET_ENTRY.iter_unpack(without_zero_tail(index.image[: index.position], 8)))
    keys, positions = [key for key, _ in genuine], [position for _, position in genuine]
    ordered = is_rising([-1, *keys]) and never_falls([0, *positions])
    if not ordered or not is_regular(index) or len(genuine) == index.entries:
        return True
    target = transition.arguments["target_offset"]
    slot = greatest_not_above(keys, target - index.base_offset)
    answer = transition.outcome
    if isinstance(answer, Raised) or not isinstance(answer, tuple):
        return False
    limits = (max(target, index.base_offset), positions[slot] if slot >= 0 else 0)
    return bool(answer[0] <= limits[0] and answer[1] <= limits[1])


@law("OFFIDX-23", structure=STRUCTURE, scope="step", source=APPEND)
def read_only_index_refuses(transition: Transition) -> bool:
    """An append to a read-only index that is not full raises the read-only error."""
    before = transition.before
    if not _passes_distance(transition) or before.writable or not before.is_mapped:
        return True
    return refused(transition, ErrorKind.READ_ONLY)
