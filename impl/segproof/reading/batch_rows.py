# SPDX-License-Identifier: Apache-2.0
"""The fields of batches as flat rows and as columns, for `dump` and for the tables.

Those of many come from a table of their headers. A batch that such a table does not know whole (a
message of magic 0 or 1, a batch that is smaller than its header) is read by itself: a field that
cannot be read is None, so a damaged batch still has a row. A large batch has one too, without being
taken into memory.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.compression import COMPRESSION_NAMES
from segproof.errors import SegproofError
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable
from segproof.kafka.batch_writing import LOG_APPEND_TIME_BIT, TIMESTAMP_TYPES
from segproof.kafka.record_batch import RecordBatch

Row = dict[str, Any]
Errors = type[Exception] | tuple[type[Exception], ...]

_ATTRIBUTES = {"size": "size_bytes", "crc_valid": "is_valid"}
"""Fields that the model and the implementation call otherwise."""
LARGE_BATCH_BYTES = 16 << 20
"""Above it a batch is not taken into memory as a whole; Kafka's default limit is 1 MiB."""
HIGHER = "to see it, give a higher limit: --limit-bytes"


class Named(NamedTuple):
    """A column of names, each by its place; a place behind the last name means null."""

    places: NDArray[np.int64]
    names: tuple[str, ...]


def has_flag(table: BatchTable, bit: int) -> NDArray[np.bool_]:
    """Return which batches have a bit of their attributes that only those of magic 2 have."""
    is_set: NDArray[np.bool_] = (table["magic"] == 2) & (table["attributes"] & bit != 0)
    return is_set


def batch_columns(
    table: BatchTable, crc_valid: NDArray[np.bool_]
) -> dict[str, NDArray[Any] | Named]:
    """Return those columns of the table `batches` that are not fields of the headers' table."""
    attributes = table["attributes"]
    is_append = attributes & LOG_APPEND_TIME_BIT != 0
    return {
        "size": table["size_bytes"],
        "compression": Named(attributes & 7, COMPRESSION_NAMES),
        "timestamp_type": Named(np.where(table["magic"] == 0, 0, 1 + is_append), TIMESTAMP_TYPES),
        "is_transactional": has_flag(table, TRANSACTIONAL),
        "is_control": has_flag(table, CONTROL),
        "crc_valid": crc_valid,
    }


def batch_rows(
    table: BatchTable, crc_valid: NDArray[np.bool_], names: tuple[str, ...]
) -> Iterator[Row]:
    """Yield the rows of batches that a table of headers knows whole."""
    derived = batch_columns(table, crc_valid)
    columns = [_listed(derived[name] if name in derived else table[name]) for name in names]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _listed(column: NDArray[Any] | Named) -> list[Any]:
    if not isinstance(column, Named):
        values: list[Any] = column.tolist()
        return values
    known = len(column.names)
    return [column.names[place] if place < known else None for place in column.places.tolist()]


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
