# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays of the tables: from numpy, from slices of one buffer, and constants."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from segproof.tables.files_below import Unit
from segproof.tables.options import Request
from segproof.tables.row_batches import as_utf8
from segproof.tables.schemas import DAMAGE, TABLES

LARGE_ROWS = 2048
"""A batch with so many rows is joined to no other: that copies it."""
MERGED_ROWS = 16_384
MERGED_BYTES = 4 << 20

Make = Callable[[], Any]
"""Makes one column: an array of Arrow's or of numpy's."""

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "array<struct<key: string, value: binary>>": HEADERS_TYPE,
}


def arrow_schema(request: Request) -> Any:
    """Return the schema of the batches that are read for a request, as Spark has it."""
    return _schema(request.table, request.columns)


@cache
def _schema(table: str, columns: tuple[str, ...]) -> Any:
    return pa.schema([(name, _TYPES[TABLES[table][name].kind]) for name in columns])


def result_schema(request: Request) -> Any:
    """Return the schema of the batches that a request gets."""
    kinds = {column.name: column.kind for column in (DAMAGE, *TABLES[request.table].columns)}
    return pa.schema([(name, _TYPES[kinds[name]]) for name in request.result])


def result_of(batch: Any, request: Request) -> Any:
    """Return a batch that was read with the columns of the result."""
    if request.result == request.columns:
        return batch
    schema = result_schema(request)
    arrays = [
        batch.column(field.name)
        if field.name in request.columns
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of(
    request: Request,
    unit: Unit,
    count: int,
    makers: Mapping[str, Make],
    table: "NDArray[Any] | None" = None,
    constants: dict[str, Any] | None = None,
) -> Any:
    """Return a batch of `count` rows; of the makers only those of wanted columns are called.

    A column that no maker makes is that of the same name in `table`, or tells the file. The batches
    of one file share the latter where they are given the same `constants`.
    """
    constants = {} if constants is None else constants
    schema = arrow_schema(request)
    of_unit = {
        "path": as_utf8(unit.path),
        "directory": as_utf8(unit.directory),
        "segment_base_offset": unit.base_offset,
    }
    stored = () if table is None else table.dtype.names or ()
    arrays = []
    for field in schema:
        if field.name in makers:
            made = makers[field.name]()
        elif table is not None and field.name in stored:
            made = table[field.name].astype(field.type.to_pandas_dtype())
        else:
            known = constants.get(field.name)
            if known is None or len(known) < count:
                known = pa.repeat(pa.scalar(of_unit[field.name], field.type), count)
                constants[field.name] = known
            made = known.slice(0, count)
        if not isinstance(made, pa.Array):
            made = pa.array(made, field.type)
        arrays.append(made if made.type == field.type else made.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def merged(batches: Iterable[Any]) -> Iterator[Any]:
    """Join small batches to larger ones of bounded size; each costs as much as hundreds of rows."""
    kept: list[Any] = []
    rows = size_bytes = 0
    for batch in batches:
        if batch.num_rows >= LARGE_ROWS:
            if kept:
                yield _joined(kept)
            yield batch
            kept, rows, size_bytes = [], 0, 0
            continue
        kept.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= MERGED_ROWS or size_bytes >= MERGED_BYTES:
            yield _joined(kept)
            kept, rows, size_bytes = [], 0, 0
    if rows:
        yield _joined(kept)


def _joined(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0]


def names_of(codes: NDArray[Any], names: tuple[str, ...]) -> Any:
    """Return the names of codes as strings; a code without one is null."""
    is_known = codes < len(names)
    indices = pa.array(codes.astype(np.int32), mask=~is_known)
    return pc.take(pa.array(names), indices)


def slices_of(data: Any, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
    """Return slices of a buffer as binary, copied; length -1 means null.

    The slices rise and do not overlap. An array over the whole buffer, whose even elements are the
    slices and whose odd ones lie between, is taken by Arrow itself, so no slice costs a step here.
    """
    count = len(positions)
    is_null = lengths < 0
    if is_null.all():
        return pa.nulls(count, pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2], bounds[1::2] = positions, lengths
    if has_nulls := bool(is_null.any()):
        reached = np.maximum.accumulate(np.where(is_null, 0, positions + lengths))
        bounds[2::2][is_null[1:]] = reached[:-1][is_null[1:]]
        bounds[0] *= not is_null[0]
        bounds[1::2][is_null] = 0
    bounds[1::2] += bounds[0::2]
    assert bool((bounds[1:] >= bounds[:-1]).all())
    assert bounds[-1] <= len(data)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    whole = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    taken = np.arange(0, 2 * count, 2, dtype=np.int32)
    return whole.take(pa.array(taken, mask=is_null if has_nulls else None))


def texts_of(data: Any) -> Any:
    """Return an array of binary as strings; bytes that are not UTF-8 are replaced."""
    try:
        return data.cast(pa.string())
    except pa.ArrowInvalid:
        texts = (None if one is None else str(one, errors="replace") for one in data.to_pylist())
        return pa.array(texts, pa.string())
