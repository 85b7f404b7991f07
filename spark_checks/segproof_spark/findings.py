# SPDX-License-Identifier: Apache-2.0
"""The schema of findings, and how a finding becomes a row.

`expected` and `actual` hold whatever is compared, so they travel as JSON text.
Used by: replay, data_source.
"""

import json
from collections.abc import Mapping
from typing import Any

FINDING_FIELDS = (
    "law",
    "severity",
    "structure",
    "path",
    "position",
    "expected",
    "actual",
    "message",
    "hint",
    "reproduce",
)
_TYPES = [(name, "bigint" if name == "position" else "string") for name in FINDING_FIELDS]
FINDING_DDL = ", ".join(f"{name} {kind}" for name, kind in _TYPES)
"""The columns of the table `findings`, in Spark's words."""
FINDING_STRUCT = f"struct<{', '.join(f'{name}: {kind}' for name, kind in _TYPES)}>"
"""The same as the type of one column."""


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
