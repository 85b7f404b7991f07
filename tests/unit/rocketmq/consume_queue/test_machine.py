# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's consume queue against its model, in random histories beside a commit log."""

import pytest

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {
    "begins-later",
    "crash-reopened",
    "found-in-second-file",
    "lower-found",
    "next-file",
    "opened-with-units",
    "passed-over",
    "put",
    "upper-found",
}
"""States that the histories must reach, or the test says nothing of them."""


@pytest.mark.checks("RMQCQ-1", "RMQCQ-3")
def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("consume-queue"), STATES)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("consume-queue", "impl:real-files"), {"put"}, share=5)
