# SPDX-License-Identifier: Apache-2.0
"""What to say of an unknown name: the nearest known ones."""

import difflib
from collections.abc import Collection, Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question for the nearest known words; empty where none is near."""
    near = difflib.get_close_matches(word, [*known], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def no_such(what: str, name: str, known: Collection[str]) -> str:
    """Return the complaint about an unknown name: the nearest known ones, and all of them."""
    near = did_you_mean(name, known)
    return f"no {what} {name!r}{f'{near} Known' if near else '; known'}: {', '.join(known)}"
