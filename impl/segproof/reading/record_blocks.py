# SPDX-License-Identifier: Apache-2.0
"""The records of a log as columns: those of neighbouring batches together, for `dump` and tables.

The bytes whose checksums a scan has made are decoded where they lie, so a byte is read once, and no
record shows what was not checked. What cannot be decoded so (magic 0 and 1, compressed, large or
damaged batches) is left to the caller, who reads such a batch by itself: `blocks_of_batch`.

Upstream: Kafka 4.3.1: DefaultRecordBatch, DefaultRecord.
Laws: BATCH-8 to BATCH-11, BATCH-16.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from segproof.kafka.batch_table import BATCH_DTYPE, BatchTable, HeldBytes
from segproof.kafka.record import RecordColumns
from segproof.kafka.record_batch import RecordBatch
from segproof.kernels import records as kernels
from segproof.layouts.kafka import BATCH_HEADER_BYTES

ROWS_AT_ONCE = 1 << 15
"""So many records share a block, unless one batch has more."""
BYTES_AT_ONCE = 4 << 20
"""So many bytes of several blocks are joined, or `ROWS_AT_ONCE` records."""
OWN_ROWS, OWN_BYTES = 1 << 11, 1 << 18
"""A block with so many records or bytes is joined to no other: that copies it."""
PLAIN_BATCH_BYTES = 1 << 20
"""A larger batch is read by itself."""
_MIN_RECORD_BYTES = 7
_SEQUENCES = np.int64(1 << 31)

Rows = NDArray[np.int64]
Other = TypeVar("Other")


class RecordBlock(NamedTuple):
    """All records of some batches, or some records of one."""

    table: BatchTable
    """The headers of the batches."""
    crc_valid: NDArray[np.bool_]
    counts: Rows
    """How many of the records are in each batch."""
    columns: RecordColumns

    def chosen(self, is_chosen: NDArray[np.bool_]) -> "RecordBlock":
        """Return some of the records, and the batches that have one of them."""
        of_batch = np.repeat(np.arange(len(self.counts)), self.counts)
        counts = np.bincount(of_batch[is_chosen], minlength=len(self.counts))
        has_some = counts > 0
        columns = self.columns.rows(is_chosen)
        return RecordBlock(
            self.table[has_some], self.crc_valid[has_some], counts[has_some], columns
        )

    def first(self, count: int) -> "RecordBlock":
        """Return the first records, at least one, and the batches up to the last of them."""
        ends = np.cumsum(self.counts)
        if not len(ends) or count > ends[-1]:
            return self
        end = int(np.searchsorted(ends, count)) + 1
        counts = self.counts[:end].copy()
        counts[-1] -= ends[end - 1] - count
        columns = self.columns.rows(slice(count))
        return RecordBlock(self.table[:end], self.crc_valid[:end], counts, columns)


def record_blocks(
    table: BatchTable,
    crc_valid: NDArray[np.bool_],
    held: HeldBytes | None,
    is_read: NDArray[np.bool_],
    limit: int | None = None,
) -> Iterator[RecordBlock | int]:
    """Yield the records of the batches that are read, and the rows of all others, in their order.

    Those of a block are sound; what else is wrong with a batch is found by who reads it by itself.
    A block shares its bytes with the scan that has read them. A batch above `limit` is not decoded.
    """
    most = PLAIN_BATCH_BYTES if limit is None else min(PLAIN_BATCH_BYTES, limit)
    is_plain = is_read & _is_plain(table, most)
    if held is None:
        is_plain[:] = False
    counts = np.where(is_plain, table["record_count"], 0).astype(np.int64)
    before = np.concatenate(([0], np.cumsum(counts)))
    row = 0
    for stop in (*np.flatnonzero(~is_plain).tolist(), len(table)):
        while row < stop:
            assert held is not None
            reach = int(np.searchsorted(before, before[row] + ROWS_AT_ONCE, "right")) - 1
            end = min(max(reach, row + 1), stop)
            block = _decoded(held, table[row:end], crc_valid[row:end], counts[row:end])
            if len(block.table):
                yield block
            row += len(block.table)
            if row < end:
                yield row
                row += 1
        if row < len(table):
            yield row
            row += 1


def blocks_of_batch(
    batch: RecordBatch, table: BatchTable, crc_valid: NDArray[np.bool_], limit: int | None = None
) -> Iterator[RecordBlock]:
    """Yield the records of a batch that is read by itself; `table` has its one header.

    Raises: what ends them, as `RecordBatch.records`.
    """
    if batch.magic == 2 and batch.attributes & 7 and (batch.record_count or 0) <= ROWS_AT_ONCE:
        # Without the first of two passes, which is for those that come in several blocks.
        blocks = iter([batch.record_columns(limit=limit)])
    else:
        blocks = batch.record_blocks(ROWS_AT_ONCE, limit=limit)
    for columns in blocks:
        if len(columns):
            yield RecordBlock(table, crc_valid, np.array([len(columns)]), columns)


def _is_plain(table: BatchTable, most_bytes: int) -> NDArray[np.bool_]:
    """Return which batches can be decoded where they are, with others."""
    sizes, counts = table["size_bytes"], table["record_count"]
    is_plain: NDArray[np.bool_] = (table["magic"] == 2) & (table["attributes"] & 7 == 0)
    is_plain &= (sizes >= BATCH_HEADER_BYTES) & (sizes <= most_bytes)
    is_plain &= (counts >= 0) & (counts <= (sizes - BATCH_HEADER_BYTES) // _MIN_RECORD_BYTES)
    return is_plain


def _decoded(
    held: HeldBytes, table: BatchTable, crc_valid: NDArray[np.bool_], counts: Rows
) -> RecordBlock:
    """Return the records of neighbouring batches before the first that is damaged.

    Also before one that has a record below its base offset: its sequence is counted back.
    """
    first = int(table["position"][0])
    end = int(table["position"][-1] + table["size_bytes"][-1])
    data = held.data[first - held.start : end - held.start]
    total = int(counts.sum())
    rows = np.empty((kernels.RECORD_ROW, total), np.int64)
    places = np.empty((len(table), kernels.BATCH_ROW), np.int64)
    places[:, 0] = table["position"] - first
    places[:, 1] = table["size_bytes"]
    kernels.read_batches.announce(total)
    done, filled = kernels.read_batches(
        data, places.reshape(-1).data, len(table), total, rows.reshape(-1).data
    )
    below = np.flatnonzero(rows[1, :filled] < 0)
    if len(below):
        ends = np.cumsum(counts[:done])
        done = int(np.searchsorted(ends, below[0], "right"))
        filled = int(ends[done - 1]) if done else 0
    columns = _columns(data, rows[:, :filled], table[:done], counts[:done])
    return RecordBlock(table[:done], crc_valid[:done], counts[:done], columns)


def _columns(data: memoryview, rows: Rows, table: BatchTable, counts: Rows) -> RecordColumns:
    """Return decoded records with what their batches say worked in, as `RecordBatch` does it."""

    def of_batch(name: str) -> Rows:
        return np.repeat(table[name].astype(np.int64), counts)

    is_append = np.repeat(table["attributes"] & 8 != 0, counts)
    timestamps = rows[0] + of_batch("base_timestamp")
    if is_append.any():
        timestamps = np.where(is_append, of_batch("max_timestamp"), timestamps)
    base = of_batch("base_sequence")
    sequences = np.where(base < 0, np.int64(-1), (rows[1] + base) % _SEQUENCES)
    return RecordColumns(
        data, rows[1] + of_batch("base_offset"), timestamps, sequences, rows[2], rows[3],
        rows[4], rows[5], rows[6], rows[7],
    )  # fmt: skip


_POSITIONS = ("key_positions", "value_positions", "header_positions")
_OTHERS = (
    "offsets", "timestamps", "sequences", "key_lengths", "value_lengths", "header_counts",
)  # fmt: skip


def gathered(pieces: Iterable[RecordBlock | Other]) -> Iterator[RecordBlock | Other]:
    """Yield blocks of bounded size with the records of the given ones, and all else in its place.

    A large block is yielded as it is, so it may share its bytes with what has read them.
    """
    kept: list[RecordBlock] = []
    rows = size_bytes = 0
    for piece in pieces:
        is_own = not isinstance(piece, RecordBlock) or _is_large(piece)
        if isinstance(piece, RecordBlock) and not is_own:
            kept.append(_copied(piece))
            rows += len(piece.columns)
            size_bytes += len(piece.columns.data)
        if kept and (is_own or rows >= ROWS_AT_ONCE or size_bytes >= BYTES_AT_ONCE):
            yield joined(kept)
            kept, rows, size_bytes = [], 0, 0
        if is_own:
            yield piece
    if kept:
        yield joined(kept)


def _is_large(block: RecordBlock) -> bool:
    return len(block.columns) >= OWN_ROWS or len(block.columns.data) >= OWN_BYTES


def _copied(block: RecordBlock) -> RecordBlock:
    """Return a block whose bytes stay when the log is read on."""
    columns = block.columns
    return block._replace(columns=replace(columns, data=memoryview(bytes(columns.data))))


def joined(blocks: Sequence[RecordBlock]) -> RecordBlock:
    """Return the records of several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    parts = [block.columns for block in blocks]
    starts = np.cumsum([0, *(len(part.data) for part in parts[:-1])])
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _OTHERS}
    for name in _POSITIONS:
        shifted = [getattr(part, name) + start for part, start in zip(parts, starts, strict=True)]
        columns[name] = np.concatenate(shifted)
    data = memoryview(b"".join(part.data for part in parts))
    # numpy would compare the fields of each table with those of the next.
    table = np.frombuffer(b"".join(block.table.tobytes() for block in blocks), BATCH_DTYPE)
    return RecordBlock(
        table,
        np.concatenate([block.crc_valid for block in blocks]),
        np.concatenate([block.counts for block in blocks]),
        RecordColumns(data, **columns),
    )


class HeaderPlaces(NamedTuple):
    """Where the headers of all records lie, one behind the other; length -1 means null."""

    key_positions: Rows
    key_lengths: Rows
    value_positions: Rows
    value_lengths: Rows


def header_places(columns: RecordColumns) -> HeaderPlaces:
    """Return where the headers of records lie that were read; such a record has sound ones."""
    total = int(columns.header_counts.sum())
    has_some = np.flatnonzero(columns.header_counts)
    records = np.empty((len(has_some), 2), np.int64)
    records[:, 0] = columns.header_positions[has_some]
    records[:, 1] = columns.header_counts[has_some]
    rows = np.empty((total, kernels.HEADER_ROW), np.int64)
    kernels.read_headers.announce(total)
    found = kernels.read_headers(
        columns.data, len(columns.data), records.reshape(-1).data, len(records), total,
        rows.reshape(-1).data,
    )  # fmt: skip
    assert found == total
    return HeaderPlaces(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3])
