# SPDX-License-Identifier: Apache-2.0
"""A replay on Spark compares what the verb `replay` compares, history by history."""

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from segproof_harness import cli
from segproof_harness.canaries.every_canary import CANARIES
from segproof_harness.histories.replay import replay_seeds
from segproof_harness.structures.structure import STRUCTURE_IDS
from segproof_spark.cli import app as spark_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from segproof_spark.replay import Summary

SEEDS = range(6)
LENGTH = 30
CANARY = CANARIES["K-14"]
DEFECTIVE = ("model", CANARY.subject_name)
WORKER_BYTES_MAX = 512 << 20


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return where the results of all structures are written."""
    return str(tmp_path_factory.mktemp("replay") / "all of them")


@pytest.fixture(scope="module")
def found(spark: "SparkSession", out: str) -> "Summary":
    """Return the summary of a replay of all structures."""
    from segproof_spark.replay import replay_on_spark

    return replay_on_spark(spark, STRUCTURE_IDS, seeds=SEEDS, length=LENGTH, out=out)


@pytest.mark.parametrize("structure", STRUCTURE_IDS)
def test_same_figures_as_in_one_process(found: "Summary", structure: str) -> None:
    """Histories, operations, comparisons and states reached are those of a local replay."""
    local = replay_seeds(structure, "segproof", SEEDS, LENGTH).counters
    whole = found.by_structure[structure, "segproof"]
    assert local.histories == whole.histories
    assert local.operations == whole.operations
    assert local.answers_compared == whole.answers_compared
    assert local.images_compared == whole.images_compared
    assert local.bytes_compared == whole.bytes_compared
    assert dict(local.sometimes) == found.states[structure, "segproof"]
    by_operation = {
        name: (one.histories, one.operations, one.answers_compared, one.findings)
        for (other, _, name), one in found.by_operation.items()
        if other == structure
    }
    assert by_operation == {
        name: (one.histories, one.operations, one.answers_compared, one.findings)
        for name, one in local.by_operation.items()
    }


def test_all_of_it_adds_up(found: "Summary") -> None:
    """The total is that of the structures; no worker held too much, and nothing was found."""
    assert ([], 0) == (found.findings, found.findings_cut)
    assert len(STRUCTURE_IDS) * len(SEEDS) == found.total.histories
    assert found.total.histories * LENGTH == found.total.operations
    assert 0 < found.total.worker_peak_bytes < WORKER_BYTES_MAX
    steps = sum(one.answers_compared for one in found.by_operation.values())
    assert steps == found.total.answers_compared


def test_the_report_says_the_same_without_spark(found: "Summary", out: str) -> None:
    """What was written is read back by pyarrow, row by row of the table."""
    shown = CliRunner().invoke(spark_app, ["report", out, "--format", "jsonl"])
    assert 0 == shown.exit_code, shown.output
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    for one, other in zip(found.rows(), rows, strict=True):
        assert one.pop("seconds") == pytest.approx(other.pop("seconds"), abs=0.01)
        assert one == other
    assert f"{found.total.histories} histories" in shown.stderr
    text = CliRunner().invoke(spark_app, ["report", out])
    last = text.stdout.splitlines()[-1].split()
    assert ["total", str(found.total.histories), str(found.total.operations)] == last[:3]


def test_the_report_starts_no_java(found: "Summary", out: str) -> None:
    """Neither a JVM nor PySpark is needed to read results."""
    code = "import sys; from segproof_spark.replay.report import report; report(sys.argv[1]); "
    code += "assert not {'pyspark', 'py4j'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, out], check=True)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_a_terminal(
    columns: int, found: "Summary", monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is longer than the terminal, no figure is lost, and a name breaks behind a word."""
    from segproof_spark.replay.table import write_table

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream, whole = Terminal(), io.StringIO()
    write_table(found, stream)
    write_table(found, whole)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(whole.getvalue().splitlines()) == len(list(found.rows())) + 2
    for row in found.rows():
        assert any(str(row["answers_compared"]) in line.split() for line in lines)
    words = re.sub(r"_ [^\n]*\n +", "_", "\n".join(lines)).split()
    assert {row["operation"] or row["structure"] for row in found.rows()} <= {*words}


def test_the_query_of_the_help_works(spark: "SparkSession", found: "Summary", out: str) -> None:
    """The SQL that `spark report --help` shows, on the results."""
    from segproof_spark.cli.report import command

    text = command.__doc__ or ""
    query = text[text.index("SELECT") : text.index("DESC") + len("DESC")].replace("DIR", out)
    rows = spark.sql(query).collect()
    assert {row["structure"] for row in rows} == set(STRUCTURE_IDS)
    by_name = {(row["structure"], row["operation"]): row["operations"] for row in rows}
    expected = {key[::2]: one.operations for key, one in found.by_operation.items()}
    assert expected == by_name


