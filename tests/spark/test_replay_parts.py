# SPDX-License-Identifier: Apache-2.0
"""The parts of a replay on Spark, without Spark: the plan, the tasks, the report."""

import pickle
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from segproof_harness.histories.replay import replay_seeds
from segproof_harness.structures.structure import STRUCTURE_IDS
from segproof_spark.cli import app as spark_app
from segproof_spark.replay.histories import (
    COSTS_US,
    TASK_SECONDS,
    Task,
    histories_of,
    planned,
    shared,
)
from segproof_spark.replay.job import ROWS_A_BATCH, Runner
from segproof_spark.replay.report import NoResultsError, is_finished, report
from segproof_spark.replay.summary import Summary
from segproof_spark.result_rows import peak_bytes

FEW = ("segproof", range(3), 5, None, 1)


def histories(tasks: tuple[Task, ...]) -> "list[pa.RecordBatch]":
    """Return the histories of all tasks, by what Spark's workers get."""
    sent = pickle.loads(pickle.dumps(tasks))
    return [batch for task in sent for batch in histories_of(task)]


def test_every_history_is_in_one_task() -> None:
    """None twice, none left out; ranges of seeds stay ranges, however many there are."""
    tasks = planned(STRUCTURE_IDS, "segproof", range(10**6), 100, None, 2)
    assert set(STRUCTURE_IDS) == {task.structure for task in tasks}
    for name in STRUCTURE_IDS:
        parts = sorted((one.seeds[0], one.seeds[-1]) for one in tasks if one.structure == name)
        assert (0, 10**6 - 1) == (parts[0][0], parts[-1][1])
        assert all(end + 1 == start for (_, end), (start, _) in pairwise(parts))
    assert all(isinstance(one.seeds, range) for one in tasks)
    assert len(pickle.dumps(tasks)) < 200 * len(tasks)


def test_tasks_take_about_the_same_time() -> None:
    """The dear structures have more tasks, and the dearest tasks come first."""
    tasks = planned(STRUCTURE_IDS, "segproof", range(20_000), 100, None, 2)
    seconds = [one.seconds for one in tasks]
    assert sorted(seconds, reverse=True) == seconds
    assert TASK_SECONDS * 0.8 < seconds[-1] <= seconds[0] < TASK_SECONDS * 1.1
    dear = sum(one.structure == "partition-log" for one in tasks)
    cheap = sum(one.structure == "time-index" for one in tasks)
    assert dear > 8 * cheap


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_small_jobs_keep_all_cores_busy(cores: int) -> None:
    """A job of some seconds is cut into two tasks for each core, if it has so many histories."""
    assert 2 * cores <= len(planned(["offset-index"], "segproof", range(200), 50, None, cores))
    assert 3 == len(planned(["offset-index"], "segproof", range(3), 50, None, 64))


@pytest.mark.parametrize("total", [9, 1000, 200_000])
def test_a_total_is_shared_by_cost(total: int) -> None:
    """All of it and no more; each structure has some, and they take as long as one another."""
    seeds = shared(STRUCTURE_IDS, total, 7)
    assert set(STRUCTURE_IDS) == set(seeds)
    assert {7} == {one[0] for one in seeds.values()}
    assert total <= sum(map(len, seeds.values())) <= total + len(seeds)
    tasks = planned(STRUCTURE_IDS, "segproof", seeds, 100, None, 2)
    assert sum(map(len, seeds.values())) == sum(len(one.seeds) for one in tasks)
    seconds = [len(one) * COSTS_US[name] for name, one in seeds.items()]
    if total > 10_000:
        assert max(seconds) < 1.01 * min(seconds)


def test_every_structure_has_its_cost() -> None:
    """A new structure is measured, and entered into the table."""
    assert set(STRUCTURE_IDS) == set(COSTS_US)


def test_weights_reach_the_structures_that_have_them() -> None:
    """An operation of one structure is none of another's."""
    weights = {"append": 3, "maybe_append": 4}
    tasks = planned(["offset-index", "time-index"], "segproof", range(4), 9, weights, 1)
    given = {one.structure: one.weights for one in tasks}
    assert {"offset-index": (("append", 3),), "time-index": (("maybe_append", 4),)} == given
    with pytest.raises(ValueError, match="no operation of time-index"):
        planned(["time-index"], "segproof", range(4), 9, {"others": 0}, 1)


def test_results_leave_a_worker_in_small_batches() -> None:
    """One row for each history, in their order, and never more than so many at once."""
    tasks = planned(["time-index"], "segproof", range(3 * ROWS_A_BATCH + 1), 4, None, 1)
    batches = list(Runner(("model", "impl"))(iter(histories(tasks))))
    sizes = [batch.num_rows for batch in batches]
    assert [ROWS_A_BATCH] * 3 + [1] == sizes
    rows = pa.Table.from_batches(batches)
    assert list(range(3 * ROWS_A_BATCH + 1)) == sorted(rows.column("seed").to_pylist())
    assert 0 < rows.column("worker_peak_bytes").to_pylist()[-1] <= peak_bytes()


