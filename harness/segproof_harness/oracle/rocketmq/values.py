# SPDX-License-Identifier: Apache-2.0
"""Texts for Java, and private fields that an adapter has to set.

Used by: the adapters of RocketMQ's classes.
"""

from typing import Any

import jpype

__all__ = ["java_text", "set_field"]


def java_text(text: str | None) -> Any:
    """Return a text as Java has it: lone surrogates are units like any other; None is null."""
    if text is None or text.isascii():
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    units = [chr(int.from_bytes(data[at : at + 2])) for at in range(0, len(data), 2)]
    return jpype.JClass("java.lang.String")(jpype.JArray(jpype.JChar)(units))


def set_field(owner: Any, name: str, value: Any) -> None:
    """Set a private field of a Java object, inherited ones too.

    Raises: LookupError without such a field.
    """
    kind = owner.getClass()
    while kind is not None:
        try:
            found = kind.getDeclaredField(name)
        except jpype.JException:
            kind = kind.getSuperclass()
            continue
        found.setAccessible(True)
        found.set(owner, value)
        return
    raise LookupError(f"{owner.getClass().getName()} has no field {name}")
