# SPDX-License-Identifier: Apache-2.0
"""Files in memory that tell of each call: before it, to count it or let it fail, and after it."""

from collections.abc import Callable
from typing import Any, cast

from segproof.files import File
from segproof_harness.files.memory_files import CAPACITY_BYTES, MemoryFiles

__all__ = ["CHANGES", "CHANGES_OF_FILES", "READS", "WatchedFiles"]

CHANGES_OF_FILES = frozenset({"pwrite", "truncate", "sync", "map", "flush"})
"""Calls of a file, or of a mapping of it."""
CHANGES_OF_NAMES = frozenset(
    {
        "create_new", "rename", "link", "remove", "make_directory", "remove_directory",
        "take_access", "sync_directory",
    }
)  # fmt: skip
CHANGES = CHANGES_OF_FILES | CHANGES_OF_NAMES
"""Calls that change bytes, names or what is durable; opening a file may change names too."""
READS = frozenset({"pread", "pread_into"})
"""Calls that read bytes of a file."""
QUESTIONS = frozenset({"status", "list_directory"})


class WatchedFiles(MemoryFiles):
    """Files in memory; a subclass says in `before` and `after` what comes beside each call."""

    calls_of_files = CHANGES_OF_FILES
    """Calls of a file that are told; a subclass may add `READS`."""

    def __init__(
        self, capacity_bytes: int = CAPACITY_BYTES, *, clock_ms: Callable[[], int] | None = None
    ) -> None:
        super().__init__(capacity_bytes, clock_ms=clock_ms)
        self._handles: list[Any] = []

    @property
    def open_handles(self) -> list[Any]:
        """The files that were opened, and not closed."""
        return [handle for handle in self._handles if handle._inode is not None]

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Do what comes before a call; an error that is raised here is the call's.

        `call` is the method's name: one of `CHANGES`, `status`, `list_directory`, or `open`, whose
        argument is whether the file is opened for writing. For a call of a file, or of a mapping of
        it, `handle.inner` is the file or the mapping, `handle.inode` has the bytes, and
        `handle.is_writable` says whether it is open for writing.
        """

    def after(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Do what comes after a call that raised no error; the arguments are those of `before`."""

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open, and watch the file."""
        self.before("open", path, writable)
        file = self._watched(super().open(path, writable=writable, create=create), writable)
        self.after("open", path, writable)
        return file

    def create_new(self, path: str) -> File | None:
        """Create, and watch the file."""
        self.before("create_new", path)
        file = super().create_new(path)
        self.after("create_new", path)
        return None if file is None else self._watched(file, True)

    def _watched(self, file: Any, writable: bool) -> File:
        self._handles.append(file)
        return cast(File, _Watched(file, self, file._inode, file.path, writable))


def _telling(name: str) -> Callable[..., Any]:
    """Return the method of that name, between `before` and `after`."""

    def call(self: WatchedFiles, path: str, *arguments: Any) -> Any:
        self.before(name, path, *arguments)
        answer = getattr(super(WatchedFiles, self), name)(path, *arguments)
        self.after(name, path, *arguments)
        return answer

    return call


for _name in (CHANGES_OF_NAMES | QUESTIONS) - {"create_new"}:
    setattr(WatchedFiles, _name, _telling(_name))


class _Watched:
    """A file, or a mapping of it, whose changes are told."""

    def __init__(
        self, inner: Any, files: WatchedFiles, inode: Any, path: str, is_writable: bool
    ) -> None:
        place = {"inode": inode, "path": path, "is_writable": is_writable}
        vars(self).update(inner=inner, _files=files, _place=place)

    @property
    def inode(self) -> Any:
        """What has the bytes."""
        return self._place["inode"]

    @property
    def is_writable(self) -> bool:
        """Whether the file is open for writing."""
        return bool(self._place["is_writable"])

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in self._files.calls_of_files:
            return found

        def call(*arguments: Any) -> Any:
            self._files.before(name, self._place["path"], *arguments, handle=self)
            answer = found(*arguments)
            self._files.after(name, self._place["path"], *arguments, handle=self)
            return _Watched(answer, self._files, **self._place) if name == "map" else answer

        return call

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.inner, name, value)
