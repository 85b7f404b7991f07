# SPDX-License-Identifier: Apache-2.0
"""The machine of all structures: one rule for each operation, made from the description.

After each step every answer, every kind of error, every accessor and every byte of the directory
is compared with the model, and the model is held against all laws.
"""

from collections import Counter
from collections.abc import Set
from typing import Any, ClassVar

from hypothesis import note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from segproof_harness.histories.compare import Comparison, Divergence
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.histories.traces import Trace
from segproof_harness.structures.choices import HypothesisChoose
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import OperationKind, structure_named

OPENERS = ("reopen", "crash_reopen")
CLOSED_STEPS_MAX = 3
"""After so many steps on what is closed, only opening goes on."""
OPEN_STEPS_MIN = 4
"""So many steps before something may be closed for good."""

RUNS_MAX = 30
"""So often is a machine run, each time with other examples, to reach all states."""

RULES_MAX = 6
"""Rules of one operation."""
RARE_EVERY = 3
"""An operation of weight 1 may come at one of so many steps; else its one rule would count as 7."""


class CountsReached(RuleBasedStateMachine):
    """A machine that counts which states its examples have reached."""

    reached: ClassVar[Counter[str]]
    """How often each `sometimes` state was reached, by all examples of this class."""


class StructureMachine(CountsReached):
    """Random histories of one structure on one subject, beside the model."""

    structure_id: ClassVar[str] = ""
    """Set by a subclass, which then has the rules of that structure."""
    subject_name: ClassVar[str] = "impl"
    """Who is compared with the model, as on the command line."""
    profile_name: ClassVar[str] = "segproof"
    """The profile under which histories are drawn."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.reached = Counter()
        if "structure_id" in vars(cls):
            for name, kind in structure_named(cls.structure_id).by_name().items():
                # Hypothesis draws rules evenly; what is frequent has several.
                for number in range(1 + min(kind.weight // 8, RULES_MAX - 1)):
                    suffix = f"_{number + 1}" if number else ""
                    setattr(cls, f"do_{name}{suffix}", _rule_for(kind, suffix))

    def __init__(self) -> None:
        super().__init__()
        structure = structure_named(self.structure_id)
        self._subject = subject_named(self.subject_name, structure)
        self.comparison = Comparison(structure, self.profile_name, [self._subject], image_every=1)
        self._setup: Setup | None = None
        self._history: list[Operation] = []
        self.steps_in_state = 0

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        """Open."""
        self._setup = self.comparison.structure.draw_setup(HypothesisChoose(data))
        note(f"{self._setup.to_operation()!r} with {dict(self._setup.files)!r}")
        self._judge(self.comparison.start(self._setup))

    def perform(self, kind: OperationKind, data: st.DataObject) -> None:
        """Draw one operation of this kind and execute it."""
        choose = HypothesisChoose(data)
        was_usable = self.is_usable()
        operation = kind.draw(choose, self.comparison.guide.situation())
        note(repr(operation))
        self._history.append(operation)
        self._judge(self.comparison.apply(operation))
        self.steps_in_state = self.steps_in_state + 1 if was_usable == self.is_usable() else 0

    def is_usable(self) -> bool:
        """Return whether something is open."""
        return self.comparison.guide.is_usable()

    def is_open(self) -> bool:
        """Return whether there is an object, be it closed."""
        return self.comparison.guide.state is not None

    def _judge(self, found: Divergence | None) -> None:
        if found is None:
            return
        assert self._setup is not None
        history = tuple(self._history)
        trace = Trace(self.structure_id, self.profile_name, self._setup, history)
        raise AssertionError(f"{found.message()} [{found.law}]\ntrace:\n{trace.to_text()}")

    def teardown(self) -> None:
        """Give back what the subject holds, and count the states that were reached."""
        self._subject.stop()
        type(self).reached.update(self.comparison.counters.sometimes)


def run_until_reached(
    machine: type[CountsReached], states: Set[str], *, share: int = 1, first_seed: int = 0
) -> None:
    """Run a machine until its examples have reached all these `sometimes` states.

    With `share`, only one example of so many is run, for a machine that is slow. Where examples are
    the same in each run, they are drawn by `first_seed`, and by the next ones until all is reached.
    Raises: AssertionError for a divergence, and naming the states that were not reached.
    """
    examples = max(1, settings().max_examples // share)
    for run in range(first_seed, first_seed + RUNS_MAX):
        if settings().derandomize:  # else each run has the same examples
            seed(run)(machine)
        run_state_machine_as_test(machine, settings=settings(max_examples=examples))
        missing = states - {name for name, count in machine.reached.items() if count}
        if not missing:
            return
    raise AssertionError(f"not reached: {', '.join(sorted(missing))}")


def _rule_for(kind: OperationKind, suffix: str) -> Any:
    """Return a rule of one operation."""

    def perform(self: StructureMachine, data: st.DataObject) -> None:
        self.perform(kind, data)

    perform.__name__ = f"do_{kind.name}{suffix}"
    perform.__doc__ = f"{kind.name}."
    made = rule(data=st.data())(perform)
    if kind.name not in OPENERS:
        made = precondition(_may_end if kind.ends else _may_use)(made)
        if kind.weight <= 1:
            made = precondition(_may_be_rare)(made)
    return made


def _may_be_rare(machine: Any) -> bool:
    return len(machine._history) % RARE_EVERY == RARE_EVERY - 1


def _may_use(machine: Any) -> bool:
    if machine.is_usable():
        return True
    return bool(machine.is_open() and machine.steps_in_state < CLOSED_STEPS_MAX)


def _may_end(machine: Any) -> bool:
    if machine.is_usable():
        return bool(machine.steps_in_state >= OPEN_STEPS_MIN)
    return _may_use(machine)
