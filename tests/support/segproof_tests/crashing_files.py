# SPDX-License-Identifier: Apache-2.0
"""Files in memory that tell before each change, and know what a crash would leave then.

A killed process leaves all that was done. A loss of power leaves what was synced, and of the rest
what the system happened to write: here nothing of it, all names, all bytes, or the removals alone,
or the newest name, with the removals or without.
A name is durable once its directory was synced and has a durable name itself, bytes once their file
or its mapping was.
Not covered: part of a write; one of two names, or of two files, that wait to be written.
"""

import posixpath
from collections.abc import Callable, Iterator
from typing import Any

from segproof_tests.watched_files import CHANGES, WatchedFiles

__all__ = ["CrashingFiles", "Image", "crash_images"]

Image = dict[str, bytes]
"""Bytes by path."""


class CrashingFiles(WatchedFiles):
    """Files in memory; set `before_step` to what is to be done before each change."""

    def __init__(self, clock_ms: Callable[[], int] | None = None) -> None:
        super().__init__(clock_ms=clock_ms)
        self.before_step: Callable[[], object] = lambda: None
        self.durable_names: dict[str, Any] = {}
        self.durable_bytes: dict[Any, bytes] = {}
        self._removed: set[str] = set()
        """What was removed since its directory was synced."""
        self._new_directories: set[str] = set()
        """Those that were made since the directory above was synced."""

    def after_kill(self) -> Image:
        """Return what a killed process would leave."""
        return {path: inode.image() for path, inode in self._names.items()}

    def after_power_loss(self) -> list[Image]:
        """Return what a loss of power may leave; what it leaves at least is the first."""
        synced, kept = self.durable_names, self.durable_bytes
        new = tuple(f"{path}/" for path in self._new_directories)
        least = {path: inode for path, inode in synced.items() if not path.startswith(new)}
        left = {path: inode for path, inode in synced.items() if path not in self._removed}
        newest = dict(list(self._names.items())[-1:])
        return [
            *(
                {path: kept.get(inode, b"") for path, inode in names.items()}
                for names in (least, left, synced | newest, left | newest, self._names)
            ),
            {path: inode.image() for path, inode in least.items()},
        ]

    def make_durable(self) -> None:
        """Let all that is there be durable, as if it had lain there for long."""
        self.durable_names = dict(self._names)
        self.durable_bytes = {inode: inode.image() for inode in self._names.values()}
        self._new_directories.clear()

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Tell of a change, and keep what it makes durable."""
        is_made = call == "open" and arguments[0] and self._normal(path) not in self._names
        if not is_made and call not in CHANGES - {"map"}:
            return
        self.before_step()
        match call:
            case "sync" | "flush":
                self.durable_bytes[handle.inode] = handle.inode.image()
            case "remove":
                self._removed.add(self._normal(path))
            case "make_directory":
                self._new_directories |= set(self._parents(path)) - self._directories
            case "sync_directory":
                self._sync_names(self._normal(path).rstrip("/") + "/")

    def _parents(self, path: str) -> Iterator[str]:
        """Yield a directory and those above it."""
        path = self._normal(path)
        while path != "/":
            yield path
            path = posixpath.dirname(path)

    def _sync_names(self, folder: str) -> None:
        """Let the names in a folder be durable."""

        def is_in(name: str) -> bool:
            return name.startswith(folder) and "/" not in name[len(folder) :]

        self._removed = {name for name in self._removed if not is_in(name)}
        self._new_directories = {name for name in self._new_directories if not is_in(name)}
        elsewhere = {name: one for name, one in self.durable_names.items() if not is_in(name)}
        self.durable_names = elsewhere | {n: one for n, one in self._names.items() if is_in(n)}


def crash_images(
    files: CrashingFiles, operation: Callable[[], object], *, power: bool = True, kill: bool = True
) -> list[Image]:
    """Do an operation; return each different image that a crash before or behind a step leaves."""
    found: dict[tuple[tuple[str, bytes], ...], Image] = {}

    def look() -> None:
        for image in [
            *([files.after_kill()] if kill else []),
            *(files.after_power_loss() if power else []),
        ]:
            found.setdefault(tuple(sorted(image.items())), image)

    files.before_step = look
    try:
        operation()
    finally:
        files.before_step = lambda: None
    look()
    return list(found.values())
