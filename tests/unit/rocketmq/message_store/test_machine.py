# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's message store against its model: what a store recovers that was stopped somehow."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "begins-behind-offset-0",
    "clean-exit",
    "crash-reopened",
    "empty-last-file",
    "found",
    "found-but-gone",
    "has-entries",
    "has-no-entries",
    "index-is-off",
    "killed",
    "not-loaded",
}
"""States that the histories must reach, or the test says nothing of them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("message-store"), STATES, first_seed=1)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("message-store", "impl:real-files"), {"found"}, share=5)
