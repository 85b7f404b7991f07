# SPDX-License-Identifier: Apache-2.0
"""The reference model as a subject.

Used by: subjects, compare, workloads.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from segproof_harness.operations import Operation, Value
from segproof_harness.outcomes import Outcome, of_model
from segproof_harness.structures import Event, OperationKind, Setup, Situation, Structure
from segproof_harness.subjects.base import OPENED
from segproof_model.directory import Directory
from segproof_model.language.outcomes import Raised, Step
from segproof_model.laws.checking import opening
from segproof_model.laws.registry import Transition
from segproof_model.profiles import Profile


class ModelSubject:
    """The model under one profile. Raises ValueError for one of another system."""

    def __init__(self, structure: Structure, profile: Profile, name: str = "model") -> None:
        structure.check_profile(profile.name)
        self.structure = structure
        self.profile = profile
        self.name = name
        self.profile_name = profile.name
        self.state: Any = None
        self.directory = Directory()
        self.opened: Mapping[str, Value] = {}
        self.event: Event | None = None
        """The last step, for the `sometimes` predicates."""
        self.transitions: list[Transition] = []
        """What the last step did, for the laws; reopening is a closing and an opening."""

    def start(self, setup: Setup) -> Outcome:
        """Begin with the setup's directory and open."""
        self.state = None
        self.directory = Directory(tuple(sorted(setup.files.items())))
        self.opened = setup.arguments
        self.transitions = []
        outcome = self._open(setup.arguments)
        self.event = Event(None, setup.to_operation(), self.state, outcome)
        return outcome

    def _open(self, arguments: Mapping[str, Value]) -> Outcome:
        self.opened = arguments
        if self.structure.damage is not None and arguments.get("damage", True):
            images = self.structure.damage(arguments, dict(self.directory.files))
            self.directory = Directory(tuple(sorted(images.items())))
        step = self.structure.open_model(arguments, self.directory, self.profile)
        self.transitions.append(
            opening(self.structure.structure_id, arguments, self.directory, self.profile, step)
        )
        if isinstance(step.outcome, Raised):
            self.state, self.directory = None, step.after
            return of_model(step.outcome)
        self.state = step.after
        self.directory = self.structure.directory_of(self.state)
        return OPENED

    def apply(self, operation: Operation) -> Outcome:
        """Execute one operation."""
        before = self.state
        self.transitions = []
        if operation.name in ("reopen", "crash_reopen"):
            outcome = self._reopen(operation)
        elif before is None:
            outcome = Outcome.NOT_OPEN
        else:
            outcome = self._call(before, operation)
        self.event = Event(before, operation, self.state, outcome)
        return outcome

    def _reopen(self, operation: Operation) -> Outcome:
        closed = Outcome()
        if operation.name == "reopen" and self.state is not None:
            closed = self._call(self.state, Operation("close"))
        self.state = None
        opened = self._open(operation.arguments)
        return closed if closed.error is not None else opened

    def _call(self, before: Any, operation: Operation) -> Outcome:
        kind = self.structure.operation(operation.name)
        arguments: Mapping[str, Any] = operation.arguments
        if kind is not None and kind.adapt is not None:
            arguments = kind.adapt(arguments)
        if kind is not None and kind.sets_clock:
            self.state = replace(before, **arguments)
            return Outcome()
        raw = self._answer(before, operation.name, kind, arguments)
        step = raw if isinstance(raw, Step) else Step(before, raw)
        self.transitions.append(
            Transition(before, operation.name, arguments, step.after, step.outcome)
        )
        if kind is not None and kind.settle is not None:
            step = kind.settle(step)
        self.state, raw_outcome = step.after, step.outcome
        self.directory = self.structure.directory_of(self.state)
        if kind is not None and kind.show is not None and not isinstance(raw_outcome, Raised):
            return of_model(kind.show(raw_outcome))
        return of_model(raw_outcome)

    def _answer(
        self, before: Any, name: str, kind: OperationKind | None, arguments: Mapping[str, Any]
    ) -> Any:
        if kind is not None and kind.call_model is not None:
            return kind.call_model(before, **arguments)
        found = getattr(before, name)
        return found(**arguments) if callable(found) else found

    def situation(self) -> Situation:
        """Return where the model stands, for drawing the next operation."""
        return Situation(self.state, self.directory, self.opened)

    def is_usable(self) -> bool:
        """Return whether other operations than opening can succeed."""
        return self.state is not None and self.structure.is_usable(self.state)

    def observe(self) -> Mapping[str, Outcome]:
        """Return the accessors of the state."""
        if self.state is None:
            return {}
        return {name: self._observed(name) for name in self.structure.observed}

    def _observed(self, name: str) -> Outcome:
        found = getattr(self.state, name)
        return of_model(found() if callable(found) else found)

    def image(self) -> Mapping[str, bytes]:
        """Return the files of the model's directory."""
        return dict(self.directory.files)

    def describe(self) -> str:
        """Return the profile."""
        return f"reference model, profile {self.profile_name}"

    def stop(self) -> None:
        """Do nothing: a value holds nothing."""