def test_a_planted_defect_is_found_and_its_command_works(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """A red row names a command line that shows the same divergence in one process."""
    from segproof_spark.replay import replay_on_spark

    weights = {"append": 20, "lookup": 20}
    found = replay_on_spark(
        spark,
        ["offset-index"],
        seeds=range(200),
        length=LENGTH,
        subjects=DEFECTIVE,
        weights=weights,
    )
    assert found.findings
    assert 0 == found.findings_cut
    assert len(found.findings) == sum(one.findings for one in found.by_operation.values())
    command = shlex.split(found.findings[0]["reproduce"])
    assert command[:2] == ["segproof", "replay"]
    assert "append=20,lookup=20" in command
    again = subprocess.run(
        [sys.executable, "-m", "segproof_harness.cli", *command[1:], "--format", "jsonl"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert again.returncode == 1, again.stderr
    assert found.findings[0]["law"] == json.loads(again.stdout.splitlines()[0])["law"]


def test_findings_beyond_the_most_are_counted(spark: "SparkSession", tmp_path: Path) -> None:
    """Findings that are not brought to the driver are counted, and the summary says so."""
    from segproof_spark.cli.replay import counted
    from segproof_spark.replay import replay_on_spark
    from segproof_spark.replay.report import report

    place = str(tmp_path / "red")
    cut = replay_on_spark(
        spark,
        ["offset-index"],
        seeds=range(200),
        length=LENGTH,
        subjects=DEFECTIVE,
        findings_max=1,
        out=place,
    )
    assert 1 == len(cut.findings)
    assert cut.findings_cut > 0
    assert f"1 finding; {cut.findings_cut} more are not shown" == counted(cut)
    whole = report(place)
    assert cut.total.findings == len(whole.findings)
    assert cut.findings[0] in whole.findings
    shown = CliRunner().invoke(spark_app, ["report", place])
    assert 1 == shown.exit_code
    assert whole.findings[0]["reproduce"] in shown.stdout


def test_results_that_are_lost_are_missed(spark: "SparkSession", tmp_path: Path) -> None:
    """A place that is another one on each worker gives back a part only."""
    from segproof_spark.replay import histories_frame, replay_frame
    from segproof_spark.result_rows import ResultsLostError, written

    frame = histories_frame(spark, ["time-index"], "segproof", range(9), 5)
    rows = replay_frame(frame, ("model", "impl")).filter("seed < 4")
    with pytest.raises(ResultsLostError, match=r"not all histories .*histories 4 of 9"):
        written(spark, rows, str(tmp_path / "lost"), "histories", 9)


def test_the_job_takes_rows_of_anyone(spark: "SparkSession") -> None:
    """A frame of one's own: profiles, lengths and weights differ from row to row."""
    from segproof_spark.replay import HISTORY_DDL, replay_frame, summary

    rows = [
        ("offset-index", "segproof", 1, 10, None),
        ("offset-index", "kafka-4.3.1", 2, 20, {"append": 9}),
        ("index-file", "rocketmq-5.5.1", 3, 30, None),
    ]
    found = summary(replay_frame(spark.createDataFrame(rows, HISTORY_DDL), ("model",)))
    assert {
        ("offset-index", "segproof"): 10,
        ("offset-index", "kafka-4.3.1"): 20,
        ("index-file", "rocketmq-5.5.1"): 30,
    } == {key: one.operations for key, one in found.by_structure.items()}


@pytest.mark.parametrize(
    "wrong",
    [
        ["--structure", "no-such"],
        ["--profile", "kafka-0.1"],
        ["--subjects", "nobody"],
        ["--subjects", " , "],
        ["--weights", "appendo=1"],
        ["--weights", "append"],
        ["--structure", "offset-index", "--weights", "others=0"],
    ],
)
def test_wrong_options_are_refused_in_the_same_words(wrong: list[str]) -> None:
    """Exit 2 before Spark starts, as the verb `replay` says it; nobody was a subject here once."""
    on_spark = CliRunner().invoke(spark_app, ["replay", *wrong])
    here = CliRunner().invoke(cli.build_app(), ["replay", *wrong])
    assert (2, 2) == (on_spark.exit_code, here.exit_code)
    assert here.stderr == on_spark.stderr


def test_results_are_not_written_over_others(tmp_path: Path) -> None:
    """A place where something is already is refused before any history is run."""
    done = CliRunner().invoke(spark_app, ["replay", "--out", str(tmp_path)])
    assert 2 == done.exit_code
    assert f"segproof: --out {tmp_path}: there is something already" in done.stderr
