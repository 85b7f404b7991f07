# SPDX-License-Identifier: Apache-2.0
"""The tests' own rule: not run is never passed, and is said aloud."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"

CASES = {
    "marker": '@pytest.mark.needs("no_such_module")\ndef test_it(): ...',
    "version": '@pytest.mark.needs("pytest>=999")\ndef test_it(): ...',
    "fixture": 'def test_it(not_run):\n    not_run("there is no moon")',
    "module": 'pytest.importorskip("no_such_module", reason="not run: no such module")',
}


def run_pytest(folder: Path, source: str, *, require_all: bool) -> tuple[int, str]:
    """Run pytest on one test file beside our conftest; return its exit code and output."""
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_sample.py").write_text(f"import pytest\n{source}\n", encoding="utf-8")
    options = ["-p", "no:cacheprovider", "-o", "markers=needs(*things): what the test needs"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_sample.py"],
        cwd=folder,
        env={**os.environ, "SEGPROOF_REQUIRE_ALL": "1" if require_all else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_not_run_is_said_aloud(case: str, tmp_path: Path) -> None:
    """Something missing lets the run go on, and the closing lines name it."""
    code, output = run_pytest(tmp_path, CASES[case], require_all=False)
    assert code in (0, 5), output
    assert "= 1 not run =" in output
    assert "not run: " in output.partition("= 1 not run =")[2]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_not_run_fails_where_all_is_required(case: str, tmp_path: Path) -> None:
    """With SEGPROOF_REQUIRE_ALL=1 the same is a failure that names the reason."""
    code, output = run_pytest(tmp_path, CASES[case], require_all=True)
    assert code in (1, 2), output
    assert "SEGPROOF_REQUIRE_ALL=1" in output
    assert "not run: " in output


@pytest.mark.slow
def test_what_is_there_is_run(tmp_path: Path) -> None:
    """A need that is met changes nothing."""
    source = '@pytest.mark.needs("json")\ndef test_it(): ...'
    code, output = run_pytest(tmp_path, source, require_all=True)
    assert 0 == code, output
    assert "1 passed" in output
