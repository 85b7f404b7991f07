# SPDX-License-Identifier: Apache-2.0
"""`segproof.scan` is never silently wrong or short: whatever is damaged is an error or is told."""

import inspect
import json
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import segproof
from segproof.errors import DamagedFileError, RowsLeftOutWarning
from segproof.inventory.walk import LEVELS_MAX
from segproof.tables.options import ON_DAMAGE
from segproof_harness.files.shipped_directories import DATA
from segproof_harness.laws.borders.log_files import message, wrapper
from segproof_tests.partition_files import name_of
from segproof_tests.real_copies import copy_of, flip
from segproof_tests.small_logs import batch
from segproof_tests.table_offsets import rows

STORE = DATA / "rocketmq" / "collisions-4.9.8" / "store"
pytestmark = pytest.mark.needs("pyarrow")


def told(path: Path, table: str = "records", **asked: Any) -> tuple[list[Any], list[str]]:
    """Return the rows of a scan, and the warnings of those that are left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        found = rows(path, table, **asked)
    return found, [str(one.message) for one in caught if one.category is RowsLeftOutWarning]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a copy of a real partition of several segments."""
    return copy_of("kafka/plain/plain-0", tmp_path / "data" / "plain-0")


def test_the_default_is_to_fail() -> None:
    """Python, command line and Spark have one default."""
    assert "fail" == inspect.signature(segproof.scan).parameters["on_damage"].default
    assert "fail" == ON_DAMAGE[0]


@pytest.mark.parametrize("table", ["batches", "records"])
def test_a_wrong_checksum_fails_is_left_out_or_is_shown(partition: Path, table: str) -> None:
    """One damaged batch among many: only its own rows differ between the three ways."""
    whole = rows(partition, table)
    log = min(partition.glob("*252.log"))
    flip(log, 9000)
    with pytest.raises(DamagedFileError, match=r"252\.log: byte \d+: .*wrong checksum"):
        rows(partition, table, columns="path")
    kept, warned = told(partition, table, on_damage="keep")
    assert (len(whole), []) == (len(kept), warned)
    wrong = [row for row in kept if not row["crc_valid"]]
    assert {str(log)} == {row["path"] for row in wrong}
    skipped, warned = told(partition, table, on_damage="skip")
    assert [row for row in kept if row["crc_valid"]] == skipped
    assert [row for row in whole if row in skipped] == skipped
    assert len(whole) == len(skipped) + len(wrong)
    assert 1 == len(warned)
    position = wrong[0]["position" if table == "batches" else "batch_position"]
    assert f"{log}: byte {position}: " in warned[0]


