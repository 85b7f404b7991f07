# SPDX-License-Identifier: Apache-2.0
"""Which sound messages of a commit log lie behind its damage, and where messages are lost.

A damaged log is placed as a whole, as a salvage places it: so both say the same of it.

Laws: RMQDISK-24, RMQDISK-26, RMQDISK-27.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from segproof.counts import plural, verb
from segproof.files import Files
from segproof.findings import time_text
from segproof.reading.log_gaps import Gap, GapKind, Gaps
from segproof.reading.log_in_order import Filler, LogInOrder, with_blank_room
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.stretches.rocketmq.desk import Fate
from segproof.stretches.rocketmq.framing import next_message
from segproof.stretches.rocketmq.message_blocks import MessageBlock

LOST_FILES_MAX = 1024
"""So many files beyond the last one of the log may be missing, by the queues."""


class SoundMessages(NamedTuple):
    """Some sound messages of a log."""

    messages: int = 0
    size_bytes: int = 0
    first_offset: int = -1
    """-1 without any, as the times."""
    last_offset: int = -1
    min_timestamp: int = -1
    """The earliest store time in milliseconds."""
    max_timestamp: int = -1
    older: int = 0
    """How many are older than the last message before the damage."""
    files: int = 0

    def joined(self, other: "SoundMessages") -> "SoundMessages":
        """Return both, where `other` follows."""
        if not self.messages or not other.messages:
            return self if self.messages else other
        return SoundMessages(
            self.messages + other.messages,
            self.size_bytes + other.size_bytes,
            self.first_offset,
            other.last_offset,
            min(self.min_timestamp, other.min_timestamp),
            max(self.max_timestamp, other.max_timestamp),
            self.older + other.older,
            self.files + other.files,
        )


NOTHING = SoundMessages()


def _sound(block: MessageBlock, reached: int) -> SoundMessages:
    """Return the messages of a block; `reached` is the store time of the last one before."""
    times, places = block.store_timestamps, block.lies_at
    return SoundMessages(
        len(times),
        int(block.sizes.sum()),
        int(places[0]),
        int(places[-1]),
        int(times.min()),
        int(times.max()),
        int(np.count_nonzero(times < reached)),
    )


@dataclass(slots=True)
class Damage:
    """A log behind its damage at one place."""

    sound: SoundMessages = NOTHING
    """Behind the damage."""
    gaps: Gaps = field(default_factory=Gaps)
    """Where messages are lost."""
    moved: int = 0
    """Sound messages that lie elsewhere than at the offset that they say, where they are counted;
    in this and all later files."""
    sound_end: int = 0
    """The offset behind the last sound message of the log."""
    tail: list[Gap] = field(default_factory=list)
    """What follows it, without other bytes than zeros: messages are lost there if queues say so."""
    sound_messages: Callable[[], Iterable[MessageBlock]] = tuple
    """Yields the sound messages of the whole log."""
    is_known: bool = False
    """Whether units of queues or entries of the index lead to some of these."""
    unsearched_from: int | None = None
    """The offset from which a file was not searched; None if all were."""

    def add(self, gap: Gap) -> None:
        """Take a gap."""
        if gap.kind is GapKind.UNSEARCHED and self.unsearched_from is None:
            self.unsearched_from = gap.start
        self.gaps.add(gap)

    def words(self) -> list[str]:
        """Return in words what lies behind; nothing for a tail without a sound message."""
        sound, told = self.sound, []
        if sound.messages:
            times = f"{time_text(sound.min_timestamp)} to {time_text(sound.max_timestamp)}"
            told.append(
                f"{plural(sound.messages, 'sound message')} of {sound.size_bytes} bytes"
                f" {verb(sound.messages, 'lies', 'lie')} behind it in"
                f" {plural(sound.files, 'file')}, from offset {sound.first_offset} to"
                f" {sound.last_offset}, stored {times}"
            )
        if self.moved:
            told.append(
                f"{plural(self.moved, 'sound message')} {verb(self.moved, 'lies', 'lie')} elsewhere"
                " than at the offset that they say: brokers do not find them, `segproof salvage`"
                " puts them there"
            )
        if sound.older:
            told.append(
                f"{sound.older} of them {verb(sound.older, 'is', 'are')} older than the last"
                " message before the damage, as what an earlier recovery has cut off"
            )
        if self.unsearched_from is not None:
            told.append(
                "whether more sound messages follow is not known: the search ended at offset"
                f" {self.unsearched_from}"
            )
        return told

    @property
    def is_tail(self) -> bool:
        """Whether nothing lies behind but what an earlier recovery has cut off, for certain."""
        return self.sound.messages == self.sound.older and self.unsearched_from is None


@dataclass(slots=True)
class _FileDamage:
    """What one file of the log holds, or the place of one that is missing."""

    log_file: LogFile
    before: SoundMessages = NOTHING
    """The messages before its first gap."""
    damage: Damage = field(default_factory=Damage)
    """From its first gap on."""
    end: int = -1
    """The offset behind its last message, or its last gap."""


class DamagedLog:
    """A commit log that is placed when that is first asked for, and not before.

    Cost: as `LogInOrder`; `damage` reads once more what is kept from the first file with a gap on.
    Raises: OSError.
    """

    def __init__(self, log: CommitLog, files: Files) -> None:
        self._log = log
        self._files = files

    @property
    def is_placed(self) -> bool:
        """Whether it was asked for."""
        return "in_order" in vars(self)

    @cached_property
    def in_order(self) -> LogInOrder:
        """The log as it was placed; without the files that can't be opened."""
        log, files = self._log, self._files
        there = tuple(one for one in log.log_files if self._is_open(one))
        log = CommitLog(log.store_path, log.mapped_file_size, there, files)
        return LogInOrder(with_blank_room(log, files), files, open_file=files.open)

    def _is_open(self, one: LogFile) -> bool:
        with suppress(OSError), closing(self._files.open(one.path)):
            return True
        return False

    @cached_property
    def damage(self) -> "DamageMap":
        """What its damage costs."""
        return DamageMap(self.in_order)

    def hides_messages(self, one: LogFile, position: int) -> bool:
        """Return whether sound messages of the log lie after a blank end at a position of a file,
        or may: where these bytes are not searched to their end."""
        with closing(self._files.open(one.path)) as file:
            found, searched_to = next_message(file, one, self._log, self._files, position)
        if found is None:
            return searched_to < one.size_bytes
        return self.in_order.is_kept_after_blank(one.path)


