# SPDX-License-Identifier: Apache-2.0
"""What random histories find of a planted defect."""

import pytest

from segproof.findings import Finding
from segproof_harness.histories.replay import replay_seeds
from segproof_model.language.behaviours import Behaviour
from segproof_model.releases import RELEASES


def first_finding(
    structure: str, release: str, seeds: int, length: int, *subjects: str
) -> Finding | None:
    """Return the first finding on the histories of seeds 0 to `seeds`, exclusive, if any."""
    result = replay_seeds(structure, release, range(seeds), length, subjects, findings_max=1)
    return result.findings[0] if result.findings else None


def flip(monkeypatch: pytest.MonkeyPatch, release: str, behaviour: type[Behaviour]) -> None:
    """Let the model of a release have a behaviour that it has not, or lack one that it has."""
    monkeypatch.setitem(RELEASES, release, RELEASES[release].flipped(behaviour))