def test_memory_does_not_grow_with_the_histories() -> None:
    """A worker that has run some hundred histories holds no more than one that has run a few."""
    runner = Runner(("model", "impl"))

    def run(first: int, count: int) -> None:
        seeds = range(first, first + count)
        tasks = planned(["transaction-index", "index-file"], "segproof", seeds, 20, None, 1)
        assert count * 2 == sum(batch.num_rows for batch in runner(iter(histories(tasks))))

    run(0, 100)
    before = peak_bytes()
    run(100, 400)
    assert peak_bytes() - before < 16 << 20


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder with the results of a few histories, in several files."""
    tasks = planned(["offset-index", "record-file"], "segproof", range(12), 20, None, 1)
    batches = list(Runner(("model", "impl"))(iter(histories(tasks))))
    table = pa.Table.from_batches(batches)
    (tmp_path / "part").mkdir()
    pq.write_table(table.slice(0, 7), tmp_path / "one.snappy.parquet")
    pq.write_table(table.slice(7), tmp_path / "part" / "two.snappy.parquet")
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


def test_the_report_adds_up_all_files(results: Path) -> None:
    """By structure and operation, and the states; locally and behind a URL."""
    local = replay_seeds("record-file", "segproof", range(12), 20).counters
    for place in (str(results), results.as_uri()):
        found = report(place)
        whole = found.by_structure["record-file", "segproof"]
        assert (12, local.operations) == (whole.histories, whole.operations)
        assert local.bytes_compared == whole.bytes_compared
        assert dict(local.sometimes) == found.states["record-file", "segproof"]
        steps = {
            name: (one.histories, one.operations, one.answers_compared)
            for (structure, _, name), one in found.by_operation.items()
            if structure == "record-file"
        }
        assert steps == {
            name: (one.histories, one.operations, one.answers_compared)
            for name, one in local.by_operation.items()
        }


def test_the_report_passes_over_what_spark_passes_over(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that were not committed, and hidden files, are no results; the place may be hidden."""
    place = tmp_path / "_kept" / ".results"
    place.mkdir(parents=True)
    for name in ("one.snappy.parquet", "part", "_SUCCESS"):
        (results / name).rename(place / name)
    whole = report(str(place)).total.histories
    assert 24 == whole
    attempt = place / "_temporary" / "0" / "_temporary" / "attempt_1"
    attempt.mkdir(parents=True)
    (place / ".hidden").mkdir()
    for inside in (attempt, place / ".hidden"):
        shutil.copy(place / "one.snappy.parquet", inside / "one.snappy.parquet")
    (place / ".one.parquet").write_bytes(b"cut")
    (place / "_two.parquet").write_bytes(b"cut")
    monkeypatch.chdir(place)
    for same in (str(place), f"{place}/", place.as_uri(), ".", "../.results", "part/.."):
        assert whole == report(same).total.histories


def test_results_of_a_replay_that_has_not_ended_are_told_as_such(results: Path) -> None:
    """Without `_SUCCESS` tasks may be missing: a note on stderr, and the exit code stays."""
    for place in (str(results), results.as_uri()):
        assert is_finished(place)
        assert "_SUCCESS" not in CliRunner().invoke(spark_app, ["report", place]).stderr
    (results / "_SUCCESS").unlink()
    for place in (str(results), results.as_uri()):
        assert not is_finished(place)
        done = CliRunner().invoke(spark_app, ["report", place])
        assert 0 == done.exit_code
        assert f"{place}: no _SUCCESS" in done.stderr
        assert "_SUCCESS" not in done.stdout


def test_a_place_without_results_is_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing there, an empty folder, a foreign or a cut file, no pyarrow: one line and exit 2."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    pq.write_table(pa.table({"structure": ["x"]}), tmp_path / "foreign" / "a.parquet")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "later").mkdir()
    rows = list(Runner(("model",))(iter(histories(planned(["time-index"], *FEW)))))
    pq.write_table(pa.Table.from_batches(rows), tmp_path / "later" / "a.parquet")
    (tmp_path / "later" / "b.parquet").write_bytes(b"PAR1")
    for name in ("none", "empty", "foreign", "cut", "later"):
        place = str(tmp_path / name)
        with pytest.raises(NoResultsError):
            report(place)
        done = CliRunner().invoke(spark_app, ["report", place])
        assert 2 == done.exit_code
        assert done.stderr.startswith(f"segproof: {place}: ")
        assert 1 == len(done.stderr.splitlines())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = CliRunner().invoke(spark_app, ["report", str(tmp_path)])
    assert (2, True) == (done.exit_code, "pip install 'segproof[arrow]'" in done.stderr)


def test_a_summary_of_nothing_has_no_rows() -> None:
    """Nothing was run: no rows, no findings, no division by anything."""
    assert ([], 0) == (list(Summary().rows()), Summary().findings_cut)
