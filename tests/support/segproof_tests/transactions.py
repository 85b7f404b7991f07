# SPDX-License-Identifier: Apache-2.0
"""Batches and markers of producers, and what a salvage makes of a partition that has them."""

from pathlib import Path

from segproof.kafka.producer_snapshot import read_snapshot_file
from segproof.kafka.transaction_index import read_aborted_txns
from segproof.repair import salvage
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof_harness.laws.borders import log_files
from segproof_tests import small_logs
from segproof_tests.partition_files import aged


def plain(offset: int) -> bytes:
    """Return a batch of one record of no producer."""
    return small_logs.batch(offset, key=b"k")


def batch(offset: int, sequence: int, epoch: int = 0, producer: int = 7) -> bytes:
    """Return a batch of one record in a transaction."""
    return small_logs.batch(
        offset, key=b"k", is_transactional=True,
        producer_id=producer, producer_epoch=epoch, base_sequence=sequence,
    )  # fmt: skip


def marker(offset: int, kind: str, epoch: int = 0, producer: int = 7) -> bytes:
    """Return a marker of a producer."""
    return log_files.marker(offset, kind, producer_id=producer, producer_epoch=epoch)


def entries(folder: Path | str) -> list[tuple[int, ...]]:
    """Return the entries of all transaction indexes of a partition."""
    paths = sorted(Path(folder).glob("*.txnindex"))
    return [tuple(one.tolist()) for path in paths for one in read_aborted_txns(path.read_bytes())]


def open_in(folder: Path | str) -> dict[str, dict[int, int]]:
    """Return the begins of open transactions by producer, of each snapshot of a partition."""
    return {
        path.name: {
            one.producer_id: one.current_txn_first_offset
            for one in read_snapshot_file(path)
            if one.current_txn_first_offset is not None
        }
        for path in sorted(Path(folder).glob("*.snapshot"))
    }


def saved(folder: Path, out: Path) -> tuple[SalvagedPartition, str]:
    """Return what the salvage says of a partition, and where it was saved."""
    (told,) = salvage(aged(folder), out)
    assert told.target is not None
    return told, told.target
