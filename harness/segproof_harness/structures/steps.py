# SPDX-License-Identifier: Apache-2.0
"""What a history begins with, where the model stands in it, and its steps as they are seen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Setup:
    """What a history begins with: the directory, and the arguments of the first opening."""

    arguments: Mapping[str, Value]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def to_operation(self) -> Operation:
        """Return the opening as an operation, for messages."""
        return Operation("open", self.arguments)


@dataclass(slots=True)
class Situation:
    """Where the model stands when an argument is drawn; nobody changes one.

    Neither this nor `Event` is frozen, since that would triple the time to make one.
    """

    state: Any
    """The model's state; None where nothing is open."""
    files: Any
    """The model's Files."""
    opened: Mapping[str, Value]
    """Arguments of the last opening."""

    @property
    def now_ms(self) -> int:
        """What time it is, in milliseconds since 1970."""
        return int(self.files.now_ms)


@dataclass(slots=True)
class Event:
    """One step as the `sometimes` predicates see it; a state is None where nothing is open."""

    before: Any
    operation: Operation
    after: Any
    outcome: Outcome

    def does(self, *names: str) -> bool:
        """Return whether it is one of these operations."""
        return self.operation.name in names

    def done(self, *names: str) -> bool:
        """Return whether it is one of these operations, and no error."""
        return self.operation.name in names and self.outcome.error is None

    def refused(self, kind: str, *names: str) -> bool:
        """Return whether it is one of these operations, and refused with this kind of error."""
        return self.operation.name in names and self.outcome.error == kind

    def argument(self, name: str) -> Any:
        """Return an argument of the operation."""
        return self.operation.arguments[name]


States = Mapping[str, Callable[[Event], bool]]
"""States that a step can be in, by name."""
OPENED_AGAIN: States = {
    "reopened": lambda event: event.does("reopen") and event.after is not None,
    "crash-reopened": lambda event: event.does("crash_reopen") and event.after is not None,
}
