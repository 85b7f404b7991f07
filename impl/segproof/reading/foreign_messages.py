# SPDX-License-Identifier: Apache-2.0
"""Messages in a commit log that are of another store: its file was copied over one of this log.

Such a message is sound, and a broker would give it to consumers as one of this store. Two signs
show it. It says another offset than that at which it lies, and no queue and no index knows it
there, nor where it says. Or it lies at its own offset, in a file into which queues and index lead,
and almost nothing of what they lead to is there, while they agree with other files of the log.

A damaged offset of a message of this store is no such sign: it differs in few bits, or the message
goes on in its queue.

Laws: RMQDISK-25, RMQDISK-44.
Not covered: a store without queues and index whose foreign messages lie at their own offsets; a log
  in which most messages say another offset, which may be a log that was moved as a whole.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.files import Files, ReadOnlyFile
from segproof.reading.moved_messages import MovedMessages
from segproof.reading.queue_units import Int64Array, first_led_to, led_to
from segproof.reading.store_pieces import Gap, StorePieces
from segproof.reading.store_reach import MISSING_OFFSETS_MIN
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile
from segproof.rocketmq.message import Message
from segproof.stretches.rocketmq.candidates import OFFSET_POSITION, ROLLED_BACK
from segproof.stretches.rocketmq.message_blocks import LogReader, MessageBlock

FLIPPED_BITS_MAX = 2
"""The offset of one message that differs in at most this many bits is damaged. The offsets of all
messages of a file differ alike, perhaps in one bit."""
WRONG_MIN = 8
WRONG_TIMES = 3
"""A file is of another store if at least WRONG_MIN places to which queues and index lead contain
something else, and more than WRONG_TIMES as many as contain the right message; as for a log whose
index is of another one (RMQDISK-44). Without a right one, MISSING_OFFSETS_MIN are enough."""
IN_QUEUES = (0, 8)
"""Bits of a transaction in `sys_flag` of messages that are in a queue: none, or committed."""
OpenFile = Callable[[str], ReadOnlyFile]


class _Evidence(NamedTuple):
    """Of the places to which queues and index lead, how many have the message that they know."""

    right: int
    wrong: int
    """Those where something else lies, a part of a sound message at least: no damage."""

    @property
    def is_foreign(self) -> bool:
        """Whether queues and index prove that the messages come from another store."""
        if not self.right:
            return self.wrong >= MISSING_OFFSETS_MIN
        return self.wrong >= WRONG_MIN and self.wrong > WRONG_TIMES * self.right


def words_of_other_log(store_path: str, right: int, wrong: int) -> str:
    """Return what a salvage leaves out of a store whose queues and index are of another log.

    `right` and `wrong` count the first places in its files that they lead to.
    """
    return (
        f"{posixpath.join(store_path, COMMIT_LOG)}: this log is not that of index"
        " and queues: it is of another store, was emptied or begun again; of the first"
        f" {right + wrong} places in it that they lead to, {wrong} have no"
        " message of theirs. The messages of the former log are not in the new store, and no"
        " queue that only they had: look for the former log, and keep the old store"
    )


@dataclass(slots=True)
class ForeignRange:
    """Foreign messages that follow each other in a file."""

    start: int
    """Offset in the log of the first byte."""
    end: int
    """Offset after the last byte."""
    messages: int

    def words(self, path: str, position: int) -> str:
        """Return what they are, and where they lie in a file of the old log."""
        size = self.end - self.start
        return (
            f"{path}: {plural(self.messages, 'message')} of another store in {size} bytes from byte"
            f" {position} on: a file of its log was copied over this one, and queues, index and"
            " numbers of this store know none of them; look which store lacks them"
        )


class SetAside:
    """The foreign messages of a log, in order."""

    def __init__(self) -> None:
        self.ranges: list[ForeignRange] = []
        self.messages = 0

    def without(self, block: MessageBlock) -> MessageBlock:
        """Return the messages of a block that are none of them."""
        if not self.ranges:
            return block
        places, inside = block.lies_at, np.zeros(len(block.rows), np.bool_)
        for one in self.ranges:
            inside |= (places >= one.start) & (places < one.end)
        return block._replace(rows=block.rows[~inside])

    def add(self, start: int, end: int, messages: int) -> None:
        """Add the next ones, which follow each other."""
        self.messages += messages
        if self.ranges and self.ranges[-1].end == start:
            self.ranges[-1].end = end
            self.ranges[-1].messages += messages
        else:
            self.ranges.append(ForeignRange(start, end, messages))


class QueueNumbers:
    """The next number of each queue, by the messages of a log so far."""

    def __init__(self) -> None:
        self._following: dict[tuple[str, int], int] = {}

    def add(self, block: MessageBlock) -> None:
        """Add the messages of a block that are in a queue."""
        for row in range(len(block.rows)):
            one = block.message(row)
            if one.sys_flag & ROLLED_BACK in IN_QUEUES:
                self._following[one.topic, one.queue_id] = one.queue_offset + 1

    def goes_on(self, message: Message) -> bool:
        """Return whether a message has the next number of a queue that has a message."""
        is_in_queue = message.sys_flag & ROLLED_BACK in IN_QUEUES
        following = self._following.get((message.topic, message.queue_id))
        return is_in_queue and message.queue_offset == following


class ForeignMessages:
    """Tells which messages of a log are of another store.

    Cost: queues and index are read once, or three times if something is doubted; a doubted file
    once more. Memory: 16 bytes for each unit and entry that leads to doubted messages.
    Raises: OSError.
    """

    def __init__(self, moved: MovedMessages, files: Files, open_file: OpenFile) -> None:
        self._log = moved.log
        self._files = files
        self._open = open_file
        self._known: set[int] = set()
        """Where messages of foreign files lie that queues or index know there all the same."""
        self._own: list[tuple[int, int]] = []
        """Offsets of stretches of messages that say another offset and are known, the second
        exclusive."""
        left = [one for one in moved.left if one.messages]
        self._is_asked = 0 < sum(one.size_bytes for one in left) < moved.sound_bytes
        if self._is_asked:
            self._find_own([(one.lies_at, one.offset, one.size_bytes) for one in left])
        self.right = self.wrong = 0
        """Of the first offsets that queues and index lead to in each file, how many have a message
        that says so, and how many do not."""
        self._files_of_others = self._foreign_files()

    @property
    def are_possible(self) -> bool:
        """Whether there may be any."""
        return self._is_asked or bool(self._files_of_others)

    def parts(
        self, block: MessageBlock, goes_on: Callable[[Message], bool]
    ) -> Iterator[tuple[MessageBlock, bool]]:
        """Yield the messages of a block in parts, and whether each part is of another store.

        `goes_on` says whether a message has the next number of its queue, after the parts so far.
        """
        if not self.are_possible:
            yield block, False
            return
        first, is_foreign = 0, False
        for row in range(len(block.rows)):
            is_doubted = self._is_doubted(block, row)
            if first < row and (is_doubted or is_foreign):
                yield block._replace(rows=block.rows[first:row]), is_foreign
                first = row
            is_own_place = bool(block.lies_at[row] == block.phy_offsets[row])
            is_foreign = is_doubted and (is_own_place or not goes_on(block.message(row)))
        if first < len(block.rows):
            yield block._replace(rows=block.rows[first:]), is_foreign

    def _is_doubted(self, block: MessageBlock, row: int) -> bool:
        """Return whether no queue and no index knows a message that should not be here."""
        place = int(block.lies_at[row])
        if place == int(block.phy_offsets[row]):
            found = self._log.file_of(place)
            is_other = found is not None and found.start in self._files_of_others
            return is_other and place not in self._known
        return self._is_asked and not any(start <= place < end for start, end in self._own)

    def _find_own(self, left: Sequence[tuple[int, int, int]]) -> None:
        """Find the stretches that queues or index know, where they lie or where they say."""
        ranges = [(at, at + size) for at, _, size in left]
        ranges += [(offset, offset + size) for _, offset, size in left]
        known = self._telling(led_to(self._log.store_path, ranges, self._files))
        for at, offset, size in left:
            messages = self._messages_from(at, size)
            found = [
                _evidence(messages + np.array([shift, 0]), known) for shift in (0, offset - at)
            ]
            bits = ((at ^ offset) & (1 << 64) - 1).bit_count()
            is_damaged = len(messages) == 1 and bits <= FLIPPED_BITS_MAX
            if is_damaged or any(one.right > one.wrong for one in found):
                self._own.append((at, at + size))

    def _messages_from(self, at: int, size: int) -> Int64Array:
        """Return offset and size of each message in `size` bytes from an offset of the log on."""
        found = self._log.file_of(at)
        rows = [np.zeros((0, 2), np.int64)]
        if found is not None:
            with closing(self._open(found.path)) as file:
                reader = LogReader(self._log, self._files)
                for block in reader.blocks_of(file, found, at - found.start):
                    rows.append(np.stack([block.lies_at, block.rows[:, 1]], axis=1))
                    if int(block.lies_at[-1]) >= at + size:
                        break
        messages = np.concatenate(rows)
        inside: Int64Array = messages[messages[:, 0] < at + size]
        return inside

    def _foreign_files(self) -> set[int]:
        """Return the begins of the files that contain something else than queues and index say,
        if these agree with another file.
        """
        log_files = self._log.log_files
        samples = first_led_to(
            self._log.store_path, [one.start for one in log_files], self._log.mapped_file_size,
            self._files,
        )  # fmt: skip
        doubted, ours = [], 0
        for one, sample in zip(log_files, map(self._telling, samples), strict=True):
            right = self._right_of(one, sample)
            found = _Evidence(right, len(sample) - right)
            self.right += found.right
            self.wrong += found.wrong
            if found.is_foreign:
                doubted.append(one)
            elif found.right > found.wrong:
                ours += found.right
        if ours < MISSING_OFFSETS_MIN:
            return set()
        return {one.start for one in doubted if self._is_of_other(one)}

    def _telling(self, known: Int64Array) -> Int64Array:
        """Return what tells something: at the begin of a file there is a message in any store."""
        starts = np.array([one.start for one in self._log.log_files], np.int64)
        told: Int64Array = known[(known[:, 1] > 0) | ~np.isin(known[:, 0], starts)]
        return told

    def _right_of(self, one: LogFile, sample: Int64Array) -> int:
        """Return how many offsets of a file have a message that says it, of the known size."""
        right = 0
        with closing(self._open(one.path)) as file:
            for offset, size in sample.tolist():
                head = file.pread(OFFSET_POSITION + 8, offset - one.start)
                says = int.from_bytes(head[OFFSET_POSITION:], "big")
                right += says == offset and size in (0, int.from_bytes(head[:4], "big"))
        return right

    def _is_of_other(self, one: LogFile) -> bool:
        """Return whether all that leads into a file contradicts its sound messages."""
        inside = (one.start, one.start + one.size_bytes)
        known = self._telling(led_to(self._log.store_path, [inside], self._files))
        rows = [np.zeros((0, 2), np.int64)]
        alone = CommitLog(self._log.store_path, self._log.mapped_file_size, (one,), self._files)
        for piece in StorePieces(alone, self._files, open_file=self._open):
            if not isinstance(piece, Gap):
                rows.append(np.stack([piece.lies_at, piece.rows[:, 1]], axis=1))
        messages = np.concatenate(rows)
        if not _evidence(messages, known).is_foreign:
            return False
        self._known.update(known[_are_right(messages, known), 0].tolist())
        return True


def _evidence(messages: Int64Array, known: Int64Array) -> _Evidence:
    """Compare messages, by offset and size in order, with what queues and index know."""
    if not len(messages) or not len(known):
        return _Evidence(0, 0)
    place = np.searchsorted(messages[:, 0], known[:, 0], "right") - 1
    is_inside = (place >= 0) & (known[:, 0] < messages[place].sum(axis=1))
    are_right = _are_right(messages, known)
    return _Evidence(
        int(np.count_nonzero(are_right)), int(np.count_nonzero(is_inside & ~are_right))
    )


def _are_right(messages: Int64Array, known: Int64Array) -> NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(messages[:, 0], known[:, 0]), len(messages) - 1)
    found = messages[place]
    is_same = (known[:, 1] == 0) | (known[:, 1] == found[:, 1])
    are_right: NDArray[np.bool_] = (found[:, 0] == known[:, 0]) & is_same
    return are_right
