# SPDX-License-Identifier: Apache-2.0
"""How the laws of RocketMQ's index read a state: their own hash, places and chains.

Used by: the laws of index files and of the index service.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from segproof_model.laws.judging import low_32_bits
from segproof_model.laws.registry import Transition
from segproof_model.laws.remembering import remembered_by
from segproof_model.rocketmq.index_file import IndexFile

HEADER = struct.Struct(">qqqqii")
FIELDS = (
    "begin_timestamp",
    "end_timestamp",
    "begin_phy_offset",
    "end_phy_offset",
    "hash_slot_count",
    "index_count",
)
ENTRY = struct.Struct(">iqii")
NUMBER = struct.Struct(">i")
UNIT = struct.Struct(">H")


def units_of(text: str) -> list[int]:
    """Return the UTF-16 code units of a text."""
    return [unit for (unit,) in UNIT.iter_unpack(text.encode("utf-16-be", "surrogatepass"))]


def java_hash(text: str) -> int:
    """Return the sum of each unit times 31 to the number of units behind it, cut to 32 bits."""
    units = units_of(text)
    powers = range(len(units) - 1, -1, -1)
    return low_32_bits(sum(unit * 31**power for unit, power in zip(units, powers, strict=True)))


@lru_cache(maxsize=1024)
def kept_hash(key: str) -> int:
    """Return what an entry keeps of a key."""
    hashed = java_hash(key)
    return 0 if hashed == -(2**31) else abs(hashed)


def other_key(key_hash: int) -> str:
    """Return a text of this hash, a number that is not negative: its digits to base 31.

    >>> kept_hash(other_key(2**31 - 1)) == 2**31 - 1
    True
    """
    digits = ""
    while key_hash:
        key_hash, digit = divmod(key_hash, 31)
        digits = chr(digit) + digits
    return digits


def is_of_file(transition: Transition, *operations: str) -> bool:
    """Return whether an index file executed one of the operations."""
    return transition.operation in operations and isinstance(transition.before, IndexFile)


def opened(transition: Transition) -> bool:
    """Return whether an index file was opened."""
    return transition.operation == "open" and isinstance(transition.after, IndexFile)


def memory(file: Any) -> tuple[int, ...]:
    """Return the six numbers of the header in memory."""
    return tuple(getattr(file, name) for name in FIELDS)


def stored(file: Any) -> tuple[int, ...]:
    """Return the six numbers of the header in the file."""
    return HEADER.unpack(file.image[:40])


def size_of(hash_slot_num: int, index_num: int) -> int:
    """Return the file's size as 32 bits hold it."""
    return low_32_bits(40 + 4 * hash_slot_num + 20 * index_num)


def is_regular_size(hash_slot_num: int, index_num: int) -> bool:
    """Return whether there are slots and entries, and the size needs no more than 31 bits."""
    size = 40 + 4 * hash_slot_num + 20 * index_num
    return hash_slot_num >= 1 and index_num >= 1 and size < 2**31


def is_regular(file: Any) -> bool:
    """Return whether every place that a put writes lies in the file."""
    return is_regular_size(file.hash_slot_num, file.index_num)


def is_refused(file: Any) -> bool:
    """Return whether the profile refuses any use, because the file is closed."""
    return not file.is_mapped and not file.profile.rmq_closed_answers_nothing


def slot_place(file: Any, key_hash: int) -> int:
    """Return where the slot of a hash lies."""
    return low_32_bits(40 + 4 * (key_hash % abs(file.hash_slot_num)))


def entry_place(file: Any, index: int) -> int:
    """Return where an entry lies."""
    return low_32_bits(40 + 4 * file.hash_slot_num + 20 * index)


def is_inside(file: Any, place: int, size: int) -> bool:
    """Return whether bytes lie in what is mapped."""
    return place >= 0 and place + size <= size_of(file.hash_slot_num, file.index_num)


def number_at(image: bytes, place: int) -> int:
    """Return the int32 at a place."""
    return int(NUMBER.unpack_from(image, place)[0])


class Visit(NamedTuple):
    """One entry of a chain as it is stored."""

    number: int
    key_hash: int
    phy_offset: int
    time_diff: int
    prev_index: int


def entry_at(file: Any, index: int) -> Visit | None:
    """Return the entry of this number, or None if it lies outside of the file."""
    place = entry_place(file, index)
    if not is_inside(file, place, ENTRY.size):
        return None
    return Visit(index, *ENTRY.unpack_from(file.image, place))


