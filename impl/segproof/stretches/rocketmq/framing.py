# SPDX-License-Identifier: Apache-2.0
"""Framing: which bytes of the files of a commit log are messages with a right body CRC.

The sizes of messages lead from the begin of a file to the next message. Where they lead to no
message, each byte may be the first one of a message: magic, lengths and checksum decide together.
The offset that a message says decides nothing here. A message without a body that has the checksum
of one is no message: a broker reads it, and consumers get an empty body.

A search ends where too much looks like messages: `FileFacts.unsearched_from`. Each sound message is
read once, damaged bytes a few times. Memory: the rows, and 4 MiB or one message.

Upstream: RocketMQ 5.5.1: CommitLog.checkMessageAndReturnSize.
Laws: RMQLOG-1 to RMQLOG-3.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from segproof.errors import TooLargeError
from segproof.files import Files, ReadOnlyFile
from segproof.integers import INT32_MAX
from segproof.layouts.rocketmq import MESSAGE
from segproof.rocketmq.commit_log import RECORD_LIMIT_BYTES, CommitLog, LogFile
from segproof.rocketmq.message import (
    BLANK_BYTES,
    BORN_HOST_V6,
    MESSAGE_MAGICS,
    STORE_HOST_V6,
    blank_head,
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
    filler_rows,
)
from segproof.stretches.rocketmq.facts import (
    CELL_BYTES,
    NO_TIME,
    STRETCH,
    TIMES,
    UNIT,
    Facts,
    FileFacts,
    Int64s,
    Reach,
    Rows,
    Units,
    joined,
    marks_of,
    meet,
    queue_mark,
)
from segproof.stretches.rocketmq.message_blocks import (
    BODY_AT,
    BODY_BYTES,
    SAID,
    SIZE,
    TOPIC_AT,
    TOPIC_BYTES,
    LogReader,
    MessageBlock,
    numbers_at,
)
from segproof.stretches.unreadable_blocks import BLOCK_BYTES, ReadableParts

OpenFile = Callable[[str], ReadOnlyFile]
See = Callable[[MessageBlock], None]
HOST_AT = MESSAGE["store_host"].place
"""Where a message has the address of its broker: of 8 bytes, or 12 more if it is IPv6, and 12 bytes
later if that of the producer is IPv6."""

CONTENT = MESSAGE["magic"].place
"""Where the words begin that tell the content of a message, from its magic to its store time."""
WORD_BYTES, WORDS = 8, 8
LAST_WORDS = 3
"""So many words end a message: they tell its properties."""
WEIGHTS, LAST_WEIGHTS = np.split(
    np.uint64(0x9E3779B97F4A7C15) * np.arange(3, 2 * (WORDS + LAST_WORDS) + 3, 2, dtype=np.uint64),
    [WORDS],
)
"""Odd numbers: each word times its own makes the mark of a message."""
WEIGHTS[(MESSAGE["physical_offset"].place - CONTENT) // WORD_BYTES] = 0


class LogReading:
    """The facts of a commit log. Raises: OSError, also where it is iterated."""

    def __init__(
        self,
        log: CommitLog,
        files: Files,
        *,
        open_file: OpenFile | None = None,
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        """`advance` gets the number of bytes that were read since its last call."""
        self.log = log
        self._files = files
        self._open: OpenFile = open_file or files.open
        self._advance = advance

    def facts(self, units: Units | None = None, see: See = lambda block: None) -> Facts:
        """Return the facts of the whole log. `units`, in order, are met by its messages; `see` gets
        each block of these as it is read."""
        met = np.empty(0, UNIT) if units is None else units.copy()
        found, rows = list[FileFacts](), [np.empty(0, STRETCH)]
        for number, one in enumerate(self.log.log_files):
            with closing(self._open(one.path)) as file:
                framing = _FileFraming(self.log, self._files, file, one, number, met)
                rows += framing.rows(see)
                found.append(framing.facts)
            self._advance(one.size_bytes)
        return Facts(self.log.mapped_file_size, tuple(found), joined(np.concatenate(rows)), met)

    def blocks(self, start: int = 0) -> Iterator[MessageBlock]:
        """Yield the messages file by file, from an offset on, whatever offset they say."""
        return (block for _, block in self._framed(start))

    def _framed(self, start: int) -> Iterator[tuple["_FileFraming", MessageBlock]]:
        for number, one in enumerate(self.log.log_files):
            if one.start + self.log.mapped_file_size > start:
                with closing(self._open(one.path)) as file:
                    none = np.empty(0, UNIT)
                    framing = _FileFraming(self.log, self._files, file, one, number, none)
                    for block, _ in framing.blocks(max(0, start - one.start)):
                        yield framing, block
                self._advance(one.size_bytes)

    def own_blocks(self, start: int = 0) -> Iterator[MessageBlock]:
        """Yield the messages from an offset on that say the offset at which they lie, but for what
        an earlier recovery has cut off: what is older than the last one before a blank end."""
        file, time = -1, -1
        for framing, block in self._framed(start):
            own = block.at_own_offsets()
            if framing.number != file:
                file, time = framing.number, -1
            if framing.is_after_blank:
                own = own._replace(rows=own.rows[own.store_timestamps >= time])
            elif len(own.rows):
                time = int(own.store_timestamps[-1])
            if len(own.rows):
                yield own

    def meet(self, facts: Facts, units: Units) -> None:
        """Write to units, in order, what the messages of the log say of them."""
        ends = facts.rows["said"] + facts.rows["end"] - facts.rows["start"]
        places = np.searchsorted(units["offset"], [facts.rows["said"], ends])
        for row in np.flatnonzero(places[0] < places[1]).tolist():
            for block in self._blocks(facts.rows[row]):
                _meet(units, block)

    def messages(self, facts: Facts, rows: list[int]) -> Facts:
        """Return the same facts with a row for each message of some rows."""
        some, done = list[Rows](), 0
        for row in rows:
            some.append(facts.rows[done:row])
            some += self._details(facts.rows[row])
            done = row + 1
        some.append(facts.rows[done:])
        return replace(facts, rows=np.concatenate(some))

    def _details(self, row: np.void) -> Iterator[Rows]:
        for block in self._blocks(row):
            one = rows_of(block, int(row["file"]), block.offset)
            one["start"] = row["start"] + one["said"] - row["said"]
            one["end"] = one["start"] + block.sizes
            for name in ("reach", "is_after_blank", "is_filler"):
                one[name] = row[name]
            detail(one, np.arange(len(one)), block, np.arange(len(one)))
            yield one

    def _blocks(self, row: np.void) -> Iterator[MessageBlock]:
        """Yield the messages of a row."""
        found = self.log.log_files[row["file"]]
        with closing(self._open(found.path)) as file:
            reader = LogReader(self.log, self._files)
            for block in reader.blocks_of(file, found, int(row["start"]), FIRST_BYTES):
                ends = block.ends_at - found.start
                count = int(np.searchsorted(ends, row["end"], "right"))
                if count:
                    yield block._replace(rows=block.rows[:count])
                if count < len(ends) or ends[-1] == row["end"]:
                    return


class _FileFraming:
    """One file, read once."""

    def __init__(
        self, log: CommitLog, files: Files, file: ReadOnlyFile, one: LogFile, number: int,
        units: Units,
    ) -> None:  # fmt: skip
        self._file_bytes = log.mapped_file_size
        self._file = file
        self._one = one
        self.number = number
        self._units = units
        self._reader = LogReader(log, files)
        self._torn = list[tuple[int, int]]()
        self._body_end = -1
        self._blank_from: int | None = None
        self.facts = FileFacts(one.start, one.size_bytes, one.size_bytes)

    @property
    def is_after_blank(self) -> bool:
        """Whether what comes next lies after a blank end that takes the rest of the file."""
        return self._blank_from is not None

    def rows(self, see: See) -> Iterator[Rows]:
        """Yield the rows; then `facts` is known. Raises: OSError."""
        for block, reach in self.blocks():
            see(block)
            yield self._rows_of(block, reach)

    def blocks(self, at: int = 0) -> Iterator[tuple[MessageBlock, Reach]]:
        """Yield the messages from a position on; then `facts` is known. Raises: OSError."""
        size, reach = self._one.size_bytes, Reach.SIZES
        zeros_from, unsearched = 0, None
        while at < size:
            stop, is_blank = yield from self._walk(at, reach)
            if is_blank and self._blank_from is None and self._is_filled_up(stop):
                self._blank_from = stop
            elif not is_blank:
                self._add_torn(stop)
            found, reached, written = self._search(stop)
            zeros_from = max(stop, written)
            if found is None:
                if reached < size:
                    unsearched, zeros_from = reached, size
                break
            at, reach = found, Reach.SEARCH
        else:
            zeros_from = size
        self.facts = FileFacts(
            self._one.start, size, zeros_from, self._blank_from, tuple(self._torn), unsearched
        )

    def next_message(self, position: int) -> tuple[int | None, int]:
        """Return where the first message lies from a position on, and where the search ended."""
        found, searched_to, _ = self._search(position)
        return found, searched_to

    def _walk(
        self, at: int, reach: Reach
    ) -> Generator[tuple[MessageBlock, Reach], None, tuple[int, bool]]:
        """Yield the messages that sizes lead to; return where they end, and if at a blank end."""
        reader, one = self._reader, self._one
        try:
            for block in reader.blocks_of(self._file, one, at, FIRST_BYTES if at else None):
                row = block.rows[-1]
                self._body_end = int(row[BODY_AT] + row[BODY_BYTES]) + block.offset - one.start
                right = self._right(block)
                if len(right.rows):
                    yield right, reach
        except TooLargeError:
            return reader.end_offset - one.start, False
        return reader.end_offset - one.start, reader.end_result is None

    def _right(self, block: MessageBlock) -> MessageBlock:
        """Return a block without what is no message; note what the units say of all."""
        _meet(self._units, block)
        lies, lacks = block.lies_at - self._one.start, np.flatnonzero(block.lacks_body)
        if len(lacks):
            ends = lies[lacks] + block.sizes[lacks]
            self._torn += zip(lies[lacks].tolist(), ends.tolist(), strict=True)
            block = block._replace(rows=np.delete(block.rows, lacks, 0))
        return self._read_whole(block)

    def _rows_of(self, block: MessageBlock, reach: Reach) -> Rows:
        fills = np.zeros(len(block.rows), np.bool_)
        fills[filler_rows(block)] = True
        firsts = _firsts(block, fills)
        few = rows_of(block, self.number, self._one.start, firsts)
        few["reach"], few["is_after_blank"] = reach, self.is_after_blank
        few["is_filler"] = fills[firsts]
        alone = np.flatnonzero(few["messages"] == 1)
        detail(few, alone, block, firsts[alone])
        return few

    def _read_whole(self, block: MessageBlock) -> MessageBlock:
        """Return a block without the messages that lie in part where the disk gave nothing: there
        zeros stand for properties, which no checksum covers."""
        if not isinstance(self._file, ReadableParts) or not self._file.unreadable:
            return block
        bad = np.array(sorted(self._file.unreadable), np.int64)
        begins = block.lies_at - self._one.start
        first = np.searchsorted(bad, begins - BLOCK_BYTES, "right")
        stop = np.searchsorted(bad, begins + block.sizes, "left")
        return block._replace(rows=block.rows[first == stop])

    def _is_filled_up(self, position: int) -> bool:
        """Return whether a blank end takes the rest of the file."""
        rest = self._file_bytes - position
        if not BLANK_BYTES <= rest <= INT32_MAX:
            return False
        return self._file.pread(BLANK_BYTES, position) == blank_head(rest)

    def _add_torn(self, position: int) -> None:
        """Note the message at a position if its lengths agree; its body is broken, or it is cut."""
        head = self._file.pread(BLANK_BYTES, position)
        size = int.from_bytes(head[:4], "big", signed=True)
        if head[4:] not in MESSAGE_MAGICS or not 0 < size <= RECORD_LIMIT_BYTES:
            return
        if (
            position + size > self._one.size_bytes
            or check_message_and_return_size(self._file.pread(size, position), 0, False).success
        ):
            self._torn.append((position, position + size))

    def _is_message(self, position: int, size: int) -> bool:
        message = check_message_and_return_size(self._file.pread(size, position), 0).message
        return message is not None and not lacks_body(message)

    def _search(self, stop: int) -> tuple[int | None, int, int]:
        """Return where the next message lies, where the search ended, and the end of what is no
        zero. All are positions from `stop` on.

        Where bytes are missing it may begin before the message before it ends, after its body.
        """
        start = self._body_end if 0 <= self._body_end < stop else stop
        written, to_sum, piece_bytes = stop, CRC_BYTES, FIRST_BYTES
        size = self._one.size_bytes
        for begin, behind in self._file.data_ranges(start, size):
            # The first bytes of a length are zeros, and may lie in a hole.
            to = max(start, begin - 3)
            while to < behind:
                at, to = to, min(behind, to + piece_bytes)
                piece_bytes = min(2 * piece_bytes, SEARCH_PIECE_BYTES)
                data = self._file.pread(to - at + HEAD_BYTES - 1, at)
                if filled := len(data[: to - at].rstrip(b"\0")):
                    written = max(stop, at + filled)
                to_sum += CRC_BYTES_OF_A_BYTE * (to - at)
                for position, length in candidates(data, None, to - at):
                    position += at
                    if position + length > size:
                        continue
                    to_sum -= max(length, CHECKED_BYTES_MIN)
                    if to_sum < 0:
                        return None, position, written
                    if self._is_message(position, length):
                        return position, position, written
        return None, size, written


def next_message(
    file: ReadOnlyFile, one: LogFile, log: CommitLog, files: Files, position: int
) -> tuple[int | None, int]:
    """Return where the first message of a file lies from a position on, whatever offset it says;
    None without one. And where the search ended: before the end of the file where too much looks
    like messages. Raises: OSError."""
    return _FileFraming(log, files, file, one, 0, np.empty(0, UNIT)).next_message(position)


def _firsts(block: MessageBlock, fills: NDArray[np.bool_]) -> Int64s:
    """Return the numbers of the messages of a block at which a row begins."""
    if not len(block.rows):
        return np.empty(0, np.int64)
    columns = np.ascontiguousarray(block.rows[:, : SAID + 1].T)
    starts, said = columns[0], columns[SAID]
    is_cut = np.diff(said - starts) != 0
    is_cut |= starts[1:] != starts[:-1] + columns[SIZE, :-1]
    is_cut |= np.diff(said // CELL_BYTES) != 0
    is_cut |= np.diff(fills)
    for part in _hosts(block):
        is_cut |= part[1:] != part[:-1]
    return np.append(0, np.flatnonzero(is_cut) + 1)


def _hosts(block: MessageBlock) -> list[Int64s]:
    """Return the first and the last 8 bytes of the address of the broker of each message."""
    flags = block.flags
    at = block.positions + HOST_AT
    if not (flags & (BORN_HOST_V6 | STORE_HOST_V6)).any():
        return [numbers_at(block.data, at, "<i8")] * 2
    at += np.where(flags & BORN_HOST_V6, 12, 0)
    last = at + np.where(flags & STORE_HOST_V6, 12, 0)
    return [numbers_at(block.data, one, "<i8") for one in (at, last)]


def rows_of(block: MessageBlock, file: int, start: int, firsts: Int64s | None = None) -> Rows:
    """Return a row without details for each message of a block of a file that begins at `start`; or
    a row for those from each of `firsts` on."""
    count = len(block.rows)
    firsts = np.arange(count) if firsts is None else firsts
    lasts = np.append(firsts[1:], count)[: len(firsts)] - 1
    rows = np.zeros(len(firsts), STRETCH)
    if not count:
        return rows
    rows["file"], rows["start"] = file, block.lies_at[firsts] - start
    rows["end"] = block.ends_at[lasts] - start
    rows["said"], rows["messages"] = block.phy_offsets[firsts], lasts - firsts + 1
    rows["mark"] = np.add.reduceat(_marks(block), firsts)
    rows["host"] = marks_of(_hosts(block._replace(rows=block.rows[firsts])))
    for back in range(TIMES):
        at = np.maximum(lasts - back, firsts)
        rows["times"][:, back] = np.where(at == lasts - back, block.store_timestamps[at], NO_TIME)
    return rows


def _marks(block: MessageBlock) -> NDArray[np.uint64]:
    """Return a number for the content of each message: equal ones have equal numbers."""
    begins, ends = block.positions + CONTENT, block.positions + block.sizes
    marks = np.einsum("ij,j->i", _words(block.data, begins, WORDS), WEIGHTS)
    last = _words(block.data, ends - LAST_WORDS * WORD_BYTES, LAST_WORDS)
    marks += np.einsum("ij,j->i", last, LAST_WEIGHTS)
    marks ^= marks >> np.uint64(29)
    marks *= WEIGHTS[0]
    return np.asarray(marks ^ (marks >> np.uint64(32)))


def _words(data: bytes, places: Int64s, count: int) -> NDArray[np.uint64]:
    size = count * WORD_BYTES
    parts: NDArray[np.void] = np.ndarray((max(0, len(data) - size + 1),), f"V{size}", data, 0, (1,))
    return parts[places].view("<u8").reshape(-1, count)


def detail(rows: Rows, at: Int64s, block: MessageBlock, numbers: Int64s) -> None:
    """Write to some rows, each of one message, the details of that message of a block."""
    if not len(at):
        return
    _, rows["number"][at] = block._replace(rows=block.rows[numbers]).numbers()
    rows["flags"][at] = block.flags[numbers]
    rows["born"][at] = block.born_timestamps(numbers)
    for row, number in zip(at.tolist(), numbers.tolist(), strict=True):
        message = block.message(number)
        first, size = block.rows[number, TOPIC_AT : TOPIC_BYTES + 1].tolist()
        rows["queue"][row] = queue_mark(block.data[first : first + size], message.queue_id)


def _meet(units: Units, block: MessageBlock) -> None:
    """Write to units, in order, what the messages of a block say of them."""
    if not len(units):
        return
    said, sizes = block.phy_offsets, block.sizes
    first, stop = np.searchsorted(units["offset"], [said.min(), (said + sizes).max()])
    if first >= stop:
        return
    some, order = units[first:stop], np.argsort(said, kind="stable")
    at = np.searchsorted(said[order], some["offset"], "right") - 1
    asked = np.unique(np.isin(said, said[order[at[at >= 0]]]).nonzero()[0])
    if len(asked):
        few = block._replace(rows=block.rows[asked])
        rows = rows_of(few, 0, 0)
        detail(rows, np.arange(len(rows)), few, np.arange(len(rows)))
        meet(some, rows)
