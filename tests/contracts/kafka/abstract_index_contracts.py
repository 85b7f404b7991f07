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


def _int32_keys(data: bytes, entry_size: int, key_position: int) -> list[int]:
    positions = range(key_position, len(data), entry_size)
    return [integers.int32_at(data, position) for position in positions]


def _int64_keys(data: bytes) -> list[int]:
    return [integers.int64_at(data, position) for position in range(0, len(data), 12)]


def _slots(keys: list[int], target: int, entries: int, warm_entries: int) -> tuple[int, int]:
    """Return both slots that the model finds; behind the entries more keys may lie."""
    abstract_index.WARM_BYTES = warm_entries * INDEX.entry_size
    index = object.__new__(INDEX)
    index.entries = entries
    found: tuple[int, int] = index.slots(keys, target)
    return found


def _slots_by_probing(
    keys: list[int], target: int, entries: int, warm_entries: int
) -> tuple[int, int]:
    """Return both slots that the probes meet: as if one more key lay behind, keys never rise."""
    return _slots([*keys, 0], target, entries, warm_entries)


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
