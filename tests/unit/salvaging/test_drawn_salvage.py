# SPDX-License-Identifier: Apache-2.0
"""`salvage` on partitions with drawn damages, judged by the batches that were there before.

The judge reads no byte with segproof. More draws: `tests/unit/harness/test_salvage_draws.py`.
"""

import shutil
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from segproof.kafka import Record, write_batch
from segproof.repair import salvage
from segproof.salvaging.salvage import SalvagedPartition
from segproof.verification import verify
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.laws.borders.log_files import offset_entries
from segproof_harness.salvage_draws.disk_damages import Damaged
from segproof_harness.salvage_draws.draws import judge_damaged, told_of
from segproof_harness.salvage_draws.kafka_damages import damaged_logs
from segproof_harness.salvage_draws.kafka_partitions import (
    Partition,
    known_partition,
    read_partition,
)
from segproof_harness.salvage_draws.kafka_reader import framed
from segproof_harness.salvage_draws.verdict import Told, Verdict
from segproof_tests.partition_files import name_of, write_segment
from segproof_tests.rows import paired
from segproof_tests.small_logs import batch, log_of

PARTITIONS = {one.name: partition_of(one) for one in scenarios()}
V1, PLAIN = (read_partition(PARTITIONS[name]) for name in ("v1-gzip", "plain"))


def saved(
    partition: Partition, damaged: Damaged, folder: Path
) -> tuple[SalvagedPartition, Verdict]:
    """Save a damaged partition, whose indexes are gone; judge what came of it."""
    told: list[SalvagedPartition] = []

    def salvager(source: Path, target: Path) -> Told:
        told.extend(salvage(source, target))
        return told_of(told[0])

    verdict = judge_damaged(partition, damaged, {}, folder, salvager)
    assert (told[0].set_aside_batches > 0) == (folder / "out" / ASIDE).exists()
    return told[0], verdict


ASIDE = "salvage-set-aside.topic-0.log"


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("place", range(0, 60, 7))
def test_a_copy_never_gets_an_offset_of_a_wrapper(place: int, tmp_path: Path) -> None:
    """The compressed message after the copy says its last offset only: its first looks missing."""
    damaged = damaged_logs(V1, b"")
    log = damaged.files[0]
    one = list(framed(bytes(log)))[place]
    log[one.end : one.end] = log[one.position : one.end]
    told, verdict = saved(V1, damaged, tmp_path)
    assert {} == verdict.faults
    assert (len(V1.truth), 1) == (told.batches, told.set_aside_batches)


@pytest.mark.checks("DISK-13", "LOG-4", "DISK-62")
@pytest.mark.parametrize(
    ("one", "other", "is_broken", "partition"),
    [
        (*row, is_broken, partition)
        for row, is_broken, partition in paired(
            [(0, 1), (0, 3), (1, 2)], [False, True], [PLAIN, V1]
        )
    ],
)
def test_logs_with_swapped_names_are_saved_by_their_contents(
    one: int, other: int, is_broken: bool, partition: Partition, tmp_path: Path
) -> None:
    """Neighbours or not. So are the sound batches after a break in one of them."""
    damaged = damaged_logs(partition, b"")
    logs, names = damaged.files, damaged.names
    other = min(other, len(logs) - 1)
    one = min(one, other - 1)
    logs[one], logs[other] = logs[other], logs[one]
    if is_broken:
        middle = len(logs[one]) // 2
        del logs[one][middle : middle + 20]
    told, verdict = saved(partition, damaged, tmp_path)
    named = {one.path for one in verify(tmp_path / "in" / "topic-0") if one.law == "DISK-62"}
    assert {names[one], names[other]} == {Path(path).name for path in named}
    assert {} == verdict.faults
    assert (2, 0) == (told.renamed_logs, told.set_aside_batches)
    assert [] == [one for one in verify(tmp_path / "out") if one.law == "DISK-62"]
    assert len(partition.truth) - told.batches in ((1, 2) if is_broken else (0,))
    lost, most = verdict.counts["lost offsets"], told.lost_offsets + told.unproven_offsets
    assert lost == most if partition.is_dense else told.lost_offsets <= lost <= most


