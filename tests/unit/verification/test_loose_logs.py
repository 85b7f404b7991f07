# SPDX-License-Identifier: Apache-2.0
"""Loose logs beside partitions: whether they are of one partition or of several."""

import shutil
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.kafka import Record, write_batch
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_tests.partition_files import name_of

ONE, SEVERAL = "as those of one partition", "as those of several partitions"
OPEN = "of one or several partitions"


def batch(offset: int, epoch: int = -1, producer: int = -1, sent: int = -1, era: int = 0) -> bytes:
    """Return a batch of one record, of a leader epoch and a producer with its epoch `era`."""
    return write_batch(
        [Record(offset, offset, b"k", b"v")], base_offset=offset, partition_leader_epoch=epoch,
        producer_id=producer, producer_epoch=era if producer >= 0 else -1, base_sequence=sent,
    )  # fmt: skip


def told(tmp_path: Path, logs: dict[int, list[bytes]]) -> Finding:
    """Return what is said of the logs beside a partition, by base offset."""
    data = tmp_path / "data"
    shutil.copytree(partition_of(KAFKA / "plain"), data / "a-0")
    (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for base, batches in logs.items():
        (data / name_of(base, ".log")).write_bytes(b"".join(batches))
    (one,) = verify(data, laws=["DISK-3"])
    return one


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([batch(0), batch(1)], [batch(2)], ONE),
        ([batch(0), batch(1)], [batch(3)], OPEN),
        ([batch(0), batch(1)], [], ONE),
        ([batch(0, 5), batch(1, 5)], [batch(2, 5)], ONE),
        ([batch(0, 5), batch(1, 5)], [batch(2, 4)], SEVERAL),
        ([batch(0, 5), batch(1, 5)], [batch(3, 4)], SEVERAL),
        ([batch(0, 5), batch(1, 5)], [batch(3, 6)], OPEN),
        ([batch(0, 5), batch(1, 5)], [batch(2, 0)], SEVERAL),
        ([batch(0, 5), batch(1, 5)], [batch(2, -1)], ONE),
        ([batch(0, 5), batch(1, 5)], [batch(2, 1), batch(3, 5)], ONE),  # one odd batch
        ([batch(0, 5), batch(1, 9)], [batch(2, 5)], ONE),  # one odd batch
        ([batch(0, 5), batch(1, 9)], [batch(2, 4)], SEVERAL),
        ([batch(0, 0, 7, 50)], [batch(1, 0, 7, 51)], ONE),
        ([batch(0, 0, 7, 50)], [batch(1, 0, 7, 50)], SEVERAL),
        ([batch(0, 0, 7, 50)], [batch(2, 0, 7, 10)], SEVERAL),
        ([batch(0, 0, 7, 50)], [batch(2, 0, 7, 60)], OPEN),
        ([batch(0, 0, 7, 50)], [batch(1, 0, 7, 0, 1)], ONE),
        ([batch(0, 0, 7, 50, 1)], [batch(1, 0, 7, 51, 0)], SEVERAL),
        ([batch(0, 0, 7, 50)], [batch(1, 0, 8, 10)], ONE),
        ([batch(0, 0, 7, 0)], [batch(1, 0, 7, 0)], SEVERAL),
        ([batch(0, 0, 0, 50)], [batch(1, 0, 0, 50)], SEVERAL),
        ([batch(0, 0, 7, 2**30 - 1)], [batch(1, 0, 7, 0)], SEVERAL),
        ([batch(0, 0, 7, 2**30)], [batch(1, 0, 7, 0)], ONE),
        ([batch(0, 0, 7, 2**31 - 1)], [batch(1, 0, 7, 0)], ONE),
    ],
)  # fmt: skip
def test_what_tells_partitions_apart(
    first: list[bytes], second: list[bytes], words: str, tmp_path: Path
) -> None:
    """Logs whose offsets did not overlap were "those of one partition", with its commands."""
    base = int.from_bytes(second[0][:8]) if second else 2
    one = told(tmp_path, {0: first, base: second})
    assert words in one.message
    assert [words] == [each for each in (ONE, SEVERAL, OPEN) if each in one.message]
    assert (words == SEVERAL) is ("cp -a" not in one.hint)
    assert (words == OPEN) is ("If they are not, sort copies" in one.hint)
    if words == OPEN:
        assert f"no log here has the offsets {len(first)} to {base - 1}" in one.message


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize("source", ["plain", "txn-a", "unclean-before"])
def test_the_logs_of_a_broker_are_one_partition(source: str, tmp_path: Path) -> None:
    """Its producers, leader epochs and offsets go on from log to log."""
    logs = {
        int(path.stem): [path.read_bytes()] for path in partition_of(KAFKA / source).glob("*.log")
    }
    assert ONE in told(tmp_path, logs).message
