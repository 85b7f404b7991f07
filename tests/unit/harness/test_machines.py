# SPDX-License-Identifier: Apache-2.0
"""The public machines fail on a defect with a trace that replays, and take one's own class."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof_harness.histories import machines
from segproof_harness.histories.compare import Comparison
from segproof_harness.histories.machines import OffsetIndexMachine, StructureMachine, machine_for
from segproof_harness.histories.replay import comparison, replay_trace
from segproof_harness.histories.shrink import shrink
from segproof_harness.histories.traces import read_trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_harness.subjects.implementation import ImplementationSubject

WIDE = "segproof_harness.canaries.indexes:K14OffsetIndex"


@pytest.mark.slow
def test_defect_fails_with_a_trace(tmp_path: Path) -> None:
    """The failure of a machine carries a trace, which diverges on the subject and not on us."""

    class Machine(OffsetIndexMachine):
        """A machine on a planted defect, as one's own class would be tested."""

        subject_name = WIDE

    short = settings(
        max_examples=500,
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError, match="OFFIDX-6") as caught:
        run_state_machine_as_test(Machine, settings=short)
    path = tmp_path / "trace.jsonl"
    path.write_text(str(caught.value).partition("trace:\n")[2])
    trace = read_trace(path)
    comparing = comparison(trace.structure_id, trace.profile_name, ("model", WIDE))
    assert len(shrink(trace, comparing.run).operations) <= 10
    assert ["OFFIDX-6"] == [found.law for found in replay_trace(path, ("model", WIDE)).findings]
    assert [] == replay_trace(path).findings


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_every_operation_has_a_rule(structure_id: str) -> None:
    """There is a public machine for each structure, with a rule for each operation."""
    public = [
        item
        for item in vars(machines).values()
        if isinstance(item, type)
        and issubclass(item, StructureMachine)
        and item.structure_id == structure_id
    ]
    assert 1 == len(public)
    for machine in (*public, machine_for(structure_id)):
        for name in structure_named(structure_id).by_name():
            assert hasattr(machine, f"do_{name}")


def test_unknown_structure_is_refused() -> None:
    """`machine_for` names the known structures."""
    with pytest.raises(ValueError, match="known: offset-index"):
        machine_for("offset")


class EndlessOffsetIndex(OffsetIndex):
    """An index whose lookup never ends."""

    def lookup(self, target_offset: int) -> OffsetPosition:
        """Never return."""
        while True:
            pass


def test_a_call_that_never_ends_is_a_divergence() -> None:
    """A time limit turns an endless call into a finding instead of a hanging run."""
    structure = structure_named("offset-index")
    subject = ImplementationSubject(structure, EndlessOffsetIndex)
    comparing = Comparison(structure, "segproof", [subject])
    trace = make_history("offset-index", "segproof", 0, 50)
    assert any(operation.name == "lookup" for operation in trace.operations)
    found = comparing.run(trace, seconds=0.5)
    assert found is not None
    assert "unexpected:TimeoutError" == found.actual.error
