# SPDX-License-Identifier: Apache-2.0
"""Borders planted wrong in the checks: the fast tests of their area catch each."""

import subprocess
import sys

from segproof_tests.planted_borders import PLANTED


def test_each_planted_border_is_caught() -> None:
    """A process plants one after the other; `python -m segproof_tests.planted_borders` tells which
    got away."""
    assert len(PLANTED) >= 30
    done = subprocess.run(
        [sys.executable, "-m", "segproof_tests.planted_borders"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert f"{len(PLANTED)} of {len(PLANTED)} caught" == done.stdout.splitlines()[-1], done.stdout
    assert 0 == done.returncode
