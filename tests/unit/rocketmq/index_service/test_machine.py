# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's index service against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "built",
    "checkpoint-moved",
    "comes-again",
    "crash-reopened",
    "deleted-after-crash",
    "in-two-files",
    "loaded-2-files",
    "rolled",
    "same-millisecond",
}
"""States that the histories must reach, or the test says nothing of them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("index-service"), STATES)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("index-service", "impl:real-files"), {"crash-reopened"}, share=5)
