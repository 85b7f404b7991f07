# SPDX-License-Identifier: Apache-2.0
"""Replays: clean on our own code, complete in the states they reach, honest about divergences."""

import json
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from segproof_harness.histories import workloads
from segproof_harness.histories.compare import Divergence
from segproof_harness.histories.replay import (
    comparison,
    replay_seed,
    replay_seeds,
    replay_trace,
    run_seed,
)
from segproof_harness.histories.shrink import shrink, simpler_values
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.histories.traces import Trace, read_trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

HISTORIES, HISTORIES_MAX = 5, 240
"""So many are run, and again so many, until every state is reached."""
FIRST_SEEDS = {"partition-log": 180, "log-segment": 160}
"""From here on few histories reach every state of these; the others begin at 0."""
ENDLESS = Path(__file__).parents[2] / "oracle" / "endless" / "load_splits_for_ever.jsonl"
MIDPOINT = "segproof_harness.canaries.indexes:K04OffsetIndex"


@pytest.mark.slow
@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_clean_and_complete(structure_id: str) -> None:
    """Model and implementation agree, and every `sometimes` state is really reached."""
    wanted = set(structure_named(structure_id).sometimes)
    reached: set[str] = set()
    start = FIRST_SEEDS.get(structure_id, 0)
    for first in range(start, start + HISTORIES_MAX, HISTORIES):
        result = replay_seeds(structure_id, "segproof", range(first, first + HISTORIES))
        assert [] == [finding.message for finding in result.findings]
        assert HISTORIES == result.counters.histories
        assert 50 * HISTORIES == result.counters.operations
        assert result.counters.answers_compared >= result.counters.operations
        assert result.counters.images_compared >= 6 * HISTORIES
        reached |= {name for name, count in result.counters.sometimes.items() if count}
        if reached == wanted:
            return
    assert wanted == reached


@pytest.mark.slow
@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_real_files_are_the_same(structure_id: str) -> None:
    """On files of the operating system the implementation answers as on those in memory."""
    result = replay_seeds(
        structure_id, "segproof", range(10), subjects=("model", "impl:real-files")
    )
    assert [] == [finding.message for finding in result.findings]


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_drawing_and_running_at_once_is_the_same_history(structure_id: str) -> None:
    """`make_history` makes what `run_seed` runs."""
    comparing = comparison(structure_id, "segproof", ("model", "impl"))
    for seed in range(5):
        trace = make_history(structure_id, "segproof", seed, 25)
        assert comparing.run(trace) is None
        after = comparing.guide.image()
        assert run_seed(comparing, seed, 25) is None
        assert after == comparing.guide.image()


