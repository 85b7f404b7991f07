# SPDX-License-Identifier: Apache-2.0
"""The marks of an output of `rebuild` or `salvage` that is not whole, and where they lie."""

import json
import posixpath
from collections.abc import Iterable
from contextlib import closing
from typing import Final, NamedTuple

from segproof.commands import quoted_path
from segproof.files import Files, status_of
from segproof.hints import Hint, changes, writes
from segproof.reading.file_names import CUT_RECORDS_FILE, SET_ASIDE_FILE

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
    partitions: tuple[str, ...] | None = None
    """The names of those that were to be written, as the mark says; None: unknown."""

    def parts(self, names: Iterable[str]) -> list[str] | None:
        """Return which of the names beside the mark are of this output; None: unknown.

        Any other partition there is whole: a salvage that had ended wrote it.
        """
        if self.partitions is None:
            return None
        forms = ("{}", SET_ASIDE_FILE, CUT_RECORDS_FILE)
        own = {form.format(one) for one in self.partitions for form in forms}
        return [posixpath.basename(self.path), *sorted(own & {*names})]

    def hint(self, names: Iterable[str]) -> Hint:
        """Return how to get the whole, beside what is whole: `names` lie beside the mark."""
        parts = self.parts(names)
        if parts is None:
            return writes(self.step)
        if self.verb != "salvage":
            return writes(
                "make the rest: run `segproof rebuild` again from what this was made of, into this"
                " directory, which leaves what is whole as it is"
            )
        folder = posixpath.dirname(self.path) or "."
        place = posixpath.normpath(folder)
        away = quoted_path(f"{'../part' if place == '.' else place}.unfinished")
        moved = " ".join(quoted_path(posixpath.join(folder, one)) for one in parts)
        return changes(
            f"run `mkdir {away} && mv {moved} {away}`, and save the rest of the old directory into"
            f" {folder} again. The other partitions here are whole",
            only_if="no salvage is at work here",
            if_wrong="that salvage fails, and its partitions are to be saved once more",
            copy_step="keep the old directory, and what is moved, until the new salvage has ended",
        )

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

    It lies in the directory itself, or in the one above if it names the partition, as that of a
    salvage or of a rebuild of several does; that of a salvage may name none. Above a link is
    what is above the link, and what is above the directory that it leads to. Raises: never.
    """
    lexical = (
        posixpath.join(directory, "..")
        if directory in ("", ".")
        else posixpath.dirname(directory.rstrip("/")) or "."
    )
    real = posixpath.dirname(posixpath.realpath(directory or "."))
    places = [(directory, MARKER), (directory, SALVAGE_MARKER)]
    places += [(above, name) for above in (lexical, real) for name in VERBS]
    for place, name in places:
        path = posixpath.join(place, name)
        if status_of(files, path) is not None:
            mark = Unfinished(path, VERBS[name], partitions_of(path, files))
            own = posixpath.basename(posixpath.realpath(directory))
            is_of_all = mark.partitions is None and name == SALVAGE_MARKER
            if place == directory or is_of_all or own in (mark.partitions or ()):
                return mark
    return None


def mark_of(partitions: Iterable[str]) -> bytes:
    """Return the content of the mark of a verb that is to write these partitions."""
    return json.dumps(sorted(partitions)).encode() + b"\n"


def partitions_of(path: str, files: Files) -> tuple[str, ...] | None:
    """Return the partitions that a mark names; None where it names none. Raises: never."""
    try:
        with closing(files.open(path)) as file:
            names = json.loads(file.pread(file.size(), 0))
    except (OSError, ValueError, RecursionError):
        return None
    is_list = isinstance(names, list) and all(isinstance(one, str) for one in names)
    return tuple(names) if is_list and names else None
