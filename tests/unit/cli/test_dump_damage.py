# SPDX-License-Identifier: Apache-2.0
"""`dump` is never silently wrong or short: what is damaged ends it, or is told with exit code 1."""

import csv
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import segproof
from segproof.errors import RowsLeftOutWarning
from segproof.kafka import Record, write_batch
from segproof_harness import cli
from segproof_harness.cli.dump import TOLD_PLACES
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ
from segproof_tests.partition_files import name_of
from segproof_tests.printed_rows import CapsysBinary
from segproof_tests.real_copies import copy_of, flip
from segproof_tests.small_logs import batch
from segproof_tests.store_files import long_store

WAYS = ("fail", "skip", "keep")
FORMATS = ("text", "jsonl", "csv", "parquet")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a copy of a real partition of several segments."""
    return copy_of("kafka/plain/plain-0", tmp_path / "plain-0")


def dumped(capsysbinary: CapsysBinary, path: Path, *options: str) -> tuple[int, bytes, str]:
    """Return exit code, standard output and standard error of a dump."""
    code = cli.run(["dump", str(path), *options])
    shown = capsysbinary.readouterr()
    return code, shown.out, shown.err.decode()


def rows_of(out: bytes, output_format: str) -> list[dict[str, Any]]:
    """Return the rows that a dump wrote."""
    if output_format == "jsonl":
        return [json.loads(line) for line in out.splitlines()]
    if output_format == "csv":
        return list(csv.DictReader(io.StringIO(out.decode(), newline="")))
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(out)).to_pylist()
    return found


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("records", [[], ["--records"]])
@pytest.mark.parametrize("output_format", FORMATS)
def test_a_wrong_checksum_is_never_silent(
    output_format: str,
    records: list[str],
    partition: Path,
    capsysbinary: CapsysBinary,
) -> None:
    """Each format had the rows of a damaged batch with exit code 0."""
    log = min(partition.glob("*252.log"))
    shown = [*records, "--format", output_format]
    code, whole, _ = dumped(capsysbinary, log, *shown)
    assert 0 == code
    flip(log, 9000)
    told: dict[str, tuple[int, bytes, str]] = {
        how: dumped(capsysbinary, log, *shown, "--on-damage", how) for how in WAYS
    }
    assert told["fail"] == dumped(capsysbinary, log, *shown)
    assert {1} == {code for code, _, _ in told.values()}
    for how in ("fail", "skip"):
        assert f"{log}: byte " in told[how][2]
        assert "wrong checksum" in told[how][2]
    assert "--on-damage keep" in told["fail"][2]
    each = "each row of it" if records and output_format in ("csv", "parquet") else "its row"
    assert (
        f"1 batch is shown with a wrong checksum: crc_valid is false in {each}\n"
        in (told["keep"][2])
    )
    if output_format == "text":
        assert b"crc_valid: false" in told["keep"][1]
        assert not any(b"crc_valid: false" in told[how][1] for how in ("fail", "skip"))
        return
    kept, skipped = (rows_of(told[how][1], output_format) for how in ("keep", "skip"))
    assert len(rows_of(whole, output_format)) == len(kept)
    if output_format != "jsonl" or not records:
        right = [row for row in kept if row["crc_valid"] in (True, "true")]
        assert len(right) < len(kept)
        assert right == skipped
    assert len(skipped) < len(kept)
    if output_format == "parquet":
        with pytest.raises(Exception, match=r"[Pp]arquet"):
            rows_of(told["fail"][1], output_format)
    else:
        found = rows_of(told["fail"][1], output_format)
        assert kept[: len(found)] == found


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("output_format", FORMATS)
def test_what_is_said_of_a_batch_that_cannot_be_inflated(
    output_format: str, tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """A table without a row of the batch had "crc_valid is false in each row of it"."""
    records = [Record(n, 9, None, b"value " * 9) for n in range(6)]
    batches = [
        write_batch(records[at : at + 3], base_offset=at, compression="gzip") for at in (0, 3)
    ]
    log = tmp_path / name_of(0, ".log")
    log.write_bytes(b"".join(batches))
    flip(log, len(batches[0]) - 6)
    shown = ("--records", "--format", output_format, "--on-damage", "keep")
    code, out, words = dumped(capsysbinary, log, *shown)
    assert (1, 1) == (code, words.count("the checksum of the batch is wrong, and records of it"))
    assert "if the checksum" not in words
    has_row_of_batch = output_format in ("text", "jsonl")
    assert has_row_of_batch == ("1 batch is shown with a wrong checksum" in words)
    assert has_row_of_batch == ("crc_valid is false in its row" in words)
    if output_format != "text":
        rows = rows_of(out, output_format)
        assert [3, 4, 5] == [int(row["offset"]) for row in rows if "offset" in row]
        assert has_row_of_batch == (False in [row["crc_valid"] for row in rows if "magic" in row])
    with pytest.warns(RowsLeftOutWarning, match="the checksum of a batch is wrong, and records"):
        assert 3 == segproof.scan(log, on_damage="keep").read_all().num_rows


@pytest.mark.needs("pyarrow")
def test_parquet_that_failed_late_has_no_footer(
    partition: Path, capsysbinary: CapsysBinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that are written already are no table that a tool reads as a whole one."""
    import gc

    monkeypatch.setattr("segproof_harness.cli.dump_output.GROUP_RECORDS", 10)
    flip(min(partition.glob("*342.log")), 9000)
    code, out, _ = dumped(capsysbinary, partition, "--records", "--format", "parquet")
    gc.collect()
    out += capsysbinary.readouterr().out
    assert (1, b"PAR1") == (code, out[:4])
    with pytest.raises(Exception, match=r"[Pp]arquet"):
        rows_of(out, "parquet")


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "torn tail of the last segment": ("*342.log", lambda data: data[:-5]),
    "torn tail of a closed segment": ("*252.log", lambda data: data[:-5]),
    "zeros after a closed segment": ("*252.log", lambda data: data + bytes(99)),
    "wrong size field": ("*252.log", lambda data: data[:8] + b"\0\0\0\1" + data[12:]),
    "cut offset index": ("*252.index", lambda data: data[:-3]),
    "cut time index": ("*252.timeindex", lambda data: data[:-3]),
    "cut transaction index": ("*.log", lambda data: data),
    "epochs of one digit less": ("leader-epoch-checkpoint", lambda data: b"0\n9\n0 0\n"),
}


