# SPDX-License-Identifier: Apache-2.0
"""The pinned jars: those that are here, those that Maven brings, and one that was changed."""

import json
import shutil
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.releases.jars import FOLDER_VARIABLE, jar_folder, pinned_jars, wrong_jars
from segproof_harness.releases.pinned import PINNED
from segproof_tests.changed_bytes import flip_bits

SMALL = "rocketmq-4.3.2"
"""The release with the fewest bytes."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.needs(name)) for name in PINNED]
)
def test_jars_are_the_pinned_ones(name: str) -> None:
    """What the other tests of this folder run on has the digests of the lock."""
    assert {} == wrong_jars(PINNED[name])


@pytest.mark.needs("mvn")
def test_maven_brings_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Into an empty folder, each jar in its place, nothing else; a second time Maven is idle."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv("MAVEN_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    assert 0 == cli.run(["oracle", "fetch", SMALL])
    jars = pinned_jars(PINNED[SMALL])
    assert f"fetched now: {len(jars)} jars" in capsys.readouterr().err
    assert {} == wrong_jars(PINNED[SMALL])
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {jar.path for jar in jars} == there
    monkeypatch.setenv("PATH", "/nonexistent")
    assert 0 == cli.run(["oracle", "fetch", SMALL])


@pytest.mark.needs(SMALL)
def test_check_starts_a_release_and_names_a_changed_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ready with its jars; with one byte of one of them changed, broken, and that one is named."""
    for jar in pinned_jars(PINNED[SMALL]):
        place = tmp_path / jar.path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(jar_folder() / jar.path, place)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert 0 == cli.run(["oracle", "check", SMALL])
    assert "1 of 1 release ready" in capsys.readouterr().err
    changed = tmp_path / pinned_jars(PINNED[SMALL])[0].path
    flip_bits(changed, changed.stat().st_size // 2)
    assert 1 == cli.run(["oracle", "check", SMALL, "--format", "jsonl"])
    row = json.loads(capsys.readouterr().out)
    assert ("broken", 1) == (row["state"], len(row["problems"]))
    assert str(changed) in row["problems"][0]
