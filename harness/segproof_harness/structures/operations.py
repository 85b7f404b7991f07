# SPDX-License-Identifier: Apache-2.0
"""One call on a structure as a value, and its JSON form.

Layout: JSON object `{"operation": name, argument: value, ...}`; bytes are `{"base64": "..."}`.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = int | bool | str | bytes | None | tuple[Any, ...]
"""What an argument can be; a tuple holds values again."""


@dataclass(slots=True)
class Operation:
    """One call: the structure's method, and its arguments by name; nobody changes one.

    It is not frozen, since that would triple the time to make one: a history has hundreds.

    >>> Operation("append", {"offset": 5, "position": 120})
    append(offset=5, position=120)
    """

    name: str
    arguments: Mapping[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        written = ", ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{self.name}({written})"

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.arguments.items())))

    def with_argument(self, name: str, value: Value) -> "Operation":
        """Return the same call with one argument replaced."""
        return Operation(self.name, {**self.arguments, name: value})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        written = {name: to_json_value(value) for name, value in self.arguments.items()}
        return {"operation": self.name, **written}


def to_json_value(value: Any) -> Any:
    """Return a value as JSON can hold it.

    >>> to_json_value((1, b"a", None))
    [1, {'base64': 'YQ=='}, None]
    """
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, tuple | list):
        return [to_json_value(item) for item in value]
    return value


def from_json_value(value: Any) -> Value:
    """Return what `to_json_value` was given; lists become tuples.

    Raises: ValueError for what no operation holds.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list):
        return tuple(from_json_value(item) for item in value)
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from None
    raise ValueError(f"{type(value).__name__} is no value of an operation")


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