@pytest.mark.checks("DISK-13")
def test_a_log_whose_name_is_too_high_counts_what_is_lost(tmp_path: Path) -> None:
    """The name said that nothing below it was there."""
    partition = known_partition("plain", {0: PLAIN.logs[0]})
    damaged = damaged_logs(partition, b"")
    damaged.names = [f"{9_000_000:020d}.log"]
    del damaged.files[0][20_000:20_100]
    told, verdict = saved(partition, damaged, tmp_path)
    assert 0 < verdict.counts["lost offsets"] == told.lost_offsets
    assert not told.are_more_lost


def _dense(count: int = 40) -> Partition:
    """Return a log of batches with one to three records each, no two of them alike."""
    log, at = bytearray(), 0
    for number in range(count):
        records = [
            Record(at + more, 1000 + at, None, b"%d" % (at + more))
            for more in range(1 + number % 3)
        ]
        log += write_batch(records, base_offset=at)
        at += len(records)
    return known_partition("dense", {0: bytes(log)})


@pytest.mark.checks("BATCH-3")
def test_the_owner_of_an_offset_is_kept_where_another_batch_claims_it(tmp_path: Path) -> None:
    """One bit of a base offset is wrong, and the batch two before it is broken."""
    partition = _dense()
    for number in range(6, len(partition.truth) - 2, 3):
        for bit in (1, 2, 4, 8):
            damaged = damaged_logs(partition, b"")
            log, starts = damaged.files[0], damaged.starts[0]
            log[starts[number] + 7] ^= bit
            log[starts[number - 1] - 1] ^= 4
            folder = tmp_path / f"{number}-{bit}"
            told, verdict = saved(partition, damaged, folder)
            assert {} == verdict.faults
            assert (1, 0) == (told.restored_batches, told.set_aside_batches)
            shutil.rmtree(folder)


@pytest.mark.checks("SEG-20")
def test_offsets_that_no_gap_shows_are_not_called_none(tmp_path: Path) -> None:
    """Two batches have changed places, and the first is broken: its offsets look compacted."""
    partition = _dense()
    damaged = damaged_logs(partition, b"")
    log, starts = damaged.files[0], damaged.starts[0]
    one, two, three = starts[10:13]
    log[one:three] = log[two:three] + log[one:two]
    log[one + 70] ^= 1
    told, verdict = saved(partition, damaged, tmp_path)
    assert {} == verdict.faults
    assert told.are_more_lost or verdict.counts["lost offsets"] == told.lost_offsets


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("shift", range(0, 512, 64))
def test_a_block_of_another_topic_is_moved_into_no_gap(shift: int, tmp_path: Path) -> None:
    """Its offsets fit a gap elsewhere exactly: no size leads to it there, and no sequence."""
    partition = _dense(300)
    foreign = partition.logs[0].replace(b"\0\0\0\0\0\0\3\xe8", b"\0\0\0\0\0\0\3\xe9")
    damaged = damaged_logs(partition, b"")
    log = damaged.files[0]
    log[1000:1400] = bytes(400)
    log[8192 : 8192 + 512] = foreign[1000 + shift - 64 : 1000 + shift - 64 + 512]
    _, verdict = saved(partition, damaged, tmp_path)
    assert {} == verdict.faults


@pytest.mark.checks("BATCH-3")
def test_a_block_is_not_believed_into_which_entries_lead_with_other_offsets(
    tmp_path: Path,
) -> None:
    """Its offsets fit where it lies; the index has an entry for each batch that lay there."""
    own = [batch(offset) for offset in range(200)]
    starts = [0, *accumulate(map(len, own))]
    foreign = b"".join(batch(offset, b"other" * 60) for offset in range(60, 100, 4))[:4096]
    log = bytearray(b"".join(own))
    log[4096 : 4096 + len(foreign)] = foreign
    index = offset_entries(*zip(range(1, 200), starts[1:200], strict=True))
    (told,) = salvage(write_segment(tmp_path / "t-0", bytes(log), index=index), tmp_path / "out")
    left = [
        number for number, (begin, end) in enumerate(pairwise(starts))
        if end <= 4096 or begin >= 4096 + len(foreign)
    ]  # fmt: skip
    (saved_log,) = (tmp_path / "out" / "t-0").glob("*.log")
    assert [one.offset for one in framed(saved_log.read_bytes())] == left
    assert (len(left), 10) == (told.batches, told.set_aside_batches)


