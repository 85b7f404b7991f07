# SPDX-License-Identifier: Apache-2.0
"""The time index against its model, in random histories.

Used by: the tox environments `py311` to `py313`.
"""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from segproof_harness.machines import TimeIndexMachine, run_until_reached

SHARE_ON_REAL_FILES = 5
STATES = {
    "2^31-border",
    "crash-reopened",
    "duplicate-key",
    "empty",
    "full",
    "reopened",
    "resized",
}
"""States that the histories must reach, or the test says nothing of them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""

    class Machine(TimeIndexMachine):
        """An own class, so that the states reached are those of this test."""

    run_until_reached(Machine, STATES)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""

    class Machine(TimeIndexMachine):
        """The same histories on real files."""

        subject_name = "impl:real-files"

    share = max(1, settings().max_examples // SHARE_ON_REAL_FILES)
    run_state_machine_as_test(Machine, settings=settings(max_examples=share))
    assert Machine.reached["crash-reopened"] > 0
