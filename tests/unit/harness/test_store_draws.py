# SPDX-License-Identifier: Apache-2.0
"""Drawn damage to stores, and its judge: each can fail, and says what it did."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from segproof.verification import verify
from segproof_harness.salvage_draws.draws import judge_draw, salvage_of_rocketmq
from segproof_harness.salvage_draws.rocketmq_damages import (
    LOG_DAMAGES,
    QUEUE_DAMAGES,
    damaged_store,
)
from segproof_harness.salvage_draws.rocketmq_reader import logged, parsed
from segproof_harness.salvage_draws.rocketmq_stores import drawn_store
from segproof_harness.salvage_draws.verdict import Told
from segproof_tests.changed_bytes import flip_bits

MENDED = (67, 70, 1032, 1059, 1082, 1083, 1101, 1175, 1291, 9400331, 9501310, 9502013)
"""Draws that found a defect once."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted({*range(13), *MENDED}))
def test_a_draw_is_saved_without_a_fault(seed: int) -> None:
    """Also those that found a defect once."""
    assert judge_draw("rocketmq", seed).faults == {}


def test_each_damage_makes_what_it_says(tmp_path: Path) -> None:
    """What is noted is the file that changed; each kind is met; a sound store has no finding."""
    met = set[str]()
    for seed in range(3):
        random = Random(seed)
        sound = drawn_store(random, tmp_path / str(seed), (40,))
        assert [] == [str(one) for one in verify(sound.path, deep=True) if one.is_defect]
        foreign = drawn_store(random, tmp_path / f"other {seed}", (40,), 500_000)
        before = damaged_store(sound).files()
        for kind, do in LOG_DAMAGES.items():
            after = damaged_store(sound)
            after.log.foreign = (
                foreign.path / "commitlog" / f"{min(foreign.messages):020d}"
            ).read_bytes()
            do(after.log, random)
            met |= {kind} if after.damages else set()
            _check(before, after.files(), {f"commitlog/{one.name}" for one in after.damages})
        for kind, change in QUEUE_DAMAGES.items():
            after = damaged_store(sound)
            change(after, random)
            met |= {kind} if after.damages else set()
            _check(before, after.files(), {one.name for one in after.damages})
    assert met == {*LOG_DAMAGES, *QUEUE_DAMAGES}


def _check(before: dict[str, bytes], after: dict[str, bytes], noted: set[str]) -> None:
    """A file that differs is noted, or changed places with one that is."""
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    others = {path for path in changed - noted if after.get(path) not in before.values()}
    swaps = {path for path in others if path.startswith("commitlog/")}
    assert len(others) <= len(swaps) <= len(noted)


# --- the judge


SEED = 1
"""A draw that is saved without a fault (see above), which wrong salvages are given."""


def _log(out: Path) -> Path:
    return min((out / "commitlog").iterdir())


def _zero_last(out: Path) -> None:
    """Leave out the last message."""
    at = max(logged(out)[0])
    path = max((out / "commitlog").iterdir())
    data = path.read_bytes()
    path.write_bytes(data[: at - int(path.name)].ljust(len(data), b"\0"))


def _other_offset(out: Path) -> None:
    """Let the first message say another offset."""
    flip_bits(_log(out), 35)


def _twice(out: Path) -> None:
    """Write the first message once more, after the last one."""
    messages, path = logged(out)[0], max((out / "commitlog").iterdir())
    last = max(messages)
    end = last + len(messages[last].raw) - int(path.name)
    data = path.read_bytes()
    again = messages[min(messages)].raw
    path.write_bytes((data[:end] + again).ljust(len(data), b"\0"))


def _other_unit(out: Path) -> None:
    """Let a unit lead elsewhere."""
    path = min(one for one in (out / "consumequeue").rglob("*") if one.is_file())
    flip_bits(path, 4)


def _no_index(out: Path) -> None:
    """Remove the index."""
    for path in (out / "index").iterdir():
        path.unlink()


def _tear(out: Path) -> None:
    """Write bytes after the last message that are no blank end."""
    path = max((out / "commitlog").iterdir())
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"x")


PLANTED: dict[Callable[[Path], None], set[str]] = {
    _zero_last: {"nowhere"},
    _other_offset: {"wrong offset"},
    _twice: {"twice"},
    _other_unit: {"wrong unit"},
    _no_index: {"not indexed"},
    _tear: {"unframed"},
}
"""Wrong salvages, and what the judge must say of each."""


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_judge_sees_a_wrong_salvage(plant: Callable[[Path], None]) -> None:
    """A judge that can't fail would prove nothing."""

    def salvager(source: Path, target: Path) -> Told:
        told = salvage_of_rocketmq(source, target)
        plant(target)
        return told

    assert PLANTED[plant] <= judge_draw("rocketmq", SEED, salvager).faults.keys()


def test_the_judge_sees_that_a_second_salvage_changes_something() -> None:
    """The output of the first one is saved once more."""

    def salvager(source: Path, target: Path) -> Told:
        told = salvage_of_rocketmq(source, target)
        if source.name == "out":
            _zero_last(target)
        return told

    assert {"changed when saved again": 1} == judge_draw("rocketmq", SEED, salvager).faults


def test_the_reader_refuses_what_is_broken(tmp_path: Path) -> None:
    """Each byte of a body counts, and each length."""
    store = drawn_store(Random(3), tmp_path / "store", (1,))
    one = store.messages[min(store.messages)]
    raw = one.raw
    assert parsed(raw, 0) is not None
    assert parsed(raw[:-1], 0) is None
    for at in (3, 7, 11, raw.index(one.body)):
        assert parsed(raw[:at] + bytes([raw[at] ^ 64]) + raw[at + 1 :], 0) is None
