# SPDX-License-Identifier: Apache-2.0
"""The tests' own rule: not run is never passed, and is said aloud."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"

Ran = tuple[bool, int, str]
"""Whether all was required; the exit code and the output of pytest."""
CASES = {
    "marker": '@pytest.mark.needs("no_such_module")\ndef test_it(): ...',
    "version": '@pytest.mark.needs("pytest>=999")\ndef test_it(): ...',
    "fixture": 'def test_it(not_run):\n    not_run("there is no moon")',
    "module": 'pytest.importorskip("no_such_module", reason="not run: no such module")',
    "met": '@pytest.mark.needs("json")\ndef test_it(): ...',
    "bare": 'def test_it():\n    pytest.skip("there is no moon")',
}
MISSING = sorted(CASES.keys() - {"met", "bare"})


@pytest.fixture(scope="module", params=[False, True], ids=["usual", "all required"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run pytest on a file of each case beside our conftest."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    for case, source in CASES.items():
        (folder / f"test_{case}.py").write_text(f"import pytest\n{source}\n", encoding="utf-8")
    options = ["-p", "no:cacheprovider", "-o", "markers=needs(*things): what the test needs"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-rA", "--continue-on-collection-errors"],
        cwd=folder,
        env={**os.environ, "SEGPROOF_REQUIRE_ALL": "1" if request.param else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return request.param, done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_not_run_is_never_passed(ran: Ran) -> None:
    """The closing lines name what was not run; where all is required, each is a failure."""
    all_required, code, output = ran
    assert (1 if all_required else 0) == code, output
    assert "PASSED test_met.py::test_it" in output
    # A skip without these words is one that nobody is told of.
    assert all_required == ("FAILED test_bare.py::test_it" in output), output
    for case in MISSING:
        assert f"PASSED test_{case}.py" not in output
        if all_required:
            assert re.search(rf"(FAILED|ERROR) test_{case}\.py", output), output
            assert output.count("SEGPROOF_REQUIRE_ALL=1 forbids") >= len(MISSING)
        else:
            _, _, listed = output.partition(f"= {len(MISSING)} not run =")
            assert re.search(rf"test_{case}\.py\S*: not run: ", listed), output
