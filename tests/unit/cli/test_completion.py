# SPDX-License-Identifier: Apache-2.0
"""What a shell offers when the user presses Tab."""

import subprocess
import sys
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.cli.common import EXIT_INTERNAL_ERROR
from segproof_harness.cli.completion import VARIABLE, Shell
from segproof_tests.printed_rows import Capsys


def offered(monkeypatch: pytest.MonkeyPatch, capsys: Capsys, *words: str) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    monkeypatch.setenv(VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["segproof", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert 0 == cli.run([])
    shown = capsys.readouterr()
    assert "" == shown.err
    return shown.out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("salv",), ["salvage"]),
        (("verify", "--law", "OFFIDX-"), ["OFFIDX-1", "OFFIDX-2"]),
        (("verify", "--law", "offidx-2"), ["offidx-2"]),
        (("verify", "--format", "s"), ["sarif"]),
        (("verify", "--hash"), ["--hash-slots"]),
        (("explain", "kafka-2.8"), ["kafka-2.8.2"]),
        (("explain", "SecondClose"), ["SecondCloseFails"]),
        (("dump", "--profile", "segp"), ["segproof"]),
        (("rebuild", "--profile", "rocket"), []),
        (("replay", "--structure", "offset"), ["offset-index"]),
        (("oracle", "run", "rocketmq-5.5"), ["rocketmq-5.5.1"]),
        (("verify", "/"), []),
    ],
)
def test_known_words_are_offered(
    words: tuple[str, ...],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    """Verbs, options and known values are offered; for paths nothing is, so the shell does."""
    assert expected == offered(monkeypatch, capsys, *words)


def test_a_question_that_no_script_asks_leaves_the_line_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """An error while completing writes nothing into the line that is being typed."""
    monkeypatch.setenv(VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "segproof ver")
    monkeypatch.setenv("COMP_CWORD", "no number")
    assert EXIT_INTERNAL_ERROR == cli.run([])
    assert ("", "") == capsys.readouterr()


@pytest.mark.parametrize("shell", Shell)
def test_the_script_of_each_shell_asks_segproof(shell: Shell, capsys: Capsys) -> None:
    """The script sets the variable that segproof reads, to the name of its shell."""
    assert 0 == cli.run(["completion", shell.value])
    script = capsys.readouterr().out
    assert f"{VARIABLE}=complete_{shell.value}" in script


@pytest.mark.slow
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    """Bash calls segproof through the function of the script, and gets the words."""
    tool = tmp_path / "segproof"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m segproof_harness.cli "$@"\n')
    tool.chmod(0o700)
    lines = (
        'eval "$("$1" completion bash)"',
        "COMP_WORDS=(segproof verify --law OFFIDX-) COMP_CWORD=3",
        'eval "$(complete -p segproof | sed "s/.*-F \\([^ ]*\\) .*/\\1/") $1"',
        'echo "${COMPREPLY[*]}"',
    )
    command = ["bash", "--norc", "-c", "\n".join(lines), "bash", str(tool)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ("OFFIDX-1 OFFIDX-2\n", "") == (done.stdout, done.stderr)
