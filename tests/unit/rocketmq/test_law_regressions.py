# SPDX-License-Identifier: Apache-2.0
"""Defects of RocketMQ's laws that were really there: damaged files that they judged wrongly."""

from typing import Any

from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import opened
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_tests.model_steps import done

NAME = "20231114221320123"


def loaded(count: int, slot: int) -> Any:
    """Return a file of one slot with room for five entries, whose header claims this count."""
    image = bytes(36) + count.to_bytes(4, "big") + slot.to_bytes(4, "big") + bytes(100)
    return opened(SEGPROOF.kind(IndexFile), Files({NAME: image}), NAME, 1, 5).after


def asked(file: Any, max_num: int) -> Transition:
    """Return the step of a query for the key `a`."""
    window = {"begin": 0, "end": 2**62}
    return done(file, "select_phy_offset", phy_offsets=(), key="a", max_num=max_num, **window)


def test_a_slot_at_the_count_is_corrupt_where_the_file_ends() -> None:
    """The entry at the count lies behind the file; the law took a query for none, which sees
    nothing of it, for one that ends before it.
    """
    step = asked(loaded(5, 5), 0)
    assert Raised(ErrorKind.CORRUPT_INDEX) == step.outcome
    assert [] == broken_step_laws(step)


def test_a_count_of_damage_is_not_counted_up_to() -> None:
    """A header that claims 2^31-1 entries kept a law busy for minutes."""
    file = loaded(2**31 - 1, 1)
    assert 2**31 - 1 == file.index_count
    assert [] == broken_state_laws(file) + broken_step_laws(asked(file, 9))


def test_a_number_without_room_is_no_entry_though_its_place_wraps() -> None:
    """Twenty bytes times 214748365 wrap to byte 4 of the entries, which reads as an end of the
    chain: the model answered nothing, though the slot leads to no entry.
    """
    file = loaded(2**31 - 1, 214748365)
    step = asked(file, 1)
    assert Raised(ErrorKind.CORRUPT_INDEX) == step.outcome
    assert [] == broken_step_laws(step)
    assert () == asked(file, 0).outcome
