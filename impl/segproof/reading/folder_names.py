# SPDX-License-Identifier: Apache-2.0
"""The names in a folder, for those who look around: a folder that can't be listed has none.

Many questions are asked of one folder: of each log, what lies beside it. So a folder that rests is
listed once for all of them, and each name is read once.
"""

import posixpath
from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import takewhile

from segproof.files import Files, FileStatus, status_of
from segproof.integers import INT64_MIN
from segproof.reading.file_names import (
    SEGMENT_SUFFIXES,
    FileName,
    NameKind,
    read_file_name,
    segment_file,
)
from segproof.reading.live_writer import has_rested

FOLDERS_KEPT = 4
"""A folder, the one above it, and two more: their listings are kept."""
LOG, *INDEXES, _ = SEGMENT_SUFFIXES


class Folder:
    """The names in a folder as it was listed once, and what they stand for."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.begins: dict[int, list[str]] | None = None
        """The names of logs by their first offsets, once `logs_from` was asked."""

    @cached_property
    def kinds(self) -> dict[str, FileName]:
        """What each name stands for in the folder of a partition."""
        return {name: read_file_name(name) for name in self.names}

    @cached_property
    def logs(self) -> list[int]:
        """The base offsets of the logs that a broker reads by their names, rising."""
        return sorted(known.base_offset for _, known in self._of_segments if known.suffix == LOG)

    @cached_property
    def _alone(self) -> list[tuple[int, str]]:
        logs = set(self.logs)
        return sorted(
            (known.base_offset, name)
            for name, known in self._of_segments
            if known.suffix in INDEXES and known.base_offset not in logs
        )

    @property
    def _of_segments(self) -> list[tuple[str, FileName]]:
        return [one for one in self.kinds.items() if one[1].kind is NameKind.SEGMENT]

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.names)

    def beginning_with(self, text: str) -> list[str]:
        """Return the names that begin with a text, sorted."""
        rest = range(bisect_left(self._sorted, text), len(self._sorted))
        names = (self._sorted[at] for at in rest)
        return [*takewhile(lambda name: name.startswith(text), names)]

    @cached_property
    def last_log(self) -> int:
        """The highest base offset in the name of a log, one that waits or was removed among them;
        `INT64_MIN` without any."""
        found = filter(None, map(segment_file, self.names))
        return max((one.base_offset for one in found if one.suffix == LOG), default=INT64_MIN)

    def log_after(self, base_offset: int) -> int | None:
        """Return the base offset of the log after one of this base offset; None for the last."""
        at = bisect_right(self.logs, base_offset)
        return self.logs[at] if at < len(self.logs) else None

    def alone(self, first: int, end: int | None) -> list[str]:
        """Return the names of the indexes without a log whose base offsets are in a range.

        `end` is the offset after the range; None for a range without an end.
        """
        behind = None if end is None else bisect_left(self._alone, (end, ""))
        return [name for _, name in self._alone[bisect_left(self._alone, (first, "")) : behind]]


class KnownFolders:
    """Folders as they show themselves now.

    A folder that has rested since it was listed is not listed once more: its modification time
    tells, since each new, renamed or removed name changes it. A folder without one, as where files
    lie behind URLs, is listed each time. The last `FOLDERS_KEPT` listings are kept.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._kept: dict[str, tuple[FileStatus, Folder]] = {}

    def of(self, path: str) -> Folder:
        """Return a folder; one that can't be listed has no names."""
        status = status_of(self._files, path)
        before, folder = self._kept.pop(path, (None, None))
        if folder is None or before != status:
            folder = Folder(_names_in(path, self._files))
        if status is not None and has_rested(status):
            self._kept[path] = status, folder
            while len(self._kept) > FOLDERS_KEPT:
                del self._kept[next(iter(self._kept))]
        return folder


def folder_of(path: str, files: Files) -> Folder:
    """Return a folder; files that know folders (`KnownFolders`) list one that rests once."""
    known = getattr(files, "folders", None)
    return known.of(path) if isinstance(known, KnownFolders) else Folder(_names_in(path, files))


def names_of(folder: str, files: Files) -> list[str]:
    """Return the names in a folder; none if it can't be listed."""
    return [*folder_of(folder, files).names]


def _names_in(folder: str, files: Files) -> list[str]:
    try:
        return files.list_directory(folder)
    except OSError:
        return []


def has_folder(path: str, name: str, files: Files) -> bool:
    """Return whether a folder of this name is at a path; what can't be looked at is none."""
    status = status_of(files, posixpath.join(path, name))
    return status is not None and status.is_directory
