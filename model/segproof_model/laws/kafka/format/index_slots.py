# SPDX-License-Identifier: Apache-2.0
"""How the laws read an index: their own decoding of its slots, and their own search."""

import struct
from collections.abc import Sequence
from typing import Any

from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.laws.arithmetic import is_rising

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


def without_zero_tail(image: bytes, entry_size: int) -> bytes:
    """Return the whole slots of an image up to the last one that is not all zero.

    The only slot of a time index is an entry, be it zero: timestamp 0 for the base offset.
    """
    if entry_size == TIME_ENTRY.size == len(image) // entry_size * entry_size:
        return image[:entry_size]
    used = len(image[: len(image) // entry_size * entry_size].rstrip(b"\0"))
    return image[: -(-used // entry_size) * entry_size]


def offset_entries(offset_index: bytes, base_offset: int) -> list[tuple[int, int]]:
    """Return (offset, position) of the whole entries before the zero tail."""
    used = without_zero_tail(offset_index, OFFSET_ENTRY.size)
    return [(base_offset + distance, at) for distance, at in OFFSET_ENTRY.iter_unpack(used)]


def time_entries(time_index: bytes, base_offset: int) -> list[tuple[int, int]]:
    """Return (timestamp, offset) of the whole entries before the zero tail; a lone zero is one."""
    used = without_zero_tail(time_index, TIME_ENTRY.size)
    return [(time, base_offset + distance) for time, distance in TIME_ENTRY.iter_unpack(used)]


def is_time(index: Any) -> bool:
    """Return whether the state is that of a time index."""
    return isinstance(index, TimeIndex)


def size_of_entry(kind: type) -> int:
    """Return the bytes of an entry: 8, or 12 in a time index."""
    return (TIME_ENTRY if issubclass(kind, TimeIndex) else OFFSET_ENTRY).size


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
    """Return whether the index is mapped, every entry lies in the file and the keys increase."""
    return bool(index.is_mapped) and is_in_file(index) and is_rising(keys_of(index))


def is_regular(index: Any) -> bool:
    """Return whether the position is that of the count, and the count has its room."""
    in_place = index.position == size_of_entry(type(index)) * index.entries
    return bool(in_place and 0 <= index.entries <= index.max_entries)


def is_full(index: Any) -> bool:
    """Return whether no slot is free; a time index reserves one."""
    return bool(index.entries >= index.max_entries - is_time(index))


def last_of(index: Any) -> tuple[int | None, int]:
    """Return timestamp and offset of the remembered last entry."""
    return tuple(index.remembered_entry) if is_time(index) else (None, index.last_offset)


def first_of(index: Any) -> tuple[int | None, int]:
    """Return the remembered last entry of an empty index: timestamp -1 and the base offset."""
    return (-1 if is_time(index) else None, index.base_offset)


def probed_slots(keys: Sequence[int], target: int, warm_entries: int | None) -> tuple[int, int]:
    """Return (lower slot, upper slot) by the literal order of probes.

    `warm_entries`: number of last entries that are searched first; None: without a warm section.
    """
    last = len(keys) - 1
    warm = last if warm_entries is None else max(0, last - warm_entries)
    is_warm = warm_entries is not None and last >= 0 and keys[warm] < target
    if not is_warm and (last < 0 or keys[0] > target):
        return -1, min(0, last)
    low, high = (warm, last) if is_warm else (0, warm)
    while low != high:
        middle = high - (high - low) // 2
        if keys[middle] == target:
            return middle, middle
        low, high = (low, middle - 1) if keys[middle] > target else (middle, high)
    return low, low + 1 if low < last else -1
