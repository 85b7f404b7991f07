# SPDX-License-Identifier: Apache-2.0
"""A partition is saved beside a log that cannot be opened."""

from pathlib import Path

import pytest

from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import salvage
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.rows import paired


@pytest.mark.checks("BATCH-3")
def test_a_batch_is_put_back_beside_a_log_that_is_a_folder(tmp_path: Path) -> None:
    """The contents of all logs are compared then; the salvage ended at the folder."""
    partition = copied_partition("plain", tmp_path / "data")
    log, other = partition / name_of(60, ".log"), partition / name_of(342, ".log")
    position = int(read_batch_headers(log.read_bytes()).table["position"][3])
    with log.open("r+b") as file:
        file.seek(position)
        file.write((1 << 40).to_bytes(8, "big"))
    other.unlink()
    other.mkdir()
    (told,) = salvage(partition, tmp_path / "out")
    assert 1 == told.restored_batches
    assert [str(other)] == [one.partition(": ")[0] for one in told.left_out]


@pytest.mark.checks("DISK-1")
@pytest.mark.parametrize(
    ("scenario", "ending"),
    paired(
        ["compacted", "plain", "txn-a"],
        [".index", ".timeindex", ".txnindex", ".snapshot", "checkpoint", "metadata"],
    ),
)
def test_files_beside_logs_that_are_folders(scenario: str, ending: str, tmp_path: Path) -> None:
    """An index that was a folder ended the salvage of a log with a gap before the next one."""
    partition = copied_partition(scenario, tmp_path / "data")
    (whole,) = salvage(partition, tmp_path / "whole")
    for path in [path for path in partition.iterdir() if path.name.endswith(ending)]:
        path.unlink()
        path.mkdir()
    (told,) = salvage(partition, tmp_path / "out")
    assert (whole.batches, whole.records) == (told.batches, told.records)
    assert (0, False) == (told.lost_offsets, told.are_more_lost)
