# SPDX-License-Identifier: Apache-2.0
"""The timer log of a store: an entry for each message that waits, or waited, for its time.

Upstream: RocketMQ 5.5.1: TimerLog, TimerMessageStore.recoverAndRevise.
Layout: `timerlog/<20 digits>`, files of one length with entries: TIMER_ENTRY of
layouts/rocketmq.py. A blank entry ends a file.
Laws: RMQDISK-45.
Not covered: writing; the timer wheel, which leads into it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, first_byte_of
from segproof.layouts.rocketmq import TIMER_ENTRY
from segproof.rocketmq.commit_log import LogFile
from segproof.rocketmq.message import BLANK_MAGIC_BYTES

__all__ = [
    "TIMER_LOG",
    "ends_blank",
    "first_byte_after",
    "other_length",
    "timer_entries",
    "usual_length",
]

TIMER_LOG: Final = "timerlog"
ENTRY_BYTES: Final = TIMER_ENTRY.size
BLOCK_ENTRIES: Final = 1 << 16
MAGIC_MAX: Final = 15


def usual_length(log_files: Iterable[LogFile]) -> int:
    """Return the length that most files of a timer log have; 0 if all are empty."""
    lengths = Counter(one.size_bytes for one in log_files if one.size_bytes)
    return max(lengths, key=lambda size: (lengths[size], size), default=0)


def other_length(one: LogFile, usual: int) -> str:
    """Return in words that a file lacks the length of the others, or all are empty; else nothing.

    Every release ends its start at such a file.
    """
    if one.size_bytes == usual > 0:
        return ""
    return f"it has {one.size_bytes} bytes, and the other files of the timer log have {usual}"


def timer_entries(one: LogFile, files: Files) -> Iterator[tuple[int, NDArray[np.void]]]:
    """Yield the entries of a file up to its first one that is none, with the first one's index.

    Raises: OSError.
    """
    with closing(files.open(one.path)) as file:
        for first in range(0, one.size_bytes // ENTRY_BYTES, BLOCK_ENTRIES):
            data = file.pread(BLOCK_ENTRIES * ENTRY_BYTES, first * ENTRY_BYTES)
            table = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], TIMER_ENTRY.dtype)
            are_entries = (table["size"] == ENTRY_BYTES) & (table["magic"] >= 0)
            are_entries &= table["magic"] <= MAGIC_MAX
            stop = len(table) if are_entries.all() else int(np.argmin(are_entries))
            if stop:
                yield first, table[:stop]
            if stop < len(table) or not len(table):
                return


def ends_blank(one: LogFile, position: int, files: Files) -> bool:
    """Return whether a blank entry, which takes the rest of a file, is at a position.

    It has the magic of a blank end of the commit log. Raises: OSError.
    """
    with closing(files.open(one.path)) as file:
        return file.pread(4, position + TIMER_ENTRY["magic"].place) == BLANK_MAGIC_BYTES


def first_byte_after(one: LogFile, position: int, files: Files) -> int | None:
    """Return the position of the first byte after the entries of a file that is not zero.

    `position` is their end. None if there is no such byte, or a blank entry follows. A broker that
    recovers the timer log cuts it at `position`. Raises: OSError.
    """
    if ends_blank(one, position, files):
        return None
    return first_byte_of(files, one.path, position, one.size_bytes)
