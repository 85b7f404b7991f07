# SPDX-License-Identifier: Apache-2.0
"""States: plain objects that an operation changes, and that are values to whoever drives them.

The model is ordinary Python. A structure is an object with attributes; its methods change them and
call methods of its parts; `refuse` ends an operation where the caller would see an error, and what
was changed before it stays changed. Whoever drives the model wants values instead: a state that
stays as it was, and beside it the state that an operation left and what was seen. Only `apply`
makes such values: it lets the method change a draft of the state.

Rules for a State:

- Its attributes are values, other States (its parts), or tuples of States. A value is replaced,
  never changed in place.
- Parts form a tree, but for the files: `files` is the one `Files` that a State and all its parts
  hold. A State whose parts have files has them itself.
- What an operation returns holds no State of its draft.
- Only what was constructed, or handed out by `apply`, is held from one operation to the next.

A draft is made of a State when it is first touched, so an operation on one part of many costs what
that part costs.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar

from segproof_model.language.outcomes import ErrorKind, Raised, Step

S = TypeVar("S", bound="State")
R = TypeVar("R", bound="Released")
A = TypeVar("A")


class Refused(Exception):  # noqa: N818 - the model's word for an error that the caller sees
    """The caller sees an error of this kind; what was changed before it stays changed."""

    def __init__(self, kind: ErrorKind) -> None:
        super().__init__(kind)
        self.kind = kind


def refuse(kind: ErrorKind) -> NoReturn:
    """End the operation with an error of this kind."""
    raise Refused(kind)


def refusal(do: Callable[[], object]) -> Refused | None:
    """Do this, and return how it was refused, if it was; what it changed stays changed."""
    try:
        do()
    except Refused as error:
        return error
    return None


def outcome_of(ask: Callable[..., A], *arguments: Any, **named: Any) -> A | Raised:
    """Return an answer, or `Raised` if it is refused: for callers that ask a State directly."""
    try:
        return ask(*arguments, **named)
    except Refused as error:
        return Raised(error.kind)


class HasKinds(Protocol):
    """A release, as a structure knows it."""

    @property
    def name(self) -> str:
        """The name, such as `kafka-4.3.1`."""

    def has(self, behaviour: type) -> bool:
        """Return whether this release has a behaviour."""

    def kind(self, structure: type[R]) -> type[R]:
        """Return the class of a structure as this release has it."""


class Released:
    """Something that releases may do otherwise: a class that behaviours change."""

    release: ClassVar[HasKinds | None] = None
    """The release that this class was made for; None: the newest, as its file says."""

    def kind(self, structure: type[R]) -> type[R]:
        """Return the class of another structure as the same release has it."""
        return structure if self.release is None else self.release.kind(structure)


class State(Released):
    """An object that is drafted, changed, and then a value again.

    >>> class Counter(State):
    ...     def __init__(self): self.count = 0
    ...     def add(self, number):
    ...         self.count += number
    ...         return self.count if number > 0 else refuse(ErrorKind.INVALID_ARGUMENT)
    >>> two = apply(Counter(), "add", 2).after
    >>> apply(two, "add", -1).outcome.kind.value, apply(two, "add", -1).after.count, two.count
    ('invalid-argument', 1, 2)
    >>> apply(two, "add", 5).after == apply(two, "add", 5).after, two == Counter()
    (True, False)
    >>> apply(two, "count").after is two
    True
    """

    not_compared: ClassVar[frozenset[str]] = frozenset()
    """Attributes that are no part of the value."""

    if not TYPE_CHECKING:  # for whom it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            """Return a draft of a part that was not touched yet."""
            return _first_touched(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if "_values" in self.__dict__:  # it is a value, not a draft
            raise TypeError(f"{type(self).__name__} is a value: change {name!r} through apply")
        self.__dict__[name] = value

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, State) and _is_equal(self, other))

    __hash__ = None  # type: ignore[assignment]  # a draft changes; values are known by identity


def apply(state: S, operation: str | Callable[..., Any], *arguments: Any, **named: Any) -> Step[S]:
    """Return the state that an operation leaves, and its answer or `Raised`.

    The operation is the name of a method or property, or any function of the state: that is how a
    driver does several things in one step. What changed nothing leaves the very same state.
    """
    draft = draft_of(state)
    try:
        if not isinstance(operation, str):
            outcome = operation(draft, *arguments, **named)
        else:
            found = getattr(draft, operation)
            outcome = found(*arguments, **named) if callable(found) else found
    except Refused as error:
        outcome = Raised(error.kind)
    if isinstance(outcome, State):
        raise TypeError(f"{operation} answers a State, which would be of a draft that is gone")
    return Step(left_of(state, draft), outcome)


def opened(kind: Callable[..., S], files: State, *arguments: Any, **named: Any) -> Step[State]:
    """Return a new structure over a draft of these files; after a failure only the files."""
    left = draft_of(files)
    try:
        return Step(frozen(kind(left, *arguments, **named)))
    except Refused as error:
        return Step(frozen(left), Raised(error.kind))


class undone_if_refused:  # noqa: N801 - it reads as a statement: `with undone_if_refused(self)`
    """Do what follows wholly or not at all: an error leaves the state, and its parts, as before.

    It may stand in another one, or between changes of the same draft.
    """

    def __init__(self, state: State) -> None:
        self.state = state

    def __enter__(self) -> None:
        self.before = [(one, one.__dict__.copy()) for one in _touched(self.state)]

    def __exit__(self, kind: type[BaseException] | None, *unused: object) -> None:
        if kind is not None and issubclass(kind, Refused):
            for one, held in self.before:
                one.__dict__.clear()
                one.__dict__.update(held)


# --- values and drafts ---------------------------------------------------------------------------
# The dictionary of a value has two more entries: `_values`, its attributes that hold no State, and
# `_parts`, the others. A draft begins with the values, and knows its `_source`, from which parts
# are drafted when they are touched. A part in `_parts` may be of an older version: it holds what it
# held, but its files are those of whoever holds it.


VALUES = frozenset({int, str, bytes, bool, type(None)})
"""Types of attributes that need no second look: they hold no State."""
OWN = frozenset({"files", "_source", "_parts", "_values"})
"""Names in a State's dictionary that are not told apart as values and parts."""


