# SPDX-License-Identifier: Apache-2.0
"""The table `records`: every record of a log, read and inflated batch by batch.

Records come as numpy arrays and one buffer; those of many batches are made one Arrow batch. Keys,
values and headers are only taken out of the buffer if their columns are asked for.

Used by: reader.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from segproof.errors import TooLargeError
from segproof.files import Files
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import RecordFile
from segproof.kafka.records import RecordColumns
from segproof_harness.reading.rows import LARGE_BATCH_BYTES
from segproof_spark.tables.columns import HEADERS_TYPE, Make, batch_of, slices_of
from segproof_spark.tables.logs import (
    batch_filter,
    is_too_old,
    opened,
    refuse_left_over,
    start_position,
)
from segproof_spark.tables.request import Request
from segproof_spark.tables.walk import Unit

__all__ = ["records"]

ROWS_AT_ONCE = 1 << 15
BYTES_AT_ONCE = 4 << 20
"""So many rows or bytes of several batches share one batch of Arrow's."""


class _Block(NamedTuple):
    """Some records of one batch."""

    batch: RecordBatch
    columns: RecordColumns


def records(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the records of a log.

    Raises: OSError; SegproofError where it cannot be read on, behind the records before.
    """
    if is_too_old(unit, request, "timestamp", files):
        return
    with opened(unit, files) as log:
        kept: list[_Block] = []
        rows = size_bytes = 0
        blocks = _blocks(log, unit, request, files)
        while True:
            try:
                block = next(blocks, None)
            except BaseException:
                if kept:
                    yield _made(request, unit, kept)
                raise
            if block is not None:
                kept.append(block)
                rows += len(block.columns)
                size_bytes += len(block.columns.data)
            if kept and (block is None or rows >= ROWS_AT_ONCE or size_bytes >= BYTES_AT_ONCE):
                yield _made(request, unit, kept)
                kept, rows, size_bytes = [], 0, 0
            if block is None:
                return


def _blocks(log: RecordFile, unit: Unit, request: Request, files: Files) -> Iterator[_Block]:
    may_pass = batch_filter(request)
    largest = max(LARGE_BATCH_BYTES, request.limit_bytes)
    end = start_position(log, unit, request, files)
    for batch in log.batches(end):
        end = batch.position + batch.size_bytes
        if not may_pass(batch):
            continue
        if batch.size_bytes > largest:
            raise TooLargeError(
                f"a batch of {batch.size_bytes} bytes is not read into memory",
                path=unit.path,
                position=batch.position,
                hint="the option limit_bytes raises the limit",
            )
        for columns in batch.record_blocks(ROWS_AT_ONCE, limit=request.limit_bytes):
            yield _Block(batch, columns)
    refuse_left_over(log, end)


def _made(request: Request, unit: Unit, blocks: list[_Block]) -> Any:
    """Return one batch of Arrow's with the records of all blocks."""
    counts = np.array([len(block.columns) for block in blocks])
    parts = [block.columns for block in blocks]

    def joined(name: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(part, name) for part in parts])

    def of_batch(name: str) -> Make:
        return lambda: np.repeat([getattr(block.batch, name) for block in blocks], counts)

    def sizes(name: str) -> Make:
        def make() -> Any:
            lengths = joined(name)
            return pa.array(lengths, mask=lengths < 0)

        return make

    makers: dict[str, Make] = {
        "batch_position": of_batch("position"),
        "producer_id": of_batch("producer_id"),
        "producer_epoch": of_batch("producer_epoch"),
        "is_control": of_batch("is_control"),
        "offset": lambda: joined("offsets"),
        "timestamp": lambda: joined("timestamps"),
        "sequence": lambda: joined("sequences"),
        "key_size": sizes("key_lengths"),
        "value_size": sizes("value_lengths"),
        "key": lambda: _payloads(parts, "key"),
        "value": lambda: _payloads(parts, "value"),
        "headers": lambda: _headers(parts),
    }
    return batch_of(request, unit, int(counts.sum()), makers)


def _payloads(parts: list[RecordColumns], name: str) -> Any:
    """Return the keys or the values of all records, out of one buffer."""
    positions = [getattr(part, f"{name}_positions") for part in parts]
    lengths = [getattr(part, f"{name}_lengths") for part in parts]
    if len(parts) == 1:
        return slices_of(parts[0].data, positions[0], lengths[0])
    sizes = [len(part.data) for part in parts]
    starts = np.cumsum([0, *sizes[:-1]])
    shifted = [one + start for one, start in zip(positions, starts, strict=True)]
    data = b"".join(part.data for part in parts)
    return slices_of(data, np.concatenate(shifted), np.concatenate(lengths))


def _headers(parts: list[RecordColumns]) -> Any:
    """Return the headers of all records; only records that have some take a step each."""
    counts = np.concatenate([part.header_counts for part in parts])
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    keys: list[str] = []
    values: list[bytes | None] = []
    for part in parts:
        for row in np.flatnonzero(part.header_counts).tolist():
            for header in part.headers(row):
                keys.append(header.key)
                values.append(header.value)
    pairs = pa.StructArray.from_arrays(
        [pa.array(keys, pa.string()), pa.array(values, pa.binary())], ["key", "value"]
    )
    return pa.ListArray.from_arrays(pa.array(ends), pairs).cast(HEADERS_TYPE)
