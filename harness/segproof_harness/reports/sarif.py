# SPDX-License-Identifier: Apache-2.0
"""Findings as SARIF 2.1.0, which code hosts and editors show; summaries are properties of the run.

The findings are written as they come, so the memory stays the same for any number of them. Code
hosts show a place by its line and refuse one without, so each is in line 1; the message says where.
Source: OASIS, Static Analysis Results Interchange Format Version 2.1.0.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from segproof.findings import Finding, Summary

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SUMMARIES_MAX = 10_000
"""So many summaries are kept for the end of the run; of a larger run only the unsound ones, and
those with files that were not looked into."""


class SarifReport:
    """Writes one run of SARIF: its head at once, each finding as a result, its summaries last."""

    def __init__(self, release: str, rules: Mapping[str, tuple[str, str]]) -> None:
        """`rules` are the sentence and the hint of each law."""
        self._numbers = {law: number for number, law in enumerate(rules)}
        self._summaries: list[dict[str, Any]] = []
        self._left_out = 0
        self._separator = ""
        driver = {"name": "segproof", "version": release, "rules": list(map(_rule, rules.items()))}
        head = json.dumps({"tool": {"driver": driver}, "columnKind": "utf16CodeUnits"})
        sys.stdout.write(
            f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{head[:-1]}, "results": ['
        )

    def finding(self, finding: Finding) -> None:
        """Write a result."""
        at = "" if finding.position is None else f"byte {finding.position}: "
        location = {"artifactLocation": {"uri": _uri(finding.path)}, "region": {"startLine": 1}}
        result: dict[str, Any] = {
            "ruleId": finding.law,
            "level": finding.severity.value,
            "message": {"text": f"{at}{finding.message}. What to do: {finding.hint}"},
            "locations": [{"physicalLocation": location}],
            "partialFingerprints": {"segproof/v1": _fingerprint(finding)},
            "properties": {
                name: getattr(finding, name)
                for name in ("structure", "position", "expected", "actual", "reproduce")
            },
        }
        if finding.law in self._numbers:
            result["ruleIndex"] = self._numbers[finding.law]
        sys.stdout.write(f"{self._separator}\n{json.dumps(result)}")
        self._separator = ","

    def summary(self, summary: Summary) -> None:
        """Keep the summary for the end."""
        is_told = not summary.is_sound or summary.not_looked_into
        if len(self._summaries) < SUMMARIES_MAX or is_told:
            self._summaries.append(summary.to_json())
        else:
            self._left_out += 1

    def end(self) -> None:
        """Write the summaries, and close the document."""
        told = {"summaries": self._summaries, "summariesLeftOut": self._left_out}
        sys.stdout.write(f'\n], "properties": {json.dumps(told)}}}]}}\n')


def _rule(law: tuple[str, tuple[str, str]]) -> dict[str, Any]:
    law_id, (sentence, hint) = law
    return {
        "id": law_id,
        "shortDescription": {"text": sentence},
        "help": {"text": f"What to do: {hint}. More: `segproof explain {law_id}`"},
    }


def _uri(path: str) -> str:
    """Return a path as a URI reference: an absolute one with its scheme, also of any bytes."""
    if "://" in path:
        return path
    quoted = quote(path.encode("utf-8", "surrogateescape"))
    if path.startswith("/"):
        return f"file://{quoted}"
    # A first part with a colon would be read as a scheme.
    return quoted if ":" not in path.partition("/")[0] else f"./{quoted}"


def _fingerprint(finding: Finding) -> str:
    """Return what stays the same as long as this place breaks this law."""
    told = f"{finding.law}\n{finding.path}\n{finding.position}"
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()
