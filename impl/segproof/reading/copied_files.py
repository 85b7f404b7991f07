# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that are copies of another file of it, under a name that no file had.

Such a copy lies before the first file of the log or after the last one. It holds bytes of another
file from its begin on, and nothing else. A copy between two files, or where a unit of a queue or an
entry of the index leads, has replaced the file of its name, so that messages are lost; such a copy
is not found here.

Laws: RMQDISK-25.
Not covered: a copy that damage changed, and one of a file that was changed since: its messages are
  compared one by one (`MovedMessages`).
"""

import posixpath
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from segproof.files import Files, first_byte
from segproof.layouts.rocketmq import MESSAGE
from segproof.reading.equal_files import blocks_that_differ
from segproof.reading.queue_units import first_led_to
from segproof.reading.store_pieces import Gap, GapKind, StorePieces
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.stretches.rocketmq.candidates import HEAD_BYTES


class CopiedFile(NamedTuple):
    """A file of a commit log that is a copy of another one."""

    log_file: LogFile
    of: LogFile
    """The file whose messages lie at the offsets that they say."""

    @property
    def words(self) -> str:
        """What the copy is, and why it costs nothing."""
        return (
            f"this file is a copy of {posixpath.basename(self.of.path)}, which is there with the"
            " same bytes; queues, index and the end of the log show that no file of this name was"
            " replaced"
        )


def copied_files(log: CommitLog, files: Files) -> list[CopiedFile]:
    """Return the copies that have replaced no file of the log.

    Cost: 36 bytes of each file. If a file may be a copy, it is compared with the other one, and
    queues and index are read once. What can't be read is no copy.
    """
    heads = {one: _head(one, files) for one in log.log_files}
    own = {one.start: one for one, head in heads.items() if _says(head) == one.start}
    doubted = {
        one: own[_says(head)]
        for one, head in heads.items()
        if _says(head) in own and _says(head) != one.start
    }
    others = [one for one, head in heads.items() if one not in doubted and head.strip(b"\0")]
    found = [
        CopiedFile(one, other)
        for one, other in doubted.items()
        if not others[0].start <= one.start <= others[-1].start
        and heads[one] == heads[other]
        and _holds_nothing_else(one, other, files)
    ]
    return _without_replaced(log, found, others[-1], files) if found else []


def without(log: CommitLog, found: Sequence[CopiedFile], files: Files) -> CommitLog:
    """Return the log without its copies."""
    paths = {one.log_file.path for one in found}
    kept = tuple(one for one in log.log_files if one.path not in paths)
    return CommitLog(log.store_path, log.mapped_file_size, kept, files) if found else log


def _head(one: LogFile, files: Files) -> bytes:
    """Return the first bytes of a file, up to the offset that its first message says."""
    with suppress(OSError), closing(files.open(one.path)) as file:
        return file.pread(HEAD_BYTES, 0)
    return b"\xff"  # unread: a file that may hold anything


def _says(head: bytes) -> int:
    """Return which offset the first message of a file says; -1 without a message."""
    is_whole = len(head) == HEAD_BYTES and head.strip(b"\0")
    return MESSAGE["physical_offset"].of(head) if is_whole else -1


def _holds_nothing_else(one: LogFile, other: LogFile, files: Files) -> bool:
    """Return whether a file has the bytes of another one from its begin on, then zeros alone."""
    with (
        suppress(OSError),
        closing(files.open(one.path)) as copy,
        closing(files.open(other.path)) as original,
    ):
        found = next(blocks_that_differ(copy.pread, original.pread, one.size_bytes), None)
        if found is None:
            return True
        alike = len(posixpath.commonprefix((found.one, found.other)))
        return first_byte(copy, found.begin + alike, one.size_bytes) is None
    return False


def _without_replaced(
    log: CommitLog, found: list[CopiedFile], last: LogFile, files: Files
) -> list[CopiedFile]:
    """Return the copies, without those whose name a file of the log may have had.

    `last` is the last file of the log that is none. If it has room after its last message, the log
    had no file after it. Else queues or index must lead into it, and not into the copy.
    """
    asked = sorted([last, *(one.log_file for one in found)])
    samples = first_led_to(
        log.store_path, [one.start for one in asked], log.mapped_file_size, files
    )
    led = {one: len(sample) > 0 for one, sample in zip(asked, samples, strict=True)}
    has_room = led[last] or _has_room(last, log, files)
    return [
        one
        for one in found
        if not led[one.log_file] and (led[last] or (one.log_file.start > last.start and has_room))
    ]


def _has_room(one: LogFile, log: CommitLog, files: Files) -> bool:
    """Return whether zeros end a file, so that no file of the log has followed it."""
    alone = CommitLog(log.store_path, log.mapped_file_size, (one,), files)
    ends_in_zeros = False
    with suppress(OSError):
        for piece in StorePieces(alone, files):
            ends_in_zeros = isinstance(piece, Gap) and piece.kind is GapKind.ZEROS
    return ends_in_zeros
