# SPDX-License-Identifier: Apache-2.0
"""Findings as text: where, what, what to do, and the command that shows it again.

Layout: a line `SEVERITY LAW PATH:POSITION: MESSAGE`, then indented lines `expected`, `actual`,
`hint` and `reproduce`; what is not known is left out. Control characters are escaped, since paths
and messages may hold what a file name held.
"""

from collections.abc import Mapping
from typing import Any, TextIO

DETAILS = ("expected", "actual", "hint", "reproduce")


def write_text(finding: Mapping[str, Any], stream: TextIO) -> None:
    """Write one finding as a few lines."""
    place = finding["path"] or finding["structure"]
    if finding["position"] is not None:
        place = f"{place}: byte {finding['position']}"
    head = f"{finding['severity']} {finding['law']} {place}: {finding['message']}"
    stream.write(printable(head) + "\n")
    for name in DETAILS:
        if finding[name] not in (None, ""):
            stream.write(f"  {name + ':':10} {printable(str(finding[name]))}\n")


def printable(text: str) -> str:
    """Return the text on one line, without what a terminal would act on.

    >>> printable("a\\x1b[31mb\\n")
    'a\\\\x1b[31mb\\\\n'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def plural(count: int, word: str) -> str:
    """Return the count with the word, which takes an s or es for the plural.

    >>> plural(2, "batch")
    '2 batches'
    """
    ending = "" if count == 1 else "es" if word.endswith("ch") else "s"
    return f"{count} {word}{ending}"
