# SPDX-License-Identifier: Apache-2.0
"""Pushed filters leave out what cannot pass and no more; options are refused by name. No Spark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import datasource as spark_filters

from segproof.errors import SegproofError
from segproof.reading import segment_reader
from segproof.tables.options import Filters, Range, request_of
from segproof.tables.schemas import OPTIONS, TABLES
from segproof_spark.table_reader import FilesTask, PushingTableReader, places_of, push
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.table_rows import rows_read

Rows = list[dict[str, Any]]
Passes = Callable[[dict[str, Any]], bool]
pytestmark = pytest.mark.needs("pyspark>=4.1")
"""The oldest that pushes filters to data sources of Python."""


def filter_of(kind: str, column: str, value: Any) -> Any:
    """Return a filter of Spark's."""
    return getattr(spark_filters, kind)((column,), value)


@pytest.fixture(scope="module")
def kafka(real_files: Path) -> Path:
    """Return the folder with the real files of Kafka's."""
    return real_files / "kafka"


def reader_of(table: str, path: Path, *pushed: Any, **options: str) -> PushingTableReader:
    """Return a reader that was handed some filters."""
    reader = PushingTableReader(places_of([str(path)]), request_of({"table": table, **options}))
    assert list(pushed) == list(reader.pushFilters(list(pushed)))
    return reader


def files_in(reader: PushingTableReader) -> list[str]:
    """Return the files that a reader plans to read."""
    tasks = reader.partitions()
    return [unit.path for task in tasks if isinstance(task, FilesTask) for _, unit in task.units]


CASES: list[tuple[str, str, str, Any, Passes]] = [
    ("batches", "GreaterThanOrEqual", "base_offset", 300, lambda row: row["base_offset"] >= 300),
    ("batches", "GreaterThan", "last_offset", 300, lambda row: row["last_offset"] > 300),
    ("batches", "LessThan", "base_offset", 300, lambda row: row["base_offset"] < 300),
    ("batches", "EqualTo", "segment_base_offset", 342, lambda r: r["segment_base_offset"] == 342),
    ("records", "EqualTo", "offset", 300, lambda row: row["offset"] == 300),
    ("records", "In", "offset", (70, 300), lambda row: row["offset"] in (70, 300)),
    ("records", "LessThanOrEqual", "offset", 70, lambda row: row["offset"] <= 70),
    ("records", "StringEndsWith", "path", "342.log", lambda r: r["path"].endswith("342.log")),
    (
        "segments",
        "GreaterThan",
        "segment_base_offset",
        342,
        lambda r: r["segment_base_offset"] > 342,
    ),
    ("index_entries", "StringContains", "path", "0342", lambda row: "0342" in row["path"]),
    ("index_entries", "GreaterThan", "offset", 342, lambda row: row["offset"] > 342),
]


@pytest.mark.parametrize(("table", "kind", "column", "value", "passes"), CASES)
def test_what_passes_is_read(
    kafka: Path, table: str, kind: str, column: str, value: Any, passes: Passes
) -> None:
    """The rows that pass are those of a reader without filters, and fewer are read."""
    folder = kafka / "plain"
    whole = rows_read(reader_of(table, folder))
    rows = rows_read(reader_of(table, folder, filter_of(kind, column, value)))
    expected = [row for row in whole if passes(row)]
    assert expected
    assert expected == [row for row in rows if passes(row)]
    if (table, column) != ("index_entries", "offset"):
        assert len(rows) < len(whole)


@pytest.mark.parametrize(
    ("table", "where", "passes"),
    [
        ("records", "offset >= 300 and offset < 310", lambda row: 300 <= row["offset"] < 310),
        ("records", "offset = 300", lambda row: row["offset"] == 300),
        ("records", "key_size > 0", lambda row: (row["key_size"] or 0) > 0),
        (
            "batches",
            "base_offset <= 99 AND size>200",
            lambda r: r["base_offset"] <= 99 and r["size"] > 200,
        ),
        ("batches", "crc_valid = TRUE and is_control=false", lambda row: row["crc_valid"]),
        ("batches", "is_transactional = true", lambda row: row["is_transactional"]),
        ("batches", "path like '%342.log'", lambda row: row["path"].endswith("342.log")),
        ("batches", "compression = 'none'", lambda row: row["compression"] == "none"),
        ("segments", "directory like '%plain%'", lambda row: "plain" in row["directory"]),
        ("time_index_entries", "offset > -1", lambda row: row["offset"] > -1),
        ("index_entries", "path like '/nowhere%'", lambda row: False),
    ],
)
def test_where_chooses_rows(kafka: Path, table: str, where: str, passes: Passes) -> None:
    """The rows are exactly those that pass, whatever columns are asked for."""
    folder = kafka / "plain"
    expected = [row for row in rows_read(reader_of(table, folder)) if passes(row)]
    assert expected == rows_read(reader_of(table, folder, where=where))
    few = rows_read(reader_of(table, folder, where=where, columns="path"))
    assert [{"path": row["path"]} for row in expected] == few


