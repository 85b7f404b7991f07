# SPDX-License-Identifier: Apache-2.0
"""`segproof.scan`: batches come while files are read, and what it cannot read it says."""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import segproof
from segproof.errors import (
    DamagedFileError,
    InvalidArgumentError,
    RowsLeftOutWarning,
    SegproofError,
)
from segproof.files import File, RealFiles
from segproof_harness.files.shipped_directories import DATA
from segproof_tests.partition_files import name_of
from segproof_tests.real_copies import copy_of, flip
from segproof_tests.table_offsets import rows

PLAIN = DATA / "kafka" / "plain" / "plain-0"
STORE = DATA / "rocketmq" / "collisions-4.9.8" / "store"
pytestmark = pytest.mark.needs("pyarrow")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a copy of a real partition of several segments."""
    return copy_of("kafka/plain/plain-0", tmp_path / "plain-0")


def test_the_first_batch_comes_before_the_next_file_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scan of any number of files opens one at a time, and none before it is read."""
    opened: list[str] = []
    open_file = RealFiles.open

    def noted(files: RealFiles, path: str, **how: bool) -> File:
        opened.append(path)
        return open_file(files, path, **how)

    monkeypatch.setattr(RealFiles, "open", noted)
    monkeypatch.setattr("segproof.tables.columns.MERGED_ROWS", 1)
    logs = [str(path) for path in sorted(PLAIN.glob("*.log"))]
    reader = segproof.scan(PLAIN, columns=["offset", "value"])
    assert ["offset", "value"] == reader.schema.names
    assert [] == opened
    assert 0 == reader.read_next_batch()["offset"][0].as_py()
    assert logs[:1] == opened
    rest = reader.read_all()["offset"].to_pylist()
    assert logs == opened[: len(logs)]
    beside = opened[len(logs) :]  # of the last log, whether one of them shows that it went on
    assert not any(path.endswith(".log") for path in beside)
    assert 745 == rest[-1]


def test_findings_are_those_of_verify(partition: Path) -> None:
    """The same rows in the same order; bad data is a row, never an error."""
    flip(min(partition.glob("*252.index")), 3)
    flip(min(partition.glob("*342.log")), 9000)
    expected = [finding.to_json() for finding in segproof.verify(partition, deep=True)]
    assert {"error"} <= {finding["severity"] for finding in expected}
    assert expected == rows(partition, "findings", deep=True)


def test_damage_is_an_error_unless_the_read_may_go_on(partition: Path) -> None:
    """By default the error names file, byte and way out; else the next file follows."""
    whole = rows(partition, "records", columns="path,offset")
    log = min(partition.glob("*252.log"))
    log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=r"252\.log: byte \d+: .*on_damage=skip"):
        rows(partition, "records")
    with pytest.warns(RowsLeftOutWarning, match=r"252\.log: byte \d+: "):
        left = rows(partition, "records", columns="path,offset", on_damage="skip")
    lost = [row for row in whole if row not in left]
    assert {str(log)} == {row["path"] for row in lost}
    assert list(range(lost[0]["offset"], 342)) == [row["offset"] for row in lost]
    told = rows(partition, "segments", columns="path", on_damage="keep")
    (damaged,) = (row for row in told if row["damage"] is not None)
    assert str(log) == damaged["path"]
    with pytest.raises(DamagedFileError):
        rows(partition, "segments")