@pytest.mark.checks("SEG-20")
def test_batches_that_are_set_aside_behind_the_end_may_be_lost_ones(tmp_path: Path) -> None:
    """Two blocks rise each by itself: "0 offsets lost" was said of the ones that were not kept."""
    parts = [log_of(0, 10), bytes(500), log_of(30, 50), bytes(500), log_of(10, 30)]
    (told,) = salvage(write_segment(tmp_path / "t-0", b"".join(parts)), tmp_path / "out")
    assert (30, 20) == (told.batches, told.set_aside_batches)
    assert told.are_more_lost


def _without(log: list[bytes], number: int, folder: Path, index: bytes = b"") -> Path:
    """Write a log, one of whose batches is broken, and its offset index."""
    broken = b"".join([*log[:number], log[number][:-1] + b"?", *log[number + 1 :]])
    return write_segment(folder / "t-0", broken, index=index)


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("number", [*range(0, 18, 2), 120, 1000])
def test_an_old_gap_tells_nothing_of_a_later_damage(number: int, tmp_path: Path) -> None:
    """A salvage leaves gaps; no record has a key. Sound batches beside it were set aside."""
    log = [batch(offset) for offset in (*range(12), *range(400, 1402))]
    (told,) = salvage(_without(log, number, tmp_path), tmp_path / "out")
    is_beside = number == 12  # then more may be lost there
    assert (told.batches, told.set_aside_batches) == (len(log) - 1, 0)
    assert told.lost_offsets == (389 if is_beside else 1)


@pytest.mark.checks("BATCH-3")
def test_an_old_gap_tells_nothing_before_a_torn_end(tmp_path: Path) -> None:
    """Each kill of a broker leaves such an end: `verify` counted the gap as lost once more."""
    log = log_of(0, 3) + log_of(40, 240)
    folder = write_segment(tmp_path / "t-0", log + batch(240)[:-1])
    (told,) = salvage(folder, tmp_path / "out")
    assert (told.batches, told.set_aside_batches, told.lost_offsets) == (203, 0, 0)


@pytest.mark.checks("EPOCH-1")
@pytest.mark.parametrize("number", [150, 203, 120])
@pytest.mark.parametrize("begins", ["3 180\n5 200", "3 100\n5 110", "3 90\n5 200", "3 100\n5 280"])
def test_a_wrong_digit_of_the_epochs_takes_no_batch(
    begins: str, number: int, tmp_path: Path
) -> None:
    """The file has no checksum: one digit took half an epoch, where a batch of it was broken."""
    epochs = [0] * 100 + [3] * 100 + [5] * 100
    log = [batch(n, partition_leader_epoch=epoch) for n, epoch in enumerate(epochs)]
    folder = _without(log, number, tmp_path)
    (folder / "leader-epoch-checkpoint").write_text(f"0\n3\n0 0\n{begins}\n")
    (told,) = salvage(folder, tmp_path / "out")
    assert (told.batches, told.set_aside_batches, told.lost_offsets) == (299, 0, 1)


@pytest.mark.checks("IDX-3")
@pytest.mark.parametrize("bit", range(0, 13, 2))
def test_a_wrong_bit_of_an_entry_takes_no_batch(bit: int, tmp_path: Path) -> None:
    """No entry speaks for the first bytes of a log: one that led into them set them aside."""
    log = [batch(offset, b"v" * 100) for offset in range(400)]
    starts = [0, *accumulate(map(len, log))]
    pairs = [(number, starts[number]) for number in range(30, 400, 30)]
    pairs[0] = pairs[0][0], pairs[0][1] ^ 1 << bit
    folder = _without(log, 5, tmp_path, index=offset_entries(*pairs))
    (told,) = salvage(folder, tmp_path / "out")
    assert (told.batches, told.set_aside_batches, told.lost_offsets) == (399, 0, 1)


@pytest.mark.checks("DISK-1", "DISK-62")
def test_a_link_to_nothing_beside_a_wrong_name_ends_no_salvage(tmp_path: Path) -> None:
    """It was opened to see whether it ends where the log with the wrong name begins."""
    folder = tmp_path / "t-0"
    for name, first in (0, 0), (30, 30), (500, 20):
        write_segment(folder, log_of(first, first + 1 + 9 * (name < 500)), name)
    (folder / name_of(10, ".log")).symlink_to("nowhere")
    (told,) = salvage(folder, tmp_path / "out")
    assert told.batches >= 20
    assert any("DISK-1" == one.law for one in verify(folder))
