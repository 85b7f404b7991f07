# SPDX-License-Identifier: Apache-2.0
"""Producer state and snapshots: golden bytes, real directories, files that fail, both sides."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import EMPTY_SNAPSHOT, SNAPSHOT

from segproof.checksums import crc32c
from segproof.errors import (
    CorruptSnapshotError,
    InvalidArgumentError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
)
from segproof.kafka import (
    BatchMetadata,
    CompletedTxn,
    ProducerStateEntry,
    Record,
    TxnMetadata,
    producer_snapshot,
    write_batch,
    write_end_transaction_marker,
)
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_batch import read_batch
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segment_names import offset_of_name, segment_file_name
from segproof.kafka.segments.log_segment import LogSegment
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.files.watched_files import WatchedFiles
from segproof_harness.structures.outcomes import normalise
from segproof_model.kafka.broker import producer_snapshot as model
from segproof_model.kafka.broker.producer_state import ProducerStateManager as ModelProducers
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.language.files import Files

DATA = KAFKA
SNAPSHOTS = sorted(DATA.glob("*/*/*.snapshot"))
GOLDEN = (
    ProducerStateEntry(10, 2, 7, 555, 75, (BatchMetadata(10, 20, 5, 555),)),
    ProducerStateEntry(11, 0),
)
GOLDEN_ENTRIES = [
    model.ProducerStateEntry(10, 2, 7, 555, 75, (model.BatchMetadata(10, 20, 5, 555),)),
    model.ProducerStateEntry(11, 0),
]
"""The same in the model."""


def in_memory() -> MemoryFiles:
    """Return files with one empty directory."""
    files = MemoryFiles()
    files.make_directory("/t-0")
    return files


def write(files: MemoryFiles, name: str, data: bytes) -> None:
    """Write a file in that directory."""
    write_file(files, f"/t-0/{name}", data)


def records(offset: int, sequence: int, **more: Any) -> bytes:
    """Return a batch of one record of producer 1."""
    given = {"producer_id": 1, "producer_epoch": 0, "base_sequence": sequence, **more}
    return write_batch([Record(offset, 50, None, b"v")], base_offset=offset, **given)


@pytest.mark.checks("PROD-1", "PROD-2", "PROD-4", "PROD-5")
def test_golden_snapshots() -> None:
    """What release 3.9.0 wrote is read and written alike on both sides."""
    assert producer_snapshot.read_snapshot(SNAPSHOT) == GOLDEN
    assert producer_snapshot.write_snapshot(GOLDEN) == SNAPSHOT
    assert model.read_snapshot(SNAPSHOT) == GOLDEN_ENTRIES
    assert model.write_snapshot(GOLDEN_ENTRIES) == SNAPSHOT
    assert producer_snapshot.write_snapshot(()) == EMPTY_SNAPSHOT == model.write_snapshot(())
    with pytest.raises(CorruptSnapshotError, match="checksum"):
        producer_snapshot.read_snapshot(SNAPSHOT + b"\0")


@pytest.mark.checks("PROD-3")
def test_every_prefix_and_every_bit_of_a_snapshot() -> None:
    """No prefix of the golden snapshot, and no flipped bit, gets through."""
    for size in range(len(SNAPSHOT)):
        with pytest.raises(CorruptSnapshotError):
            producer_snapshot.read_snapshot(SNAPSHOT[:size])
    for bit in range(len(SNAPSHOT) * 8):
        flipped = bytearray(SNAPSHOT)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptSnapshotError):
            producer_snapshot.read_snapshot(flipped)


def test_entries_that_no_release_wrote() -> None:
    """A negative count, and bytes behind the entries that the checksum covers, as in 4.3.1."""
    for count in (-1, -(2**31), 2**31 - 1, 3):
        checked = struct.pack(">i", count) + SNAPSHOT[10:]
        with pytest.raises(CorruptSnapshotError):
            producer_snapshot.read_snapshot(struct.pack(">hI", 1, crc32c(checked)) + checked)
    checked = SNAPSHOT[6:] + b"more"
    longer = struct.pack(">hI", 1, crc32c(checked)) + checked
    assert GOLDEN == producer_snapshot.read_snapshot(longer)
    assert GOLDEN_ENTRIES == model.read_snapshot(longer)


@pytest.mark.checks("PROD-1")
@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_real_snapshots(path: Path) -> None:
    """Both sides read what brokers wrote, and write it again byte for byte."""
    data = path.read_bytes()
    entries = producer_snapshot.read_snapshot_file(str(path))
    expected = model.read_snapshot(data)
    assert normalise(entries) == normalise(expected)
    assert data == producer_snapshot.write_snapshot(entries)
    assert data == model.write_snapshot(expected)


def logs_of(folder: Path) -> Iterator[bytes]:
    """Yield the batches of a partition."""
    for path in sorted(folder.glob("*.log")):
        log = RecordFile.open(str(path))
        for batch in log.batches():
            yield path.read_bytes()[batch.position : batch.position + batch.size_bytes]
        log.close()


@pytest.mark.checks("PROD-14", "PROD-15")
@pytest.mark.parametrize("name", ["txn-a/txn-a-0", "unclean-before/unclean-0"])
def test_rebuilding_from_real_logs(name: str, tmp_path: Path) -> None:
    """The log of a real partition gives the map of each of its snapshots, on both sides."""
    manager = ProducerStateManager.open(tmp_path, writable=True)
    found = ProducerStateManager.open(DATA / name)
    offsets = {offset_of_name(path.name, ".snapshot") for path in (DATA / name).glob("*.snapshot")}
    assert found.latest_snapshot_offset() == max(offset for offset in offsets if offset)
    modelled = ModelProducers(Files())
    checked = 0
    for data in logs_of(DATA / name):
        batch = read_batch(data)
        completed = manager.update_producers(batch)
        manager.update_map_end_offset(batch.next_offset)
        if completed is not None:
            manager.complete_txn(completed)
        tell(modelled, data)
        if manager.map_end_offset in offsets:
            path = DATA / name / segment_file_name(manager.map_end_offset, ".snapshot")
            theirs = producer_snapshot.read_snapshot_file(str(path))
            assert kept(manager.active_producers.values()) == kept(theirs)
            assert kept(modelled.active_producers.values()) == kept(theirs)
            open_txns = [one.current_txn_first_offset for one in theirs]
            expected = sorted(first for first in open_txns if first is not None)
            assert [txn.first_offset for txn in manager.ongoing_txns] == expected
            checked += 1
    assert checked == len(offsets)


def tell(producers: ModelProducers, data: bytes) -> None:
    """Tell the model of a batch, as a recovery does."""
    batch = MemoryRecords(data).first_batch()
    completed = producers.update_producers(batch)
    producers.update_map_end_offset(batch.next_offset)
    if completed is not None:
        producers.complete_txn(completed)


def kept(entries: Any) -> list[tuple[object, ...]]:
    """Return what a snapshot keeps of the entries, by producer id."""
    return sorted(
        (
            one.producer_id, one.producer_epoch, one.coordinator_epoch, one.last_timestamp,
            one.current_txn_first_offset, one.last_seq, one.last_offset, one.last_offset_delta,
        )
        for one in entries
    )  # fmt: skip


@pytest.mark.checks("PROD-3", "PROD-13")
def test_reload_passes_over_corrupt_and_missing_snapshots() -> None:
    """The newest that can be read is loaded; what can't be read is gone, also where it went by
    itself; a file of another name is left alone."""
    files = in_memory()
    write(files, segment_file_name(3, ".snapshot"), SNAPSHOT)
    write(files, segment_file_name(5, ".snapshot"), b"")
    write(files, segment_file_name(6, ".snapshot"), SNAPSHOT[:-1])
    write(files, segment_file_name(7, ".snapshot"), SNAPSHOT)
    write(files, segment_file_name(8, ".snapshot"), SNAPSHOT)
    write(files, "9.snapshot", SNAPSHOT)
    manager = ProducerStateManager.open("/t-0", writable=True, files=files)
    files.remove(f"/t-0/{segment_file_name(7, '.snapshot')}")
    manager.truncate_and_reload(0, 7, 0)
    assert manager.map_end_offset == 3
    assert list(files.images("/t-0")) == [segment_file_name(3, ".snapshot"), "9.snapshot"]
    assert dict(manager.active_producers) == {one.producer_id: one for one in GOLDEN}
    assert manager.ongoing_txns == (TxnMetadata(10, 75),)


@pytest.mark.checks("PROD-3", "PROD-13", "PROD-15")
def test_what_releases_once_got_wrong() -> None:
    """Snapshots of 0 and 5 bytes are corrupt, no error (KAFKA-5747); the map ends behind batches
    without a producer (KAFKA-5249); a snapshot beyond the end goes also where the state ends there
    already (KAFKA-12153)."""
    files = in_memory()
    write(files, segment_file_name(5, ".snapshot"), EMPTY_SNAPSHOT)
    write(files, segment_file_name(7, ".snapshot"), b"")
    write(files, segment_file_name(8, ".snapshot"), EMPTY_SNAPSHOT[:5])
    write(files, segment_file_name(12, ".snapshot"), EMPTY_SNAPSHOT)
    manager = ProducerStateManager.open("/t-0", writable=True, files=files)
    manager.update_map_end_offset(10)
    manager.truncate_and_reload(0, 10, 0)
    assert manager.latest_snapshot_offset() == 8
    manager.truncate_and_reload(0, 9, 0)
    assert (manager.latest_snapshot_offset(), manager.map_end_offset) == (5, 5)
    segment = LogSegment.open("/t-0", 0, LogConfig(), create=True, files=files)
    segment.append(4, write_batch([Record(4, 50, None, b"v")], base_offset=0))
    segment.recover(manager)
    segment.close()
    assert manager.take_snapshot() is None
    assert manager.map_end_offset == 5
    fresh = ProducerStateManager.open("/t-0", writable=True, files=files)
    fresh.update_map_end_offset(0)
    again = LogSegment.open("/t-0", 0, LogConfig(), True, create=True, files=files)
    again.recover(fresh)
    again.close()
    assert fresh.take_snapshot() == 5


def test_a_file_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond the limit is corrupt, whatever it holds; so is a count beyond the file."""
    files = in_memory()
    write(files, "big", SNAPSHOT)
    assert producer_snapshot.read_snapshot_file("/t-0/big", files=files) == GOLDEN
    monkeypatch.setattr(producer_snapshot, "MAX_SNAPSHOT_BYTES", len(SNAPSHOT) - 1)
    with pytest.raises(CorruptSnapshotError, match="too long") as raised:
        producer_snapshot.read_snapshot_file("/t-0/big", files=files)
    assert raised.value.path == "/t-0/big"


