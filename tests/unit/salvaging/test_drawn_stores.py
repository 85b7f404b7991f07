# SPDX-License-Identifier: Apache-2.0
"""Stores with damage that an earlier rule of `salvage` got wrong, each drawn by its seed.

The draws of now are in `segproof_harness.salvage_draws`; the seeds below need the damage that was
drawn when they were found.
"""

import os
import struct
from pathlib import Path
from random import Random

import pytest

from segproof.repair import salvage_store
from segproof.salvaging.store_salvage import SalvagedStore
from segproof.verification import verify
from segproof_harness.salvage_draws.draws import judge_damaged_store, told_of_store
from segproof_harness.salvage_draws.rocketmq_stores import DrawnStore, drawn_store
from segproof_harness.salvage_draws.verdict import Told
from segproof_tests.reported_findings import verified

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
    """No whole message is lost, made up, there twice, or at a wrong number; what is told lost is
    lost; a second salvage changes nothing, and `verify` of the new store finds what was told."""
    random = Random(seed)
    drawn = drawn_store(random, tmp_path / "sound")
    damage(random, drawn)
    paths = [path for path in drawn.path.rglob("*") if path.is_file()]
    files = {str(path.relative_to(drawn.path)): path.read_bytes() for path in paths}
    saved: list[SalvagedStore] = []

    def salvager(source: Path, target: Path) -> Told:
        saved.append(salvage_store(source, target, mapped_file_size=drawn.file_size))
        return told_of_store(saved[-1])

    verdict = judge_damaged_store(drawn, files, tmp_path, salvager)
    assert {} == verdict.faults
    _, summaries = verified(tmp_path / "in")
    told = max(summaries[0].lost_at_least, summaries[0].lost_offsets or 0)
    assert told <= verdict.counts["lost messages"]
    assert saved[0].messages == sum(verdict.counts[one] for one in KEPT)
    one, two = (
        [path.read_bytes() for path in sorted((tmp_path / name / "index").iterdir())]
        for name in ("out", "again")
    )
    assert one == two
    is_odd = saved[0].unqueued_messages or saved[0].misplaced_messages
    laws = {one.law for one in verify(tmp_path / "out", deep=True) if one.is_defect}
    assert laws <= ({"RMQDISK-36", "RMQDISK-37"} if is_odd else set()) | {"RMQDISK-14"}


KEPT = ("right", "header differs", "wrong offset, no fact tells", "made up, no fact tells")


def damage(random: Random, drawn: DrawnStore) -> list[str]:
    """Damage the log of a store as disks, broken copies and clocks do; return what was done."""
    folder = drawn.path / "commitlog"
    done = []
    for _ in range(random.choice((1, 1, 2, 4))):
        names = sorted(os.listdir(folder))
        name = random.choice(names)
        data = bytearray((folder / name).read_bytes())
        used = max(1, len(data.rstrip(b"\0")))
        kind = random.choice(KINDS)
        done.append(f"{kind} {name}")
        unit = random.choice((512, 4096))
        one, other = (random.randrange(-(-used // unit)) * unit for _ in range(2))
        if kind == "zeros":
            data[one : one + unit] = bytes(len(data[one : one + unit]))
        elif kind == "garbage":
            start, size = random.randrange(used), random.choice((1, 4, 40, 700))
            room = len(data[start : start + size])
            data[start : start + room] = random.randbytes(room)
        elif kind in ("swap", "copy"):
            size = min(unit, len(data) - max(one, other))
            block = data[one : one + size]
            if kind == "swap":
                data[one : one + size] = data[other : other + size]
            data[other : other + size] = block
        elif kind == "swap files":
            second = random.choice(names)
            os.rename(folder / name, folder / "x")
            if second != name:
                os.rename(folder / second, folder / name)
            os.rename(folder / "x", folder / second)
            continue
        elif kind == "exchange":
            second = random.choice(names)
            if second != name:
                there = bytearray((folder / second).read_bytes())
                size = min(unit, len(data) - one, len(there) - one)
                block = data[one : one + size]
                data[one : one + size] = there[one : one + size]
                there[one : one + size] = block
                (folder / second).write_bytes(there)
        elif kind == "bits":
            for _ in range(random.choice((1, 1, 3))):
                data[random.randrange(used)] ^= 1 << random.randrange(8)
        elif kind == "put in":
            start, count = random.randrange(used), random.choice((1, 8, 100, 512))
            data = (data[:start] + random.randbytes(count) + data[start:])[: len(data)]
        elif kind == "take out":
            start, count = random.randrange(used), random.choice((1, 8, 100, 512))
            data = (data[:start] + data[start + count :]).ljust(len(data), b"\0")
        elif kind == "cut":
            data = data[: random.randrange(used)]
        elif kind == "lost file" and len(names) > 1:
            os.remove(folder / name)
            continue
        elif kind == "clock":
            for place in [at for at in drawn.messages if at // len(data) * len(data) == int(name)]:
                if random.random() < 0.2:
                    at = place - int(name)
                    at += 68 if drawn.messages[place].flags & 16 else 56
                    data[at : at + 8] = struct.pack(">q", random.choice((1, 2**41, 2**50)))
        (folder / name).write_bytes(data)
    return done


KINDS = (
    "zeros", "garbage", "swap", "copy", "swap files", "exchange", "bits", "bits", "put in",
    "take out", "cut", "lost file", "clock",
)  # fmt: skip
