# SPDX-License-Identifier: Apache-2.0
"""The record file against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {"closed-with-a-tail", "empty", "timestamp-not-found", "reopened", "crash-reopened"}
"""States that the histories must reach, or the test says nothing of them."""


def test_in_memory() -> None:
    """On files in memory, model and implementation agree at each step, to the byte."""
    run_until_reached(machine_for("record-file"), STATES)


def test_on_real_files() -> None:
    """On files of the operating system they agree too; fewer histories, since these are slower."""
    run_until_reached(machine_for("record-file", "impl:real-files"), {"crash-reopened"}, share=5)
