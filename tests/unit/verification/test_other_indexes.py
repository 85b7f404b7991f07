# SPDX-License-Identifier: Apache-2.0
"""Offset indexes of other logs: they prove no loss of the log beside them."""

import shutil
from pathlib import Path

import pytest

from segproof.findings import Verdict
from segproof.repair import rebuild, salvage
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_tests.partition_files import copied_partition, looked_at, name_of, write_segment
from segproof_tests.rows import paired
from segproof_tests.small_logs import log_of

INDEXES = (".index", ".timeindex")


def exchange(folder: Path, one: int, other: int, *suffixes: str) -> None:
    """Exchange files of two segments."""
    for suffix in suffixes:
        first, second = folder / name_of(one, suffix), folder / name_of(other, suffix)
        data = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(data)


def check_nothing_lost(folder: Path, tmp_path: Path) -> None:
    """All verbs agree that no record is lost, and a rebuild makes the partition sound."""
    logs = {path.name: path.read_bytes() for path in folder.glob("*.log")}
    told, _ = looked_at(folder)
    assert told.verdict is Verdict.INDEX_DAMAGE_ONLY
    assert (told.lost_offsets, told.lost_at_least, told.unproven_offsets) == (0, 0, 0)
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (saved.is_whole, saved.lost_offsets, saved.are_more_lost) == (True, 0, False)
    made = (tmp_path / "saved" / folder.name).glob("*.log")
    assert logs == {path.name: path.read_bytes() for path in made}
    assert not rebuild(folder, in_place=True).findings
    assert looked_at(folder)[0].verdict is Verdict.SOUND


@pytest.mark.checks("SEG-7", "DISK-25", "DISK-70")
@pytest.mark.parametrize("suffixes", [(".index",), INDEXES])
@pytest.mark.parametrize(
    ("scenario", "source", "target"),
    [
        ("v1-gzip", 1000, 2192), ("plain", 0, 602), ("compacted", 4104, 5235),
    ],
)  # fmt: skip
def test_an_index_of_another_log_proves_no_loss(
    scenario: str, source: int, target: int, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    """Beyond the end of the last log lead its entries: "at least 1135 offsets lost"."""
    folder = copied_partition(scenario, tmp_path)
    for suffix in suffixes:
        shutil.copyfile(folder / name_of(source, suffix), folder / name_of(target, suffix))
    check_nothing_lost(folder, tmp_path)


@pytest.mark.checks("SEG-7", "DISK-6")
@pytest.mark.parametrize(
    ("scenario", "one", "other", "suffixes"),
    [
        (*row, suffixes)
        for row, suffixes in paired(
            [
                ("txn-a", 1014, 1732),
                ("v1-gzip", 1000, 2192),
                ("plain", 602, 693),
                ("compacted", 0, 5235),
            ],
            [(".index",), INDEXES],
        )
    ],
)
def test_exchanged_indexes_prove_no_loss(
    scenario: str, one: int, other: int, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    """A rebuild refused what the hints of two findings told to rebuild."""
    folder = copied_partition(scenario, tmp_path)
    exchange(folder, one, other, *suffixes)
    check_nothing_lost(folder, tmp_path)


@pytest.mark.checks("SEG-7")
@pytest.mark.parametrize("is_open", [False, True])
def test_an_index_of_another_topic_proves_no_loss(is_open: bool, tmp_path: Path) -> None:
    """No log here is that of the index, but the time index fits the log, which lacks nothing."""
    folder = copied_partition("plain", tmp_path)
    (index,) = (KAFKA / "txn-a").rglob(name_of(0, ".index"))
    data = index.read_bytes()
    (folder / name_of(693, ".index")).write_bytes(data.ljust(8192, b"\0") if is_open else data)
    check_nothing_lost(folder, tmp_path)


@pytest.mark.checks("SEG-7", "DISK-9")
@pytest.mark.parametrize(
    ("scenario", "part"), paired(["v1-gzip", "plain", "txn-a", "compacted"], [0, 2])
)
def test_the_end_of_a_log_that_is_lost_stays_lost(scenario: str, part: int, tmp_path: Path) -> None:
    """The own index of a log that was cut proves it, also where no entry leads into the log."""
    folder = copied_partition(scenario, tmp_path)
    log = max(folder.glob("*.log"))
    index = log.with_suffix(".index").read_bytes().rstrip(b"\0")
    at = len(index) // 8 * part // 3 * 8
    log.write_bytes(log.read_bytes()[: int.from_bytes(index[at + 4 : at + 8], "big")])
    told, _ = looked_at(folder)
    assert told.verdict is Verdict.READABLE_WITH_GAPS
    assert told.lost_at_least > 0
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (saved.lost_offsets, saved.are_more_lost) == (told.lost_at_least, True)
    assert rebuild(folder, in_place=True).findings


@pytest.mark.checks("SEG-7", "DISK-9")
def test_the_time_index_alone_proves_a_lost_end(tmp_path: Path) -> None:
    """The log was cut, and the index of another log lies beside it."""
    folder = copied_partition("plain", tmp_path)
    log, index = folder / name_of(693, ".log"), folder / name_of(693, ".index")
    end = int.from_bytes(index.read_bytes()[5 * 8 + 4 : 6 * 8], "big")
    log.write_bytes(log.read_bytes()[:end])
    shutil.copyfile(folder / name_of(602, ".index"), index)
    told, _ = looked_at(folder)
    (saved,) = salvage(folder, tmp_path / "saved")
    assert told.verdict is Verdict.READABLE_WITH_GAPS
    assert 0 < told.lost_at_least == saved.lost_offsets < 53


@pytest.mark.checks("SEG-7")
def test_entries_of_one_distance_show_no_other_log(tmp_path: Path) -> None:
    """Logs of equal batches have equal indexes: that of a log without its batches is its own."""
    folder = tmp_path / "t-0"
    for base in (0, 40):
        log = log_of(base, base + 40, key=b"k")
        size = len(log) // 40
        index = offset_entries(*((at, at * size) for at in range(4, 40, 4)))
        times = time_entries(*((1000 + base + at, at) for at in range(4, 40, 4)))
        end = size * (3 if base else 40)
        write_segment(folder, log[:end], base, index=index, timeindex=times)
    told, _ = looked_at(folder)
    assert (told.verdict, told.lost_at_least) == (Verdict.READABLE_WITH_GAPS, 34)