def draft_of(state: S) -> S:
    """Return a copy that may be changed; the given state is a value from now on."""
    files = frozen(state).__dict__.get("files")
    return _drafted(state, None if files is None else _drafted(files, None))


def frozen(state: S) -> S:
    """Make a value of what was constructed or changed, its parts included."""
    held = state.__dict__
    if "_values" in held:
        return state
    source = held.pop("_source", None)
    known = {} if source is None else source.__dict__["_parts"]
    parts = {name: part for name, part in known.items() if name not in held}
    values: dict[str, Any] = {}
    for name, value in held.items():
        if type(value) in VALUES:
            values[name] = value
        elif name == "files":
            frozen(value)
        elif isinstance(value, State):
            parts[name] = frozen(value)
        elif _is_of_states(value):
            parts[name] = tuple([frozen(one) for one in value])
        else:
            values[name] = value
    held["_parts"], held["_values"] = parts, values
    return state


def left_of(state: S, draft: S) -> S:
    """Return the value of a draft: the same state if the draft was not changed."""
    files, left = state.__dict__.get("files"), draft.__dict__.get("files")
    is_as_before = _is_as_drafted(draft) and (left is None or _is_drafted_of(left, files))
    return state if is_as_before else frozen(draft)


def differing(one: State, other: State) -> set[str]:
    """Return the names of the attributes in which two states of one class differ."""
    if one is other:
        return set()
    held, at_other = vars(one), vars(other)
    found = set() if held.get("files") == at_other.get("files") else {"files"}
    # Of two values most often nothing differs but the files.
    is_alike = "_values" in held and held["_values"] == at_other.get("_values")
    if is_alike and held["_parts"] == at_other["_parts"]:
        return found
    mine, others = dict(_content(one)), dict(_content(other))
    names = (name for name in mine | others if mine.get(name) is not others.get(name))
    return found.union(name for name in names if not _is_same(mine.get(name), others.get(name)))


def is_same_but_for_files(one: State, other: State) -> bool:
    """Return whether two states of one class differ in nothing, or in their files alone."""
    held, at_other = vars(one), vars(other)
    # A value and what it is beside other files share their attributes.
    is_shared = "_values" in held and held["_values"] is at_other.get("_values")
    if is_shared and held["_parts"] is at_other["_parts"]:
        return True
    return _is_same(one, other)


