# SPDX-License-Identifier: Apache-2.0
"""`dump` of small files, keys and values as text, and times as ISO 8601, in and out."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from segproof.kafka import RecordFile
from segproof.kafka.batch_writing import write_batch
from segproof.kafka.producer_snapshot import ProducerStateEntry, write_snapshot_file
from segproof.kafka.record import Record, RecordHeader
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, stores
from segproof_harness.reports.bytes_as_text import BytesAs, encoder
from segproof_tests.printed_rows import Capsys, jsonl, shown

TXN = KAFKA / "txn-a" / "txn-a-0"
PLAIN = KAFKA / "plain" / "plain-0"
LOG_DIRECTORY = KAFKA / "compacted" / "logdir"
SNAPSHOT = "00000000000000001014.snapshot"
LAST_PRODUCER = {
    "producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 0,
    "current_txn_first_offset": None, "last_timestamp": 1795223361742, "first_sequence": 85,
    "last_sequence": 85, "first_offset": 989, "last_offset": 989, "offset_delta": 0,
}  # fmt: skip


def test_small_files_are_dumped_with_the_words_of_kafka(tmp_path: Path, capsys: Capsys) -> None:
    """Each small file of a partition and of a data directory has a row for each entry."""
    assert LAST_PRODUCER in jsonl(capsys, "dump", TXN / SNAPSHOT)
    epochs = jsonl(capsys, "dump", TXN / "leader-epoch-checkpoint")
    assert [{"epoch": 0, "start_offset": 0}, {"epoch": 4, "start_offset": 2414}] == epochs
    metadata = jsonl(capsys, "dump", TXN / "partition.metadata")
    assert [{"version": 0, "topic_id": "SIDRe30LQia02iIBhGT2aw"}] == metadata
    replicated = jsonl(capsys, "dump", LOG_DIRECTORY / "replication-offset-checkpoint")
    assert {"topic": "txn-b", "partition": 0, "offset": 1970} in replicated
    marker = tmp_path / ".kafka_cleanshutdown"
    shutil.copyfile(LOG_DIRECTORY / "kafka_cleanshutdown", marker)
    assert [{"version", "broker_epoch"}] == [set(each) for each in jsonl(capsys, "dump", marker)]


def test_a_snapshot_of_the_metadata_is_dumped_as_a_log(tmp_path: Path, capsys: Capsys) -> None:
    """It holds batches between a header and a footer, which are control records."""
    [bootstrap] = {row["path"] for row in jsonl(capsys, "dump", LOG_DIRECTORY) if "magic" in row}
    assert str(LOG_DIRECTORY / "bootstrap.checkpoint") == bootstrap
    snapshot = tmp_path / "00000000000000000042-0000000001.checkpoint"
    shutil.copyfile(bootstrap, snapshot)
    batches = jsonl(capsys, "dump", snapshot)
    assert batches == jsonl(capsys, "dump", snapshot, "--profile", "kafka-4.3.1")
    assert [True, False, True] == [batch["is_control"] for batch in batches]
    assert all(batch["crc_valid"] for batch in batches)


def test_a_producer_without_batches_has_nulls(tmp_path: Path, capsys: Capsys) -> None:
    """Only a marker was written: sequence and offset are null, and the timestamp stays -1."""
    write_snapshot_file(tmp_path / SNAPSHOT, [ProducerStateEntry(7)])
    [row] = jsonl(capsys, "dump", tmp_path / SNAPSHOT)
    assert (7, None, None, -1) == (
        row["producer_id"], row["last_sequence"], row["last_offset"], row["last_timestamp"],
    )  # fmt: skip
    assert "last_timestamp: -1 " in shown(capsys, "dump", tmp_path / SNAPSHOT)


def test_a_directory_shows_its_small_files_too(capsys: Capsys) -> None:
    """Snapshots, epochs and metadata follow the segments, with their paths."""
    paths = dict.fromkeys(Path(row["path"]).name for row in jsonl(capsys, "dump", TXN))
    assert [
        "00000000000000001014.snapshot", "00000000000000001732.snapshot",
        "00000000000000002414.snapshot", "leader-epoch-checkpoint", "partition.metadata",
    ] == list(paths)[-5:]  # fmt: skip
    rows = jsonl(capsys, "dump", LOG_DIRECTORY)
    assert {"topic", "partition", "offset", "path"} == set(rows[-1])


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (SNAPSHOT, b"\0\1garbage of a snapshot", "does not hold"),
        (SNAPSHOT, b"", "too short"),
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n", "2 entries promised, 1 found"),
        ("replication-offset-checkpoint", b"\xff\xfe", "not UTF-8"),
        ("partition.metadata", b"version: 0\n", "1 lines, 2 expected"),
        (".kafka_cleanshutdown", b"[" * 100_000, "holds no broker epoch"),
    ],
)
def test_a_damaged_small_file_is_told(
    name: str, data: bytes, why: str, tmp_path: Path, capsys: Capsys
) -> None:
    """The file, and what is wrong with it, on standard error; exit code 1."""
    path = tmp_path / name
    path.write_bytes(data)
    assert 1 == cli.run(["dump", str(path)])
    told = capsys.readouterr().err
    assert str(path) in told
    assert why in told


def test_a_small_file_that_is_huge_is_not_read(tmp_path: Path, capsys: Capsys) -> None:
    """A snapshot of one gigabyte, a hole, is refused by its size."""
    path = tmp_path / SNAPSHOT
    with path.open("wb") as file:
        file.truncate(1 << 30)
    assert 1 == cli.run(["dump", str(path)])
    assert "--limit-bytes" in capsys.readouterr().err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log with a record for each kind of value."""
    values = [b'{"n": 1}', "caf\u00e9 \u2192\n".encode(), b"\0\0\0\7", b"\xff", None, b"0x00"]
    path = tmp_path / "00000000000000000000.log"
    with RecordFile.open(str(path), create=True) as file:
        records = [
            Record(number, 1795223361742, b"key-1", value, (RecordHeader("h", value),))
            for number, value in enumerate(values)
        ]
        file.append(write_batch(records, base_offset=0))
    return path


