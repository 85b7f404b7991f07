# SPDX-License-Identifier: Apache-2.0
"""What moves between Kafka's releases: packages, components of answers, and options.

Used by: the adapters of Kafka's classes.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["PACKAGES", "get", "items", "optional", "scala_option", "storage_class"]

PACKAGES = ("org.apache.kafka.storage.internals.log.", "kafka.log.")
"""Where the classes of logs and indexes are: since 3.5, and before; a few moved at 3.3 or 3.4."""


@cache
def storage_class(jvm: Any, name: str) -> Any:
    """Return a class of logs or indexes by its last name, from the package that has it.

    Raises: LookupError if the release has none.
    """
    return jvm.first(*(f"{package}{name}" for package in PACKAGES))


def get(owner: Any, name: str) -> Any:
    """Return a component: a field of old Java classes, a method of records and in Scala."""
    found = getattr(owner, name)
    return found() if callable(found) else found


def optional(found: Any) -> Any:
    """Return what an option holds, or None.

    `found` is a java.util.Optional, OptionalInt or OptionalLong, or a scala.Option; null is None.
    """
    if found is None:
        return None
    asks, gets = _option_methods(found.__class__)
    return getattr(found, gets)() if getattr(found, asks)() else None


@cache
def _option_methods(kind: type) -> tuple[str, str]:
    """Return the names of what asks a class of options, and of what gets its value."""
    if hasattr(kind, "isDefined"):
        return "isDefined", "get"
    return "isPresent", next(
        name for name in ("getAsLong", "getAsInt", "get") if hasattr(kind, name)
    )


def scala_option(jvm: Any, value: Any) -> Any:
    """Return a value as scala.Option; None is the empty one."""
    if value is None:
        return getattr(jvm.java("scala.None$"), "MODULE$")
    return jvm.java("scala.Some")(value)


def items(found: Any) -> Iterator[Any]:
    """Return what a collection of Java or of Scala holds."""
    steps = found.iterator()
    while steps.hasNext():
        yield steps.next()
