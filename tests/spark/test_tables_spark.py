# SPDX-License-Identifier: Apache-2.0
"""The tables through Spark: schemas, pushed filters, chosen columns, errors, and the examples."""

import re
import runpy
import sys
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from segproof.rocketmq.geometry import find_geometry
from segproof.tables.schemas import TABLES
from segproof_spark.data_source import register
from segproof_tests import contracts
from segproof_tests.real_copies import copy_of, flip
from segproof_tests.table_rows import read_table, rows_and_damage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = Path(__file__).resolve().parents[2] / "spark_checks" / "examples"
READ = [name for name in TABLES if name != "findings"]


@pytest.fixture
def registered(spark: "SparkSession") -> "SparkSession":
    """Return the session with the format made known."""
    register(spark)
    return spark


def load(session: "SparkSession", table: str, path: Path, **options: str) -> "DataFrame":
    """Return a table as a user gets it."""
    reader = session.read.format("segproof").option("table", table).options(**options)
    return reader.load(str(path))


@pytest.mark.parametrize("table", READ)
def test_spark_has_the_rows_of_the_reader(
    registered: "SparkSession", real_files: Path, table: str
) -> None:
    """Every value of every real file, through Spark and back; types are those of the schema."""
    folder = real_files / ("rocketmq" if table == "rocketmq_entries" else "kafka")
    frame = load(registered, table, folder)
    kinds = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    assert [(each.name, each.kind.replace(" ", "")) for each in TABLES[table].columns] == kinds
    found = [row.asDict(recursive=True) for row in frame.collect()]
    for row in found:
        for name in ("key", "value"):
            if isinstance(row.get(name), bytearray):
                row[name] = bytes(row[name])
        for header in row.get("headers", ()):
            header["value"] = None if header["value"] is None else bytes(header["value"])
    assert sorted(read_table(table, folder), key=repr) == sorted(found, key=repr)


def partitions_of(frame: "DataFrame") -> int:
    """Return in how many tasks there are rows."""
    from pyspark.sql import functions as f

    return frame.select(f.spark_partition_id()).distinct().count()


def test_where_leaves_out_files(registered: "SparkSession", real_files: Path) -> None:
    """Conditions of the option and filters of the query both hold, and less is read."""
    folder = real_files / "kafka" / "plain"
    whole = load(registered, "records", folder, task_bytes="1")
    assert partitions_of(whole) > 3
    where = "offset >= 300 and offset <= 310"
    some = load(registered, "records", folder, task_bytes="1", where=where)
    assert 1 == partitions_of(some)
    assert list(range(300, 308)) == sorted(
        row["offset"] for row in some.filter("offset < 308").select("offset").collect()
    )
    assert 746 == whole.count()


@pytest.mark.needs("pyspark>=4.1")
def test_filters_are_pushed_if_asked(registered: "SparkSession", real_files: Path) -> None:
    """What passes is the same, and less is read.

    Spark then keeps what the first query left, for every query on the same DataFrame: that is why
    the option is off. Where this test fails, Spark has been mended, and the option can be on.
    """
    conf = "spark.sql.python.filterPushdown.enabled"
    folder = real_files / "kafka" / "plain"
    was = registered.conf.get(conf)
    registered.conf.set(conf, "true")
    try:
        frame = load(registered, "records", folder, task_bytes="1", push_filters="true")
        assert 746 == frame.count()
        frame = load(registered, "records", folder, task_bytes="1", push_filters="true")
        assert 11 == frame.filter("offset between 300 and 310").count()
        assert frame.count() < 746
        frame = load(registered, "records", folder, task_bytes="1")
        assert 11 == frame.filter("offset between 300 and 310").count()
        assert 746 == frame.count()
        registered.conf.set(conf, "false")
        assert 746 == load(registered, "records", folder).count()
        with pytest.raises(Exception, match="filterPushdown"):
            load(registered, "records", folder, push_filters="true").count()
    finally:
        registered.conf.set(conf, was or "false")


