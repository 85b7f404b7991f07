# SPDX-License-Identifier: Apache-2.0
"""The laws that the offset index and the time index share."""

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

from segproof_model.kafka.format import index_deviations as ours
from segproof_model.kafka.format import index_releases as older
from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import fits_31_bits, greatest_not_above, is_rising, toward_zero
from segproof_model.laws.kafka.format.index_slots import (
    first_of,
    is_regular,
    last_of,
    probed_slots,
    size_of_entry,
    without_zero_tail,
)
from segproof_model.laws.register import Transition, has, law, retired

OPENING = "Kafka AbstractIndex constructor, since 1.1.1"
RESIZING = "Kafka AbstractIndex.resize, since 1.1.1"
CLOSING = "Kafka AbstractIndex.close"
INDEXES = "Kafka OffsetIndex, TimeIndex"
USES = "truncate truncate_to append maybe_append lookup"
SEARCHING = "Kafka AbstractIndex.indexSlotRangeFor, since 1.1.1"


def _is_new(step: Transition) -> bool:
    """Return whether the opening found no file."""
    return step.arguments["file"] not in step.before


def _is_made(step: Transition) -> bool:
    """Return whether a resize was made: one that is left out answers False."""
    return step.succeeded and step.outcome is not False


@law("ABSIDX-1", AbstractIndex, OPENING, on="open")
def new_index_is_zeros(step: Transition) -> bool:
    """A new index is a file of as many zero entries as fit the maximum size, none of them used."""
    index, size = step.after, size_of_entry(step.kind)
    if not _is_new(step) or not step.succeeded:
        return True
    slots = step.arguments["max_index_size_bytes"] // size
    counts = (index.length, index.max_entries, index.entries, index.position)
    return index.image == bytes(slots * size) and counts == (slots * size, slots, 0, 0)


@law("ABSIDX-2", AbstractIndex, OPENING, on="open")
def too_small_index_is_refused(step: Transition) -> bool:
    """A new index whose maximum size holds no entry is refused, and has no byte."""
    is_small = step.arguments["max_index_size_bytes"] < size_of_entry(step.kind)
    if not _is_new(step) or not step.arguments["writable"] or not is_small:
        return True
    left = step.after.image(step.arguments["file"])
    return step.raised(ErrorKind.INVALID_ARGUMENT) and left == b""


@law("ABSIDX-3", AbstractIndex, OPENING, on="open")
def opening_changes_no_file(step: Transition) -> bool:
    """Opening a file that exists ignores the maximum size and changes no byte of it."""
    return _is_new(step) or (step.succeeded and bool(step.after.files == step.before))


