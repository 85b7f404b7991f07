# SPDX-License-Identifier: Apache-2.0
"""The record of the conformance runs: which runs take whose place, and what is told of them."""

from dataclasses import replace
from pathlib import Path

from segproof.findings import Finding
from segproof_harness.conformance.release_histories import (
    Conformance,
    added_left_out,
    merged,
    merged_into,
    read_record,
    unused_seed,
)
from segproof_harness.histories.replay import comparison, replay_seeds, run_seed
from segproof_harness.histories.workloads import choose_for, make_history
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.releases import release_named

USED = Conformance("rocketmq-5.5.1", "index-service", 0, 700, 100)
FRESH = Conformance("rocketmq-5.5.1", "index-service", 100_000, 20, 100, is_fresh=True)


def test_fresh_runs_stay(tmp_path: Path) -> None:
    """A run of seeds that were mended by is replaced; a fresh one stays beside it and the next."""
    path = tmp_path / "record.jsonl"
    found = replace(FRESH, divergences=1, reproduce=("segproof replay",))
    for run in (USED, found, replace(USED, histories=900), replace(FRESH, first_seed=200_000)):
        merged_into(path, [run])
    kept = [(row.first_seed, row.histories, row.divergences) for row in read_record(path)]
    assert [(0, 900, 0), (100_000, 20, 1), (200_000, 20, 0)] == kept


def test_fresh_seeds_lie_behind_all_of_the_record(tmp_path: Path) -> None:
    """They begin at the next hundred thousand; of no record, at 0."""
    path = tmp_path / "record.jsonl"
    assert 0 == unused_seed(path)
    merged_into(path, [USED])
    assert 100_000 == unused_seed(path)
    merged_into(path, [FRESH])
    assert 200_000 == unused_seed(path)


def test_steps_left_out_are_added_up(tmp_path: Path) -> None:
    """Those of all pieces of a run; an operation that was always asked is not told."""
    path = tmp_path / "record.jsonl"
    one = replace(FRESH, left_out={"load": (0, 7), "build_index": (2, 9), "flush": (0, 3)})
    two = replace(FRESH, first_seed=100_020, left_out={"build_index": (1, 5), "flush": (1, 4)})
    merged_into(path, [one, two])
    (row,) = read_record(path)
    assert {"build_index": (3, 14), "flush": (1, 7)} == row.left_out
    assert row.left_out == added_left_out(read_record(path))
    assert [row.histories] == [run.histories for run in merged([one, two])]


def test_steps_that_a_release_is_not_asked_are_counted() -> None:
    """What is drawn and left out makes up for what a history is shorter."""
    counted = comparison("index-service", "rocketmq-5.5.1", ("model",)).counters.left_out
    made = make_history(
        "index-service", "rocketmq-5.5.1", 3, 60, releases=("rocketmq-5.5.1",), left_out=counted
    )
    assert 60 == len(made.operations) + sum(counted.values())
    assert counted["build_index"] > 0


def test_a_finding_is_told_at_once_and_of_the_first_step_that_differs() -> None:
    """The run that finds it compares files at some steps only, and so met it later."""
    subjects = ("model:segproof", "model:kafka-4.3.1")
    late = run_seed(comparison("offset-index", "segproof", subjects), 8, 30)
    assert late is not None
    trace = make_history("offset-index", "segproof", 8, 30)
    exact = comparison("offset-index", "segproof", subjects, image_every=1).run(trace)
    assert exact is not None
    assert exact.step < late.step
    told: list[Finding] = []
    result = replay_seeds("offset-index", "segproof", [8], 30, subjects, told=told.append)
    assert [exact.message()] == [finding.message for finding in told]
    assert told == result.findings


def test_a_deleted_segment_takes_no_name_of_another_file() -> None:
    """A real segment whose renaming fails has its new name, and tells the time of what has it: that
    is in no state, and not asked."""
    structure = structure_named("log-segment")
    release = "kafka-4.3.1"
    model = ModelSubject(structure, release_named(release))
    opening = structure.draw_setup(choose_for("log-segment", 1, [model.release])).arguments
    opening = {**opening, "file_already_exists": False, "file_suffix": "", "damage": ()}
    assert model.start(Setup(opening)).error is None
    asked = []
    for operation in (
        Operation("change_file_suffixes", {"old_suffix": "", "new_suffix": ".swap"}),
        Operation("reopen", opening),
        Operation("delete_if_exists"),
        Operation("change_file_suffixes", {"old_suffix": "", "new_suffix": ".swap"}),
    ):
        model.apply(operation)
        assert model.event is not None
        asked.append(structure.is_asked(model.event))
    assert [True, True, True, False] == asked
