# SPDX-License-Identifier: Apache-2.0
"""Classes by their last names, texts for Java, and memory given back to it."""

import re
from typing import Any

import jpype

SURROGATE = re.compile("[\ud800-\udfff]")


OLD_UNTIL = (4,)
"""The first version below org.apache; before, a mapped file is spelled as a maped one, too."""
PACKAGES = ("org.apache.rocketmq.store.", "com.alibaba.rocketmq.store.")


class ClosedAtCrash:
    """An open object of Java among what a crash closes; it can give its memory and files back."""

    def __init__(self, owner: Any) -> None:
        self.close = owner.give_back


def store_class(jvm: Any, name: str) -> Any:
    """Return a class of stores by its last name. Raises LookupError if the release has none."""
    return jvm.first(*(f"{package}{name}" for package in PACKAGES))


def mapped_of(jvm: Any, index_file: Any) -> Any:
    """Return the mapped file of an index file."""
    name = "mapedFile" if jvm.release.number < OLD_UNTIL else "mappedFile"
    return jvm.field(index_file, name)


def java_text(text: str | None) -> Any:
    """Return a text as Java has it: lone surrogates are units like any other; None is null."""
    if text is None or text.isascii() or not SURROGATE.search(text):
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    units = [chr(int.from_bytes(data[at : at + 2])) for at in range(0, len(data), 2)]
    return jpype.JClass("java.lang.String")(jpype.JArray(jpype.JChar)(units))


def unmap(buffer: Any) -> None:
    """Give the memory of a mapped buffer back."""
    kind = jpype.JClass("java.lang.Class").forName("sun.misc.Unsafe")
    found = kind.getDeclaredField("theUnsafe")
    found.setAccessible(True)
    found.get(None).invokeCleaner(buffer)


def give_back_files(jvm: Any, owner: Any) -> None:
    """Give the mapped files of a queue or of a log back without another write; once is enough."""
    for file in jvm.field(owner, "mappedFileQueue").getMappedFiles():
        if file.isAvailable():
            file.shutdown(jpype.JLong(0))
            file.shutdown(jpype.JLong(0))
            file.getFileChannel().close()
