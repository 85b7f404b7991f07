# SPDX-License-Identifier: Apache-2.0
"""One segment: which files it has, and what stands beside them."""

from dataclasses import dataclass
from typing import NamedTuple

from segproof.files import Files, status_of
from segproof.reading.file_names import is_of_cache, name_in_segment
from segproof.reading.overlapping_logs import Overlap


class FileState(NamedTuple):
    """Which file a name stands for, and its size; a file that is not there has size -1."""

    identity: tuple[int, int] = (0, 0)
    size_bytes: int = -1


@dataclass(frozen=True, slots=True)
class Segment:
    """The files of one base offset in one directory. Small and plain: it travels to processes."""

    directory: str
    base_offset: int
    suffixes: frozenset[str]
    """Which of the four files exist."""
    next_base_offset: int | None
    """Base offset of the following segment, None for the last one."""
    is_stopped: bool
    """Whether the marker of a clean stop stands in the data directory."""
    judged: frozenset[str]
    """Suffixes of the files to report on; the others are only read where these need them."""
    size_bytes: int = 0
    """Bytes that will be read, as far as known; for progress only."""
    seen: tuple[FileState, ...] = ()
    """What its files were when the directory was listed."""
    snapshots: tuple[int, ...] = ()
    """Offsets of the first few producer snapshots that lie inside the segment."""
    stem: str = ""
    """Of a segment in tiered storage: what stands before the suffixes of its files."""
    is_swap: bool = False
    """Whether its files wait as `.swap` for their place."""
    held_by: str = ""
    """Of a segment without a log: the name of the log that begins with its base offset, if any."""
    log_name: str = ""
    """The name of its log, if that is not its base offset in 20 digits: no broker reads it."""
    is_passed_by: bool = False
    """Whether its log is a folder, a pipe or a device: a broker passes it by, and reads the log
    before it up to the next one."""
    overlap: Overlap | None = None
    """What shows that its log is none of the partition's; then its files are not judged."""

    def path(self, suffix: str) -> str:
        """Return the path of one of its files."""
        separator = "" if self.directory.endswith("/") else "/"
        name = name_in_segment(self.base_offset, suffix, self.stem)
        name = self.log_name if self.log_name and suffix == ".log" else name
        name += ".swap" if self.is_swap else ""
        return f"{self.directory}{separator}{name}"

    def look(self, files: Files) -> tuple[FileState, ...]:
        """Return what its files are now."""
        return tuple(state_of(files, self.path(suffix)) for suffix in sorted(self.suffixes))

    def is_unchanged(self, files: Files) -> bool:
        """Return whether all files are there, and those that were there when they were listed."""
        is_there = all(state.size_bytes >= 0 for state in self.seen)
        return is_there and self.seen == self.look(files)

    @property
    def log_bytes(self) -> int:
        """How many bytes its log had when the directory was listed; 0 if that is not known."""
        known = dict(zip(sorted(self.suffixes), self.seen, strict=False))
        return max(0, known[".log"].size_bytes) if ".log" in known else 0

    @property
    def is_closed(self) -> bool:
        """Whether the broker has finished with its files, so that their tails are trimmed."""
        return self.next_base_offset is not None or self.is_stopped or bool(self.stem)

    @property
    def is_cached(self) -> bool:
        """Whether it is in a broker's cache of indexes, which has no logs."""
        return is_of_cache(self.stem)

    @property
    def is_recovered(self) -> bool:
        """Whether a broker that recovers the partition reads it."""
        return not (self.stem or self.log_name)

    @property
    def why_closed(self) -> str:
        """Why it should be finished, in words."""
        if self.stem:
            return "only closed segments get into tiered storage"
        if self.next_base_offset is not None:
            return "a later segment follows"
        return "the broker has stopped cleanly"


def state_of(files: Files, path: str) -> FileState:
    """Return what a path stands for now."""
    status = status_of(files, path)
    return FileState() if status is None else FileState(status.identity, status.size_bytes)
