# SPDX-License-Identifier: Apache-2.0
"""Texts for Java.

Used by: the adapters of RocketMQ's classes.
"""

import re
from typing import Any

import jpype

__all__ = ["java_text"]

SURROGATE = re.compile("[\ud800-\udfff]")


def java_text(text: str | None) -> Any:
    """Return a text as Java has it: lone surrogates are units like any other; None is null."""
    if text is None or not SURROGATE.search(text):
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    units = [chr(int.from_bytes(data[at : at + 2])) for at in range(0, len(data), 2)]
    return jpype.JClass("java.lang.String")(jpype.JArray(jpype.JChar)(units))
