# SPDX-License-Identifier: Apache-2.0
"""The length of the files of a commit log, and files that are longer: two that were joined, say.

What lies behind the length of a file is read as a file of its own: at the offset that follows if
the log has no file there, else behind the last file. Its messages say where they belong.

A message may lie across that length, as where a file that had been cut was joined with the next
one. Then the part that is read as a file of its own begins with it.

Laws: RMQDISK-23.
"""

import os
from contextlib import closing
from itertools import pairwise
from typing import cast

from segproof.errors import InvalidArgumentError
from segproof.files import File, Files, ReadOnlyFile, first_byte_of
from segproof.reading.file_parts import FilePart
from segproof.reading.log_in_order import with_blank_room
from segproof.reading.log_names import step_of
from segproof.rebuilding.dry_files import DryFiles
from segproof.rocketmq.commit_log import CommitLog, LogFile, log_file_name
from segproof.stretches.rocketmq.candidates import whole_messages
from segproof.stretches.unreadable_blocks import ReadableParts

ACROSS_BYTES = 4 << 20
"""A message reaches at most this far across the length of a file: maxMessageSize is 4 MiB."""


def with_file_size(log: CommitLog, given: int | None, files: Files) -> CommitLog:
    """Return the log with files of a given length, or of that which the old ones say.

    The only file of a log may be cut: if it ends with a message, the new one has room for a blank
    end after it. Raises: InvalidArgumentError for a length that the old files contradict; OSError.
    """
    if given is None:
        return with_blank_room(log, files)
    asked = CommitLog.open(log.store_path, given, files=files)
    said, step = log.mapped_file_size, step_of(log)
    starts = [one.start for one in log.log_files if one.start % said == step]
    steps = [after - before for before, after in pairwise(starts)]
    whole = sum(one.size_bytes == said for one in log.log_files)
    is_too_long = min(steps, default=given) < given
    if is_too_long or (steps and given < said and whole + steps.count(said) > 1):
        raise InvalidArgumentError(
            f"files of {given} bytes do not fit this log, whose files have {said}",
            expected=said,
            actual=given,
            hint="leave --mapped-file-size away: each message stays at its offset, so the new files"
            " begin where the old ones did; give the broker this mappedFileSizeCommitLog",
        )
    return asked


def _readable(path: str, files: Files) -> ReadOnlyFile:
    return ReadableParts(files.open(path))


def _begin_across(path: str, at: int, files: Files) -> int:
    """Return where the sound message begins that lies across a position of a file; else the
    position.
    """
    first = max(0, at - ACROSS_BYTES)
    with closing(_readable(path, files)) as file:
        data = file.pread(2 * ACROSS_BYTES, first)
    for position, message in whole_messages(data):
        begin = first + position
        if begin >= at:
            break
        if begin + message.total_size > at:
            return begin
    return at


class RestsOfFiles(DryFiles):
    """Reads files, and what lies behind the length of oversized files of a log as files."""

    def __init__(self, log: CommitLog, files: Files) -> None:
        super().__init__(files, in_memory=False)
        self._real = files
        self._rests: dict[str, tuple[str, int, int]] = {}
        """By path of a rest: the path of its file, where it begins there, and its size."""
        rests, size = [], log.mapped_file_size
        taken, behind = {one.start for one in log.log_files}, log.max_offset
        for one in log.log_files:
            status = files.status(one.path)
            length = 0 if status is None else status.size_bytes
            at = size
            while at < length:
                begin = _begin_across(one.path, at, files)
                byte = first_byte_of(files, one.path, begin, length)
                if byte is None:
                    break
                if byte >= begin + size:  # holes are passed over at once: they may be terabytes
                    at = begin + (byte - begin) // size * size
                    continue
                end = min(begin + size, length)
                number, at = at // size, end
                start = one.start + number * size
                while start in taken:
                    start, behind = behind, behind + size
                taken.add(start)
                path = os.path.join(os.path.dirname(one.path), log_file_name(start))
                rests.append(LogFile(start, path, end - begin))
                self._rests[path] = one.path, begin, end - begin
        in_order = tuple(sorted([*log.log_files, *rests], key=lambda each: each.start))
        self.log = CommitLog(log.store_path, size, in_order, files) if rests else log
        """The log with a file for each rest that is not zeros alone."""

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file or a rest, for reading only."""
        if path not in self._rests:
            return super().open(path, writable=writable, create=create)
        name, begin, size = self._rests[path]
        return cast(File, FilePart(self._real.open(name), path, begin, size))

    def place_of(self, path: str, position: int) -> tuple[str, int]:
        """Return in which file on disk a position lies, and where."""
        name, begin, _ = self._rests.get(path, (path, 0, 0))
        return name, begin + position
