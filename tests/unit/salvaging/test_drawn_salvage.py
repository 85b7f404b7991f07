# SPDX-License-Identifier: Apache-2.0
"""`salvage` on partitions with drawn damages, judged by the batches that were there before.

The judge reads no byte with segproof. Each seed below is a draw that an earlier rule got wrong.
"""

import shutil
from pathlib import Path
from random import Random

import pytest

from segproof.kafka import Record, write_batch
from segproof.salvaging.salvage import SalvagedPartition, salvage
from segproof.verification import verify
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_tests.drawn_partitions import (
    Drawn,
    Outcome,
    Truth,
    draw,
    drawn_of,
    framed,
    judge,
    lost_between,
    write_drawn,
)

PARTITIONS = [partition_of(one) for one in scenarios()]
V1 = next(one for one in PARTITIONS if one.parent.name == "v1-gzip")
PLAIN = next(one for one in PARTITIONS if one.parent.name == "plain")


def saved(drawn: Drawn, folder: Path) -> tuple[SalvagedPartition, Outcome]:
    """Save a damaged partition that was written as `in/topic-0`; judge what came of it."""
    (told,) = salvage(folder / "in" / "topic-0", folder / "out")
    outcome = judge(drawn, folder / "out" / "topic-0", folder / "out" / ASIDE)
    assert (told.batches, told.set_aside_batches > 0) == (
        len(outcome.kept),
        (folder / "out" / ASIDE).exists(),
    )
    return told, outcome


ASIDE = "salvage-set-aside.topic-0.log"
LOG = f"{0:020d}.log"


def check(drawn: Drawn, told: SalvagedPartition, outcome: Outcome) -> None:
    """Nothing is made up, nothing is in no file, and the lost offsets are those that are lost."""
    assert {} == outcome.faults, drawn.kinds
    lost = lost_between(outcome.kept, drawn)
    if drawn.is_dense:
        assert told.lost_offsets <= lost or told.is_end_lost
        is_compaction = not told.gap_count and {"cut between batches"} & {*drawn.kinds}
        most = told.lost_offsets + told.unproven_offsets
        assert told.are_more_lost or lost <= most or is_compaction, drawn.kinds
        assert (
            told.unproven_offsets
            or told.lost_offsets == lost
            or told.are_more_lost
            or (is_compaction)
        ), drawn.kinds


@pytest.mark.slow
@pytest.mark.checks("BATCH-3", "SEG-20")
@pytest.mark.parametrize("seed", range(12))
def test_of_drawn_damages_nothing_is_made_up(seed: int, tmp_path: Path) -> None:
    """Blocks of another topic, swapped names and 20 other kinds, up to three at once."""
    drawn = draw(Random(seed), PARTITIONS, tmp_path / "in" / "topic-0")
    check(drawn, *saved(drawn, tmp_path))


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("place", range(0, 60, 7))
def test_a_copy_never_gets_an_offset_of_a_wrapper(place: int, tmp_path: Path) -> None:
    """The compressed message after the copy says its last offset only: its first looks missing."""
    drawn = drawn_of(sorted(V1.glob("*.log")))
    log = drawn.logs[0]
    batches = [one for _, one in framed(bytes(log))]
    log[:] = b"".join([*batches[: place + 1], *batches[place:]])
    write_drawn(drawn, tmp_path / "in" / "topic-0")
    told, outcome = saved(drawn, tmp_path)
    assert {} == outcome.faults
    assert (len(drawn.truth), 1) == (told.batches, told.set_aside_batches)


@pytest.mark.checks("DISK-13", "LOG-4", "DISK-62")
@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 3), (1, 2)])
@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("partition", [PLAIN, V1], ids=["plain", "v1-gzip"])
def test_logs_with_swapped_names_are_saved_by_their_contents(
    one: int, other: int, is_broken: bool, partition: Path, tmp_path: Path
) -> None:
    """Neighbours or not. So are the sound batches after a break in one of them."""
    drawn = drawn_of(sorted(path for path in partition.glob("*.log") if path.stat().st_size))
    other = min(other, len(drawn.logs) - 1)
    one = min(one, other - 1)
    drawn.logs[one], drawn.logs[other] = drawn.logs[other], drawn.logs[one]
    if is_broken:
        middle = len(drawn.logs[one]) // 2
        del drawn.logs[one][middle : middle + 20]
    write_drawn(drawn, tmp_path / "in" / "topic-0")
    named = {one.path for one in verify(tmp_path / "in" / "topic-0") if one.law == "DISK-62"}
    assert {drawn.names[one], drawn.names[other]} == {Path(path).name for path in named}
    told, outcome = saved(drawn, tmp_path)
    assert {} == outcome.faults
    assert (2, 0) == (told.renamed_logs, told.set_aside_batches)
    assert [] == [one for one in verify(tmp_path / "out") if one.law == "DISK-62"]
    assert len(drawn.truth) - len(outcome.kept) in ((1, 2) if is_broken else (0,))
    assert lost_between(outcome.kept, drawn) == told.lost_offsets + told.unproven_offsets