def test_columns_are_chosen(registered: "SparkSession", real_files: Path) -> None:
    """By the option, or by a schema of one's own; several paths; in SQL."""
    folder = real_files / "kafka" / "plain"
    by_option = load(registered, "records", folder, columns="timestamp,offset")
    assert ["timestamp", "offset"] == by_option.columns
    reader = registered.read.format("segproof").option("table", "records")
    both = [str(folder), str(real_files / "kafka" / "txn-*")]
    by_schema = reader.schema("offset bigint").load(both)
    expected = len(read_table("records", folder)) + len(read_table("records", Path(both[1])))
    assert expected == by_schema.count()
    registered.sql(
        "create or replace temporary view sizes using segproof "
        f"options (table 'segments', columns 'log_bytes', path '{folder}')"
    )
    (row,) = registered.sql("select sum(log_bytes) as total from sizes").collect()
    assert sum(path.stat().st_size for path in folder.rglob("*.log")) == row["total"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "nothing"}, "option table: no table 'nothing'"),
        ({"table": "batches", "columns": "nothing"}, "option columns: table batches has no column"),
        ({"table": "batches", "on_damge": "stop"}, "option on_damge: there is no such option"),
        (
            {"table": "batches", "task_bytes": "many"},
            "option task_bytes: 'many' is no whole number",
        ),
    ],
)
def test_errors_name_the_option(
    registered: "SparkSession", real_files: Path, options: dict[str, str], words: str
) -> None:
    """What Spark shows has the name of the option in it."""
    reader = registered.read.format("segproof").options(**options)
    with pytest.raises(Exception) as refused:
        reader.load(str(real_files)).count()
    assert words.lower() in str(refused.value).lower()


def test_damage_fails_the_job_unless_it_may_go_on(
    registered: "SparkSession", real_files: Path, tmp_path: Path
) -> None:
    """The error, or else a row with the column `damage`, names the file and the byte."""
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes((real_files / "kafka/plain/plain-0" / log.name).read_bytes()[:-1])
    words = rf"{log.name}: byte \d+: \d+ bytes behind the last whole"
    for table in ("batches", "records"):
        with pytest.raises(Exception, match=words):
            load(registered, table, tmp_path).count()
        for how in ("skip", "keep"):
            frame = load(registered, table, tmp_path, on_damage=how, columns="offset"
                         if table == "records" else "base_offset")  # fmt: skip
            assert ["crc_valid", "damage"][how == "skip" :] == frame.columns[1:]
            (told,) = frame.where("damage is not null").collect()
            assert re.search(words, told["damage"])
            assert frame.where("damage is null").count() > 0
    with pytest.raises(Exception, match="`damage string`: add it"):
        registered.read.format("segproof").schema("offset bigint").options(
            table="records", on_damage="skip"
        ).load(str(tmp_path)).count()


# --- the examples