@remembered_by(lambda file: (file.image, file.hash_slot_num, file.index_num, file.index_count))
def all_entries(file: Any) -> list[Visit]:
    """Return every entry from 1 to the count, exclusive, that there is room for in the file.

    The count may be any number that damage left.
    """
    end = min(file.index_count, file.index_num)
    entries = (entry_at(file, index) for index in range(1, end))
    return [entry for entry in entries if entry is not None]


def slot_value(file: Any, key_hash: int) -> int | None:
    """Return the value of a hash's slot, or None if it lies outside of the file."""
    place = slot_place(file, key_hash)
    return number_at(file.image, place) if is_inside(file, place, 4) else None


def follows(file: Any, value: int) -> int:
    """Return the number that a put stores as the previous one, for an old slot value."""
    newest = file.index_count - 1 if file.profile.rmq_checks_chains else file.index_count
    return value if 0 < value <= newest else 0


def seconds_after(begin: int, store_timestamp: int) -> int:
    """Return the difference that an entry keeps, `begin` being that before the put."""
    distance = (store_timestamp - begin + 2**63) % 2**64 - 2**63
    if begin <= 0 or distance < 1000:
        return 0
    return min(distance // 1000, 2**31 - 1)


def written(transition: Transition) -> bool:
    """Return whether a put succeeded in a file of a regular size."""
    is_put = is_of_file(transition, "put_key") and transition.outcome is True
    return is_put and is_regular(transition.before)


def put_hash(transition: Transition) -> int:
    """Return the hash of the key that was put."""
    return kept_hash(transition.arguments["key"])


def put_entry(transition: Transition) -> Visit:
    """Return the entry where the put had to write it."""
    entry = entry_at(transition.after, transition.before.index_count)
    assert entry is not None
    return entry


def old_slot_value(transition: Transition) -> int:
    """Return the value of the key's slot before the put."""
    value = slot_value(transition.before, put_hash(transition))
    assert value is not None
    return value


class Chain(NamedTuple):
    """What a walk meets, were there room for all it finds."""

    visits: list[Visit]
    """The entries that are looked at, each once, in their order."""
    ending: str
    """Why there is no further one: `empty`, `slot`, `negative`, `outside`, `end`, `old`, `stop`,
    `cycle`, or `up` where a number is not below the one before, and that is corrupt."""


def chain_of(file: Any, key_hash: int, begin: int) -> Chain:
    """Return what a walk from a hash's slot meets, by the rules of the releases."""
    current, count = slot_value(file, key_hash), file.index_count
    if current is None:
        return Chain([], "outside")
    if current == 0 or count <= 1:
        return Chain([], "empty")
    if not 0 < current <= count:
        return Chain([], "slot")
    visits: list[Visit] = []
    numbers: set[int] = set()
    while True:
        visit = entry_at(file, current)
        if visit is None or visit.time_diff < 0:
            return Chain(visits, "outside" if visit is None else "negative")
        visits.append(visit)
        numbers.add(current)
        if visit.prev_index == 0:
            return Chain(visits, "end")
        if time_of(file, visit) < begin:
            return Chain(visits, "old")
        if not 0 < visit.prev_index <= count or visit.prev_index == current:
            return Chain(visits, "stop")
        current = visit.prev_index
        if current in numbers:
            return Chain(visits, "cycle")


def falling(chain: Chain, head: int | None, file: Any) -> Chain:
    """Return the chain up to the first number that is not below the one before, or has no room.

    `head` is the value of the slot; a number counts though its entry could not be visited.
    """
    if chain.ending in ("empty", "slot") or head is None:
        return chain
    limits = [file.index_count, *(visit.number for visit in chain.visits)]
    followed = [head, *(visit.prev_index for visit in chain.visits)]
    if chain.ending == "old":
        followed.pop()
    for place, (limit, number) in enumerate(zip(limits, followed, strict=False)):
        if number >= limit:
            return Chain(chain.visits[:place], "up" if place else "slot")
        if number >= file.index_num:
            return Chain(chain.visits[:place], "outside")
    return chain


def time_of(file: Any, visit: Visit) -> int:
    """Return the time that an entry stands for, as 64 bits hold it."""
    return int((file.begin_timestamp + 1000 * visit.time_diff + 2**63) % 2**64 - 2**63)


def matching(file: Any, visits: Sequence[Visit], key_hash: int, begin: int, end: int) -> list[int]:
    """Return the offsets of the visits that a query is for."""
    return [
        visit.phy_offset
        for visit in visits
        if visit.key_hash == key_hash and begin <= time_of(file, visit) <= end
    ]
