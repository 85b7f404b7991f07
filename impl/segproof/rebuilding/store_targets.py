# SPDX-License-Identifier: Apache-2.0
"""Where a new RocketMQ index goes: into its store, or into a new directory.

Both are entered before anything is built and give a working directory; it is removed at the end,
whatever happened, and what a run that was killed has left of it is removed by the next one.

Upstream: RocketMQ 5.5.1: DefaultMessageStore.start, which locks the file `lock`.
"""

import contextlib
import os
from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from segproof.files import File, SharedFiles
from segproof.reading.unfinished import MARKER
from segproof.rebuilding.kept_files import backup_of, copy_file, keep_old_files
from segproof.rebuilding.safe_places import (
    lock_of,
    make_directory,
    names_in_new,
    not_empty,
)
from segproof.rocketmq.geometry import index_file_names
from segproof.rocketmq.index_service import CHECKPOINT, INDEX

LOCK: Final = "lock"
"""The file in a store that a broker has locked while it runs."""


class Built(NamedTuple):
    """One new file, durable, in the working directory."""

    path: str
    name: str
    """What it will be called."""
    entries: int


class _Working:
    """The working directory: a store of its own, with an index and a checkpoint."""

    def __init__(self, parent: str, files: SharedFiles) -> None:
        self.path = os.path.join(parent, MARKER)
        self._parent = parent
        self._files = files

    def make(self) -> None:
        """Make it, empty and durable."""
        self.remove()
        self._files.make_directory(os.path.join(self.path, INDEX))
        self._files.sync_directory(self.path)
        self._files.sync_directory(self._parent)

    def remove(self) -> None:
        """Remove it, with what it holds, if it is there."""
        index = os.path.join(self.path, INDEX)
        if self._files.status(index) is not None:
            for name in self._files.list_directory(index):
                self._files.remove(os.path.join(index, name))
            self._files.remove_directory(index)
        if self._files.status(self.path) is not None:
            self._files.remove(os.path.join(self.path, CHECKPOINT))
            self._files.remove_directory(self.path)


class IndexInPlace:
    """The index of the store itself; a broker that would use it is kept out meanwhile."""

    def __init__(self, store: str, files: SharedFiles, backup: str | None = None) -> None:
        self.directory = os.path.join(store, INDEX)
        self._backup = backup
        self._store = store
        self._files = files
        self._working = _Working(store, files)
        self._lock: File | None = None

    def __enter__(self) -> str:
        """Lock the store; return the working directory. Raises: SegproofError; OSError."""
        self._lock = lock_of(os.path.join(self._store, LOCK), "store", self._files)
        try:
            self._working.make()
        except BaseException:
            self.__exit__()
            raise
        return self._working.path

    def complete(
        self, built: Sequence[Built], changed: Set[str], old_names: Sequence[str], like: str
    ) -> tuple[str, ...]:
        """Rename what differs over the old files, remove others; return the names of these.

        Owner and rights are those of the old file, or of the file `like` where there is none.
        """
        files = self._files
        files.make_directory(self.directory)
        files.sync_directory(self._store)
        renamed = [one for one in built if one.name in changed]
        removed = tuple(sorted({*old_names} - {one.name for one in built}))
        if self._backup is not None:
            olds = [os.path.join(self.directory, name) for name in old_names]
            is_gone = {*changed, *removed}
            kept = [
                (old, backup_of(old, self._backup))
                for old in olds
                if os.path.basename(old) in is_gone
            ]
            keep_old_files(kept, self._backup, files)
        for one in renamed:
            old = os.path.join(self.directory, one.name)
            files.take_access(one.path, old if one.name in old_names else like)
        for one in renamed:
            files.rename(one.path, os.path.join(self.directory, one.name))
        files.sync_directory(self.directory)
        for name in removed:
            files.remove(os.path.join(self.directory, name))
        files.sync_directory(self.directory)
        return removed + self._without_mark()

    def _without_mark(self) -> tuple[str, ...]:
        """Remove the mark of an unfinished rebuild whose output was copied into the index folder,
        since all of its files are whole now. Return its name."""
        path = os.path.join(self.directory, MARKER)
        status = self._files.status(path)
        if status is None:
            return ()
        if status.is_directory:
            _Working(self.directory, self._files).remove()
        else:
            self._files.remove(path)
        self._files.sync_directory(self.directory)
        return (MARKER,)

    def __exit__(self, *_: object) -> None:
        try:
            with contextlib.suppress(OSError):
                self._working.remove()
        finally:
            if self._lock is not None:
                self._lock.close()
                self._lock = None


class NewIndexDirectory:
    """A directory that is new or empty, or that an ended rebuild has left."""

    def __init__(self, directory: str, files: SharedFiles) -> None:
        self.directory = directory
        self._files = files
        self._working = _Working(directory, files)
        self._is_new = False
        self._is_complete = False
        self._made: set[str] = set()
        """Directories whose names, or those in them, are to be made durable."""

    def __enter__(self) -> str:
        """Make the directory; return the working directory.

        Raises: NotADirectoryError; FileExistsError, with nothing changed, where it is not empty.
        """
        found = names_in_new(self.directory, self._files)
        self._is_new, names = found is None, found or []
        ours = index_file_names(names) if MARKER in names else []
        if {*names} - {*ours, MARKER}:
            raise not_empty(self.directory)
        try:
            self._made = make_directory(self.directory, self.directory, self._files)
            for name in ours:
                self._files.remove(os.path.join(self.directory, name))
            self._working.make()
        except BaseException:
            self.__exit__()
            raise
        return self._working.path

    def keep(self, paths: Sequence[str]) -> None:
        """Copy old files, which stay as they are, durably."""
        built = []
        for path in paths:
            name = os.path.basename(path)
            built.append(Built(os.path.join(self._working.path, name), name, 0))
            copy_file(path, built[-1].path, None, self._files)
        self.complete(built, set(), (), "")

    def complete(
        self, built: Sequence[Built], changed: Set[str], old_names: Sequence[str], like: str
    ) -> tuple[str, ...]:
        """Give the new files their names, durably."""
        del changed, old_names, like
        for one in built:
            self._files.rename(one.path, os.path.join(self.directory, one.name))
        self._files.sync_directory(self.directory)
        self._files.sync_directory(os.path.dirname(os.path.realpath(self.directory)))
        for folder in sorted(self._made, reverse=True):
            self._files.sync_directory(folder)
        self._is_complete = True
        return ()

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            if not self._is_complete:
                for name in index_file_names(self._files.list_directory(self.directory)):
                    self._files.remove(os.path.join(self.directory, name))
            self._working.remove()
            if self._is_new and not self._is_complete:
                self._files.remove_directory(self.directory)
