# SPDX-License-Identifier: Apache-2.0
"""Files in memory that fail at one change, or from that change on."""

import errno
from collections.abc import Callable
from typing import Any

from segproof.files import File
from segproof_harness.files.memory_files import MemoryFiles

__all__ = ["Ended", "EndingFiles"]


class Ended(BaseException):
    """The process is ended."""


class EndingFiles(MemoryFiles):
    """Files in memory that fail at one change, or at that one and all after it."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        """So many changes still succeed; negative: all."""
        self.is_for_ever = False
        self.is_full = False
        """Whether the device is full from there on: what frees room, or takes none, succeeds."""
        self.error: Callable[[str], BaseException] = lambda path: OSError(errno.EIO, "broken", path)

    def count(self, path: str, takes_room: bool = True) -> None:
        """Fail if it is due."""
        if self.is_full and not takes_room:
            return
        if self.left == 0:
            if not self.is_for_ever and not self.is_full:
                self.left = -1
            raise OSError(errno.ENOSPC, "full", path) if self.is_full else self.error(path)
        self.left -= 1 if self.left > 0 else 0

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open; what is open for writing fails too."""
        if not writable:
            return super().open(path)
        self.count(path)
        return _EndingFile(self, super().open(path, writable=True, create=create))

    def create_new(self, path: str) -> File | None:
        """Create."""
        self.count(path)
        file = super().create_new(path)
        return None if file is None else _EndingFile(self, file)

    def rename(self, source: str, target: str) -> None:
        """Rename."""
        self.count(source)
        super().rename(source, target)

    def link(self, source: str, target: str) -> None:
        """Link."""
        self.count(source)
        super().link(source, target)

    def remove(self, path: str) -> bool:
        """Remove."""
        self.count(path, takes_room=False)
        return super().remove(path)

    def make_directory(self, path: str) -> None:
        """Make a directory."""
        self.count(path)
        super().make_directory(path)

    def remove_directory(self, path: str) -> bool:
        """Remove a directory."""
        self.count(path, takes_room=False)
        return super().remove_directory(path)

    def take_access(self, path: str, source: str) -> None:
        """Change rights."""
        self.count(path, takes_room=False)
        super().take_access(path, source)

    def sync_directory(self, path: str) -> None:
        """Sync."""
        self.count(path)
        super().sync_directory(path)


class _EndingFile:
    def __init__(self, files: EndingFiles, file: File) -> None:
        self._files = files
        self._file = file

    def __getattr__(self, called: str) -> Any:
        if called in ("pwrite", "truncate", "map", "sync"):
            self._files.count(self._file.path)
        return getattr(self._file, called)
