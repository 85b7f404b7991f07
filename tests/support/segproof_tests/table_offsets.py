# SPDX-License-Identifier: Apache-2.0
"""The offsets that `segproof.scan` and `segproof dump` give of a log, and their words of damage."""

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import pytest

import segproof
from segproof.errors import RowsLeftOutWarning
from segproof_harness import cli


def rows(path: Path, table: str = "records", **asked: Any) -> list[dict[str, Any]]:
    """Return all rows of a scan."""
    found: list[dict[str, Any]] = segproof.scan(path, table=table, **asked).read_all().to_pylist()
    return found


def scanned(path: Path, table: str = "records", **asked: Any) -> tuple[list[int], list[str]]:
    """Return the offsets of a scan, and its warnings."""
    column = "offset" if table == "records" else "base_offset"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        reader = segproof.scan(path, table=table, columns=[column], **asked)
        found = reader.read_all()[column].to_pylist()
    return found, [str(one.message) for one in caught if one.category is RowsLeftOutWarning]


def dumped(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[int], int]:
    """Return the offsets of a dump, and its exit code."""
    code = cli.run(["dump", str(path), "--records", "--format", "csv", *words])
    lines = csv.DictReader(io.StringIO(capsys.readouterr().out))
    return [int(one["offset"]) for one in lines], code


def is_silent(path: Path, capsys: pytest.CaptureFixture[str], rows: list[int]) -> None:
    """Demand that scan and dump give these rows without a word."""
    for table in ("records", "batches"):
        assert (rows, []) == scanned(path, table)
    assert (rows, 0) == dumped(path, capsys)
