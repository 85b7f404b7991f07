# SPDX-License-Identifier: Apache-2.0
"""The producer snapshot: what a partition knows of its producers, as a `.snapshot` file keeps it.

Upstream: Kafka, ProducerStateManager.readSnapshot and writeSnapshot, ProducerStateEntry,
    BatchMetadata (since 0.11.0).
Layout: SNAPSHOT, then for each entry SNAPSHOT_ENTRY of layouts/kafka.py.
Laws: PROD-1 to PROD-5, PROD-7.
"""

import os
import struct
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NoReturn

from segproof.checksums import crc32c
from segproof.errors import CorruptSnapshotError, InvalidArgumentError
from segproof.files import REAL_FILES, Files
from segproof.integers import INT32_MAX
from segproof.kafka.checkpoint_file import write_atomically
from segproof.kafka.record_batch import RecordBatch
from segproof.kernels.records import decrement_sequence
from segproof.layouts.kafka import SNAPSHOT, SNAPSHOT_ENTRY

__all__ = [
    "BatchMetadata",
    "ProducerStateEntry",
    "read_snapshot",
    "read_snapshot_file",
    "write_snapshot",
    "write_snapshot_file",
]

NO_PRODUCER_EPOCH = -1
MAX_BATCHES = 5
MAX_SNAPSHOT_BYTES = INT32_MAX
"""A larger file is not read; a Java array holds no more."""
_VERSION = 1
_HEADER = SNAPSHOT.struct()
_ENTRY = SNAPSHOT_ENTRY.struct()


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """What is remembered of one batch."""

    last_seq: int
    """The sequence number of its last record."""
    last_offset: int
    """Inclusive."""
    offset_delta: int
    """Last offset - first offset."""
    timestamp: int
    """The largest timestamp of its records, in milliseconds."""

    @property
    def first_seq(self) -> int:
        """The sequence number of its first record."""
        return decrement_sequence(self.last_seq, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True)
class ProducerStateEntry:
    """What is known of one producer; a value that never changes."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    """The epoch of the coordinator that wrote the last marker; -1 before the first."""
    last_timestamp: int = -1
    """The timestamp of the last batch or marker, in milliseconds."""
    current_txn_first_offset: int | None = None
    """Where the open transaction began, if there is one."""
    batch_metadata: tuple[BatchMetadata, ...] = ()
    """The last batches of this epoch, newest last; at most 5 (PROD-7)."""

    @property
    def is_empty(self) -> bool:
        """Whether no batch is remembered."""
        return not self.batch_metadata

    @property
    def last_seq(self) -> int:
        """The sequence number of the last record; -1 without batches (PROD-5)."""
        return self.batch_metadata[-1].last_seq if self.batch_metadata else -1

    @property
    def last_offset(self) -> int:
        """The offset of the last record; -1 without batches (PROD-5)."""
        return self.batch_metadata[-1].last_offset if self.batch_metadata else -1

    @property
    def last_offset_delta(self) -> int:
        """Last offset - first offset of the last batch; 0 without batches (PROD-5)."""
        return self.batch_metadata[-1].offset_delta if self.batch_metadata else 0

    def find_duplicate_batch(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the remembered batch with the same epoch and the same sequence numbers, if any.

        Raises: what reading the batch's header raises.
        """
        if batch.producer_epoch != self.producer_epoch:
            return None
        first_seq, last_seq = batch.base_sequence, batch.last_sequence
        for known in self.batch_metadata:
            if known.last_seq == last_seq and known.first_seq == first_seq:
                return known
        return None

    def with_epoch(self, producer_epoch: int) -> "ProducerStateEntry":
        """Return the entry in that epoch; a change of epoch forgets the batches (PROD-7)."""
        if producer_epoch == self.producer_epoch:
            return self
        return replace(self, producer_epoch=producer_epoch, batch_metadata=())

    def with_batch(self, producer_epoch: int, batch: BatchMetadata) -> "ProducerStateEntry":
        """Return the entry after a batch of that epoch (PROD-7)."""
        entry = self.with_epoch(producer_epoch)
        batches = (*entry.batch_metadata, batch)[-MAX_BATCHES:]
        return replace(entry, batch_metadata=batches, last_timestamp=batch.timestamp)

    def updated(self, later: "ProducerStateEntry") -> "ProducerStateEntry":
        """Return what this entry and one with later batches are together."""
        known = self.batch_metadata if later.producer_epoch == self.producer_epoch else ()
        return replace(later, batch_metadata=(*known, *later.batch_metadata)[-MAX_BATCHES:])


