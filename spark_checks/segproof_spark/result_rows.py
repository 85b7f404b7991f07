# SPDX-License-Identifier: Apache-2.0
"""What rows of results hold: findings, and a worker's memory; and where a job writes them.

`expected` and `actual` of a finding hold whatever is compared, so they travel as JSON text.
"""

import json
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
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


def peak_bytes() -> int:
    """Return the most memory that this process has held, in bytes."""
    # The system tells kilobytes, but bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class ResultsLostError(Exception):
    """The results that can be read are not all that were written."""


def place_of(out: str) -> str:
    """Return the URL under which Hadoop finds the place that a user named."""
    # Hadoop takes the path behind file:// as it is, spaces included.
    return out if "://" in out else f"file://{Path(out).absolute()}"


def check_all_read(
    out: str, what: str, found: Mapping[str, int], wanted: Mapping[str, int]
) -> None:
    """Raise ResultsLostError unless the sums of what can be read are those of what was written."""
    if dict(found) != dict(wanted):
        told = ", ".join(f"{name} {found.get(name, 0)} of {many}" for name, many in wanted.items())
        raise ResultsLostError(
            f"{out}: not all {what} can be read again ({told}): "
            "the driver and every worker must see the same place under this name"
        )
