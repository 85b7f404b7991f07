# SPDX-License-Identifier: Apache-2.0
"""What two commit logs have of each other: the same messages, as a copy has them, and which not.

Two logs are of one log if a file of both begins with the same message at the same offset. Files
of both are compared byte by byte; messages are read only around the bytes that differ, one block of
each log at a time. Files that one log lacks are counted, and not their messages. Messages with
which a salvage fills gaps do not count.

Upstream: RocketMQ 5.5.1: CommitLog.
Laws: RMQDISK-58.
"""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, status_of
from segproof.layouts.rocketmq import MESSAGE
from segproof.reading.equal_files import blocks_that_differ
from segproof.reading.file_parts import FilePart
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import MESSAGE_MAGICS
from segproof.stretches.rocketmq.candidates import filler_rows
from segproof.stretches.rocketmq.framing import LogReading

__all__ = ["LogDifferences", "LogFileFacts", "OnlyOne", "differences"]

FIELDS_BYTES = MESSAGE["body_length"].place
"""Length, magic, checksum, numbers, times and hosts of a message: up to its body."""
BEFORE_BYTES = 1 << 20
"""So far before bytes that differ a message is looked for, to read from there on."""
AFTER_BYTES = 4 << 20
"""So far after bytes that differ messages are read: a broker stores no longer ones by default."""
Rows = NDArray[np.int64]
"""For each message its offset in the log, its length, and a checksum of all its bytes."""
NO_ROWS: Rows = np.empty((0, 3), np.int64)
NO_MESSAGE = -1


@dataclass(slots=True)
class OnlyOne:
    """What one of two logs has, and the other one lacks."""

    messages: int = 0
    """Sound messages, in files that both have."""
    files: int = 0
    """Files with a sound message."""
    lost_messages: int = 0
    """How many of the messages lie between those of the other log, and not before or after."""
    lost_files: int = 0

    @property
    def is_more(self) -> bool:
        """Whether there is anything."""
        return bool(self.messages or self.files)

    @property
    def is_lost(self) -> bool:
        """Whether the other log lacks something between its own messages."""
        return bool(self.lost_messages or self.lost_files)


@dataclass(slots=True)
class LogDifferences:
    """Which sound messages one of two logs has, and the other one lacks."""

    here: OnlyOne = field(default_factory=OnlyOne)
    there: OnlyOne = field(default_factory=OnlyOne)
    clashes: int = 0
    """Offsets at which both have a message, and not the same one."""
    first_clash: int = -1
    """The first such offset; -1 without any."""
    agrees_after: bool = False
    """Whether both have the same message after the first such offset."""

    def seen_from_there(self) -> "LogDifferences":
        """Return the same with the logs exchanged."""
        return replace(self, here=self.there, there=self.here)


