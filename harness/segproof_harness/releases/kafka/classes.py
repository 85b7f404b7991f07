# SPDX-License-Identifier: Apache-2.0
"""What moves between Kafka's releases: packages, components of answers, and options."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from jpype import JInt

PACKAGES = ("org.apache.kafka.storage.internals.log.", "kafka.log.")
"""Where the classes of logs and indexes are: since 3.5, and before; a few moved at 3.3 or 3.4."""

CLOSE_WRITES_UNTIL = (4, 4)
"""The first version in which closing a file writes and cuts nothing."""
LARGEST_RECORD = 2**31 - 9
"""The default of max.decompressed.message.bytes."""


@cache
def storage_class(jvm: Any, name: str) -> Any:
    """Return a class of logs or indexes by its last name, from the package that has it.

    Raises: LookupError if the release has none.
    """
    return jvm.first(*(f"{package}{name}" for package in PACKAGES))


def close_handlers_name(jvm: Any) -> str:
    """Return what closing the files of a segment or log as they are is called."""
    return "closeQuietly" if jvm.release.number >= CLOSE_WRITES_UNTIL else "closeHandlers"


def largest_record(jvm: Any) -> tuple[Any, ...]:
    """Return what a search by time is told of records that are too large, where it is told."""
    number = jvm.release.number
    is_told = number >= (4, 4) or (4, 2, 2) <= number < (4, 3)
    return (JInt(LARGEST_RECORD),) if is_told else ()


def get(owner: Any, name: str) -> Any:
    """Return a component: a field of old Java classes, a method of records and in Scala."""
    found = getattr(owner, name)
    return found() if callable(found) else found


def optional(found: Any) -> Any:
    """Return what an option holds, or None; what is no option itself.

    An option is a java.util.Optional, OptionalInt or OptionalLong, or a scala.Option.
    """
    methods = None if found is None else _option_methods(found.__class__)
    if methods is None:
        return found
    asks, gets = methods
    return getattr(found, gets)() if getattr(found, asks)() else None


@cache
def _option_methods(kind: type) -> tuple[str, str] | None:
    """Return the names of what asks a class of options, and of what gets its value."""
    if hasattr(kind, "isDefined"):
        return "isDefined", "get"
    if hasattr(kind, "isPresent"):
        gets = ("getAsLong", "getAsInt", "get")
        return "isPresent", next(name for name in gets if hasattr(kind, name))
    return None


def scala_object(jvm: Any, name: str) -> Any:
    """Return a singleton of Scala by the name of its class, without the last `$`."""
    return getattr(jvm.java(f"{name}$"), "MODULE$")


def some(jvm: Any, value: Any) -> Any:
    """Return a value as scala.Option; None is the empty one."""
    return scala_object(jvm, "scala.None") if value is None else jvm.java("scala.Some")(value)


def items(found: Any) -> Iterator[Any]:
    """Return what a collection of Java or of Scala holds."""
    steps = found.iterator()
    while steps.hasNext():
        yield steps.next()
