# SPDX-License-Identifier: Apache-2.0
"""Verifying on Spark finds what `segproof.verify` finds, file by file."""

import errno
import inspect
import json
import os
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from pyspark.sql.types import StructType
from typer.testing import CliRunner

from segproof.files import RealFiles
from segproof.verification import verify
from segproof.wording.reporting import Wanted
from segproof_harness import cli
from segproof_harness.cli import build_app
from segproof_harness.cli.verify import command as in_processes
from segproof_harness.files.shipped_directories import stores
from segproof_spark import findings_reader
from segproof_spark.cli import app
from segproof_spark.cli.verify import command as on_spark
from segproof_spark.data_source import SegproofDataSource
from segproof_spark.findings_reader import FindingsReader, Task
from segproof_spark.result_rows import FINDING_FIELDS, finding_row
from segproof_spark.verify.plan import SEGMENT_BYTES, WholeUnit, units_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.real_copies import copy_partitions, flip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    """Return a data directory with several real partitions, one of them damaged."""
    copy_partitions(tmp_path)
    flip(next((tmp_path / "plain-plain-0").glob("*252.index")), 3)
    return tmp_path


def found_by_both(spark: "SparkSession", path: Path, **asked: Any) -> list[dict[str, Any]]:
    """Return the findings of one process, which Spark must find too."""
    from segproof_spark.verification import verify_on_spark

    local = [finding.to_json() for finding in verify(path, **asked)]
    assert sorted(local, key=repr) == sorted(verify_on_spark(spark, [path], **asked), key=repr)
    return local


def test_same_findings_as_in_one_process(spark: "SparkSession", data_directory: Path) -> None:
    """The rows of the table `findings` are the findings of the verifier."""
    found = found_by_both(spark, data_directory)
    assert any(finding["severity"] == "error" for finding in found)


