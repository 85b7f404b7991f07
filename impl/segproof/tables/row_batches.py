# SPDX-License-Identifier: Apache-2.0
"""Rows that come one by one, as batches of Arrow."""

import os
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
        texts = [{name: _in_arrow(value) for name, value in row.items()} for row in part]
        yield pa.RecordBatch.from_pylist(texts, schema=schema)


def _in_arrow(value: Any) -> Any:
    return as_utf8(value) if isinstance(value, str) else value


def as_utf8(text: str) -> str:
    r"""Return a text that Arrow takes: a byte of a path that is not UTF-8 becomes `\xff`, say."""
    return os.fsencode(text).decode(errors="backslashreplace")
