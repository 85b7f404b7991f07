# SPDX-License-Identifier: Apache-2.0
"""The record batch against its model, in random histories."""

from segproof_harness.histories.machines import machine_for, run_until_reached

STATES = {"magic-0", "magic-1", "magic-2", "checksum-wrong"}
"""States that the histories must reach, or the test says nothing of them."""


def test_in_memory() -> None:
    """Whatever is written over a batch, all ways to read it agree with the model."""
    run_until_reached(machine_for("record-batch"), STATES)
