# SPDX-License-Identifier: Apache-2.0
"""Every corruption of a real file is reported with its law, and no file is touched."""

from pathlib import Path

import pytest

from segproof.verification import verify
from segproof_tests.corruptions import CORRUPTIONS, Corruption
from segproof_tests.reported_findings import check_shown_again, state_of


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda one: one.name)
def test_corruption_is_reported(corruption: Corruption, tmp_path: Path) -> None:
    """The finding names law and file, says what to do, and its command shows it again."""
    directory = corruption.make(tmp_path)
    before = state_of(directory)
    findings = list(verify(directory, deep=corruption.needs_deep))
    assert before == state_of(directory)
    named = [
        finding
        for finding in findings
        if finding.law == corruption.law and Path(finding.path).name == corruption.file
    ]
    assert named, [str(finding) for finding in findings]
    assert all(finding.is_defect for finding in named)
    check_shown_again(named)


@pytest.mark.parametrize(
    "corruption", [one for one in CORRUPTIONS if one.needs_deep], ids=lambda one: one.name
)
def test_a_shallow_run_is_silent_about_deep_damage(corruption: Corruption, tmp_path: Path) -> None:
    """What no run but a deep one finds, for which the records are read."""
    findings = verify(corruption.make(tmp_path))
    assert corruption.law not in {one.law for one in findings if one.is_defect}


def test_there_are_enough() -> None:
    """There are more than twenty corruptions, with unique names, of every kind of file."""
    names = [one.name for one in CORRUPTIONS]
    assert len(names) == len(set(names))
    assert len(names) > 20
    kinds = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata"}
    assert kinds <= {Path(one.file).suffix for one in CORRUPTIONS}