def test_a_second_scan_warns_again(partition: Path) -> None:
    """Python shows a warning of one place once; here each read of damaged files has its own."""
    flip(min(partition.glob("*252.log")), 9000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in "ab":
            rows(partition, on_damage="skip")
    assert 2 == len(caught)


@pytest.mark.parametrize("table", ["batches", "records"])
def test_kept_rows_have_crc_valid_whatever_columns_are_named(partition: Path, table: str) -> None:
    """A row of a damaged batch cannot be taken for a sound one."""
    flip(min(partition.glob("*252.log")), 9000)
    reader = segproof.scan(partition, table=table, columns=["path"], on_damage="keep")
    assert ["path", "crc_valid"] == reader.schema.names
    assert {True, False} == set(reader.read_all()["crc_valid"].to_pylist())


def test_a_batch_that_cannot_be_decoded_costs_its_own_records_only(partition: Path) -> None:
    """The rest of the file follows; it was dropped without a word."""
    log = min(partition.glob("*252.log"))
    batches = rows(log, "batches")
    whole = rows(log)
    broken = batches[1]
    data = bytearray(log.read_bytes())
    at = broken["position"] + 61
    data[at : broken["position"] + broken["size"]] = b"\xff" * (broken["size"] - 61)
    log.write_bytes(data)
    lost = {*range(broken["base_offset"], broken["last_offset"] + 1)}
    expected = [row["offset"] for row in whole if row["offset"] not in lost]
    for how in ("skip", "keep"):
        found, warned = told(log, on_damage=how)
        assert expected == [row["offset"] for row in found]
        assert f"{log}: byte {broken['position']}: " in warned[0]


def test_a_batch_above_the_limit_costs_its_own_records_only(tmp_path: Path) -> None:
    """It is told with the option that shows it."""
    (tmp_path / name_of(0, ".log")).write_bytes(batch(0) + batch(1, bytes(500)) + batch(2))
    found, (warned,) = told(tmp_path, limit_bytes=200, on_damage="skip")
    assert [0, 2] == [row["offset"] for row in found]
    assert "limit_bytes" in warned
    with pytest.raises(DamagedFileError, match="limit_bytes"):
        rows(tmp_path, limit_bytes=200)
    assert 3 == len(rows(tmp_path))


def test_a_damaged_message_in_a_wrapper_is_a_wrong_checksum(tmp_path: Path) -> None:
    """The checksum of a wrapper is right over a damaged message; consumers that check end there."""
    outer = wrapper(0, message(0, b"v")[:-1] + b"w")
    (tmp_path / name_of(0, ".log")).write_bytes(outer)
    with pytest.raises(DamagedFileError, match="inside a compressed one"):
        rows(tmp_path)
    skipped, warned = told(tmp_path, on_damage="skip")
    assert ([], 1) == (skipped, len(warned))
    (row,), warned = told(tmp_path, on_damage="keep")
    assert (b"w", False, []) == (row["value"], row["crc_valid"], warned)


DAMAGES: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "torn tail": ("*342.log", "records", lambda data: data[:-5]),
    "torn tail, batches": ("*342.log", "batches", lambda data: data[:-5]),
    "zeros at the end of a closed segment": ("*252.log", "records", lambda data: data + bytes(99)),
    "wrong size field": ("*252.log", "records", lambda d: d[:8] + b"\0\0\0\1" + d[12:]),
    "unknown magic": ("*252.log", "records", lambda data: data[:16] + b"\7" + data[17:]),
    "cut offset index": ("*252.index", "index_entries", lambda data: data[:-3]),
    "cut time index": ("*252.timeindex", "time_index_entries", lambda data: data[:-3]),
    "wrong header, segments": ("*252.log", "segments", lambda d: d[:30] + b"\7" + d[31:]),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("asked", [{}, {"where": "segment_base_offset >= 0"}])
def test_each_damage_is_told(partition: Path, damage: str, asked: dict[str, Any]) -> None:
    """With `fail` it is an error that names the file, else a warning or a column that does."""
    pattern, table, change = DAMAGES[damage]
    path = min(partition.glob(pattern))
    before = rows(partition, table)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DamagedFileError, match=path.name):
        rows(partition, table, **asked)
    for how in ("skip", "keep"):
        found, warned = told(partition, table, on_damage=how, **asked)
        others = [row for row in before if row["path"] != str(path)]
        assert others == [row for row in found if row["path"] != str(path)]
        if table == "segments":
            (wrong,) = (row for row in found if row["damage"] is not None)
            assert ([], str(path)) == (warned, wrong["path"])
            assert "1 batch with a wrong checksum" in wrong["damage"]
        else:
            (warning,) = warned
            assert str(path) in warning


@pytest.mark.parametrize("where", ["offset >= 300", "timestamp >= 0", "offset < 1"])
def test_a_filter_does_not_hide_damage_in_what_is_read(partition: Path, where: str) -> None:
    """A batch whose checksum is wrong may hold any record: it is told before rows are chosen."""
    log = min(partition.glob("*.log" if where == "offset < 1" else "*252.log"))
    last = rows(log, "batches")[-1]
    flip(log, last["position"] + 70)
    with pytest.raises(DamagedFileError, match=log.name):
        rows(partition, where=where)
    _, warned = told(partition, where=where, on_damage="skip")
    assert [True] == [str(log) in one for one in warned]


def test_cut_and_foreign_index_files_of_rocketmq_are_told(tmp_path: Path) -> None:
    """A header that counts more entries than there are, and a file shorter than a header."""
    index = next((STORE / "index").iterdir())
    data = index.read_bytes()
    header = data[:36] + struct.pack(">i", 1 << 30)
    for change, words in ((header + data[40:], "the header counts"), (data[:10], "shorter than")):
        path = tmp_path / index.name
        path.write_bytes(change)
        with pytest.raises(DamagedFileError, match=words):
            rows(path, "rocketmq_entries")
        _, (warned,) = told(path, "rocketmq_entries", on_damage="skip")
        assert words in warned