class _FullFiles(WatchedFiles):
    """Files in memory of which every write ends after 20 bytes."""

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        if call == "pwrite":
            data, position = arguments
            handle.inner.pwrite(data[:20], position)
            raise OSError("no space left")


@pytest.mark.checks("PROD-6")
def test_a_snapshot_that_fails_changes_nothing() -> None:
    """A full disk leaves no snapshot, half or whole, and the state as it was."""
    files = _FullFiles()
    files.make_directory("/t-0")
    manager = ProducerStateManager.open("/t-0", writable=True, files=files)
    manager.load_producer_entry(GOLDEN[0])
    manager.update_map_end_offset(30)
    with pytest.raises(OSError, match="no space"):
        manager.take_snapshot()
    assert manager.latest_snapshot_offset() is None
    assert manager.last_snapshot_offset == 0
    assert files.images("/t-0") == {}


def test_a_longer_old_file_leaves_no_tail() -> None:
    """A snapshot takes the place of a file with its name: upstream would leave the old tail, which
    breaks the checksum."""
    files = in_memory()
    write(files, segment_file_name(4, ".snapshot"), SNAPSHOT)
    manager = ProducerStateManager.open("/t-0", writable=True, files=files)
    manager.update_map_end_offset(4)
    assert manager.take_snapshot() == 4
    assert files.images("/t-0") == {segment_file_name(4, ".snapshot"): EMPTY_SNAPSHOT}
    assert manager.take_snapshot() is None


