# SPDX-License-Identifier: Apache-2.0
"""Folders inside of a partition that have logs: segments which somebody moved there, or a copy.

No broker reads such a folder. Its logs are compared with those of the partition, batch by batch.

Laws: DISK-3, DISK-45.
"""

import posixpath
import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from segproof.commands import copy_commands, quoted_path
from segproof.counts import plural
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, reads, writes
from segproof.inventory.folder_extents import Extent, extent_of, lacking, outside
from segproof.reading.file_names import SEGMENT_SUFFIXES, is_like_a_log, read_file_name
from segproof.reading.folder_names import names_of
from segproof.reading.new_places import own_place
from segproof.verifying.unread_files import not_looked_into
from segproof.wording.partition_words import MAY_BELONG_HERE, MAY_LACK
from segproof.wording.reporting import Reporter

FOLDER_IN_PARTITION = "a folder in a partition, which no broker reads"
NUMBERED = re.compile(r"[0-9]{20}", re.ASCII)
"""The base offset that the name of a log begins with."""
HINT_OF_COPY = reads(
    "nothing: the partition has each batch of these logs, and no broker reads the folder"
)
HINT_OF_UNREADABLE = writes(
    "copy these files into another folder, unpacked and under the names of logs (an offset in 20"
    " digits, and .log), and look into the copies with `segproof verify`"
)
HINT_OF_OTHERS = reads(
    "look into the logs there with `segproof dump`: find out which topic and partition they are of"
)
NOT_ALL = "Not all folders in it were searched for logs"
LEVELS_MAX = 4
FOLDERS_MAX = 64
"""At most this many folders inside of a folder are searched for logs, on `LEVELS_MAX` levels."""


class InnerFolders:
    """Reports the folders inside of one partition, whose logs are read once for all of them."""

    def __init__(self, directory: str, files: Files, reporter: Reporter) -> None:
        self._directory = directory
        self._files = files
        self._reporter = reporter

    @cached_property
    def _used(self) -> Extent:
        """What the partition itself holds."""
        return extent_of(self._directory, self._files)

    def report(self, path: str) -> None:
        """Report the folder `path`, with the logs in it and below it."""
        report = self._reporter.at(path, shown_by=self._directory)
        found = _Folders(path, self._directory, self._files)
        compared = (self._compared(folder) for folder in found)
        rows = [one for one in compared if one is not None]
        if rows:
            words, hint, is_missing = self._told(rows, path, found.is_cut)
            severity = Severity.WARNING if is_missing else None
            report.add("DISK-3", words, severity=severity, hint=hint)
        elif found.is_cut:
            words = f"no file of a partition has this name. {NOT_ALL}"
            report.add("DISK-3", words, hint=HINT_OF_OTHERS)
        else:
            report.add("DISK-3", "no file of a partition has this name")
        not_looked_into(report, FOLDER_IN_PARTITION, files=self._files)

    def _compared(self, folder: str) -> "_Row | None":
        """Compare the logs of a folder with those of the partition; None if it has none."""
        extent = extent_of(folder, self._files)
        if not extent.logs and not extent.others:
            return None
        used = self._used
        is_too_much = extent.are_too_many or used.are_too_many
        absent = missing = extent.batches[:0]
        named: list[str] = []
        if not is_too_much:
            absent = lacking(extent.batches, used.batches)
            missing = outside(absent, used.ranges)
        if not used.are_too_many:
            named = _missing_by_name(folder, extent, used, self._files)
        return _Row(
            folder=folder,
            words=extent.words,
            batches=len(extent.batches),
            is_whole=extent.is_whole,
            is_too_much=is_too_much,
            absent=len(absent),
            missing=len(missing),
            first=int(missing[:, 0].min()) if len(missing) else 0,
            last=int(missing[:, 1].max()) if len(missing) else 0,
            named=len(named),
            first_named=named[0] if named else "",
        )

    def _told(self, rows: list["_Row"], path: str, is_cut: bool) -> tuple[str, Hint | None, bool]:
        """Return in words what the logs are, what to do, and whether the partition may lack them.

        `is_cut`: not all folders at and below `path` are in the rows.
        """
        row = max(rows, key=lambda one: (one.missing, one.is_too_much, one.absent))
        place = "" if row.folder == path else f" in {row.folder}"
        words = f"{FOLDER_IN_PARTITION}, has logs{place}: {row.words}"
        if rows[1:]:
            words += f"; {plural(len(rows) - 1, 'more folder', 'in it has', 'in it have')} logs"
        tail = f". {NOT_ALL}" if is_cut else ""
        if row.missing:
            words += (
                f". {plural(row.missing, 'batch', 'has', 'have')} offsets from"
                f" {row.first} to {row.last}: {MAY_BELONG_HERE}"
            )
            return words + tail, _steps(row.folder, self._directory, self._files), True
        if named := sum(one.named for one in rows):
            first = next(one.first_named for one in rows if one.named)
            words += (
                f". {plural(named, 'log')} there cannot be compared, {first} first: offsets"
                f" that {MAY_LACK}"
            )
            return words + tail, HINT_OF_UNREADABLE, True
        if row.is_too_much:
            return (
                f"{words}. They have too many batches to be compared{tail}",
                HINT_OF_OTHERS,
                False,
            )
        if row.absent:
            words += ". The partition has their offsets, in other batches"
            return words + tail, HINT_OF_OTHERS, False
        if not is_cut and all(one.is_whole for one in rows) and any(one.batches for one in rows):
            return f"{words}. The partition has each of their batches too", HINT_OF_COPY, False
        if unread := [one.folder for one in rows if not one.is_whole]:
            words += f". What is damaged, or under another name, in {unread[0]} was not compared"
        return words + tail, HINT_OF_OTHERS, False


