# SPDX-License-Identifier: Apache-2.0
"""The table `records`: every record of a log.

Records come as numpy arrays and one buffer, of neighbouring batches together where
`reading/record_blocks.py` can decode them so, and those of many batches are made one Arrow batch.
Keys, values and headers are only taken out of the buffer if their columns are asked for.

Upstream: Kafka 4.3.1: DefaultRecordBatch, DefaultRecord.
Laws: BATCH-8 to BATCH-12, BATCH-14, BATCH-16.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from segproof.errors import CorruptRecordError, SegproofError, TooLargeError
from segproof.files import Files
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL
from segproof.kafka.record import RecordColumns
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import RecordFile
from segproof.reading.batch_rows import has_flag
from segproof.reading.record_blocks import (
    RecordBlock,
    blocks_of_batch,
    gathered,
    header_places,
    record_blocks,
)
from segproof.stretches.kafka.single_batch import record_batch
from segproof.tables.columns import HEADERS_TYPE, Make, batch_of, slices_of, texts_of
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


def records(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the records of a log, and each problem where it costs records.

    Raises: OSError, SegproofError: where it cannot be read.
    """
    if is_too_old(unit, request, "timestamp", files):
        return
    with opened(unit, files) as log:
        start, within = first_position(unit, request, files), named_segment(unit, request)
        headers = LogReader(unit, files, start=start, within=within, holds=True)
        constants: dict[str, Any] = {}
        for piece in gathered(_blocks(log, headers, request)):
            if isinstance(piece, RecordBlock):
                count, makers = len(piece.columns), record_columns(piece)
                yield batch_of(request, unit, count, makers, constants=constants)
            else:
                yield piece


def _blocks(log: RecordFile, reader: LogReader, request: Request) -> Iterator[Any]:
    """Yield the records of the batches read, and each problem where it costs records."""
    is_filtered = bool({"offset", "timestamp"} & request.filters.ranges.keys())
    try:
        for headers in reader.whole(log):
            wanted = _may_pass(headers, request) if is_filtered else headers.is_known | True
            yield from _wanted_blocks(log, headers, wanted, request)
    except (OSError, SegproofError) as error:
        yield error


def _wanted_blocks(
    log: RecordFile, headers: Headers, wanted: NDArray[np.bool_], request: Request
) -> Iterator[Any]:
    """Yield the records of the wanted batches, and each problem where it costs records."""
    table, crc_valid = headers.table, headers.crc_valid
    is_read = wanted & (crc_valid | (request.on_damage == KEEP))
    for block in record_blocks(table, crc_valid, headers.held, is_read, request.limit_bytes):
        if isinstance(block, RecordBlock):
            yield block
        elif is_read[block]:
            one = Headers(table[block : block + 1], crc_valid[block : block + 1],
                          headers.is_known[block : block + 1])  # fmt: skip
            yield from _one_by_one(log, one, request)
        elif wanted[block]:
            position, size_bytes = table["position"][block], table["size_bytes"][block]
            yield wrong_checksum(log.name, int(position), int(size_bytes), request)


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


def _one_by_one(log: RecordFile, headers: Headers, request: Request) -> Iterator[Any]:
    """Yield the records of one batch, as `dump` reads it, and the problem that ends them."""
    batch = record_batch(log.file, headers.table[0])
    try:
        if batch.size_bytes > request.limit_bytes:
            raise TooLargeError(
                f"a batch of {batch.size_bytes} bytes is not read into memory",
                hint="the option limit_bytes raises the limit",
            )
        if batch.is_legacy:
            headers = _with_inner_checksums(batch, headers, request)
        yield from blocks_of_batch(batch, headers.table, headers.crc_valid, request.limit_bytes)
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


def record_columns(block: RecordBlock) -> dict[str, Make]:
    """Return what makes each column of the records of a block."""
    table, crc_valid, counts, columns = block

    def of_batch(values: NDArray[Any]) -> Make:
        if len(values) and (values == values[0]).all():
            return lambda: pa.repeat(values[0], len(columns))
        return lambda: np.repeat(values, counts)

    def sizes(lengths: NDArray[np.int64]) -> Make:
        return lambda: pa.array(lengths, mask=lengths < 0)

    return {
        "batch_position": of_batch(table["position"]),
        "producer_id": of_batch(table["producer_id"]),
        "producer_epoch": of_batch(table["producer_epoch"]),
        "partition_leader_epoch": of_batch(table["partition_leader_epoch"]),
        "is_transactional": of_batch(has_flag(table, TRANSACTIONAL)),
        "is_control": of_batch(has_flag(table, CONTROL)),
        "crc_valid": of_batch(crc_valid),
        "offset": lambda: columns.offsets,
        "timestamp": lambda: columns.timestamps,
        "sequence": lambda: columns.sequences,
        "key_size": sizes(columns.key_lengths),
        "value_size": sizes(columns.value_lengths),
        "key": lambda: slices_of(columns.data, columns.key_positions, columns.key_lengths),
        "value": lambda: slices_of(columns.data, columns.value_positions, columns.value_lengths),
        "headers": lambda: _headers(columns),
    }


def _headers(columns: RecordColumns) -> Any:
    """Return the headers of all records."""
    ends = np.concatenate(([0], np.cumsum(columns.header_counts))).astype(np.int32)
    places = header_places(columns)
    keys = slices_of(columns.data, places.key_positions, places.key_lengths)
    values = slices_of(columns.data, places.value_positions, places.value_lengths)
    pairs = pa.StructArray.from_arrays([texts_of(keys), values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends), pairs).cast(HEADERS_TYPE)
