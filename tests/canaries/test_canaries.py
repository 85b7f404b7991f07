# SPDX-License-Identifier: Apache-2.0
"""Planted defects: each is caught by replay, and its one-line reproducer shows it again."""

import shlex
from pathlib import Path

import pytest

from segproof_harness.canaries.every_canary import CANARIES
from segproof_harness.canaries.register import Canary
from segproof_harness.cli import run
from segproof_harness.histories.replay import replay_seeds, replay_trace
from segproof_harness.laws.every_law import LAWS
from segproof_harness.structures.structure import STRUCTURE_IDS

HISTORIES_MAX = 800
FIRST = {
    "K-03": 13, "K-16": 21, "K-17": 1, "K-24": 14, "K-26": 203, "K-33b": 4, "K-34": 22, "K-35": 29,
    "K-39": 71, "K-40a": 91, "K-42a": 24, "R-03": 26, "R-16": 114, "R-25": 26, "R-31": 1,
    "R-33": 275, "R-36": 2, "R-39": 10, "R-44": 4,
}  # fmt: skip
"""The first seed that is tried, where it is not 0: those below it show nothing, or what they show
takes long to shrink. If it shows nothing any more, those above it are tried."""


@pytest.mark.parametrize("canary", CANARIES.values(), ids=lambda canary: canary.canary_id)
def test_is_caught(canary: Canary, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bounded number of histories finds it. What was saved finds it too, and clears our code; so
    does the printed line, given to the command line as it is."""
    subjects = ("model", canary.subject_name)
    result = replay_seeds(
        canary.structure_id,
        "segproof",
        range(FIRST.get(canary.canary_id, 0), HISTORIES_MAX),
        subjects=subjects,
        findings_max=1,
        traces=tmp_path,
    )
    assert 1 == len(result.findings), f"{canary.canary_id} got away: {canary.defect}"
    (finding,) = result.findings
    (saved,) = tmp_path.iterdir()
    assert [finding.law] == [found.law for found in replay_trace(saved, subjects).findings]
    assert [] == replay_trace(saved).findings
    program, *arguments = shlex.split(finding.reproduce)
    assert "segproof" == program
    assert 1 == run(arguments)
    assert finding.law in capsys.readouterr().out


def test_every_structure_has_canaries() -> None:
    """There is a planted defect for each structure; laws are known."""
    assert set(STRUCTURE_IDS) == {canary.structure_id for canary in CANARIES.values()}
    assert {law for canary in CANARIES.values() for law in canary.laws} <= set(LAWS)
