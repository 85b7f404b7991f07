# SPDX-License-Identifier: Apache-2.0
"""Contracts of what the offset index and the time index share: searches, rounding, room, distance.

Raw symbolic bytes go in; nothing about them is assumed but what the lines `pre:` say. The window of
the warm search is an argument of the kernel: 2 here, 1024 and 682 in use.

Mirrors: model/segproof_model/kafka/format/abstract_index.py, impl/segproof/kernels/{slot_search,
index_rules}.py.
"""

from typing import Any

from segproof.kernels.slot_search import (
    lower_slot,
    lower_slots_of_random,
    lower_slots_of_rising,
    upper_slot,
)
from segproof_model.kafka.format import abstract_index
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.language import integers
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

SLOTS = "segproof.kernels.slot_search"

INDEX: Any = SEGPROOF.kind(OffsetIndex)

_lower_slot = lower_slot.interpreted
_upper_slot = upper_slot.interpreted
_lower_slots_of_random: Any = lower_slots_of_random.interpreted
_lower_slots_of_rising: Any = lower_slots_of_rising.interpreted


def _int32_keys(data: bytes, entry_size: int, key_position: int) -> list[int]:
    positions = range(key_position, len(data), entry_size)
    return [integers.int32_at(data, position) for position in positions]


def _int64_keys(data: bytes) -> list[int]:
    return [integers.int64_at(data, position) for position in range(0, len(data), 12)]


def _rises(keys: list[int]) -> bool:
    return all(keys[number - 1] < keys[number] for number in range(1, len(keys)))


def _slots(keys: list[int], target: int, entries: int, warm_entries: int) -> tuple[int, int]:
    """Return both slots that the model finds; behind the entries more keys may lie."""
    abstract_index.WARM_BYTES = warm_entries * INDEX.entry_size
    index = object.__new__(INDEX)
    index.entries = entries
    found: tuple[int, int] = index.slots(keys, target)
    return found


def _slots_by_definition(keys: list[int], target: int) -> tuple[int, int]:
    """Return both slots among keys that rise."""
    return _slots(keys, target, len(keys), 3)


def _slots_by_probing(
    keys: list[int], target: int, entries: int, warm_entries: int
) -> tuple[int, int]:
    """Return both slots that the probes meet: as if one more key lay behind, keys never rise."""
    return _slots([*keys, 0], target, entries, warm_entries)


@contract(
    f"{SLOTS}:lower_slot",
    "ABSIDX-22 ABSIDX-25 OFFIDX-11",
    "any 4 raw entries of 8 bytes with strictly increasing int32 keys, any target, warm window 3",
    Mutant("return -2 - middle", "return -1 - middle", "_halve"),
    Mutant("high = middle - 1", "high = middle - 2", "_halve"),
    Mutant("0) > target", "0) >= target"),
)
def lower_slot_by_definition(data: bytes, target: int) -> bool:
    """Find the greatest slot not above the target among strictly increasing int32 keys.

    pre: len(data) == 32
    pre: _rises(_int32_keys(data, 8, 0))
    post: _
    """
    expected = _slots_by_definition(_int32_keys(data, 8, 0), target)
    return _lower_slot(data, 8, 0, 4, 4, target, 3) == expected[0]


@contract(
    f"{SLOTS}:upper_slot",
    "ABSIDX-24 ABSIDX-25 OFFIDX-15 OFFIDX-16",
    "any 4 raw entries of 8 bytes with strictly increasing int32 values, any target, warm window 3",
    Mutant("0) >= target", "0) > target"),
    Mutant("return found + 1", "return found"),
)
def upper_slot_by_definition(data: bytes, target: int) -> bool:
    """Find the smallest slot not below the target among strictly increasing int32 values.

    pre: len(data) == 32
    pre: _rises(_int32_keys(data, 8, 4))
    post: _
    """
    expected = _slots_by_definition(_int32_keys(data, 8, 4), target)
    return _upper_slot(data, 8, 4, 4, 4, target, 3) == expected[1]


@contract(
    f"{SLOTS}:lower_slot",
    "ABSIDX-22 ABSIDX-23",
    "any 3 raw entries of 8 bytes with strictly increasing int32 keys, any target, warm "
    "windows 1 and 2",
    Mutant("target, 0, first)", "target, 1, first)"),
)
def lower_slot_of_any_window(data: bytes, target: int, warm_entries: int) -> bool:
    """Find the same slot with a warm window of 1 or 2 entries, among rising int32 keys.

    pre: len(data) == 24
    pre: _rises(_int32_keys(data, 8, 0))
    pre: 1 <= warm_entries <= 2
    post: _
    """
    expected = _slots_by_definition(_int32_keys(data, 8, 0), target)
    return _lower_slot(data, 8, 0, 4, 3, target, warm_entries) == expected[0]


