# SPDX-License-Identifier: Apache-2.0
"""Losses in logs that were compacted: what the cleaner took is not counted as lost."""

from pathlib import Path
from random import Random

import pytest

from segproof.findings import Summary, Verdict
from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import rebuild, salvage
from segproof.salvaging.salvage import SalvagedPartition
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.partition_files import copied_partition, looked_at, name_of

BASES = (0, 60, 162, 252, 342, 420, 517, 602)
Rows = list[tuple[int, int, int, int]]


def rows_of(log: Path) -> Rows:
    """Return of each batch where it begins and ends, its first and its last offset."""
    table = read_batch_headers(log.read_bytes()).table
    ends = table["position"] + table["size_bytes"]
    columns = (table["position"], ends, table["base_offset"], table["last_offset"])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def without(log: Path, *numbers: int) -> int:
    """Remove batches from a log; return how many offsets they have."""
    rows, data = rows_of(log), log.read_bytes()
    log.write_bytes(b"".join(data[a:b] for at, (a, b, *_) in enumerate(rows) if at not in numbers))
    return sum(rows[at][3] - rows[at][2] + 1 for at in set(numbers) if at < len(rows))


def compacted(tmp_path: Path, gaps: dict[int, tuple[int, ...]]) -> Path:
    """Return a partition that the log cleaner has been in, with its checkpoint."""
    folder = copied_partition("plain", tmp_path / "data")
    (tmp_path / "data" / "cleaner-offset-checkpoint").write_text("0\n1\nplain 0 693\n")
    for base, numbers in gaps.items():
        log = folder / name_of(base, ".log")
        without(log, *numbers)
        for suffix in (".index", ".timeindex"):
            log.with_suffix(suffix).unlink()
    assert not rebuild(folder, in_place=True).findings
    assert looked_at(folder)[0].is_sound
    return folder


def told_of(folder: Path, tmp_path: Path) -> tuple[Summary, SalvagedPartition]:
    """Return what verify and salvage tell."""
    (saved,) = salvage(folder, tmp_path / "saved")
    return looked_at(folder)[0], saved


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("number", [4, 9])
def test_a_damaged_batch_after_a_lawful_gap_is_bounded(number: int, tmp_path: Path) -> None:
    """The offsets of the gap were counted as lost, and the number as exact."""
    folder = compacted(tmp_path, {0: (1, 3), 252: (2, 3)})
    log = folder / name_of(252, ".log")
    rows, data = rows_of(log), bytearray(log.read_bytes())
    row = 2 if number == 4 else number
    data[rows[row][0] + 80] ^= 1
    log.write_bytes(data)
    own = rows[row][3] - rows[row][2] + 1
    missing = rows[row + 1][2] - rows[row - 1][3] - 1
    summary, saved = told_of(folder, tmp_path)
    assert summary.verdict is Verdict.READABLE_WITH_GAPS
    if own == missing:
        assert (own, own) == (summary.lost_offsets, saved.lost_offsets)
    else:
        assert (None, 0, missing) == (
            summary.lost_offsets, summary.lost_at_least, summary.unproven_offsets,
        )  # fmt: skip
        assert (0, missing) == (saved.lost_offsets, saved.unproven_offsets)


@pytest.mark.checks("DISK-4", "DISK-25")
@pytest.mark.parametrize("what", ["the log is gone", "the log is emptied", "its end is cut"])
def test_a_lost_log_of_a_compacted_topic_is_bounded(what: str, tmp_path: Path) -> None:
    """The names of the files tell how many offsets it had, and not which were compacted."""
    folder = compacted(tmp_path, {0: (1, 3), 252: (2, 3)})
    log = folder / name_of(252, ".log")
    rows = rows_of(log)
    first = 0 if what != "its end is cut" else 5
    lost = sum(last - base + 1 for *_, base, last in rows[first:])
    if what == "the log is gone":
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[: rows[first][0]])
    summary, saved = told_of(folder, tmp_path)
    assert summary.verdict is Verdict.READABLE_WITH_GAPS
    assert (None, 0) == (summary.lost_offsets, summary.lost_at_least)
    assert lost <= summary.unproven_offsets <= 342 - 252
    assert (0, summary.unproven_offsets) == (saved.lost_offsets, saved.unproven_offsets)


@pytest.mark.checks("BATCH-3", "DISK-4", "DISK-25", "DISK-63", "DISK-70")
@pytest.mark.parametrize("seed", range(12))
def test_each_number_holds_in_drawn_logs(seed: int, tmp_path: Path) -> None:
    """The truth is known: an exact number is exact, and the others are bounds."""
    random = Random(seed)
    gaps = {
        base: tuple(random.sample(range(1, 10), random.randrange(1, 5)))
        for base in random.sample(BASES, random.randrange(1, 4))
    }
    folder = compacted(tmp_path, gaps)
    base = random.choice(BASES)
    log = folder / name_of(base, ".log")
    rows = rows_of(log)
    row = random.randrange(len(rows) - 1)
    lost = rows[row][3] - rows[row][2] + 1
    how = random.choice(["flip", "cut", "cut, no index", "empty", "gone", "end"])
    if how == "flip":
        flip_bits(log, rows[row][0] + 70)
    elif how in ("cut", "cut, no index"):
        without(log, row)
        for suffix in (".index", ".timeindex") if how == "cut, no index" else ():
            log.with_suffix(suffix).unlink()
    else:
        first = row if how == "end" else 0
        lost = sum(one[3] - one[2] + 1 for one in rows[first:])
        log.write_bytes(log.read_bytes()[: rows[first][0]])
        if how == "gone":
            log.unlink()
    summary, saved = told_of(folder, tmp_path)
    assert summary.lost_offsets in ((0, None) if how.startswith("cut") else (lost, None))
    assert summary.lost_at_least <= lost
    if summary.unproven_offsets:
        assert lost <= summary.lost_at_least + summary.unproven_offsets
    assert saved.lost_offsets <= lost
    if saved.unproven_offsets and not saved.are_more_lost:
        assert lost <= saved.lost_offsets + saved.unproven_offsets
