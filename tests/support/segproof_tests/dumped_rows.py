# SPDX-License-Identifier: Apache-2.0
"""What `dump` writes of files of each kind, read back from JSON lines and from CSV."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ

TXN = KAFKA / "txn-a" / "txn-a-0"
LOG = TXN / "00000000000000001014.log"
STORE = ROCKETMQ / "rolled-4.9.8" / "store"
FILES = [
    LOG,
    LOG.with_suffix(".index"),
    LOG.with_suffix(".timeindex"),
    LOG.with_suffix(".snapshot"),
    TXN / "00000000000000001732.txnindex",
    TXN / "leader-epoch-checkpoint",
    TXN / "partition.metadata",
    KAFKA / "compacted" / "logdir" / "cleaner-offset-checkpoint",
    *sorted(STORE.glob("commitlog/*"))[:1],
    *sorted(STORE.glob("consumequeue/*/*/*"))[:1],
    *sorted(STORE.glob("index/*"))[:1],
    STORE / "checkpoint",
]


def written(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> bytes:
    """Return what a dump writes on standard output."""
    assert 0 == cli.run(["dump", *map(str, arguments)])
    return capsysbinary.readouterr().out


def from_json(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> list[Any]:
    """Return the rows of the dump as JSON lines; without the header of an index file."""
    lines = written(capsysbinary, *arguments, "--format", "jsonl").splitlines()
    return [row for row in map(json.loads, lines) if "hash_slot_count" not in row]


def from_csv(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> list[Any]:
    """Return the rows of the dump as CSV."""
    text = written(capsysbinary, *arguments, "--format", "csv").decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def cell(value: Any) -> str:
    """Return a value as CSV has it."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)
