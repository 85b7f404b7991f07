# SPDX-License-Identifier: Apache-2.0
"""Methods of Kafka's classes that are not public, and such as mostly throw."""

from typing import Any

import jpype

from segproof_harness.releases.jvm import Jvm

__all__ = ["caught", "invoked", "reflected"]


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


def caught(jvm: Jvm, kind: Any, name: str, *types: Any) -> Any:
    """Return a method of a class as a function that returns what the method throws, or None.

    It takes the object first, and arguments that are Java's. Java catches the exception: one that
    comes through JPype takes three times as long. The method itself returns nothing.

    Raises: LookupError without it.
    """
    handles = jvm.java("java.lang.invoke.MethodHandles")
    thing, thrown = jvm.java("java.lang.Object").class_, jvm.java("java.lang.Throwable").class_
    method = handles.publicLookup().unreflect(reflected(kind, name, *types))
    handler = handles.identity(thing).asType(
        jvm.java("java.lang.invoke.MethodType").methodType(thing, thrown)
    )
    returning = method.asType(method.type().changeReturnType(thing))
    return handles.catchException(returning, thrown, handler).invokeWithArguments
