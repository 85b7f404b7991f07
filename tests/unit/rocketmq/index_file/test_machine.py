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


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("index-file"), STATES)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("index-file", "impl:real-files"), {"crash-reopened"}, share=5)
