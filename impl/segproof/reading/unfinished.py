# SPDX-License-Identifier: Apache-2.0
"""The marks of an output of `rebuild` or `salvage` that is not whole, and where they lie."""

import posixpath
from typing import Final, NamedTuple

from segproof.files import Files, status_of

MARKER: Final = "segproof-rebuild.incomplete"
"""What stands beside the new files until all of them are whole and durable."""
SALVAGE_MARKER: Final = "segproof-salvage.incomplete"
"""The same for what a salvage writes; no broker reads it."""
VERBS: Final = {MARKER: "rebuild", SALVAGE_MARKER: "salvage"}
"""The verb that writes each mark."""


class Unfinished(NamedTuple):
    """An output that was begun and is not whole."""

    path: str
    """Of the mark."""
    verb: str

    @property
    def words(self) -> str:
        """What a reader has to know of it."""
        return f"a {self.verb} ended here before it was whole, or is at work: this is a part"

    @property
    def step(self) -> str:
        """How to get the whole."""
        source = "the damaged directory" if self.verb == "salvage" else "what it was made of"
        return (
            f"run `segproof {self.verb}` again from {source} into a new directory, and use nothing"
            f" of this one. Once the {self.verb} has ended, this one is of no use"
        )


def unfinished_store(store: str, files: Files) -> Unfinished | None:
    """Return the mark of a salvage that has not ended, in the store that it wrote; else None.

    A mark of a rebuild in a store is of one in place: the store is whole. Raises: never.
    """
    path = posixpath.join(store, SALVAGE_MARKER)
    return None if status_of(files, path) is None else Unfinished(path, VERBS[SALVAGE_MARKER])


def unfinished_at(directory: str, files: Files) -> Unfinished | None:
    """Return the mark that makes a partition a part of an unfinished output; else None.

    It lies in the directory itself; that of a salvage may lie in the one above. Raises: never.
    """
    above = (
        posixpath.join(directory, "..")
        if directory in ("", ".")
        else posixpath.dirname(directory.rstrip("/"))
    )
    places = ((directory, MARKER), (directory, SALVAGE_MARKER), (above or ".", SALVAGE_MARKER))
    for place, name in places:
        path = posixpath.join(place, name)
        if status_of(files, path) is not None:
            return Unfinished(path, VERBS[name])
    return None
