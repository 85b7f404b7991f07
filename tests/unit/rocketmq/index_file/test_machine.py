# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's index file against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "chain-of-3",
    "clock-back",
    "collision",
    "corrupt-found",
    "crash-reopened",
    "difference-above",
    "found-2",
    "full",
    "reopened",
}
"""States that the histories must reach, or the test says nothing of them."""
FIRST_SEED = 1
"""The first one whose examples reach all of them, of the packages as tox installs them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("index-file"), STATES, first_seed=FIRST_SEED)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("index-file", "impl:real-files"), {"crash-reopened"}, share=5)
