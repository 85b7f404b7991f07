# SPDX-License-Identifier: Apache-2.0
"""The register of laws: id, sentence, source, predicate and subject of each.

A predicate is an ordinary function that returns whether the law holds. Its first docstring
paragraph is the law's sentence. Its parameters say by name what it judges:

- `step`: one operation seen from outside, a `Transition`; judged after every step of every machine
  and replay. `on` names the operations that the law speaks of;
- `state`: one state of the structure; judged after every step, too;
- names of files and what is needed to read them (`log`, `offset_index`, `base_offset`, ...): judged
  on the bytes of a partition or store, by `verify` as well;
- anything else: the arguments and the answer of a pure function; judged on drawn values.

A law that only repeated an operation is retired: the operation says it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Literal, TypeVar

from segproof_model.language.behaviours import Behaviour
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import HasKinds, Released, differing
from segproof_model.laws.kept_answers import kept

Predicate = TypeVar("Predicate", bound=Callable[..., bool])
View = TypeVar("View")
Judge = Callable[[View], bool]
Scope = Literal["state", "step", "file", "disk", "pure"]
Behaviours = type[Behaviour] | tuple[type[Behaviour], ...]
"""One, or several."""
ONE_FILE = frozenset(
    {"image", "index_file", "log", "offset_index", "raw_image", "raw_index_file", "time_index"}
) | {"transaction_index"}
MANY_FILES = frozenset({"entire", "files", "followed", "logs", "next_base_offset", "store"})
"""Names of parameters that need several files."""


@dataclass(slots=True)
class Transition:
    """One operation seen from outside: what laws about steps judge; nobody changes one.

    It is not frozen, since that would triple the time to make one.
    """

    kind: type[Released]
    """The class of the structure."""
    before: Any
    """State before the operation; of an opening, the files."""
    operation: str
    """Name of the operation, as the structure's method is called, or `open`."""
    arguments: Mapping[str, Any]
    """The operation's arguments by name."""
    after: Any
    """State after the operation, the same object as `before` for a query; of an opening that
    failed, the files."""
    outcome: object
    """The returned value or `Raised`."""

    @property
    def answer(self) -> Any:
        """The outcome, to a law that knows what such an operation returns."""
        return self.outcome

    @property
    def succeeded(self) -> bool:
        """Whether the operation raised nothing."""
        return not isinstance(self.outcome, Raised)

    def raised(self, kind: ErrorKind) -> bool:
        """Return whether the operation raised an error of this kind."""
        return isinstance(self.outcome, Raised) and self.outcome.kind == kind

    def refused(self, kind: ErrorKind) -> bool:
        """Return whether the operation raised this kind and changed nothing."""
        return self.raised(kind) and self.is_unchanged

    @property
    def is_unchanged(self) -> bool:
        """Whether the state is as it was before."""
        return bool(self.after == self.before)

    def changed_only(self, names: str = "") -> bool:
        """Return whether only these attributes differ from before."""
        return differing(self.before, self.after) <= set(names.split())


@dataclass(frozen=True, slots=True)
class Law:
    """One sentence of a structure's contract."""

    law_id: str
    of: type[Released] | str
    """The class whose states and steps it judges, and those derived from it; or the structure's
    name, where there is no class."""
    source: str
    """The source: upstream class and release."""
    predicate: Callable[..., bool]
    judges: tuple[str, ...]
    """The names of the things it judges."""
    on: tuple[str, ...]
    """The operations that it judges; empty: all."""
    unless: tuple[type[Behaviour], ...]
    """Behaviours that bend it: a release that has one is not judged by it."""
    only: tuple[type[Behaviour], ...]
    """Behaviours that promise it: a release without one of them is not judged by it."""

    @property
    def sentence(self) -> str:
        """The law in words."""
        return _sentence_of(self.predicate)

    @property
    def scope(self) -> Scope:
        """The kind of thing it judges: a state, a step, one file, files beside each other, a
        function.
        """
        if self.judges in (("state",), ("step",)):
            return "state" if self.judges == ("state",) else "step"
        judged = ONE_FILE.intersection(self.judges)
        if len(judged) > 1 or MANY_FILES.intersection(self.judges):
            return "disk"
        if judged:
            return "file"
        return "disk" if "DISK" in self.law_id else "pure"

    @property
    def structure(self) -> str:
        """The structure's name, as `offset-index`."""
        return structure_name(self.of)

    def speaks_of(self, release: HasKinds | None) -> bool:
        """Return whether a release is judged by it."""
        if release is None:
            return not self.only
        return not any(map(release.has, self.unless)) and all(map(release.has, self.only))


