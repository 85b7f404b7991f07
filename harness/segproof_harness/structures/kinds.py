# SPDX-License-Identifier: Apache-2.0
"""The kinds of arguments: what a trace may say for one, and what a method is given.

A kind is declared once, where an operation is described. In a trace a row and a record are lists.
The class of a record is the one that the method's own signature names, so the model, the
implementation and the real classes each get their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from segproof_harness.structures.choices import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from segproof_harness.structures.operations import Value

SIZE_MAX = 1 << 24
"""The largest file size that a history may ask for; a size from a trace is untrusted."""


class Kind:
    """What an argument can be."""

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value from a trace is not of this kind, or None if it is one."""
        raise NotImplementedError

    def built(self, value: Any, hint: Any) -> Any:
        """Return what a method is given, whose signature says `hint` for it."""
        return value

    def spread(self, name: str, value: Any, hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a method that this one becomes, by name."""
        return {name: self.built(value, hints.get(name))}

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of these arguments."""
        return (name,)


@dataclass(frozen=True, slots=True)
class Integer(Kind):
    """An integer from `low` to `high`, both inclusive."""

    low: int
    high: int

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is no such integer."""
        if type(value) is not int:
            return f"{name} must be an integer"
        return None if self.low <= value <= self.high else self._range(name)

    def _range(self, name: str) -> str:
        return f"{name} must be from {self.low} to {self.high}"


INT64 = Integer(INT64_MIN, INT64_MAX)
INT32 = Integer(INT32_MIN, INT32_MAX)
INT16 = Integer(-(1 << 15), (1 << 15) - 1)
SIZE = Integer(-SIZE_MAX, SIZE_MAX)
"""A file size or a count that memory has to hold."""
TIME_MS = Integer(0, 1 << 42)
"""The time of a clock or a file, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """True or false."""

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is no flag."""
        return None if isinstance(value, bool) else f"{name} must be true or false"


@dataclass(frozen=True, slots=True)
class Bytes(Kind):
    """Bytes, at most so many."""

    length_max: int

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is not such bytes."""
        if not isinstance(value, bytes):
            return f"{name} must be base64 bytes"
        too_long = len(value) > self.length_max
        return f"{name} must have at most {self.length_max} bytes" if too_long else None


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """A text, of at most so many characters."""

    length_max: int

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is no such text."""
        if not isinstance(value, str):
            return f"{name} must be a text"
        too_long = len(value) > self.length_max
        return f"{name} must have at most {self.length_max} characters" if too_long else None


@dataclass(frozen=True, slots=True)
class FileName(Kind):
    """The name of a file in the subject's directory, in one of its folders if `in_folders`."""

    in_folders: bool = False

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is no such name."""
        if self.in_folders:
            return None if is_file_path(value) else f"{name} must be the path of a file"
        fits = is_file_name(value)
        return None if fits else f"{name} must be the name of a file, without a path"


FLAG, NAME, PATH = Flag(), FileName(), FileName(in_folders=True)
BYTES = Bytes(SIZE_MAX)


def is_file_name(value: object) -> bool:
    """Return whether a value is a plain file name."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= 200
        and value not in (".", "..")
        and not set(value) & {"/", "\0"}
    )


def is_file_path(value: object) -> bool:
    """Return whether a value is a plain file name, or one below up to three folders."""
    return (
        isinstance(value, str)
        and value.count("/") <= 3
        and all(map(is_file_name, value.split("/")))
    )


@dataclass(frozen=True, slots=True)
class OneOf(Kind):
    """One of these values."""

    values: tuple[Value, ...]

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is none of them."""
        fits = any(type(one) is type(value) and one == value for one in self.values)
        known = ", ".join(map(repr, dict.fromkeys(self.values)))
        return None if fits else f"{name} must be one of {known}"


@dataclass(frozen=True, slots=True)
class Optional(Kind):
    """A value of another kind, or null."""

    kind: Kind

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is neither."""
        return None if value is None else self.kind.refusal(name, value)

    def built(self, value: Any, hint: Any) -> Any:
        """Return what a method is given."""
        if value is None:
            return None
        hints = [one for one in get_args(hint) if one is not NoneType]
        return self.kind.built(value, hints[0] if len(hints) == 1 else hint)


@dataclass(frozen=True, slots=True)
class Row(Kind):
    """Any number of values of one kind, up to a limit."""

    kind: Kind
    length_max: int

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is no such row: the first item that is wrong."""
        if not isinstance(value, tuple):
            return f"{name} must be a list"
        if len(value) > self.length_max:
            return f"{name} must have at most {self.length_max} items"
        refusals = (self.kind.refusal(f"{name}[{n}]", item) for n, item in enumerate(value))
        return next((one for one in refusals if one is not None), None)

    def built(self, value: Any, hint: Any) -> Any:
        """Return what a method is given: a tuple."""
        hints = get_args(hint)
        return tuple(self.kind.built(item, hints[0] if hints else None) for item in value)


class Record(Kind):
    """Values with a name and a kind each; a method that names a class for them is given one."""

    def __init__(self, **fields: Kind) -> None:
        self.fields: Mapping[str, Kind] = fields

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is no such record: the first field that is wrong."""
        if not isinstance(value, tuple) or len(value) != len(self.fields):
            return f"{name} must be a list of {', '.join(self.fields)}"
        pairs = zip(self.fields.items(), value, strict=True)
        refusals = (kind.refusal(f"{name}.{field}", item) for (field, kind), item in pairs)
        return next((one for one in refusals if one is not None), None)

    def built(self, value: Any, hint: Any) -> Any:
        """Return an object of the class that the signature names, or else a tuple."""
        if isinstance(hint, type) and hint is not tuple:
            return hint(**self.by_name(value, hints_of(hint)))
        return tuple(self.by_name(value, {}).values())

    def by_name(self, value: Any, hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields by name, each as its hint wants it."""
        made: dict[str, Any] = {}
        for (name, kind), item in zip(self.fields.items(), value, strict=True):
            made |= kind.spread(name, item, hints)
        return made


class Together(Record):
    """Arguments that are drawn together, and are one list in a trace."""

    def spread(self, name: str, value: Any, hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields: each is an argument."""
        return self.by_name(value, hints)

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(known for field, kind in self.fields.items() for known in kind.names(field))


@dataclass(frozen=True, slots=True)
class Only(Kind):
    """Values of another kind for which something more holds."""

    kind: Kind
    holds: Callable[[Any], bool]
    words: str
    """What holds, in words that follow "NAME must be"."""

    def refusal(self, name: str, value: Value) -> str | None:
        """Return why a value is not of the other kind, or that this does not hold."""
        refusal = self.kind.refusal(name, value)
        if refusal is None and not self.holds(value):
            return f"{name} must be {self.words}"
        return refusal

    def built(self, value: Any, hint: Any) -> Any:
        """Return what a method is given."""
        return self.kind.built(value, hint)

    def spread(self, name: str, value: Any, hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a method that this one becomes."""
        return self.kind.spread(name, value, hints)

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of these arguments."""
        return self.kind.names(name)


def is_plain(kind: Kind) -> bool:
    """Return whether a method is given values of this kind as they stand in the history."""
    inner = getattr(kind, "kind", None)
    return not isinstance(kind, Record) and (inner is None or is_plain(inner))


@cache
def hints_of(owner: Any) -> Mapping[str, Any]:
    """Return the types that a function or a class names for its parameters or fields."""
    if owner is None:
        return {}
    try:
        return {name: hint for name, hint in get_type_hints(owner).items() if hint is not Any}
    except NameError:  # imported for a type checker only
        return {}
