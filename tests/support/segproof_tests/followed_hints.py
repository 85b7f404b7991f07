# SPDX-License-Identifier: Apache-2.0
"""Following a hint: its commands are run as a person would who pastes them into a shell."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity
from segproof_harness import cli

NUMBERS = ("--hash-slots", "16", "--index-num", "64")
"""Of the small stores of tests: what their brokers were configured with."""
ASKED_FOR = "give --hash-slots and --index-num"


def errors_of(findings: Iterable[Finding]) -> set[str]:
    """Return the laws that errors name."""
    return {one.law for one in findings if one.severity is Severity.ERROR}


def run_by_bash(command: str, folder: Path) -> int:
    """Run a command in a directory and return its exit code; `segproof` runs in this process.

    So bash reads the words, and no process has to start Python.
    """
    words = folder.parent / "words"
    function = 'segproof() { printf "%s\\0" "$@" > "$SEGPROOF_WORDS"; }'
    done = subprocess.run(
        ["bash", "-c", f"{function}\n{command}"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "SEGPROOF_WORDS": str(words)},
        capture_output=True,
        check=False,
    )
    if not command.startswith("segproof "):
        return done.returncode
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return cli.run(words.read_text().split("\0")[:-1])


def run_command(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command of a hint as it is printed, and fail if it does not do what it should."""
    code = run_by_bash(command, folder)
    told = capsys.readouterr()
    if code == 2 and ASKED_FOR in told.err:
        code = run_by_bash(f"{command} {' '.join(NUMBERS)}", folder)
        told = capsys.readouterr()
    codes = (0, 1) if command.startswith("segproof ") else (0,)
    assert code in codes, f"{command} ended with {code}: {told.err or told.out}"
