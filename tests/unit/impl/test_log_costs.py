# SPDX-License-Identifier: Apache-2.0
"""What a file controls must not cost the square of its size: many epochs, many transactions.

The limits are ten times what is needed, and a tenth of what the square took.
"""

import time
from pathlib import Path

from segproof.kafka import LeaderEpochFileCache
from segproof.kafka.producer_snapshot import ProducerStateEntry
from segproof.kafka.producer_state import CompletedTxn, ProducerStateManager

SECONDS = 6


def test_a_checkpoint_of_many_epochs(tmp_path: Path) -> None:
    """Each entry was a new tuple of all before it: 37 seconds for 80000, without end for more."""
    count = 100_000
    file = tmp_path / "leader-epoch-checkpoint"
    lines = "".join(f"{epoch} {epoch}\n" for epoch in range(count))
    file.write_text(f"0\n{count}\n{lines}")
    begin = time.monotonic()
    assert len(LeaderEpochFileCache.open(file)) == count
    assert time.monotonic() - begin < SECONDS


def test_many_open_transactions(tmp_path: Path) -> None:
    """The earliest of all was looked for whenever one began or ended."""
    count = 30_000
    state = ProducerStateManager.open(tmp_path)
    begin = time.monotonic()
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
    assert time.monotonic() - begin < SECONDS
