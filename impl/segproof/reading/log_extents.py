# SPDX-License-Identifier: Apache-2.0
"""Which offsets the logs of a partition can hold, and logs that no broker reads by their names.

The name of a log is the offset that it begins with, and no checksum covers a name. The first batch
of a log also says where it begins. A log is left out of a search by offsets only if its name and
the first batches, its own and that of the next log, agree that it has none of them.

Laws: FILE-1, DISK-13, LOG-4.
"""

import posixpath
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

from segproof.files import Files
from segproof.integers import INT64_MAX
from segproof.layouts.kafka import BATCH, HEADER_UP_TO_MAGIC_BYTES
from segproof.reading.file_names import (
    NameKind,
    is_like_a_log,
    partition_of,
    read_file_name,
)
from segproof.reading.folder_names import folder_of
from segproof.reading.log_order import NamedLog, first_offset_of
from segproof.reading.waiting_logs import LOG_SWAP, Ranges, only_copy

MAGIC = 2


def said_first_offset(path: str, files: Files) -> int | None:
    """Return the first offset of a log, as its first batch says; None if that can't be read.

    Cost: 17 bytes; in an old log, of magic 0 or 1, the first message.
    """
    try:
        with closing(files.open(path)) as file:
            header = file.pread(HEADER_UP_TO_MAGIC_BYTES, 0)
    except OSError:
        return None
    if len(header) < HEADER_UP_TO_MAGIC_BYTES or not any(header):
        return None
    magic, offset = BATCH["magic"].of(header), BATCH["base_offset"].of(header)
    if not 0 <= magic <= MAGIC:
        return None
    if magic < MAGIC:
        return first_offset_of(path, files.open)
    return offset if offset >= 0 else None


def logs_from(offset: int, directory: str, files: Files) -> list[str]:
    """Return the names of the logs in a folder whose first batch says this first offset.

    Those that wait as `.swap`, and those that no broker reads by their names, are among them. Cost:
    that of `said_first_offset` for each log; once as long as the folder rests, for all offsets.
    """
    folder = folder_of(directory, files)
    if folder.begins is None:
        folder.begins = {}
        for name, known in folder.kinds.items():
            is_log = known.kind is NameKind.SEGMENT and known.suffix == ".log"
            if is_log or name.endswith(LOG_SWAP) or is_like_a_log(name, known):
                first = said_first_offset(posixpath.join(directory, name), files)
                if first is not None:
                    folder.begins.setdefault(first, []).append(name)
    return folder.begins.get(offset, [])


def possible_offsets(logs: Sequence[NamedLog], files: Files) -> dict[str, tuple[int, int]] | None:
    """Return which offsets each log can hold, by its path: the first, and the one after the last.

    `logs` are sorted by their names. None if the first batches do not rise with the names: then
    each log can hold any offset.
    """
    firsts = [said_first_offset(log.path, files) for log in logs]
    known = [first for first in firsts if first is not None]
    if any(first >= later for first, later in pairwise(known)):
        return None
    begins = [
        (log.base_offset, log.base_offset if first is None else first)
        for log, first in zip(logs, firsts, strict=True)
    ]
    ends = [*(max(begin) for begin in begins[1:]), INT64_MAX + 1]
    return {log.path: (min(begin), end) for log, begin, end in zip(logs, begins, ends, strict=True)}


class UnreadLog(NamedTuple):
    """A log that no broker reads by its name, with batches that no other log of the folder has."""

    path: str
    base_offset: int
    """The offset in its name; without one, its first offset."""
    first: int
    end: int
    """The offset after its last sound batch."""

    @property
    def problem(self) -> str:
        """What is wrong, in words."""
        return (
            "no broker reads a log of this name, and no other log here has all of its offsets"
            f" {self.first} to {self.end - 1}: its rows are not read (to read them, name the file)"
        )


def unread_logs(directory: str, names: Collection[str], files: Files) -> Iterator[UnreadLog]:
    """Yield the logs of a folder whose names no broker reads, and whose batches no other log has.

    A copy, whose batches are in the logs that a broker reads, is not among them. In a folder that
    is no partition, only names of digits count. Cost: nothing where each name is right.
    """
    kinds = {name: read_file_name(name) for name in names}
    odd = [name for name, known in kinds.items() if is_like_a_log(name, known)]
    if not odd:
        return
    logs = [
        (known.base_offset, posixpath.join(directory, name))
        for name, known in kinds.items()
        if known.kind is NameKind.SEGMENT and known.suffix == ".log"
    ]
    ranges: Ranges = {}
    is_partition = bool(logs) or partition_of(directory) is not None
    for name in sorted(odd):
        known = kinds[name]
        is_number = known.kind is NameKind.MISNAMED
        if not (is_partition or is_number):
            continue
        path = posixpath.join(directory, name)
        found = only_copy(path, logs, files, ranges=ranges)
        if found is not None:
            base = known.base_offset if is_number else found.first
            yield UnreadLog(path, base, found.first, found.last + 1)
