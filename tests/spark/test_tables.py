# SPDX-License-Identifier: Apache-2.0
"""The tables of the data source say what `segproof dump` says of the same files. Without Spark."""

import base64
import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

import segproof
from segproof.errors import SegproofError
from segproof.files import RealFiles
from segproof.kafka import (
    Record,
    RecordHeader,
    write_batch,
    write_empty_batch,
)
from segproof.reading.file_names import segment_file
from segproof.reading.store_paths import Place, PlaceKind
from segproof.tables.options import request_of
from segproof.tables.schemas import TABLES
from segproof.verification import verify
from segproof_harness.laws.borders.log_files import marker
from segproof_harness.reading.log_file_rows import Shown
from segproof_harness.reading.segment_file_rows import rows_of
from segproof_harness.reading.store_file_rows import store_rows
from segproof_spark.table_reader import FilesTask, TableReader, places_of
from segproof_tests.table_rows import read_table, reader_of, rows_and_damage, rows_read

KAFKA = {
    "batches": ".log",
    "records": ".log",
    "index_entries": ".index",
    "time_index_entries": ".timeindex",
    "aborted_transactions": ".txnindex",
}


def dumped(table: str, path: Path) -> list[dict[str, Any]]:
    """Return the rows that `dump` shows of a file, damaged ones too."""
    file = segment_file(str(path))
    assert file is not None
    found: list[dict[str, Any]] = []
    batch: dict[str, Any] = {}
    try:
        shown = Shown(with_records=table == "records", tell=lambda _: None)
        for row in rows_of(file, shown):
            if table == "records":
                batch = row if "magic" in row else batch
                row["crc_valid"] = batch["crc_valid"]
            if table != "records" or "headers" in row:
                found.append(row)
    except SegproofError:
        pass
    return found


def as_dump(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return what `dump` shows of a row: fewer fields, and bytes as base64."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode("ascii")

    if table != "records":
        own = ("path", "directory", "segment_base_offset", "entry")
        return {name: value for name, value in row.items() if name not in own}
    headers = [{"key": each["key"], "value": text(each["value"])} for each in row["headers"]]
    return {
        "offset": row["offset"],
        "timestamp": row["timestamp"],
        "key": text(row["key"]),
        "value": text(row["value"]),
        "headers": headers,
        "sequence": row["sequence"],
        "crc_valid": row["crc_valid"],
    }


def same_as_dump(table: str, folder: Path) -> int:
    """Compare all files of a table below a folder; return the number of rows."""
    rows, _ = rows_and_damage(table, folder, "keep")
    paths = sorted(
        path for path in folder.rglob(f"*{KAFKA[table]}") if path.parent.name != "logdir"
    )
    expected = [(str(path), row) for path in paths for row in dumped(table, path)]
    assert expected == [(row["path"], as_dump(table, row)) for row in rows]
    return len(rows)


@pytest.mark.parametrize("table", KAFKA)
def test_rows_are_those_of_dump(real_files: Path, table: str) -> None:
    """Of every real file of Kafka's that the package carries, all formats and codecs of them."""
    assert same_as_dump(table, real_files / "kafka") > 100 - 95 * (table == "aborted_transactions")


@pytest.mark.parametrize("table", [table for table in TABLES if table != "findings"])
def test_scan_gives_the_rows_of_sparks_reader(real_files: Path, table: str) -> None:
    """`segproof.scan` reads the same tables in one process: names, types, rows and their order."""
    folder = real_files / ("rocketmq" if table == "rocketmq_entries" else "kafka")
    found = segproof.scan(folder, table=table)
    assert TABLES[table].names == tuple(found.schema.names)
    assert read_table(table, folder) == found.read_all().to_pylist()


def test_rows_of_rocketmq_are_those_of_dump(real_files: Path) -> None:
    """Of every real index file of RocketMQ's that the package carries."""
    rows = read_table("rocketmq_entries", real_files / "rocketmq")
    paths = sorted((real_files / "rocketmq").glob("*/store/index/*"))
    expected = []
    for path in paths:
        header, *entries = store_rows(Place(PlaceKind.INDEX_FILE, str(path)), Shown())
        begin = header["begin_timestamp"]
        expected += [(str(path), {"begin_timestamp": begin, **entry}) for entry in entries]
    own = ("path", "directory")
    found = [(row["path"], {k: v for k, v in row.items() if k not in own}) for row in rows]
    assert expected == found
    assert len(found) > 1000


@pytest.mark.parametrize("table", ["batches", "records"])
def test_every_format_and_codec(tmp_path: Path, table: str) -> None:
    """Nulls, headers, sequences that wrap, control batches, gaps, empty batches, old messages."""
    parts = [marker(0, producer_epoch=1, coordinator_epoch=3)]
    offset = 1
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for magic in (0, 1, 2):
            if codec == "zstd" and magic < 2:
                continue
            for kind in ("CreateTime", "LogAppendTime")[: max(1, magic)]:
                parts.append(_batch(offset, codec, magic, kind))
                offset += 4
    parts.append(write_empty_batch(offset, offset + 4, 5))
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(parts))
    assert same_as_dump(table, tmp_path) > len(parts)
    if table == "records":
        sequences = [row["sequence"] for row in read_table(table, tmp_path) if row["sequence"] >= 0]
        assert {2147483646, 2147483647, 1} == set(sequences)
        assert [True] == [row["is_control"] for row in read_table(table, tmp_path)][:1]


