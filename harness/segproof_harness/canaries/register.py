# SPDX-License-Identifier: Apache-2.0
"""The register of canaries: a planted defect enters itself where it is written.

To add one, write a subclass of an implementation in a module of this package, decorate it with
`@canary(id, structure, laws that it breaks)`, and let its docstring say what is planted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Subject = TypeVar("Subject", bound=type)


@dataclass(frozen=True, slots=True)
class Canary:
    """One planted defect."""

    canary_id: str
    structure_id: str
    subject: type
    """The implementation with the defect."""
    laws: tuple[str, ...]
    """Laws that it breaks."""

    @property
    def subject_name(self) -> str:
        """What `--subjects` takes."""
        return f"{self.subject.__module__}:{self.subject.__qualname__}"

    @property
    def defect(self) -> str:
        """What was planted, in words."""
        return (self.subject.__doc__ or "").split("\n\n")[0]


CANARIES: dict[str, Canary] = {}
"""Every planted defect of the modules that were imported, by id."""


def canary(canary_id: str, structure_id: str, *laws: str) -> Callable[[Subject], Subject]:
    """Enter the decorated class into `CANARIES`. Raises ValueError for an id that was entered."""

    def enter(subject: Subject) -> Subject:
        if canary_id in CANARIES:
            raise ValueError(f"canary {canary_id} is defined twice")
        CANARIES[canary_id] = Canary(canary_id, structure_id, subject, laws)
        return subject

    return enter