class LogFileFacts:
    """What is known of files of logs: each of them is looked at once."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._identities: dict[str, tuple[int, int] | None] = {}
        self._heads: dict[LogFile, bytes] = {}
        self._firsts: dict[LogFile, int] = {}
        self._same: dict[LogFile, LogFile] = {}
        """For a file another one with the same bytes."""

    def identity(self, one: LogFile) -> tuple[int, int] | None:
        """Return what tells a file from others, by whatever path it is met; None if unknown."""
        if one.path not in self._identities:
            status = status_of(self.files, one.path)
            is_known = status is not None and status.identity[1] > 0
            self._identities[one.path] = status.identity if status and is_known else None
        return self._identities[one.path]

    def head(self, one: LogFile) -> bytes:
        """Return the fields of the message that begins a file, or nothing. Raises: OSError."""
        if one not in self._heads:
            self._heads[one] = _head(one, one.start, self.files)
        return self._heads[one]

    def first(self, one: LogFile, mapped_file_size: int) -> int:
        """Return the offset of the first sound message of a file, or -1. Raises: OSError."""
        if one not in self._firsts:
            log = CommitLog("", mapped_file_size, (one,), self.files)
            found = (int(rows[0][0]) for rows in _rows(log, [one], self.files) if len(rows))
            self._firsts[one] = next(found, NO_MESSAGE)
        return self._firsts[one]

    def shared(self, one: CommitLog, other: CommitLog) -> list[LogFile]:
        """Return the files of a log that are files of the other one too: by a link or hard link."""
        theirs = {identity for each in other.log_files if (identity := self.identity(each))}
        return [each for each in one.log_files if self.identity(each) in theirs]

    def are_of_one_log(self, one: CommitLog, other: CommitLog) -> bool:
        """Return whether a file of both logs begins with the same message. Raises: OSError.

        If no file that both have begins with a message in both, the first message of the first such
        file is looked for.
        """
        theirs = {each.start: each for each in other.log_files}
        pairs = [(each, theirs[each.start]) for each in one.log_files if each.start in theirs]
        heads = [(self.head(mine), self.head(its)) for mine, its in pairs]
        known = [(mine, its) for mine, its in heads if mine and its]
        if known or not pairs:
            return any(mine == its for mine, its in known)
        mine, its = pairs[0]
        for log, each in ((one, mine), (other, its)):
            at = self.first(each, log.mapped_file_size)
            if at != NO_MESSAGE:
                head = _head(mine, at, self.files)
                return bool(head) and head == _head(its, at, self.files)
        return False

    def differing(self, one: LogFile, other: LogFile) -> list[tuple[int, int]]:
        """Return the ranges of bytes in which two files differ. Raises: OSError.

        Cost: both are read, unless others have shown that they have the same bytes.
        """
        mine, its = self._leader(one), self._leader(other)
        identity = self.identity(one)
        if mine == its or (identity is not None and identity == self.identity(other)):
            return []
        ranges = _differing(one, other, self.files)
        if not ranges:
            self._same[its] = mine
        return ranges

    def _leader(self, one: LogFile) -> LogFile:
        while one in self._same:
            one = self._same[one]
        return one


def differences(
    one: CommitLog, other: CommitLog, facts: LogFileFacts, starts: set[int] | None = None
) -> LogDifferences:
    """Return what one log has and the other one lacks. Raises: OSError.

    `starts`: only files that begin there are compared. Cost: files of both are read once, and once
    more around what differs; of files that one log lacks the first messages are read. Logs whose
    files have different lengths are read message by message.
    """
    count = _Counting(one, other, facts)
    mine, its = (
        {each.start: each for each in log.log_files if starts is None or each.start in starts}
        for log in (one, other)
    )
    if one.mapped_file_size != other.mapped_file_size and starts is None:
        count.messages(list(mine.values()), list(its.values()))
        return count.found
    for start in sorted({*mine, *its}):
        here, there = mine.get(start), its.get(start)
        if here is not None and there is not None:
            count.pair(here, there)
        elif here is not None:
            count.alone(here, 0)
        elif there is not None:
            count.alone(there, 1)
    return count.found


class _Counting:
    """Counts what two logs have alone, by offset. What only one has is lost in the other one if
    that has a message after it.
    """

    def __init__(self, one: CommitLog, other: CommitLog, facts: LogFileFacts) -> None:
        self.found = LogDifferences()
        self._logs = one, other
        self._facts = facts
        self._only = self.found.here, self.found.there
        self._waiting = OnlyOne(), OnlyOne()
        """What lies after all messages of the other log so far."""
        self._ends = [0, 0]
        """After the last message of each log so far."""

    def pair(self, here: LogFile, there: LogFile) -> None:
        """Count files of both logs that begin at one offset."""
        ranges = self._facts.differing(here, there)
        if not ranges:
            self._agree(here, here.start, here.start + self._logs[0].mapped_file_size)
            return
        places = [
            (_message_before(self._logs[0], here, begin, self._facts.files), end + AFTER_BYTES)
            for begin, end in ranges
        ]
        if any(begin == here.start for begin, _ in places[1:]):
            places = [(here.start, places[-1][1])]
        read = here.start
        for begin, end in places:
            self._agree(here, read, begin)
            read = here.start + end
            self.messages([here], [there], begin, read)

    def alone(self, log_file: LogFile, side: int) -> None:
        """Count a file that only one of the logs has: 0 is this one, 1 the other one."""
        log, other = self._logs[side], self._logs[1 - side]
        if self._facts.first(log_file, log.mapped_file_size) == NO_MESSAGE:
            return
        self._settle(1 - side)
        self._only[side].files += 1
        self._waiting[side].files += log_file.start >= other.min_offset

    def messages(
        self, here: Sequence[LogFile], there: Sequence[LogFile], begin: int | None = None,
        end: int | None = None,
    ) -> None:  # fmt: skip
        """Count the messages of files that begin in a range of offsets."""
        rows = (
            _rows(log, some, self._facts.files, begin, end)
            for log, some in zip(self._logs, (here, there), strict=True)
        )
        for window in _windows(*rows):
            self._add(window)

    def _agree(self, log_file: LogFile, begin: int, end: int) -> None:
        """Settle what waits if a message begins in a range of offsets, whose bytes both have."""
        has_news = self.found.clashes and not self.found.agrees_after
        if begin >= end or not (has_news or any(one.is_more for one in self._waiting)):
            return
        if begin == log_file.start:
            first = self._facts.first(log_file, self._logs[0].mapped_file_size)
        else:
            rows = _rows(self._logs[0], [log_file], self._facts.files, begin, end)
            first = next((int(some[0][0]) for some in rows if len(some)), NO_MESSAGE)
        if begin <= first < end:
            self.found.agrees_after |= self.found.clashes > 0
            self._settle(0)
            self._settle(1)

    def _settle(self, side: int) -> None:
        """Take what only one log has so far for lost in the other one, which goes on after it."""
        waiting = self._waiting[side]
        self._only[side].lost_messages += waiting.messages
        self._only[side].lost_files += waiting.files
        waiting.messages = waiting.files = 0

    def _add(self, window: tuple[Rows, Rows]) -> None:
        """Count the messages of one stretch."""
        found = self.found
        mine, its = ({tuple(row) for row in rows.tolist()} for rows in window)
        alone = [sorted(row[0] for row in one) for one in (mine - its, its - mine)]
        clashes = sorted({*alone[0]} & {*alone[1]})
        found.clashes += len(clashes)
        if clashes and found.first_clash < 0:
            found.first_clash = clashes[0]
        if found.clashes:
            found.agrees_after |= any(row[0] > found.first_clash for row in mine & its)
        for side, rows in enumerate(window):
            if len(rows):
                self._settle(1 - side)
                self._ends[side] = int(rows[-1][0] + rows[-1][1])
        apart = set(clashes)
        for side, offsets in enumerate(alone):
            self._only[side].messages += len(offsets)
            begin, end = self._logs[1 - side].min_offset, self._ends[1 - side]
            counted = [at for at in offsets if at >= begin and at not in apart]
            lost = sum(at < end for at in counted)
            self._only[side].lost_messages += lost
            self._waiting[side].messages += len(counted) - lost


def _head(one: LogFile, offset: int, files: Files) -> bytes:
    """Return the fields of the message at an offset of a file; empty without one there."""
    with closing(files.open(one.path)) as file:
        head = file.pread(FIELDS_BYTES, offset - one.start)
    is_there = len(head) == FIELDS_BYTES and head[4:8] in MESSAGE_MAGICS
    is_there = is_there and MESSAGE["physical_offset"].of(head) == offset
    return head if is_there else b""


def _differing(one: LogFile, other: LogFile, files: Files) -> list[tuple[int, int]]:
    """Return where the bytes of two files differ, in blocks; ranges close to each other are one."""
    ranges: list[tuple[int, int]] = []
    size = max(one.size_bytes, other.size_bytes)
    with closing(_as_long(one, files)) as mine, closing(_as_long(other, files)) as its:
        for begin, end, _, _ in blocks_that_differ(mine.pread, its.pread, size):
            if ranges and begin - ranges[-1][1] <= BEFORE_BYTES + AFTER_BYTES:
                ranges[-1] = ranges[-1][0], end
            else:
                ranges.append((begin, end))
    return ranges


def _as_long(one: LogFile, files: Files) -> FilePart:
    """Return a file of a log without the bytes that it got since it was found. Raises: OSError."""
    return FilePart(files.open(one.path), one.path, 0, one.size_bytes)


def _message_before(log: CommitLog, one: LogFile, position: int, files: Files) -> int:
    """Return the offset of a message not far before a byte of a file; the file's without one."""
    if position > BEFORE_BYTES:
        alone = CommitLog(log.store_path, log.mapped_file_size, (one,), files)
        for block in LogReading(alone, files).own_blocks(one.start + position - BEFORE_BYTES):
            first = int(block.lies_at[0])
            return first if first <= one.start + position else one.start
    return one.start


