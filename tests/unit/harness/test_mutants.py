# SPDX-License-Identifier: Apache-2.0
"""The run over drawn mutants: a small part of it, and that it can fail."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof_harness import cli, mutants
from segproof_harness.mutants import check, sources

SEED = 20261123
PARTITIONS = [path for path in sources() if path.name != "store"]


def test_a_part_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """No verb ends badly on a mutant, changes it, or answers otherwise without a finding.

    More of them: `python -m segproof_harness.mutants`.
    """
    failures = [one for number in range(20) for one in check(SEED, number, PARTITIONS)]
    assert [] == failures, f"seed {SEED}"


def _ends_badly(arguments: list[str]) -> int:
    return 3


def _cuts_a_file(arguments: list[str]) -> int:
    if arguments[0] == "dump":
        next(path for path in Path(arguments[1]).rglob("*") if path.is_file()).unlink()
    return 0


@pytest.mark.parametrize(
    ("run", "expected"), [(_ends_badly, "exit 3"), (_cuts_a_file, "the input was changed")]
)
def test_what_a_verb_must_not_do_is_told(
    run: Callable[[list[str]], int], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An internal error is a failure, and so is a changed input."""
    monkeypatch.setattr(cli, "run", run)
    found = [one.what for number in range(3) for one in check(SEED, number, PARTITIONS)]
    assert any(expected in what for what in found)


def test_an_answer_that_changes_in_silence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `verify` found nothing, damaged indexes and logs would change answers unseen."""
    monkeypatch.setattr(mutants, "verify", lambda *_, **__: ())
    monkeypatch.setattr(cli, "run", lambda _: 0)
    found = [one.what for number in range(30) for one in check(SEED, number, PARTITIONS)]
    assert any("nothing is found" in what for what in found)


def _dies_at_two(seed: int, number: int, healthy: Any) -> list[Any]:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return []


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal is a failure of the mutant that was looked at, and of no other."""
    monkeypatch.setattr(mutants, "check", _dies_at_two)
    found = dict(mutants.run(SEED, range(5), [], jobs=2, method="fork"))
    assert {0, 1, 2, 3, 4} == set(found)
    assert [2] == [number for number, failures in found.items() if failures]
    assert f"{-signal.SIGKILL}" in found[2][0].what
