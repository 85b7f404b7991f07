# SPDX-License-Identifier: Apache-2.0
"""What a structure has to say of itself, so that its histories can crash."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.machine.simulated_files import SimulatedFiles

__all__ = ["Fault", "Operation", "World", "operations_of"]


class Operation(NamedTuple):
    """One step of a history."""

    name: str
    number: int
    """What the step's arguments are drawn from."""

    def __str__(self) -> str:
        return f"{self.name}:{self.number}"


def operations_of(text: str) -> list[Operation]:
    """Return the history that a text names, as `append:12 flush:7`. Raises: ValueError."""
    found = []
    for word in text.split():
        name, colon, number = word.partition(":")
        if not (name and colon and number.isascii() and number.isdigit()):
            raise ValueError(f"{word!r} is not an operation, such as append:12")
        found.append(Operation(name, int(number)))
    return found


class Fault(NamedTuple):
    """What is wrong after a crash."""

    kind: str
    """The promise that is broken, in few words: faults of one kind are counted together."""
    words: str


class World(Protocol):
    """A structure in simulated files, with a record of what it promised.

    One object lives for one history. A state is a value: what was acknowledged at a moment.
    """

    weights: dict[str, int]
    """How often each operation is drawn."""
    next_steps: tuple[Operation, ...]
    """What is done to see whether it goes on after a call that failed."""

    def begin(self, files: SimulatedFiles) -> None:
        """Start in empty files."""

    def apply(self, operation: Operation) -> None:
        """Do one operation. Raises: SegproofError where it is refused, with nothing changed."""

    def state(self) -> Any:
        """Return what is promised now."""

    def live_faults(self, before: Any, after: Any) -> Iterable[Fault]:
        """Yield what is wrong with what it answers, after a failed operation between two states.

        It may be closed; then it has to say so.
        """

    def is_closed(self) -> bool:
        """Return whether it takes no more changes."""

    def open_again(self) -> None:
        """Open what is closed, on the machine on which a call failed."""

    def load(self, files: MemoryFiles) -> Any:
        """Load what a crash left, and return it; an error that is raised is a fault."""

    def look_at(self, loaded: Any, files: MemoryFiles) -> Any:
        """Return what was found in what `load` returned, and use it as long as it takes."""

    def judge(self, found: Any, before: Any, after: Any) -> Sequence[Fault]:
        """Return what is wrong with what was found after a crash between two states."""
