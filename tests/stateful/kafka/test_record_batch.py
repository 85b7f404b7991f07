# SPDX-License-Identifier: Apache-2.0
"""The record batch against its model, in random histories.

Used by: the tox environments `py311` to `py313`.
"""

from hypothesis.stateful import run_state_machine_as_test

from segproof_harness.machines import RecordBatchMachine


def test_in_memory() -> None:
    """Whatever is written over a batch, all ways to read it agree with the model."""

    class Machine(RecordBatchMachine):
        """An own class, so that the states reached are those of this test."""

    run_state_machine_as_test(Machine)
    assert {"magic-0", "magic-1", "magic-2", "checksum-wrong"} <= set(Machine.reached)
