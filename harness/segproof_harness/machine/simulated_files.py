# SPDX-License-Identifier: Apache-2.0
"""Files in memory with a journal of what was done to them, and calls that fail when it is asked.

`fault_model` says what that may do. Bytes that are stored through a mapping are looked for at each
call of the door, and by `look`.
"""

import errno
import os
from collections.abc import Callable, Iterable
from typing import Any

from segproof_harness.files.memory_files import CAPACITY_BYTES, MemoryFiles
from segproof_harness.files.watched_files import CHANGES, WatchedFiles
from segproof_harness.machine.contents import PAGE_BYTES, Content
from segproof_harness.machine.crash_images import Image, crash_images, durable_image
from segproof_harness.machine.fault_model import MODES, SECTOR_BYTES, Mode
from segproof_harness.machine.journal import Effect, Journal

__all__ = ["KILL", "ORDERED", "POWER_LOSS", "SimulatedFiles", "crashes_in", "mounted"]

KILL = tuple(mode for mode in MODES if not mode.loses_power)
ORDERED = tuple(mode for mode in MODES if mode.keeps_order)
POWER_LOSS = tuple(mode for mode in MODES if mode.loses_power)


class SimulatedFiles(WatchedFiles):
    """Files in memory that record each effect in a `journal`; `fail` lets a later call fail."""

    def __init__(
        self,
        capacity_bytes: int = CAPACITY_BYTES,
        *,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(capacity_bytes, clock_ms=clock_ms)
        self._mapped: dict[int, tuple[Any, str]] = {}
        self._left: int | None = None
        self._errno = errno.EIO
        self._is_for_ever = False
        self._writes_half = True
        self.failed: list[Effect] = []
        """The calls that failed since `fail` was called."""
        self.journal = Journal({}, ["/"])

    def settle(self) -> None:
        """Let all that is there be durable, as if it had lain there for long; begin a journal."""
        numbers = {path: inode.number for path, inode in self._names.items()}
        known, self.journal = self.journal, Journal(numbers, self._directories)
        for inode in {*self._names.values(), *(one for one, _ in self._mapped.values())}:
            self.journal.begin_with(inode.number, _updated(known.content(inode.number), inode))

    def look(self) -> None:
        """Record what was stored through mappings since the last call."""
        for inode, path in list(self._mapped.values()):
            self._record(inode, "store", path)

    def fail(
        self,
        number: int,
        *,
        code: int = errno.EIO,
        for_ever: bool = False,
        writes_half: bool = True,
    ) -> None:
        """Let the change `number` from now on fail, counted from 0; `for_ever` all later ones too.

        To open a file for writing is a change, and whatever else `CHANGES` names.
        A write that fails has written half of its bytes, or none without `writes_half`, and a sync
        that fails has lost the pages that it was to write; any other change has done nothing. A
        negative number: none fails.
        """
        self._left, self._errno, self._is_for_ever = number, code, for_ever
        self._writes_half = writes_half
        self.failed = []

    def may_fail(self, call: str, *arguments: Any, handle: Any = None) -> bool:
        """Return whether `fail` counts a call; see `WatchedFiles.before` for the arguments."""
        return call in CHANGES or (call == "open" and arguments[0])

    # --- what is recorded

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Look for stores; let the call fail if it is due."""
        self.look()
        if self._left is None or self._left < 0:
            return
        if not self.may_fail(call, *arguments, handle=handle):
            return
        if self._left > 0:
            self._left -= 1
            return
        if not self._is_for_ever:
            self._left = None
        self.failed.append(Effect(call, path))
        if call == "pwrite" and self._writes_half and len(arguments[0]) > 1:
            data, position = arguments
            handle.inner.pwrite(data[: len(data) // 2], position)
            self._record(handle.inode, "pwrite", path, "half of the bytes")
        elif call in ("sync", "flush"):
            self.journal.sync_failed(handle.inode.number, Effect(call, path, "failed"))
        raise OSError(self._errno, os.strerror(self._errno), path)

    def after(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Record what a call did."""
        path = self._normal(path)
        match call:
            case "pwrite":
                detail = f"{len(arguments[0])} bytes at {arguments[1]}"
                self._record(handle.inode, call, path, detail)
            case "truncate":
                self._record(handle.inode, call, path, f"to {arguments[0]} bytes")
            case "map":
                self._mapped[handle.inode.number] = (handle.inode, path)
            case "sync" | "flush":
                self.journal.synced(handle.inode.number, Effect(call, path))
            case "sync_directory":
                self.journal.folder_synced(path, Effect(call, path))
            case "rename":
                target = self._normal(arguments[0])
                if self.journal.names.get(target) != self.journal.names[path]:
                    self.journal.named("rename", path, target, self.journal.names[path])
            case _:
                self._record_names()

    def _record(self, inode: Any, call: str, path: str, detail: str = "") -> None:
        old = self.journal.content(inode.number)
        new = _updated(old, inode)
        if new is not old:
            is_cut = call == "truncate" and new.size_bytes < old.size_bytes
            self.journal.changed(inode.number, Effect(call, path, detail), new, is_cut=is_cut)

    def _record_names(self) -> None:
        """Record which names, and which folders, were made or removed."""
        journal = self.journal
        for path in [path for path in self._names if path not in journal.names]:
            journal.named("create", path, inode=self._names[path].number)
        for path in [path for path in journal.names if path not in self._names]:
            journal.named("remove", path)
        for path in sorted(self._directories - journal.folders):
            journal.named("make_directory", path)
        for path in sorted(journal.folders - self._directories, reverse=True):
            journal.named("remove_directory", path)

    # --- what a crash leaves

    def left_by_kill(self) -> dict[str, bytes]:
        """Return the bytes of each file by its path: what a process that is killed leaves."""
        return {path: inode.image() for path, inode in self._names.items()}

    def durable(self) -> dict[str, bytes]:
        """Return the bytes of each file by its path: what a loss of power leaves at least."""
        self.look()
        return durable_image(self.journal).data()


def _updated(known: Content, inode: Any) -> Content:
    return known if inode.storage is None else known.updated(inode.storage, inode.size)


def crashes_in(
    files: SimulatedFiles,
    operation: Callable[[], object],
    modes: Iterable[Mode] = MODES,
    *,
    bound: int = 8,
    sector_bytes: int = SECTOR_BYTES,
) -> list[dict[str, bytes]]:
    """Do an operation; return each different image that a crash in it, or behind it, leaves.

    A crash comes before the first effect, and behind each. An image has the bytes of each file by
    its path. For `bound` see `crash_images`: it holds for each crash and each mode.
    """
    files.look()
    first = len(files.journal)
    operation()
    files.look()
    images = dict.fromkeys(
        image
        for cut in range(first, len(files.journal) + 1)
        for mode in modes
        for image in crash_images(files.journal, cut, mode, bound=bound, sector_bytes=sector_bytes)
    )
    return [image.data() for image in images]


def mounted(image: Image, files: MemoryFiles) -> None:
    """Put what a crash left into files that are empty."""
    for folder in sorted(image.folders):
        files.make_directory(folder)
    for path, content in image.files.items():
        file = files.open(path, writable=True, create=True)
        file.truncate(content.size_bytes)
        for page, data in content.pages.items():
            file.pwrite(data, page * PAGE_BYTES)
        file.close()
