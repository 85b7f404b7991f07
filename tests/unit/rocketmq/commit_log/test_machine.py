# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's commit log against its model, on logs that are damaged between two openings."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "blank",
    "crash-reopened",
    "damaged",
    "message",
    "message-of-magic-2",
    "message-with-properties",
    "parts-do-not-add-up",
    "scanned",
}
"""States that the histories must reach, or the test says nothing of them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step."""
    run_until_reached(machine_for("commit-log"), STATES)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("commit-log", "impl:real-files"), {"message"}, share=5)
