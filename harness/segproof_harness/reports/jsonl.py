# SPDX-License-Identifier: Apache-2.0
"""Findings as JSON lines: one object a line, ASCII, the fields in the order of the contract."""

import json
from collections.abc import Mapping
from typing import Any, TextIO

FIELDS = (
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
"""The fields of a finding, in every format and order."""


def write_jsonl(finding: Mapping[str, Any], stream: TextIO) -> None:
    """Write one finding."""
    stream.write(json.dumps({name: finding[name] for name in FIELDS}) + "\n")
