# SPDX-License-Identifier: Apache-2.0
"""Files in memory that fail at one change, or from that change on."""

import errno
from collections.abc import Callable
from typing import Any

from segproof_tests.watched_files import CHANGES, WatchedFiles

__all__ = ["Ended", "EndingFiles"]

FREEING = frozenset({"remove", "remove_directory", "take_access"})
"""Changes that free room, or take none."""


class Ended(BaseException):
    """The process is ended."""


class EndingFiles(WatchedFiles):
    """Files in memory that fail at one change, or at that one and all after it."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        """So many changes still succeed; negative: all."""
        self.is_for_ever = False
        self.is_full = False
        """Whether the device is full from there on: what frees room, or takes none, succeeds."""
        self.error: Callable[[str], BaseException] = lambda path: OSError(errno.EIO, "broken", path)

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Fail if it is due; to open a file for writing is a change too."""
        is_change = call in CHANGES or (call == "open" and arguments[0])
        is_read_only = handle is not None and not handle.is_writable
        if not is_change or is_read_only or (self.is_full and call in FREEING):
            return
        if self.left == 0:
            if not self.is_for_ever and not self.is_full:
                self.left = -1
            raise OSError(errno.ENOSPC, "full", path) if self.is_full else self.error(path)
        self.left -= 1 if self.left > 0 else 0
