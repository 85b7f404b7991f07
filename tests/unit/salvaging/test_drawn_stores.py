# SPDX-License-Identifier: Apache-2.0
"""Drawn stores with known messages, damaged as disks do it, and saved; the reader is our own."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from segproof.salvaging.store_salvage import salvage_store
from segproof_tests.drawn_stores import StoreVerdict, damage, drawn_store, judge_draw, saved_judge

FOUND = (
    1017,
    1026,
    1044,
    1053,
    700037,
    700061,
    700074,
    700082,
    700091,
    700105,
    810209,
    810238,
    810283,
    900005,
    900017,
    910068,
    930027,
    930071,
    950413,
    970086,
    970104,
    20260179,
    20260443,
    20260587,
    20260664,
    20270043,
    20280384,
    3012735104,
)
"""Draws that found a defect once."""


@pytest.mark.parametrize("seed", [*FOUND, 1, 2])
def test_a_drawn_store_is_saved(seed: int, tmp_path: Path) -> None:
    """No intact message is lost, made up, there twice, or at a wrong number; all counts are true; a
    second salvage changes nothing, and `verify` of the result says what is told."""
    found: StoreVerdict = judge_draw(seed, tmp_path)
    assert [] == found.violations
    assert found.intact


def test_the_judge_sees_what_is_wrong(tmp_path: Path) -> None:
    """A message, a unit, an entry, or a count of a saved store is changed: the judge says so."""
    random = Random(5)
    drawn = drawn_store(random, tmp_path / "store")
    damage(random, drawn)
    told = salvage_store(drawn.path, tmp_path / "out", mapped_file_size=drawn.file_size)
    judge = saved_judge(drawn, told, tmp_path / "out")
    assert [] == judge.all_violations()
    for part, at, words in (
        ("commitlog", 20, "is another one"), ("consumequeue", 4, "the number of"),
        ("index", 40 + 4 * 16 + 20, "no entry of"),
    ):  # fmt: skip
        path = min(one for one in (tmp_path / "out" / part).rglob("*") if one.is_file())
        before = path.read_bytes()
        path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        found = saved_judge(drawn, told, tmp_path / "out").all_violations()
        assert any(words in one for one in found), (part, found)
        path.write_bytes(before)
    for wrong in (
        replace(told, messages=told.messages + 1),
        replace(told, lost_messages=10_000),
        replace(told, lost_messages=10_000, is_lost_exact=True),
    ):
        assert saved_judge(drawn, wrong, tmp_path / "out").all_violations()
