# SPDX-License-Identifier: Apache-2.0
"""The fields of a batch as one flat row, for `dump` and for the tables.

A field that cannot be read is None, so a damaged batch still has a row. A large batch has one too,
without being taken into memory.
"""

from collections.abc import Container
from typing import Any

from segproof.errors import SegproofError
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


def batch_to_show(batch: RecordBatch, limit: int | None = None) -> RecordBatch:
    """Return a batch that refuses to be taken into memory where it is too large for that.

    Its checksum is made in pieces, whatever its size.
    """
    most = limit or LARGE_BATCH_BYTES
    if batch.size_bytes > most:
        batch.limit = most
    return batch
