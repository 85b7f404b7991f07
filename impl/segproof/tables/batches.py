# SPDX-License-Identifier: Apache-2.0
"""The table `batches`: the headers of a log, a row for each batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from segproof.files import Files
from segproof.kafka.record_file import RecordFile
from segproof.reading.batch_rows import Named, batch_columns, batch_row, batch_to_show
from segproof.stretches.kafka.single_batch import record_batch
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
        reader = LogReader(unit, files, start=start, within=within)
        for headers in reader.whole(log):
            count = len(headers.table)
            made = batch_of(request, unit, count, _columns(headers), headers.table)
            asked = {name: request.wants(name) for name in ("record_count", "base_offset")}
            rows = np.flatnonzero(headers.unsaid(**asked))
            if len(rows):
                made = _patched(made, rows, headers, request, log)
            if request.on_damage == KEEP or headers.crc_valid.all():
                yield made
            else:
                yield made.filter(pa.array(headers.crc_valid))
                for row in headers.table[~headers.crc_valid]:
                    position, size_bytes = int(row["position"]), int(row["size_bytes"])
                    yield wrong_checksum(unit.path, position, size_bytes, request)


def _columns(headers: Headers) -> dict[str, Make]:
    """Return the columns that follow from the table of headers."""

    def made(column: NDArray[Any] | Named) -> Make:
        return lambda: names_of(*column) if isinstance(column, Named) else column

    derived = batch_columns(headers.table, headers.crc_valid)
    return {name: made(column) for name, column in derived.items()}


def _patched(made: Any, rows: Any, headers: Headers, request: Request, log: RecordFile) -> Any:
    """Return the batch of rows, completed by the rows that are read one by one, as `dump` does.

    A compressed message above the limit of `dump` is not read: its base offset and count are null.
    """
    columns = {name: made.column(name).to_pylist() for name in request.columns}
    wanted = [name for name in TABLES["batches"].own_names if request.wants(name)]
    for row in rows.tolist():
        batch = batch_to_show(record_batch(log.file, headers.table[row]))
        for name, value in batch_row(batch, wanted).items():
            columns[name][row] = value
    schema = arrow_schema(request)
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
