# SPDX-License-Identifier: Apache-2.0
"""The fields of a batch as one flat row, for `dump` and for the tables.

A field that cannot be read is None, so a damaged batch still has a row. A large batch has one too,
without being taken into memory.
"""

from collections.abc import Container, Iterator
from typing import Any

from segproof.checksums import crc32, crc32c
from segproof.errors import SegproofError, TooLargeError
from segproof.files import File
from segproof.kafka.record_batch import RecordBatch

Row = dict[str, Any]
Errors = type[Exception] | tuple[type[Exception], ...]

BATCH_FIELDS = {
    "base_offset": "base_offset",
    "last_offset": "last_offset",
    "position": "position",
    "size": "size_bytes",
    "magic": "magic",
    "compression": "compression",
    "timestamp_type": "timestamp_type",
    "max_timestamp": "max_timestamp",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "base_sequence": "base_sequence",
    "is_transactional": "is_transactional",
    "is_control": "is_control",
    "crc_valid": "is_valid",
    "record_count": "record_count",
    "partition_leader_epoch": "partition_leader_epoch",
}
"""The fields of a batch's row, and what the model and the implementation call them."""
LARGE_BATCH_BYTES = 16 << 20
"""Above it a batch is not taken into memory as a whole; Kafka's default limit is 1 MiB."""
HIGHER = "to see it, give a higher limit: --limit-bytes"


def batch_row(
    batch: Any,
    names: Container[str] = frozenset(BATCH_FIELDS),
    unreadable: Errors = SegproofError,
) -> Row:
    """Return the wanted fields of a batch; None for what cannot be read.

    A message of magic 0 or 1 does not store its count: it is counted. Another package's batch has
    errors of its own: `unreadable`.
    """
    fields = {name: each for name, each in BATCH_FIELDS.items() if name in names}
    row = {name: field_of(batch, each, unreadable) for name, each in fields.items()}
    if batch.is_legacy and "record_count" in row:
        row["record_count"] = _count(batch, unreadable)
    return row


def field_of(batch: Any, attribute: str, unreadable: Errors = SegproofError) -> Any:
    """Return a field of a batch, or None if it cannot be read."""
    try:
        value = getattr(batch, attribute)
        return value() if callable(value) else value
    except unreadable:
        return None


def _count(batch: Any, unreadable: Errors) -> int | None:
    try:
        if hasattr(batch, "record_blocks"):
            return sum(map(len, batch.record_blocks()))
        return sum(1 for _ in batch.records())
    except unreadable:
        return None


def batch_to_show(batch: RecordBatch, source: File, limit: int | None = None) -> Any:
    """Return a batch, or what stands for one that is too large to be read into memory."""
    large = batch.size_bytes > (limit or LARGE_BATCH_BYTES)
    return _LargeBatch(batch, source) if large else batch


class _LargeBatch:
    """A batch that is not taken into memory: its checksum is computed in pieces."""

    def __init__(self, batch: RecordBatch, source: File) -> None:
        self._batch = batch
        self._source = source

    def __getattr__(self, name: str) -> Any:
        if name == "base_offset" and self._batch.is_legacy:
            raise self._too_large()
        return getattr(self._batch, name)

    def is_valid(self) -> bool:
        """Return whether the checksum is right."""
        batch = self._batch
        checksum, start = (crc32, 16) if batch.is_legacy else (crc32c, 21)
        computed = 0
        for at in range(start, batch.size_bytes, LARGE_BATCH_BYTES):
            size = min(LARGE_BATCH_BYTES, batch.size_bytes - at)
            computed = checksum(self._source.pread(size, batch.position + at), computed)
        return computed == batch.crc

    def record_blocks(self) -> Iterator[Any]:
        """Refuse."""
        raise self._too_large()

    def _too_large(self) -> TooLargeError:
        return TooLargeError(
            f"a batch of {self._batch.size_bytes} bytes is not read into memory",
            path=self._source.path,
            position=self._batch.position,
            hint=HIGHER,
        )
