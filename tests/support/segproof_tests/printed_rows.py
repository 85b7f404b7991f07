# SPDX-License-Identifier: Apache-2.0
"""What a verb prints: as it is, or the rows of its JSON lines."""

import json
from typing import Any

import pytest

from segproof_harness import cli

__all__ = ["Capsys", "CapsysBinary", "jsonl", "shown"]

Capsys = pytest.CaptureFixture[str]
"""What the fixture `capsys` is."""
CapsysBinary = pytest.CaptureFixture[bytes]


def shown(capsys: Capsys, *arguments: object, code: int = 0) -> str:
    """Run a verb, which ends with this exit code; return what it wrote on standard output."""
    assert code == cli.run([*map(str, arguments)])
    return capsys.readouterr().out


def jsonl(capsys: Capsys, *arguments: object, code: int = 0) -> list[Any]:
    """Run a verb with `--format jsonl`, and return its rows."""
    lines = shown(capsys, *arguments, "--format", "jsonl", code=code).splitlines()
    return [json.loads(line) for line in lines]
