# SPDX-License-Identifier: Apache-2.0
"""Weights decide which operations are drawn; counters say what each of them compared."""

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from segproof_harness import cli
from segproof_harness.canaries.every_canary import CANARIES
from segproof_harness.histories.compare import Counters
from segproof_harness.histories.replay import comparison, replay_seeds, run_seed, seed_command
from segproof_harness.histories.workloads import (
    WEIGHT_MAX,
    check_weights,
    make_history,
    weights_for,
)
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

OPENERS = {"reopen", "crash_reopen"}
ONLY = {"others": 0, "append": 9, "lookup": 1}


def names_of(structure_id: str, weights: dict[str, int], length: int = 200) -> list[str]:
    """Return the operations of one history."""
    trace = make_history(structure_id, "segproof", 1, length, weights)
    return [operation.name for operation in trace.operations]


def test_only_what_has_weight_is_drawn() -> None:
    """About as often as the weights say; nothing closes here, so nothing has to be opened."""
    names = names_of("offset-index", ONLY)
    assert {"append", "lookup"} == set(names)
    assert 5 < names.count("append") / names.count("lookup") < 16


def test_others_are_drawn_as_often_as_usual() -> None:
    """A weight of one operation leaves the others alone."""
    usual = names_of("offset-index", {})
    names = names_of("offset-index", {"append": 0})
    assert "append" in usual
    assert "append" not in names
    assert len(set(names)) > 8


def test_what_is_closed_is_opened_whatever_the_weights() -> None:
    """A history that could only close would compare nothing else."""
    names = names_of("time-index", {"others": 0, "close": 1})
    assert OPENERS <= set(names) <= OPENERS | {"close"}


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_the_usual_weights_draw_the_usual_history(structure_id: str) -> None:
    """Weights as they are already do not move a seed, nor does having none."""
    kinds = structure_named(structure_id).by_name()
    usual = {name: kind.weight for name, kind in kinds.items()}
    expected = make_history(structure_id, "segproof", 5, 30)
    assert expected == make_history(structure_id, "segproof", 5, 30, usual)
    assert expected == make_history(structure_id, "segproof", 5, 30, {})


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"appendo": 1}, "offset-index has no operation 'appendo'"),
        ({"append": -1}, "the weight of append must be from 0 to"),
        ({"append": WEIGHT_MAX + 1}, "the weight of append must be from 0 to"),
        ({"others": 0}, "with these weights no operation of offset-index is drawn"),
    ],
)
def test_weights_that_say_nothing_are_refused(weights: dict[str, int], words: str) -> None:
    """An unknown operation, a number out of range, nothing left to draw."""
    with pytest.raises(ValueError, match=words):
        check_weights(structure_named("offset-index"), weights)
    with pytest.raises(ValueError, match=words):
        make_history("offset-index", "segproof", 0, 10, weights)


def test_each_structure_takes_its_own() -> None:
    """`--structure all` has operations that one structure has and another has not."""
    given = {"append": 1, "maybe_append": 2, "others": 3}
    assert {"append": 1, "others": 3} == weights_for(structure_named("offset-index"), given)
    assert {"maybe_append": 2, "others": 3} == weights_for(structure_named("time-index"), given)


@pytest.mark.parametrize(
    "weights", ["appendo=1", "append", "append=x", "append=1,append=2", "=1", "", "append=-1"]
)
def test_the_command_line_refuses_them_too(weights: str) -> None:
    """One line and exit 2."""
    wrong = ["replay", "--structure", "offset-index", "--weights", weights]
    done = CliRunner().invoke(cli.build_app(), wrong)
    assert 2 == done.exit_code
    assert "segproof: --weights: " in done.stderr


def test_nothing_left_of_one_structure_of_all_is_refused() -> None:
    """Of all structures: none has another operation than append."""
    wrong = ["replay", "--weights", "others=0,append=1"]
    done = CliRunner().invoke(cli.build_app(), wrong)
    assert 2 == done.exit_code
    assert "no operation of time-index is drawn" in done.stderr


def test_the_command_of_a_finding_draws_the_same(tmp_path: Path) -> None:
    """The line that shows a divergence of weighted histories again has the weights."""
    canary = CANARIES["K-14"]
    subjects = ("model", canary.subject_name)
    found = replay_seeds("offset-index", "segproof", range(200), 30, subjects, weights=ONLY)
    assert found.findings
    line = found.findings[0].reproduce
    assert "--weights others=0,append=9,lookup=1 " in line
    command = [*shlex.split(line)[1:], "--traces", str(tmp_path)]
    again = CliRunner().invoke(cli.build_app(), command)
    assert 1 == again.exit_code
    assert "1 divergence" in again.stderr
    assert "--weights" not in seed_command("offset-index", "segproof", 0, 30, subjects)


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_what_operations_compared_adds_up(structure_id: str) -> None:
    """The figures by operation are the figures of the whole."""
    comparing = comparison(structure_id, "segproof", ("model", "impl"))
    for seed in range(10):
        assert run_seed(comparing, seed, 43) is None
    counted = comparing.counters
    by_operation = counted.by_operation
    assert 10 == by_operation["open"].histories == by_operation["open"].operations
    assert counted.operations + 10 == sum(one.operations for one in by_operation.values())
    assert counted.answers_compared == sum(one.answers_compared for one in by_operation.values())
    assert all(0 < one.histories <= min(10, one.operations) for one in by_operation.values())
    assert all(one.seconds > 0 and one.findings == 0 for one in by_operation.values())


def test_a_divergence_is_counted_where_it_came() -> None:
    """A finding belongs to the operation whose answer, accessor or bytes differ."""
    canary = CANARIES["K-14"]
    comparing = comparison("offset-index", "segproof", ("model", canary.subject_name))
    found = [one for seed in range(200) if (one := run_seed(comparing, seed, 30)) is not None]
    assert found
    counted = {name: one.findings for name, one in comparing.counters.by_operation.items()}
    assert len(found) == sum(counted.values())
    for one in found:
        assert counted[one.operation.name] > 0


def test_counters_are_taken_history_by_history() -> None:
    """What was taken adds up to what one run counts, and nothing is counted twice."""
    whole = replay_seeds("time-index", "segproof", range(5), 30).counters
    comparing = comparison("time-index", "segproof", ("model", "impl"))
    total = Counters()
    for seed in range(5):
        assert run_seed(comparing, seed, 30) is None
        total.add(comparing.take_counters())
    assert Counters() == comparing.counters
    for one in (*whole.by_operation.values(), *total.by_operation.values()):
        one.seconds = 0.0
    assert whole.to_json() == total.to_json()
