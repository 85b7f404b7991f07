# SPDX-License-Identifier: Apache-2.0
"""How the laws read an index file: their own hash, places, entries and times."""

import re
import struct
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from segproof_model.language.integers import int32_at, wrap64
from segproof_model.laws.arithmetic import low_32_bits
from segproof_model.laws.register import Transition, has, laws_of
from segproof_model.rocketmq.format import index_file_deviations as ours
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.index_header import IndexHeader

HEADER = struct.Struct(">qqqqii")
ENTRY = struct.Struct(">iqii")


class Entry(NamedTuple):
    """One entry as it is stored."""

    number: int
    key_hash: int
    phy_offset: int
    time_diff: int
    prev_index: int


# --- texts ---------------------------------------------------------------------------------------


def java_hash(text: str) -> int:
    """Return the sum of each unit times 31 to the number of units after it, cut to 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    return low_32_bits(sum(unit * 31**power for power, unit in enumerate(reversed(units))))


@lru_cache(maxsize=1024)
def kept_hash(key: str) -> int:
    """Return the hash that an entry stores for a key."""
    hashed = java_hash(key)
    return 0 if hashed == -(2**31) else abs(hashed)


def is_long(text: str) -> bool:
    """Return whether Java parses a text as an int64."""
    is_number = re.fullmatch(r"[+-]?\d+", text) and max(text) <= "\uffff"
    return bool(is_number) and -(2**63) <= int(text) < 2**63


# --- bytes ---------------------------------------------------------------------------------------


def header_of(image: bytes) -> IndexHeader:
    """Return the header in the file; zeros stand for what is missing."""
    return IndexHeader(*HEADER.unpack(image[:40].ljust(40, b"\0")))


def slots_of(image: bytes, hash_slot_num: int) -> tuple[int, ...]:
    """Return the slots."""
    return struct.unpack_from(f">{hash_slot_num}i", image, 40)


@lru_cache(maxsize=64)
def entries_of(image: bytes, hash_slot_num: int, index_count: int) -> tuple[Entry, ...]:
    """Return the entries from 1 to a count, exclusive, as far as the file has room."""
    start = 40 + 4 * hash_slot_num
    end = min(index_count, (len(image) - start) // 20)
    return tuple(Entry(n, *ENTRY.unpack_from(image, start + 20 * n)) for n in range(1, end))


def seconds_between(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the seconds that an entry keeps, `begin_timestamp` being that before the put."""
    if begin_timestamp <= 0:
        return 0
    return max(0, min(wrap64(store_timestamp - begin_timestamp) // 1000, 2**31 - 1))


class IndexBytes:
    """An index file on disk, read with a number of slots, which is not in the file.

    Entries are those that the header counts, as far as the file has room.
    """

    def __init__(self, image: bytes, hash_slot_num: int) -> None:
        self.image, self.hash_slot_num = image, hash_slot_num
        self.header = header_of(image)
        self.is_empty = self.header.index_count <= 1
        """Whether the header counts no entry."""
        self.start = 40 + 4 * hash_slot_num
        self.room = max(0, len(image) - self.start) // 20
        """The number of entries that fit, entry 0 included."""
        self.entries = entries_of(image, hash_slot_num, self.header.index_count)
        self.count = len(self.entries) + 1
        """The number after the last entry."""

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """The slots."""
        return slots_of(self.image, self.hash_slot_num)

    def slot_of(self, entry: Entry) -> int:
        """Return the slot of an entry; -1 for that of a negative hash."""
        return entry.key_hash % self.hash_slot_num if entry.key_hash >= 0 else -1

    def links(self) -> Iterator[tuple[int, int]]:
        """Yield (slot it belongs to, number it names) of all that name a lawful entry."""
        yield from ((slot, head) for slot, head in enumerate(self.slots) if 0 < head < self.count)
        for entry in self.entries:
            if 0 < entry.prev_index < entry.number:
                yield self.slot_of(entry), entry.prev_index


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
    return not file.is_mapped and has(file, ours.ClosedFileIsClosed)


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
    is_there = is_inside(file, place, ENTRY.size)
    return Entry(number, *ENTRY.unpack_from(file.image, place)) if is_there else None


def all_entries(file: Any) -> tuple[Entry, ...]:
    """Return every entry below the count, which may be any number that damage left."""
    return entries_of(file.image, file.hash_slot_num, min(file.index_count, file.index_num))


def time_of(file: Any, entry: Entry) -> int:
    """Return the time that an entry stands for, as 64 bits hold it."""
    return wrap64(file.begin_timestamp + 1000 * entry.time_diff)


class Put:
    """A put that was taken, in a file all of whose places lie in it."""

    def __init__(self, before: Any, after: Any, key: str, phy_offset: int, store_timestamp: int):
        self.before, self.after = before, after
        self.phy_offset, self.store_timestamp = phy_offset, store_timestamp
        self.number: int = before.index_count
        """Of the entry."""
        self.key_hash = kept_hash(key)
        place = slot_place(before, self.key_hash)
        self.old_head, self.head = (int32_at(file.image, place) for file in (before, after))
        """The value of the key's slot before and after."""
        start = entry_place(before, self.number)
        self.entry = Entry(self.number, *ENTRY.unpack_from(after.image, start))
        newest = self.number - has(before, ours.ChainsAreChecked)
        self.previous = self.old_head if 0 < self.old_head <= newest else 0
        """The previous index that the entry must store."""
        self.seconds = seconds_between(before.begin_timestamp, store_timestamp)
        """The seconds that the entry must store."""


def taken(step: Transition) -> Put | None:
    """Return the put of a key that a step was, if it was taken in a file of a regular size.

    One that a full file takes has no place: RMQIDX-17 speaks of it, RMQHASH-4 of one without a key.
    """
    before, is_taken = step.before, step.outcome is True and step.arguments["key"] is not None
    has_place = is_taken and is_regular(before) and before.index_count < before.index_num
    return Put(before, step.after, **step.arguments) if has_place else None


law_of_puts = laws_of(taken, IndexFile, "RocketMQ IndexFile.putKey, 4.0.0 to 5.5.1", on="put_key")
