# SPDX-License-Identifier: Apache-2.0
"""What two commit logs have of each other: the same messages, as a copy has them, and which not.

Two logs are of one log if a file of both begins with the same message at the same offset. Files
with the same bytes are not read as messages; of others the sound messages are compared, one block
of each log at a time. Messages with which a salvage fills gaps do not count.

Upstream: RocketMQ 5.5.1: CommitLog.
Laws: RMQDISK-58.
"""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, status_of
from segproof.reading.log_rows import begins
from segproof.reading.store_pieces import (
    HEAD_BYTES,
    OFFSET_POSITION,
    Gap,
    StorePieces,
    filler_rows,
)
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import MESSAGE_MAGICS

__all__ = ["LogDifferences", "are_of_one_log", "differences", "shared_files"]

FIELDS_BYTES = 84
"""Length, magic, checksum, numbers, times and hosts of a message: up to its body."""
COMPARED_BYTES = 1 << 20
Rows = NDArray[np.int64]
"""For each message its offset in the log, its length, and a checksum of all its bytes."""
NO_ROWS: Rows = np.empty((0, 3), np.int64)


@dataclass(slots=True)
class LogDifferences:
    """Which sound messages one of two logs has, and the other one lacks."""

    only_here: int = 0
    only_there: int = 0
    lacking_here: int = 0
    """How many of `only_there` lie between the messages of this log, and not before or after."""
    lacking_there: int = 0
    """The same of `only_here`, in the other log."""
    clashes: int = 0
    """Offsets at which both have a message, and not the same one."""
    first_clash: int = -1
    """The first such offset; -1 without any."""
    agrees_after: bool = False
    """Whether both have the same message after the first such offset."""


def shared_files(one: CommitLog, other: CommitLog, files: Files) -> list[LogFile]:
    """Return the files of a log that are files of the other one too: by a link, or a hard link."""
    theirs = {identity for each in other.log_files if (identity := _identity(each, files))}
    return [each for each in one.log_files if _identity(each, files) in theirs]


def are_of_one_log(
    one: CommitLog, other: CommitLog, files: Files, known_heads: dict[LogFile, bytes]
) -> bool:
    """Return whether a file of both logs begins with the same message. Raises: OSError.

    `known_heads` keeps the first bytes of each file for later calls. Cost: the first bytes of the
    files that both have. If none of these has a message there, the first message of the first file
    that both have is looked for.
    """
    pairs = _pairs(one, other)
    for each in (each for pair in pairs for each in pair if each not in known_heads):
        known_heads[each] = _head(each, each.start, files)
    heads = [(known_heads[mine], known_heads[its]) for mine, its in pairs]
    known = [(mine, its) for mine, its in heads if mine and its]
    if known or not pairs:
        return any(mine == its for mine, its in known)
    mine, its = pairs[0]
    for log, here, there in ((one, mine, its), (other, its, mine)):
        first = next(_rows(log, [here], files), NO_ROWS)
        if len(first):
            at = int(first[0][0])
            head = _head(here, at, files)
            return bool(head) and head == _head(there, at, files)
    return False


def differences(
    one: CommitLog, other: CommitLog, files: Files, starts: set[int] | None = None
) -> LogDifferences:
    """Return what one log has and the other one lacks. Raises: OSError.

    `starts`: only files that begin there are compared. Files of both logs are compared byte by
    byte; where they differ, or one log lacks the file, their messages are read.
    """
    found = LogDifferences()
    bounds: list[tuple[int, int]] = []
    for mine, its, is_equal in _compared(one, other, files, starts):
        if is_equal:
            found.agrees_after |= found.clashes > 0 and begins(mine[0], files)
            continue
        bounds = bounds or [_bounds(log, files) for log in (one, other)]
        for here, there in _windows(_rows(one, mine, files), _rows(other, its, files)):
            _add(found, here, there, bounds)
    return found


def _identity(one: LogFile, files: Files) -> tuple[int, int] | None:
    status = status_of(files, one.path)
    return status.identity if status is not None and status.identity[1] > 0 else None


