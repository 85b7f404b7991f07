# SPDX-License-Identifier: Apache-2.0
"""Each behaviour that a history shows is true: the real classes on both sides say so."""

from pathlib import Path

import pytest

from segproof_harness.conformance.distinguishing_histories import (
    Distinction,
    flipped,
    read_distinctions,
    steps,
)
from segproof_harness.histories.compare import Comparison
from segproof_harness.histories.replay import comparison
from segproof_harness.histories.traces import read_trace
from segproof_harness.structures.structure import structure_named

TRACES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "traces"
STEPS = {step.name: step for step in steps()}
SHOWN = [row for row in read_distinctions(TRACES / "record.jsonl") if row.structure is not None]


def _path(row: Distinction) -> Path:
    return TRACES / STEPS[row.behaviour].file_name


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.behaviour)
def test_the_behaviour_alone_moves_the_answer(row: Distinction) -> None:
    """Without it the release answers otherwise."""
    trace, step = read_trace(_path(row)), STEPS[row.behaviour]
    structure = structure_named(trace.structure_id)
    other = flipped(step, structure)
    assert Comparison(structure, step.older.name, [other], image_every=1).run(trace) is not None


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.behaviour)
def test_the_releases_confirm_it(row: Distinction) -> None:
    """The record says that an older and a newer release did, and that none did not."""
    assert row.confirmed
    assert not row.refuted


@pytest.mark.needs("java", "jpype")
@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("row", "release"),
    [
        pytest.param(row, name, id=f"{row.behaviour}-{name}")
        for row in SHOWN
        for name in row.confirmed
    ],
)
def test_the_releases_say_so(row: Distinction, release: str) -> None:
    """The real classes of the older and of the newer release answer as their models."""
    trace = read_trace(_path(row))
    real = comparison(trace.structure_id, release, ("model", release), image_every=1)
    assert real.run(trace) is None


def test_no_behaviour_is_missing() -> None:
    """The record has a row for each behaviour of older releases, and no other."""
    recorded = {row.behaviour for row in read_distinctions(TRACES / "record.jsonl")}
    assert recorded == set(STEPS)
