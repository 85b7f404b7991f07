# SPDX-License-Identifier: Apache-2.0
"""Files for a dry run: all can be read, and what is written has no name in any directory."""

import errno
import os

from segproof.files import File, Files, FileStatus, NamelessFile, nameless_file


class DryFiles:
    """Reads through other files; keeps new files nameless, until they are removed or it is closed.

    Only files that it created can be written or renamed. Others are removed in appearance only, and
    so are directories made, synced and locked.
    """

    def __init__(self, files: Files, *, in_memory: bool) -> None:
        self._files = files
        self._in_memory = in_memory
        self._made: dict[str, NamelessFile] = {}
        self._directories: set[str] = set()
        self._removed: set[str] = set()
        """Files that are there, and that a run would have removed."""

    def close(self) -> None:
        """Let all new files go."""
        for file in self._made.values():
            file.close()
        self._made.clear()

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file: of those that are there, for reading only."""
        made = self._made.get(path)
        if made is not None:
            return made.again()
        if create and self.status(path) is None:
            self._made[path] = nameless_file(path, in_memory=self._in_memory)
            return self.open(path)
        if path in self._removed:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if writable and self._files.status(path) is not None:
            raise OSError(errno.EROFS, "a dry run changes no file", path)
        return self._files.open(path)

    def create_new(self, path: str) -> File | None:
        """Create a nameless file; None if the path is there."""
        return None if self.status(path) is not None else self.open(path, create=True)

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path."""
        made = self._made.get(path)
        if made is not None:
            return FileStatus(made.size(), False, True, 0, (0, id(made)))
        if path in self._directories:
            return FileStatus(0, True, False, 0, (0, 0))
        return None if path in self._removed else self._files.status(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, with those of new files."""
        made, removed = (
            {os.path.basename(one) for one in each if os.path.dirname(one) == path}
            for each in (self._made, self._removed)
        )
        is_there = path not in self._directories or self._files.status(path) is not None
        old = self._files.list_directory(path) if is_there else ()
        return sorted(made.union(set(old) - removed))

    def rename(self, source: str, target: str) -> None:
        """Rename a new file; nothing else."""
        if source in self._made:
            self._made[target] = self._made.pop(source)

    def link(self, source: str, target: str) -> None:
        """Do nothing."""

    def remove(self, path: str) -> bool:
        """Remove a new file, or another one in appearance; return whether there was one."""
        made, is_there = self._made.pop(path, None), self.status(path) is not None
        if made is not None:
            made.close()
        elif is_there:
            self._removed.add(path)
        return made is not None or is_there

    def set_modified(self, path: str, modified_ns: int) -> None:
        """Do nothing."""

    def sync_directory(self, path: str) -> None:
        """Do nothing."""

    def make_directory(self, path: str) -> None:
        """Know it from now on."""
        self._directories.add(path)

    def remove_directory(self, path: str) -> bool:
        """Forget a directory."""
        self._directories.discard(path)
        return True

    def take_access(self, path: str, source: str) -> None:
        """Do nothing."""

    def lock_file(self, path: str) -> File | None:
        """Open the lock without locking it: a broker may go on."""
        return self._files.open(path)
