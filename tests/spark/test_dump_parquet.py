# SPDX-License-Identifier: Apache-2.0
"""`dump --format parquet`: the rows of `jsonl`, with their types. It takes the extra `spark`."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest

from segproof.kafka import Record, write_batch
from segproof.kafka.record import RecordHeader
from segproof_harness.reading import log_file_rows
from segproof_tests.dumped_rows import FILES, LOG, TXN, from_csv, from_json, written
from segproof_tests.printed_rows import CapsysBinary

pq: Any = pytest.importorskip("pyarrow.parquet", reason="not run: pyarrow is not installed")

OF_BATCH = (
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "is_control",
    "crc_valid",
)


def from_parquet(capsysbinary: CapsysBinary, *arguments: str | Path) -> list[Any]:
    """Return the rows of the dump as Parquet."""
    data = written(capsysbinary, *arguments, "--format", "parquet")
    return list(pq.read_table(io.BytesIO(data)).to_pylist())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_parquet_has_the_rows_of_jsonl(path: Path, capsysbinary: CapsysBinary) -> None:
    """With the types of JSON: integers, text, true and false, null."""
    assert from_json(capsysbinary, path) == from_parquet(capsysbinary, path)


def test_records_have_columns_of_their_batch(capsysbinary: CapsysBinary) -> None:
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


def test_without_rows_the_table_is_empty(capsysbinary: CapsysBinary) -> None:
    """A range without records gives a whole file."""
    assert [] == from_parquet(capsysbinary, LOG, "--from", "999999")


def mixed_log(folder: Path) -> Path:
    """Return a log with batches that are decoded together, compressed ones and old messages."""
    headers = (RecordHeader("one", b"1"), RecordHeader("", None))
    made, offset = b"", 0
    for magic, compression in ((2, "none"), (2, "gzip"), (2, "none"), (1, "none"), (0, "gzip")):
        for count in (1, 5):
            records = [
                Record(
                    offset + number,
                    1000 + offset if magic else -1,
                    None if number % 3 else b"key",
                    None if number % 4 == 1 else b"value",
                    headers[: number % 3] if magic == 2 else (),
                )
                for number in range(count)
            ]
            made += write_batch(records, magic=magic, base_offset=offset, compression=compression)
            offset += count
    folder.mkdir()
    log = folder / "00000000000000000000.log"
    log.write_bytes(made)
    return log


@pytest.mark.parametrize("options", [(), ("--from", "3", "--to", "20"), ("--max", "13")], ids=str)
def test_blocks_have_the_records_of_jsonl(
    options: tuple[str, ...], tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """Headers are JSON, in batches that are decoded together and in those read by themselves."""
    log = mixed_log(tmp_path / "t-0")
    as_hex = ("--records", "--values", "hex", *options)
    expected = [row for row in from_json(capsysbinary, log, *as_hex) if "magic" not in row]
    assert expected
    found = from_parquet(capsysbinary, log, *as_hex)
    for row, told in zip(found, expected, strict=True):
        assert {**told, "headers": json.dumps(told["headers"])} == {
            name: row[name] for name in told
        }


def test_no_record_is_an_object_of_python(
    tmp_path: Path, capsysbinary: CapsysBinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million records would take a hundred times as long as their columns."""
    log = mixed_log(tmp_path / "t-0")
    monkeypatch.delattr(log_file_rows, "record_row")
    assert 30 == len(from_parquet(capsysbinary, log, "--records"))