def _rows(
    log: CommitLog, log_files: Sequence[LogFile], files: Files, begin: int | None = None,
    end: int | None = None,
) -> Iterator[Rows]:  # fmt: skip
    """Yield the sound messages of some files of a log that begin in a range, block by block."""
    alone = CommitLog(log.store_path, log.mapped_file_size, tuple(log_files), files)
    for block in LogReading(alone, files).own_blocks(begin or 0):
        if end is not None and block.offset >= end:
            return
        kept = np.ones(len(block.rows), np.bool_)
        kept[filler_rows(block)] = False
        if end is not None:
            kept &= block.lies_at < end
        places = block.rows[kept, :2]
        sums = [zlib.crc32(block.data[at : at + size]) for at, size in places.tolist()]
        yield np.column_stack([block.lies_at[kept], places[:, 1], np.array(sums, np.int64)])


def _windows(one: Iterator[Rows], other: Iterator[Rows]) -> Iterator[tuple[Rows, Rows]]:
    """Yield the rows of both logs side by side: those of one stretch of the log at a time."""
    here, beside = next(one, None), next(other, None)
    while here is not None and beside is not None:
        if not len(here) or not len(beside):
            here = here if len(here) else next(one, None)
            beside = beside if len(beside) else next(other, None)
            continue
        last = min(here[-1][0], beside[-1][0])
        ends = [int(np.searchsorted(each[:, 0], last, "right")) for each in (here, beside)]
        yield here[: ends[0]], beside[: ends[1]]
        here, beside = here[ends[0] :], beside[ends[1] :]
    for rows in chain([] if here is None else [here], one):
        yield rows, NO_ROWS
    for rows in chain([] if beside is None else [beside], other):
        yield NO_ROWS, rows
