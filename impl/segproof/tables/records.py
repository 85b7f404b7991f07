# SPDX-License-Identifier: Apache-2.0
"""The table `records`: every record of a log.

Neighbouring batches that are not compressed are read and decoded together; each other one is read
and inflated by itself. Records come as numpy arrays and one buffer, and those of many batches are
made one Arrow batch. Keys, values and headers are only taken out of the buffer if their columns are
asked for.

Upstream: Kafka 4.3.1: DefaultRecordBatch, DefaultRecord.
Laws: BATCH-8 to BATCH-12, BATCH-14, BATCH-16.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from segproof.errors import CorruptRecordError, SegproofError, TooLargeError
from segproof.files import Files
from segproof.kafka.batch_table import BATCH_DTYPE
from segproof.kafka.record import RecordColumns
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import RecordFile
from segproof.kernels import records as kernels
from segproof.layouts.kafka import BATCH_HEADER_BYTES
from segproof.tables.columns import HEADERS_TYPE, Make, batch_of, slices_of
from segproof.tables.damage import wrong_checksum
from segproof.tables.files_below import Unit
from segproof.tables.logs import (
    Headers,
    LogReader,
    first_position,
    is_too_old,
    named_segment,
    opened,
)
from segproof.tables.options import KEEP, Request

ROWS_AT_ONCE = 1 << 15
BYTES_AT_ONCE = 4 << 20
"""So many rows or bytes of several batches share one batch of Arrow's."""
SPAN_BYTES = 1 << 20
"""So many bytes of neighbouring batches are decoded together."""
_MIN_RECORD_BYTES = 7
_SEQUENCES = np.int64(1 << 31)

Rows = NDArray[np.int64]


class _Block(NamedTuple):
    """Some records of one batch, or all records of several batches."""

    headers: Headers
    """Those of the batches."""
    counts: Rows
    """How many of the records are in each of them."""
    columns: RecordColumns


