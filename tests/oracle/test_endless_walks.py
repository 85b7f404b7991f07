# SPDX-License-Identifier: Apache-2.0
"""Walks of the real index file and index service that do not end."""

import os
import resource
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from segproof_harness.histories.replay import replay_seeds
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.histories.workloads import make_history
from segproof_harness.releases.process import process_for
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.releases import release_named

RELEASE = "rocketmq-5.5.1"
LENGTH = 100
DESCRIPTORS = 300
"""How many more files the child may open where they are few; it makes one file with each."""

pytestmark = pytest.mark.needs("java", "jpype", RELEASE)


def _setups() -> Iterator[tuple[str, Setup, list[Operation]]]:
    """Yield an index file whose chain is a circle, and a service that fills files of no room."""
    name = "20231114221320123"
    opened: dict[str, Value] = {
        "file_name": name,
        "geometry": (1, 4),
        "end_phy_offset": 0,
        "end_timestamp": 0,
        "now_ms": 1_700_000_000_123,
        "damage": (),
    }
    numbers = (1, 3, 2, 0, 0, 0, 0, 0)  # slots used, count, the slot, and entry 0
    image = bytes(32) + b"".join(number.to_bytes(4, "big") for number in numbers)
    for previous in (2, 1):
        image += (7).to_bytes(4, "big") + bytes(12) + previous.to_bytes(4, "big")
    window: dict[str, Value] = {"max_num": 5, "begin": 0, "end": 10}
    walk = Operation("select_phy_offset", {"phy_offsets": (), "key": "another", **window})
    file = Setup(opened, {name: image + bytes(20)})
    yield "index-file", file, [Operation("load", {}), walk]
    request = ("T", "k", None, 100, 1_700_000_000_123, 0, None)
    service = Setup({"geometry": (4, 1), "now_ms": 1_700_000_000_123, "damage": ()})
    yield "index-service", service, [Operation("build_index", {"request": request})]


@pytest.mark.parametrize(
    ("structure", "setup", "operations"), list(_setups()), ids=["index-file", "index-service"]
)
def test_what_never_ends(
    structure: str,
    setup: Setup,
    operations: list[Operation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the model says `endless`, the class gives no answer within its time."""
    assert replay_seeds(structure, RELEASE, [0], 1, ("model", RELEASE)).findings == []
    # The classes are loaded. Any limit shows it now, and the walk takes a core all the time.
    monkeypatch.setattr("segproof_harness.releases.release_subject.STEP_SECONDS", 1.5)
    described = structure_named(structure)
    guide = ModelSubject(described, release_named(RELEASE))
    real = subject_named(RELEASE, described)
    answers = [(guide.start(setup), real.start(setup))]
    answers += [(guide.apply(operation), real.apply(operation)) for operation in operations]
    assert all(expected == actual for expected, actual in answers)
    assert answers[-1] == (Outcome(error="endless"), Outcome(error="endless"))
    real.stop()
    process_for(RELEASE).end()


def test_few_descriptors_end_no_endless_walk(not_run: Callable[[str], NoReturn]) -> None:
    """A class that makes files until it may open no more gives no answer, however soon it does."""
    limit = getattr(resource, "prlimit", None)
    if limit is None:
        not_run("only Linux limits another process")
    _, (structure, setup, operations) = _setups()
    real = subject_named(RELEASE, structure_named(structure))
    process = process_for(RELEASE)
    assert real.start(setup).error is None
    assert process._process is not None
    child = process._process.pid
    most = len(os.listdir(f"/proc/{child}/fd")) + DESCRIPTORS
    limit(child, resource.RLIMIT_NOFILE, (most, most))
    assert [real.apply(operation) for operation in operations] == [Outcome(error="endless")]
    real.stop()
    process.end()


@pytest.mark.parametrize("structure", ["index-file", "index-service"])
def test_no_endless_step_is_drawn(structure: str) -> None:
    """Histories for a release leave out what its JVM would never end."""
    release = release_named(RELEASE)
    for seed in range(30):
        history = make_history(structure, RELEASE, seed, LENGTH, releases=(RELEASE,))
        guide = ModelSubject(structure_named(structure), release)
        guide.start(history.setup)
        errors = [guide.apply(operation).error for operation in history.operations]
        assert "endless" not in errors
