# SPDX-License-Identifier: Apache-2.0
"""The rows that the tasks of one verification hand to each other, and to the program.

One kind of row for all stages, so that a stage passes through the rows of others: findings, what a
segment hands on to its partition, batches of a log that is checked later, and what a task has used.
Rows of a key lie behind each other, in the order of their numbers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from segproof_spark.result_rows import (
    FINDING_COLUMNS,
    FINDING_FIELDS,
    FINDING_STRUCT,
    arrow_fields,
    finding_row,
    peak_bytes,
)

if TYPE_CHECKING:
    import pyarrow as pa


CARRY, LOG_STATE, LOG_BATCHES, LOG_END = "carry", "log state", "log batches", "log end"
FINDING, TASK = "finding", "task"
KEYS = ("partition", "segment", "piece", "number")
ROW_DDL = (
    "partition bigint, segment bigint, piece bigint, number bigint, kind string, payload binary,"
    f" finding {FINDING_STRUCT}"
)
PAYLOAD_BYTES = 16 << 10
"""A larger payload is cut into rows of so many bytes: Spark counts rows, not bytes."""
BATCH_ROWS = 1000
BATCH_BYTES = 4 << 20


class Row(NamedTuple):
    """One row; findings and what tasks used have no key."""

    partition: int | None
    segment: int | None
    piece: int | None
    number: int | None
    kind: str
    payload: bytes | None = None
    finding: dict[str, Any] | None = None


def finding(told: Mapping[str, Any]) -> Row:
    """Return the row of a finding given by field name."""
    return Row(None, None, None, None, FINDING, finding=finding_row(told))


def task_row(bytes_read: int, units: int, recalled: int, unkept: int) -> Row:
    """Return the row of a task that is at its end."""
    told = {
        "bytes_read": bytes_read,
        "units": units,
        "units_recalled": recalled,
        "units_unkept": unkept,
        "worker_peak_bytes": peak_bytes(),
    }
    return Row(None, None, None, None, TASK, json.dumps(told).encode())


def chunked(partition: int, segment: int, kind: str, data: bytes) -> Iterator[Row]:
    """Yield the rows of one large payload."""
    for number, start in enumerate(range(0, len(data), PAYLOAD_BYTES)):
        yield Row(partition, segment, 0, number, kind, data[start : start + PAYLOAD_BYTES])


def rows_of_batches(batches: "Iterable[pa.RecordBatch]") -> Iterator[Row]:
    """Yield the rows of Arrow's batches, one at a time: their payloads are not held together."""
    for batch in batches:
        columns = [batch.column(name) for name in Row._fields]
        for at in range(batch.num_rows):
            yield Row(*(column[at].as_py() for column in columns))


def batches_of_rows(rows: Iterable[Row]) -> "Iterator[pa.RecordBatch]":
    """Yield Arrow's batches of rows, of bounded size."""
    taken: list[Row] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row.payload or b"")
        if len(taken) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(taken)
            taken, size = [], 0
    if taken:
        yield _batch(taken)


def _batch(rows: list[Row]) -> "pa.RecordBatch":
    import pyarrow as pa

    told = pa.struct(arrow_fields({name: FINDING_COLUMNS[name] for name in FINDING_FIELDS}))
    kinds = [*[pa.int64()] * len(KEYS), pa.string(), pa.binary(), told]
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.record_batch(arrays, names=list(Row._fields))