@pytest.mark.checks("PROD-8", "PROD-9", "PROD-10", "PROD-11")
def test_one_transaction() -> None:
    """From the first batch over the marker to the high watermark."""
    manager = ProducerStateManager.open("/t-0", writable=True, files=in_memory())
    assert manager.update_producers(read_batch(records(5, 0, is_transactional=True))) is None
    assert manager.first_undecided_offset() == 5
    with pytest.raises(InvalidTransactionStateError):
        manager.update_producers(read_batch(records(6, 1)))
    marker = write_end_transaction_marker(
        "ABORT", offset=7, timestamp=60, producer_id=1, producer_epoch=0, coordinator_epoch=3
    )
    with pytest.raises(InvalidArgumentError, match="version"):
        manager.update_producers(read_batch(marker), "coordinator")
    completed = manager.update_producers(read_batch(marker))
    assert completed == CompletedTxn(1, 5, 7, True)
    assert manager.last_stable_offset(completed) == 8
    manager.complete_txn(completed)
    assert (manager.first_undecided_offset(), manager.first_unstable_offset()) == (None, 5)
    with pytest.raises(InvalidArgumentError, match="begins at 5"):
        manager.complete_txn(completed)
    manager.on_high_watermark_updated(7)
    assert manager.first_unstable_offset() == 5
    manager.on_high_watermark_updated(8)
    assert manager.first_unstable_offset() is None