def values_of(rows: list[Any]) -> list[Any]:
    """Return the values of the records among rows."""
    return [row["value"] for row in rows if "value" in row]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("auto", ['{"n": 1}', "caf\u00e9 \u2192\n", "0x00000007", "0xff", None, "0x00"]),
        ("text", ['{"n": 1}', "caf\u00e9 \u2192\n", "\0\0\0\7", "\\xff", None, "0x00"]),
        ("json", [{"n": 1}, "caf\u00e9 \u2192\n", "0x00000007", "0xff", None, "0x00"]),
        ("hex", [
            "7b226e223a20317d", "636166c3a920e286920a", "00000007", "ff", None, "30783030",
        ]),
        ("base64", ["eyJuIjogMX0=", "Y2Fmw6kg4oaSCg==", "AAAABw==", "/w==", None, "MHgwMA=="]),
    ],
)  # fmt: skip
def test_values_are_shown_as_asked(
    how: str, expected: list[Any], log: Path, capsys: Capsys
) -> None:
    """With `--values` the keys too, unless `--keys` says otherwise."""
    rows = jsonl(capsys, "dump", log, "--records", "--values", how, "--keys", "hex")
    assert expected == values_of(rows)
    assert rows[1]["key"] == b"key-1".hex()
    assert expected == [row["headers"][0]["value"] for row in rows if "headers" in row]


def test_text_has_quotes_and_json_lines_have_base64(log: Path, capsys: Capsys) -> None:
    """A text that looks like hexadecimal digits differs from bytes; a line stays a line."""
    lines = shown(capsys, "dump", log, "--records").splitlines()
    assert 8 == len(lines)
    assert 'key: "key-1" value: "{\\"n\\": 1}"' in lines[2]
    assert "value: 0x00000007 " in lines[4]
    assert 'value: "0x00" ' in lines[7]
    assert "timestamp: 2026-11-21T01:09:21.742Z" in lines[2]
    assert "/w==" in values_of(jsonl(capsys, "dump", log, "--records"))


def test_json_that_is_too_deep_is_text() -> None:
    """A value of brackets alone ends no process."""
    deep = b"[" * 200_000
    assert deep.decode() == encoder(BytesAs.JSON)(deep)
    assert "NaN" == encoder(BytesAs.JSON)(b"NaN")


def test_bodies_of_rocketmq_are_text(capsys: Capsys) -> None:
    """Of a message in a commit log as of a record; times as ISO 8601."""
    log = min(path for store in stores() for path in store.glob("commitlog/*"))
    text = shown(capsys, "dump", log, "--records")
    assert ' body: "' in text
    assert " store_timestamp: 20" in text
    assert all("store_timestamp" in row for row in jsonl(capsys, "dump", log))


@pytest.mark.parametrize(
    ("time", "milliseconds"),
    [
        ("1795222321360", 1795222321360),
        ("2026-11-21T00:52:01.360Z", 1795222321360),
        ("2026-11-21T01:52:01.360+01:00", 1795222321360),
        ("2026-11-21 00:52Z", 1795222320000),
        ("-1", -1),
    ],
)
def test_times_are_milliseconds_or_iso_8601(
    time: str, milliseconds: int, tmp_path: Path, capsys: Capsys
) -> None:
    """`--timestamp`, and each line of `--timestamps`, take both; the target is milliseconds."""
    (tmp_path / "times").write_text(f"{time}\n\n")
    told = [
        jsonl(capsys, "lookup", PLAIN, "--timestamp", time),
        jsonl(capsys, "lookup", PLAIN, "--timestamps", tmp_path / "times"),
    ]
    assert [milliseconds, milliseconds] == [rows[0]["target"] for rows in told]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("2026-11-21T01:00", "has no time zone; write 2026-11-21T01:00Z for UTC"),
        ("2026-11-21", "has no time zone; write 2026-11-21T00:00Z for UTC"),
        ("yesterday", "'yesterday' is no time; write 2026-11-21T01:00Z"),
        ("9223372036854775808", "does not fit 64 bits"),
        ("1" * 5000, "does not fit 64 bits"),
    ],
)
def test_a_time_that_is_none_is_refused(time: str, why: str, capsys: Capsys) -> None:
    """A time without its zone would be another time on another machine."""
    for arguments in (
        ["lookup", str(PLAIN), "--timestamp", time],
        ["lookup", str(PLAIN), "--key", "T#k", "--begin", time],
    ):
        assert 2 == cli.run(arguments)
        assert why in capsys.readouterr().err