@dataclass(frozen=True, slots=True)
class Retired:
    """A law that an operation of the model says."""

    law_id: str
    of: type[Released] | str
    sentence: str
    said_by: Callable[..., Any] | property
    """The method."""
    scope: ClassVar[Scope] = "step"

    @property
    def structure(self) -> str:
        """The structure's name, as `offset-index`."""
        return structure_name(self.of)

    @property
    def place(self) -> str:
        """The place of the method, as `kafka/format/time_index.py: TimeIndex.lookup`."""
        method = self.said_by.fget if isinstance(self.said_by, property) else self.said_by
        assert method is not None
        file = method.__module__.partition(".")[2].replace(".", "/")
        return f"{file}.py: {method.__qualname__}"


LAWS: dict[str, Law] = {}
"""Every law that is judged, by id, in the order of definition."""
RETIRED: dict[str, Retired] = {}
"""The laws that operations say."""


def law(
    law_id: str,
    of: type[Released] | str,
    source: str,
    *,
    on: str = "",
    unless: Behaviours = (),
    only: Behaviours = (),
) -> Callable[[Predicate], Predicate]:
    """Enter the decorated predicate into `LAWS`. An id can be entered once.

    Raises TypeError where `unless` or `only` names what is no behaviour.
    """
    bent, promised = (one if isinstance(one, tuple) else (one,) for one in (unless, only))
    for one in (*bent, *promised):
        if one not in Behaviour.known:
            raise TypeError(f"law {law_id}: {one!r} is no behaviour")

    def enter(predicate: Predicate) -> Predicate:
        _check_new(law_id)
        judges = tuple(signature(predicate).parameters)
        LAWS[law_id] = Law(law_id, of, source, predicate, judges, tuple(on.split()), bent, promised)
        return predicate

    return enter


def laws_of(
    view: Callable[[Transition], View | None], kind: type[Released], origin: str, on: str
) -> Callable[..., Callable[[Judge[View]], Callable[[Transition], bool]]]:
    """Return what enters a law of a certain kind of step, as it judges a view of one: `@enter(id)`,
    or `@enter(id, source, *unless)`. A step that has no view keeps the law."""
    seen = kept(view)

    def enter(
        law_id: str, source: str = origin, *unless: type[Behaviour]
    ) -> Callable[[Judge[View]], Callable[[Transition], bool]]:
        def decorate(judge: Judge[View]) -> Callable[[Transition], bool]:
            def predicate(step: Transition) -> bool:
                found = seen(step)
                return found is None or judge(found)

            for name in ("__doc__", "__module__", "__name__"):
                setattr(predicate, name, getattr(judge, name))
            return law(law_id, kind, source, on=on, unless=unless)(predicate)

        return decorate

    return enter


def retired(
    law_id: str, of: type[Released] | str, sentence: str, said_by: Callable[..., Any] | property
) -> None:
    """Enter a law that an operation says into `RETIRED`. An id can be entered once."""
    _check_new(law_id)
    RETIRED[law_id] = Retired(law_id, of, sentence, said_by)


def has(state: Released | type[Released], behaviour: type[Behaviour]) -> bool:
    """Return whether the release of a state, or of a class, has a behaviour."""
    return state.release is not None and state.release.has(behaviour)


def structure_name(of: type[Released] | str) -> str:
    """Return a structure's name, which is that of its module: `record-file` of RecordRange."""
    return of if isinstance(of, str) else of.__module__.rpartition(".")[2].replace("_", "-")


def broken_state_laws(state: Released) -> list[str]:
    """Return the ids of the laws that a state breaks."""
    laws = _laws_of(type(state), "state")  # type: ignore[arg-type]  # a class can be hashed
    return [one.law_id for one in laws if not one.predicate(state)]


def broken_step_laws(step: Transition) -> list[str]:
    """Return the ids of the laws that a step breaks."""
    laws = _laws_of(step.kind, "step", step.operation)  # type: ignore[arg-type]  # as below
    return [one.law_id for one in laws if not one.predicate(step)]


@cache
def _laws_of(kind: type[Released], judged: str, operation: str = "") -> tuple[Law, ...]:
    """Return the laws about a class of a release that judge a state, or a step of an operation."""
    return tuple(
        one
        for one in LAWS.values()
        if one.judges == (judged,)
        and one.of in kind.__mro__
        and (not one.on or operation in one.on)
        and one.speaks_of(kind.release)
    )


def _check_new(law_id: str) -> None:
    if law_id in LAWS or law_id in RETIRED:
        raise ValueError(f"law {law_id} is defined twice")


def _sentence_of(predicate: Callable[..., bool]) -> str:
    return " ".join((predicate.__doc__ or "").split("\n\n")[0].split())
