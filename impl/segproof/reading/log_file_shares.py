# SPDX-License-Identifier: Apache-2.0
"""A copy of a file of a commit log against the file of the log that has its offset.

Each sound message of the copy is looked for at the same position of the other file, byte for byte.
So it is known whether a person may let the copy go, which of two copies is the better one, and
whether it is a copy at all: no log has two messages at one place.

Laws: RMQDISK-39, RMQDISK-42.
Not covered: what lies in a copy between its sound messages.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final, NamedTuple

from segproof.files import Files, ReadOnlyFile
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import check_message_and_return_size
from segproof.stretches.rocketmq.framing import LogReading
from segproof.stretches.rocketmq.message_blocks import MessageBlock

__all__ = ["Share", "share_of", "shares_a_message", "sound_messages"]

OTHER_MESSAGES_ENOUGH: Final = 64
"""Messages of another log, without one in common: damage that no checksum covers makes a few."""


class Share(NamedTuple):
    """What a file has of the sound messages of a copy."""

    sound: int
    """The sound messages of the copy."""
    lacking: int
    """How many of these the file does not have at their positions."""


def sound_messages(copy: LogFile, mapped_file_size: int, files: Files) -> int:
    """Return how many sound messages a copy has. Raises: OSError."""
    return sum(len(one.rows) for one in _blocks(copy, mapped_file_size, files))


def share_of(copy: LogFile, other: str, mapped_file_size: int, files: Files) -> Share:
    """Return what the file at the path `other` has of a copy with the same start.

    Memory: that of a block of messages. Raises: OSError.
    """
    sound = lacking = 0
    with closing(files.open(other)) as file:
        for block in _blocks(copy, mapped_file_size, files):
            sound += len(block.rows)
            lacking += _lacking(block, file, copy.start)
    return Share(sound, lacking)


def shares_a_message(copy: LogFile, other: str, mapped_file_size: int, files: Files) -> bool | None:
    """Return whether the file at the path `other` has a sound message of a copy with the same
    start; False if other sound messages lie at their places, None if neither is known.

    Cost: both are read up to the first block of messages that has one, or up to the place of
    OTHER_MESSAGES_ENOUGH.
    """
    others = 0
    with suppress(OSError), closing(files.open(other)) as file:
        for block in _blocks(copy, mapped_file_size, files):
            if _lacking(block, file, copy.start) < len(block.rows):
                return True
            others += _others(block, file, copy.start)
            if others >= OTHER_MESSAGES_ENOUGH:
                break
    return False if others else None


def _others(block: MessageBlock, file: ReadOnlyFile, start: int) -> int:
    """Return at how many places of a block's messages a file has a sound message."""
    begin, end = block.span
    there = file.pread(end - begin, begin + block.offset - start)
    found = 0
    for at in block.positions.tolist():
        message = check_message_and_return_size(there, at - begin).message
        found += message is not None and message.physical_offset == block.offset + at
    return found


def _blocks(copy: LogFile, mapped_file_size: int, files: Files) -> Iterator[MessageBlock]:
    cut = copy._replace(size_bytes=min(copy.size_bytes, mapped_file_size))
    return LogReading(CommitLog("", mapped_file_size, (cut,), files), files).own_blocks()


def _lacking(block: MessageBlock, file: ReadOnlyFile, start: int) -> int:
    """Return how many messages of a block a file does not have at their positions."""
    begin, end = block.span
    position = begin + block.offset - start
    there = file.pread(end - begin, position)
    if there == block.data[begin:end]:
        return 0
    places = zip(block.positions.tolist(), block.sizes.tolist(), strict=True)
    return sum(
        block.data[at : at + size] != there[at - begin : at - begin + size] for at, size in places
    )
