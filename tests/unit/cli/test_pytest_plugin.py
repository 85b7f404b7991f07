# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest: a user's test fails with the words of `segproof verify`."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import segproof.verification  # noqa: F401  # pytester forgets what a test has loaded, in part
from segproof_harness import cli, pytest_plugin
from segproof_tests.partition_files import copied_partition, name_of

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[3]
LIGHT = """\
import sys

def test_nothing_is_loaded():
    assert not {"numpy", "typer", "hypothesis", "segproof"} & sys.modules.keys()
"""
USED = """\
import pytest
from pathlib import Path

def test_sound(assert_sound):
    assert_sound(Path("compacted-0"), "--deep")

@pytest.mark.parametrize("path", ["plain-0", "missing-0", "."])
def test_not_sound(assert_sound, path):
    assert_sound(path, "--law", "BATCH-3")

def test_of_another_law(assert_sound):
    assert_sound("plain-0", "--law", "OFFIDX-2")

def test_nothing_to_check(assert_sound, tmp_path):
    assert_sound(tmp_path)

def test_unknown_option(assert_sound):
    assert_sound("plain-0", "--depe")
"""


@pytest.mark.slow
def test_a_test_fails_with_the_words_of_verify(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sound files pass. Damaged, missing and foreign ones fail, and so does a wrong option."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    copied_partition("compacted", pytester.path)
    with (copied_partition("plain", pytester.path) / name_of(60, ".log")).open("r+b") as file:
        file.seek(30000)
        file.write(b"oops")
    pytester.makepyfile(test_a_light=LIGHT, test_used=USED)
    done = pytester.runpytest_subprocess("-p", pytest_plugin.__name__)
    done.assert_outcomes(passed=3, failed=5)
    capsys.readouterr()
    assert 1 == cli.run(["verify", "plain-0", "--law", "BATCH-3", "--no-notes"])
    lines = capsys.readouterr().out.splitlines()
    assert any("BATCH-3 plain-0/" in line for line in lines)
    told = done.stdout.str()
    assert f"Failed: {lines[0]}" in told
    assert "\n".join(f"E       {line}" for line in lines[1:] if line) in told
    assert "Failed: segproof: missing-0: no such file or directory" in told
    assert "DISK-20" in told
    assert "did you mean --deep?" in told
    assert "pytest_plugin.py" not in told


def test_the_distribution_offers_the_plugin() -> None:
    """pytest finds it by the entry point; the fixture is in the module that it names."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        (name,) = tomllib.load(file)["project"]["entry-points"]["pytest11"].values()
    assert import_module(name) is pytest_plugin
