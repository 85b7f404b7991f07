# SPDX-License-Identifier: Apache-2.0
"""What a subject did, made comparable: the returned value, or the kind of error.

Subjects are compared by kind of error, never by class or wording. What no kind covers is
`unexpected:CLASS`, and equals nothing that the model can say.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from segproof_harness.structures.operations import to_json_value
from segproof_model.language.outcomes import Raised

NOT_OPEN = "not-open"
"""The kind of error when an operation meets no open object, since opening it failed."""


@dataclass(slots=True)
class Outcome:
    """A returned value, or a kind of error; nobody changes one.

    It is not frozen, since that would triple the time to make one: a history has hundreds.

    >>> Outcome(1) == Outcome(True), Outcome(1) == Outcome(1)
    (False, True)
    >>> Outcome(error="invalid-offset")
    invalid-offset
    """

    value: Any = None
    """Plain values only: None, bool, int, str, bytes, and tuples of them."""
    error: str | None = None
    detail: str = dataclasses.field(default="", compare=False)
    """The error's message, for people; not compared."""

    NOT_OPEN: ClassVar["Outcome"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        return (
            self.error == other.error
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash((self.error, self.value))

    def __repr__(self) -> str:
        return repr(self.value) if self.error is None else self.error

    def to_json(self) -> Any:
        """Return the value, or an object with the kind of error."""
        return to_json_value(self.value) if self.error is None else {"error": self.error}


Outcome.NOT_OPEN = Outcome(error=NOT_OPEN)


_PLAIN = frozenset({type(None), bool, int, str, bytes})
"""Types of values that are plain already: nearly all are."""


def normalise(value: Any) -> Any:
    """Return a value in its plain form, the same for equal answers of different libraries.

    Named tuples, lists, dataclasses and arrays become tuples; numpy's numbers become Python's.

    >>> from segproof_model.kafka.format.offset_index import OffsetPosition
    >>> normalise([OffsetPosition(5, 120), bytearray(b"x")])
    ((5, 120), b'x')
    """
    if type(value) in _PLAIN or isinstance(value, (int, str, bytes)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([one if type(one) in _PLAIN else normalise(one) for one in value])
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(normalise(getattr(value, item.name)) for item in dataclasses.fields(value))
    if hasattr(value, "tolist"):
        return normalise(value.tolist())
    return f"{type(value).__qualname__} object"


def of_model(outcome: object) -> Outcome:
    """Return the outcome of a model's answer, `Raised` included."""
    if isinstance(outcome, Raised):
        return Outcome(error=str(outcome.kind))
    return Outcome(normalise(outcome))


def of_error(error: Exception) -> Outcome:
    """Return the outcome of an exception."""
    return Outcome(error=kind_of(error), detail=f"{type(error).__name__}: {error}")


def kind_of(error: Exception) -> str:
    """Return the kind of an exception: its own, where it has one."""
    kind = getattr(error, "kind", None)
    return str(kind if isinstance(kind, str) else _builtin_kind(error))


def _builtin_kind(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "file-not-found"
    if isinstance(error, TimeoutError):  # an OSError, but here it is the harness's own limit
        return "unexpected:TimeoutError"
    if isinstance(error, OSError):
        return "io-error"
    if isinstance(error, IndexError):
        return "index-error"
    return f"unexpected:{type(error).__name__}"


def outcome_of(call: Callable[[], Any]) -> Outcome:
    """Call, and return what came out; no exception but KeyboardInterrupt's kind leaves."""
    try:
        return Outcome(normalise(call()))
    except Exception as error:
        return of_error(error)
