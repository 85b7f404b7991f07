# SPDX-License-Identifier: Apache-2.0
"""Drawn damage to partitions, and its judge: each can fail, and says what it did."""

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from segproof.verification import verify
from segproof_harness.salvage_draws.disk_damages import Damage, Damaged
from segproof_harness.salvage_draws.draws import (
    PARTITION,
    drawn_partition,
    judge_draw,
    salvage_of_kafka,
    told_by_verify,
    write_damaged,
)
from segproof_harness.salvage_draws.kafka_damages import KAFKA_DAMAGES, damaged_logs
from segproof_harness.salvage_draws.kafka_partitions import draw_partition
from segproof_harness.salvage_draws.kafka_reader import framed, is_sound
from segproof_harness.salvage_draws.verdict import Told

FAULTS_OF_TODAY: dict[int, dict[str, int]] = {
    9_600_742: {"made up": 1},
    9_601_578: {"told too few": 1},
    9_130_460: {"made up": 1},
    9_131_989: {"made up": 5},
}
"""What `segproof salvage` does wrong in some draws. A mend takes out what it mends."""
MENDED = {
    4, 34, 129, 159, 171, 212, 50_479, 50_533,
    7_700_020, 7_700_049, 7_700_185, 7_700_257, 7_700_678,
    8_800_011, 8_800_355, 9_100_037, 9_100_203, 9_100_276, 9_110_040, 9_110_311, 9_110_692,
    9_130_007, 9_130_270, 9_130_546, 9_130_567, 9_130_862, 9_130_907, 9_130_943,
    9_131_007, 9_131_116, 9_131_215, 9_131_287, 9_141_023, 9_130_008,
    9_131_354, 9_131_656, 9_130_067, 9_130_151, 9_152_101,
    9_131_271, 9_131_490, 9_152_127, 9_131_875, 9_600_685, 9_601_532, 9_650_409, 9_650_933,
    9_651_275, 9_651_557, 9_651_584,
    9_600_493, 9_601_187, 9_601_247, 9_601_282, 9_601_574, 9_601_888, 9_650_101,
    9_650_370, 9_650_616, 9_650_906, 9_650_918, 9_651_804, 9_651_805,
    9_131_341, 9_600_978, 9_601_218, 9_650_656, 9_651_663,
    9_900_112, 9_900_129, 9_900_179, 9_900_302, 9_900_303, 9_900_422, 9_900_460, 9_900_506,
    9_900_771, 9_901_001, 9_901_112, 9_901_283, 9_901_302, 9_901_395, 9_901_553, 9_901_619,
    9_901_743, 9_901_849, 9_902_216, 9_902_387, 9_902_424, 9_902_764, 9_902_883, 9_903_013,
    10_200_522, 10_200_567,
}  # fmt: skip
"""Draws in which it did something wrong, or set batches aside whose place was known."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted({*range(9), *FAULTS_OF_TODAY, *MENDED}))
def test_what_salvage_does_wrong_is_known(seed: int) -> None:
    """The faults of each draw are those that are written down, no more and no fewer."""
    assert judge_draw("kafka", seed).faults == FAULTS_OF_TODAY.get(seed, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        9_502_069,
        9_700_367,
        9_700_923,
        9_700_976,
        9_710_524,
        9_710_627,
        9_711_049,
        9_711_572,
        9_713_157,
        9_713_851,
        9_950_466,
        9_950_679,
        9_950_986,
        9_951_503,
        9_951_690,
        10_500_260,
    ],
)
def test_stores_are_saved_without_a_fault(seed: int) -> None:
    """Draws in which a message was made up, moved or left out, or a loss was told as none."""
    assert judge_draw("rocketmq", seed).faults == {}


COUNTED_TWICE = (
    9_930_003, 9_930_039, 9_930_048, 9_930_073, 9_930_105, 9_930_118, 9_930_160,
)  # fmt: skip
"""Draws in which `segproof verify`, which reads log after log, counted other losses than a salvage.
Among them are names of logs that are too high, and blocks of other logs."""


@pytest.mark.parametrize("seed", COUNTED_TWICE)
def test_verify_counts_what_a_salvage_counts(seed: int, tmp_path: Path) -> None:
    """One damage has one number, whoever is asked."""
    _, damaged, others = drawn_partition(seed)
    source = tmp_path / PARTITION
    write_damaged(source, damaged, others)
    assert salvage_of_kafka(source, tmp_path / "out") == told_by_verify(source)


@pytest.mark.parametrize("seed", range(40, 50))
def test_a_partition_is_sound_before_its_damage(seed: int, tmp_path: Path) -> None:
    """`verify --deep` finds nothing, and the checksum of each batch is right."""
    partition, _ = draw_partition(Random(seed))
    folder = tmp_path / PARTITION
    folder.mkdir()
    logs = {f"{base:020d}.log": log for base, log in partition.logs.items()}
    for name, data in {**logs, **partition.others}.items():
        (folder / name).write_bytes(data)
    assert [] == [str(one) for one in verify(folder, deep=True) if one.is_defect]
    assert all(is_sound(one.batch) for one in partition.truth)
    assert sum(len(log) for log in logs.values()) == sum(one.batch.size for one in partition.truth)


# --- damage


def _same(before: Damaged, after: Damaged, done: Damage) -> bool:
    """Return whether nothing but the stretch that is noted differs, and sizes are the same."""
    number = after.names.index(done.name)
    start, end = done.position, done.position + done.size
    return all(
        len(one) == len(two)
        and (which != number or (one[:start], one[end:]) == (two[:start], two[end:]))
        and (which == number or one == two)
        for which, (one, two) in enumerate(zip(before.files, after.files, strict=True))
    )


def _stretch(damaged: Damaged, done: Damage) -> bytes:
    number = damaged.names.index(done.name)
    return bytes(damaged.files[number][done.position : done.position + done.size])


def _bits(before: Damaged, after: Damaged, done: Damage) -> int:
    one, two = _stretch(before, done), _stretch(after, done)
    return sum((x ^ y).bit_count() for x, y in zip(one, two, strict=True))


def _field(offset: int, width: int) -> Callable[[Damaged, Damaged, Damage], bool]:
    """Return a check: one bit of a field of a batch was changed."""

    def check(before: Damaged, after: Damaged, done: Damage) -> bool:
        starts = before.starts[before.names.index(done.name)]
        start = max(at for at in starts if at <= done.position)
        is_in_field = offset <= done.position - start < offset + width
        return is_in_field and _bits(before, after, done) == 1 and _same(before, after, done)

    return check


def _size(sign: int) -> Callable[[Damaged, Damaged, Damage], bool]:
    def check(before: Damaged, after: Damaged, done: Damage) -> bool:
        sizes = [sum(map(len, one.files)) for one in (before, after)]
        return sizes[1] - sizes[0] == sign * done.size

    return check


def _comes_from(before: Damaged, after: Damaged, done: Damage) -> bool:
    """Return whether the bytes stood where the note says."""
    name, at = done.source.split(" at ")
    log = before.foreign
    if name != "another log":
        log = bytes(before.files[before.names.index(name)])
    return _stretch(after, done) == log[int(at) : int(at) + done.size]


def _is_sorted_the_same(before: Damaged, after: Damaged, _: Damage) -> bool:
    is_other = before.files != after.files
    return is_other and sorted(map(bytes, before.files)) == sorted(map(bytes, after.files))


CHECKS: dict[str, Callable[[Damaged, Damaged, Damage], bool]] = {
    "one bit": lambda *given: _bits(*given) == 1 and _same(*given),
    "zeros": lambda *given: not any(_stretch(*given[1:])) and _same(*given),
    "hole": lambda *given: not any(_stretch(*given[1:])) and _same(*given),
    "garbage": lambda *given: _bits(*given) > given[2].size and _same(*given),
    "block copied": lambda *given: _comes_from(*given) and _same(*given),
    "copies of a block": _comes_from,
    "blocks swapped": _comes_from,
    "misdirected write": _comes_from,
    "foreign block": lambda *given: _comes_from(*given) and _same(*given),
    "foreign, near offsets": lambda *given: _comes_from(*given) and _same(*given),
    "foreign batches": lambda *given: _comes_from(*given) and _same(*given),
    "block put in": _size(1),
    "block taken out": _size(-1),
    "bytes put in": _size(1),
    "bytes taken out": _size(-1),
    "torn end": _size(-1),
    "cut between parts": lambda *given: _size(-1)(*given)
    and given[2].position in given[0].starts[given[0].names.index(given[2].name)],
    "part twice": lambda *given: _size(1)(*given)
    and _stretch(*given[1:]) == _stretch(given[0], given[2]._replace(
        position=given[2].position - given[2].size)),
    "parts swapped": lambda *given: sorted(_stretch(given[0], given[2]))
    == sorted(_stretch(*given[1:])) and _same(*given),
    "names swapped": _is_sorted_the_same,
    "file lost": lambda *given: len(given[1].names) == len(given[0].names) - 1,
    "base offset, one bit": _field(0, 8),
    "base offset, low bit": _field(6, 2),
    "size field": _field(8, 4),
    "leader epoch": _field(12, 4),
    "magic": _field(16, 1),
    "base offset, wild": lambda *given: given[2].size == 8 and _same(*given),
    "wrong size of a log": lambda *given: _size(1)(*given) and not any(_stretch(*given[1:])),
    "name too high": lambda *given: given[1].names[:-1] == given[0].names[:-1]
    and given[1].names[-1] > given[0].names[-1],
}  # fmt: skip
"""For each damage that is noted, whether the files show it."""


def test_each_damage_makes_what_it_says() -> None:
    """Over some partitions; all kinds are met."""
    met = set[str]()
    for seed in range(60, 76):
        random = Random(seed)
        partition, foreign = draw_partition(random)
        for do in KAFKA_DAMAGES.values():
            before, after = damaged_logs(partition, foreign), damaged_logs(partition, foreign)
            do(after, random)
            if len(after.done) == 1:
                (done,) = after.done
                met.add(done.kind)
                is_lost = done.kind in ("copies of a block", "name too high")
                assert is_lost or CHECKS[done.kind](before, after, done), (seed, str(done))
    assert met | {"copies of a block"} == set(CHECKS)


# --- the judge

SEED = 1
"""A draw that is saved without a fault (see above), which wrong salvages are given."""


def _log(out: Path) -> Path:
    return max((out / PARTITION).glob("*.log"), key=lambda path: path.stat().st_size)


def _drop(out: Path) -> None:
    """Leave out the last batch."""
    data = _log(out).read_bytes()
    _log(out).write_bytes(data[: list(framed(data))[-1].position])


def _renumber(out: Path) -> None:
    """Give the last batch an offset that it never had."""
    data = bytearray(_log(out).read_bytes())
    last = list(framed(bytes(data)))[-1]
    struct.pack_into(">q", data, last.position, last.offset + 1)
    _log(out).write_bytes(data)


def _double(out: Path) -> None:
    """Write a batch twice."""
    data = _log(out).read_bytes()
    first = next(framed(data))
    _log(out).write_bytes(data[: first.size] + data)


def _move_in(out: Path) -> None:
    """Append a batch of the other topic, with the offset that comes next."""
    data, foreign = _log(out).read_bytes(), drawn_partition(SEED)[1].foreign
    batch = bytearray(foreign[: next(framed(foreign)).size])
    struct.pack_into(">q", batch, 0, list(framed(data))[-1].last + 1)
    _log(out).write_bytes(data + batch)


def _change(out: Path) -> None:
    """Append a batch with a wrong checksum."""
    data = _log(out).read_bytes()
    last = list(framed(data))[-1]
    batch = bytearray(data[last.position : last.end])
    struct.pack_into(">q", batch, 0, last.last + 1)
    batch[-1] ^= 1
    _log(out).write_bytes(data + batch)


def _tear(out: Path) -> None:
    """Leave out the last byte."""
    _log(out).write_bytes(_log(out).read_bytes()[:-1])


PLANTED: dict[Callable[[Path], None], set[str]] = {
    _drop: {"nowhere"},
    _renumber: {"wrong offset"},
    _double: {"twice", "falling"},
    _move_in: {"made up"},
    _change: {"unsound"},
    _tear: {"unframed", "nowhere"},
}
"""Wrong salvages, and what the judge must say of each."""


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_judge_sees_a_wrong_salvage(plant: Callable[[Path], None]) -> None:
    """A judge that can't fail would prove nothing."""

    def salvager(source: Path, target: Path) -> Told:
        told = salvage_of_kafka(source, target)
        plant(target)
        return told

    found = judge_draw("kafka", SEED, salvager).faults.keys()
    follow = {"told too few", "changed when saved again"}
    assert PLANTED[plant] <= found <= PLANTED[plant] | follow


def test_a_salvage_that_raises_is_a_fault() -> None:
    """The verdict has the end of the exception, and any function can be judged."""

    def salvager(source: Path, target: Path) -> Told:
        raise OSError(f"{source.name}: no salvage")

    verdict = judge_draw("kafka", SEED, salvager)
    assert {"raised": 1} == verdict.faults
    assert "topic-0: no salvage" in verdict.error
