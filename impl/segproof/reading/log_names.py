# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log whose names are not those of their messages.

Each message says its own offset. So a file tells where it begins, whatever its name is. A file that
was renamed, or given the name of another one, is read at the offset of its messages.

Upstream: RocketMQ 5.5.1: MappedFileQueue.load.
Laws: RMQDISK-25.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile
from segproof.reading.queue_units import led_to
from segproof.rocketmq.commit_log import LAST_START, CommitLog, LogFile, LogFileRecords
from segproof.stretches.rocketmq.candidates import whole_messages

ASKED_BYTES = 1 << 20
"""Bytes of a file that are searched for messages, which state its offset."""
ASKED_MESSAGES = 16
NAMES_BEYOND = 8
"""A file belongs at most this many files before the first file, or after the last one; farther away
if queues or index know messages there, and none where its name says."""


class Misnamed(NamedTuple):
    """A file of a commit log whose name is not that of its messages."""

    path: str
    named: int
    """The offset that its name says."""
    start: int
    """The offset at which it begins, by its messages."""
    is_swapped: bool
    """Whether files of the log have each other's names: the names together are right."""


def with_right_names(log: CommitLog, files: Files) -> tuple[CommitLog, list[Misnamed]]:
    """Return the log with each file where its messages say, and the files that are moved so.

    A file without a message goes to a name that is left, if another file belongs to its own.
    What can't be read stays where it is. Cost: a look at the first message of each file; 1 MiB of
    those that tell another offset than their name, or nothing.
    """
    told = {one: _told_start(one, files) for one in log.log_files}
    wrong = {one: start for one, start in told.items() if start is not None and start != one.start}
    if not wrong:
        return log, []
    names = {one.start for one in log.log_files}
    right = {one.start for one, start in told.items() if start == one.start}
    times, size, step = Counter(wrong.values()), log.mapped_file_size, _step(log)
    # Of several odd files that tell one offset, the first goes there.
    claims = {start: one for one, start in reversed(wrong.items()) if one.start % size != step}
    moved = {
        one: start
        for one, start in wrong.items()
        if (times[start] == 1 or claims.get(start) == one)
        and start not in right
        and (_is_near(start, log) or _is_known_there(one, start, log, files))
    }
    silent = [one for one, start in told.items() if start is None]
    # Each name that a file leaves and no other one takes is free for one without a message.
    moved = _among_names(moved, silent, names)
    swapped = {one.start for one in moved} == set(moved.values())
    placed = [one._replace(start=moved.get(one, one.start)) for one in log.log_files]
    placed.sort(key=lambda one: one.start)
    found = [Misnamed(one.path, one.start, start, swapped) for one, start in moved.items()]
    return CommitLog(log.store_path, log.mapped_file_size, tuple(placed), files), found


def in_step(log: CommitLog, files: Files) -> tuple[CommitLog, list[LogFile]]:
    """Return the log with its odd files moved after its last file, and these odd files.

    An odd file begins where no file of the log can: files begin at multiples of their size, counted
    from where most of them begin.
    """
    size, right = log.mapped_file_size, _step(log)
    kept = [one for one in log.log_files if one.start % size == right]
    odd = [one for one in log.log_files if one.start % size != right]
    first = kept[-1].start + size if odd else 0
    moved = [one._replace(start=first + number * size) for number, one in enumerate(odd)]
    if not moved or moved[-1].start > LAST_START:
        return log, []
    return CommitLog(log.store_path, size, (*kept, *moved), files), moved


def _step(log: CommitLog) -> int:
    """Return the remainder of the offset at which most files begin, divided by the file size."""
    steps = Counter(one.start % log.mapped_file_size for one in log.log_files)
    return max(steps, key=lambda step: (steps[step], step == 0), default=0)


def _among_names(
    moved: dict[LogFile, int], silent: list[LogFile], names: set[int]
) -> dict[LogFile, int]:
    """Return the moves after which no two files have one name."""
    while True:
        stays = names - {one.start for one in moved}
        taken = {one.start: one for one in silent if one.start in moved.values()}
        left = sorted({one.start for one in moved} - set(moved.values()))
        blocked = {
            one for one, start in moved.items()
            if start in stays and start not in taken
        }  # fmt: skip
        if not blocked and len(left) >= len(taken):
            places = zip(taken.values(), left, strict=False)
            return moved | dict(places)
        if not blocked:
            return {}
        moved = {one: start for one, start in moved.items() if one not in blocked}


def _is_near(start: int, log: CommitLog) -> bool:
    """Return whether a file of the log may begin at an offset."""
    far = NAMES_BEYOND * log.mapped_file_size
    is_near = log.min_offset - far <= start < log.max_offset + far
    return start >= 0 and is_near and start % log.mapped_file_size == _step(log)


def _is_known_there(one: LogFile, start: int, log: CommitLog, files: Files) -> bool:
    """Return whether queues or index lead to where a file says that it begins, and only there."""
    if start < 0 or (start % log.mapped_file_size and len(log.log_files) > 1):
        return False
    there, here = (
        led_to(log.store_path, [(begin, begin + one.size_bytes)], files)
        for begin in (start, one.start)
    )
    return len(there) > 0 and len(here) == 0


def _told_start(one: LogFile, files: Files) -> int | None:
    """Return where a file begins by its messages; its name if they contradict each other.

    None for a file without a message.
    """
    with suppress(OSError), closing(files.open(one.path)) as file:
        with suppress(SegproofError):
            first = LogFileRecords(file, one, ASKED_BYTES).check(0, check_crc=True).message
            if first is not None and first.physical_offset == one.start:
                return one.start
        starts = Counter(offset - position for position, offset in _some(file, one))
        if not starts:
            return None
        start, times = starts.most_common(1)[0]
        return start if 2 * times > starts.total() else one.start
    return one.start


def _some(file: ReadOnlyFile, one: LogFile) -> Iterator[tuple[int, int]]:
    """Yield the position of some messages, and the offset that each says."""
    data = file.pread(min(ASKED_BYTES, one.size_bytes), 0)
    for number, (position, message) in enumerate(whole_messages(data), 1):
        yield position, message.physical_offset
        if number == ASKED_MESSAGES:
            return
