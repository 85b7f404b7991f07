# SPDX-License-Identifier: Apache-2.0
"""The plain model beside the older one, until it has taken its place: how each is driven."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from segproof_harness.operations import Operation, Value
from segproof_harness.outcomes import Outcome, of_model
from segproof_harness.structures import Setup, Structure
from segproof_harness.subjects.base import OPENED
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised, Step
from segproof_model.language.states import apply
from segproof_model.laws.register import LAWS, Transition


@dataclass(frozen=True)
class Plain:
    """How a structure of the plain model is driven; it becomes the structure's description."""

    open: Callable[..., Step[Any]]
    """`f(arguments, files, release)` returns a Step whose `after` is a State or the Files."""
    calls: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """`f(draft, **arguments)` where the method of that name, given what the operation's `adapt`
    makes of the arguments, won't do. The arguments are the operation's own."""
    shows: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """In place of the operation's `show`."""
    seen: Callable[[Any], Any] = lambda state: None
    """What a state holds beside the files: compared with `seen_of_old` of the older model."""
    seen_of_old: Callable[[Any], Any] = lambda state: None
    files_of: Callable[[Any], Any] = lambda state: state.files
    has: Callable[[Release, Operation], bool] = lambda release, operation: True
    """Whether a release has an operation; others are not compared."""
    kind: Any = None
    """The class that is opened."""
    judged: Mapping[str, Callable[..., Mapping[str, Any]]] = field(default_factory=dict)
    """What the laws are given in place of an operation's own arguments: those of the method."""
    also_broken: Callable[[Transition], Iterable[str]] = lambda step: ()
    """The ids of the laws that a step breaks beside those about it and the state that it leaves:
    about what the structure holds or answers."""


def plain_of(structure_id: str) -> Plain:
    """Return how the plain model of a structure is driven."""
    module = import_module(f"segproof_harness.plain.{structure_id.replace('-', '_')}")
    plain: Plain = module.PLAIN
    return plain


def broken_law(law_id: str, release: Release | None, *given: Any) -> list[str]:
    """Return the law, which judges what is given, if a release breaks it."""
    one = LAWS[law_id]
    return [law_id] if one.speaks_of(release) and not one.predicate(*given) else []


class PlainSubject:
    """The plain model of one release."""

    def __init__(self, structure: Structure, release: Release) -> None:
        self.structure, self.release = structure, release
        self.name, self.profile_name = f"plain:{release.name}", release.name
        self.plain = plain_of(structure.structure_id)
        self.state: Any = None
        self.files = Files()
        self.transitions: list[Transition] = []
        """What the last step did, for the laws."""

    def start(self, setup: Setup) -> Outcome:
        """Begin with the setup's files and open."""
        self.state, self.files, self.transitions = None, Files(setup.files), []
        return self._open(setup.arguments)

    def _open(self, arguments: Mapping[str, Value]) -> Outcome:
        if self.structure.damage is not None and arguments.get("damage", True):
            damaged = self.structure.damage(arguments, dict(self.files.images))
            self.files = Files(damaged, self.files.now_ms)
        step = self.plain.open(arguments, self.files, self.release)
        if self.plain.kind is not None:
            kind = self.release.kind(self.plain.kind)
            given = self.plain.judged.get("open", dict)(**arguments)
            self.transitions.append(
                Transition(kind, self.files, "open", given, step.after, step.outcome)
            )
        if isinstance(step.outcome, Raised):
            self.state, self.files = None, step.after
            return of_model(step.outcome)
        self.state, self.files = step.after, self.plain.files_of(step.after)
        return OPENED

    def apply(self, operation: Operation) -> Outcome:
        """Execute one operation."""
        self.transitions = []
        if operation.name in ("reopen", "crash_reopen"):
            closed = Outcome()
            if operation.name == "reopen" and self.state is not None:
                closed = self._call(Operation("close"))
            self.state = None
            opened = self._open(operation.arguments)
            return closed if closed.error is not None else opened
        return Outcome.NOT_OPEN if self.state is None else self._call(operation)

    def _call(self, operation: Operation) -> Outcome:
        name, kind = operation.name, self.structure.operation(operation.name)
        arguments: Mapping[str, Any] = operation.arguments
        call: Any = self.plain.calls.get(name, name)
        if call is name and kind is not None and kind.sets_clock:
            call = _set_clock
        elif call is name and kind is not None and kind.adapt is not None:
            arguments = kind.adapt(arguments)
        step = apply(self.state, call, **arguments)
        judged = self.plain.judged.get(name, dict)(**arguments)
        self.transitions.append(
            Transition(type(self.state), self.state, name, judged, step.after, step.outcome)
        )
        self.state, self.files = step.after, self.plain.files_of(step.after)
        show = self.plain.shows.get(name, kind.show if kind is not None else None)
        if show is not None and not isinstance(step.outcome, Raised):
            return of_model(show(step.outcome))
        return of_model(step.outcome)

    def observe(self) -> Mapping[str, Outcome]:
        """Return the accessors of the state."""
        if self.state is None:
            return {}
        names = self.structure.observed
        return {name: of_model(apply(self.state, name).outcome) for name in names}

    def image(self) -> Mapping[str, bytes]:
        """Return the files of the model's directory."""
        return dict(self.files.images)

    def describe(self) -> str:
        """Return the release."""
        return f"plain model, {self.release.name}"

    def stop(self) -> None:
        """Do nothing: a value holds nothing."""


def _set_clock(state: Any, now_ms: int) -> None:
    state.files.now_ms = now_ms
