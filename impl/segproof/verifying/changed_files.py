# SPDX-License-Identifier: Apache-2.0
"""Leave out what has not changed since a time, by the modification times of files.

A partition is checked from its first changed segment on, as if its log began there: so a log looks
whose oldest segments a broker has deleted. A store of RocketMQ is checked as a whole or not at all.
"""

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from segproof.files import Files, status_of
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.reading.store_paths import Place
from segproof.verifying.summarising import Work

OnLeftOut = Callable[[str, int], None]
"""Called with a partition, or a place of RocketMQ, and how many of its segments are left out."""
FOLDERS_DEEP = 4
"""Folders below a store: consumequeue, a topic, a queue."""


@dataclass(frozen=True, slots=True)
class Since:
    """A time, and what is told about files that have not changed since."""

    time_ns: int
    """In nanoseconds since 1970, inclusive."""
    on_left_out: OnLeftOut | None = None

    def changed(self, works: Iterable[Work], files: Files) -> list[Work]:
        """Return what has changed since.

        A file that can't be looked at counts as changed, so that its check says why.
        """
        kept: list[Work] = []
        for work in works:
            if isinstance(work, Place):
                if _is_changed(work.path, self.time_ns, files, FOLDERS_DEEP):
                    kept.append(work)
                else:
                    self._leave_out(work.path, 0)
                continue
            rest = _from_first_change(work, self.time_ns, files)
            if len(rest) < len(work.segments):
                self._leave_out(work.directory, len(work.segments) - len(rest))
            if rest or not work.segments:
                kept.append(replace(work, segments=rest))
        return kept

    def _leave_out(self, path: str, segments: int) -> None:
        if self.on_left_out is not None:
            self.on_left_out(path, segments)


def _from_first_change(partition: Partition, since_ns: int, files: Files) -> tuple[Segment, ...]:
    """Return the segments from the first changed one on."""
    for number, segment in enumerate(partition.segments):
        paths = map(segment.path, sorted(segment.suffixes))
        if any(_is_changed(path, since_ns, files, 0) for path in paths):
            return partition.segments[number:]
    return ()


def _is_changed(path: str, since_ns: int, files: Files, levels: int) -> bool:
    """Return whether a file, or one that many levels below a folder, has changed since."""
    status = status_of(files, path)
    if status is None or status.modified_ns >= since_ns:
        return True
    if not status.is_directory or not levels:
        return False
    try:
        names = files.list_directory(path)
    except OSError:
        return True
    return any(_is_changed(posixpath.join(path, one), since_ns, files, levels - 1) for one in names)
