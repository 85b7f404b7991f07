# SPDX-License-Identifier: Apache-2.0
"""Judging salvages of drawn damage: on Spark as in one process, and what the verb prints."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from segproof_harness.salvage_draws.draws import judge_draw, salvage_of_kafka
from segproof_harness.salvage_draws.verdict import Told
from segproof_spark.cli import app
from segproof_spark.salvage_check import (
    SEEDS_A_TASK,
    SYSTEMS,
    Summary,
    check_on_spark,
    summary_of,
    tasks_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(5)
FAULTY = 2
"""A seed of Kafka whose damage costs offsets, so that who says nothing of them has a fault."""


def _tells_nothing(source: Path, target: Path) -> Told:
    """Save a partition, and say that nothing is lost."""
    salvage_of_kafka(source, target)
    return Told(0, is_exact=True)


SILENT = f"{__name__}:_tells_nothing"
"""Its name for `--salvager`."""


def _figures(summary: Summary) -> list[object]:
    return [
        (name, one.draws, one.faulty, one.counts, one.draws_with, one.facts, one.seeds)
        for name, one in sorted(summary.totals.items())
    ] + sorted(summary.faulty, key=str)


def test_on_spark_as_in_one_process(spark: "SparkSession", tmp_path: Path) -> None:
    """All sums, the draws with faults and their seeds; and again from the written rows."""
    tasks = tasks_of(SYSTEMS, SEEDS)
    local = summary_of(row for task in tasks for row in task.rows())
    assert _figures(local) == _figures(check_on_spark(spark, tasks))
    assert _figures(local) == _figures(check_on_spark(spark, tasks, out=str(tmp_path / "rows")))
    assert {name: len(SEEDS) for name in SYSTEMS} == {
        name: one.draws for name, one in local.totals.items()
    }


def test_the_draws_with_faults_are_told(spark: "SparkSession") -> None:
    """Each with its faults, as one process tells them."""
    tasks = tasks_of(("kafka",), SEEDS, SILENT)
    local = summary_of(row for task in tasks for row in task.rows())
    assert _figures(local) == _figures(check_on_spark(spark, tasks))
    faults = judge_draw("kafka", FAULTY, _tells_nothing).faults
    assert faults
    assert [{**faults}] == [row["faults"] for row in local.faulty if row["seed"] == FAULTY]
    assert all(FAULTY in local.totals["kafka"].seeds[fault] for fault in faults)


def test_tasks_have_every_seed_once() -> None:
    """Of each system; no task has more than its share."""
    seeds = range(7, 7 + 3 * SEEDS_A_TASK + 1)
    tasks = tasks_of(SYSTEMS, seeds)
    for system in SYSTEMS:
        own = [task.seeds for task in tasks if task.system == system]
        assert list(seeds) == [seed for part in own for seed in part]
        assert max(map(len, own)) == SEEDS_A_TASK


def test_the_verb_names_a_draw_with_a_fault() -> None:
    """Stdout has the draw, stderr the sums and the command that shows it again; exit code 1."""
    words = ["salvage-check", "--local", "--system", "kafka", "--seeds", str(FAULTY)]
    done = CliRunner().invoke(app, [*words, "--salvager", SILENT, "--format", "jsonl"])
    assert 1 == done.exit_code
    (row,) = map(json.loads, done.stdout.splitlines())
    faults = judge_draw("kafka", FAULTY, _tells_nothing).faults
    assert (row["seed"], row["faults"]) == (FAULTY, faults)
    assert f"again: segproof spark {' '.join([words[0], *words[2:]])}" in done.stderr
    assert "--local" in done.stderr
    assert "1 draw judged" in done.stderr


def test_another_salvager_is_judged() -> None:
    """One that says that nothing is lost is found out; one without a fault ends with 0."""
    words = ["salvage-check", "--local", "--system", "kafka"]
    done = CliRunner().invoke(app, [*words, "--seeds", "0..2", "--salvager", SILENT])
    assert (1, True) == (done.exit_code, "told too few" in done.stdout)
    assert f"--salvager {SILENT}" in done.stderr
    assert 0 == CliRunner().invoke(app, [*words, "--seeds", "0..2"]).exit_code


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--seeds", "9..1"), "the smaller one first"),
        (("--seeds", "one"), "write two numbers"),
        (("--system", "pulsar"), "known: kafka, rocketmq"),
        (("--salvager", "no.module:f"), "say which with --system"),
        (("--salvager", "no.module:f", "--system", "kafka"), "no function"),
        (("--salvager", "segproof:__version__", "--system", "kafka"), "cannot be called"),
        (("--out", "rows", "--local"), "neither --out nor --remote"),
    ],
)
def test_a_wrong_call_is_refused(wrong: tuple[str, ...], words: str) -> None:
    """With exit code 2, before any draw."""
    done = CliRunner().invoke(app, ["salvage-check", *wrong])
    assert (2, True) == (done.exit_code, words in done.stderr)
