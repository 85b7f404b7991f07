# SPDX-License-Identifier: Apache-2.0
"""How the laws read a state: their own decoding and arithmetic, never a method that they judge.

Used by: the laws of the indexes.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.time_index import TimeIndex
from segproof_model.language.integers import wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.registry import Transition

ENTRY_SIZES = {"offset-index": 8, "time-index": 12}
OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
ABORTED_TXN = struct.Struct(">hqqqq")


def raised(transition: Transition, kind: ErrorKind) -> bool:
    """Return whether the operation raised an error of this kind."""
    return transition.outcome == Raised(kind)


def succeeded(transition: Transition) -> bool:
    """Return whether the operation raised nothing."""
    return not isinstance(transition.outcome, Raised)


def refused(transition: Transition, kind: ErrorKind) -> bool:
    """Return whether the operation raised this kind and changed nothing."""
    return raised(transition, kind) and transition.after == transition.before


def is_rising(numbers: Sequence[int]) -> bool:
    """Return whether each number is greater than the one before it."""
    return all(one < two for one, two in zip(numbers, numbers[1:], strict=False))


def never_falls(numbers: Sequence[int]) -> bool:
    """Return whether no number is smaller than the one before it."""
    return all(one <= two for one, two in zip(numbers, numbers[1:], strict=False))


def toward_zero(number: int, factor: int) -> int:
    """Return the multiple of `factor` that is nearest to `number` on the side of zero."""
    return number // factor * factor if number >= 0 else -(-number // factor * factor)


def low_32_bits(number: int) -> int:
    """Return the low 32 bits as a signed number."""
    low = number & 0xFFFFFFFF
    return low - 2**32 if low >= 2**31 else low


def first_by_sequences(batch: RecordBatch) -> int:
    """Return the offset before the last by what its sequence numbers span; 0 for what can't be
    read."""
    last_offset, last_sequence, base_sequence = (
        number if isinstance(number, int) else 0
        for number in (batch.last_offset, batch.last_sequence, batch.base_sequence)
    )
    return wrap64(last_offset - wrap32(last_sequence - base_sequence))


def fits_31_bits(base_offset: int, offset: int) -> bool:
    """Return whether the distance, as 64 bits hold it, is from 0 to 2147483647."""
    distance = offset - base_offset
    return any(0 <= distance + lap * 2**64 < 2**31 for lap in (-1, 0, 1))


def without_zero_tail(image: bytes, entry_size: int) -> bytes:
    """Return the whole slots of an image up to the last one that is not all zero.

    The only slot of a time index is an entry, be it zero: timestamp 0 for the base offset.
    """
    if entry_size == TIME_ENTRY.size == len(image) // entry_size * entry_size:
        return image[:entry_size]
    used = len(image[: len(image) // entry_size * entry_size].rstrip(b"\0"))
    return image[: -(-used // entry_size) * entry_size]


def is_time(index: Any) -> bool:
    """Return whether the state is that of a time index."""
    return isinstance(index, TimeIndex)


def entry_size(index: Any) -> int:
    """Return the bytes of an entry: 8, or 12 in a time index."""
    return ENTRY_SIZES["time-index" if is_time(index) else "offset-index"]


def pairs(index: Any) -> list[tuple[int, int]]:
    """Return key and value of each slot that is an entry and lies in the file."""
    entry = TIME_ENTRY if is_time(index) else OFFSET_ENTRY
    count = min(index.entries, len(index.image) // entry.size)
    return list(entry.iter_unpack(index.image[: count * entry.size]))


def keys_of(index: Any) -> list[int]:
    """Return the keys of the same slots: relative offsets, or timestamps."""
    return [key for key, _ in pairs(index)]


def values_of(index: Any) -> list[int]:
    """Return the values of the same slots: positions, or relative offsets."""
    return [value for _, value in pairs(index)]


def is_in_file(index: Any) -> bool:
    """Return whether every entry lies in the file; none does in one that was removed."""
    return bool(index.entries == len(pairs(index)))


def is_ordered(index: Any) -> bool:
    """Return whether every entry lies in the file and the keys strictly increase."""
    return is_in_file(index) and is_rising(keys_of(index))


def is_regular(index: Any) -> bool:
    """Return whether the position is that of the count, and the count has its room."""
    in_place = index.position == entry_size(index) * index.entries
    return bool(in_place and 0 <= index.entries <= index.max_entries)


def has_broken_length(index: Any) -> bool:
    """Return whether the length that sanity_check asks for is that of no whole entries."""
    found = index.directory.read(index.opened_name) or b""
    length = len(found) if index.profile.sanity_measures_file else index.length
    return bool(length % entry_size(index))


def is_full(index: Any) -> bool:
    """Return whether no slot is free; a time index keeps one (OFFIDX-10, TIMEIDX-2)."""
    return bool(index.entries >= index.max_entries - is_time(index))


def is_refused(index: Any) -> bool:
    """Return whether the profile refuses any use, because the index is closed."""
    return bool(index.profile.closed_is_closed and not index.is_mapped)


def cannot_resize(index: Any) -> bool:
    """Return whether the profile keeps the file of a read-only index as it is."""
    return bool(index.profile.resize_keeps_read_only and not index.writable)


def was_resized(transition: Transition) -> bool:
    """Return whether a resize was made: those that are left out return False."""
    return transition.outcome is (True if transition.before.profile.resize_short_cut else None)


def remembers(index: Any, offset: int, timestamp: int = -1) -> bool:
    """Return whether the remembered last entry is this one."""
    if is_time(index):
        return bool(tuple(index.last_entry) == (timestamp, offset))
    return bool(index.last_offset == offset)


def remembers_last_slot(index: Any) -> bool:
    """Return whether the remembered last entry is that of slot entries - 1, or the empty one.

    Where offsets are cut to 32 bits, so is the comparison: the uncut offset is remembered.
    """
    if index.entries == 0:
        return remembers(index, index.base_offset)
    key, value = pairs(index)[-1]
    offset = index.last_entry.offset if is_time(index) else index.last_offset
    distance = offset - index.base_offset
    if not index.profile.check_relative_offset:
        distance = low_32_bits(distance)
    if is_time(index):
        return bool(index.last_entry.timestamp == key and distance == value)
    return bool(distance == key)


def greatest_not_above(numbers: Iterable[int], target: int) -> int:
    """Return the last place of a number <= target in numbers that increase, or -1."""
    return sum(1 for number in numbers if number <= target) - 1


def probed_slots(
    keys: Sequence[int], target: int, search: str, warm_entries: int
) -> tuple[int, int]:
    """Return (lower slot, upper slot) by the literal order of probes of a release."""
    count = len(keys)
    if count == 0:
        return -1, -1
    warm = max(0, count - 1 - warm_entries) if search == "warm" else 0
    if search == "warm" and keys[warm] < target:
        low, high = warm, count - 1
    elif keys[0] > target:
        return -1, 0
    else:
        low, high = 0, warm if search == "warm" else count - 1
    while low != high:
        middle = high - (high - low) // 2
        if keys[middle] == target:
            return middle, middle
        low, high = (low, middle - 1) if keys[middle] > target else (middle, high)
    return low, low + 1 if low + 1 < count else -1