@pytest.mark.checks("PROD-7")
def test_sequences_of_a_client() -> None:
    """An unknown producer may begin anywhere, and wraps; then only what follows is taken."""
    manager = ProducerStateManager.open("/t-0", writable=True, files=in_memory())
    for offset, sequence in enumerate((2**31 - 2, 2**31 - 1, 0, 1)):
        manager.update_producers(read_batch(records(offset, sequence)), "client")
    for sequence in (1, 3, 0):
        with pytest.raises(OutOfOrderSequenceError):
            manager.update_producers(read_batch(records(9, sequence)), "client")
    entry = manager.last_entry(1)
    assert entry is not None
    found = entry.find_duplicate_batch(read_batch(records(9, 2**31 - 1)))
    assert found == BatchMetadata(2**31 - 1, 1, 0, 50)
    with pytest.raises(OutOfOrderSequenceError):
        manager.update_producers(read_batch(records(9, 2, producer_epoch=1)), "client")
    manager.update_producers(read_batch(records(9, 0, producer_epoch=1)), "client")
    entry = manager.last_entry(1)
    assert entry is not None
    assert entry.batch_metadata == (BatchMetadata(0, 9, 0, 50),)


def test_a_first_offset_that_is_not_the_batchs() -> None:
    """The given first offset opens the transaction and counts for the offset delta."""
    manager = ProducerStateManager.open("/t-0", writable=True, files=in_memory())
    info = manager.prepare_update(1, "replication")
    info.append(read_batch(records(9, 4, is_transactional=True)), LogOffsetMetadata(7, 0, 120))
    assert info.updated_entry.current_txn_first_offset == 7
    assert info.updated_entry.last_offset_delta == 2


def test_what_cannot_be() -> None:
    """An unknown origin, a producer id of none, a range that ends before it begins."""
    manager = ProducerStateManager.open("/t-0", writable=True, files=in_memory())
    origin: Any = "elsewhere"
    with pytest.raises(InvalidArgumentError, match="origin"):
        manager.prepare_update(1, origin)
    with pytest.raises(InvalidArgumentError, match="producer id"):
        manager.update(manager.prepare_update(-1, "replication"))
    with pytest.raises(InvalidArgumentError, match="range"):
        manager.delete_snapshots_before(-1)
    with pytest.raises(InvalidArgumentError, match="does not fit"):
        producer_snapshot.write_snapshot([ProducerStateEntry(2**63)])
    with pytest.raises(FileNotFoundError):
        ProducerStateManager.open("/missing", writable=True, files=in_memory())


@pytest.mark.checks("PROD-12")
def test_expiry_on_real_files(tmp_path: Path) -> None:
    """On files of the operating system: expiry at loading, and a second opening."""
    manager = ProducerStateManager.open(tmp_path, producer_id_expiration_ms=100, writable=True)
    manager.load_producer_entry(ProducerStateEntry(1, 0, -1, 50))
    manager.load_producer_entry(ProducerStateEntry(2, 0, -1, 51))
    manager.load_producer_entry(ProducerStateEntry(3, 0, -1, 1, 7))
    manager.update_map_end_offset(9)
    assert manager.take_snapshot() == 9
    again = ProducerStateManager.open(tmp_path, producer_id_expiration_ms=100, writable=True)
    again.truncate_and_reload(0, 20, 150)
    assert set(again.active_producers) == {2, 3}
    assert again.remove_and_mark_snapshot_for_deletion(9) == 9
    assert again.remove_and_mark_snapshot_for_deletion(9) is None
    assert [path.name for path in tmp_path.iterdir()] == [
        segment_file_name(9, ".snapshot") + ".deleted"
    ]
