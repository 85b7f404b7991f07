# SPDX-License-Identifier: Apache-2.0
"""Every corruption of a real file is reported with its law, and no file is touched."""

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from segproof.findings import Finding
from segproof.verification import verify


def _load(path: Path) -> Any:
    """Import the script beside this file, which no package holds."""
    spec = importlib.util.spec_from_file_location("segproof_corruptions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


script = _load(Path(__file__).with_name("corruptions.py"))
CORRUPTIONS = script.CORRUPTIONS


def state_of(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return bytes, modification time and inode of each file."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in sorted(directory.iterdir())
    }


def run_again(finding: Finding) -> list[Finding]:
    """Do what the finding's command line would do."""
    words = shlex.split(finding.reproduce)
    assert ["segproof", "verify"] == words[:2]
    options = words[3:]
    position = options[options.index("--position") + 1] if "--position" in options else None
    return list(
        verify(
            words[2],
            deep="--deep" in options,
            laws=[options[options.index("--law") + 1]],
            position=None if position is None else int(position),
        )
    )


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda one: one.name)
def test_corruption_is_reported(corruption: Any, tmp_path: Path) -> None:
    """The finding names law and file, says what to do, and its command shows it again."""
    directory = corruption.make(script.DATA, tmp_path)
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
    for finding in named[:3]:
        assert finding.message
        assert finding.hint
        again = run_again(finding)
        assert finding in again
        assert {finding.law} == {other.law for other in again}


@pytest.mark.slow
@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda one: one.name)
def test_shallow_run_is_silent_about_deep_damage_only(corruption: Any, tmp_path: Path) -> None:
    """What does not need the records to be read is found without reading them, and with."""
    directory = corruption.make(script.DATA, tmp_path)
    for deep in (False, True):
        laws = {finding.law for finding in verify(directory, deep=deep) if finding.is_defect}
        assert (corruption.law in laws) == (deep or not corruption.needs_deep)


def test_there_are_enough() -> None:
    """There are more than twenty corruptions, with unique names, of every kind of file."""
    names = [one.name for one in CORRUPTIONS]
    assert len(names) == len(set(names))
    assert len(names) > 20
    kinds = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata"}
    assert kinds <= {Path(one.file).suffix for one in CORRUPTIONS}


def test_script_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a script it writes one directory for each, and prints law and file."""
    script.main(str(script.DATA), str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert [one.law for one in CORRUPTIONS] == [line.split("\t")[0] for line in lines]