def test_timestamps_leave_out_batches(kafka: Path) -> None:
    """A batch whose header is younger or older is not decoded; a wrong checksum is not believed."""
    folder = kafka / "plain"
    whole = rows_read(reader_of("records", folder))
    middle = sorted(row["timestamp"] for row in whole)[len(whole) // 2]
    rows = rows_read(reader_of("records", folder, filter_of("GreaterThan", "timestamp", middle)))
    expected = [row for row in whole if row["timestamp"] > middle]
    assert expected == [row for row in rows if row["timestamp"] > middle]
    assert len(expected) <= len(rows) < len(whole)


def test_a_header_that_lies_is_not_believed(partition: Path) -> None:
    """A flipped bit makes a batch look old: its checksum is wrong, so its records are read."""
    log = max(partition.glob("*.log"))
    put_bytes(log, 35, bytes(8))
    whole = rows_read(reader_of("records", log, on_damage="keep"))
    newest = max(row["timestamp"] for row in whole[:1])
    pushed = filter_of("GreaterThanOrEqual", "timestamp", newest)
    rows = rows_read(reader_of("records", log, pushed, on_damage="keep"))
    assert whole[0] in rows
    with pytest.raises(SegproofError, match="wrong checksum"):
        rows_read(reader_of("records", log, pushed))


def test_the_index_is_used_where_it_is_right(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading begins at a batch that an entry names; a wrong entry is not followed."""
    least = 300
    pushed = filter_of("GreaterThanOrEqual", "offset", least)
    starts: list[int] = []
    real = segment_reader.start_position

    def noted(*arguments: Any) -> int:
        starts.append(real(*arguments))
        return starts[-1]

    monkeypatch.setattr("segproof.tables.logs.start_position", noted)
    whole = [row for row in rows_read(reader_of("records", partition)) if row["offset"] >= least]
    starts.clear()
    rows = rows_read(reader_of("records", partition, pushed, on_damage="skip"))
    assert whole == [row for row in rows if row["offset"] >= least]
    assert starts[0] > 0
    rows_read(reader_of("records", partition, pushed))
    index = min(partition.glob("*252.index"))
    good = index.read_bytes()
    for changed in (_moved(good, 7), _moved(good, 1 << 20), _unordered(good), b"\1\2\3", b""):
        index.write_bytes(changed)
        starts.clear()
        rows = rows_read(reader_of("records", partition, pushed, on_damage="skip"))
        assert whole == [row for row in rows if row["offset"] >= least]
        assert 0 == starts[0]


def _moved(index: bytes, distance: int) -> bytes:
    """Return an index whose positions all lead somewhere else."""
    entries = [index[at : at + 8] for at in range(0, len(index), 8)]
    return b"".join(
        entry[:4] + (int.from_bytes(entry[4:], "big") + distance).to_bytes(4, "big")
        for entry in entries
    )


def _unordered(index: bytes) -> bytes:
    return index[8:16] + index


def test_the_time_index_is_believed_only_if_asked(partition: Path) -> None:
    """A closed segment is left out by the last entry of its time index, if the option says so."""
    whole = rows_read(reader_of("batches", partition))
    newest = max(row["max_timestamp"] for row in whole)
    pushed = filter_of("GreaterThanOrEqual", "max_timestamp", newest)
    careful = rows_read(reader_of("batches", partition, pushed))
    assert whole == careful
    trusting = rows_read(reader_of("batches", partition, pushed, trust_time_index="true"))
    assert [row for row in whole if row["max_timestamp"] >= newest] == [
        row for row in trusting if row["max_timestamp"] >= newest
    ]
    assert len(trusting) < len(whole)
    for index in partition.glob("*.timeindex"):
        index.unlink()
    assert whole == rows_read(reader_of("batches", partition, pushed, trust_time_index="true"))


def test_files_are_left_out_by_their_names(kafka: Path) -> None:
    """The last segment of a log may go on for ever; the others end where the next begins."""
    folder = kafka / "plain" / "plain-0"
    for kind, value, expected in (
        ("EqualTo", 300, [252]),
        ("EqualTo", 341, [252]),
        ("EqualTo", 342, [342]),
        ("GreaterThan", 692, [693]),
        ("GreaterThan", 1 << 40, [693]),
        ("LessThan", 60, [0]),
        ("LessThan", 61, [0, 60]),
    ):
        found = files_in(reader_of("records", folder, filter_of(kind, "offset", value)))
        assert expected == [int(Path(path).name[:20]) for path in found]


def test_filters_that_say_nothing() -> None:
    """What is not understood leaves nothing out."""
    filters = Filters()
    for pushed in (
        object(),
        filter_of("EqualTo", "offset", None),
        filter_of("EqualTo", "is_control", True),
        filter_of("GreaterThan", "offset", 1.5),
        filter_of("In", "offset", ()),
        filter_of("In", "offset", (1, "a")),
    ):
        push(filters, pushed)
    assert Filters() == filters
    push(filters, filter_of("In", "path", ("a", "b")))
    push(filters, filter_of("StringStartsWith", "path", "b"))
    assert [False, True] == [filters.passes("path", each) for each in ("a", "b")]
    push(filters, filter_of("GreaterThan", "offset", 4))
    push(filters, filter_of("EqualNullSafe", "offset", 9))
    assert Range(9, 9) == filters.range("offset")
    assert filters.range("other").meets(5, 5)
    assert not Range(3, 2).meets(0, 9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "nothing"}, "option table: no table 'nothing'; known: segments,"),
        ({"columns": "offset,x"}, "option columns: table records has no column 'x'; it has path,"),
        ({"columns": "offset,offset"}, "option columns: a column is named twice"),
        ({"on_damage": "stop"}, "option on_damage: 'stop' is none of fail, skip, keep"),
        ({"limit_bytes": "0"}, "option limit_bytes: it must be 1 or more"),
        ({"limit_bytes": "1k"}, "option limit_bytes: '1k' is no whole number"),
        ({"task_bytes": "-1"}, "option task_bytes: it must be 1 or more"),
        ({"trust_time_index": "yes"}, "option trust_time_index: 'yes' is neither true nor false"),
        ({"hash_slots": "5"}, "option hash_slots: it is not for table records, only for rocketmq"),
        ({"where": "offset"}, "option where: 'offset' is no condition; one is COLUMN >= NUMBER"),
        ({"where": "offset = true"}, "option where: column 'offset' is bigint: it is neither true"),
        ({"where": "x > 1"}, "option where: table records has no column 'x'; it has path,"),
        ({"where": "path > 1"}, "option where: column 'path' is string: it is not compared with a"),
        ({"where": "offset = 'a'"}, "option where: column 'offset' is bigint: it is not compared"),
        ({"where": "offset > 9999999999999999999"}, "option where: column 'offset' is bigint"),
        ({"where": "offset > 1 or offset < 0"}, "option where: 'offset > 1 or offset < 0' is no"),
        ({"colums": "offset"}, "option colums: there is no such option; known: path,"),
        ({"table": "findings", "columns": "law"}, "option columns: it is not for table findings"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, str], words: str) -> None:
    """The error names the option, and what it takes."""
    with pytest.raises(ValueError) as refused:
        request_of({"table": "records", **options})
    assert str(refused.value).startswith(f"segproof: {words}")


def test_a_schema_of_ones_own_chooses_columns() -> None:
    """Names and types must be those of the table."""
    given = [("offset", "bigint"), ("headers", "array<struct<key:string,value:binary>>")]
    assert ("offset", "headers") == request_of({"table": "records"}, given).columns
    with pytest.raises(ValueError, match="schema: column 'offset' is bigint, not int"):
        request_of({"table": "records"}, [("offset", "int")])
    with pytest.raises(ValueError, match="schema: table records has no column 'law'"):
        request_of({"table": "records"}, [("law", "string")])


def test_a_file_of_another_kind_is_refused(kafka: Path, tmp_path: Path) -> None:
    """An index has no batches; among others it is passed over, as in a glob."""
    index, log = (min((kafka / "plain" / "plain-0").glob(f"*{end}")) for end in (".index", ".log"))
    for table in ("batches", "rocketmq_entries"):
        with pytest.raises(ValueError, match=f"option path: .*index: no file of table {table}"):
            reader_of(table, index).partitions()
    assert [str(log)] == files_in(reader_of("batches", log.parent / f"{log.stem}.*"))
    assert [] == files_in(reader_of("batches", tmp_path))
    nothing = filter_of("EqualTo", "path", "nowhere")
    assert [] == files_in(reader_of("batches", log, nothing))


def test_options_are_those_of_tables() -> None:
    """What the page of reference says of options names tables that there are."""
    assert all(set(option.tables) <= set(TABLES) for option in OPTIONS)
