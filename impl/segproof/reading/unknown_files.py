# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log that nothing else in the store knows, and whether they are of this store.

Queues and index lead into each file of a log, but for the last ones where they lag behind it. The
messages of such a file tell by themselves: the numbers of a queue go on from file to file. In a
file of another broker they do not. It has queues that this log never had, which begin with a number
above 0, or numbers that this log has too.

A file of this store may contradict its log as well: an older copy of an earlier file, an old copy
of queues and index, a broker that came back with another address after files were lost. So both
readings are told, and a person decides. Where the first files have expired, a queue of the same
store host may have been in them.

Upstream: RocketMQ 4.7.0 to 5.5.1: CommitLog.doAppend, TopicQueueTable.
Laws: RMQDISK-56.
Not covered: a file of another store before the last file that queues or index lead to.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from segproof.counts import plural
from segproof.files import Files
from segproof.layouts.rocketmq import MESSAGE_BYTES_MIN
from segproof.reading.log_gaps import Gap
from segproof.reading.log_in_order import Filler
from segproof.reading.log_rows import begins
from segproof.reading.store_reach import MISSING_OFFSETS_MIN, ends_of
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import INNER_BATCH, has_queue_place
from segproof.stretches.rocketmq.message_blocks import MessageBlock

TOPICS_NAMED = 3
Pieces = Callable[[], Iterable[MessageBlock | Gap | Filler]]


class Numbered(NamedTuple):
    """What a message says of its queue."""

    topic: str
    queue_id: int
    number: int
    sys_flag: int
    host: bytes | None = None
    """Of the broker that stored it; None: not told."""


@dataclass(slots=True)
class UnknownFile:
    """A file that neither queues nor index lead into, and how its messages fit the log before."""

    log_file: LogFile
    fitting: int = 0
    """Messages of queues that go on in it."""
    wrong: int = 0
    """Messages of queues that contradict the log before it."""
    topics: tuple[str, ...] = ()
    """The topics of the messages that contradict."""

    @property
    def is_doubted(self) -> bool:
        """Whether more of its messages contradict the log than fit."""
        return self.wrong >= MISSING_OFFSETS_MIN and self.wrong > self.fitting

    def why(self) -> str:
        """Return what contradicts."""
        named = ", ".join(self.topics[:TOPICS_NAMED])
        return (
            f"the queue numbers of {plural(self.wrong, 'message')} of {named} do not go on where"
            f" the log before it ends, those of {self.fitting} do"
        )

    def words_of_salvage(self) -> str:
        """Return what a salvage says of a file that is kept in doubt."""
        return (
            f"{self.log_file.path}: kept, and it may be of another store: nothing but its name says"
            f" that it is of this one, and {self.why()}. If it is of this store, messages before it"
            " are lost; if it is of another one, move it out of a copy of the store, and save that"
        )