def records(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the records of a log, and each problem where it costs records.

    Raises: OSError, SegproofError: where it cannot be read.
    """
    if is_too_old(unit, request, "timestamp", files):
        return
    with opened(unit, files) as log:
        start = first_position(unit, request, files)
        kept: list[_Block] = []
        rows = size_bytes = 0
        headers = LogReader(log, unit, files, start=start, within=named_segment(unit, request))
        for block in _blocks(log, headers, request):
            is_block = isinstance(block, _Block)
            if is_block:
                kept.append(block)
                rows += len(block.columns)
                size_bytes += len(block.columns.data)
            if kept and not (is_block and rows < ROWS_AT_ONCE and size_bytes < BYTES_AT_ONCE):
                yield _made(request, unit, kept)
                kept, rows, size_bytes = [], 0, 0
            if not is_block:
                yield block
        if kept:
            yield _made(request, unit, kept)


def _blocks(log: RecordFile, reader: LogReader, request: Request) -> Iterator[Any]:
    """Yield the records of the batches read, and each problem where it costs records."""
    is_filtered = bool({"offset", "timestamp"} & request.filters.ranges.keys())
    try:
        for headers in reader:
            wanted = _may_pass(headers, request) if is_filtered else headers.is_known | True
            yield from _wanted_blocks(log, headers, wanted, request)
    except (OSError, SegproofError) as error:
        yield error


def _wanted_blocks(
    log: RecordFile, headers: Headers, wanted: NDArray[np.bool_], request: Request
) -> Iterator[Any]:
    """Yield the records of the wanted batches, and each problem where it costs records."""
    is_read = wanted & (headers.crc_valid | (request.on_damage == KEEP))
    is_plain = _is_plain(headers, request) & is_read
    row = 0
    while row < len(wanted):
        end = _end_of_span(headers.table, is_plain, row)
        block = _decoded(log, headers.rows(row, end)) if end > row else None
        if block is not None:
            yield block
            row = end
            continue
        if is_read[row]:
            yield from _one_by_one(log, headers.rows(row, row + 1), request)
        elif wanted[row]:
            batch = headers.table[row]
            position, size_bytes = int(batch["position"]), int(batch["size_bytes"])
            yield wrong_checksum(log.name, position, size_bytes, request)
        row += 1


def _may_pass(headers: Headers, request: Request) -> NDArray[np.bool_]:
    """Return which batches may hold a record that passes the filters.

    Only a batch of magic 2 whose checksum is right is believed when it says that it does not.
    """
    table, filters = headers.table, request.filters
    offsets, timestamps = filters.range("offset"), filters.range("timestamp")
    meets = (table["base_offset"] <= offsets.high) & (table["last_offset"] >= offsets.low)
    meets &= table["max_timestamp"] >= timestamps.low
    is_sound = headers.is_known & (table["magic"] == 2) & headers.crc_valid
    wanted: NDArray[np.bool_] = meets | ~is_sound
    return wanted


def _is_plain(headers: Headers, request: Request) -> NDArray[np.bool_]:
    """Return which batches can be decoded where they are, with others."""
    table = headers.table
    most = (table["size_bytes"] - BATCH_HEADER_BYTES) // _MIN_RECORD_BYTES
    is_plain: NDArray[np.bool_] = headers.is_known & (table["magic"] == 2)
    is_plain &= (table["attributes"] & 7 == 0) & (
        table["size_bytes"] <= min(SPAN_BYTES, request.limit_bytes)
    )
    is_plain &= (table["record_count"] >= 0) & (table["record_count"] <= most)
    return is_plain


def _end_of_span(table: NDArray[np.void], is_plain: NDArray[np.bool_], row: int) -> int:
    """Return the end, exclusive, of the batches from `row` on that are decoded together."""
    others = np.flatnonzero(~is_plain[row:])
    end = row + int(others[0]) if len(others) else len(is_plain)
    reach = int(table["position"][row]) + SPAN_BYTES
    behind = table["position"][row:end] + table["size_bytes"][row:end]
    return row + int(np.searchsorted(behind, reach, "right"))


def _decoded(log: RecordFile, headers: Headers) -> _Block | None:
    """Return the records of neighbouring batches; None if one of them is damaged.

    None too where the file became shorter, or where a sequence number has to be counted back.
    """
    table = headers.table
    first = int(table["position"][0])
    size = int(table["position"][-1] + table["size_bytes"][-1]) - first
    data = memoryview(log.file.pread(size, first))
    counts = table["record_count"].astype(np.int64)
    total = int(counts.sum())
    rows = np.empty((total, kernels.RECORD_ROW), np.int64)
    kernels.walk_records.announce(total)
    places = zip(
        (table["position"] - first).tolist(),
        table["size_bytes"].tolist(),
        counts.tolist(),
        strict=True,
    )
    flat = rows.reshape(-1).data
    at = 0
    for position, size_bytes, count in places:
        end = position + size_bytes
        if end > len(data):
            return None
        if count:
            done, status, _ = kernels.walk_records(
                data[:end], position + BATCH_HEADER_BYTES, end, count, count,
                flat[at * kernels.RECORD_ROW :],
            )  # fmt: skip
            if status != kernels.RECORDS_GOOD or done != count:
                return None
            at += count
    if bool((rows[:, 1] < 0).any()):
        return None
    return _Block(headers, counts, _columns(data, rows, table, counts))


def _columns(data: memoryview, rows: Rows, table: NDArray[np.void], counts: Rows) -> RecordColumns:
    """Return decoded records with what their batches say worked in, as `RecordBatch` does it."""

    def of_batch(name: str) -> Rows:
        return np.repeat(table[name].astype(np.int64), counts)

    is_append = np.repeat(table["attributes"] & 8 != 0, counts)
    timestamps = rows[:, 0] + of_batch("base_timestamp")
    if is_append.any():
        timestamps = np.where(is_append, of_batch("max_timestamp"), timestamps)
    base = of_batch("base_sequence")
    sequences = np.where(base < 0, np.int64(-1), (rows[:, 1] + base) % _SEQUENCES)
    return RecordColumns(
        data, rows[:, 1] + of_batch("base_offset"), timestamps, sequences, rows[:, 2], rows[:, 3],
        rows[:, 4], rows[:, 5], rows[:, 6], rows[:, 7],
    )  # fmt: skip


def _one_by_one(log: RecordFile, headers: Headers, request: Request) -> Iterator[Any]:
    """Yield the records of one batch, as `dump` reads it, and the problem that ends them."""
    batch = next(log.batches(int(headers.table["position"][0])))
    try:
        if batch.size_bytes > request.limit_bytes:
            raise TooLargeError(
                f"a batch of {batch.size_bytes} bytes is not read into memory",
                hint="the option limit_bytes raises the limit",
            )
        if batch.is_legacy:
            headers = _with_inner_checksums(batch, headers, request)
        yield from _read_blocks(batch, headers, request)
    except SegproofError as error:
        is_wrong = not headers.crc_valid[0] and not isinstance(error, TooLargeError)
        words = f"records of a batch cannot be read: {error.message}"
        if is_wrong:
            words = f"the checksum of a batch is wrong, and {words}"
        hint = None if is_wrong else error.hint  # that one asks about the checksum
        yield type(error)(words, law=error.law, path=log.name, position=batch.position, hint=hint)


def _with_inner_checksums(batch: RecordBatch, headers: Headers, request: Request) -> Headers:
    """Return the headers of a message of magic 0 or 1, false if one that it holds is damaged.

    Raises: SegproofError, if the request is not to keep such a message.
    """
    try:
        batch.check_inner_messages(limit=request.limit_bytes)
    except CorruptRecordError:
        if request.on_damage != KEEP:
            raise
        return headers._replace(crc_valid=np.zeros(1, np.bool_))
    return headers


def _read_blocks(batch: RecordBatch, headers: Headers, request: Request) -> Iterator[_Block]:
    """Yield the records of a batch. Raises: what ends them."""
    if batch.magic == 2 and batch.attributes & 7 and (batch.record_count or 0) <= ROWS_AT_ONCE:
        # Without the first of two passes, which is for those that come in several blocks.
        columns = batch.record_columns(limit=request.limit_bytes)
        if len(columns):
            yield _Block(headers, np.array([len(columns)]), columns)
        return
    for columns in batch.record_blocks(ROWS_AT_ONCE, limit=request.limit_bytes):
        yield _Block(headers, np.array([len(columns)]), columns)


def _made(request: Request, unit: Unit, blocks: list[_Block]) -> Any:
    """Return one batch of Arrow's with the records of all blocks."""
    counts = np.concatenate([block.counts for block in blocks])
    # numpy would compare the fields of each table with those of the next.
    table = np.frombuffer(b"".join(block.headers.table.tobytes() for block in blocks), BATCH_DTYPE)
    parts = [block.columns for block in blocks]
    valid: list[Any] = [block.headers.crc_valid for block in blocks]

    def joined(name: str) -> Rows:
        return np.concatenate([getattr(part, name) for part in parts])

    def of_batch(name: str) -> Make:
        return lambda: np.repeat(table[name], counts)

    def sizes(name: str) -> Make:
        def make() -> Any:
            lengths = joined(name)
            return pa.array(lengths, mask=lengths < 0)

        return make

    is_control = (table["magic"] == 2) & (table["attributes"] & 32 != 0)
    makers: dict[str, Make] = {
        "batch_position": of_batch("position"),
        "producer_id": of_batch("producer_id"),
        "producer_epoch": of_batch("producer_epoch"),
        "is_control": lambda: np.repeat(is_control, counts),
        "crc_valid": lambda: np.repeat(np.concatenate(valid), counts),
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