def _pairs(one: CommitLog, other: CommitLog) -> list[tuple[LogFile, LogFile]]:
    theirs = {each.start: each for each in other.log_files}
    return [(each, theirs[each.start]) for each in one.log_files if each.start in theirs]


def _head(one: LogFile, offset: int, files: Files) -> bytes:
    """Return the fields of the message at an offset of a file; empty without one there."""
    with closing(files.open(one.path)) as file:
        head = file.pread(FIELDS_BYTES, offset - one.start)
    is_there = len(head) == FIELDS_BYTES and head[4:8] in MESSAGE_MAGICS
    is_there = is_there and int.from_bytes(head[OFFSET_POSITION:HEAD_BYTES], "big") == offset
    return head if is_there else b""


def _compared(
    one: CommitLog, other: CommitLog, files: Files, starts: set[int] | None
) -> Iterator[tuple[list[LogFile], list[LogFile], bool]]:
    """Yield the files of both logs, one of each at a time or all at once, and whether two have the
    same bytes.
    """
    mine, its = (
        {each.start: each for each in log.log_files if starts is None or each.start in starts}
        for log in (one, other)
    )
    if one.mapped_file_size != other.mapped_file_size and starts is None:
        yield list(mine.values()), list(its.values()), False
        return
    for start in sorted({*mine, *its}):
        here, there = mine.get(start), its.get(start)
        is_equal = here is not None and there is not None and _are_equal(here, there, files)
        yield [here] if here else [], [there] if there else [], is_equal


def _are_equal(one: LogFile, other: LogFile, files: Files) -> bool:
    identity = _identity(one, files)
    if identity is not None and identity == _identity(other, files):
        return True
    if one.size_bytes != other.size_bytes:
        return False
    with closing(files.open(one.path)) as mine, closing(files.open(other.path)) as its:
        return all(
            mine.pread(COMPARED_BYTES, position) == its.pread(COMPARED_BYTES, position)
            for position in range(0, one.size_bytes, COMPARED_BYTES)
        )


def _rows(log: CommitLog, log_files: Sequence[LogFile], files: Files) -> Iterator[Rows]:
    """Yield the sound messages of some files of a log, block by block."""
    alone = CommitLog(log.store_path, log.mapped_file_size, tuple(log_files), files)
    for piece in StorePieces(alone, files) if log_files else ():
        if isinstance(piece, Gap):
            continue
        positions, sizes = piece.rows[:, 0].tolist(), piece.rows[:, 1].tolist()
        sums = [
            zlib.crc32(piece.data[at : at + size])
            for at, size in zip(positions, sizes, strict=True)
        ]  # fmt: skip
        rows = np.column_stack([piece.lies_at, piece.rows[:, 1], np.array(sums, np.int64)])
        yield np.delete(rows, filler_rows(piece), axis=0)


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


def _bounds(log: CommitLog, files: Files) -> tuple[int, int]:
    """Return where the first file of a log begins, and the offset after its last message."""
    for one in reversed(log.log_files):
        ends = [int(rows[-1][0] + rows[-1][1]) for rows in _rows(log, [one], files) if len(rows)]
        if ends:
            return log.min_offset, ends[-1]
    return log.min_offset, log.min_offset


def _add(found: LogDifferences, here: Rows, there: Rows, bounds: Sequence[tuple[int, int]]) -> None:
    """Count the messages of one stretch; `bounds` are those of this log and of the other one."""
    mine, its = ({tuple(row) for row in rows.tolist()} for rows in (here, there))
    only_here = sorted(row[0] for row in mine - its)
    only_there = sorted(row[0] for row in its - mine)
    found.only_here += len(only_here)
    found.only_there += len(only_there)
    clashes = sorted({*only_here} & {*only_there})
    found.clashes += len(clashes)
    if clashes and found.first_clash < 0:
        found.first_clash = clashes[0]
    if found.clashes:
        found.agrees_after |= any(row[0] > found.first_clash for row in mine & its)
    (begin, end), (other_begin, other_end) = bounds
    apart = set(clashes)
    found.lacking_here += sum(begin <= at < end for at in only_there if at not in apart)
    found.lacking_there += sum(
        other_begin <= at < other_end for at in only_here if at not in apart
    )  # fmt: skip
