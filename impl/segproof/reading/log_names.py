# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log whose names are not those of their messages.

Each message says its own offset. So a file tells where it begins, whatever its name is. A file that
was renamed, or given the name of another one, is read at the offset of its messages.

Upstream: RocketMQ 5.5.1: MappedFileQueue.load.
Laws: RMQDISK-25.
"""

from collections import Counter
from contextlib import closing, suppress
from typing import NamedTuple

from segproof.errors import SegproofError
from segproof.files import Files, first_byte
from segproof.rocketmq.commit_log import CommitLog, LogFile, LogFileRecords

ASKED_BYTES = 1 << 20
"""So much is read at once to check the first message of a file."""


class Misnamed(NamedTuple):
    """A file of a commit log whose name is not that of its messages."""

    path: str
    named: int
    """The offset that its name says."""
    start: int
    """The offset at which it begins, by its messages."""
    is_swapped: bool
    """Whether files of the log have each other's names: the names together are right."""


def are_names_right(log: CommitLog, files: Files) -> bool:
    """Return whether each file begins where one of the log can, with a message that says so.

    Zeros may be in place of it, if the file has nothing else; so may what can't be read. Cost: a
    look at the first message of each file.
    """
    step = step_of(log)
    return all(
        one.start % log.mapped_file_size == step and _begins_as_named(one, files)
        for one in log.log_files
    )


def step_of(log: CommitLog) -> int:
    """Return the remainder of the offset at which most files begin, divided by the file size."""
    steps = Counter(one.start % log.mapped_file_size for one in log.log_files)
    return max(steps, key=lambda step: (steps[step], step == 0), default=0)


def _begins_as_named(one: LogFile, files: Files) -> bool:
    with suppress(OSError), closing(files.open(one.path)) as file:
        with suppress(SegproofError):
            first = LogFileRecords(file, one, ASKED_BYTES).check(0, check_crc=True).message
            if first is not None and first.physical_offset == one.start:
                return True
        return first_byte(file, 0, one.size_bytes) is None
    return True
