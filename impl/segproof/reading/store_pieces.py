# SPDX-License-Identifier: Apache-2.0
"""A commit log in pieces: sound messages, damage between them, and where messages go on behind it.

A message is sound if its magic, its lengths and the checksum of its body are right, if it follows a
sound one or says the offset at which it lies, and if a blank end has room behind it. The checksum
covers the body alone. So a message that follows a sound one may say a wrong offset: readers of
pieces compare it with `MessageBlock.lies_at`. A message without a body that has the checksum of one
is damage too: a broker reads it, and consumers get an empty body.

Behind damage each byte may be the first one of a message: magic, offset, length and checksum
together decide. A message that lies in the body of another one says another offset.

A blank end is damage too if it does not take the rest of its file, or if a message lies behind it
that is no older than the last one before it: a broker passes over these. What an earlier recovery
has cut off is older, and may lie behind a sound blank end.

Upstream: RocketMQ 5.5.1: CommitLog.checkMessageAndReturnSize.
Laws: RMQLOG-1 to RMQLOG-3, RMQDISK-24 to RMQDISK-27, RMQDISK-55.
Not covered: a blank end right where an earlier recovery has cut the log: what it cut off is younger
  than the last message before it, and counts as sound messages behind a false blank end.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from segproof.errors import TooLargeError
from segproof.files import Files, ReadOnlyFile
from segproof.layouts.rocketmq import MESSAGE
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import (
    BLANK_BYTES,
    check_message_and_return_size,
    lacks_body,
)
from segproof.stretches.rocketmq.candidates import (
    CHECKED_BYTES_MIN,
    CRC_BYTES,
    CRC_BYTES_OF_A_BYTE,
    FIRST_BYTES,
    HEAD_BYTES,
    SEARCH_PIECE_BYTES,
    candidates,
)
from segproof.stretches.rocketmq.desk import GapKind as GapKind
from segproof.stretches.rocketmq.message_blocks import LogReader, MessageBlock

GAPS_MAX = 10_000
"""So many gaps are kept one by one."""


class Gap(NamedTuple):
    """The offsets [start, end) of a log, where no sound message is."""

    kind: GapKind
    path: str
    """The file; for files that are missing the one before them."""
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.start


class Gaps:
    """Some gaps of a log, in order."""

    def __init__(self) -> None:
        self.places = 0
        self.size_bytes = 0
        self.kept: list[Gap] = []
        """The first GAPS_MAX of them."""

    @property
    def is_complete(self) -> bool:
        """Whether each of them is kept."""
        return self.places == len(self.kept)

    def add(self, gap: Gap) -> None:
        """Take the next one."""
        self.places += 1
        self.size_bytes += gap.size_bytes
        if len(self.kept) < GAPS_MAX:
            self.kept.append(gap)

    def join(self, other: "Gaps") -> None:
        """Take those that follow."""
        self.places += other.places
        self.size_bytes += other.size_bytes
        self.kept += other.kept[: GAPS_MAX - len(self.kept)]


class LostStretches:
    """Counts the gaps in which messages may be lost: all but the zeros that end the log."""

    def __init__(self) -> None:
        self.gaps = Gaps()
        self._zeros: list[Gap] = []
        """Those at the end of what was told so far."""

    def add(self, piece: "MessageBlock | Gap") -> None:
        """Take the next piece."""
        if isinstance(piece, Gap):
            self._zeros.append(piece)
            if piece.kind is GapKind.ZEROS or piece.kind is GapKind.MISSING:
                return
        for gap in self._zeros:
            self.gaps.add(gap)
        self._zeros.clear()


class StorePieces:
    """The pieces of a commit log from an offset on, in order; iterate once.

    Between two of them lie at most the blank ends of files. The zeros that the last file ends with
    are a gap too. With `any_offset` a message behind damage may say another offset, and
    end with the file, or begin inside of the one before it, behind its body.
    Memory: as `LogReader`. Cost: sound messages are read once, damaged bytes a few times.
    Raises: OSError.
    """

    def __init__(
        self,
        log: CommitLog,
        files: Files,
        *,
        start: int | None = None,
        any_offset: bool = False,
        open_file: Callable[[str], ReadOnlyFile] | None = None,
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._log = log
        self._start = log.min_offset if start is None else start
        self._any_offset = any_offset
        self._last_end = log.mapped_file_size - (0 if any_offset else BLANK_BYTES)
        """Where the last message of a file may end; a moved one leaves no room for a blank end."""
        self._open = open_file or files.open
        self._advance = advance
        self._reader = LogReader(log, files)
        self._told = self._start
        self._time = self._body_end = -1
        """Store time of the last message told of the present file, and where its body ends; -1
        without any."""
        self._was_moved = False
        """Whether that one says another offset: then the end of it may be of a message here."""

    def __iter__(self) -> Iterator[MessageBlock | Gap]:
        """Yield the pieces. A block holds until the next piece is asked for."""
        log, before = self._log, None
        for one in log.log_files:
            behind = one.start + log.mapped_file_size
            if behind <= self._start:
                continue
            if before is not None and before.start + before.size_bytes < one.start:
                end = before.start + before.size_bytes
                yield Gap(GapKind.MISSING, before.path, end, one.start)
            with closing(self._open(one.path)) as file:
                yield from self._file(file, one, max(0, self._start - one.start))
            before = one

    def _file(self, file: ReadOnlyFile, one: LogFile, at: int) -> Iterator[MessageBlock | Gap]:
        end, self._time, self._body_end = one.size_bytes, -1, -1
        while at < end:
            broken_from, is_ended = yield from self._walk(file, one, at)
            is_ended = is_ended and self._is_filled_up(file, broken_from)
            least = self._time if is_ended else None
            found, searched_to, written = self._search(file, one, broken_from, least)
            if found is not None:
                if broken_from < found:
                    yield self._gap(GapKind.BROKEN, one, broken_from, found)
                at = found
                continue
            if searched_to < end:
                yield self._gap(GapKind.BROKEN, one, broken_from, searched_to)
                yield self._gap(GapKind.UNSEARCHED, one, searched_to, end)
            elif not is_ended:
                if broken_from < written:
                    yield self._gap(GapKind.BROKEN, one, broken_from, written)
                if written < end:
                    yield self._gap(GapKind.ZEROS, one, written, end)
            break
        self._tell(one.start + end)

    def _is_filled_up(self, file: ReadOnlyFile, position: int) -> bool:
        """Return whether a blank end says that it takes the rest of the file."""
        size = MESSAGE["total_size"].read(file, position)
        return position + size == self._log.mapped_file_size

    def hides_messages(self, file: ReadOnlyFile, one: LogFile, blank_at: int, time: int) -> bool:
        """Return whether a blank end at a position of a file hides sound messages.

        `time` is the store time of the last message before it in the file, -1 without any.
        Raises: OSError.
        """
        found, searched_to, _ = self._search(file, one, blank_at, time)
        return found is not None or searched_to < one.size_bytes

    def _tell(self, offset: int) -> None:
        """Say how many bytes were read since the last call."""
        self._advance(max(0, offset - self._told))
        self._told = max(offset, self._told)

    def _gap(self, kind: GapKind, one: LogFile, start: int, end: int) -> Gap:
        return Gap(kind, one.path, one.start + start, one.start + end)

    def _walk(
        self, file: ReadOnlyFile, one: LogFile, at: int
    ) -> Generator[MessageBlock | Gap, None, tuple[int, bool]]:
        """Yield message after message, and a gap for each that lacks its body.

        Return where they end, and whether at a blank end.
        """
        reader, last = self._reader, self._last_end
        try:
            for block in reader.blocks_of(file, one, at, FIRST_BYTES if at else None):
                ends = block.lies_at + block.rows[:, 1] - one.start
                count = int(np.searchsorted(ends, last, "right"))
                if count:
                    self._tell(one.start + int(ends[count - 1]))
                    self._time = int(block.rows[count - 1, 3])
                    row = block.rows[count - 1]
                    self._body_end = int(row[5] + row[6]) + block.offset - one.start
                    self._was_moved = int(row[0]) + block.offset != int(row[2])
                    yield from self._with_bodies(block._replace(rows=block.rows[:count]), one)
                if count < len(ends):
                    return int(block.lies_at[count]) - one.start, False
        except TooLargeError:
            return reader.end_offset - one.start, False
        return reader.end_offset - one.start, reader.end_result is None

    def _with_bodies(self, block: MessageBlock, one: LogFile) -> Iterator[MessageBlock | Gap]:
        """Yield the messages of a block, and a gap for each one that lacks its body."""
        first = 0
        for number in [*np.flatnonzero(block.lacks_body).tolist(), len(block.rows)]:
            if first < number:
                yield block._replace(rows=block.rows[first:number])
            if number < len(block.rows):
                at = int(block.lies_at[number]) - one.start
                yield self._gap(GapKind.BROKEN, one, at, at + int(block.rows[number, 1]))
            first = number + 1

    def _search(
        self, file: ReadOnlyFile, one: LogFile, start: int, least_time: int | None
    ) -> tuple[int | None, int, int]:
        """Return where the first sound message lies, where the search ended, and what is written.

        The last one is the position behind the last byte that is not zero. All are positions from
        `start` on. Messages whose store time is below `least_time` are passed over.
        """
        broken_from, written, to_sum = start, start, CRC_BYTES
        if self._any_offset and 0 <= self._body_end < start:
            # Where bytes are missing the next message may begin before the last one ends.
            start = self._body_end
        last, piece_bytes = self._last_end, FIRST_BYTES
        for begin, behind in file.data_ranges(start, one.size_bytes):
            # The first bytes of a length are zeros, and may lie in a hole.
            stop = max(start, begin - 3)
            while stop < behind:
                at, stop = stop, min(behind, stop + piece_bytes)
                piece_bytes = min(2 * piece_bytes, SEARCH_PIECE_BYTES)
                data = file.pread(stop - at + HEAD_BYTES - 1, at)
                if filled := len(data[: stop - at].rstrip(b"\0")):
                    written = at + filled
                to_sum += CRC_BYTES_OF_A_BYTE * (stop - at)
                offset = None if self._any_offset else one.start + at
                for position, size in candidates(data, offset, stop - at):
                    position += at
                    if position < start or position + size > last:
                        continue
                    to_sum -= max(size, CHECKED_BYTES_MIN)
                    if to_sum < 0:
                        return None, position, written
                    message = check_message_and_return_size(file.pread(size, position), 0).message
                    if message is None or lacks_body(message):
                        continue
                    is_moved = message.physical_offset != one.start + position
                    if position < broken_from and not (is_moved or self._was_moved):
                        continue
                    if is_moved or least_time is None or message.store_timestamp >= least_time:
                        return position, position, written
        return None, one.size_bytes, written
