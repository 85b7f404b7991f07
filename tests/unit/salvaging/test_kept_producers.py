# SPDX-License-Identifier: Apache-2.0
"""A salvage keeps the producers that old snapshots know: without them a retry is a duplicate."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from segproof.kafka.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot_file,
    write_snapshot,
)
from segproof.repair import salvage
from segproof_harness.laws.file_damages import later
from segproof_tests import small_logs
from segproof_tests.partition_files import aged, copied_partition, name_of, write_segment

OFFSETS = (1014, 1732, 2414)
DAY_MS = 86_400_000


def saved(folder: Path, out: Path) -> dict[int, dict[int, ProducerStateEntry]]:
    """Return the entries of the new snapshots, by offset and producer."""
    (told,) = salvage(aged(folder), out)
    assert told.target is not None
    return {
        int(path.stem): {one.producer_id: one for one in read_snapshot_file(path)}
        for path in Path(told.target).glob("*.snapshot")
    }


def without_snapshots(folder: Path) -> None:
    """Remove all snapshots."""
    for path in folder.glob("*.snapshot"):
        path.unlink()


def with_an_expired_segment(folder: Path) -> None:
    """Remove the first segment, as retention does; the snapshots hold its producers."""
    for path in folder.glob("00000000000000000000.*"):
        path.unlink()


@later
def with_damaged(folder: Path, *offsets: int) -> None:
    """Return what overwrites snapshots."""
    for offset in offsets:
        (folder / name_of(offset, ".snapshot")).write_bytes(b"no snapshot")


def with_both(folder: Path) -> None:
    """Remove the first segment, and overwrite snapshots."""
    with_an_expired_segment(folder)
    with_damaged(1732, 2414)(folder)


SOUND: dict[str, Callable[[Path], object]] = {
    "all files": lambda folder: None,
    "no snapshot": without_snapshots,
    "retention": with_an_expired_segment,
    "two snapshots damaged": with_damaged(1732, 2414),
    "retention, and two snapshots damaged": with_both,
}


@pytest.mark.checks("PROD-14", "PROD-3")
@pytest.mark.parametrize("case", SOUND)
def test_its_snapshots_are_those_of_the_broker(case: str, tmp_path: Path) -> None:
    """A producer without a batch in the last segment was dropped, as by the time of the salvage."""
    folder = copied_partition("txn-a", tmp_path / "data")
    before = {at: (folder / name_of(at, ".snapshot")).read_bytes() for at in OFFSETS}
    SOUND[case](folder)
    made = saved(folder, tmp_path / "out")
    for offset in OFFSETS[1 if "retention" in case else 0 :]:
        assert write_snapshot(made[offset].values()) == before[offset]


def batch(offset: int, producer: int, sequence: int, timestamp: int) -> bytes:
    """Return a batch of one record of a producer."""
    return small_logs.batch(
        offset, key=b"k", time=timestamp,
        producer_id=producer, producer_epoch=0, base_sequence=sequence,
    )  # fmt: skip


def entry(producer: int, sequence: int, offset: int, timestamp: int = 0) -> ProducerStateEntry:
    """Return what a snapshot says of a producer."""
    last = BatchMetadata(sequence, offset, 0, timestamp)
    return ProducerStateEntry(producer, 0, -1, timestamp, None, (last,))


LAST = entry(6, 1, 14, 3 * DAY_MS)
CASES: dict[str, tuple[list[ProducerStateEntry], list[int]]] = {
    "its batch expired with its segment": ([entry(4, 9, 5), LAST], [4, 6]),
    "its batch is here, and old": ([entry(5, 7, 11), LAST], [5, 6]),
    "its batch was compacted away or lost": ([entry(4, 9, 11), LAST], [6]),
    "its batch is another one": ([entry(5, 8, 11), LAST], [6]),
    "the log goes on with it": ([entry(5, 6, 10), LAST], [6]),
    "another entry contradicts the log": ([entry(4, 9, 5), replace(LAST, batch_metadata=(
        BatchMetadata(1, 12, 0, 0),))], [6]),
}  # fmt: skip


@pytest.mark.checks("PROD-14")
@pytest.mark.parametrize("case", CASES)
def test_only_what_the_log_does_not_contradict(case: str, tmp_path: Path) -> None:
    """Producer 5 wrote three days before producer 6, in the first of two segments."""
    entries, expected = CASES[case]
    folder = tmp_path / "data" / "t-0"
    folder.mkdir(parents=True)
    first = [batch(10, 5, 6, 0), batch(11, 5, 7, 0), batch(12, 7, 0, 3 * DAY_MS)]
    second = [batch(13, 6, 0, 3 * DAY_MS), batch(14, 6, 1, 3 * DAY_MS)]
    write_segment(folder, b"".join(first), 10)
    write_segment(folder, b"".join(second), 13)
    (folder / name_of(15, ".snapshot")).write_bytes(write_snapshot(entries))
    made = saved(folder, tmp_path / "out")
    assert sorted({*expected, 7}) == sorted(made[15])
    assert all(made[15][one.producer_id] == one for one in entries if one.producer_id in (4, 5)
               and one.producer_id in expected)  # fmt: skip
