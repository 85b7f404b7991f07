# SPDX-License-Identifier: Apache-2.0
"""The time index against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {"2^31-border", "crash-reopened", "duplicate-key", "empty", "full", "reopened", "resized"}
"""States that the histories must reach, or the test says nothing of them."""
FIRST_SEED = 1
"""The first one whose examples reach all of them, of the packages as tox installs them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("time-index"), STATES, first_seed=FIRST_SEED)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("time-index", "impl:real-files"), {"crash-reopened"}, share=5)
