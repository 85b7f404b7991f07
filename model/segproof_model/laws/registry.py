# SPDX-License-Identifier: Apache-2.0
"""The register of laws: id, sentence, source and predicate of each.

A predicate is an ordinary function that returns whether the law holds. Its first docstring
paragraph is the law's sentence. What it takes is its `scope`:

- `state`: one state of the structure; checked after every step of every machine and replay;
- `step`: a `Transition`; checked for every step;
- `file`: the bytes of a file and what is needed to read them; checked by `verify` too;
- `disk`: the bytes of several files of one partition beside each other; checked by `verify`;
- `pure`: the arguments of one pure function (a codec, an arithmetic rule); checked on drawn values.

Used by: the modules of this package, the harness, the generated pages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Scope = Literal["state", "step", "file", "disk", "pure"]
Predicate = TypeVar("Predicate", bound=Callable[..., bool])


@dataclass(frozen=True, slots=True)
class Transition:
    """One operation seen from outside: what `step` laws judge."""

    before: Any
    """State before the operation."""
    operation: str
    """Name of the operation, as the structure's method is called."""
    arguments: Mapping[str, Any]
    """The operation's arguments by name."""
    after: Any
    """State after the operation; the same object as `before` for a query."""
    outcome: object
    """The returned value or `Raised`."""


@dataclass(frozen=True, slots=True)
class Law:
    """One sentence of a structure's contract."""

    law_id: str
    structure: str
    scope: Scope
    source: str
    """Where upstream it comes from: class and release."""
    predicate: Callable[..., bool]

    @property
    def sentence(self) -> str:
        """The law in words."""
        text = (self.predicate.__doc__ or "").split("\n\n")[0]
        return " ".join(text.split())


LAWS: dict[str, Law] = {}
"""Every law that the model states, by id, in the order of definition."""


def law(
    law_id: str, *, structure: str, scope: Scope, source: str
) -> Callable[[Predicate], Predicate]:
    """Enter the decorated predicate into `LAWS`. An id can be entered once."""

    def enter(predicate: Predicate) -> Predicate:
        if law_id in LAWS:
            raise ValueError(f"law {law_id} is defined twice")
        LAWS[law_id] = Law(law_id, structure, scope, source, predicate)
        return predicate

    return enter
