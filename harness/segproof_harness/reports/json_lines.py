# SPDX-License-Identifier: Apache-2.0
"""What `verify --format jsonl` writes: findings, and the causes and the summary of each partition.

A finding has no field `type`, a cause and a summary have. The schema of all three is
`output.schema.json` beside this file.
"""

import json
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Any

from segproof.findings import Finding, Summary
from segproof_harness.reports.causes import Causes
from segproof_harness.reports.jsonl import write_jsonl

SCHEMA_VERSION = 1
"""Raised when an object changes its meaning, or loses a field."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of each line that `verify --format jsonl` writes."""
    text = resources.files(__package__).joinpath("output.schema.json").read_text(encoding="ascii")
    read: dict[str, Any] = json.loads(text)
    return read


class JsonLinesReport:
    """Writes each finding as it comes, then the causes and the summary of a partition."""

    def __init__(self, asked: Mapping[str, Any], *, is_summary: bool = False) -> None:
        self._asked = asked
        """What the verdict is restricted to: `laws`, `position`, `deep`, `since`."""
        self._is_summary = is_summary
        self._causes = Causes()

    def finding(self, finding: Finding) -> None:
        """Write the next finding."""
        if not self._is_summary:
            write_jsonl(finding.to_json(), sys.stdout)
            self._causes.add(finding)

    def summary(self, summary: Summary) -> None:
        """Write the causes and the summary."""
        self.end()
        self._write("summary", {**summary.to_json(), **self._asked})

    def end(self) -> None:
        """Write the causes in a partition that was not checked to its end."""
        for cause in self._causes.take():
            self._write("cause", cause.to_json())

    def _write(self, kind: str, fields: Mapping[str, Any]) -> None:
        row = {"type": kind, "schema_version": SCHEMA_VERSION, **fields}
        sys.stdout.write(json.dumps(row) + "\n")