def run(session: "SparkSession", name: str, *paths: Path, function: str = "") -> list[Any]:
    """Return the rows of an example."""
    example = contracts.load(EXAMPLES / f"{name}.py", f"example_{name}")
    made = getattr(example, function or name)(session, [str(path) for path in paths])
    rows: list[Any] = [row.asDict() for row in made.collect()]
    return rows


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a partition with a batch written twice, and an index entry that leads nowhere."""
    partition = copy_of("kafka/txn-a/txn-a-0", tmp_path / "txn-a-0")
    log = partition / f"{0:020d}.log"
    first = next(row for row in read_table("batches", log) if row["producer_id"] >= 0)
    data = log.read_bytes()
    log.write_bytes(data + data[first["position"] : first["position"] + first["size"]])
    flip(log.with_suffix(".index"), 7, bits=1)
    return partition


def test_largest_gaps(registered: "SparkSession", real_files: Path) -> None:
    """Of the compacted log: the same gaps as a loop over the batches finds."""
    folder = real_files / "kafka" / "compacted"
    rows = read_table("batches", folder)
    pairs = pairwise(rows)
    gaps = [b["base_offset"] - a["last_offset"] - 1 for a, b in pairs]
    expected = sorted((gap for gap in gaps if gap > 0), reverse=True)
    assert expected == [row["missing"] for row in run(registered, "largest_gaps", folder)]
    assert expected


def test_timestamps_going_back(registered: "SparkSession", real_files: Path, broken: Path) -> None:
    """The same batches as a loop finds; the one that was written twice is among them."""
    for folder in (real_files / "kafka" / "plain", broken):
        expected = []
        newest = -1
        rows, _ = rows_and_damage("batches", folder, "skip")
        rows.sort(key=lambda row: (row["base_offset"], row["position"]))
        for row in rows:
            if row["is_control"]:
                continue
            if row["max_timestamp"] < newest:
                expected.append((row["base_offset"], newest - row["max_timestamp"]))
            newest = max(newest, row["max_timestamp"])
        found = run(registered, "timestamps_going_back", folder)
        assert sorted(expected) == sorted((row["base_offset"], row["back_ms"]) for row in found)


def test_batch_size_histogram(registered: "SparkSession", real_files: Path) -> None:
    """All batches are in it, each in the power of two at or below its size."""
    folder = real_files / "kafka"
    rows = read_table("batches", folder)
    found = run(registered, "batch_size_histogram", folder)
    assert len(rows) == sum(row["batches"] for row in found)
    assert sum(row["size"] for row in rows) == sum(row["bytes"] for row in found)
    for row in found:
        low = row["at_least_bytes"]
        own = [
            each
            for each in rows
            if low <= each["size"] < 2 * low and each["compression"] == row["compression"]
        ]
        assert len(own) == row["batches"]


def test_index_density(registered: "SparkSession", real_files: Path) -> None:
    """A row for each log that is not empty."""
    folder = real_files / "kafka"
    found = run(registered, "index_density", folder)
    logs = [path for path in folder.rglob("*-0/*.log") if path.stat().st_size]
    assert len(logs) == len(found)
    assert found == sorted(found, key=lambda row: -row["bytes_an_entry"])


def test_dead_entries(registered: "SparkSession", real_files: Path, broken: Path) -> None:
    """Sound files have none; a position that was changed is one, and an entry that was unhooked."""
    function = "entries_without_a_batch"
    assert [] == run(registered, "dead_entries", real_files / "kafka", function=function)
    (dead,) = run(registered, "dead_entries", broken, function=function)
    assert (0, 0) == (dead["segment_base_offset"], dead["entry"])
    function = "unreachable_entries"
    store = real_files / "rocketmq" / "collisions-4.9.8"
    assert [] == run(registered, "dead_entries", store, function=function)
    linked = next(row for row in read_table("rocketmq_entries", store) if row["prev_index"])
    index = broken.parent / Path(linked["path"]).name
    data = bytearray(Path(linked["path"]).read_bytes())
    geometry = find_geometry(linked["path"]).geometry
    assert geometry is not None
    end = geometry.position_of(linked["index"]) + 20
    data[end - 4 : end] = bytes(4)
    index.write_bytes(data)
    found = run(registered, "dead_entries", index, function=function)
    assert [linked["prev_index"]] == [row["index"] for row in found]


def test_duplicates_by_producer(registered: "SparkSession", real_files: Path, broken: Path) -> None:
    """A real log of transactions has none; a batch that was written twice is one."""
    assert [] == run(registered, "duplicates_by_producer", real_files / "kafka" / "txn-a")
    (twice,) = run(registered, "duplicates_by_producer", broken)
    assert 2 == len(twice["base_offsets"])
    assert 1 == len(set(twice["base_offsets"]))


def test_an_example_is_a_script(
    spark: "SparkSession",
    real_files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It runs by itself. Here it gets the session of the tests in place of one of its own."""
    monkeypatch.setattr("segproof_spark.session.start_session", lambda: nullcontext(spark))
    path = EXAMPLES / "index_density.py"
    monkeypatch.setattr(sys, "argv", [str(path), str(real_files / "kafka" / "plain")])
    runpy.run_path(str(path), run_name="__main__")
    assert "bytes_an_entry" in capsys.readouterr().out
