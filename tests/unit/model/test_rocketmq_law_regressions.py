# SPDX-License-Identifier: Apache-2.0
"""Defects of RocketMQ's laws that were really there: damaged files that they judged wrongly."""

from typing import Any

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.checking import broken_state_laws, broken_step_laws
from segproof_model.laws.registry import Transition
from segproof_model.profiles import SEGPROOF
from segproof_model.rocketmq.index_file import IndexFile

NAME = "20231114221320123"


def opened(image: bytes, index_num: int) -> IndexFile:
    """Return the file of one slot with these bytes."""
    directory = Directory(((NAME, image),))
    state: Any = IndexFile.open(NAME, 1, index_num, directory=directory, profile=SEGPROOF).after
    assert isinstance(state, IndexFile)
    return state


def asked(state: IndexFile, max_num: int) -> Transition:
    """Return the step of a query for the key `a`."""
    arguments: dict[str, Any] = {
        "phy_offsets": (),
        "key": "a",
        "max_num": max_num,
        "begin": 0,
        "end": 2**62,
    }
    step = state.select_phy_offset(**arguments)
    return Transition(state, "select_phy_offset", arguments, step.after, step.outcome)


def image_of(count: int, slot: int, entries: int) -> bytes:
    """Return a file of one slot with room for so many entries, all zeros."""
    header = bytes(36) + count.to_bytes(4, "big")
    return header + slot.to_bytes(4, "big") + bytes(20 * entries)


def test_a_slot_at_the_count_is_corrupt_where_the_file_ends() -> None:
    """The entry at the count lies behind the file; the law took a query for none, which sees
    nothing of it, for one that ends before it.
    """
    step = asked(opened(image_of(5, 5, 5), 5), 0)
    assert Raised(ErrorKind.CORRUPT_INDEX) == step.outcome
    assert [] == broken_step_laws(step)


def test_a_count_of_damage_is_not_counted_up_to() -> None:
    """A header that claims 2^31-1 entries kept a law busy for minutes."""
    state = opened(image_of(2**31 - 1, 1, 5), 5)
    assert 2**31 - 1 == state.index_count
    assert [] == broken_state_laws(state) + broken_step_laws(asked(state, 9))


def test_a_number_without_room_is_no_entry_though_its_place_wraps() -> None:
    """Twenty bytes times 214748365 wrap to byte 4 of the entries, which reads as an end of the
    chain: the model answered nothing, though the slot leads to no entry.
    """
    step = asked(opened(image_of(2**31 - 1, 214748365, 5), 5), 1)
    assert Raised(ErrorKind.CORRUPT_INDEX) == step.outcome
    assert [] == broken_step_laws(step)
    assert () == asked(opened(image_of(2**31 - 1, 214748365, 5), 5), 0).outcome
