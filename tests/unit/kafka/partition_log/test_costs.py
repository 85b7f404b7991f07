# SPDX-License-Identifier: Apache-2.0
"""What a file controls must not cost the square of its size: many epochs, many transactions.

The limits are ten times the computing time that is needed, and a tenth of what the square took.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError
from segproof.kafka import (
    CompletedTxn,
    LeaderEpochFileCache,
    LogConfig,
    LogSegment,
    Record,
    write_batch,
)
from segproof.kafka.producer_snapshot import ProducerStateEntry
from segproof.kafka.producer_state import ProducerStateManager
from segproof_harness.files.watched_files import WatchedFiles

SECONDS = 6


def test_a_checkpoint_of_many_epochs(tmp_path: Path) -> None:
    """Each entry was a new tuple of all before it: 37 seconds for 80000, without end for more."""
    count = 100_000
    file = tmp_path / "leader-epoch-checkpoint"
    lines = "".join(f"{epoch} {epoch}\n" for epoch in range(count))
    file.write_text(f"0\n{count}\n{lines}")
    begin = time.process_time()
    assert len(LeaderEpochFileCache.open(file, create=True)) == count
    assert time.process_time() - begin < SECONDS


def test_many_open_transactions(tmp_path: Path) -> None:
    """The earliest of all was looked for whenever one began or ended: 15 seconds for so many."""
    count = 10_000
    state = ProducerStateManager.open(tmp_path, writable=True)
    begin = time.process_time()
    for producer_id in range(count):
        entry = ProducerStateEntry(producer_id, current_txn_first_offset=producer_id)
        state.load_producer_entry(entry)
        assert state.first_unstable_offset() == 0
    for producer_id in range(count):
        completed = CompletedTxn(producer_id, producer_id, count + producer_id, True)
        expected = producer_id + 1 if producer_id + 1 < count else count + producer_id + 1
        assert state.last_stable_offset(completed) == expected
        state.complete_txn(completed)
    assert state.first_undecided_offset() is None
    assert state.first_unstable_offset() == 0
    assert time.process_time() - begin < SECONDS


def test_recovery_of_many_epochs_writes_them_once() -> None:
    """Each was written by itself, with all before it, and synced: 36 seconds for 2000."""
    files = CountingFiles()
    config = LogConfig()
    batches = (
        write_batch([Record(epoch, 0, None, b"")], base_offset=epoch, partition_leader_epoch=epoch)
        for epoch in range(300)
    )
    files.make_directory("/t-0")
    with LogSegment.open("/t-0", 0, config, create=True, files=files) as segment:
        segment.append_many(b"".join(batches))
        epochs = LeaderEpochFileCache.open("/t-0/leader-epoch-checkpoint", create=True, files=files)
        files.renames = 0
        segment.recover(leader_epoch_cache=epochs)
    assert [entry.epoch for entry in epochs.epoch_entries()] == list(range(300))
    reopened = LeaderEpochFileCache.open("/t-0/leader-epoch-checkpoint", create=True, files=files)
    assert reopened.epoch_entries() == epochs.epoch_entries()
    assert files.renames == 1


def test_epochs_before_a_refused_one_are_assigned(tmp_path: Path) -> None:
    """As if each had been assigned by itself."""
    file = tmp_path / "leader-epoch-checkpoint"
    epochs = LeaderEpochFileCache.open(file, create=True)
    with pytest.raises(InvalidArgumentError):
        epochs.assign_all([(1, 0), (3, 5), (4, -1), (5, 9)])
    assert epochs.epoch_entries() == [(1, 0), (3, 5)]
    assert file.read_bytes() == b"0\n2\n1 0\n3 5\n"


class CountingFiles(WatchedFiles):
    """Files that count how often one is put in the place of another."""

    renames = 0

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Count."""
        self.renames += call == "rename"
