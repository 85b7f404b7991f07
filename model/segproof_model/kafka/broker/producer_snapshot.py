# SPDX-License-Identifier: Apache-2.0
"""The producer snapshot: what a partition knows of its producers, as a `.snapshot` file keeps it.

Upstream: Kafka 4.4.0, ProducerStateManager.readSnapshot and writeSnapshot, ProducerStateEntry,
    BatchMetadata.
Layout: int16 version 1, uint32 CRC-32C of all bytes from 6 to the end of the file, int32 count, and
    per entry 46 bytes: int64 producer id, int16 epoch, int32 last sequence, int64 last offset,
    int32 offset delta, int64 timestamp, int32 coordinator epoch, int64 first offset of the open
    transaction (-1: none).
Laws: PROD-1 to PROD-5, PROD-7.
Not covered: numbers that the fields don't hold.
"""

from collections.abc import Iterable
from typing import NamedTuple

from segproof_model.kafka.format.compression import crc32c
from segproof_model.kafka.format.record import NO_SEQUENCE, decrement_sequence
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import int32_at, int32_bytes, int64_at, int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

NO_PRODUCER_EPOCH = -1
MAX_BATCHES = 5
VERSION, HEADER_BYTES, ENTRY_BYTES = 1, 10, 46


class BatchMetadata(NamedTuple):
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


class ProducerStateEntry(NamedTuple):
    """What is known of one producer.

    >>> entry = ProducerStateEntry(7).with_batch(0, BatchMetadata(4, 24, 4, 1000))
    >>> entry.last_seq, entry.last_offset, entry.producer_epoch, entry.last_timestamp
    (4, 24, 0, 1000)
    """

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
        return self.batch_metadata[-1].last_seq if self.batch_metadata else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The offset of the last record; -1 without batches (PROD-5)."""
        return self.batch_metadata[-1].last_offset if self.batch_metadata else -1

    @property
    def last_offset_delta(self) -> int:
        """Last offset - first offset of the last batch; 0 without batches (PROD-5)."""
        return self.batch_metadata[-1].offset_delta if self.batch_metadata else 0

    def find_duplicate_batch(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the remembered batch with the same epoch and sequence numbers, or None."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        sequences = batch.base_sequence, batch.last_sequence
        same = (one for one in self.batch_metadata if (one.first_seq, one.last_seq) == sequences)
        return next(same, None)

    def with_epoch(self, producer_epoch: int) -> "ProducerStateEntry":
        """Return the entry in that epoch; a change of epoch forgets the batches (PROD-7)."""
        if producer_epoch == self.producer_epoch:
            return self
        return self._replace(producer_epoch=producer_epoch, batch_metadata=())

    def with_batch(self, producer_epoch: int, batch: BatchMetadata) -> "ProducerStateEntry":
        """Return the entry after a batch of that epoch (PROD-7)."""
        entry = self.with_epoch(producer_epoch)
        batches = (*entry.batch_metadata, batch)[-MAX_BATCHES:]
        return entry._replace(batch_metadata=batches, last_timestamp=batch.timestamp)

    def updated(self, later: "ProducerStateEntry") -> "ProducerStateEntry":
        """Return this entry joined with one of later batches."""
        entry = self.with_epoch(later.producer_epoch)
        batches = (*entry.batch_metadata, *later.batch_metadata)[-MAX_BATCHES:]
        return later._replace(batch_metadata=batches)


def read_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Return the entries in the order of the file (PROD-1 to PROD-3).

    >>> read_snapshot(write_snapshot([ProducerStateEntry(7)])) == [ProducerStateEntry(7)]
    True
    """
    return [read_entry(stored) for stored in stored_entries(data)]


def stored_entries(data: bytes) -> list[bytes]:
    """Return the bytes of each entry.

    A wrong version, too few bytes, a negative count or a wrong checksum raise corrupt-snapshot.
    Bytes behind the last entry are not read, but the checksum covers them (PROD-2).

    >>> stored_entries(bytes.fromhex("000148674bc700000000"))
    []
    """
    if len(data) < HEADER_BYTES or int.from_bytes(data[:2], "big") != VERSION:
        refuse(ErrorKind.CORRUPT_SNAPSHOT)
    count = int32_at(data, 6)
    if count < 0 or HEADER_BYTES + ENTRY_BYTES * count > len(data):
        refuse(ErrorKind.CORRUPT_SNAPSHOT)
    if int.from_bytes(data[2:6], "big") != crc32c(data[6:]):
        refuse(ErrorKind.CORRUPT_SNAPSHOT)
    starts = range(HEADER_BYTES, HEADER_BYTES + ENTRY_BYTES * count, ENTRY_BYTES)
    return [data[start : start + ENTRY_BYTES] for start in starts]


def read_entry(data: bytes) -> ProducerStateEntry:
    """Return a stored entry; with a negative last offset it has no batch (PROD-5)."""
    batch, first_offset = read_batch_metadata(data), int64_at(data, 38)
    return ProducerStateEntry(
        producer_id=int64_at(data, 0),
        producer_epoch=int.from_bytes(data[8:10], "big", signed=True),
        coordinator_epoch=int32_at(data, 34),
        last_timestamp=batch.timestamp,
        current_txn_first_offset=first_offset if first_offset >= 0 else None,
        batch_metadata=(batch,) if batch.last_offset >= 0 else (),
    )


def read_batch_metadata(data: bytes) -> BatchMetadata:
    """Return what a stored entry says of the producer's last batch."""
    return BatchMetadata(
        int32_at(data, 10), int64_at(data, 14), int32_at(data, 22), int64_at(data, 26)
    )


def write_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return a snapshot with the entries in this order (PROD-1, PROD-5).

    >>> write_snapshot([]).hex()
    '000148674bc700000000'
    """
    stored = [_write_entry(entry) for entry in entries]
    checked = int32_bytes(len(stored)) + b"".join(stored)
    return VERSION.to_bytes(2, "big") + crc32c(checked).to_bytes(4, "big") + checked


def _write_entry(entry: ProducerStateEntry) -> bytes:
    first_offset = entry.current_txn_first_offset
    return (
        int64_bytes(entry.producer_id)
        + entry.producer_epoch.to_bytes(2, "big", signed=True)
        + int32_bytes(entry.last_seq)
        + int64_bytes(entry.last_offset)
        + int32_bytes(entry.last_offset_delta)
        + int64_bytes(entry.last_timestamp)
        + int32_bytes(entry.coordinator_epoch)
        + int64_bytes(-1 if first_offset is None else first_offset)
    )
