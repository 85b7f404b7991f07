# SPDX-License-Identifier: Apache-2.0
"""Methods of Kafka's classes that are not public.

Used by: the adapters of Kafka's classes.
"""

from typing import Any

import jpype

__all__ = ["invoked", "reflected"]


def reflected(kind: Any, name: str, *types: Any) -> Any:
    """Return a method of a class that is not public, to be called by `invoked`.

    Raises: LookupError without it.
    """
    try:
        found = kind.class_.getDeclaredMethod(name, *types)
    except jpype.JException:
        raise LookupError(f"{kind.class_.getName()} has no method {name}") from None
    found.setAccessible(True)
    return found


def invoked(method: Any, target: Any, *arguments: Any) -> Any:
    """Call such a method; what it raises is raised here."""
    try:
        return method.invoke(target, *arguments)
    except jpype.JClass("java.lang.reflect.InvocationTargetException") as error:
        raise error.getCause() from None
