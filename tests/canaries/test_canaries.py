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


@pytest.mark.parametrize("canary", CANARIES.values(), ids=lambda canary: canary.canary_id)
def test_is_caught(canary: Canary, tmp_path: Path) -> None:
    """A bounded number of histories finds it; what was saved finds it too, and clears our code."""
    subjects = ("model", canary.subject_name)
    result = replay_seeds(
        canary.structure_id,
        "segproof",
        range(HISTORIES_MAX),
        subjects=subjects,
        findings_max=1,
        traces=tmp_path,
    )
    assert 1 == len(result.findings), f"{canary.canary_id} got away: {canary.defect}"
    (saved,) = tmp_path.iterdir()
    assert [found.law for found in result.findings] == [
        found.law for found in replay_trace(saved, subjects).findings
    ]
    assert [] == replay_trace(saved).findings


@pytest.mark.parametrize("canary", CANARIES.values(), ids=lambda canary: canary.canary_id)
def test_reproducer_is_a_command(
    canary: Canary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed line, given to the command line as it is, exits 1 and names the law."""
    result = replay_seeds(
        canary.structure_id,
        "segproof",
        range(HISTORIES_MAX),
        subjects=("model", canary.subject_name),
        findings_max=1,
        traces=tmp_path,
    )
    (finding,) = result.findings
    program, *arguments = shlex.split(finding.reproduce)
    assert "segproof" == program
    assert 1 == run(arguments)
    assert finding.law in capsys.readouterr().out


def test_every_structure_has_canaries() -> None:
    """There is a planted defect for each structure; laws are known."""
    assert set(STRUCTURE_IDS) == {canary.structure_id for canary in CANARIES.values()}
    assert {law for canary in CANARIES.values() for law in canary.laws} <= set(LAWS)
