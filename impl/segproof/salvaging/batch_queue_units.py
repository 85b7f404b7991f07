# SPDX-License-Identifier: Apache-2.0
"""Which units of a topic's queues of batches lead to a message that a salvage has kept.

A unit leads to a kept message if the new log has one of its topic, queue and length at its offset.
Of a log that has lost its end, the last units of a queue lead beyond the new one: these are no sign
of damage, and a broker cuts them off at its start.

Upstream: RocketMQ 5.5.1: BatchConsumeQueue.truncateDirtyLogicFiles, CommitLog.recoverNormally.
Not covered: the other fields of a unit; a unit that leads to another message of its queue.
"""

import posixpath
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from typing import NamedTuple

from segproof.files import Files, ReadOnlyFile
from segproof.reading.batch_queues import batch_files, placed_units
from segproof.rocketmq.commit_log import RECORD_LIMIT_BYTES, CommitLog, LogFile
from segproof.rocketmq.message import check_message_and_return_size

__all__ = ["LedUnits", "led_units"]


class LedUnits(NamedTuple):
    """What the units of a topic lead to."""

    lost: int
    """Units that lead to no kept message, but for those `beyond`."""
    beyond: int
    """The last units of their queues that all lead beyond the end of the new log."""
    cuts: dict[str, int]
    """For each file with such units the byte at which the first of them begins."""


def led_units(store: str, topic: str, kept: CommitLog, end: int, files: Files) -> LedUnits:
    """Return what the units of a topic's queues of batches lead to in the new log `kept`.

    `end` is the offset after its last message. Cost: each of these messages is read once. Raises:
    OSError.
    """
    lost = beyond = 0
    cuts: dict[str, int] = {}
    with closing(_Messages(kept, files)) as messages:
        for queue, paths in groupby(batch_files(store, topic, files), posixpath.dirname):
            last: dict[str, int] = {}
            count = 0
            for path, position, offset, size in _units(paths, files):
                if messages.has(topic, posixpath.basename(queue), offset, size):
                    lost += count
                    last, count = {}, 0
                elif offset >= end:
                    last.setdefault(path, position)
                    count += 1
                else:
                    lost += 1
            beyond += count
            cuts |= last
    return LedUnits(lost, beyond, cuts)


def _units(paths: Iterator[str], files: Files) -> Iterator[tuple[str, int, int, int]]:
    """Yield path, position, and what it leads to, of each unit of some files. Raises: OSError."""
    for path in paths:
        for rows in placed_units(path, files):
            for position, offset, size in rows.tolist():
                yield path, position, offset, size


class _Messages:
    """The messages of a log. One file of it is open at a time."""

    def __init__(self, log: CommitLog, files: Files) -> None:
        self._log = log
        self._files = files
        self._opened: tuple[LogFile, ReadOnlyFile] | None = None

    def has(self, topic: str, queue: str, offset: int, size: int) -> bool:
        """Return whether a message of a queue, of `size` bytes, is at an offset. Raises: OSError.

        Its checksum is not compared: the salvage did that before.
        """
        log_file = self._log.file_of(offset)
        if log_file is None or size > min(RECORD_LIMIT_BYTES, self._log.mapped_file_size):
            return False
        data = self._file(log_file).pread(size, offset - log_file.start)
        one = check_message_and_return_size(data, 0, check_crc=False).message
        return (
            one is not None
            and (one.total_size, one.physical_offset) == (size, offset)
            and (one.topic, str(one.queue_id)) == (topic, queue)
        )

    def _file(self, log_file: LogFile) -> ReadOnlyFile:
        if self._opened is None or self._opened[0] != log_file:
            self.close()
            self._opened = log_file, self._files.open(log_file.path)
        return self._opened[1]

    def close(self) -> None:
        """Close the file that is open."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None