def read_snapshot(data: bytes | bytearray | memoryview) -> tuple[ProducerStateEntry, ...]:
    """Return the entries in the order of the file.

    Bytes behind the last entry are not read, but the checksum covers them.
    Laws: PROD-1 to PROD-5.
    Raises: CorruptSnapshotError for a wrong version, too few bytes, a negative count or a wrong
    checksum.
    """
    data = memoryview(data)
    count = _entry_count(data[: _HEADER.size], len(data))
    _, stored, _ = _HEADER.unpack_from(data)
    computed = crc32c(data[6:])
    if stored != computed:
        _refuse("the checksum is wrong", "PROD-3", expected=computed, actual=stored)
    entries = data[_HEADER.size : _HEADER.size + count * _ENTRY.size]
    return tuple(map(_entry_of, _ENTRY.iter_unpack(entries)))


def write_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return a snapshot with the entries in this order.

    Laws: PROD-1, PROD-5.
    Raises: InvalidArgumentError for a number that its field does not hold.
    """
    try:
        stored = [_ENTRY.pack(*_numbers_of(entry)) for entry in entries]
    except struct.error as error:
        raise InvalidArgumentError(f"an entry does not fit a snapshot: {error}") from error
    checked = len(stored).to_bytes(4, "big") + b"".join(stored)
    return _HEADER.pack(_VERSION, crc32c(checked), len(stored))[:6] + checked


def read_snapshot_file(
    path: str | os.PathLike[str], *, files: Files = REAL_FILES
) -> tuple[ProducerStateEntry, ...]:
    """Return the entries of a file; nothing is read of one that can't be a snapshot.

    Raises: OSError; CorruptSnapshotError as `read_snapshot` does, and for a file of 2 GiB.
    """
    with closing(files.open(os.fspath(path))) as file:
        try:
            size = file.size()
            _entry_count(file.pread(_HEADER.size, 0), size)
            return read_snapshot(file.pread(size, 0))
        except CorruptSnapshotError as error:
            error.path = os.fspath(path)
            raise


def write_snapshot_file(
    path: str | os.PathLike[str],
    entries: Iterable[ProducerStateEntry],
    *,
    files: Files = REAL_FILES,
    syncs_directory: bool = True,
) -> None:
    """Write the entries beside, to the device, and move the file to `path`.

    So the file is whole at each moment, and after a crash at any: the old one or the new one; the
    new one for sure once the directory is synced.
    Raises: OSError; InvalidArgumentError.
    """
    write_atomically(
        files, os.fspath(path), write_snapshot(entries), syncs_directory=syncs_directory
    )


def _entry_count(header: bytes | memoryview, size: int) -> int:
    """Return how many entries a snapshot of `size` bytes has, judged by its first 10 bytes."""
    if not _HEADER.size <= size <= MAX_SNAPSHOT_BYTES or len(header) < _HEADER.size:
        _refuse("the file is too short or too long for a snapshot", "PROD-3", actual=size)
    version, _, count = _HEADER.unpack(header)
    if version != _VERSION:
        _refuse("the version is unknown", "PROD-3", expected=_VERSION, actual=version)
    needed = _HEADER.size + count * _ENTRY.size
    if count < 0 or needed > size:
        _refuse(f"the file does not hold {count} entries", "PROD-3", expected=needed, actual=size)
    return int(count)


def _entry_of(numbers: tuple[int, ...]) -> ProducerStateEntry:
    """Return what the numbers of one stored entry say; a negative last offset is no batch."""
    producer_id, producer_epoch, last_seq, last_offset, offset_delta, timestamp, *rest = numbers
    coordinator_epoch, first_offset = rest
    batch = BatchMetadata(last_seq, last_offset, offset_delta, timestamp)
    return ProducerStateEntry(
        producer_id,
        producer_epoch,
        coordinator_epoch,
        timestamp,
        first_offset if first_offset >= 0 else None,
        (batch,) if last_offset >= 0 else (),
    )


def _numbers_of(entry: ProducerStateEntry) -> tuple[int, ...]:
    """Return the numbers of a stored entry, in the order of the layout."""
    first_offset = entry.current_txn_first_offset
    return (
        entry.producer_id,
        entry.producer_epoch,
        entry.last_seq,
        entry.last_offset,
        entry.last_offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        -1 if first_offset is None else first_offset,
    )


def _refuse(message: str, law: str, *, expected: object = None, actual: object = None) -> NoReturn:
    raise CorruptSnapshotError(
        message,
        law=law,
        expected=expected,
        actual=actual,
        hint="an older snapshot and the log give the same state",
    )