def test_a_batch_that_is_being_written_is_no_damage(
    partition: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: CapsysBinary,
) -> None:
    """A log that grows meanwhile is told on standard error, with exit code 0."""
    log = max(partition.glob("*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-9])
    sizes = iter(range(9, 0, -1))

    def write_on(_: float) -> None:
        log.write_bytes(whole[: -next(sizes) + 1])

    monkeypatch.setattr("segproof_harness.reading.log_file_rows.time.sleep", write_on)
    code, _, err = dumped(capsysbinary, log)
    assert (0, True) == (code, "a batch that is being written" in err)


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_exit_code_1(
    damage: str, partition: Path, capsysbinary: CapsysBinary
) -> None:
    """The file is named; `skip` goes on with the other files, and `fail` does not."""
    pattern, change = DAMAGES[damage]
    if damage == "cut transaction index":
        path = partition / name_of(252, ".txnindex")
        path.write_bytes(struct.pack(">hqqqq", 0, 1, 260, 270, 271) + b"\0\0\0")
    else:
        path = min(partition.glob(pattern))
        path.write_bytes(change(path.read_bytes()))
    for how in WAYS:
        code, out, err = dumped(capsysbinary, partition, "--format", "jsonl", "--on-damage", how)
        assert 1 == code
        assert str(path) in err
        shown = {row["path"] for row in rows_of(out, "jsonl")}
        last = str(partition / "leader-epoch-checkpoint")
        assert (last in shown) == (how != "fail" and str(path) != last)


def test_a_snapshot_of_the_metadata_that_is_damaged(
    tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """It was shown with `crc_valid: false` and exit code 0; zeros were a preallocated tail."""
    source = KAFKA / "compacted" / "logdir" / "bootstrap.checkpoint"
    data = source.read_bytes()
    path = tmp_path / "00000000000000000042-0000000001.checkpoint"
    wrong = data[:100] + bytes([data[100] ^ 1]) + data[101:]
    for damaged in (wrong, data[:-1], data[:100], data[:80] + bytes(len(data) - 80), bytes(500)):
        path.write_bytes(damaged)
        for how in WAYS:
            assert 1 == dumped(capsysbinary, path, "--on-damage", how)[0]
    path.write_bytes(data)
    assert 0 == dumped(capsysbinary, path)[0]


def test_a_batch_that_cannot_be_decoded_costs_its_own_records_only(
    partition: Path, capsysbinary: CapsysBinary
) -> None:
    """The rest of the file is shown, also where the caller wants damaged records."""
    log = min(partition.glob("*252.log"))
    _, out, _ = dumped(capsysbinary, log, "--format", "jsonl")
    broken = rows_of(out, "jsonl")[1]
    data = bytearray(log.read_bytes())
    end = broken["position"] + broken["size"]
    data[broken["position"] + 61 : end] = b"\xff" * (broken["size"] - 61)
    log.write_bytes(data)
    for how in ("skip", "keep"):
        code, out, _ = dumped(capsysbinary, log, "--records", "--format", "csv", "--on-damage", how)
        offsets = {int(row["offset"]) for row in rows_of(out, "csv")}
        lost = {*range(broken["base_offset"], broken["last_offset"] + 1)}
        assert (1, set(range(252, 342)) - lost) == (code, offsets & set(range(252, 342)))


def test_a_range_does_not_hide_damage_in_what_is_read(
    partition: Path, capsysbinary: CapsysBinary
) -> None:
    """The header of a damaged batch does not say whether its records are wanted."""
    log = min(partition.glob("*252.log"))
    _, out, _ = dumped(capsysbinary, log, "--format", "jsonl")
    middle = rows_of(out, "jsonl")[1]
    data = bytearray(log.read_bytes())
    data[middle["position"] + 35 : middle["position"] + 43] = bytes(8)  # its largest timestamp
    log.write_bytes(data)
    for records in ([], ["--records"]):
        code, _, err = dumped(capsysbinary, log, *records, "--from", "2026-01-01T00:00Z")
        assert (1, True) == (code, f"byte {middle['position']}" in err)


def test_many_damaged_places_are_counted(tmp_path: Path, capsysbinary: CapsysBinary) -> None:
    """A line for each of millions would hide the data."""
    count = TOLD_PLACES + 5
    parts = [bytearray(batch(at)) for at in range(count)]
    for part in parts:
        part[-1] ^= 1
    (tmp_path / name_of(0, ".log")).write_bytes(b"".join(parts))
    code, out, err = dumped(capsysbinary, tmp_path, "--format", "jsonl", "--on-damage", "skip")
    assert (1, b"") == (code, out)
    assert TOLD_PLACES + 1 == len(err.splitlines())
    assert "5 more places" in err


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a copy of a real store with two files of its log."""
    return copy_of("rocketmq/rolled-4.9.8/store", tmp_path / "store")


def messages_of(
    capsysbinary: CapsysBinary, path: Path, *options: str
) -> tuple[int, list[int], str]:
    """Return exit code, offsets in the commit log and standard error of a dump."""
    code, out, err = dumped(capsysbinary, path, "--format", "jsonl", *options)
    return code, [row["phy_offset"] for row in rows_of(out, "jsonl")], err


def test_a_message_with_a_wrong_checksum(store: Path, capsysbinary: CapsysBinary) -> None:
    """Those after it are shown if the caller goes on; they were left out."""
    log = min((store / "commitlog").iterdir())
    code, whole, _ = messages_of(capsysbinary, log)
    assert (0, True) == (code, len(whole) > 3)
    _, out, _ = dumped(capsysbinary, log, "--records", "--format", "jsonl", "--values", "text")
    body = rows_of(out, "jsonl")[1]["body"].encode()
    data = bytearray(log.read_bytes())
    data[data.index(body, whole[1])] ^= 1
    log.write_bytes(data)
    assert (1, whole[:1]) == messages_of(capsysbinary, log)[:2]
    code, skipped, err = messages_of(capsysbinary, log, "--on-damage", "skip")
    assert (1, [whole[0], *whole[2:]]) == (code, skipped)
    assert f"byte {whole[1]}" in err
    code, out, _ = dumped(capsysbinary, log, "--format", "jsonl", "--on-damage", "keep")
    kept = rows_of(out, "jsonl")
    assert (1, whole) == (code, [row["phy_offset"] for row in kept])
    assert [whole[1]] == [row["phy_offset"] for row in kept if not row["crc_valid"]]


def test_zeros_in_the_middle_of_a_log_or_queue_are_no_end(
    store: Path, capsysbinary: CapsysBinary
) -> None:
    """What follows them was left out with exit code 0."""
    log = min((store / "commitlog").iterdir())
    _, whole, _ = messages_of(capsysbinary, log)
    queue = min(store.glob("consumequeue/*/*/*"))
    for path, at, size in ((log, whole[2], whole[3] - whole[2]), (queue, 20, 20)):
        before = path.read_bytes()
        path.write_bytes(before[:at] + bytes(size) + before[at + size :])
        for how in WAYS:
            code, _, err = dumped(capsysbinary, path, "--on-damage", how)
            assert (1, True) == (code, f"{path}: byte {at}: zeros begin here" in err)
        path.write_bytes(before[:at] + bytes(size))
        assert 0 == dumped(capsysbinary, path)[0]
        later = path.with_name(f"{1 << 40:020d}")
        later.touch()
        assert 1 == dumped(capsysbinary, path)[0]
        later.unlink()
        path.write_bytes(before)


def test_a_cut_queue_is_told(store: Path, capsysbinary: CapsysBinary) -> None:
    """Part of a unit at its end was left out with exit code 0."""
    queue = min(store.glob("consumequeue/*/*/*"))
    units = queue.read_bytes()
    queue.write_bytes(units[:30])
    code, _, err = dumped(capsysbinary, queue)
    assert (1, True) == (code, "byte 20: part of a unit" in err)


def test_an_index_file_with_fewer_entries_than_its_header_counts(
    tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """`scan` told it, and `dump` did not."""
    index = min((ROCKETMQ / "collisions-4.9.8" / "store" / "index").iterdir())
    data = index.read_bytes()
    path = tmp_path / index.name
    path.write_bytes(data[:36] + struct.pack(">i", 1 << 30) + data[40:])
    code, _, err = dumped(capsysbinary, path)
    assert (1, True) == (code, "the header counts 1073741823 entries" in err)


RUN = (
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\uff1d1",
    "-",
    "-cmd|'x'",
)
PLAIN = ("-5", "+5", "-1.5e3", "a=1", "1-1", "", "'", "5", "-.5")


@pytest.mark.parametrize("text", [*RUN, *PLAIN])
def test_a_cell_that_a_spreadsheet_would_run_is_guarded(
    text: str, tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """Numbers stay numbers, and `as-is` has every text as it is."""
    path = tmp_path / name_of(0, ".log")
    path.write_bytes(batch(0, b"-7", text.encode(), time=-1))
    shown = ["--records", "--values", "text", "--format", "csv"]
    (row,) = rows_of(dumped(capsysbinary, path, *shown)[1], "csv")
    assert ((f"'{text}" if text in RUN else text), "-7") == (row["key"], row["value"])
    assert ("0", "-1", "-1") == (row["offset"], row["timestamp"], row["producer_id"])
    (row,) = rows_of(dumped(capsysbinary, path, *shown, "--csv-cells", "as-is")[1], "csv")
    assert text == row["key"]


def test_a_cell_never_begins_within_another(tmp_path: Path, capsysbinary: CapsysBinary) -> None:
    """A spreadsheet of another country takes a semicolon for the separator, unless it is quoted."""
    path = tmp_path / name_of(0, ".log")
    path.write_bytes(batch(0, b'b"\t=1+1', b"a;=1+1"))
    _, out, _ = dumped(capsysbinary, path, "--records", "--values", "text", "--format", "csv")
    assert b',"a;=1+1","b""\t=1+1",' in out


@pytest.mark.checks("RMQDISK-23", "RMQDISK-35")
@pytest.mark.parametrize("folder", ["commitlog", "consumequeue/T/0"])
def test_a_file_that_a_store_lacks_is_told(
    folder: str, tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """A dump of 647 of 900 messages ended with exit code 0 and no word."""
    store = long_store(tmp_path / "store", 120)
    first, gone, following, *_ = sorted((store / folder).iterdir())
    assert 0 == dumped(capsysbinary, store)[0]
    gone.unlink()
    begin, end = int(gone.name), int(following.name)
    words = (
        f"{first}: byte {begin}: the file ends at offset {begin}, and the next one begins at {end}"
    )
    for how in WAYS:
        code, _, err = dumped(capsysbinary, store, "--on-damage", how)
        assert (1, True) == (code, words in err)
    assert 0 == dumped(capsysbinary, first)[0]
    if folder == "commitlog":
        for option, inside, outside in (("--from", end - 1, end), ("--to", begin + 1, begin)):
            assert 1 == dumped(capsysbinary, store, option, str(inside))[0]
            assert 0 == dumped(capsysbinary, store, option, str(outside))[0]