class NumbersGoOn:
    """Judges how the messages of later files fit into the queues of the earlier ones."""

    def __init__(self, min_offset: int) -> None:
        """`min_offset` is where the log begins."""
        self._has_expired = min_offset > 0
        self._following: dict[tuple[str, int], tuple[set[int], int]] = {}
        """The numbers that may follow the last one of each queue, by the files that fit; and how
        many bytes before it are without a message."""
        self._hosts: set[bytes | None] = {None}
        self._numbers: dict[tuple[str, int], list[int]] = {}
        """The queue numbers of the messages of the present file."""
        self._rooms: dict[tuple[str, int], int] = {}
        """For each queue, the number of bytes before its last message that no message has."""
        self._hosts_here: set[bytes | None] = set()
        self._room = 0
        """Bytes without a message so far."""
        self._bytes = 0
        """The size of the messages of the present file."""
        self._is_first = True

    def lose(self, size_bytes: int) -> None:
        """Note bytes without a message."""
        self._room += size_bytes

    def add(self, message: Numbered, size_bytes: int) -> None:
        """Take the next message of the present file."""
        self._bytes += size_bytes
        if has_queue_place(message.sys_flag) and not message.sys_flag & INNER_BATCH:
            key = (message.topic, message.queue_id)
            self._numbers.setdefault(key, []).append(message.number)
            self._rooms[key] = self._room
            self._hosts_here.add(message.host)

    def end(self, one: LogFile) -> UnknownFile:
        """Judge the present file, and go on with the next one."""
        found, skipped = UnknownFile(one), 0
        wrong: list[str] = []
        is_same_host = not self._hosts.isdisjoint(self._hosts_here)
        for key, numbers in self._numbers.items():
            # One wrong number tells nothing: the first is what most of them say.
            bases = Counter(number - rank for rank, number in enumerate(numbers))
            (first, _), *_ = bases.most_common(1)
            due, room = self._following.get(key, ({0}, 0))
            fits = self._is_first or (first in due and key in self._following)
            if not fits and first > min(due):
                skipped += first - max(number for number in due if number < first)
                fits = is_same_host and skipped * MESSAGE_BYTES_MIN <= self._room - room
            if not fits and self._has_expired and is_same_host and key not in self._following:
                continue  # it may have been in a file that has expired
            found.fitting += len(numbers) * fits
            if not fits and first:  # a queue that was deleted begins again
                found.wrong += len(numbers)
                wrong.append(key[0])
        found.topics = tuple(dict.fromkeys(wrong))
        if found.is_doubted:
            self._room += self._bytes
        else:
            self._following |= {
                key: (_following(each), self._rooms[key]) for key, each in self._numbers.items()
            }
            self._hosts |= self._hosts_here
        self._is_first &= not self._numbers
        self._numbers.clear()
        self._hosts_here.clear()
        self._bytes = 0
        return found


def _following(numbers: Sequence[int]) -> set[int]:
    """Return the numbers that may follow some: after the last one, and after the largest that is
    not alone: one alone may be wrong. A queue that was made again has begun with 0 between them."""
    known = {*numbers}
    largest = max((one for one in known if one - 1 in known), default=numbers[-1])
    return {largest + 1, numbers[-1] + 1}


def unknown_files(
    log: CommitLog, files: Files, pieces: Pieces, reached: int | None = None
) -> list[UnknownFile]:
    """Return the last files of a log that nothing leads into and that contradict it; without queues
    and index each file that contradicts those before it.

    `pieces` yields what is kept of the log, and what is lost, in order. `reached` is the furthest
    offset that queues or index lead to, -1 without any; None: it is looked up. Cost: a look at the
    first message of each such file. Where one has a message, `pieces` is asked. Raises: OSError.
    """
    if len(log.log_files) < 2:
        return []
    if reached is None:
        reached = ends_of(log.store_path, files)[1]
    asked = [one for one in log.log_files[1:] if one.start > reached]
    if not any(begins(one, files) for one in asked):
        return []
    found = [one for one in _judged(log, pieces()) if one.log_file in asked]
    return [one for one in found if one.is_doubted]


def _judged(log: CommitLog, pieces: Iterable[MessageBlock | Gap | Filler]) -> Iterator[UnknownFile]:
    numbers, current = NumbersGoOn(log.min_offset), log.log_files[0]
    for piece in pieces:
        if not isinstance(piece, MessageBlock):
            numbers.lose(piece.end - piece.start)
            continue
        found = log.file_of(int(piece.lies_at[0]))
        if found is not None and found.start > current.start:
            yield numbers.end(current)
            current = found
        are_here = (piece.phy_offsets == piece.lies_at).tolist()
        for row, size in enumerate(piece.sizes.tolist()):
            if not are_here[row]:
                numbers.lose(size)
                continue
            one = piece.message(row)
            numbers.add(
                Numbered(
                    one.topic, one.queue_id, one.queue_offset, one.sys_flag, bytes(one.store_host)
                ),
                size,
            )  # fmt: skip
    yield numbers.end(current)