def _batch(offset: int, codec: str, magic: int, kind: str) -> bytes:
    headers = (RecordHeader("h\u00e9", b"x"), RecordHeader("", None)) if magic == 2 else ()
    times = [-1] * 3 if magic == 0 else [1_700_000_000_000 + offset + one for one in (5, 0, 2)]
    records = [
        Record(offset, times[0], b"key", b"value" * 40, headers),
        Record(offset + 1, times[1], None, b""),
        Record(offset + 3, times[2], b"", None),
    ]
    more: dict[str, Any] = {}
    if magic == 2:
        more = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 2147483646}
    return write_batch(
        records,
        magic=magic,
        base_offset=offset,
        compression=codec,
        timestamp_type="NoTimestampType" if magic == 0 else kind,
        log_append_time=1_700_000_009_999 if kind == "LogAppendTime" else None,
        **more,
    )


@pytest.mark.parametrize("table", ["batches", "records"])
@pytest.mark.parametrize("damage", ["size", "magic", "cut", "header", "length", "zeros", "tiny"])
def test_rows_up_to_the_damage(partition: Path, table: str, damage: str) -> None:
    """Damage costs rows of its file, and those of the others go on, as in `dump`."""
    log = min(partition.glob("*252.log"))
    data = bytearray(log.read_bytes())
    positions = [row["position"] for row in read_table("batches", log)]
    at = positions[len(positions) // 2]
    if damage == "size":
        data[at + 8 : at + 12] = bytes(4)
    elif damage == "magic":
        data[at + 16] = 7
    elif damage == "cut":
        del data[at + 30 :]
    elif damage == "header":
        del data[at + 30 :]
        data[at + 8 : at + 12] = (18).to_bytes(4, "big")
    elif damage == "length":
        data[at + 61] = 0x7E
    elif damage == "zeros":
        data[at:] = bytes(1000)
    else:
        data[at:] = data[at : at + 8] + (20).to_bytes(4, "big") + data[at + 12 : at + 32]
        data += log.read_bytes()[at:]
    log.write_bytes(data)
    assert same_as_dump(table, partition) > 0
    with pytest.raises(SegproofError, match=r"252\.log.*on_damage=skip"):
        read_table(table, partition)
    _, told = rows_and_damage(table, partition, "skip")
    assert all("252.log: byte " in each for each in told)
    assert told


@pytest.mark.parametrize("table", ["index_entries", "time_index_entries", "aborted_transactions"])
def test_rows_of_damaged_indexes(real_files: Path, tmp_path: Path, table: str) -> None:
    """Zeros inside and behind, a partial entry, an unknown version: the rows of `dump`."""
    source = real_files / "kafka" / "txn-a" / "txn-a-0"
    for number, path in enumerate(sorted(source.glob(f"*{KAFKA[table]}"))):
        data = path.read_bytes()
        size = {".index": 8, ".timeindex": 12, ".txnindex": 34}[KAFKA[table]]
        tails = (bytes(size * 40_000) + data[:size] + bytes(size * 70_000), b"\0\1\2", b"\7" * 90)
        (tmp_path / path.name).write_bytes(data + tails[number])
    assert same_as_dump(table, tmp_path) > 1


def test_old_messages_are_counted(real_files: Path) -> None:
    """The first offset and the count of a compressed message are in its records only."""
    folder = real_files / "kafka" / "v1-gzip"
    rows = read_table("batches", folder, columns="base_offset,record_count,magic,compression")
    assert ["base_offset", "record_count", "magic", "compression"] == list(rows[0])
    assert any(row["record_count"] > 1 and row["magic"] == 1 for row in rows)
    few = read_table("batches", folder, columns="last_offset,magic")
    assert len(rows) == len(few)


def test_segments_say_what_batches_say(real_files: Path) -> None:
    """Counts, offsets and lengths of the table `segments` are sums over the other tables."""
    folder = real_files / "kafka"
    segments = {row["path"]: row for row in read_table("segments", folder)}
    batches = read_table("batches", folder)
    for path, segment in segments.items():
        own = [row for row in batches if row["path"] == path]
        assert len(own) == segment["batch_count"]
        assert sum(not row["crc_valid"] for row in own) == segment["invalid_batch_count"]
        assert own[0]["base_offset"] == segment["first_offset"]
        assert max(row["last_offset"] for row in own) == segment["last_offset"]
        assert max(row["max_timestamp"] for row in own) == segment["max_timestamp"]
        assert sum(row["size"] for row in own) == segment["read_bytes"]
        assert Path(path).stat().st_size == segment["log_bytes"]
        assert (segment["damage"] is None) == (segment["log_bytes"] == segment["read_bytes"])
        if own[0]["magic"] == 2:
            assert sum(row["record_count"] for row in own) == segment["record_count"]
        index = Path(path).with_suffix(".index")
        assert len(dumped("index_entries", index)) == segment["offset_index_entries"]
        assert index.stat().st_size == segment["offset_index_bytes"]
    assert len(segments) == len(list(folder.rglob("*-0/*.log")))


def test_segments_tell_the_damage(partition: Path) -> None:
    """Each file that ends early is named, and nothing is read that no column asks for."""
    log, index = min(partition.glob("*252.log")), min(partition.glob("*252.index"))
    with log.open("ab") as file:
        file.write(b"123")
    with index.open("ab") as file:
        file.write(b"4")
    told = read_table("segments", partition, on_damage="keep")
    (row,) = (row for row in told if row["segment_base_offset"] == 252)
    assert "252.log: byte" in row["damage"]
    assert f"252.index: byte {index.stat().st_size - 1}: " in row["damage"]
    assert "3 bytes behind the last whole batch" in row["damage"]
    assert "1 byte behind the last whole entry" in row["damage"]
    lengths = read_table("segments", partition, columns="segment_base_offset,log_bytes")
    assert log.stat().st_size in [row["log_bytes"] for row in lengths]


@pytest.mark.parametrize("size", [5, 100, 5000])
def test_preallocated_zeros_are_no_damage(partition: Path, size: int) -> None:
    """The last log may end in them, as `verify` says too."""
    whole = {table: read_table(table, partition) for table in ("batches", "records")}
    with max(partition.glob("*.log")).open("ab") as file:
        file.write(bytes(size))
    assert [] == [one for one in verify(partition) if one.is_defect]
    for table, rows in whole.items():
        assert rows == read_table(table, partition)
    assert {None} == {row["damage"] for row in read_table("segments", partition)}


def test_an_unreadable_file_leaves_the_others(partition: Path) -> None:
    """A log that is a folder has no rows; the job goes on, or fails if it is to."""
    whole = read_table("batches", partition)
    log = min(partition.glob("*252.log"))
    log.unlink()
    log.mkdir()
    rows, (told,) = rows_and_damage("batches", partition, "skip")
    assert [row for row in whole if row["path"] != str(log)] == rows
    assert "not a regular file" in told
    with pytest.raises(SegproofError, match=r"252\.log: not a regular file.*on_damage"):
        read_table("batches", partition)
    segments = read_table("segments", partition, on_damage="skip")
    (row,) = (row for row in segments if row["path"] == str(log))
    assert "not a regular file" in row["damage"]


def test_a_file_that_vanishes_leaves_the_others(partition: Path) -> None:
    """A log is removed between planning and reading: it has no rows, and `segments` says why."""
    whole = read_table("batches", partition)
    log = min(partition.glob("*252.log"))
    readers = [
        reader_of(table, partition, **options)
        for table, options in (
            ("batches", {"on_damage": "skip"}),
            ("segments", {"on_damage": "skip"}),
            ("batches", {}),
        )
    ]
    planned = [(reader, reader.partitions()) for reader in readers]
    log.unlink()
    left = [row for row in rows_read(*planned[0]) if row.pop("damage") is None]
    assert [row for row in whole if row["path"] != str(log)] == left
    (row,) = (row for row in rows_read(*planned[1]) if row["path"] == str(log))
    assert f"{log}: No such file or directory" in row["damage"]
    with pytest.raises(SegproofError, match=r"252\.log"):
        rows_read(*planned[2])


def test_a_closed_directory_leaves_the_others(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a row of `segments` with the reason; or the job fails, if it is to."""
    closed = partition.parent / "closed-0"
    closed.mkdir()
    list_directory = RealFiles.list_directory

    def refuse(files: RealFiles, path: str) -> list[str]:
        if path == str(closed):
            raise PermissionError(errno.EACCES, "permission denied", path)
        return list_directory(files, path)

    monkeypatch.setattr(RealFiles, "list_directory", refuse)
    rows, (told,) = rows_and_damage("batches", partition.parent, "skip")
    assert read_table("batches", partition) == rows
    assert "closed-0" in told
    first = read_table("segments", partition.parent, on_damage="keep")[0]
    assert (str(closed), "it cannot be listed: permission denied") == (
        first["path"],
        first["damage"],
    )
    with pytest.raises(SegproofError, match="closed-0: it cannot be listed"):
        read_table("batches", partition.parent)


def test_only_what_a_broker_reads_is_found_in_folders(partition: Path) -> None:
    """Names that a broker passes over are read only if they are named themselves."""
    log = min(partition.glob("*252.log"))
    others = (partition / "252.log", partition / f"{log.name}.deleted")
    for other in others:
        shutil.copy(log, other)
    gone = partition.parent / f"gone-0.{'0' * 32}-delete"
    shutil.copytree(partition, gone)
    found = {row["path"] for row in read_table("batches", partition.parent)}
    assert {str(path) for path in partition.glob(f"{'[0-9]' * 20}.log")} == found
    for other in others:
        rows = read_table("batches", other)
        assert [252] == sorted({row["segment_base_offset"] for row in rows})
        assert len(read_table("batches", log)) == len(rows)


def test_each_file_is_read_once(partition: Path) -> None:
    """Paths may overlap; tasks are cut by bytes and lose nothing."""
    whole = read_table("batches", partition)
    request = request_of({"table": "batches", "task_bytes": "1"})
    reader = TableReader(places_of([str(partition), str(min(partition.glob("*.log")))]), request)
    tasks = reader.partitions()
    assert len(list(partition.glob("*.log"))) == len(tasks)
    assert whole == rows_read(reader, tasks)
    assert [] == rows_read(reader, [FilesTask()])


def test_paths_may_be_globs_and_urls(partition: Path) -> None:
    """What is read by a URL or a glob is what is read by the path."""
    whole = [row["offset"] for row in read_table("records", partition)]
    assert whole == [row["offset"] for row in read_table("records", partition.parent / "plain-*")]
    assert whole == [row["offset"] for row in read_table("records", partition.as_uri())]
    with pytest.raises(FileNotFoundError):
        read_table("records", partition.parent / "none-*")
    with pytest.raises(FileNotFoundError):
        read_table("records", partition.parent / "none")


def test_batches_of_arrow_are_bounded(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of many batches share one batch of Arrow's, and it is bounded by rows."""
    whole = read_table("records", partition)
    monkeypatch.setattr("segproof.reading.record_blocks.ROWS_AT_ONCE", 7)
    monkeypatch.setattr("segproof.tables.columns.MERGED_ROWS", 7)
    reader = reader_of("records", partition)
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    assert whole == [row for batch in batches for row in batch.to_pylist()]
    assert max(batch.num_rows for batch in batches) < 30


def test_a_large_batch_is_not_read(partition: Path) -> None:
    """Above the limit the records of a batch are left out; the option raises it."""
    log = min(partition.glob("*252.log"))
    rows, told = rows_and_damage("records", log, "skip", limit_bytes="30")
    assert ([], len(read_table("batches", log))) == (rows, len(told))
    with pytest.raises(SegproofError, match=r"not read into memory.*limit_bytes"):
        read_table("records", log, limit_bytes="30")
    assert read_table("records", log)
