# SPDX-License-Identifier: Apache-2.0
"""Files in memory that tell before each change, and know what a crash would leave then.

A killed process leaves all that was done. A loss of power leaves what was synced, and of the rest
what the system happened to write: here nothing of it, all names, all bytes, or the removals alone,
or the newest name, with the removals or without.
A name is durable once its directory was synced and has a durable name itself, bytes once their file
or its mapping was.
Not covered: part of a write; one of two names, or of two files, that wait to be written.
"""

from collections.abc import Callable
from typing import Any, cast

from segproof.files import File
from segproof_harness.files.memory_files import MemoryFiles

__all__ = ["CrashingFiles", "Image", "crash_images"]

Image = dict[str, bytes]
"""Bytes by path."""


class _Watched:
    """A file, or a mapping of it, that tells before it changes and keeps what was made durable."""

    def __init__(self, inner: Any, files: "CrashingFiles", inode: Any) -> None:
        vars(self).update(_inner=inner, _files=files, _inode=inode)

    def sync(self) -> None:
        self._files.before_step()
        self._inner.sync()
        self._files.durable_bytes[self._inode] = self._inode.image()

    def flush(self) -> None:
        self._files.before_step()
        self._inner.flush()
        self._files.durable_bytes[self._inode] = self._inode.image()

    def map(self, size: int) -> Any:
        return _Watched(self._inner.map(size), self._files, self._inode)

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        self._files.before_step()
        self._inner.pwrite(data, position)

    def truncate(self, size: int) -> None:
        self._files.before_step()
        self._inner.truncate(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)


class CrashingFiles(MemoryFiles):
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

    def make_directory(self, path: str) -> None:
        """Tell, and make it."""
        self.before_step()
        before = set(self._directories)
        super().make_directory(path)
        self._new_directories |= self._directories - before

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open, and watch the file."""
        if create and self.status(path) is None:
            self.before_step()
        file: Any = super().open(path, writable=writable, create=create)
        return cast(File, _Watched(file, self, file._inode))

    def create_new(self, path: str) -> File | None:
        """Create, and watch the file."""
        self.before_step()
        file: Any = super().create_new(path)
        return None if file is None else cast(File, _Watched(file, self, file._inode))

    def rename(self, source: str, target: str) -> None:
        """Tell, and rename."""
        self.before_step()
        super().rename(source, target)

    def remove(self, path: str) -> bool:
        """Tell, and remove."""
        self.before_step()
        self._removed.add(self._normal(path))
        return super().remove(path)

    def sync_directory(self, path: str) -> None:
        """Tell, and keep the names in this directory."""
        self.before_step()
        super().sync_directory(path)
        folder = self._normal(path).rstrip("/") + "/"

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
