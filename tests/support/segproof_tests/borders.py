# SPDX-License-Identifier: Apache-2.0
"""Checks both sides of a border: `verify` reports the law on the unlawful one only."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.verification import verify
from segproof_harness.laws.borders.border import DIRECTORY, STORE, Border, Due, Files, write_files
from segproof_harness.laws.borders.store_files import SLOTS
from segproof_harness.laws.judge import Judge
from segproof_harness.laws.judged_directory import DirectoryJudge
from segproof_harness.laws.judged_store import StoreJudge
from segproof_harness.laws.reading_laws import READING_LAWS

__all__ = ["border_test", "check_border", "laws_of"]


def border_test(borders: Sequence[Border]) -> Callable[[Border, Path], None]:
    """Return the test of a table of borders."""

    @pytest.mark.parametrize("border", borders, ids=lambda one: f"{one.law}: {one.bound}")
    def test_the_border(border: Border, tmp_path: Path) -> None:
        """The law is reported on the unlawful side only, with the byte and both values."""
        check_border(border, tmp_path)

    return test_the_border


def check_border(border: Border, folder: Path) -> None:
    """Check the findings of the law on both sides, and the model's predicate."""
    for side, files, dues in (
        ("lawful", border.lawful, border.still),
        ("unlawful", border.unlawful, border.due),
    ):
        directory = folder / side / border.folder
        write_files(files, directory)
        found = verify(directory / border.below, deep=border.deep, **border.options)
        own = [_as_due(one, directory) for one in found if one.law == border.law]
        due = [_in_words(one, directory) for one in border.dues(dues)]
        assert due == own, f"the {side} side: due is {due}, and verify reports {own}"
        if not border.not_by_the_model:
            _check_by_the_model(border, files, is_broken=bool(border.dues(dues)))


def _in_words(due: Due, directory: Path) -> tuple[str, int | None, str | None, str | None, str]:
    expected, actual = (
        None if value is None else str(value).replace(DIRECTORY, os.fspath(directory))
        for value in (due.expected, due.actual)
    )
    return due.file, due.position, expected, actual, due.severity.value


def _as_due(
    finding: Finding, directory: Path
) -> tuple[str, int | None, str | None, str | None, str]:
    file = os.path.relpath(finding.path, directory)
    return (
        "" if file == "." else file,
        finding.position,
        finding.expected,
        finding.actual,
        finding.severity.value,
    )


def _check_by_the_model(border: Border, files: Files, *, is_broken: bool) -> None:
    """Ask the model's predicate; what stands for a law about reading may be broken by another."""
    images = {name: data for name, data in files.items() if isinstance(data, bytes)}
    judge: Judge
    if border.folder == STORE:
        judge = StoreJudge(images, SLOTS)
    else:
        judge = DirectoryJudge(images)
    if judge.judges(border.law) and (is_broken or border.law not in READING_LAWS):
        assert is_broken == judge.breaks(border.law), "the model says otherwise"


def laws_of(*tables: Sequence[Border]) -> set[str]:
    """Return the laws that have a border in some tables."""
    return {border.law for table in tables for border in table}
