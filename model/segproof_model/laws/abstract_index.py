# SPDX-License-Identifier: Apache-2.0
"""The laws that the offset index and the time index share.

An opening is a `Transition` with the operation "open", no state before, and the arguments `file`,
`base_offset`, `max_index_size_bytes`, `writable`, `directory`, `profile` and `structure`.

Used by: the harness, the generated pages.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2
from typing import Any

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import (
    ENTRY_SIZES,
    cannot_resize,
    entry_size,
    fits_31_bits,
    greatest_not_above,
    is_full,
    is_refused,
    is_regular,
    is_rising,
    probed_slots,
    raised,
    refused,
    remembers,
    succeeded,
    toward_zero,
    was_resized,
    without_zero_tail,
)
from segproof_model.laws.registry import Transition, law

STRUCTURE = "abstract-index"
OPENING = "Kafka AbstractIndex constructor, since 1.1.1"
RESIZING = "Kafka AbstractIndex.resize, since 1.1.1"
SEARCHING = "Kafka AbstractIndex.indexSlotRangeFor, since 1.1.1"
FAILED_RESIZE = (ErrorKind.INVALID_ARGUMENT,)
HALF_ENTRY = (ErrorKind.INDEX_OFFSET_OVERFLOW, ErrorKind.BUFFER_OVERFLOW)


def _opens(transition: Transition, *, new: bool) -> bool:
    """Return whether the transition opens a file that is new, or one that exists."""
    if transition.operation != "open" or "max_index_size_bytes" not in transition.arguments:
        return False
    return (transition.arguments["file"] not in transition.arguments["directory"]) == new


def _size_of_entry(transition: Transition) -> int:
    return ENTRY_SIZES[transition.arguments["structure"]]


@law("ABSIDX-1", structure=STRUCTURE, scope="step", source=OPENING)
def new_index_is_zeros(transition: Transition) -> bool:
    """A new index is a file of as many zero entries as fit the maximum size, none of them used."""
    if not _opens(transition, new=True) or not transition.arguments["writable"]:
        return True
    size = _size_of_entry(transition)
    slots = transition.arguments["max_index_size_bytes"] // size
    if slots < 1:
        return True
    index = transition.after
    return (
        succeeded(transition)
        and index.image == bytes(slots * size)
        and (index.length, index.max_entries) == (slots * size, slots)
        and (index.entries, index.position) == (0, 0)
    )


@law("ABSIDX-2", structure=STRUCTURE, scope="step", source=OPENING)
def too_small_index_is_refused(transition: Transition) -> bool:
    """A new index whose maximum size holds no entry is refused, and leaves an empty file.

    segproof leaves no file.
    """
    if not _opens(transition, new=True) or not transition.arguments["writable"]:
        return True
    if transition.arguments["max_index_size_bytes"] >= _size_of_entry(transition):
        return True
    name, directory = transition.arguments["file"], transition.arguments["directory"]
    if transition.arguments["profile"].checks_before_changing:
        left = directory
    else:
        left = directory.write(name, b"")
    return raised(transition, ErrorKind.INVALID_ARGUMENT) and bool(transition.after == left)


@law("ABSIDX-3", structure=STRUCTURE, scope="step", source=OPENING)
def opening_changes_no_file(transition: Transition) -> bool:
    """Opening a file that exists ignores the maximum size and changes no byte of it."""
    if not _opens(transition, new=False):
        return True
    directory = transition.arguments["directory"]
    return succeeded(transition) and bool(transition.after.directory == directory)


@law("ABSIDX-4", structure=STRUCTURE, scope="step", source=OPENING)
def every_whole_slot_is_an_entry(transition: Transition) -> bool:
    """In a file that exists, every whole slot counts as an entry, and there is no free one.

    For segproof the zero slots at the end are free, but for the only slot of a time index.
    """
    if not _opens(transition, new=False):
        return True
    index, size = transition.after, _size_of_entry(transition)
    image = transition.arguments["directory"].read(transition.arguments["file"])
    slots = entries = len(image) // size
    if index.profile.zero_tail_is_free:
        entries = len(without_zero_tail(image, size)) // size
    counts = (index.length, index.max_entries, index.entries, index.position)
    return bool(counts == (len(image), slots, entries, entries * size))


@law("ABSIDX-5", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex, since 1.1.1")
def position_is_that_of_the_count(transition: Transition) -> bool:
    """The position of a mapped index is that of its count, and the count has its room.

    Only a resize below the position (ABSIDX-9) and half an entry (TIMEIDX-14, -16) break this; what
    follows such a state is not judged.
    """
    before, after = transition.before, transition.after
    if not getattr(after, "is_mapped", False):
        return True
    if before is not None and not (before.is_mapped and is_regular(before)):
        return True
    allowed = {"resize": FAILED_RESIZE, "maybe_append": HALF_ENTRY}.get(transition.operation, ())
    if not after.profile.checks_before_changing and any(raised(transition, k) for k in allowed):
        return True
    return is_regular(after)


@law("ABSIDX-6", structure=STRUCTURE, scope="state", source="Kafka AbstractIndex.sizeInBytes")
def size_is_that_of_the_entries(index: Any) -> bool:
    """The size in bytes is entry size times entries at every moment."""
    return bool(index.size_in_bytes == entry_size(index) * index.entries)


@law("ABSIDX-7", structure=STRUCTURE, scope="step", source=RESIZING)
def equal_size_is_no_resize(transition: Transition) -> bool:
    """A resize to the length the index has already returns False and touches nothing.

    Up to 1.0 no resize is left out, and none returns anything.
    """
    before = transition.before
    if transition.operation != "resize" or is_refused(before):
        return True
    if not before.profile.resize_short_cut:
        return transition.outcome is None or isinstance(transition.outcome, Raised)
    same = before.length == toward_zero(transition.arguments["new_size"], entry_size(before))
    if same:
        return transition.outcome is False and bool(transition.after == before)
    return transition.outcome is not False


@law("ABSIDX-8", structure=STRUCTURE, scope="step", source=RESIZING)
def resize_keeps_the_first_bytes(transition: Transition) -> bool:
    """A resize that is made leaves whole entries, the old first bytes, and zeros behind."""
    if transition.operation != "resize" or not was_resized(transition):
        return True
    before, after = transition.before, transition.after
    size = toward_zero(transition.arguments["new_size"], entry_size(before))
    return (
        after.image == before.image[:size] + bytes(max(0, size - len(before.image)))
        and (after.length, after.max_entries) == (size, size // entry_size(before))
        and after.entries == before.entries
    )


@law("ABSIDX-9", structure=STRUCTURE, scope="step", source=RESIZING)
def resize_below_the_position(transition: Transition) -> bool:
    """A resize below the position cuts the file, keeps the count, and then raises.

    segproof raises and changes nothing.
    """
    before, after = transition.before, transition.after
    if transition.operation != "resize" or not before.is_mapped or cannot_resize(before):
        return True
    size = toward_zero(transition.arguments["new_size"], entry_size(before))
    is_same = size == before.length and before.profile.resize_short_cut
    if not 0 <= size < before.position or is_same:
        return True
    if before.profile.checks_before_changing:
        return refused(transition, ErrorKind.INVALID_ARGUMENT)
    directory = before.directory.write(before.name, before.image[:size].ljust(size, b"\0"))
    cut = replace(
        before,
        directory=directory,
        length=size,
        max_entries=size // entry_size(before),
        position=0,
        writable=True,
    )
    return raised(transition, ErrorKind.INVALID_ARGUMENT) and bool(after == cut)


@law("ABSIDX-10", structure=STRUCTURE, scope="step", source=RESIZING)
def negative_sizes(transition: Transition) -> bool:
    """A negative size above -E is 0; from -E on it is refused with an I/O error, nothing changes.

    In the newest releases the refused one leaves the index unmapped; segproof calls it an invalid
    argument.
    """
    before, after = transition.before, transition.after
    if transition.operation != "resize" or not before.is_mapped or cannot_resize(before):
        return True
    new_size = transition.arguments["new_size"]
    if new_size >= 0:
        return True
    if before.profile.checks_before_changing:
        if new_size <= -entry_size(before) or before.position > 0:
            return refused(transition, ErrorKind.INVALID_ARGUMENT)
        return (after.length, after.image) == (0, b"")
    if new_size > -entry_size(before):
        return (after.length, after.image) == (0, b"")
    left = replace(before, is_mapped=not before.profile.failed_resize_unmaps)
    return raised(transition, ErrorKind.IO_ERROR) and bool(after == left)


@law("ABSIDX-11", structure=STRUCTURE, scope="step", source=RESIZING)
def resize_makes_writable(transition: Transition) -> bool:
    """A resize that is made makes a read-only index writable; segproof refuses it."""
    before = transition.before
    if transition.operation != "resize" or before.writable or is_refused(before):
        return True
    if before.profile.resize_keeps_read_only:
        return transition.outcome is False or refused(transition, ErrorKind.READ_ONLY)
    return not was_resized(transition) or bool(transition.after.writable)


@law("ABSIDX-12", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.trimToValidSize")
def trim_leaves_the_entries(transition: Transition) -> bool:
    """Trimming leaves a file of exactly the entries.

    Unmapped and untrimmed, it has no effect in the newest releases, and raises the unmapped error
    in the older ones and in segproof.
    """
    before, after = transition.before, transition.after
    if transition.operation != "trim_to_valid_size" or (before.is_mapped and cannot_resize(before)):
        return True
    if before.is_mapped:
        size = entry_size(before) * before.entries
        in_place = succeeded(transition) and after.length == len(after.image) == size
        return in_place or not is_regular(before)
    profile = before.profile
    is_trimmed = before.length == entry_size(before) * before.entries
    untrimmed = not (is_trimmed and profile.resize_short_cut)
    if profile.closed_is_closed or (profile.trim_after_close_handler_fails and untrimmed):
        return raised(transition, ErrorKind.UNMAPPED)
    return succeeded(transition) and bool(after == before)


@law("ABSIDX-13", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.reset")
def reset_leaves_an_empty_index(transition: Transition) -> bool:
    """After a reset there is no entry, and the file has the maximum size again."""
    before, after = transition.before, transition.after
    if transition.operation != "reset":
        return True
    size = toward_zero(before.max_index_size_bytes, entry_size(before))
    if isinstance(transition.outcome, Raised):
        return not before.is_mapped or size < 0 or cannot_resize(before)
    return (
        (after.entries, after.position) == (0, 0)
        and remembers(after, after.base_offset)
        and after.length == len(after.image) == size
    )


@law("ABSIDX-14", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.close")
def close_trims_once(transition: Transition) -> bool:
    """Closing leaves a file of exactly the entries, since 4.4 as it is; a second close changes and
    raises nothing.

    segproof does not trim what it opened for reading.
    """
    before, after = transition.before, transition.after
    if transition.operation != "close":
        return True
    if not before.profile.close_writes:
        return succeeded(transition) and bool(after == replace(before, is_mapped=False))
    size = entry_size(before) * before.entries
    if before.is_mapped:
        if cannot_resize(before):
            return succeeded(transition) and bool(after.directory == before.directory)
        in_place = succeeded(transition) and after.length == len(after.image) == size
        return in_place or not is_regular(before)
    is_trimmed = before.length == size and before.profile.resize_short_cut
    if is_trimmed or before.profile.closed_is_closed:
        return succeeded(transition) and bool(after == before)
    return True


@law("ABSIDX-15", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.close")
def closed_index_answers_no_lookup(transition: Transition) -> bool:
    """A closed index answers no lookup, but up to 2.1 it still does."""
    before, after = transition.before, transition.after
    if transition.operation == "close" and before.is_mapped and succeeded(transition):
        return bool(after.is_mapped is not before.profile.close_unmaps)
    if transition.operation == "lookup":
        return raised(transition, ErrorKind.UNMAPPED) is not before.is_mapped
    return True


@law("ABSIDX-16", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.closeHandler")
def close_handler_only_unmaps(transition: Transition) -> bool:
    """Closing the handler leaves the file as it is and raises nothing."""
    if transition.operation != "close_handler":
        return True
    left = replace(transition.before, is_mapped=False)
    return succeeded(transition) and bool(transition.after == left)


@law("ABSIDX-17", structure=STRUCTURE, scope="step", source="Kafka OffsetIndex, TimeIndex")
def unmapped_index_fails_late(transition: Transition) -> bool:
    """Unmapped, truncate forgets the entries and then raises; a full index still says it is full.

    truncate_to raises before it counts. segproof changes nothing and raises the unmapped error. A
    flush raises it too, but since 4.4.
    """
    before, after = transition.before, transition.after
    if transition.operation == "flush" and not before.is_mapped:
        is_done = before.profile.unmapped_index_flushes
        return succeeded(transition) if is_done else refused(transition, ErrorKind.UNMAPPED)
    operations = ("truncate", "truncate_to", "append", "maybe_append")
    if transition.operation not in operations or getattr(before, "is_mapped", True):
        return True
    if is_refused(before) or transition.operation == "truncate_to":
        return refused(transition, ErrorKind.UNMAPPED)
    if transition.operation == "truncate":
        left = replace(before, entries=0)
        return raised(transition, ErrorKind.UNMAPPED) and bool(after == left)
    if is_full(before) and not transition.arguments.get("skip_full_check", False):
        return refused(transition, ErrorKind.INVALID_ARGUMENT)
    return bool(after == before)


@law("ABSIDX-18", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.deleteIfExists")
def delete_tells_whether_there_was_a_file(transition: Transition) -> bool:
    """Deleting returns whether there was a file, and then there is none."""
    before, after = transition.before, transition.after
    if transition.operation != "delete_if_exists":
        return True
    others = tuple(pair for pair in before.directory.files if pair[0] != before.name)
    return (
        transition.outcome is (others != before.directory.files)
        and after.directory.files == others
        and not after.is_mapped
    )


@law("ABSIDX-19", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.renameTo")
def rename_replaces_the_target(transition: Transition) -> bool:
    """Renaming replaces a file of that name, and changes the remembered path even when it fails.

    segproof keeps the path when it fails.
    """
    before, after = transition.before, transition.after
    if transition.operation != "rename_to":
        return True
    target, moved = transition.arguments["file"], before.directory.read(before.name)
    if moved is None:
        name = before.name if before.profile.checks_before_changing else target
        left = replace(before, name=name)
        return raised(transition, ErrorKind.FILE_NOT_FOUND) and bool(after == left)
    there = dict(after.directory.files)
    others = {**dict(before.directory.files), target: moved}
    if target != before.name:
        del others[before.name]
    return succeeded(transition) and bool(after.name == target) and there == others


@law("ABSIDX-20", structure=STRUCTURE, scope="step", source="Kafka OffsetIndex, TimeIndex")
def truncation_leaves_the_file(transition: Transition) -> bool:
    """Truncation changes neither the bytes nor the length of the file."""
    if transition.operation not in ("truncate", "truncate_to"):
        return True
    before, after = transition.before, transition.after
    return (before.directory, before.length) == (after.directory, after.length)


@law("ABSIDX-21", structure=STRUCTURE, scope="step", source="Kafka AbstractIndex.relativeOffset")
def relative_offsets_have_31_bits(transition: Transition) -> bool:
    """An offset can be stored exactly when its distance from the base is from 0 to 2147483647."""
    if transition.operation not in ("relative_offset", "can_append_offset"):
        return True
    base_offset, offset = transition.before.base_offset, transition.arguments["offset"]
    fits = fits_31_bits(base_offset, offset)
    if transition.operation == "can_append_offset":
        return transition.outcome is fits
    if not fits:
        return raised(transition, ErrorKind.INDEX_OFFSET_OVERFLOW)
    return bool(transition.outcome == (offset - base_offset) % 2**64)


@law("ABSIDX-22", structure=STRUCTURE, scope="pure", source=SEARCHING)
def lower_slot_is_the_greatest(keys: Sequence[int], target: int, lower: int) -> bool:
    """For increasing keys the lower slot is the greatest with a key not above the target, or -1."""
    return not is_rising(keys) or lower == greatest_not_above(keys, target)


@law("ABSIDX-23", structure=STRUCTURE, scope="pure", source=SEARCHING)
def searches_agree(keys: Sequence[int], plain: tuple[int, int], warm: tuple[int, int]) -> bool:
    """For increasing keys the plain and the warm search find the same two slots of one target."""
    return not is_rising(keys) or plain == warm


@law("ABSIDX-24", structure=STRUCTURE, scope="pure", source=SEARCHING)
def upper_slot_passes_over_the_first(
    keys: Sequence[int], target: int, upper: int, upper_bound_exact: bool
) -> bool:
    """For increasing keys the upper slot is the first key not below the target, or -1.

    But a match on slot 0 gives slot 1, or -1 where there is none; not so in segproof
    (`upper_bound_exact`).
    """
    if not is_rising(keys):
        return True
    below = sum(1 for key in keys if key < target)
    if below == 0 and len(keys) > 0 and keys[0] == target and not upper_bound_exact:
        below = 1
    return upper == (below if below < len(keys) else -1)


@law("ABSIDX-25", structure=STRUCTURE, scope="pure", source=SEARCHING)
def search_is_bounded(entries: int, probes: Sequence[int]) -> bool:
    """A search of n entries reads only those, and probes at most 2 + log2(n), rounded up, slots.

    `probes` are the slots in the order they were read; reading one twice in a row is one probe.
    """
    if entries == 0:
        return not probes
    repeated = sum(1 for one, two in zip(probes, probes[1:], strict=False) if one == two)
    inside = all(0 <= slot < entries for slot in probes)
    return inside and len(probes) - repeated <= 2 + ceil(log2(entries))


@law("ABSIDX-26", structure=STRUCTURE, scope="pure", source=SEARCHING)
def other_keys_follow_the_probes(
    keys: Sequence[int], target: int, search: str, warm_entries: int, slots: tuple[int, int]
) -> bool:
    """For equal or unsorted keys the slots are those of the release's literal order of probes.

    `search` is "plain" or "warm", `warm_entries` the size of the warm section.
    """
    return slots == probed_slots(keys, target, search, warm_entries)