def test_large_partitions_and_logs_are_cut(
    spark: "SparkSession", data_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Segments and pieces on Spark, joined there; a second time from the checkpoint."""
    from segproof_spark.verification import Totals, verify_on_spark

    for each in (data_directory, *data_directory.rglob("*")):
        os.utime(each, ns=(10**18, 10**18))
    paths = [data_directory / name for name in ("plain-plain-0", "v1-gzip-old-0")]
    local = sorted((one.to_json() for path in paths for one in verify(path)), key=repr)
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    totals = []
    for _ in range(2):
        totals.append(Totals())
        found = verify_on_spark(
            spark, paths, task_bytes=60_000, checkpoint=checkpoint, totals=totals[-1]
        )
        assert local == sorted(found, key=repr)
    assert totals[0].tasks > totals[0].units // 2 > 10
    assert (0, totals[1].units) == (totals[0].units_recalled, totals[1].units_recalled)
    assert (True, True, 0) == (
        totals[0].bytes_read > 400_000,
        0 < totals[0].worker_peak_bytes < 512 << 20,
        totals[1].bytes_read,
    )


def test_the_frame_of_findings(spark: "SparkSession", data_directory: Path) -> None:
    """Anyone can go on with the findings in Spark's own words."""
    from segproof_spark.verification import findings_frame

    path = data_directory / "plain-plain-0"
    frame = findings_frame(spark, [path])
    assert list(FINDING_FIELDS) == frame.columns
    errors = frame.filter("severity = 'error'").select("law").collect()
    expected = [one.law for one in verify(path) if one.severity == "error"]
    assert sorted(expected) == sorted(row["law"] for row in errors)


@pytest.fixture
def broker_directory(data_directory: Path) -> Path:
    """Return the data directory with all that may lie beside and around partitions."""
    (data_directory / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (data_directory / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (data_directory / "notes.txt").write_text("not Kafka's")
    (data_directory / "foreign").mkdir()
    (data_directory / "foreign" / "x").touch()
    (data_directory / "new-0").mkdir()
    (data_directory / f"gone-0.{'0' * 32}-delete").mkdir()
    (data_directory / "disks" / "a").mkdir(parents=True)
    partition = data_directory / "disks" / "a" / "plain-1"
    shutil.copytree(data_directory / "plain-plain-0", partition)
    (partition / "7.log").touch()
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    (partition / "00000000000000000252.txnindex.deleted").touch()
    (partition / "stranger").touch()
    return data_directory


@pytest.mark.parametrize(
    ("place", "laws"),
    [
        ("", {"DISK-3", "LOAD-1", "FILE-1"}),
        ("disks", {"DISK-3", "LOAD-1", "FILE-1"}),
        ("disks/a/plain-1", {"DISK-3", "LOAD-1", "FILE-1"}),
        ("disks/a/plain-1/00000000000000000252.index", set()),
        ("disks/a/plain-1/00000000000000000252.log", set()),
        ("disks/a/plain-1/7.log", {"FILE-1"}),
        ("disks/a/plain-1/leader-epoch-checkpoint", set()),
        ("notes.txt", {"DISK-20"}),
        ("foreign", {"DISK-20"}),
        ("new-0", {"DISK-20"}),
    ],
)
def test_same_findings_for_every_kind_of_path(
    spark: "SparkSession", broker_directory: Path, place: str, laws: set[str]
) -> None:
    """What was not below a partition directory was looked over, or checked as if it stood alone."""
    assert laws <= {finding["law"] for finding in found_by_both(spark, broker_directory / place)}


def test_same_findings_in_stores_of_rocketmq(spark: "SparkSession", tmp_path: Path) -> None:
    """Stores lie below one folder, an index file of one of them is damaged."""
    for store in stores():
        shutil.copytree(store, tmp_path / store.parent.name, copy_function=shutil.copyfile)
    flip(min((tmp_path / "rolled-4.9.8" / "index").iterdir()), 43, bits=0x3F)
    found = found_by_both(spark, tmp_path)
    assert any(str(finding["law"]).startswith("RMQDISK-") for finding in found)
    assert any(finding["severity"] == "error" for finding in found)


def test_a_closed_directory_is_a_finding(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that may not be listed ended the run; it is one finding among the others."""
    (data_directory / "closed-0").mkdir()
    list_directory = RealFiles.list_directory

    def refuse(files: RealFiles, path: str) -> list[str]:
        if path.endswith("closed-0"):
            raise PermissionError(errno.EACCES, "permission denied", path)
        return list_directory(files, path)

    monkeypatch.setattr(RealFiles, "list_directory", refuse)
    local = [finding_row(finding.to_json()) for finding in verify(data_directory)]
    assert "DISK-1" in {finding["law"] for finding in local}
    reader = FindingsReader([str(data_directory)], Wanted())
    found = [
        dict(zip(FINDING_FIELDS, row, strict=True))
        for task in reader.partitions()
        for row in reader.read(task)
    ]
    assert sorted(local, key=repr) == sorted(found, key=repr)


def test_numbers_reach_the_verifier(spark: "SparkSession", data_directory: Path) -> None:
    """A batch above the limit, and an index above the size of the next broker, are warnings."""
    path = next(data_directory.glob("v1-gzip-*"))
    found = found_by_both(spark, path, deep=True, limit=1, segment_index_bytes=8)
    assert {"DISK-18", "LOAD-19"} <= {finding["law"] for finding in found}


def test_the_verb_has_the_options_of_verify() -> None:
    """One that `verify` had been given, `spark verify` refused. It gives no verdicts."""
    own, others = (set(inspect.signature(one).parameters) for one in (on_spark, in_processes))
    assert others - own == {"against", "jobs", "only_summary", "since", "watch_seconds"}


def test_paths_that_cannot_be_read_are_usage(tmp_path: Path, capsys: Capsys) -> None:
    """A missing path, a named pipe, a path below a file: one line and exit 2, without Spark."""
    pipe, file = tmp_path / "pipe.log", tmp_path / "file"
    os.mkfifo(pipe)
    file.touch()
    for path, words in (
        (tmp_path / "none", "no such file or directory"),
        (pipe, "not a regular file"),
        (file / "below", "not a directory"),
    ):
        assert 2 == cli.run(["spark", "verify", str(path)])
        assert f"segproof: {path}: {words}\n" == capsys.readouterr().err


def test_a_directory_without_rights_is_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """A directory that may not be listed: one line and exit 2."""
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path))
    monkeypatch.setattr("os.listdir", Mock(side_effect=denied))  # root may list any
    assert 2 == cli.run(["spark", "verify", str(tmp_path)])
    assert f"segproof: {tmp_path}: permission denied\n" == capsys.readouterr().err


def test_the_table_is_a_data_source(spark: "SparkSession", data_directory: Path) -> None:
    """Anyone can read the table with Spark's own words, and filter it."""
    spark.dataSource.register(SegproofDataSource)
    table = spark.read.format("segproof").option("table", "findings").load(str(data_directory))
    errors = table.filter("severity = 'error'").select("path").distinct().collect()
    assert {Path(row["path"]).name for row in errors} == {"00000000000000000252.index"}


def test_unknown_tables_are_refused(spark: "SparkSession", data_directory: Path) -> None:
    """A table that is not there is named in the error."""
    spark.dataSource.register(SegproofDataSource)
    with pytest.raises(Exception, match="no table 'nothing'"):
        spark.read.format("segproof").option("table", "nothing").load(str(data_directory))


@pytest.mark.parametrize("task_bytes", [1, 4 * SEGMENT_BYTES, 1 << 30])
def test_a_data_directory_is_cut_into_partitions(
    data_directory: Path, monkeypatch: pytest.MonkeyPatch, task_bytes: int
) -> None:
    """Tasks are whole partition directories, none twice and none left out, however small."""
    monkeypatch.setattr(findings_reader, "TASK_BYTES", task_bytes)
    tasks = FindingsReader([str(data_directory)], Wanted()).partitions()
    units = [one for task in tasks if isinstance(task, Task) for one in units_of(task.units or b"")]
    cut = [one.work.directory for one in units if isinstance(one, WholeUnit)]
    expected = sorted(str(path) for path in data_directory.iterdir())
    assert (expected, len(units)) == (sorted(cut), len(cut))
    assert (len(expected) if task_bytes == 1 else 1) <= len(tasks)
    assert (task_bytes == 1 << 30) == (len(tasks) == 1)


def test_nothing_to_verify_is_one_empty_task() -> None:
    """Spark is never left without a task."""
    reader = FindingsReader([], Wanted())
    (task,) = reader.partitions()
    assert [] == list(reader.read(task))


def test_a_limit_below_one_is_refused() -> None:
    """The option `limit_bytes` has the bound of the command line."""
    source = SegproofDataSource({"path": "x", "limit_bytes": "0"})
    with pytest.raises(ValueError, match="limit_bytes: it must be 1 or more"):
        source.reader(StructType())


def test_a_large_directory_with_fifty_corruptions(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are found, in the same words as by one process, and nothing else; logs are cut."""
    from segproof_spark.verification import Totals, verify_on_spark
    from segproof_spark.verify import plan
    from segproof_tests.big_dump import write_dump

    monkeypatch.setattr(plan, "SEGMENT_BYTES", 1 << 10)
    expected = write_dump(tmp_path / "data", 30_000_000)
    totals = Totals()
    found = list(verify_on_spark(spark, [tmp_path / "data"], task_bytes=900_000, totals=totals))
    local = [one.to_json() for one in verify(tmp_path / "data")]
    assert sorted(local, key=repr) == sorted(found, key=repr)
    defects = {(one["law"], one["path"]) for one in found if one["severity"] != "note"}
    assert expected == sorted(defects)
    assert totals.units > 85  # 72 partitions, of five of which the logs are cut
    for one in {one["law"]: one for one in found}.values():
        words = shlex.split(one["reproduce"])
        again = CliRunner().invoke(build_app(), [*words[1:], "--format", "jsonl"])
        assert one in [json.loads(line) for line in again.stdout.splitlines()], one["reproduce"]


def test_a_finding_s_command_shows_it_again(
    spark: "SparkSession", data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `spark verify` shows as JSON names a command line of one process."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)  # others still need it
    wrong = data_directory / "plain-plain-0"
    options = ["--format", "jsonl", "--master", "local[2]", "--no-notes", "--law", "SEG-7"]
    done = CliRunner().invoke(app, ["verify", str(wrong), *options, "--max-findings", "1"])
    assert 1 == done.exit_code, done.stderr
    (line,) = done.stdout.splitlines()
    finding = json.loads(line)
    words = shlex.split(finding["reproduce"])
    assert ["segproof", "verify", finding["path"]] == words[:3]
    again = CliRunner().invoke(build_app(), [*words[1:], "--format", "jsonl"])
    told = [json.loads(line) for line in again.stdout.splitlines()]
    assert [finding] == [each for each in told if "type" not in each]
    shown = CliRunner().invoke(app, ["verify", str(wrong), *options[2:]])
    heads = [line for line in shown.stdout.splitlines() if line.startswith("error ")]
    assert {1} == set(Counter(line.split()[2] for line in heads).values()), "a file, a cause"
    assert len(heads) == shown.stdout.count(f"\n    segproof verify {wrong}/")


def test_a_checkpoint_that_cannot_be_is_usage(tmp_path: Path) -> None:
    """A scheme that nobody knows, a file in the way: one line and exit 2, without Spark."""
    file = tmp_path / "file"
    file.touch()
    for place in ("foo://x", str(file), str(file / "below"), f"file://{file}"):
        done = CliRunner().invoke(app, ["verify", str(tmp_path), "--checkpoint", place])
        assert 2 == done.exit_code, done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"segproof: --checkpoint: {place}: ")


def test_globs_in_vain_and_unknown_laws_are_usage(tmp_path: Path, capsys: Capsys) -> None:
    """One line and exit 2, without Spark, in the words of `verify` where it has them."""
    assert 2 == cli.run(["spark", "verify", str(tmp_path / "*" / "t-0")])
    assert f"segproof: {tmp_path}/*/t-0: nothing matches\n" == capsys.readouterr().err
    here = CliRunner().invoke(build_app(), ["verify", str(tmp_path), "--law", "NO-1"])
    done = CliRunner().invoke(app, ["verify", str(tmp_path), "--law", "NO-1"])
    assert (2, here.stderr) == (done.exit_code, done.stderr)