def test_no_release_is_asked_an_opening_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its setup is drawn again; a history without releases may have it."""
    endless = read_trace(ENDLESS).setup
    structure = structure_named("partition-log")
    drawn = cycle([lambda choose: endless, structure.draw_setup])
    changed = replace(structure, draw_setup=lambda choose: next(drawn)(choose))
    monkeypatch.setattr(workloads, "structure_named", lambda structure_id: changed)
    asked = make_history("partition-log", "kafka-2.2.2", 0, 5, releases=("kafka-2.2.2",))
    assert endless != asked.setup
    assert endless == make_history("partition-log", "kafka-2.2.2", 0, 5).setup


@pytest.mark.parametrize(
    ("structure_id", "profile_name"),
    [("offset-index", "rocketmq-5.5.1"), ("index-file", "kafka-4.3.1")],
)
def test_a_release_of_another_system_is_refused(
    structure_id: str, profile_name: str, tmp_path: Path
) -> None:
    """By seed, as a subject, and in a trace: each says which profiles there are."""
    structure = structure_named(structure_id)
    words = f"{structure_id} is a structure of {structure.system} and has no profile"
    with pytest.raises(ValueError, match=words):
        replay_seed(structure_id, profile_name, 0)
    with pytest.raises(ValueError, match=words):
        subject_named(f"model:{profile_name}", structure)
    with pytest.raises(ValueError, match=words):
        make_history(structure_id, profile_name, 0, 1)
    saved = tmp_path / "trace.jsonl"
    replace(make_history(structure_id, "segproof", 0, 1), profile_name=profile_name).write(saved)
    with pytest.raises(ValueError, match=f"line 1: {words}"):
        read_trace(saved)
    assert structure.newest_release in structure.profile_names


@pytest.mark.slow
def test_impl_is_held_to_its_own_profile() -> None:
    """Histories drawn under a release still compare the implementation with `segproof`."""
    result = replay_seeds("offset-index", "kafka-1.1.1", range(50))
    assert [] == [finding.message for finding in result.findings]


def test_explicit_model_is_the_reference() -> None:
    """With `model:RELEASE` in the first place, all others are compared with that release."""
    subjects = ("model:kafka-4.3.1", "impl")
    result = replay_seeds("time-index", "segproof", range(50), subjects=subjects)
    assert result.findings


def test_divergence_is_shrunk_saved_and_replayed(tmp_path: Path) -> None:
    """A finding names its law and one command; the trace it saved diverges again, and not on us."""
    subjects = ("model", MIDPOINT)
    result = replay_seeds(
        "offset-index", "segproof", range(20), subjects=subjects, findings_max=1, traces=tmp_path
    )
    (finding,) = result.findings
    (saved,) = tmp_path.iterdir()
    assert "OFFIDX-11" == finding.law
    assert f"segproof replay {saved} --subjects model,{MIDPOINT}" == finding.reproduce
    assert len(read_trace(saved).operations) <= 10
    assert [finding] == replay_trace(saved, subjects).findings
    assert [] == replay_trace(saved).findings
    assert json.loads(json.dumps(finding.to_json()))["law"] == "OFFIDX-11"


def test_divergence_without_a_trace_names_its_seed() -> None:
    """Where nothing is saved (on Spark), the command replays the seed."""
    subjects = ("model", MIDPOINT)
    result = replay_seed("offset-index", "segproof", 0, 50, subjects)
    (finding,) = result.findings
    assert (
        "segproof replay --structure offset-index --profile segproof --seed 0 --length 50 "
        f"--count 1 --subjects model,{MIDPOINT}" == finding.reproduce
    )


def test_shrinking_keeps_the_divergence() -> None:
    """The shrunk history is as short as the defect allows, and its arguments are small."""
    trace = make_history("offset-index", "segproof", 3, 50)
    runs = 0

    def run(candidate: Trace) -> Divergence | None:
        nonlocal runs
        runs += 1
        for step, operation in enumerate(candidate.operations, 1):
            if operation.name == "append":
                return Divergence("x", step, operation, "OFFIDX-8", "answer", None, None)
        return None

    small = shrink(trace, run)
    origin = trace.setup.arguments["base_offset"]
    (operation,) = small.operations
    assert operation.name == "append"
    assert operation.arguments["offset"] in (0, origin)
    assert 0 == operation.arguments["position"]
    assert runs < 500


def test_shrinking_respects_its_budget() -> None:
    """However much there is to try, no more runs are made than allowed."""
    trace = make_history("offset-index", "segproof", 3, 50)
    runs = 0

    def run(candidate: Trace) -> Divergence | None:
        nonlocal runs
        runs += 1
        if len(candidate.operations) < 50:
            return None
        return Divergence("x", 50, Operation("flush"), "ABSIDX-5", "answer", None, None)

    shrink(trace, run, runs=10)
    assert 10 == runs


def test_simpler_values_are_simpler() -> None:
    """Candidates end at the origin, and never repeat the value itself."""
    for value in (0, 1, -5, 2**40, True, False, b"abc", (1, 2, 3), None, "name"):
        assert value not in [item for item in simpler_values(value, 100) if item is not False]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("modle", "no subject 'modle'"),
        ("model:kafka-9", "no such profile"),
        ("no.such.module:Class", "can't be imported"),
        ("segproof.errors:Nothing", "the module has no 'Nothing'"),
        ("segproof.errors:SegproofError@moon", "only 'real-files' is known"),
        (":", "is no `package.module:Class`"),
    ],
)
def test_wrong_subjects_are_refused(name: str, words: str) -> None:
    """A name that is no subject is refused with what is wrong."""
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        subject_named(name, structure_named("offset-index"))


@pytest.mark.parametrize(
    "name", ["model", "model:kafka-2.4.1", "impl", "impl:real-files", MIDPOINT]
)
def test_subjects_say_what_they_are(name: str) -> None:
    """Each subject keeps its name, and describes itself."""
    subject = subject_named(name, structure_named("offset-index"))
    assert name == subject.name
    assert subject.describe()
