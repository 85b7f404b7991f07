# SPDX-License-Identifier: Apache-2.0
"""The action for GitHub: its scripts, run by bash on real files as a runner runs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from segproof_harness import cli
from segproof_harness.cli.verify import FailOn, VerifyFormat
from segproof_tests.partition_files import copied_partition, name_of

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.needs("yaml")


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    """Return the file of the action."""
    import yaml

    read: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="ascii"))
    return read


def run(action: dict[str, Any], folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the last step in a folder, with inputs as a workflow gives them."""
    script = folder / "runner" / "segproof" / "bin" / "segproof"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m segproof_harness.cli "$@"\n')
    script.chmod(0o755)
    step = action["runs"]["steps"][-1]
    inputs = {name: one.get("default", "") for name, one in action["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in step["env"].items()
    }
    assert not any("${{" in value for value in variables.values())
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **variables, "RUNNER_TEMP": str(folder / "runner")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a sound partition, and a damaged one whose name has a space."""
    copied_partition("compacted", tmp_path)
    copied_partition("plain", tmp_path).rename(tmp_path / "my plain-0")
    with (tmp_path / "my plain-0" / name_of(60, ".log")).open("r+b") as file:
        file.seek(30000)
        file.write(b"oops")
    return tmp_path


@pytest.mark.slow
def test_the_action_writes_the_results_and_ends_as_verify_does(
    action: dict[str, Any], files: Path
) -> None:
    """Paths are one a line; the results are in the named file, and the counts in the log."""
    done = run(action, files, path="compacted-0\n\n  my plain-0\n", options="--deep\n--no-notes")
    assert (1, "") == (done.returncode, done.stdout)
    assert "1 error, 0 warnings" in done.stderr
    (told,) = json.loads((files / "segproof.sarif").read_text())["runs"]
    assert ["BATCH-3"] == [one["ruleId"] for one in told["results"]]
    assert ["sound", "readable-with-gaps"] == [
        one["verdict"] for one in told["properties"]["summaries"]
    ]
    done = run(action, files, path="compacted-0", format="junit", output="a.xml")
    assert 0 == done.returncode, done.stderr
    assert '<testsuites name="segproof verify">' in (files / "a.xml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"path": "nothing-0"}, "nothing-0: no such file or directory"),
        ({"path": "\n"}, "PATH"),
        ({"path": "compacted-0", "options": "--depe"}, "did you mean --deep"),
        ({"path": "compacted-0", "output": "no/such.sarif"}, "can't be written: no/such.sarif\n"),
    ],
)
def test_a_wrong_input_leaves_no_file_of_results(
    action: dict[str, Any], files: Path, given: dict[str, str], words: str
) -> None:
    """So a step that uploads it can ask whether it is there."""
    done = run(action, files, **given)
    assert 2 == done.returncode
    assert words in done.stderr
    assert not (files / "segproof.sarif").exists()


def test_the_action_names_options_that_verify_has(action: dict[str, Any]) -> None:
    """And its inputs name the choices of these options, by their words and as defaults."""
    steps = action["runs"]["steps"]
    command: Any = typer.main.get_command(cli.build_app())
    options = {name for one in command.commands["verify"].params for name in one.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", steps[-1]["run"]))
    named |= set(re.findall(r"--[a-z-]+", action["inputs"]["options"]["description"]))
    assert {"--format", "--fail-on", "--deep"} == named
    assert named <= options
    for name, choices in (("format", VerifyFormat), ("fail-on", FailOn)):
        described = re.findall(
            r"[a-z-]*[a-z]", action["inputs"][name]["description"].partition(" - ")[2]
        )
        assert set(choices) == set(described) - {"or"}
        assert action["inputs"][name]["default"] in described
    used = set(re.findall(r"inputs\.([a-z-]+)", str(steps)))
    assert action["inputs"].keys() == used


def test_the_action_installs_its_own_checkout(action: dict[str, Any]) -> None:
    """No release from elsewhere: `uses: ...@REF` says which segproof it is."""
    install = action["runs"]["steps"][0]["run"]
    assert re.search(r'pip install [^|;&]*\\\n\s+"\$GITHUB_ACTION_PATH"$', install.rstrip())
    assert '"$RUNNER_TEMP/segproof/bin/segproof" verify' in action["runs"]["steps"][-1]["run"]
