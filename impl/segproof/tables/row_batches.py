# SPDX-License-Identifier: Apache-2.0
"""Rows that come one by one, as batches of Arrow."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def batches_of(
    rows: Iterable[Mapping[str, Any]], schema: "pa.Schema", most: int
) -> "Iterator[pa.RecordBatch]":
    """Yield rows in batches of `most` at most; no more rows are held."""
    import pyarrow as pa

    left = iter(rows)
    while part := list(islice(left, most)):
        yield pa.RecordBatch.from_pylist(part, schema=schema)
