# SPDX-License-Identifier: Apache-2.0
"""Sound messages of a commit log that lie elsewhere than at the offset that they say.

Bytes that were put in or taken out move all messages behind them. A disk writes a block to a wrong
place. Such messages belong to their own offset, if no sound message is there. `MovedMessages` finds
them, and opens the files of the log as if each lay there. Of a message that is there as well the
copy is blanked.

A message whose neighbours lie at their own offsets is where it belongs: its offset is damaged, and
put right. One message alone is moved only if it joins a message at its own offset, or the blank end
that belongs there follows it, or by whole blocks of a disk, or if a queue or the index knows it
there, or one that ends there. Of two or more that say the same distance, none is there by chance.
The body of a message may hold messages of another log, which nothing else tells from moved ones.
Messages that belong before the first file of the log are moved only if a queue or the index knows
one of them there: that file is lost, or it expired, and its place is free.

Laws: RMQLOG-1 to RMQLOG-3, RMQDISK-25.
Not covered: messages that say an offset far before the files of the log, or far beyond them.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files, ReadOnlyFile
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.reading.equal_files import Read, blocks_that_differ
from segproof.reading.queue_units import led_to, told_messages
from segproof.reading.store_pieces import Gap, StorePieces
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, log_file_name
from segproof.rocketmq.message import BLANK_BYTES, blank_head
from segproof.stretches.rocketmq.candidates import OFFSET_POSITION
from segproof.stretches.rocketmq.message_blocks import LogReader

Int64Array = NDArray[np.int64]
OpenFile = Callable[[str], ReadOnlyFile]

OFFSET_BYTES = 8
SECTOR_BYTES = 512
"""A disk writes blocks of a multiple of this, at a multiple of it."""
OF_MOVED = ".moved"
"""Ends the path of a file of moved messages alone whose name another file has. No disk has it."""
FILES_BEYOND = 8
"""At most this many missing files before the first file, or after the last one, get messages that
lie elsewhere."""


class Stretch(NamedTuple):
    """Messages that follow each other in a file, and say the same distance to their own offsets."""

    lies_at: int
    """Their place in the log: an offset."""
    offset: int
    """The offset that the first of them says."""
    size_bytes: int
    messages: int

    @property
    def end(self) -> int:
        """The offset behind the last of them, by what they say."""
        return self.offset + self.size_bytes

    def joined(self, two: "Stretch") -> "Stretch | None":
        """Return both as one, if `two` follows at the same distance; else None."""
        if (self.lies_at + self.size_bytes, self.end) != (two.lies_at, two.offset):
            return None
        size, messages = self.size_bytes + two.size_bytes, self.messages + two.messages
        return Stretch(self.lies_at, self.offset, size, messages)


class FileShare(NamedTuple):
    """What became of the messages of a file that state another offset than that of their place."""

    moved: int
    """Messages that are put where they belong: no other file has them."""
    copied: int
    """Messages that have a copy where they belong."""
    left: int
    """Messages that stay where they lie, since another message has their place."""


class _Sound:
    """The stretches of sound messages that lie at their own offsets, joined, in order."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """Add the stretch [start, end), which lies after all that were added."""
        if self.ends and self.ends[-1] == start:
            self.ends[-1] = end
            return
        self.starts.append(start)
        self.ends.append(end)

    def has_room(self, start: int, end: int) -> bool:
        """Return whether no message lies in [start, end)."""
        place = bisect_right(self.ends, start)
        return place == len(self.starts) or self.starts[place] >= end

    def holds(self, start: int, end: int) -> bool:
        """Return whether one stretch holds all of [start, end)."""
        place = bisect_right(self.starts, start) - 1
        return place >= 0 and self.ends[place] >= end

    def joins(self, start: int, end: int) -> bool:
        """Return whether a stretch ends at `start`, or begins at `end`."""
        return self.ends_at(start) or self.begins_at(end)

    def shared(self, offset: int) -> int:
        """Return how many bytes from an offset on a stretch has: a message may end behind it."""
        place = bisect_right(self.starts, offset) - 1
        return max(0, self.ends[place] - offset) if place >= 0 else 0

    def next_after(self, offset: int) -> int:
        """Return where the next stretch after an offset begins: it may begin in a message there."""
        place = bisect_right(self.starts, offset)
        return self.starts[place] if place < len(self.starts) else INT64_MAX

    def ends_at(self, offset: int) -> bool:
        """Return whether a stretch ends at an offset."""
        place = bisect_right(self.ends, offset)
        return place > 0 and self.ends[place - 1] == offset

    def begins_at(self, offset: int) -> bool:
        """Return whether a stretch begins at an offset."""
        place = bisect_right(self.starts, offset)
        return place > 0 and self.starts[place - 1] == offset


class MovedMessages:
    """The moved messages of a log. `log` has each at its own offset, in the files of `open`.

    Cost: the log is read once. Memory: as `StorePieces`, and 32 bytes for each moved message.
    Raises: OSError.
    """

    def __init__(
        self,
        log: CommitLog,
        files: Files,
        *,
        open_file: OpenFile | None = None,
        advance: Callable[[int], None] = lambda count: None,
        is_cut: bool = False,
    ) -> None:
        """`is_cut` says that the only file of a log may be longer than it is."""
        self._most = INT32_MAX if is_cut and len(log.log_files) == 1 else log.mapped_file_size
        self._log = log
        self._files = files
        self._open_raw: OpenFile = open_file or files.open
        self.moved = 0
        """Messages that lie elsewhere than at their own offset."""
        self.copied: list[Stretch] = []
        """Further copies of messages that lie at their own offset."""
        self._sound = _Sound()
        self._data: dict[int, list[Stretch]] = {}
        self._blanks: dict[int, list[Stretch]] = {}
        """By the begin of the file that they are put into, or lie in."""
        files_apart = pairwise(log.log_files)
        is_apart = all(one.start + one.size_bytes <= two.start for one, two in files_apart)
        stretches = self._read(advance) if is_apart else []
        self.restored = 0
        """Messages that lie where they belong, and say another offset: it is put right."""
        self._fixes: dict[int, list[Stretch]] = {}
        """By the begin of their file."""
        self._left: list[Stretch] = []
        """Stretches that stay where they lie."""
        self._doubted: list[Stretch] = []
        """Single messages that nothing in the log shows to be moved ones."""
        self._earlier: list[Stretch] = []
        """Stretches that belong before the first file."""
        for one in sorted(stretches, key=lambda each: -each.messages):
            self._place(one)
        if self._earlier:
            self._place_earlier()
        if self._doubted:
            sizes = {one.offset: one.size_bytes for one in self._doubted}
            told = told_messages(log.store_path, sizes, files)
            for one in self._doubted:
                if one.offset not in told or not self._put(one, is_told=True):
                    self._left.append(one)
        self.left: list[Stretch] = []
        """Stretches that stay where they lie, and say another offset."""
        for one in self._left:
            if one.messages == 1 and self._is_between(one):
                self.restored += 1
                self._fixes.setdefault(self._begin(one.lies_at), []).append(one)
            else:
                self.left.append(one)
        for each in self._data.values():
            each.sort(key=lambda one: one.offset)
        for each in self._blanks.values():
            each.sort(key=lambda one: one.lies_at)
        self.log = self._with_room()
        """The files of the log, as long as what is put into them."""

    def _read(self, advance: Callable[[int], None]) -> list[Stretch]:
        """Read the log once; return the stretches of messages that say another offset."""
        found: list[Stretch] = []
        pieces = StorePieces(
            self._log, self._files, open_file=self._open_raw, advance=advance, any_offset=True
        )
        for piece in pieces:
            if isinstance(piece, Gap):
                continue
            places, sizes = piece.lies_at, piece.rows[:, 1]
            distances = piece.phy_offsets - places
            edges = [0, *(np.flatnonzero(np.diff(distances)) + 1).tolist(), len(places)]
            for first, stop in pairwise(edges):
                start, size = int(places[first]), int(sizes[first:stop].sum())
                if not distances[first]:
                    if self._has_room_behind(start + size):
                        self._sound.add(start, start + size)
                    continue
                one = Stretch(start, start + int(distances[first]), size, stop - first)
                if found and (joined := found[-1].joined(one)) is not None:
                    found[-1] = joined
                else:
                    found.append(one)
        return found

    @property
    def sound_bytes(self) -> int:
        """Bytes of the messages that lie at their own offsets."""
        return sum(self._sound.ends) - sum(self._sound.starts)

    @property
    def bytes_put_in(self) -> int:
        """How many bytes were put in before the last moved message; negative: taken out."""
        moved = chain.from_iterable(self._data.values())
        last = max(moved, key=lambda one: one.lies_at, default=None)
        return 0 if last is None else last.lies_at - last.offset

    @property
    def copies(self) -> int:
        """How many messages of the log are such copies."""
        return sum(one.messages for one in self.copied)

    def of_file(self, one: LogFile) -> FileShare:
        """Return what became of the messages of a file that belong elsewhere in the log."""
        end = one.start + self._log.mapped_file_size
        moved, copied, left = (
            sum(each.messages for each in some if one.start <= each.lies_at < end)
            for some in (chain.from_iterable(self._data.values()), self.copied, self._left)
        )
        return FileShare(moved, copied, left)

    def without(self, unused: Sequence[LogFile]) -> None:
        """Leave files out of `log`."""
        starts = {one.start for one in unused}
        kept = tuple(one for one in self.log.log_files if one.start not in starts)
        self.log = CommitLog(self.log.store_path, self.log.mapped_file_size, kept, self._files)

    def _has_room_behind(self, end: int) -> bool:
        """Return whether a file has room for a blank end behind messages that end at an offset."""
        begin = self._begin(end - 1)
        return end <= begin + self._log.mapped_file_size - BLANK_BYTES

    def _place(self, one: Stretch) -> None:
        """Decide where the messages of a stretch belong."""
        for part in self._parts(one):
            is_inside = self._file_begin(part) is not None
            is_taken = is_inside and self._sound.holds(part.offset, part.end)
            if is_taken and self._is_copy(part, part.offset):
                self.copied.append(part)
                self._blank(part)
                continue
            has_room = is_inside and self._sound.has_room(part.offset, part.end)
            if has_room and part.offset < self._log.min_offset:
                self._earlier.append(part)
            elif not has_room or not (self._put(part) or part in self._doubted[-1:]):
                self._left.append(part)

    def _place_earlier(self) -> None:
        """Put the stretches before the first file there that queues or index know there."""
        ranges = [(one.offset, one.end) for one in self._earlier]
        known = led_to(self._log.store_path, ranges, self._files)
        for one in self._earlier:
            if not (self._is_known(one, known) and self._put(one, is_told=True)):
                self._left.append(one)

    def _is_known(self, one: Stretch, known: Int64Array) -> bool:
        """Return whether a unit or an entry of `known` leads to a message of a stretch, by what
        this says."""
        inside = known[(known[:, 0] >= one.offset) & (known[:, 0] < one.end)]
        for offset, size in inside.tolist():
            head = self._bytes(one.lies_at + offset - one.offset, OFFSET_POSITION + OFFSET_BYTES)
            says = int.from_bytes(head[OFFSET_POSITION:], "big")
            if says == offset and size in (0, int.from_bytes(head[:4], "big")):
                return True
        return False

    def _is_between(self, one: Stretch) -> bool:
        """Return whether a message lies between two that lie at their own offsets.

        So does the first one of a file, and the last one before a blank end.
        """
        begin, end = self._begin(one.lies_at), one.lies_at + one.size_bytes
        is_behind = begin == one.lies_at or self._sound.ends_at(one.lies_at)
        if not is_behind:
            return False
        rest = begin + self._log.mapped_file_size - end
        return self._sound.begins_at(end) or self._is_blank(end, rest)

    def _is_blank(self, position: int, rest: int) -> bool:
        """Return whether a blank end begins at a position that takes `rest` bytes."""
        return BLANK_BYTES <= rest <= INT32_MAX and self._bytes(
            position, BLANK_BYTES
        ) == blank_head(rest)

    def _put(self, one: Stretch, *, is_told: bool = False) -> bool:
        """Put a stretch at its own offset, if that is believed, and free; return whether it was.

        `is_told` says that a queue or the index knows the message there.
        """
        begin = self._file_begin(one)
        assert begin is not None
        put = self._data.setdefault(begin, [])
        for other in put:
            if one.offset < other.end and other.offset < one.end:
                is_inside = other.offset <= one.offset and one.end <= other.end
                place = other.lies_at + one.offset - other.offset
                is_copy = is_inside and self._is_copy(one, place)
                if is_copy:
                    self.copied.append(one)
                    self._blank(one)
                return is_copy
        joins = self._sound.joins(one.offset, one.end) or any(
            other.end == one.offset or one.end == other.offset for other in put
        )
        is_moved = joins or is_told or one.messages > 1
        # A file's last message fits the end of each file, also with a flipped bit of its offset.
        is_moved |= self._ends_its_file(one, begin) and not self._is_between(one)
        if not is_moved and not self._sound.joins(one.lies_at, one.lies_at + one.size_bytes):
            is_of_block = (one.offset - one.lies_at) % SECTOR_BYTES == 0
            is_moved = is_of_block and begin < self._log.max_offset
            if not is_moved:
                self._doubted.append(one)
        if is_moved:
            put.append(one)
            self.moved += one.messages
            self._blank(one)
        return is_moved

    def _ends_its_file(self, one: Stretch, begin: int) -> bool:
        """Return whether a blank end follows that takes the rest of the file, from its own end."""
        rest = begin + self._log.mapped_file_size - one.end
        return self._is_blank(one.lies_at + one.size_bytes, rest)

    def _parts(self, one: Stretch) -> Iterator[Stretch]:
        """Yield a stretch, or parts of it: of each all offsets are free in a file, or none is."""
        is_free = self._sound.has_room(one.offset, one.end) and self._file_begin(one) is not None
        if is_free or self._sound.holds(one.offset, one.end):
            yield one
            return
        found = self._log.file_of(one.lies_at)
        assert found is not None
        part: Stretch | None = None
        with closing(self._open_raw(found.path)) as file:
            reader = LogReader(self._log, self._files)
            for block in reader.blocks_of(file, found, one.lies_at - found.start):
                for row, place in enumerate(block.lies_at.tolist()):
                    size = int(block.rows[row, 1])
                    if place >= one.lies_at + one.size_bytes:
                        break
                    two = Stretch(place, place + one.offset - one.lies_at, size, 1)
                    joined = None if part is None else part.joined(two)
                    if part is None or joined is None or not self._is_alike(part, two):
                        if part is not None:
                            yield part
                        part = two
                    else:
                        part = joined
                else:
                    continue
                break
        if part is not None:
            yield part

    def _is_alike(self, one: Stretch, two: Stretch) -> bool:
        """Return whether the offsets of both are free in one file, or those of both are not."""
        has_room = self._sound.has_room
        is_alike = has_room(one.offset, one.end) is has_room(two.offset, two.end)
        return is_alike and self._file_begin(one) == self._file_begin(two)

    def _file_begin(self, one: Stretch) -> int | None:
        """Return where the file begins to whose offsets a stretch belongs; None outside the log."""
        size, first = self._log.mapped_file_size, self._log.min_offset
        begin, least = self._begin(one.offset), max(0, first - FILES_BEYOND * size)
        if self._most > size:
            begin, least = max(begin, first), first
        is_inside = least <= begin < self._log.max_offset + FILES_BEYOND * size
        return begin if is_inside and one.end <= begin + self._most - BLANK_BYTES else None

    def _begin(self, offset: int) -> int:
        found = self._log.file_of(offset)
        first, size = self._log.min_offset, self._log.mapped_file_size
        return offset - (offset - first) % size if found is None else found.start

    def _is_copy(self, one: Stretch, place: int) -> bool:
        """Return whether the same bytes lie at another place of the log."""
        mine, its = (self._from(begin) for begin in (one.lies_at, place))
        return not any(blocks_that_differ(mine, its, one.size_bytes))

    def _from(self, place: int) -> Read:
        return lambda size, position: self._bytes(place + position, size)

    def _bytes(self, place: int, size: int) -> bytes:
        found = self._log.file_of(place)
        if found is None:
            return b""
        with closing(self._open_raw(found.path)) as file:
            return file.pread(size, place - found.start)

    def _blank(self, one: Stretch) -> None:
        start, shared = self._begin(one.lies_at), self._sound.shared(one.lies_at)
        end = min(one.lies_at + one.size_bytes, self._sound.next_after(one.lies_at))
        begin = min(end, one.lies_at + shared)
        own = one._replace(lies_at=begin, size_bytes=end - begin)
        self._blanks.setdefault(start, []).append(own)

    def _with_room(self) -> CommitLog:
        """Return the log with files that hold what is put into them."""
        log, folder = self._log, os.path.join(self._log.store_path, COMMIT_LOG)
        files = {one.start: one for one in log.log_files}
        taken = {one.path for one in log.log_files}
        for begin, put in self._data.items():
            name = log_file_name(begin)
            # A file that is read elsewhere, as its messages say, may have this name.
            name += OF_MOVED * (os.path.join(folder, name) in taken)
            missing = LogFile(begin, os.path.join(folder, name), 0)
            one, needed = files.get(begin, missing), max((part.end for part in put), default=begin)
            files[begin] = one._replace(size_bytes=max(one.size_bytes, needed - begin))
        known = {one.start for one in log.log_files}
        in_order = tuple(
            one for start, one in sorted(files.items()) if one.size_bytes or start in known
        )
        return CommitLog(log.store_path, log.mapped_file_size, in_order, self._files)

    def open(self, path: str) -> ReadOnlyFile:
        """Open a file of `log`, as if each message lay at its own offset. Raises: OSError."""
        one = next((each for each in self.log.log_files if each.path == path), None)
        if one is None:
            return self._files.open(path)
        fixes = self._fixes.get(one.start, [])
        if not (self._data.get(one.start) or self._blanks.get(one.start) or fixes):
            return self._files.open(path)
        is_there = any(each.path == path for each in self._log.log_files)
        base = self._files.open(path) if is_there else None
        data, blanks = self._data.get(one.start, []), self._blanks.get(one.start, [])
        return _FileInOrder(one, base, data, blanks, fixes, self._source)

    def _source(self, place: int, size: int) -> bytes:
        """Return bytes of the log as they lie on disk. Raises: OSError."""
        found = self._log.file_of(place)
        assert found is not None
        with closing(self._files.open(found.path)) as file:
            return file.pread(size, place - found.start)


class _FileInOrder:
    """A file of a log with moved messages at their own offsets, and zeros where they lie."""

    def __init__(
        self,
        log_file: LogFile,
        base: ReadOnlyFile | None,
        data: Sequence[Stretch],
        blanks: Sequence[Stretch],
        fixes: Sequence[Stretch],
        source: Callable[[int, int], bytes],
    ) -> None:
        self.path = log_file.path
        self._log_file = log_file
        self._base = base
        self._source = source
        self._data = [(one.offset, one.end, one.lies_at) for one in data]
        self._blanks = [(one.lies_at, one.lies_at + one.size_bytes) for one in blanks]
        self._fixes = [one.lies_at for one in fixes]

    def size(self) -> int:
        """Return the length in bytes, with what was put behind the end."""
        own = 0 if self._base is None else self._base.size()
        return max(own, self._log_file.size_bytes)

    def pread(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`; fewer only where the file ends."""
        at = self._log_file.start + position
        end = self._log_file.start + min(position + size, self.size())
        parts: list[bytes] = []
        begin = at
        while at < end:
            parts.append(self._part(at, end))
            at += len(parts[-1])
        data = b"".join(parts)
        for place in self._fixes:
            first = place + OFFSET_POSITION - begin
            right = place.to_bytes(OFFSET_BYTES, "big")[max(0, -first) :]
            first = max(0, first)
            if right and first < len(data):
                right = right[: len(data) - first]
                data = data[:first] + right + data[first + len(right) :]
        return data

    def _part(self, at: int, end: int) -> bytes:
        """Return the first bytes of [at, end), at least one."""
        place = bisect_right(self._data, at, key=lambda one: one[0]) - 1
        if place >= 0 and at < self._data[place][1]:
            begin, behind, lies_at = self._data[place]
            count = min(end, behind) - at
            return self._source(lies_at + at - begin, count).ljust(count, b"\0")
        if place + 1 < len(self._data):
            end = min(end, self._data[place + 1][0])
        place = bisect_right(self._blanks, at, key=lambda one: one[0]) - 1
        if place >= 0 and at < self._blanks[place][1]:
            return bytes(min(end, self._blanks[place][1]) - at)
        if place + 1 < len(self._blanks):
            end = min(end, self._blanks[place + 1][0])
        if self._base is None:
            return bytes(end - at)
        return self._base.pread(end - at, at - self._log_file.start).ljust(end - at, b"\0")

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the bytes read, fewer only where the file ends."""
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the range itself: what was put into it is not asked for."""
        if start < end:
            yield start, end

    def close(self) -> None:
        """Close the file."""
        if self._base is not None:
            self._base.close()