@law("ABSIDX-4", AbstractIndex, OPENING, on="open")
def every_whole_slot_is_an_entry(step: Transition) -> bool:
    """In a file that exists, every whole slot counts as an entry, and no slot is free.

    For segproof the zero slots at the end are free, except the only slot of a time index.
    """
    if _is_new(step):
        return True
    index, size = step.after, size_of_entry(step.kind)
    image = step.before.image(step.arguments["file"])
    used = without_zero_tail(image, size) if has(index, ours.ZeroTailIsFree) else image
    counts = (index.length, index.max_entries, index.entries, index.position)
    entries = len(used) // size
    return bool(counts == (len(image), len(image) // size, entries, entries * size))


@law("ABSIDX-5", AbstractIndex, "Kafka AbstractIndex, since 1.1.1")
def position_is_that_of_the_count(step: Transition) -> bool:
    """The position of a mapped index is entry size times count, and the file has room for the
    count.

    Only a resize below the position (ABSIDX-9) and half an entry (TIMEIDX-14, -16) break this;
    later states are not judged.
    """
    before, after = step.before, step.after
    if not getattr(after, "is_mapped", False):
        return True
    if step.operation != "open" and not (before.is_mapped and is_regular(before)):
        return True
    is_half_done = step.operation in ("resize", "maybe_append") and not step.succeeded
    return is_regular(after) or (is_half_done and not has(after, ours.FailedIndexChangeIsUndone))


@law("ABSIDX-6", AbstractIndex, "Kafka AbstractIndex.sizeInBytes")
def size_is_that_of_the_entries(state: Any) -> bool:
    """The size in bytes is entry size times entries at every moment."""
    return bool(state.size_in_bytes == size_of_entry(type(state)) * state.entries)


@law("ABSIDX-7", AbstractIndex, RESIZING, on="resize", unless=older.EveryResizeIsMade)
def equal_size_is_no_resize(step: Transition) -> bool:
    """A resize to the present length returns False and touches nothing.

    Up to 1.0 every resize is made, and returns nothing.
    """
    wanted = toward_zero(step.arguments["new_size"], size_of_entry(step.kind))
    if step.before.length != wanted or not step.succeeded:
        return step.outcome is not False
    return step.outcome is False and step.is_unchanged


@law("ABSIDX-8", AbstractIndex, RESIZING, on="resize")
def resize_keeps_the_first_bytes(step: Transition) -> bool:
    """A resize leaves whole entries: the old first bytes, then zeros."""
    if not _is_made(step):
        return True
    before, after, entry = step.before, step.after, size_of_entry(step.kind)
    size = toward_zero(step.arguments["new_size"], entry)
    image = before.image[:size] + bytes(max(0, size - len(before.image)))
    counts = (after.length, after.max_entries, after.entries)
    return after.image == image and counts == (size, size // entry, before.entries)


@law("ABSIDX-9", AbstractIndex, RESIZING, on="resize")
def resize_below_the_position(step: Transition) -> bool:
    """A resize below the position cuts the file, keeps the count, and then raises.

    segproof raises and changes nothing.
    """
    before, after = step.before, step.after
    size = toward_zero(step.arguments["new_size"], size_of_entry(step.kind))
    if not step.raised(ErrorKind.INVALID_ARGUMENT) or size < 0:
        return True
    if has(before, ours.FailedIndexChangeIsUndone):
        return step.is_unchanged
    is_cut = after.image == before.image[:size].ljust(size, b"\0") and after.position == 0
    return size < before.position and is_cut and bool(after.entries == before.entries)


retired(
    "ABSIDX-10",
    AbstractIndex,
    "A negative size above -E is 0; from -E on it is refused with an I/O error, which leaves the"
    " index unmapped.",
    AbstractIndex.fail_resize,
)


@law("ABSIDX-11", AbstractIndex, RESIZING, on="resize")
def resize_makes_writable(step: Transition) -> bool:
    """A resize makes a read-only index writable; segproof refuses it."""
    if step.before.writable or not _is_made(step):
        return True
    return bool(step.after.writable) and not has(step.before, ours.ReadOnlyIsNotResized)


@law("ABSIDX-12", AbstractIndex, "Kafka AbstractIndex.trimToValidSize", on="trim_to_valid_size")
def trim_leaves_the_entries(step: Transition) -> bool:
    """Trimming a mapped index leaves a file with exactly its entries."""
    before, after = step.before, step.after
    if not (before.is_mapped and is_regular(before) and step.succeeded):
        return True
    return bool(after.length == len(after.image) == size_of_entry(step.kind) * before.entries)


@law("ABSIDX-13", AbstractIndex, "Kafka AbstractIndex.reset", on="reset")
def reset_leaves_an_empty_index(step: Transition) -> bool:
    """After a reset the index is empty, and the file has the maximum size again."""
    before, after = step.before, step.after
    if not step.succeeded:
        return True
    size = toward_zero(before.max_index_size_bytes, size_of_entry(step.kind))
    is_empty = (after.entries, after.position) == (0, 0) and last_of(after) == first_of(after)
    return is_empty and bool(after.length == len(after.image) == size)


@law("ABSIDX-14", AbstractIndex, CLOSING, on="close")
def close_changes_no_file(step: Transition) -> bool:
    """Closing leaves the file unchanged; up to 4.3 it leaves a file with exactly the entries. A
    second close raises nothing.
    """
    before, after = step.before, step.after
    if not has(before, older.ClosingTrimsIndexes):
        return step.succeeded and step.changed_only("is_mapped")
    is_kept = has(before, ours.ReadOnlyIsNotResized) and not before.writable
    if not before.is_mapped or not is_regular(before) or is_kept:
        return True
    size = size_of_entry(step.kind) * before.entries
    return step.succeeded and bool(after.length == len(after.image) == size)


@law("ABSIDX-15", AbstractIndex, CLOSING, on="close", unless=older.CloseKeepsMapping)
def closed_index_is_unmapped(step: Transition) -> bool:
    """A closed index answers no lookup; up to 2.1 it does."""
    return not step.succeeded or not step.after.is_mapped


@law("ABSIDX-16", AbstractIndex, "Kafka AbstractIndex.closeHandler", on="close_handler")
def close_handler_only_unmaps(step: Transition) -> bool:
    """Closing the handler leaves the file unchanged and raises nothing."""
    return step.succeeded and not step.after.is_mapped and step.changed_only("is_mapped")


@law("ABSIDX-17", AbstractIndex, INDEXES, on=USES)
def unmapped_index_changes_no_file(step: Transition) -> bool:
    """An unmapped index answers no lookup and changes no file; truncate sets the count to 0, and
    then raises. In segproof it keeps the count.
    """
    if step.before.is_mapped:
        return not step.raised(ErrorKind.UNMAPPED)
    if step.operation in ("lookup", "truncate", "truncate_to") and step.succeeded:
        return False
    forgets = step.operation == "truncate" and not has(step.before, ours.ClosedIndexIsClosed)
    return step.changed_only("entries" if forgets else "")


@law("ABSIDX-18", AbstractIndex, "Kafka AbstractIndex.deleteIfExists", on="delete_if_exists")
def delete_tells_whether_there_was_a_file(step: Transition) -> bool:
    """Deleting removes the file, and returns whether it existed."""
    before, after = step.before, step.after
    others = {name: data for name, data in before.files.images.items() if name != before.name}
    is_gone = after.files.images == others and not after.is_mapped
    return is_gone and step.outcome is (before.name in before.files)


@law("ABSIDX-19", AbstractIndex, "Kafka AbstractIndex.renameTo", on="rename_to")
def rename_replaces_the_target(step: Transition) -> bool:
    """Renaming replaces a file of that name, and changes the remembered path even when it fails.

    segproof keeps the path when it fails.
    """
    before, after, target = step.before, step.after, step.arguments["file"]
    if before.name not in before.files:
        is_kept = has(before, ours.FailedIndexChangeIsUndone)
        left = before.name if is_kept else target
        return step.raised(ErrorKind.FILE_NOT_FOUND) and after.name == left
    there = {name: data for name, data in before.files.images.items() if name != before.name}
    moved = {**there, target: before.image}
    return step.succeeded and after.name == target and after.files.images == moved


@law("ABSIDX-20", AbstractIndex, INDEXES, on="truncate truncate_to")
def truncation_leaves_the_file(step: Transition) -> bool:
    """Truncation changes neither the bytes nor the length of the file."""
    return step.changed_only("entries position last_offset remembered_entry")


@law("ABSIDX-21", AbstractIndex, "Kafka AbstractIndex.relativeOffset", on="relative_offset")
def relative_offsets_have_31_bits(step: Transition) -> bool:
    """An offset can be stored exactly when its distance from the base is from 0 to 2147483647."""
    base_offset, offset = step.before.base_offset, step.arguments["offset"]
    if not fits_31_bits(base_offset, offset):
        return step.raised(ErrorKind.INDEX_OFFSET_OVERFLOW)
    return bool(step.outcome == (offset - base_offset) % 2**64)


@law("ABSIDX-22", AbstractIndex, SEARCHING)
def lower_slot_is_the_greatest(keys: Sequence[int], target: int, lower: int) -> bool:
    """For increasing keys the lower slot is the greatest with a key not above the target, or -1."""
    return not is_rising(keys) or lower == greatest_not_above(keys, target)


@law("ABSIDX-23", AbstractIndex, SEARCHING)
def searches_agree(keys: Sequence[int], plain: tuple[int, int], warm: tuple[int, int]) -> bool:
    """For increasing keys the plain and the warm search find the same two slots of one target."""
    return not is_rising(keys) or plain == warm


@law("ABSIDX-24", AbstractIndex, SEARCHING)
def upper_slot_passes_over_the_first(
    keys: Sequence[int], target: int, upper: int, upper_bound_exact: bool
) -> bool:
    """For increasing keys the upper slot is the first key not below the target, or -1.

    But a match on slot 0 gives slot 1, or -1 without a slot 1; not so in segproof
    (`upper_bound_exact`).
    """
    if not is_rising(keys):
        return True
    below = sum(1 for key in keys if key < target)
    if below == 0 and len(keys) > 0 and keys[0] == target and not upper_bound_exact:
        below = 1
    return upper == (below if below < len(keys) else -1)


@law("ABSIDX-25", AbstractIndex, SEARCHING)
def search_is_bounded(entries: int, probes: Sequence[int]) -> bool:
    """A search of n entries reads only those, and probes at most 2 + log2(n), rounded up, slots.

    `probes` are the slots in the order they were read; reading one twice in a row is one probe.
    """
    if entries == 0:
        return not probes
    repeated = sum(1 for one, two in zip(probes, probes[1:], strict=False) if one == two)
    inside = all(0 <= slot < entries for slot in probes)
    return inside and len(probes) - repeated <= 2 + ceil(log2(entries))


@law("ABSIDX-26", AbstractIndex, SEARCHING)
def other_keys_follow_the_probes(
    keys: Sequence[int], target: int, warm_entries: int | None, slots: tuple[int, int]
) -> bool:
    """For equal or unsorted keys the slots are those of the release's literal order of probes.

    `warm_entries` is the size of the section that is searched first; None: there is none.
    """
    return slots == probed_slots(keys, target, warm_entries)
