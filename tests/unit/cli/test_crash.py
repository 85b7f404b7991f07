# SPDX-License-Identifier: Apache-2.0
"""The verb `crash`: its figures, its witnesses and what it refuses."""

import shlex
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.canaries.crashes import CRASH_CANARIES
from segproof_harness.crashes import every_world

SMALL = ["--seeds", "0:1", "--length", "3", "--bound", "2"]


def test_sound_code_has_no_new_violation(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary tells how much was done; nothing is printed as data."""
    assert 0 == cli.run(["crash", "partition-log", *SMALL])
    out, err = capsys.readouterr()
    assert "" == out
    assert err.startswith("1 history, ")
    assert ": no new violation" in err


def test_a_violation_is_told_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted defect is found; its command shows it again, and its directory is what was left."""
    monkeypatch.setitem(every_world.WORLDS, "planted", CRASH_CANARIES["C-03"].world)
    options = ["--modes", "ordered", "--bound", "4", "--length", "8", "--keep", str(tmp_path)]
    assert 1 == cli.run(["crash", "planted", "--seeds", "0:2", *options])
    out, err = capsys.readouterr()
    assert "violation" in err
    assert out.startswith("not loaded: ")
    kept = sorted(tmp_path.iterdir())
    for folder in kept:
        text = (folder / "what.txt").read_text()
        assert text in out
        assert (folder / "image/data").is_dir()
        assert any(path.is_file() for path in (folder / "image").rglob("*"))
    program, *arguments = shlex.split(text.splitlines()[-1])
    assert program == "segproof"
    assert 1 == cli.run([*arguments, "--keep", str(tmp_path)])
    assert len(kept) < len([*tmp_path.iterdir()])


def test_calls_that_fail(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that failed is told, and the command lets it fail again."""
    monkeypatch.setitem(every_world.WORLDS, "planted", CRASH_CANARIES["C-11"].world)
    options = ["--faults", "--bound", "4", "--history", "append:5 roll:1"]
    assert 1 == cli.run(["crash", "planted", "--seeds", "0:1", *options])
    out, err = capsys.readouterr()
    assert " calls that failed, " in err
    told = [line for line in out.splitlines() if " fails" in line]
    assert told
    command = next(line for line in out.splitlines() if line.startswith("  segproof"))
    assert command.endswith(" --faults")
    assert 1 == cli.run(shlex.split(command)[1:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["atlantis"], "no world atlantis"),
        (["--seeds", "3"], "'3' is not A:B"),
        (["--seeds", "3:3"], "'3:3' is not A:B"),
        (["--modes", "lazy"], "no mode lazy"),
        (["--modes", ","], "--modes names none"),
        (["--faults", "--second", "1"], "no recovery crashes with --faults"),
        (["--sector", "100"], "100 is not one of 64, 512, 4096"),
        (["--history", "append"], "'append' is not an operation"),
        (["--history", "fly:1"], "has no operation fly: one of append"),
    ],
)
def test_refusals(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What can't be meant ends with code 2 before anything runs."""
    assert 2 == cli.run(["crash", *arguments])
    assert words in capsys.readouterr().err