@pytest.mark.parametrize(
    ("path", "asked", "words"),
    [
        (PLAIN, {"table": "record"}, "no table 'record'; did you mean records? Known: segments,"),
        (PLAIN, {"columns": ["offset", "x"]}, "table records has no column 'x'; it has path,"),
        (PLAIN, {"table": None}, "option table: None is no text; known: segments, "),
        (PLAIN, {"columns": []}, "option columns: it names no column; table records has path,"),
        (PLAIN, {"columns": [1]}, "table records has no column '1'; it has path,"),
        (PLAIN, {"where": "offset"}, "option where: 'offset' is no condition"),
        (PLAIN, {"on_damage": "stop"}, "on_damage: 'stop' is none of fail, skip, keep"),
        (PLAIN, {"limit_bytes": 0}, "option limit_bytes: it must be 1 or more"),
        (PLAIN, {"hash_slots": 5}, "hash_slots: it is not for table records, only for rocketmq"),
        (PLAIN, {"table": "findings", "on_damage": "skip"}, "on_damage: it is not for table"),
        (PLAIN, {"table": "rocketmq_entries"}, "table rocketmq_entries; its tables: segments,"),
        (
            PLAIN / f"{0:020d}.index",
            {},
            "0.index: no file of table records; its tables: segments, index_entries, findings",
        ),
        (STORE, {}, "store: no file of table records; its tables: rocketmq_entries, findings"),
        (STORE / "checkpoint", {}, "checkpoint: no file of table records; its tables: findings"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(path: Path, asked: dict[str, Any], words: str) -> None:
    """The error says what is known, before a file is read."""
    with pytest.raises(InvalidArgumentError) as refused:
        segproof.scan(path, **asked)
    assert words in str(refused.value)


@pytest.mark.parametrize("table", ["records", "rocketmq_entries", "findings"])
def test_a_missing_path_is_an_error_at_once(tmp_path: Path, table: str) -> None:
    """It is told before the first row is asked for, with the path."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        segproof.scan(tmp_path / "nowhere", table=table)


@pytest.mark.parametrize("table", ["records", "segments", "index_entries"])
def test_copies_of_remote_segments_are_read(partition: Path, table: str) -> None:
    """Files of tiered storage side by side have the rows of the partition; a cache has none."""
    expected = rows(partition, table)
    copied = partition.rename(partition.parent / "copied")
    for path in list(copied.iterdir()):
        if path.stem.isdigit() and path.suffix in (".log", ".index", ".timeindex"):
            path.rename(copied / f"{int(path.stem)}-oAtiIQ95REujbuzNd_lkLQ{path.suffix}")
        else:
            path.unlink()
    found = rows(copied, table)
    own = ("path", "directory", "next_base_offset")
    assert [{**row, **dict.fromkeys(own)} for row in expected] == [
        {**row, **dict.fromkeys(own)} for row in found
    ]
    assert {str(copied)} == {row["directory"] for row in found}
    cache = copied.parent / "remote-log-index-cache"
    cache.mkdir()
    index = next(copied.glob("*.index"))
    index.rename(cache / index.name.replace("-", "_", 1))
    assert [] == rows(cache, table)


CHANGES: list[Callable[[bytes], bytes]] = [
    lambda data: b"",
    lambda data: data[: len(data) // 2 + 1],
    lambda data: b"\xff" * len(data),
    lambda data: bytes(len(data)),
    lambda data: data[:8] + b"\x7f\xff\xff\xff" + data[12:],
    lambda data: data[::-1],
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_file_gives_rows_or_an_error_of_segproof(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    """Of every table, whatever its bytes are now; a read that goes on never ends with an error."""
    index = next((STORE / "index").iterdir())
    tables = {
        f"{252:020d}.log": ("batches", "records", "segments"),
        f"{252:020d}.index": ("index_entries", "segments"),
        f"{252:020d}.timeindex": ("time_index_entries",),
        index.name: ("rocketmq_entries",),
    }
    for name, read in tables.items():
        source = index if name == index.name else PLAIN / name
        (tmp_path / name).write_bytes(change(source.read_bytes()))
        for table in read:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RowsLeftOutWarning)
                left = rows(tmp_path / name, table, on_damage="skip")
            with suppress(SegproofError):
                assert left == rows(tmp_path / name, table, on_damage="fail")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow the error says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'segproof\[arrow\]'"):
        segproof.scan(PLAIN)


def test_a_name_that_is_not_utf_8_is_shown_with_its_byte(partition: Path) -> None:
    r"""Arrow takes only UTF-8: the byte stands there as `\xff`, in rows and in findings."""
    odd = partition.parent / os.fsdecode(b"odd\xff-0")
    partition.rename(odd)
    (odd / name_of(0, ".index")).unlink()
    shown = f"{partition.parent}/odd\\xff-0"
    for table in ("records", "segments"):
        assert {shown} == {row["directory"] for row in rows(odd, table)}
    assert f"{shown}/{name_of(0, '.log')}" in [row["path"] for row in rows(odd, "findings")]
    same = segproof.scan(os.fsencode(odd)).read_all()  # type: ignore[arg-type]
    assert 746 == same.num_rows
