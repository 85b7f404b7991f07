# SPDX-License-Identifier: Apache-2.0
"""The leader epoch cache against its model, in random histories; the laws of every release."""

from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws import every_law  # noqa: F401 - its laws are those that are judged
from segproof_harness.structures.outcomes import Outcome, of_model, outcome_of
from segproof_model.kafka.broker.epoch_releases import (
    EpochThatConflictsIsIgnored,
    LoadedEpochsAreNotChecked,
)
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache as Model
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply, opened
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.releases import SEGPROOF, release_named

EPOCHS = st.integers(0, 7) | st.sampled_from([-1, 2**31 - 1, 2**31])
OFFSETS = st.integers(-2, 12) | st.sampled_from([2**63 - 1, 2**63])
ENTRY = st.tuples(st.integers(0, 7), st.integers(0, 12))
DAMAGED = st.sampled_from(
    [
        b"0\n1\n1 x\n",
        b"1\n0\n",
        b"0\n2\n1 1\n",
        b"0\n-1\n",
        b"\xff",
        b"0\n1\n-1 3\n",
        b"0\n1\n3 -1\n",
    ]
)
WHOLE = st.lists(ENTRY, max_size=5)
FALLING = st.lists(ENTRY, min_size=2, max_size=5).map(lambda rows: sorted(rows, reverse=True))
SOUND = (WHOLE | FALLING).map(
    lambda rows: b"".join([b"0\n%d\n" % len(rows), *(b"%d %d\n" % row for row in rows)])
)
FILE = "leader-epoch-checkpoint"
LAWS = (
    "EPOCH-1", "EPOCH-2", "EPOCH-3", "EPOCH-4", "EPOCH-5", "EPOCH-6", "EPOCH-7", "EPOCH-8",
    "EPOCH-9", "EPOCH-10", "EPOCH-11",
)  # fmt: skip
STATES = {"dropped", "ignored", "moved", "refused", "sanitised", "unreadable", "reopened"}
"""What the histories must reach, or the tests say nothing of it."""