@contract(
    f"{SLOTS}:lower_slot",
    "ABSIDX-25 ABSIDX-26",
    "any 3 raw entries of 8 bytes, int32 keys in any order, any target, warm window 2",
    Mutant("first) < target", "first) <= target"),
    Mutant("return -2 - middle", "return -1 - middle", "_halve"),
)
def lower_slot_by_probing(data: bytes, target: int) -> bool:
    """Meet the slot of the literal probes among int32 keys that repeat or fall.

    pre: len(data) == 24
    post: _
    """
    expected = _slots_by_probing(_int32_keys(data, 8, 0), target, 3, 2)
    return _lower_slot(data, 8, 0, 4, 3, target, 2) == expected[0]


@contract(
    f"{SLOTS}:upper_slot",
    "ABSIDX-25 ABSIDX-26",
    "any 3 raw entries of 8 bytes, int32 values in any order, any target, warm window 1",
    Mutant("first) < target", "first) <= target"),
    Mutant("found == entries - 1", "found == entries"),
)
def upper_slot_by_probing(data: bytes, target: int) -> bool:
    """Meet the slot of the literal probes among int32 values that repeat or fall.

    pre: len(data) == 24
    post: _
    """
    expected = _slots_by_probing(_int32_keys(data, 8, 4), target, 3, 1)
    return _upper_slot(data, 8, 4, 4, 3, target, 1) == expected[1]


@contract(
    f"{SLOTS}:lower_slot",
    "ABSIDX-25 ABSIDX-26",
    "any 3 raw slots of 8 bytes, the first 0 to 2 of them entries, any target, both "
    "searches, warm window 2",
    Mutant("0) > target", "0) >= target"),
)
def slots_of_few_entries(data: bytes, entries: int, target: int) -> bool:
    """Meet both slots of the literal probes where stale bytes lie behind the entries.

    pre: len(data) == 24
    pre: 0 <= entries <= 2
    post: _
    """
    expected = _slots(_int32_keys(data, 8, 0)[:entries], target, entries, 2)
    if _lower_slot(data, 8, 0, 4, entries, target, 2) != expected[0]:
        return False
    return _upper_slot(data, 8, 0, 4, entries, target, 2) == expected[1]


@contract(
    f"{SLOTS}:lower_slot",
    "ABSIDX-26 TIMEIDX-10",
    "any 3 raw entries of 12 bytes, int64 keys in any order, any target, warm window 1",
    Mutant("first) < target", "first) <= target"),
)
def lower_slot_of_timestamps(data: bytes, target: int) -> bool:
    """Meet the slot of the literal probes among int64 timestamps in entries of 12 bytes.

    pre: len(data) == 36
    post: _
    """
    expected = _slots_by_probing(_int64_keys(data), target, 3, 1)
    return _lower_slot(data, 12, 0, 8, 3, target, 1) == expected[0]


@contract(
    f"{SLOTS}:lower_slots_of_rising",
    "ABSIDX-22 OFFIDX-11 TIMEIDX-10",
    "any 3 strictly increasing keys, 6 targets made of any three that do not fall",
    Mutant("keys[at_c + 1] <= targets", "keys[at_c + 1] < targets"),
    Mutant("slot + 1 < entries", "slot + 2 < entries", "_merge"),
)
def lower_slots_of_rising_targets(keys: list[int], one: int, two: int, three: int) -> bool:
    """Answer six targets that never fall, by merging, with the slots of single searches.

    pre: len(keys) == 3
    pre: _rises(keys)
    pre: one <= two <= three
    post: _
    """
    targets = [one, one, one, two, two, three]
    slots = [9, 9, 9, 9, 9, 9]
    _lower_slots_of_rising(keys, 3, targets, slots)
    expected = [_slots_by_definition(keys, target)[0] for target in (one, two, three)]
    return slots == [expected[number] for number in (0, 0, 0, 1, 1, 2)]


@contract(
    f"{SLOTS}:lower_slots_of_random",
    "ABSIDX-22 OFFIDX-11 TIMEIDX-10",
    "any 3 strictly increasing keys, any 2 targets in one group",
    Mutant("length - half", "half"),
)
def lower_slots_side_by_side(keys: list[int], target: int, other: int) -> bool:
    """Answer two targets at once, by searches side by side, with the slots of single searches.

    pre: len(keys) == 3
    pre: _rises(keys)
    post: _
    """
    slots = [9, 9]
    _lower_slots_of_random(keys, 3, [target, other], slots, 2)
    expected = _slots_by_definition(keys, target)[0]
    if slots[0] != expected:
        return False
    return slots[1] == _slots_by_definition(keys, other)[0]