def _first_touched(state: State, name: str) -> Any:
    """Return a part that lies in the source of a draft, or in an older version: then it is here."""
    held = state.__dict__
    is_value = "_values" in held
    source = held if is_value else vars(held["_source"]) if "_source" in held else {}
    parts = source.get("_parts", {})
    if name not in parts:
        raise AttributeError(f"{type(state).__name__} has no {name}", name=name, obj=state)
    found, files = parts[name], held.get("files")
    version = _beside if is_value else _drafted
    held[name] = (
        tuple([version(one, files) for one in found])
        if type(found) is tuple
        else version(found, files)
    )
    return held[name]


def _drafted(value: S, files: State | None) -> S:
    """Return a draft of a value, over these files."""
    draft = object.__new__(type(value))
    held, of_value = draft.__dict__, value.__dict__
    held.update(of_value["_values"])
    held["_source"] = value
    if "files" in of_value:
        held["files"] = files
    return draft


def _beside(value: S, files: State | None) -> S:
    """Return a value as it is beside these files."""
    if vars(value).get("files") is files:
        return value
    made = _drafted(value, files)
    held, of_value = vars(made), vars(value)
    held["_parts"], held["_values"] = of_value["_parts"], of_value["_values"]
    del held["_source"]
    return made


def _is_of_states(value: object) -> bool:
    return type(value) is tuple and bool(value) and isinstance(value[0], State)


def _content(state: State) -> Iterator[tuple[str, Any]]:
    """Yield what a state holds beside its files, by name; a part perhaps of an older version."""
    held = vars(state)
    if "_values" in held:
        yield from held["_values"].items()
        yield from held["_parts"].items()
        return
    for name, value in list(held.items()):
        if name not in OWN:
            yield name, value
    if "_source" in held:
        for name, part in vars(held["_source"])["_parts"].items():
            if name not in held:
                yield name, part


def _touched(state: State) -> list[State]:
    """Return each State of a draft that is no longer as it lies in the source, the files too."""
    found = {id(state): state}
    waiting = [state]
    for holder in waiting:
        for name, value in holder.__dict__.items():
            if type(value) in VALUES or name == "_source":
                continue
            for one in value if _is_of_states(value) else (value,):
                if isinstance(one, State) and id(one) not in found:
                    found[id(one)] = one
                    waiting.append(one)
    return waiting


def _is_as_drafted(draft: State) -> bool:
    """Return whether a draft, and each of its parts, holds what its source holds."""
    held = draft.__dict__
    if "_source" not in held:
        return False
    source = held["_source"].__dict__
    values, parts = source["_values"], source["_parts"]
    for name, now in held.items():
        if name in values:
            if now is not values[name] and now != values[name]:
                return False
        elif name in parts:
            if not _is_drafted_of(now, parts[name]):
                return False
        elif name not in OWN:
            return False
    return True


def _is_drafted_of(now: Any, was: Any) -> bool:
    """Return whether `now` holds unchanged drafts of the parts in `was`."""
    if type(was) is tuple:
        return type(now) is tuple and len(now) == len(was) and all(map(_is_drafted_of, now, was))
    return isinstance(now, State) and now.__dict__.get("_source") is was and _is_as_drafted(now)


def _is_equal(one: State, other: State) -> bool:
    """Return whether two States are the same, their files too."""
    return vars(one).get("files") == vars(other).get("files") and _is_same(one, other)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two States, or values, are the same, but for the files."""
    if one is other:
        return True
    if _is_of_states(one) and _is_of_states(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if not isinstance(one, State) or type(one) is not type(other):
        return not isinstance(one, State) and bool(one == other)
    held, at_other = vars(one), vars(other)
    if "_values" in held and "_values" in at_other and not one.not_compared:
        parts, others = held["_parts"], at_other["_parts"]
        is_alike = held["_values"] == at_other["_values"] and len(parts) == len(others)
        return is_alike and all(_is_same(part, others.get(name)) for name, part in parts.items())
    mine, others = dict(_content(one)), dict(_content(other))
    return mine.keys() == others.keys() and all(
        _is_same(held, others[name]) for name, held in mine.items() if name not in one.not_compared
    )
