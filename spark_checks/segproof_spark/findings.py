# SPDX-License-Identifier: Apache-2.0
"""The schema of findings, and how a finding becomes a row.

`expected` and `actual` hold whatever is compared, so they travel as JSON text.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FINDING_COLUMNS = {
    "law": "string",
    "severity": "string",
    "structure": "string",
    "path": "string",
    "position": "bigint",
    "expected": "string",
    "actual": "string",
    "message": "string",
    "hint": "string",
    "reproduce": "string",
}
"""The columns of the table `findings`, with Spark's names of their types."""
FINDING_FIELDS = tuple(FINDING_COLUMNS)


def ddl(columns: Mapping[str, str], separator: str = " ") -> str:
    """Return columns as Spark's DDL writes them; inside a struct the separator is `: `."""
    return ", ".join(f"{name}{separator}{kind}" for name, kind in columns.items())


FINDING_STRUCT = f"struct<{ddl(FINDING_COLUMNS, ': ')}>"


def arrow_fields(columns: Mapping[str, str]) -> "list[pa.Field]":
    """Return columns of strings and numbers as Arrow fields."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    return [pa.field(name, kinds[kind]) for name, kind in columns.items()]


def finding_row(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a finding given by field name."""
    row = {name: finding[name] for name in FINDING_FIELDS}
    for name in ("expected", "actual"):
        row[name] = None if row[name] is None else json.dumps(row[name], default=str)
    return row


def finding_of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the finding of a row: the inverse of `finding_row`."""
    finding = {name: row[name] for name in FINDING_FIELDS}
    for name in ("expected", "actual"):
        finding[name] = None if finding[name] is None else json.loads(finding[name])
    return finding