@pytest.mark.parametrize("table", ["records", "rocketmq_entries"])
def test_a_folder_that_cannot_be_listed_is_told(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have had rows; of RocketMQ's it was passed over in silence."""
    (tmp_path / "data" / "closed").mkdir(parents=True)
    list_directory = segproof.files.RealFiles.list_directory

    def refused(files: Any, path: str) -> list[str]:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return list_directory(files, path)

    monkeypatch.setattr(segproof.files.RealFiles, "list_directory", refused)
    with pytest.raises(DamagedFileError, match=r"closed: .*cannot be listed: Permission denied"):
        rows(tmp_path, table)
    _, (warned,) = told(tmp_path, table, on_damage="skip")
    assert "closed" in warned


@pytest.mark.parametrize("table", ["records", "rocketmq_entries"])
def test_folders_that_lie_too_deep_are_told(tmp_path: Path, table: str) -> None:
    """Up to the last level they are looked into."""
    deep = tmp_path.joinpath(*("d" for _ in range(LEVELS_MAX)))
    deep.mkdir(parents=True)
    assert [] == rows(tmp_path, table)
    (deep / "d").mkdir()
    with pytest.raises(DamagedFileError, match="more than 16 levels"):
        rows(tmp_path, table)


@pytest.mark.parametrize("suffix", [".log", ".index"])
def test_a_file_that_a_broker_would_put_in_place_is_told(partition: Path, suffix: str) -> None:
    """Offsets may be in a `.swap` file alone; it was passed over in silence."""
    path = min(partition.glob(f"*252{suffix}"))
    path.rename(f"{path}.swap")
    table = "records" if suffix == ".log" else "index_entries"
    with pytest.raises(DamagedFileError, match=r"\.swap: a starting broker"):
        rows(partition, table)
    _, (warned,) = told(partition, table, on_damage="skip")
    assert f"{path}.swap" in warned
    assert rows(Path(f"{path}.swap"), table)


@pytest.mark.parametrize("table", ["batches", "records"])
def test_names_that_lead_elsewhere_hide_no_rows(partition: Path, table: str) -> None:
    """Of two segments with swapped names a filter on offsets found nothing, without a word."""
    first, second = min(partition.glob("*162.log")), min(partition.glob("*252.log"))
    column = "offset" if table == "records" else "base_offset"
    where = f"{column} >= 162 and {column} < 252"
    whole = rows(partition, table, where=where, columns=column)
    data = first.read_bytes(), second.read_bytes()
    first.write_bytes(data[1])
    second.write_bytes(data[0])
    assert whole
    for how in ON_DAMAGE:
        found, warned = told(partition, table, where=where, columns=column, on_damage=how)
        assert (whole, []) == ([{column: row[column]} for row in found], warned)


@pytest.mark.parametrize("compression", [False, True])
def test_packed_indexes_of_tiered_storage_are_read_or_told(
    tmp_path: Path, compression: bool
) -> None:
    """They had no rows, and no word; those that are compressed are not read."""
    source = copy_of("kafka/txn-a/txn-a-0", tmp_path / "txn-a-0")
    stem = tmp_path / "tier" / "1014-oAtiIQ95REujbuzNd_lkLQ"
    stem.parent.mkdir()
    joined, parts = b"", {}
    for name, suffix in (("offset", ".index"), ("timestamp", ".timeindex")):
        data = (source / name_of(1014, suffix)).read_bytes()
        parts[name] = {"position": len(joined), "size": len(data)}
        joined += data
    Path(f"{stem}.log").write_bytes((source / name_of(1014, ".log")).read_bytes())
    Path(f"{stem}.indexes").write_bytes(joined)
    manifest = {"version": "1", "segmentIndexes": parts, "compression": compression}
    Path(f"{stem}.rsm-manifest").write_text(json.dumps(manifest))
    for table in ("index_entries", "time_index_entries", "segments"):
        if compression:
            with pytest.raises(DamagedFileError, match="packed in a way that is not read"):
                rows(stem.parent, table)
            continue
        own = ("path", "directory", "next_base_offset", "transaction_index_bytes",
               "aborted_transactions")  # fmt: skip
        expected = [row for row in rows(source, table) if row["segment_base_offset"] == 1014]
        assert [{**row, **dict.fromkeys(own)} for row in expected] == [
            {**row, **dict.fromkeys(own)} for row in rows(stem.parent, table)
        ]
    assert rows(stem.parent, "records")
