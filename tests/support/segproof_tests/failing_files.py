# SPDX-License-Identifier: Apache-2.0
"""Files in memory that fail at one change, or from that change on."""

import errno
from collections.abc import Callable, Iterator
from typing import Any

from segproof_harness.files.watched_files import CHANGES, WatchedFiles

__all__ = ["EndingFiles", "each_end"]

FREEING = frozenset({"remove", "remove_directory", "take_access"})
"""Changes that free room, or take none."""


class EndingFiles(WatchedFiles):
    """Files in memory that fail at one change, or at that one and all after it."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        """So many changes still succeed; negative: all."""
        self.is_for_ever = False
        self.is_full = False
        """Whether the device is full from there on: what frees room, or takes none, succeeds."""

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Fail if it is due; to open a file for writing is a change too."""
        is_change = call in CHANGES or (call == "open" and arguments[0])
        is_read_only = handle is not None and not handle.is_writable
        if not is_change or is_read_only or (self.is_full and call in FREEING):
            return
        if self.left == 0:
            if not self.is_for_ever and not self.is_full:
                self.left = -1
            raise (
                OSError(errno.ENOSPC, "full", path)
                if self.is_full
                else OSError(errno.EIO, "broken", path)
            )
        self.left -= 1 if self.left > 0 else 0


def each_end(
    make: Callable[[], EndingFiles], work: Callable[[EndingFiles], object]
) -> Iterator[EndingFiles]:
    """Yield the files of a work that ends at any one of its changes; no later change fails.

    It ends with an error at this change, and then with one at each change from there on: then the
    files are those that a process leaves that is killed there. Files that are byte for byte as some
    before are left out: what follows is the same. `make` gives the files before the work.
    """
    seen: set[frozenset[tuple[str, bytes]]] = set()
    for is_for_ever in (False, True):
        for changes in range(1000):
            files = make()
            files.left, files.is_for_ever = changes, is_for_ever
            try:
                work(files)
            except OSError:
                pass
            else:
                if files.left > 0:
                    break
            files.left, files.is_for_ever = -1, False
            state = frozenset(files.images("/", with_folders=True).items())
            if state not in seen:
                seen.add(state)
                yield files