class DamageMap:
    """What lies where in a log that was placed: sound messages and gaps, by file."""

    def __init__(self, in_order: LogInOrder) -> None:
        self.in_order = in_order
        self._found = [_FileDamage(one) for one in in_order.log.log_files]
        self._starts = [one.log_file.start for one in self._found]
        self._zeros: list[tuple[_FileDamage, Gap]] = []
        """Zeros at the end of the log so far: they are gaps if anything follows."""
        self.sound_end = in_order.end
        """The offset after the last sound message."""
        for start, end in in_order.kept_ranges():
            self._file_at(start).end = end
        gaps = in_order.placement.gaps
        first = self._file_at(gaps[0].start).log_file.start if gaps else in_order.end
        self._reached = in_order.time_before(first)
        """The store time of the last message so far; -1 without any."""
        for piece in in_order.pieces(first):
            if isinstance(piece, Gap):
                self._gap(self._file_at(piece.start), piece)
            elif isinstance(piece, Filler):
                self._flush()
                found = self._file_at(piece.start)
                found.end = max(found.end, piece.end)
            else:
                self._sound(self._file_at(int(piece.lies_at[0])), piece)

    def _file_at(self, offset: int) -> _FileDamage:
        """Return the file with an offset; where it is missing, the place of it."""
        place = bisect_right(self._starts, offset) - 1
        log, size = self.in_order.log, self.in_order.log.mapped_file_size
        if place < 0 or offset >= self._starts[place] + size:
            start = offset - (offset - self._starts[0]) % size if self._starts else offset
            place += 1
            path = self._found[max(0, place - 1)].log_file.path if self._found else log.store_path
            self._starts.insert(place, start)
            self._found.insert(place, _FileDamage(LogFile(start, path, 0)))
        return self._found[place]

    def at(self, one: LogFile) -> Damage:
        """Return what lies behind the first damage of one of the files."""
        place = max(0, bisect_right(self._starts, one.start) - 1)
        moved = self.in_order.count(Fate.MOVED)
        told = Damage(moved=moved, sound_end=self.sound_end, tail=self._tail(place))
        told.sound_messages = self.in_order.sound_messages
        told.is_known = self.in_order.units_met()[0] > 0
        for number, each in enumerate(self._found[place:]):
            sound = each.damage.sound if number == 0 else each.before.joined(each.damage.sound)
            told.sound = told.sound.joined(sound._replace(files=int(sound.messages > 0)))
            told.gaps.join(each.damage.gaps)
            if told.unsearched_from is None:
                told.unsearched_from = each.damage.unsearched_from
        return told

    def in_file(self, one: LogFile) -> Damage:
        """Return what lies behind the first damage of a file, in this file alone."""
        found = self._file_at(one.start).damage
        return replace(found, sound=found.sound._replace(files=1))

    def _tail(self, place: int) -> list[Gap]:
        """Return where messages are lost if queues or index say so: zeros at the end of the log,
        what follows its last file, and the blank end of each file, which may be damage itself.
        """
        if not self._found:
            return []
        last, size = self._found[-1].log_file, self.in_order.log.mapped_file_size
        end = last.start + last.size_bytes
        found = [gap for _, gap in self._zeros]
        found.append(Gap(GapKind.MISSING, last.path, end, end + LOST_FILES_MAX * size))
        ended = {gap.path for gap in found[:-1]}
        for each in self._found[place:]:
            one = each.log_file
            begin, behind = max(each.end, one.start), one.start + one.size_bytes
            if one.path not in ended and begin < behind:
                found.append(Gap(GapKind.BROKEN, one.path, begin, behind))
        return sorted(found, key=lambda gap: gap.start)

    def whole(self) -> Damage:
        """Return what is lost of the whole log."""
        return self.at(self._found[0].log_file) if self._found else Damage()

    def _gap(self, found: _FileDamage, gap: Gap) -> None:
        self._zeros.append((found, gap))
        found.end = max(found.end, gap.end)
        if gap.kind is not GapKind.ZEROS:
            self._flush()

    def _flush(self) -> None:
        for found, gap in self._zeros:
            found.damage.add(gap)
        self._zeros.clear()

    def _sound(self, found: _FileDamage, block: MessageBlock) -> None:
        self._flush()
        if found.damage.gaps.places:
            found.damage.sound = found.damage.sound.joined(_sound(block, self._reached))
            return
        self._reached = int(block.store_timestamps[-1])
        found.before = found.before.joined(_sound(block, -1))
