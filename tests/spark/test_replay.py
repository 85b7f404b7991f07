# SPDX-License-Identifier: Apache-2.0
"""A replay on Spark compares what the verb `replay` compares, history by history."""

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from segproof_harness import cli
from segproof_harness.canaries import CANARIES
from segproof_harness.replay import replay_seeds
from segproof_harness.structures import STRUCTURE_IDS
from segproof_spark.cli import app as spark_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(40)
LENGTH = 30


@pytest.mark.parametrize("structure", STRUCTURE_IDS)
def test_same_figures_as_in_one_process(spark: "SparkSession", structure: str) -> None:
    """Histories, operations, comparisons and states reached are those of a local replay."""
    from segproof_spark.replay import replay_on_spark

    local = replay_seeds(structure, "segproof", SEEDS, LENGTH)
    found = replay_on_spark(spark, [structure], seeds=SEEDS, length=LENGTH)
    assert [] == found.findings
    assert local.counters.histories == found.histories
    assert local.counters.operations == found.operations
    assert local.counters.answers_compared == found.answers_compared
    assert local.counters.bytes_compared == found.bytes_compared
    assert dict(local.counters.sometimes) == found.sometimes


def test_a_planted_defect_is_found_and_its_command_works(spark: "SparkSession") -> None:
    """A red row names a command line that shows the same divergence in one process."""
    from segproof_spark.replay import replay_on_spark

    canary = next(canary for canary in CANARIES if canary.canary_id == "K-14")
    found = replay_on_spark(
        spark,
        ["offset-index"],
        seeds=range(200),
        length=LENGTH,
        subjects=("model", canary.subject_name),
    )
    assert found.findings
    assert 0 == found.findings_cut
    command = found.findings[0]["reproduce"].split()
    assert command[:2] == ["segproof", "replay"]
    again = subprocess.run(
        [sys.executable, "-m", "segproof_harness.cli", *command[1:], "--format", "jsonl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1, again.stderr
    assert found.findings[0]["law"] == _law(again.stdout)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--structure", "no-such"],
        ["--profile", "kafka-0.1"],
        ["--subjects", "nobody"],
        ["--subjects", " , "],
    ],
)
def test_wrong_options_are_refused_in_the_same_words(wrong: list[str]) -> None:
    """Exit 2 before Spark starts, as the verb `replay` says it; nobody was a subject here once."""
    on_spark = CliRunner().invoke(spark_app, ["replay", *wrong])
    here = CliRunner().invoke(cli.build_app(), ["replay", *wrong])
    assert (2, 2) == (on_spark.exit_code, here.exit_code)
    assert here.stderr == on_spark.stderr


def test_findings_beyond_the_most_are_counted(spark: "SparkSession") -> None:
    """Findings that are not brought to the driver are counted, and the summary says so."""
    from segproof_spark import replay
    from segproof_spark.cli.replay import _counted

    canary = next(canary for canary in CANARIES if canary.canary_id == "K-14")
    subjects = ("model", canary.subject_name)
    whole = replay.replay_on_spark(
        spark, ["offset-index"], seeds=range(200), length=LENGTH, subjects=subjects
    )
    cut = replay.replay_on_spark(
        spark, ["offset-index"], seeds=range(200), length=LENGTH, subjects=subjects, findings_max=1
    )
    assert len(whole.findings) > 1
    assert (1, len(whole.findings) - 1) == (len(cut.findings), cut.findings_cut)
    assert f"1 findings; {cut.findings_cut} more are not shown" == _counted(cut)


def _law(output: str) -> str:
    law = json.loads(output.splitlines()[0])["law"]
    assert isinstance(law, str)
    return law
