# SPDX-License-Identifier: Apache-2.0
"""The table `batches`: the headers of a log, a row for each batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from segproof.compression import COMPRESSION_NAMES
from segproof.files import Files
from segproof.kafka.batch_writing import TIMESTAMP_TYPES
from segproof.kafka.record_file import RecordFile
from segproof.reading.batch_rows import batch_row, batch_to_show
from segproof.tables.columns import Make, arrow_schema, batch_of, names_of
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
from segproof.tables.schemas import TABLES


def batches(unit: Unit, request: Request, files: Files) -> Iterator[Any]:
    """Yield the batches of a log, and each problem where it costs a row.

    Raises: OSError; SegproofError where it cannot be read on, after the batches before.
    """
    if is_too_old(unit, request, "max_timestamp", files):
        return
    with opened(unit, files) as log:
        start, within = first_position(unit, request, files), named_segment(unit, request)
        for headers in LogReader(log, unit, files, start=start, within=within):
            count = len(headers.table)
            made = batch_of(request, unit, count, _columns(headers), headers.table)
            rows = one_by_one(headers, request.wants("record_count"), request.wants("base_offset"))
            if len(rows):
                made = _patched(made, rows, headers, request, log)
            if request.on_damage == KEEP or headers.crc_valid.all():
                yield made
            else:
                yield made.filter(pa.array(headers.crc_valid))
                for row in headers.table[~headers.crc_valid]:
                    position, size_bytes = int(row["position"]), int(row["size_bytes"])
                    yield wrong_checksum(unit.path, position, size_bytes, request)


def one_by_one(headers: Headers, count: bool, base_offset: bool) -> Any:
    """Return the rows that need more than the table of headers has."""
    table = headers.table
    is_legacy = table["magic"] < 2
    if not count:
        is_legacy = is_legacy & (table["attributes"] & 7 != 0) & base_offset
    return np.flatnonzero(~headers.is_known | is_legacy)


def _columns(headers: Headers) -> dict[str, Make]:
    """Return the columns that follow from the table of headers."""
    table = headers.table
    attributes = table["attributes"]
    is_batch = table["magic"] == 2

    def timestamp_types() -> Any:
        is_append = attributes & 8 != 0
        return names_of(np.where(table["magic"] == 0, 0, 1 + is_append), TIMESTAMP_TYPES)

    return {
        "size": lambda: np.ascontiguousarray(table["size_bytes"]),
        "compression": lambda: names_of(attributes & 7, COMPRESSION_NAMES),
        "timestamp_type": timestamp_types,
        "is_transactional": lambda: is_batch & (attributes & 16 != 0),
        "is_control": lambda: is_batch & (attributes & 32 != 0),
        "crc_valid": lambda: headers.crc_valid,
    }


def _patched(made: Any, rows: Any, headers: Headers, request: Request, log: RecordFile) -> Any:
    """Return the batch of rows, completed by the rows that are read one by one."""
    columns = {name: made.column(name).to_pylist() for name in request.columns}
    wanted = [name for name in TABLES["batches"].own_names if request.wants(name)]
    for row in rows.tolist():
        values = _row_at(log, int(headers.table["position"][row]), wanted)
        for name, value in values.items():
            columns[name][row] = value
    schema = arrow_schema(request)
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row_at(log: RecordFile, position: int, wanted: list[str]) -> dict[str, Any]:
    """Return the wanted fields of one batch, as `dump` tells them.

    A compressed message above the limit of `dump` is not read: its base offset and count are null.
    """
    return batch_row(batch_to_show(next(log.batches(position))), wanted)
