# SPDX-License-Identifier: Apache-2.0
"""The log of a partition against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "crash-reopened",
    "index-full-roll",
    "offset-order-refused",
    "out-of-range",
    "reopened",
    "rolled",
    "segment-boundary-read",
    "time-found",
    "truncation-into-a-batch",
}
"""States that the histories must reach, or the test says nothing of them. The exact borders of
retention, which few examples meet, are reached in `tests/unit/harness/test_replay.py`."""
FIRST_SEED = 2
"""The first one whose examples reach all of them, of the packages as tox installs them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("partition-log"), STATES, first_seed=FIRST_SEED)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("partition-log", "impl:real-files"), {"crash-reopened"}, share=5)