class _Row(NamedTuple):
    """What one folder holds that the partition lacks: all that is kept of its extent."""

    folder: str
    words: str
    batches: int
    is_whole: bool
    is_too_much: bool
    """Whether this folder or the partition has too many batches to be compared."""
    absent: int
    """Batches that are not among those of the partition."""
    missing: int
    """Those with an offset that the partition has in no batch."""
    first: int
    last: int
    """The offsets of these; 0 without one."""
    named: int
    """Logs that cannot be compared, whose base offset the partition lacks."""
    first_named: str


class _Folders:
    """The folders at and below `path`."""

    def __init__(self, path: str, directory: str, files: Files) -> None:
        self._path = path
        self._directory = directory
        self._files = files
        self.is_cut = False
        """Whether there are folders that were not searched; known once all are handed out."""

    def __iter__(self) -> Iterator[str]:
        files = self._files
        own = status_of(files, self._directory)
        seen: set[object] = {None if own is None else own.identity}
        waiting = deque([(self._path, 1)])
        count = 0
        while waiting:
            folder, level = waiting.popleft()
            status = status_of(files, folder)
            if status is None:
                self.is_cut = True
                continue
            if not status.is_directory or status.identity in seen:
                continue
            if count == FOLDERS_MAX:
                self.is_cut = True
                break
            if level > LEVELS_MAX:
                self.is_cut = True
                continue
            if status.identity[1] > 0:
                seen.add(status.identity)
            count += 1
            try:
                names = files.list_directory(folder)
            except OSError:
                self.is_cut = True
                continue
            yield folder
            waiting += [(posixpath.join(folder, name), level + 1) for name in names]


def _missing_by_name(folder: str, extent: Extent, used: Extent, files: Files) -> list[str]:
    """Return the paths of packed, renamed or damaged logs whose base offset the partition lacks."""
    found = []
    for name in names_of(folder, files):
        known = read_file_name(name)
        own = extent.by_log.get(name)
        is_log = own is not None and not own.is_whole
        is_log |= own is None and (is_like_a_log(name, known) or ".log." in name)
        base = NUMBERED.match(name)
        status = status_of(files, posixpath.join(folder, name))
        if not is_log or base is None or status is None or not status.size_bytes:
            continue
        offset = int(base[0])
        if not any(first <= offset <= last for first, last in used.ranges):
            found.append(posixpath.join(folder, name))
    return found


def _steps(folder: str, directory: str, files: Files) -> Hint:
    """Return how the logs come into a copy of the partition, on another disk."""
    new = own_place("joined", directory, folder)
    name = posixpath.basename(posixpath.normpath(posixpath.abspath(directory)))
    copy = posixpath.join(new, name)
    kinds = {posixpath.splitext(one)[1] for one in names_of(folder, files)}
    inside = quoted_path(posixpath.join(folder, ""))
    patterns = " ".join(f"{inside}*{one}" for one in SEGMENT_SUFFIXES if one in kinds)
    return writes(
        "copy the partition to another disk, and these segments into that copy:"
        f" {copy_commands(directory, copy)}, `cp -an {patterns} {quoted_path(copy)}`, and"
        f" `segproof verify {quoted_path(copy)}`. Where the offsets follow each other, and no"
        " finding is new, the segments belong to this partition"
    )
