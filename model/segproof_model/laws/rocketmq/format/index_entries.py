# SPDX-License-Identifier: Apache-2.0
"""How the laws read an index file: their own hash, places, entries and times.

Used by: the laws of index files, of the index service, of a store on disk.
"""

import re
import struct
from functools import lru_cache
from typing import Any, NamedTuple

from segproof_model.language.integers import wrap64
from segproof_model.laws.numbers import low_32_bits
from segproof_model.laws.register import Transition, has
from segproof_model.rocketmq.format.index_file_deviations import (
    ChainsAreChecked,
    ClosedFileIsClosed,
)

HEADER = struct.Struct(">qqqqii")
ENTRY = struct.Struct(">iqii")
NUMBER = struct.Struct(">i")


class Header(NamedTuple):
    """The six numbers of the header."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int


class Entry(NamedTuple):
    """One entry as it is stored."""

    number: int
    key_hash: int
    phy_offset: int
    time_diff: int
    prev_index: int


# --- texts ---------------------------------------------------------------------------------------


def java_hash(text: str) -> int:
    """Return the sum of each unit times 31 to the number of units behind it, cut to 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    return low_32_bits(sum(unit * 31**power for power, unit in enumerate(reversed(units))))


@lru_cache(maxsize=1024)
def kept_hash(key: str) -> int:
    """Return what an entry keeps of a key."""
    hashed = java_hash(key)
    return 0 if hashed == -(2**31) else abs(hashed)


def is_long(text: str) -> bool:
    """Return whether Java parses a text as an int64."""
    is_number = re.fullmatch(r"[+-]?\d+", text) and max(text) <= "\uffff"
    return bool(is_number) and -(2**63) <= int(text) < 2**63


# --- bytes ---------------------------------------------------------------------------------------


def header_of(image: bytes) -> Header:
    """Return the header in the file; zeros stand for what is missing."""
    return Header(*HEADER.unpack(image[:40].ljust(40, b"\0")))


def number_at(image: bytes, place: int) -> int:
    """Return the int32 at a place."""
    return int(NUMBER.unpack_from(image, place)[0])


def slots_of(image: bytes, hash_slot_num: int) -> tuple[int, ...]:
    """Return the slots."""
    return struct.unpack_from(f">{hash_slot_num}i", image, 40)


@lru_cache(maxsize=64)
def entries_of(image: bytes, hash_slot_num: int, index_count: int) -> tuple[Entry, ...]:
    """Return the entries from 1 to a count, exclusive, as far as there is room for them."""
    start = 40 + 4 * hash_slot_num
    end = min(index_count, (len(image) - start) // 20)
    return tuple(Entry(n, *ENTRY.unpack_from(image, start + 20 * n)) for n in range(1, end))


def seconds_between(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the seconds that an entry keeps, `begin_timestamp` being that before the put."""
    if begin_timestamp <= 0:
        return 0
    return max(0, min(wrap64(store_timestamp - begin_timestamp) // 1000, 2**31 - 1))


# --- states --------------------------------------------------------------------------------------


def size_of(hash_slot_num: int, index_num: int) -> int:
    """Return the file's size as 32 bits hold it."""
    return low_32_bits(40 + 4 * hash_slot_num + 20 * index_num)


def is_regular(file: Any) -> bool:
    """Return whether there are slots and entries, and the size needs no more than 31 bits."""
    size = 40 + 4 * file.hash_slot_num + 20 * file.index_num
    return bool(min(file.hash_slot_num, file.index_num) >= 1 and size < 2**31)


def is_refused(file: Any) -> bool:
    """Return whether the release refuses any use, because the file is closed."""
    return not file.is_mapped and has(file, ClosedFileIsClosed)


def slot_place(file: Any, key_hash: int) -> int:
    """Return where the slot of a hash lies."""
    return low_32_bits(40 + 4 * (key_hash % abs(file.hash_slot_num)))


def entry_place(file: Any, number: int) -> int:
    """Return where an entry lies."""
    return low_32_bits(40 + 4 * file.hash_slot_num + 20 * number)


def is_inside(file: Any, place: int, size: int) -> bool:
    """Return whether bytes lie in what is mapped."""
    return place >= 0 and place + size <= size_of(file.hash_slot_num, file.index_num)


def entry_at(file: Any, number: int) -> Entry | None:
    """Return the entry of this number, or None if it lies outside of the file."""
    place = entry_place(file, number)
    if not is_inside(file, place, ENTRY.size):
        return None
    return Entry(number, *ENTRY.unpack_from(file.image, place))


def all_entries(file: Any) -> tuple[Entry, ...]:
    """Return every entry below the count, which may be any number that damage left."""
    return entries_of(file.image, file.hash_slot_num, min(file.index_count, file.index_num))


def time_of(file: Any, entry: Entry) -> int:
    """Return the time that an entry stands for, as 64 bits hold it."""
    return wrap64(file.begin_timestamp + 1000 * entry.time_diff)


class Put:
    """A put that was taken, in a file all of whose places lie in it."""

    def __init__(self, step: Transition) -> None:
        self.before, self.after = step.before, step.after
        self.phy_offset: int = step.arguments["phy_offset"]
        self.store_timestamp: int = step.arguments["store_timestamp"]
        self.number: int = step.before.index_count
        """Of the entry."""
        self.key_hash = kept_hash(step.arguments["key"])
        place = slot_place(step.before, self.key_hash)
        self.old_head, self.head = (
            number_at(file.image, place) for file in (self.before, self.after)
        )
        """What the slot of the key named before, and names now."""
        start = entry_place(self.before, self.number)
        self.entry = Entry(self.number, *ENTRY.unpack_from(self.after.image, start))

    @property
    def previous(self) -> int:
        """Which number the entry has to keep of the one before it."""
        newest = self.number - has(self.before, ChainsAreChecked)
        return self.old_head if 0 < self.old_head <= newest else 0

    @property
    def seconds(self) -> int:
        """Which seconds the entry has to keep."""
        return seconds_between(self.before.begin_timestamp, self.store_timestamp)


def taken(step: Transition) -> Put | None:
    """Return the put that a step was, if it was taken in a file of a regular size."""
    return Put(step) if step.outcome is True and is_regular(step.before) else None
