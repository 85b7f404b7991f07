# SPDX-License-Identifier: Apache-2.0
"""The batches of one log in blocks, with what all checks need to know of each batch.

A batch is *loose* if its checksum is wrong, or if its offsets don't fit between its neighbours. A
loose batch is reported once; its claims are not held against the batches and index entries around
it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchTable, CheckedBatches, stacked
from segproof.reading.offset_distances import FAR, distances
from segproof.reading.rows import Bools, Int64Array, shifted

BLOCK_ROWS = 8192
BLOCK_BYTES = 32 << 20
"""A block of large batches ends with the first one that begins so far behind its start."""


class LogScan(Protocol):
    """What yields the batches of a log in order: `BatchScan`, or one that was made in pieces."""

    end_position: int
    """Where the scan stopped, once it is through."""
    error: SegproofError | None
    """Why it stopped, unless the log just ended."""

    def __iter__(self) -> Iterator[CheckedBatches]:
        """Yield the batches."""


@dataclass(slots=True)
class Block:
    """Some batches of a log in file order, with what is derived for all checks."""

    table: BatchTable
    crc_valid: Bools
    summaries: NDArray[np.void] | None
    errors: dict[int, SegproofError]
    end_position: int
    """Where the batch behind the last row begins."""
    first: Int64Array
    """Distance of each base offset from the segment's. A compressed message of magic 0 or 1 does
    not say its base offset: here it has the offset that follows the batch before it."""
    last: Int64Array
    """Distance of each last offset, of loose batches bounded by the following batch."""
    before: Int64Array
    """The largest `last` of all earlier batches; -1 for the first batch."""
    reach: Int64Array
    """The largest `last` up to and including the row."""
    is_loose: Bools
    is_doubtful: Bools
    """Whether the batch or the one before it is loose, so that its first offset is uncertain."""
    stored_first: Int64Array
    """Distance of each base offset as stored."""
    stored_last: Int64Array
    """Distance of each last offset as stored."""
    carried: "_Carried"

    def is_gap(self) -> Bools:
        """Return which batches begin behind offsets that are missing."""
        return (self.first > self.before + 1) & ~self.is_loose & (self.first < FAR)

    def rows(self, start: int, end: int) -> "Block":
        """Return the batches [start, end), for checks that read these columns only."""
        return replace(
            self,
            table=self.table[start:end],
            crc_valid=self.crc_valid[start:end],
            first=self.first[start:end],
            before=self.before[start:end],
            is_loose=self.is_loose[start:end],
        )


class _Carried(NamedTuple):
    """What the rows of a block need of the row before them."""

    reach: int = -1
    is_loose: bool = False
    """Whether it claims offsets of the following row."""
    is_doubtful: bool = False
    """Whether it is loose for any reason."""


def blocks_of(scan: LogScan, segment: Segment) -> Iterator[Block]:
    """Yield the batches of a scan in blocks; each row knows the row behind it.

    The batches alone decide where a block ends, however the scan reads them.
    """
    waiting: list[CheckedBatches] = []
    rows, carried = 0, _Carried()
    for checked in scan:
        waiting.append(checked)
        rows += len(checked.table)
        span = int(checked.table["position"][-1] - waiting[0].table["position"][0])
        if rows <= BLOCK_ROWS and span < BLOCK_BYTES:
            continue
        joined, start = _joined(waiting), 0
        while (end := _block_end(joined.table, start)) < rows:
            block = _block(rows_of(joined, start, end + 1), segment, carried, end - start)
            carried, start = block.carried, end
            yield block
        waiting = [rows_of(joined, start, rows)]
        rows -= start
    if rows:
        yield _block(_joined(waiting), segment, carried, rows)


def _block_end(table: BatchTable, start: int) -> int:
    """Return behind which row the block ends that begins with row `start`."""
    positions = table["position"]
    end = int(np.searchsorted(positions, positions[start] + BLOCK_BYTES))
    return min(end, start + BLOCK_ROWS)


def _joined(parts: list[CheckedBatches]) -> CheckedBatches:
    if len(parts) == 1:
        return parts[0]
    errors: dict[int, SegproofError] = {}
    tables, row = [], 0
    for part in parts:
        errors.update({row + at: error for at, error in part.errors.items()})
        tables.append(part.table)
        row += len(part.table)
    summaries = [part.summaries for part in parts if part.summaries is not None]
    return CheckedBatches(
        stacked(tables),
        np.concatenate([part.crc_valid for part in parts]),
        stacked(summaries) if summaries else None,
        errors,
    )


def rows_of(whole: CheckedBatches, start: int, end: int) -> CheckedBatches:
    """Return the batches [start, end) of some, as views of the same arrays."""
    return CheckedBatches(
        whole.table[start:end],
        whole.crc_valid[start:end],
        None if whole.summaries is None else whole.summaries[start:end],
        {row - start: error for row, error in whole.errors.items() if start <= row < end},
    )


def _block(all_rows: CheckedBatches, segment: Segment, carried: _Carried, count: int) -> Block:
    """Derive what the checks need of the first `count` rows; a row behind them is looked at."""
    table = all_rows.table
    base = distances(table["base_offset"], segment.base_offset)
    last = distances(table["last_offset"], segment.base_offset)
    known, reach = len(table), carried.reach
    following = np.full(known, FAR, np.int64)
    following[:-1] = base[1:]
    before_raw = shifted(last, reach)
    is_loose = ~all_rows.crc_valid | (last < base)
    # Of two batches that claim the same offsets either may be wrong.
    is_outlier = (last >= following) & (following > before_raw) & (following < FAR)
    is_loose |= is_outlier
    is_loose[1:] |= is_outlier[:-1]
    is_loose[0] |= carried.is_loose
    # What a loose batch may hold ends before the following one begins, where that one can be right.
    ceiling = np.where(following > before_raw, following - 1, FAR)
    claimed = np.where(last < FAR, last, base)
    bounded = np.where(is_loose, np.minimum(claimed, ceiling), last)[:count]
    up_to = np.maximum(np.maximum.accumulate(bounded), reach)
    before = shifted(up_to, reach)
    is_doubtful = is_loose.copy()
    is_doubtful[1:] |= is_loose[:-1]
    is_doubtful[0] |= carried.is_doubtful
    is_wrapper = (table["record_count"][:count] < 0) & (table["magic"][:count] < 2)
    errors = {row: error for row, error in all_rows.errors.items() if row < count}
    summaries = all_rows.summaries
    table = table[:count]
    return Block(
        table,
        all_rows.crc_valid[:count],
        None if summaries is None else summaries[:count],
        errors,
        int(table["position"][-1] + table["size_bytes"][-1]),
        np.where(is_wrapper, before + 1, base[:count]),
        bounded,
        before,
        up_to,
        is_loose[:count],
        is_doubtful[:count],
        base[:count],
        last[:count],
        _Carried(int(up_to[-1]), bool(is_outlier[count - 1]), bool(is_loose[count - 1])),
    )
