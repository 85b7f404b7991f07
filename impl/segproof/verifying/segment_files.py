# SPDX-License-Identifier: Apache-2.0
"""One segment as `verify` sees it: which files it has, and what stands beside them."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import sleep
from typing import NamedTuple

from segproof.files import File, Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, changes, writes
from segproof.reading.file_names import is_of_cache, name_in_segment
from segproof.reading.live_writer import changed_recently
from segproof.reading.overlapping_logs import Overlap
from segproof.verifying.reporting import PathReporter, Reporter
from segproof.verifying.rules import REBUILD, SALVAGE, declare

declare("log-segment", Severity.ERROR,
    SALVAGE.after("this file was not closed: the broker did not stop as the marker or the later"
    " segment says. A salvage leaves the zeros out: "), "DISK-6", is_of_any_file=True)  # fmt: skip
declare("log-segment", Severity.ERROR,
    REBUILD.after("Kafka addresses files with 31 bits, so it is none of Kafka's: "), "DISK-7",
    is_of_any_file=True)  # fmt: skip

STRUCTURES = {
    ".log": "record-file",
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "transaction-index",
}
"""The structure that findings name, by the suffix of the file."""
FETCH_AGAIN = changes(
    "move the three files of this segment out of the cache: the broker fetches them again from the"
    " remote storage when it needs them. Its start fails where an .index or .timeindex here has a"
    " wrong length, or ends below its base offset",
    only_if="the remote storage still has this segment",
    if_wrong="reads of this segment fail until the files are back",
    copy_step="stop the broker and copy these files to another directory",
)
COPY_AGAIN = writes(
    "copy the file from the remote storage into a new directory, and verify that; without a file of"
    " this name, it is a part of the segment's .indexes. If it is damaged there too, a broker may"
    " still have the segment; else what is damaged is lost"
)
SAVE_ALONE = writes(
    "no salvage of the partition reads this file. Copy it into an empty folder with this"
    " partition's name, as a log that is named by its first offset in 20 digits, and save that"
    " folder with `segproof salvage`"
)
LARGE_LOG = writes(
    "save what is sound with `segproof salvage DIR --out DIR2`, which gives it a log of its own:"
    " Kafka opens no log that 31 bits can't address"
)
FILE_SIZE_MAX_BYTES = (1 << 31) - 1
PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8)
"""The pauses, one after the other, for a broker that may be in the middle of a step."""


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
    overlap: Overlap | None = None
    """What shows that its log is none of the partition's; then its files are not judged."""

    def path(self, suffix: str) -> str:
        """Return the path of one of its files."""
        separator = "" if self.directory.endswith("/") else "/"
        name = name_in_segment(self.base_offset, suffix, self.stem)
        name = self.log_name if self.log_name and suffix == ".log" else name
        name += ".swap" if self.is_swap else ""
        return f"{self.directory}{separator}{name}"

    def report(self, suffix: str, reporter: Reporter) -> PathReporter:
        """Return what takes the findings of one of its files."""
        return reporter.at(self.path(suffix), STRUCTURES[suffix])

    def look(self, files: Files) -> tuple[FileState, ...]:
        """Return what its files are now."""
        return tuple(state_of(files, self.path(suffix)) for suffix in sorted(self.suffixes))

    def is_unchanged(self, files: Files) -> bool:
        """Return whether all files are there, and those that were there when they were listed."""
        is_there = all(state.size_bytes >= 0 for state in self.seen)
        return is_there and self.seen == self.look(files)

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
    def hint(self) -> Hint | None:
        """What to do about a defect, where the hints for a broker's own segments do not fit."""
        if self.log_name:
            return SAVE_ALONE
        if not self.stem:
            return None
        return FETCH_AGAIN if self.is_cached else COPY_AGAIN

    @property
    def why_closed(self) -> str:
        """Why it should be finished, in words."""
        if self.stem:
            return "only closed segments get into tiered storage"
        if self.next_base_offset is not None:
            return "a later segment follows"
        return "the broker has stopped cleanly"

    @property
    def tail_severity(self) -> Severity:
        """How bad a file is that ends in preallocated zeros."""
        return Severity.ERROR if self.is_closed else Severity.NOTE


def state_of(files: Files, path: str) -> FileState:
    """Return what a path stands for now."""
    status = status_of(files, path)
    return FileState() if status is None else FileState(status.identity, status.size_bytes)


def wait_for_a_step(paths: Iterable[str], files: Files, pause_seconds: float) -> bool:
    """Pause if one of the paths was changed a moment ago; return whether it was."""
    is_recent = changed_recently(paths, files)
    if is_recent:
        sleep(pause_seconds)
    return is_recent


def open_guarded(files: Files, report: PathReporter) -> File | None:
    """Open a file, or report why it can't be opened and return None."""
    try:
        return files.open(report.path)
    except OSError as error:
        report.failed(error)
    return None


def size_guarded(file: File, report: PathReporter, hint: Hint | None = None) -> int:
    """Return the size of a file; report one that no broker could address."""
    size = file.size()
    if size > FILE_SIZE_MAX_BYTES:
        report.add(
            "DISK-7",
            f"the file has {size} bytes, more than 31 bits can address; an index is looked at up to"
            f" byte {FILE_SIZE_MAX_BYTES}",
            position=FILE_SIZE_MAX_BYTES,
            expected=FILE_SIZE_MAX_BYTES,
            actual=size,
            hint=LARGE_LOG if report.path.endswith(".log") else hint,
        )
    return size