@pytest.mark.checks("DISK-13")
def test_a_log_whose_name_is_too_high_counts_what_is_lost(tmp_path: Path) -> None:
    """The name said that nothing below it was there."""
    drawn = drawn_of(sorted(PLAIN.glob("*.log"))[:1])
    drawn.names = [f"{9_000_000:020d}.log"]
    del drawn.logs[0][20_000:20_100]
    write_drawn(drawn, tmp_path / "in" / "topic-0")
    told, outcome = saved(drawn, tmp_path)
    assert 0 < lost_between(outcome.kept, drawn) == told.lost_offsets
    assert not told.are_more_lost


def _dense(folder: Path, count: int = 40) -> Drawn:
    """Return a log of batches with one to three records each, no two of them alike."""
    log, at = bytearray(), 0
    for number in range(count):
        records = [
            Record(at + more, 1000 + at, None, b"%d" % (at + more))
            for more in range(1 + number % 3)
        ]
        log += write_batch(records, base_offset=at)
        at += len(records)
    path = folder / "source" / LOG
    path.parent.mkdir()  # no new directory may lie beside a log
    path.write_bytes(log)
    return drawn_of([path])


@pytest.mark.checks("BATCH-3")
def test_the_owner_of_an_offset_is_kept_where_another_batch_claims_it(tmp_path: Path) -> None:
    """One bit of a base offset is wrong, and the batch two before it is broken."""
    drawn = _dense(tmp_path)
    starts = drawn.starts[0]
    for number in range(4, len(starts) - 2):
        if drawn.truth[number].last == drawn.truth[number].first and number % 3 == 0:
            for bit in (1, 2, 4, 8):
                damaged = drawn_of([tmp_path / "source" / LOG])
                damaged.logs[0][starts[number] + 7] ^= bit
                damaged.logs[0][starts[number - 1] - 1] ^= 4
                folder = tmp_path / f"{number}-{bit}"
                write_drawn(damaged, folder / "in" / "topic-0")
                told, outcome = saved(damaged, folder)
                assert {} == outcome.faults
                assert (1, 0) == (told.restored_batches, told.set_aside_batches)
                shutil.rmtree(folder)


@pytest.mark.checks("SEG-20")
def test_offsets_that_no_gap_shows_are_not_called_none(tmp_path: Path) -> None:
    """Two batches have changed places, and the first is broken: its offsets look compacted."""
    drawn = _dense(tmp_path)
    log, starts = drawn.logs[0], drawn.starts[0]
    one, two, three = starts[10:13]
    log[one:three] = log[two:three] + log[one:two]
    log[one + 70] ^= 1
    write_drawn(drawn, tmp_path / "in" / "topic-0")
    told, outcome = saved(drawn, tmp_path)
    assert {} == outcome.faults
    assert told.are_more_lost or lost_between(outcome.kept, drawn) == told.lost_offsets


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("shift", range(0, 512, 64))
def test_a_block_of_another_topic_is_moved_into_no_gap(shift: int, tmp_path: Path) -> None:
    """Its offsets fit a gap elsewhere exactly: no size leads to it there, and no sequence."""
    other = tmp_path / "other"
    other.mkdir()
    drawn, foreign = _dense(tmp_path, 300), bytes(_dense(other, 300).logs[0])
    log = drawn.logs[0]
    foreign = foreign.replace(b"\0\0\0\0\0\0\3\xe8", b"\0\0\0\0\0\0\3\xe9")
    log[1000:1400] = bytes(400)
    log[8192 : 8192 + 512] = foreign[1000 + shift - 64 : 1000 + shift - 64 + 512]
    write_drawn(drawn, tmp_path / "in" / "topic-0")
    _, outcome = saved(drawn, tmp_path)
    assert {} == outcome.faults


def test_the_judge_sees_what_is_made_up(tmp_path: Path) -> None:
    """A judge that can't fail would prove nothing."""
    drawn = _dense(tmp_path)
    target, aside = tmp_path / "out", tmp_path / "aside"
    target.mkdir()
    log = bytes(drawn.logs[0])
    batches = [one for _, one in framed(log)]
    (target / f"{0:020d}.log").write_bytes(
        b"".join([batches[0], batches[0], batches[2][:7] + b"\x09" + batches[2][8:]])
        + write_batch([Record(99, 1, None, b"?")], base_offset=99)
        + b"torn"
    )
    faults = judge(drawn, target, aside).faults
    assert {"made up": 1, "wrong offset": 1, "twice": 1, "falling": 1, "unframed": 1} == {
        name: count for name, count in faults.items() if name != "nowhere"
    }
    assert len(batches) - 2 == faults["nowhere"]
    assert Truth(0, 0, batches[0][17:]) == drawn.truth[0]
