# SPDX-License-Identifier: Apache-2.0
"""Behaviours: what an older release, or segproof, does otherwise than the newest release.

A structure's file says what the newest release does. A behaviour is a class beside it: a sentence,
the laws that it bends, which releases have it, and for each structure that it changes a nested
class of that structure's name, derived from it, with the methods that are other ones. A release is
a list of behaviours.

Rules for a behaviour:

- Every method of a nested class is an `@override`, or has a docstring.
- Behaviours go on top of each other: the newest first, so that an older release's may call a newer
  one's by `super()`, and segproof's own last. Those that begin with one release do so by
  the names of their modules, and as a module writes them down.
- A change of a base class overrides the methods of derived classes, too. So override a step that no
  derived class overrides, not the operation around it.
- A guard is what many operations begin with: `@guarded("append resize", check)`. A context is what
  is around them: `@each("append resize", around)`.
- A behaviour is right alone too, on the newest release: so differences are explained. The one
  exception, `ActiveSegmentIsNotPrepared`, leaves work to three others, and is right beside them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from segproof_model.language.states import Released

if TYPE_CHECKING:
    from typing_extensions import override as override
else:

    def override(method):
        """Say that a method is one of the class above; the type checker holds it to that."""
        return method


R = TypeVar("R", bound=Released)
T = TypeVar("T", bound=type)


@dataclass(frozen=True, slots=True)
class Span:
    """The releases of one line that have a behaviour."""

    newest: str
    """The newest that has it, such as `4.0.0`."""
    oldest: str | None
    """The oldest that has it; None: each that is older has it, too."""
    but: tuple[str, ...]
    """Releases between them that do not."""


def up_to(newest: str, *, since: str | None = None, but: tuple[str, ...] = ()) -> Span:
    """Say which releases have a behaviour: this one and the older ones."""
    return Span(newest, since, but)


class Behaviour:
    """Something that is done otherwise than by the newest release."""

    laws: ClassVar[tuple[str, ...]] = ()
    """The laws that it bends."""
    releases: ClassVar[Span | None] = None
    """Which releases have it; None: segproof alone."""
    of_segproof: ClassVar[bool] = False
    """Whether segproof does so as well, or alone."""
    known: ClassVar[list[type["Behaviour"]]] = []
    """Every behaviour, as their modules were loaded."""

    def __init_subclass__(cls) -> None:
        Behaviour.known.append(cls)

    @classmethod
    def sentence(cls) -> str:
        """Return the difference in words: the first paragraph of the docstring."""
        return " ".join((cls.__doc__ or "").split("\n\n")[0].split())

    @classmethod
    def system(cls) -> str:
        """Return whose structures it changes: `kafka` or `rocketmq`."""
        return cls.__module__.split(".")[1]

    @classmethod
    def changes(cls) -> Iterator[type[Released]]:
        """Yield the nested classes: what is other, structure by structure."""
        for held in vars(cls).values():
            if isinstance(held, type) and issubclass(held, Released):
                yield held


@dataclass(frozen=True)
class Release:
    """A release, or segproof: its behaviours, those that stand on top of others last."""

    name: str
    behaviours: tuple[type[Behaviour], ...] = ()
    order: tuple[type[Behaviour], ...] = ()
    """All behaviours of the system, in the order in which they go on top of each other."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, which each class of a release is looked up by: made once."""
        return hash((self.name, self.behaviours))

    @cached_property
    def _kinds(self) -> dict[type, Any]:
        """The classes that were asked for, by those that they were made of."""
        return {}

    def has(self, behaviour: type[Behaviour]) -> bool:
        """Return whether this release has a behaviour."""
        return behaviour in self.behaviours

    def kind(self, structure: type[R]) -> type[R]:
        """Return the class of a structure as this release has it."""
        made = self._kinds.get(structure)
        if made is None:
            made = self._kinds[structure] = _kind_in(structure, self)  # type: ignore[arg-type]
        return made

    def flipped(self, behaviour: type[Behaviour]) -> "Release":
        """Return the release with the behaviour if it lacks it, else the release without it."""
        kept = set(self.behaviours) ^ {behaviour}
        return replace(self, behaviours=tuple(one for one in self.order if one in kept))


def differences(one: Release, other: Release) -> list[type[Behaviour]]:
    """Return the behaviours that one of two releases has and the other has not."""
    both = dict.fromkeys((*one.behaviours, *other.behaviours))
    return [behaviour for behaviour in both if one.has(behaviour) != other.has(behaviour)]


def changes_of(structure: type[Released], behaviours: Iterable[type[Behaviour]]) -> list[type]:
    """Return the nested classes of behaviours for a structure or its bases, the last one first."""
    return [
        change
        for behaviour in reversed(list(behaviours))
        for kind in structure.__mro__
        for change in behaviour.changes()
        if kind in change.__bases__
    ]


@cache
def _kind_in(structure: type[R], release: Release) -> type[R]:
    changes = changes_of(structure, release.behaviours)
    made = type(structure.__name__, (*changes, structure), {"release": release})
    made.__module__ = structure.__module__
    made.__doc__ = structure.__doc__
    return made


def each(names: str, around: Callable[[Any], AbstractContextManager[None]]) -> Callable[[T], T]:
    """Let methods of a class, given by their names, run inside of a context: `around(self)`.

    A behaviour says so once for many operations. A method that the class has no words for is the
    next one's, which `super()` would find.
    """

    def changed(kind: T) -> T:
        for name in names.split():
            assert hasattr(kind, name), f"{kind.__qualname__} has no {name}"
            setattr(kind, name, _inside(kind, name, vars(kind).get(name), around))
        return kind

    return changed


def _inside(kind: type, name: str, own: Any, around: Callable[[Any], Any]) -> Any:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        with around(self):
            if own is not None:
                return own(self, *arguments, **named)
            return getattr(super(kind, self), name)(*arguments, **named)

    return wraps(own or getattr(kind, name))(method)


def guarded(names: str, check: Callable[[Any], object]) -> Callable[[T], T]:
    """Let methods of a class, given by their names, begin with a check of the object."""

    def changed(kind: T) -> T:
        for name in names.split():
            assert hasattr(kind, name), f"{kind.__qualname__} has no {name}"
            setattr(kind, name, _checked(kind, name, vars(kind).get(name), check))
        return kind

    return changed


def _checked(kind: type, name: str, own: Any, check: Callable[[Any], object]) -> Any:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        check(self)
        if own is not None:
            return own(self, *arguments, **named)
        return getattr(super(kind, self), name)(*arguments, **named)

    return wraps(own or getattr(kind, name))(method)
