# SPDX-License-Identifier: Apache-2.0
"""Which sound messages of a commit log lie behind its damage, and where messages are lost.

Laws: RMQDISK-24, RMQDISK-26, RMQDISK-27.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from segproof.counts import plural, verb
from segproof.files import Files, ReadOnlyFile
from segproof.findings import time_text
from segproof.reading.foreign_messages import ForeignMessages, QueueNumbers, SetAside
from segproof.reading.moved_messages import MovedMessages, Stretch
from segproof.reading.store_pieces import Gap, GapKind, Gaps, StorePieces
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.message import BLANK_BYTES
from segproof.stretches.rocketmq.candidates import filler_rows
from segproof.stretches.rocketmq.message_blocks import MessageBlock

FILES_BEYOND = 1024
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
    times, places = block.rows[:, 3], block.lies_at
    return SoundMessages(
        len(times),
        int(block.rows[:, 1].sum()),
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
    """What one file of the log holds."""

    log_file: LogFile
    before: SoundMessages = NOTHING
    """The messages before its first gap."""
    damage: Damage = field(default_factory=Damage)
    """From its first gap on."""
    end: int = -1
    """The offset behind its last message, or its last gap."""


class DamageMap:
    """The files of a log from the first damaged one on, each read once more."""

    def __init__(
        self, log: CommitLog, log_files: Sequence[LogFile], reached: int, files: Files
    ) -> None:
        self._log = log
        self._files = files
        self._reached = reached
        """The store time of the last message so far; -1 without any."""
        self._found: list[_FileDamage] = []
        self._zeros: list[tuple[_FileDamage, Gap]] = []
        """Zeros at the end of the log so far: they are gaps if anything follows."""
        self._moved = self._sound_end = 0
        self.messages = 0
        """Sound messages in all files that were read, as a salvage keeps them."""
        self._open: Callable[[str], ReadOnlyFile] = files.open
        self.copied: list[Stretch] = []
        """Messages that are copies of others at their own offsets: they are gaps."""
        self.of_other = SetAside()
        """Messages of another store, which say another offset than theirs: they are gaps too."""
        self.of_other_here = SetAside()
        """Messages of another store that say the offset at which they lie."""
        self._in_order = log
        self._foreign: ForeignMessages | None = None
        self._numbers = QueueNumbers()
        later = tuple(log_files)
        with suppress(OSError):  # which the reader of the records reports
            moved = MovedMessages(log, files, is_cut=True)
            self._moved, self._open, self.copied = moved.moved, moved.open, moved.copied
            self._in_order = moved.log
            first = log_files[0].start
            if first == log.min_offset:  # messages of an earlier file may lie in this log
                first = moved.log.min_offset
            later = tuple(one for one in moved.log.log_files if one.start >= first)
            foreign = ForeignMessages(moved, files, moved.open)
            if foreign.are_possible:  # numbers of queues go on from the first file on
                self._foreign, later = foreign, moved.log.log_files
        for one in later:
            self._read(one)

    def at(self, one: LogFile) -> Damage:
        """Return what lies behind the first damage of one of the files."""
        place = next(at for at, each in enumerate(self._found) if each.log_file.start == one.start)
        told = Damage(moved=self._moved, sound_end=self._sound_end, tail=self._tail(place))
        told.sound_messages = self.sound_messages
        for number, each in enumerate(self._found[place:]):
            sound = each.damage.sound if number == 0 else each.before.joined(each.damage.sound)
            told.sound = told.sound.joined(sound._replace(files=int(sound.messages > 0)))
            told.gaps.join(each.damage.gaps)
            if told.unsearched_from is None:
                told.unsearched_from = each.damage.unsearched_from
        return told

    def _tail(self, place: int) -> list[Gap]:
        """Return where messages are lost if queues or index say so: zeros at the end of the log,
        what follows its last file, and the blank end of each file, which may be damage itself.
        """
        last, size = self._found[-1].log_file, self._log.mapped_file_size
        end = last.start + last.size_bytes
        found = [gap for _, gap in self._zeros]
        found.append(Gap(GapKind.MISSING, last.path, end, end + FILES_BEYOND * size))
        ended = {gap.path for gap in found[:-1]}
        for each in self._found[place:]:
            one = each.log_file
            begin, behind = max(each.end, one.start), one.start + one.size_bytes
            if one.path not in ended and begin < behind:
                found.append(Gap(GapKind.BROKEN, one.path, begin, behind))
        return sorted(found, key=lambda gap: gap.start)

    def _read(self, one: LogFile) -> None:
        found = _FileDamage(one)
        if self._found:
            before = self._found[-1].log_file
            end = before.start + before.size_bytes
            if end < one.start:
                self._gap(self._found[-1], Gap(GapKind.MISSING, before.path, end, one.start))
        self._found.append(found)
        size = self._log.mapped_file_size
        if one.size_bytes > size:  # a moved message shows that the file was cut
            size = one.size_bytes + BLANK_BYTES
        alone = CommitLog(self._log.store_path, size, (one,), self._files)
        reached = one.start
        try:
            for piece in StorePieces(alone, self._files, open_file=self._open):
                if isinstance(piece, Gap):
                    reached = piece.end
                    self._gap(found, piece)
                    continue
                reached = int(piece.lies_at[-1] + piece.rows[-1, 1])
                self._messages(found, piece)
        except OSError:  # the reader of the records reports it
            end = one.start + one.size_bytes
            self._gap(found, Gap(GapKind.UNSEARCHED, one.path, reached, end))

    def _messages(self, found: _FileDamage, block: MessageBlock) -> None:
        """Take sound messages; those of another store are a gap."""
        if self._foreign is None:
            self._sound(found, block)
            return
        for part, is_foreign in self._foreign.parts(block, self._numbers.goes_on):
            if not is_foreign:
                self._numbers.add(part)
                self._sound(found, part)
                continue
            start, end = int(part.lies_at[0]), int(part.lies_at[-1] + part.rows[-1, 1])
            is_here = bool(part.lies_at[0] == part.phy_offsets[0])
            (self.of_other_here if is_here else self.of_other).add(start, end, len(part.rows))
            self._gap(found, Gap(GapKind.BROKEN, found.log_file.path, start, end))

    @property
    def sound_end(self) -> int:
        """The offset after the last sound message."""
        return self._sound_end

    def sound_messages(self) -> Iterator[MessageBlock]:
        """Yield the sound messages of this log, read once more. Raises: OSError."""
        for piece in StorePieces(self._in_order, self._files, open_file=self._open):
            if not isinstance(piece, Gap):
                yield self.of_other.without(self.of_other_here.without(piece))

    def whole(self) -> Damage:
        """Return what is lost of all files that were read."""
        return self.at(self._found[0].log_file)

    def _gap(self, found: _FileDamage, gap: Gap) -> None:
        self._zeros.append((found, gap))
        if gap.path == found.log_file.path:
            found.end = max(found.end, gap.end)
        if gap.kind is not GapKind.ZEROS:
            self._flush()

    def _flush(self) -> None:
        for found, gap in self._zeros:
            found.damage.add(gap)
        self._zeros.clear()

    def _sound(self, found: _FileDamage, block: MessageBlock) -> None:
        self._flush()
        self.messages += len(block.rows) - len(filler_rows(block))
        self._sound_end = found.end = int(block.lies_at[-1] + block.rows[-1, 1])
        if found.damage.gaps.places:
            found.damage.sound = found.damage.sound.joined(_sound(block, self._reached))
            return
        self._reached = int(block.rows[-1, 3])
        found.before = found.before.joined(_sound(block, -1))
