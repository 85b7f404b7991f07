# SPDX-License-Identifier: Apache-2.0
"""The fields of a batch as one flat row, for `dump` and for the tables.

A field that cannot be read is None, so a damaged batch still has a row. A large batch has one too,
without being taken into memory.
"""

from collections.abc import Iterable
from typing import Any

from segproof.errors import SegproofError
from segproof.kafka.record_batch import RecordBatch

Row = dict[str, Any]
Errors = type[Exception] | tuple[type[Exception], ...]

_ATTRIBUTES = {"size": "size_bytes", "crc_valid": "is_valid"}
"""Fields that the model and the implementation call otherwise."""
LARGE_BATCH_BYTES = 16 << 20
"""Above it a batch is not taken into memory as a whole; Kafka's default limit is 1 MiB."""
HIGHER = "to see it, give a higher limit: --limit-bytes"


def batch_row(batch: Any, names: Iterable[str], unreadable: Errors = SegproofError) -> Row:
    """Return these fields of a batch, columns of the table `batches`; None: it cannot be read.

    A message of magic 0 or 1 does not store its count: it is counted. Another package's batch has
    errors of its own: `unreadable`.
    """
    row = {name: field_of(batch, _ATTRIBUTES.get(name, name), unreadable) for name in names}
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