class EpochCacheMachine(RuleBasedStateMachine):
    """Histories of one cache; of segproof the implementation runs beside it."""

    release: ClassVar[Release] = SEGPROOF
    reached: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.files = MemoryFiles()
        self.files.make_directory("/d")
        self.model_files = Files()
        self.state: Any = None
        self.impl: Any = None

    @property
    def is_compared(self) -> bool:
        """Whether there is an implementation of this release."""
        return self.release is SEGPROOF

    @initialize(data=st.none() | SOUND | SOUND | DAMAGED)
    def begin(self, data: bytes | None) -> None:
        """Open a missing file, a sound one, one whose entries conflict, or a damaged one."""
        if data is not None:
            self.put(data)
        self.open()

    def put(self, data: bytes) -> None:
        """Let the file be this one."""
        self.model_files = Files({**self.model_files.images, FILE: data})
        write_file(self.files, f"/d/{FILE}", data)

    def open(self) -> None:
        """Open the file on both sides."""
        step: Any = opened(self.release.kind(Model), self.model_files, FILE)
        self.impl = None
        if self.is_compared:
            actual = outcome_of(self._open_impl)
            assert of_model(step.outcome) == actual
        if isinstance(step.outcome, Raised):
            self.state, self.model_files = None, step.after
            self.reached.add("unreadable")
        else:
            self.state, self.model_files = step.after, step.after.files
            rows = self.model_files.image(FILE).count(b"\n") - 2
            if len(self.state.epoch_entries()) < rows:
                self.reached.add("sanitised")
        self.compare_states()

    def _open_impl(self) -> None:
        self.impl = LeaderEpochFileCache.open(f"/d/{FILE}", create=True, files=self.files)

    def apply(self, operation: str, **arguments: int) -> None:
        """Do one operation, or ask one question, on both sides; judge every law."""
        before = self.state
        assert before is not None
        step = apply(before, operation, **arguments)
        after, outcome = step.after, step.outcome
        transition = Transition(type(before), before, operation, arguments, after, outcome)
        assert [] == broken_step_laws(transition), transition
        self.state, self.model_files = after, after.files
        if self.is_compared:
            actual = outcome_of(lambda: getattr(self.impl, operation)(**arguments))
            assert of_model(outcome) == actual, (operation, arguments)
        self.note(operation, before, of_model(outcome))
        self.compare_states()

    def note(self, operation: str, before: Any, outcome: Outcome) -> None:
        """Remember what the histories have reached."""
        assert self.state is not None
        if outcome.error == "invalid-argument":
            self.reached.add("refused")
        elif operation == "assign":
            entries, now = before.epoch_entries(), self.state.epoch_entries()
            kept, is_same = len(entries) >= len(now), entries == now
            self.reached.update({"ignored"} if is_same else {"dropped"} if kept else ())
        elif operation == "truncate_from_start":
            is_moved = before.epoch_entries() != self.state.epoch_entries()
            self.reached.update({"moved"} if is_moved else ())

    def compare_states(self) -> None:
        """Hold the state against its laws, the entries and every byte against each other."""
        if self.state is not None:
            assert [] == broken_state_laws(self.state)
            assert self.state.files == self.model_files
        if self.is_compared:
            assert self.model_files.images == self.files.images("/d")
            if self.state is not None:
                assert self.state.epoch_entries() == self.impl.epoch_entries()

    @precondition(lambda self: self.state is not None)
    @rule(leader_epoch=EPOCHS, start_offset=OFFSETS)
    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Let an epoch begin."""
        self.apply("assign", leader_epoch=leader_epoch, start_offset=start_offset)

    @precondition(lambda self: self.state is not None)
    @rule(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=4))
    def assign_in_order(self, steps: list[tuple[int, int]]) -> None:
        """Let epochs begin as a leader has them: each not below the last."""
        for epoch_step, offset_step in steps:
            assert self.state is not None
            latest = self.state.latest_entry() or (0, 0)
            if latest[0] < 100 and latest[1] < 100:
                self.assign(latest[0] + epoch_step, latest[1] + offset_step)

    @precondition(lambda self: self.state is not None)
    @rule(end_offset=OFFSETS)
    def truncate_from_end(self, end_offset: int) -> None:
        """Cut at the end."""
        self.apply("truncate_from_end", end_offset=end_offset)

    @precondition(lambda self: self.state is not None)
    @rule(start_offset=OFFSETS.filter(lambda offset: offset < 2**63))
    def truncate_from_start(self, start_offset: int) -> None:
        """Cut at the start."""
        self.apply("truncate_from_start", start_offset=start_offset)

    @precondition(lambda self: self.state is not None)
    @rule(name=st.sampled_from(["clear", "clear_and_flush"]))
    def clear(self, name: str) -> None:
        """Forget every entry."""
        self.apply(name)

    @precondition(lambda self: self.state is not None and not self.is_compared)
    @rule()
    def run_scheduled_write(self) -> None:
        """Let the release do what it has scheduled."""
        self.apply("run_scheduled_write")

    @precondition(lambda self: self.state is not None)
    @rule(epoch=EPOCHS, offset=OFFSETS, end_offset=OFFSETS)
    def ask(self, epoch: int, offset: int, end_offset: int) -> None:
        """Ask everything that can be asked."""
        for name in ("latest_epoch", "previous_epoch", "latest_entry", "earliest_entry"):
            self.apply(name)
        self.apply("epoch_entries")
        for requested in (epoch, -1):
            self.apply("end_offset_for", requested_epoch=requested, log_end_offset=offset)
        self.apply("previous_epoch_before", epoch=epoch)
        self.apply("next_epoch", epoch=epoch)
        self.apply("epoch_for_offset", offset=offset)
        self.apply("epoch_entries_in_range", start_offset=offset, end_offset=end_offset)

    @rule(data=SOUND | DAMAGED)
    def replace(self, data: bytes) -> None:
        """Open another file in place of what there is."""
        self.put(data)
        self.open()

    @rule()
    def reopen(self) -> None:
        """Forget the object and open what the file holds."""
        self.open()
        self.reached.add("reopened")


@pytest.mark.checks(*LAWS)
def test_against_the_model() -> None:
    """Model and implementation agree on each answer, error, entry and byte."""

    class Machine(EpochCacheMachine):
        """An own class, so that the states reached are those of this test."""

        reached: ClassVar[set[str]] = set()

    run_state_machine_as_test(Machine)
    assert set() == STATES - Machine.reached


@pytest.mark.checks(*LAWS)
@pytest.mark.parametrize("name", ["kafka-4.3.1", "kafka-2.4.1", "kafka-1.1.1"])
def test_laws_of_releases(name: str) -> None:
    """The model of each release obeys the laws, with what its behaviours bend."""

    class Machine(EpochCacheMachine):
        """The same histories, on the model alone."""

        release: ClassVar[Release] = release_named(name)
        reached: ClassVar[set[str]] = set()

    run_state_machine_as_test(Machine)
    cannot = {LoadedEpochsAreNotChecked: "sanitised", EpochThatConflictsIsIgnored: "dropped"}
    missed = {state for behaviour, state in cannot.items() if Machine.release.has(behaviour)}
    assert STATES - missed == Machine.reached
