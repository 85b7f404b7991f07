# SPDX-License-Identifier: Apache-2.0
"""The log segment against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "crash-reopened",
    "entry-inside-an-append",
    "first-entry-incomplete",
    "index-full",
    "offset-overflow-refused",
    "overflow-told",
    "read-beyond-the-last-offset",
    "recovery-refused",
    "reopened",
    "rolls",
    "time-out-of-order",
    "upper-bound-behind-an-entry",
}
"""States that the histories must reach, or the test says nothing of them."""
FIRST_SEED = 3
"""The first one whose examples reach all of them, of the packages as tox installs them: out of
sources that are not installed Hypothesis takes numbers, and draws these too."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("log-segment"), STATES, first_seed=FIRST_SEED)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("log-segment", "impl:real-files"), {"crash-reopened"}, share=5)
