# SPDX-License-Identifier: Apache-2.0
"""The reference model as a subject."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.structures.kinds import hints_of
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.outcomes import Outcome, of_model
from segproof_harness.structures.steps import Event, Setup, Situation
from segproof_harness.structures.structure import OperationKind, Structure
from segproof_harness.subjects.base import OPENED
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply, outcome_of
from segproof_model.laws.register import Transition


class ModelSubject:
    """The model of one release. Raises ValueError for one of another system."""

    def __init__(self, structure: Structure, release: Release, name: str = "model") -> None:
        structure.check_profile(release.name)
        self.structure = structure
        self.release = release
        self.name = name
        self.profile_name = release.name
        self.state: Any = None
        self.files = Files()
        self.opened: Mapping[str, Value] = {}
        self.event: Event | None = None
        """The last step, for the `sometimes` predicates."""
        self.transitions: list[Transition] = []
        """What the last step did, for the laws; reopening is a closing and an opening."""
        self._class = structure.model_class()
        self._kinds = {"close": OperationKind("close"), **structure.by_name()}

    def start(self, setup: Setup) -> Outcome:
        """Begin with the setup's files and open."""
        self.state, self.files, self.transitions = None, Files(setup.files), []
        outcome = self._open(setup.arguments)
        self.event = Event(None, setup.to_operation(), self.state, outcome)
        return outcome

    def _open(self, arguments: Mapping[str, Value]) -> Outcome:
        self.opened = arguments
        self.files = self._files_found(arguments)
        step = self.structure.open_model(arguments, self.files, self.release)
        is_open = not isinstance(step.outcome, Raised)
        given = self.structure.constructed(arguments)
        kind = type(step.after) if is_open else self.release.kind(self.structure.model_class())
        self.transitions.append(
            Transition(kind, self.files, "open", given, step.after, step.outcome)
        )
        self.state = step.after if is_open else None
        self.files = step.after.files if is_open else step.after
        return OPENED if is_open else of_model(step.outcome)

    def _files_found(self, arguments: Mapping[str, Any]) -> Files:
        """Return the files as an opening finds them: damaged, and at its time."""
        images, now_ms = self.files.images, self.files.now_ms
        if self.structure.damage is not None and arguments.get("damage", True):
            images = self.structure.damage(arguments, dict(sorted(images.items())))
        return Files(images, arguments["now_ms"] if self.structure.takes_clock else now_ms)

    def apply(self, operation: Operation) -> Outcome:
        """Execute one operation."""
        before = self.state
        self.transitions = []
        if operation.name in ("reopen", "crash_reopen"):
            outcome = self._reopen(operation)
        elif before is None:
            outcome = Outcome.NOT_OPEN
        else:
            outcome = self._call(operation)
        self.event = Event(before, operation, self.state, outcome)
        return outcome

    def _reopen(self, operation: Operation) -> Outcome:
        closed = Outcome()
        if operation.name == "reopen" and self.state is not None:
            closed = self._call(Operation("close"))
        self.state = None
        opened = self._open(operation.arguments)
        return closed if closed.error is not None else opened

    def _call(self, operation: Operation) -> Outcome:
        kind, before = self._kinds[operation.name], self.state
        arguments: Mapping[str, Any] = operation.arguments
        if not kind.is_plain:
            method = kind.call_model or getattr(self._class, kind.name, None)
            arguments = kind.arguments_for(arguments, hints_of(method))
        call = _set_clock if kind.sets_clock else kind.call_model or kind.name
        if kind.is_query:
            ask = kind.call_model or getattr(type(before), kind.name)
            after, outcome = before, outcome_of(ask, before, **arguments)
        else:
            step = apply(before, call, **arguments)
            after, outcome = step.after, step.outcome
        self.transitions.append(
            Transition(type(before), before, kind.name, arguments, after, outcome)
        )
        self.state, self.files = after, after.files
        if kind.show is not None and not isinstance(outcome, Raised):
            return of_model(kind.show(outcome))
        return of_model(outcome)

    def situation(self) -> Situation:
        """Return where the model stands, for drawing the next operation."""
        return Situation(self.state, self.files, self.opened)

    def is_usable(self) -> bool:
        """Return whether other operations than opening can succeed."""
        return self.state is not None and self.structure.is_usable(self.state)

    def observe(self) -> Mapping[str, Outcome]:
        """Return the accessors of the state."""
        if self.state is None:
            return {}
        return {
            name: of_model(outcome_of(self._observed, name)) for name in self.structure.observed
        }

    def _observed(self, name: str) -> Any:
        found = getattr(self.state, name)
        return found() if callable(found) else found

    def image(self) -> Mapping[str, bytes]:
        """Return the model's files."""
        return dict(self.files.images)

    def describe(self) -> str:
        """Return the profile."""
        return f"reference model, profile {self.profile_name}"

    def stop(self) -> None:
        """Do nothing: a value holds nothing."""


def _set_clock(draft: Any, now_ms: int) -> None:
    draft.files.now_ms = now_ms
