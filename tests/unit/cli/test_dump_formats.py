# SPDX-License-Identifier: Apache-2.0
"""`dump --format csv` and `parquet`: the rows of `jsonl`, in columns."""

import base64
import csv
import io
import json
import re
import sys
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
OF_BATCH = (
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "is_control",
)


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


def from_parquet(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> list[Any]:
    """Return the rows of the dump as Parquet."""
    import pyarrow.parquet as pq

    data = written(capsysbinary, *arguments, "--format", "parquet")
    return list(pq.read_table(io.BytesIO(data)).to_pylist())


def cell(value: Any) -> str:
    """Return a value as CSV has it."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_csv_has_the_rows_of_jsonl(path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Each field is a column, null an empty cell; of an index file of RocketMQ the entries."""
    rows = from_json(capsysbinary, path)
    assert rows
    expected = [{name: cell(value) for name, value in row.items()} for row in rows]
    assert expected == from_csv(capsysbinary, path)


@pytest.mark.slow
@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_parquet_has_the_rows_of_jsonl(
    path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """With the types of JSON: integers, text, true and false, null."""
    assert from_json(capsysbinary, path) == from_parquet(capsysbinary, path)


@pytest.mark.slow
@pytest.mark.needs("pyarrow")
def test_records_have_columns_of_their_batch(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Keys and values are bytes in Parquet, and text in CSV; of a directory all logs are shown."""
    batch: Any = None
    expected = []
    for row in from_json(capsysbinary, TXN, "--records"):
        if not row["path"].endswith(".log"):
            continue
        if "magic" in row:
            batch = row
            continue
        key, value = (
            None if row[name] is None else base64.b64decode(row[name]) for name in ("key", "value")
        )
        of_batch = {name: batch[name] for name in OF_BATCH}
        expected.append({**row, "key": key, "value": value, "headers": "[]", **of_batch})
    assert expected == from_parquet(capsysbinary, TXN, "--records")
    shown = from_csv(capsysbinary, TXN, "--records")
    assert len(expected) == len(shown)
    assert expected[0]["value"].decode() == shown[0]["value"]
    assert list(expected[0]) == list(shown[0])
    as_text = from_parquet(capsysbinary, LOG, "--values", "hex", "--max", "1")
    assert expected[1014]["value"].hex() == as_text[0]["value"]


def plain(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that were written, without what makes them bold."""
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


def test_a_terminal_gets_tables_that_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of few fields are a table, those of many are wrapped; a record is one line."""
    from segproof_harness.cli import _Stream

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(_Stream, "isatty", lambda _: True, raising=False)
    for path in FILES:
        assert 0 == cli.run(["dump", str(path), "--max", "3"])
        lines = plain(capsys)
        assert f"# {path}" == lines[0]
        assert max(map(len, lines[1:])) <= 80
    assert 0 == cli.run(["dump", str(FILES[1])])
    lines = plain(capsys)
    assert ["offset", "position"] == lines[1].split()
    assert ["1029", "5375"] == lines[2].split()
    assert 0 == cli.run(["dump", str(LOG), "--records", "--max", "1"])
    assert plain(capsys)[-1].startswith("| offset: 1014 ")


@pytest.mark.needs("pyarrow")
def test_without_rows_the_table_is_empty(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """A range without records gives a whole Parquet file, and an empty CSV file."""
    assert [] == from_parquet(capsysbinary, LOG, "--from", "999999")
    assert b"" == written(capsysbinary, LOG, "--from", "999999", "--format", "csv")


def test_parquet_without_pyarrow_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and the command, not a traceback."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 2 == cli.run(["dump", str(LOG), "--format", "parquet"])
    assert "pip install 'segproof[spark]'" in capsys.readouterr().err
