# SPDX-License-Identifier: Apache-2.0
"""Every real directory that the project carries is healthy: no error, no warning."""

from pathlib import Path

import pytest

from segproof.findings import Severity
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA

DATA = KAFKA
SCENARIOS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
UNTRIMMED = frozenset({"plain", "unclean-before", "v1-gzip"})
"""Their last segments have preallocated indexes, which a note says."""


def test_the_carried_directories_are_there() -> None:
    """The five directories that are promised are carried."""
    assert {"plain", "txn-a", "v1-gzip", "compacted", "unclean-before"} <= set(SCENARIOS)


@pytest.mark.parametrize("deep", [False, True], ids=["shallow", "deep"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_verifies_clean(scenario: str, deep: bool) -> None:
    """A healthy directory, its folder and each of its files have no defect."""
    assert [] == [str(one) for one in verify(DATA / scenario, deep=deep) if one.is_defect]
    files = sorted(DATA.glob(f"{scenario}/*-0/*"))
    assert any(path.suffix == ".log" for path in files)
    for path in files:
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            assert [] == [str(one) for one in verify(path, deep=deep) if one.is_defect]


@pytest.mark.parametrize("scenario", sorted(UNTRIMMED))
def test_preallocated_tails_are_notes(scenario: str) -> None:
    """A zero tail of the last segment is a note on each of its two indexes."""
    tails = [one for one in verify(DATA / scenario) if one.law == "DISK-6"]
    assert [Severity.NOTE] * 2 == [one.severity for one in tails]
    assert [".index", ".timeindex"] == [Path(one.path).suffix for one in tails]


@pytest.mark.usefixtures("processes_for_little")
def test_processes_find_the_same_in_the_same_order() -> None:
    """Two processes report what one does, in its order."""
    assert list(verify(DATA)) == list(verify(DATA, jobs=2))
