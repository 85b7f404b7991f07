# SPDX-License-Identifier: Apache-2.0
"""The records of a store's commit log, checked, in blocks that index and queues are compared with.

Each file is read once. Behind a damaged record the rest of its file is dark; a file that is missing
or can't be read is dark too. Entries and units that lead into the dark are not judged.

Laws: RMQDISK-23 to RMQDISK-27, RMQDISK-39, RMQDISK-40, RMQDISK-55.
"""

import posixpath
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from struct import Struct
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import Files, first_byte_of
from segproof.findings import Severity, time_text
from segproof.hints import reads, writes
from segproof.reading.commit_log_damage import Damage, DamagedLog, DamageMap
from segproof.reading.live_writer import STEP_PAUSES_SECONDS, wait_for_a_step
from segproof.reading.log_kinship import MetInFiles
from segproof.reading.queue_units import NOTHING_LOST, LostMessages
from segproof.reading.store_times import LEAST, MOST, Bounds, TimesAround, likely_times
from segproof.rocketmq.commit_log import CommitLog, LogFile, log_file_name
from segproof.rocketmq.message import (
    BLANK_MAGIC,
    CRC_MASK,
    MAGIC_V1,
    MAGIC_V2,
    CheckResult,
    DispatchRequest,
    Message,
    check_message_and_return_size,
    dispatch_request_of,
    lacks_body,
)
from segproof.stretches.rocketmq.candidates import is_filler
from segproof.verifying.rocketmq.commit_log_damage import Recovery, rest_words
from segproof.wording.reporting import Reporter
from segproof.wording.rules import COPY_LOG, declare

declare("index-service", Severity.ERROR,
    reads("look for the missing file where else the broker keeps files of its log (several paths in"
    " storePathCommitLog), in lost+found (verify of that folder tells which files of a log are in"
    " it) and on a replica"), "RMQDISK-23")  # fmt: skip
MISSING_FILE = writes(
    "look for the missing file in what RMQDISK-39 or DISK-1 names in commitlog, where else the"
    " broker keeps files of its log (storePathCommitLog), in lost+found and on a replica. If it is"
    " gone, `segproof salvage STORE --out DIR2` makes a store of the messages that are here"
)
declare("index-service", Severity.ERROR,
    COPY_LOG, "RMQDISK-24", "RMQDISK-25", "RMQDISK-26", "RMQDISK-27", "RMQDISK-55")  # fmt: skip
declare("index-service", Severity.ERROR,
    writes("save the messages with `segproof salvage STORE --out DIR2`, which gives this one its"
    " likely time; an index that has this time is right, and stays"), "RMQDISK-40")  # fmt: skip

LEFT_BEHIND = reads(
    "nothing, if these are left behind by a recovery after an abnormal stop, which ended the log"
    " here; else compare the commit log with that of a replica"
)
EMPTY_FILE = (
    "releases up to 4.9.8 end their start at it; 5.1.4 and later remove it if it is the last of its"
    " folder, and end their start otherwise"
)
"""What releases do at a file of 0 bytes. Seen with 4.9.8, 5.1.4, 5.3.3 and 5.5.1."""
NEW_FILE = writes(
    "nothing for 5.1.4 and later, which remove it: neither index nor queues lead into it, so that"
    " it was being made when the broker died. For an older release save the store with `segproof"
    " salvage STORE --out DIR2`, which leaves it out"
)
OF_ANOTHER_LENGTH = writes(
    "look for the whole file in lost+found or on a replica, or save what is sound with `segproof"
    " salvage STORE --out DIR2`, which gives each file its length"
)
EMPTY_LOG = reads(
    "look for the whole file in lost+found or on a replica, and keep index and queues until then:"
    " they tell what is missing. No file of this log has a byte, so there is nothing to save"
)
BLOCK_RECORDS = 4096
BLOCK_BYTES = 1 << 18
"""A block ends with the record that reaches it: one record can have many keys."""
PIECE_BYTES = 1 << 22
_START = Struct(">ii")
_INT32 = Struct(">i")


@dataclass(slots=True)
class LogBlock:
    """Some records that follow each other in one file of the log."""

    start: int
    """The offset of its first byte in the log."""
    end: int = 0
    """The offset behind it."""
    requests: list[DispatchRequest] = field(default_factory=list)
    """What the index is told of each record."""
    queue_ids: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    """Where each lies."""
    hosts: list[bytes] = field(default_factory=list)
    """The broker that stored each."""
    born: list[int] = field(default_factory=list)
    """When each was made, by the clock of its producer."""
    around: Bounds = field(default_factory=partial(Bounds.none, 0))
    """What is around the store time of each."""

    @property
    def times(self) -> NDArray[np.int64]:
        """The store time of each."""
        return np.array([one.store_timestamp for one in self.requests], np.int64)


class RecordsCheck(Protocol):
    """What is compared with the records of a log. Its methods may raise OSError."""

    def add(self, block: LogBlock) -> None:
        """Take the next block."""

    def finish(self) -> None:
        """Judge what only the end of the log shows."""


class LogRecords:
    """Reads all records once; iterate `blocks`, then `end` and `is_dark` are known."""

    def __init__(
        self,
        store: str,
        files: Files,
        reporter: Reporter,
        log: CommitLog,
        unread: Sequence[int] = (),
        recovery: Recovery | None = None,
        damaged: DamagedLog | None = None,
        lies_elsewhere: Callable[[int, int], str] = lambda start, end: "",
    ) -> None:
        self.lies_elsewhere = lies_elsewhere  # as `ListedLog.lies_elsewhere`
        self._recovery = recovery or Recovery(store, log, files)
        self.damaged = damaged or DamagedLog(log, files)
        """The whole log as a salvage places it."""
        self._are_damages_told = False
        """Whether what a damage costs was asked for."""
        self.met = MetInFiles([one.start for one in log.log_files])
        self.kept = 0
        """Messages so far, without those with which a salvage filled gaps."""
        self.fillers = 0
        """How many these are."""
        self.lost: LostMessages | None = NOTHING_LOST
        """Messages that damage cost, from the first on; None: unknown how many."""
        self._time = -1
        """The store time of the last of them."""
        self.newest = -1
        """The largest store time so far; -1 without a message."""
        self.is_time_doubted = False
        """Whether a store time is impossible (RMQDISK-40)."""
        self.misplaced = 0
        """Messages that say another offset than that at which they lie."""
        self.without_body = 0
        """Messages without a body that have the checksum of one: they are lost."""
        self.lacks_files = False
        """Whether a file is missing between two others, or lacks a part."""
        self._store = store
        self._files = files
        self._reporter = reporter
        self.log = log
        """Its files."""
        self.end = log.max_offset
        """Behind the last record; of the log as far as it was read."""
        self._dark = [(start, start + log.mapped_file_size) for start in unread]
        """Stretches of the log that could not be read: begin and end."""
        self.reached = -1
        """The last offset that queues or index know; set before the names are checked."""
        self.known_end = -1
        """The last offset that an index file knows of a message at."""
        self.sound_behind = 0
        """Sound messages behind the first damage at which a recovery cuts the log, without what an
        earlier one has cut off."""
        self._is_cut = False
        """Whether there is such damage."""
        self._read = 0
        self._last_written = -1
        self._is_ended = False
        """Whether the records ended in the file that was read last."""

    def take_read(self) -> int:
        """Return how many bytes were read since the last call."""
        read, self._read = self._read, 0
        return read

    def is_dark(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which offsets lie where the log could not be read."""
        if not self._dark:
            return np.zeros(len(offsets), np.bool_)
        begins, ends = np.array(sorted(self._dark), np.int64).T
        furthest = np.maximum.accumulate(ends)
        place = np.searchsorted(begins, offsets, "right") - 1
        dark: NDArray[np.bool_] = (place >= 0) & (offsets < furthest[place])
        return dark

    @property
    def is_read_whole(self) -> bool:
        """Whether no stretch of the log is missing, or could not be read."""
        return not self._dark

    @property
    def last_time(self) -> int:
        """The store time of the last message so far; -1 without any."""
        return self._time

    def darken(self, start: int, end: int) -> None:
        """Note a stretch of the log that is not there, and was reported."""
        self._dark.append((start, end))

    def first_now(self) -> int:
        """Return where the first of its files begins that a broker has not removed meanwhile."""
        there = (one.start for one in self.log.log_files if self._files.status(one.path))
        return next(there, self.log.max_offset)

    def file_of(self, offset: int) -> tuple[str, int]:
        """Return the path of the file that holds an offset, and the position in it."""
        found = self.log.file_of(offset)
        if found is None:
            return posixpath.join(self._store, "commitlog"), 0
        return found.path, offset - found.start

    def offset_of(self, path: str, position: int) -> int | None:
        """Return the offset at a position of a file; None for a file that the log does not have."""
        starts = (one.start for one in self.log.log_files if one.path == path)
        return next((start + position for start in starts), None)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(one.size_bytes for one in self.log.log_files)

    def check_names(self) -> None:
        """Judge names and lengths: each file begins where the one before ends."""
        log_files, size = self.log.log_files, self.log.mapped_file_size
        for number, one in enumerate(log_files):
            status = self._files.status(one.path)
            length = one.size_bytes if status is None else status.size_bytes
            if length != size:
                self._report_length(one, length, is_last=number == len(log_files) - 1)
            if number and one.start != log_files[number - 1].start + size:
                self._report_step(one, log_files[number - 1].start + size)

    def _report_step(self, one: LogFile, before: int) -> None:
        """Report a file that does not begin where the one before it ends, at `before`."""
        path, count = one.path, (one.start - before) // self.log.mapped_file_size
        words = f"it begins at offset {one.start}, and the file before ends at {before}"
        if one.start > before:
            self.lacks_files = True
            self._dark.append((before, one.start))
        if count > 0:
            path = posixpath.join(posixpath.dirname(one.path), log_file_name(before))
            files = "this file is" if count == 1 else f"{count} files from this one on are"
            words = (
                f"{files} missing: the next one begins at offset {one.start}, and the one before"
                f" ends at {before}{self.lies_elsewhere(before, one.start)}"
            )
        self._reporter.at(path, shown_by=self._store).add(
            "RMQDISK-23", words, expected=before, actual=one.start, hint=MISSING_FILE
        )

    def _report_length(self, one: LogFile, length: int, *, is_last: bool) -> None:
        """Report a file of another length than the others; what it lacks is dark."""
        size, behind = self.log.mapped_file_size, one.start + length
        is_size_known = any(each.size_bytes for each in self.log.log_files)
        words = f"it has {length} bytes"
        if is_size_known:
            words += f", and the files of this log have {size}"
        words += ": every release ends its start at such a file" if length else f": {EMPTY_FILE}"
        words += rest_words(one, size, length, self._files)
        is_new = is_last and not length and self.reached < one.start
        # With a position it is no loss (`is_loss`): the end of the log is there, and nothing leads
        # to what the file lacks.
        is_end_here = is_last and length < size and 0 <= self.reached < behind
        self._reporter.at(one.path).add(
            "RMQDISK-23", words, expected=size if is_size_known else None, actual=length,
            position=0 if is_end_here else None,
            severity=Severity.WARNING if is_new else None,
            hint=NEW_FILE if is_new else OF_ANOTHER_LENGTH if is_size_known else EMPTY_LOG,
        )  # fmt: skip
        self.lacks_files |= length < size and not is_new
        if length < size:
            self._dark.append((behind, one.start + size))

    def blocks(self) -> Iterator[LogBlock]:
        """Yield all records, checked."""
        times = TimesAround[LogBlock]()
        for block in self._blocks():
            for one, around in times.add(block, block.times):
                yield replace(one, around=around)
        for one, around in times.finish():
            yield replace(one, around=around)

    def _blocks(self) -> Iterator[LogBlock]:
        self._last_written = self._find_last_written()
        for one in self.log.log_files:
            try:
                yield from self._file(one)
                if self._is_ended:
                    return
            except OSError as error:
                self._reporter.at(one.path, shown_by=one.path).failed(error)
                self._dark.append((one.start, one.start + self.log.mapped_file_size))

    def _find_last_written(self) -> int:
        """Return where the last file begins that holds something; -1 if none does.

        A broker makes the next file, all zeros, before it needs it.
        """
        for one in reversed(self.log.log_files):
            try:
                if self._first_byte(one, 0) is not None:
                    return one.start
            except OSError:
                return one.start
        return -1

    def _is_last(self, one: LogFile) -> bool:
        """Return whether nothing was written behind a file when the reading began."""
        return one.start >= self._last_written

    def _file(self, one: LogFile) -> Iterator[LogBlock]:
        alone = CommitLog(self._store, self.log.mapped_file_size, (one,), self._files)
        position = one.start
        block = LogBlock(position)
        failed = False
        try:
            for offset, result in self._records(alone, one):
                message = result.message
                if not result.success or message is None:
                    failed = True
                    break
                self._check_offset(one, offset, message)
                block.requests.append(dispatch_request_of(message))
                block.queue_ids.append(message.queue_id)
                block.hosts.append(message.store_host)
                block.offsets.append(offset)
                block.born.append(message.born_timestamp)
                position = block.end = offset + result.size
                self._read += result.size
                is_in_gap = is_filler(message)
                self.fillers += is_in_gap
                self.kept += not (is_in_gap or self._lacks_body(one, offset, message))
                self._time = message.store_timestamp
                self.newest = max(self.newest, self._time)
                if len(block.offsets) >= BLOCK_RECORDS or position - block.start >= BLOCK_BYTES:
                    yield block
                    block = LogBlock(position)
        except SegproofError as error:  # a record that is too large to be looked into
            failed = True
            self._damaged(one, position, str(error), self._is_last(one))
        else:
            failed = failed or not self._is_lawful_end(one, position)
            if failed:
                self._explain(one, position, self._is_last(one))
        file_end = one.start + self.log.mapped_file_size
        self._is_ended = failed and self._is_last(one)
        if failed and (not self._is_ended or self._holds_more(one, position)):
            self._dark.append((position, file_end))
            self.end = file_end if self._is_ended else self.end
        elif self._is_ended:
            self.end = position
        block.end = position if failed else file_end
        yield block

    def _records(self, alone: CommitLog, one: LogFile) -> Iterator[tuple[int, CheckResult]]:
        """Yield the records of one file, and what ends them if that is no blank end.

        A broker may be writing the last record: what can't be read there is looked at again, and
        where it can be read then, this look ends before it.
        """
        for offset, result in alone.scan(one.start):
            if not result.success or result.message is None:
                if not (self._is_last(one) and self._is_being_written(alone, one, offset)):
                    yield offset, result
                return
            yield offset, result

    def _is_being_written(self, alone: CommitLog, one: LogFile, offset: int) -> bool:
        """Return whether a record appears where there was none, or part of one, a moment ago."""
        if not self._holds_more(one, offset):
            return False
        for pause in STEP_PAUSES_SECONDS:
            found = alone.check(offset)
            if found.success and (found.message or self._is_lawful_end(one, offset)):
                return True
            if not wait_for_a_step([one.path], self._files, pause):
                break
        return False

    def _is_lawful_end(self, one: LogFile, offset: int) -> bool:
        """Return whether a blank end takes the rest of the file, and hides no messages."""
        position = offset - one.start
        with closing(self._files.open(one.path)) as file:
            if position + int.from_bytes(file.pread(4, position), "big") != one.size_bytes:
                return False
        return not self.damaged.hides_messages(one, position)

    def _behind(self, one: LogFile) -> Damage:
        """Return what lies behind the damage of a file."""
        found = self.whole_map().at(one)
        if not self._are_damages_told:
            self._are_damages_told = True
            self.lost = self._recovery.lost_messages(found)
        return found

    def _is_tail(self, one: LogFile) -> bool:
        """Return whether nothing lies behind a damage but what an earlier recovery has cut off: so
        no queue and no index leads there, which a recovery cuts too.
        """
        damage = self._behind(one)
        lost = self._recovery.lost_messages(damage)
        return damage.is_tail and (lost is None or not lost.known)

    def whole_map(self) -> DamageMap:
        """Return the damage of all files, which are read once more for the first caller."""
        return self.damaged.damage

    def count_messages(self) -> int:
        """Return how many sound messages the log has, also behind damage, as a salvage keeps them.

        Ask after all blocks. Without damage no file is read again.
        """
        return self.damaged.in_order.kept_messages if self.damaged.is_placed else self.kept

    def count_beyond(self) -> int:
        """Return how many messages index and queues know after the last record."""
        return self._recovery.known_beyond(self.whole_map(), self.end)

    def count_lost(self, found: DamageMap) -> None:
        """Count what is lost in all files, as a salvage does, and not from the first damage on."""
        self.lost = self._recovery.lost_messages(found.whole())

    def _words(self, one: LogFile, *, is_blank: bool = False) -> str:
        """Return in words what lies behind the damage of a file."""
        damage = self._behind(one)
        is_passed = is_blank and one.start < self.log.log_files[-1].start
        if not is_passed and not self._is_cut:
            self._is_cut = True
            self.sound_behind = damage.sound.messages - damage.sound.older
        return self._recovery.words(damage, one, self.kept, is_passed=is_passed)

    def _holds_more(self, one: LogFile, offset: int) -> bool:
        """Return whether something else than zeros begins at an offset."""
        with closing(self._files.open(one.path)) as file:
            return bool(file.pread(8, offset - one.start).strip(b"\0"))

    def _check_offset(self, one: LogFile, offset: int, message: Message) -> None:
        if message.physical_offset != offset:
            self.misplaced += 1
            self._reporter.at(one.path, shown_by=one.path).add(
                "RMQDISK-25",
                f"the record says that it lies at offset {message.physical_offset} of the log, and"
                f" lies at {offset}",
                position=offset - one.start,
                expected=offset,
                actual=message.physical_offset,
            )

    def _lacks_body(self, one: LogFile, offset: int, message: Message) -> bool:
        """Return whether the body of a message is lost; report it."""
        if not lacks_body(message):
            return False
        self.without_body += 1
        self._reporter.at(one.path, shown_by=one.path).add(
            "RMQDISK-55",
            f"this message has no body, and the checksum {message.body_crc} of one. A broker gives"
            " consumers an empty body: the right one is lost, or other fields are damaged",
            position=offset - one.start,
            expected=0,
            actual=message.body_crc,
        )
        return True

    def likely_times(self, block: LogBlock, told: Bounds) -> NDArray[np.int64]:
        """Return the likely store time of each record, and report where it has another one.

        `told` are the bounds by the index.
        """
        times = block.times
        likely = likely_times(times, lambda rows: np.array(block.born)[rows], block.around, told)
        for row in np.flatnonzero(likely != times).tolist():
            self.is_time_doubted = True
            offset, time = block.offsets[row], int(times[row])
            path, position = self.file_of(offset)
            first, last = (int(bound[row]) for bound in block.around)
            span = f" from {time_text(first)}" * (first > LEAST)
            span += f" up to {time_text(last)}" * (last < MOST)
            around = f": messages around it have times{span}, and" if span else ":"
            self._reporter.at(path, shown_by=self._store).add(
                "RMQDISK-40",
                f"the message at offset {offset} has an impossible store time, {time_text(time)}"
                f"{around} {time_text(int(likely[row]))} is likely",
                position=position,
                expected=int(likely[row]),
                actual=time,
            )
        return likely

    def _explain(self, one: LogFile, offset: int, is_last: bool) -> None:
        """Say why no record can be read at an offset, if that is no lawful end."""
        position, is_blank = offset - one.start, False
        with closing(self._files.open(one.path)) as file:
            head = file.pread(min(8, max(0, one.size_bytes - position)), position)
            if not head.strip(b"\0"):
                self._zeros(one, position, is_last)
                return
            if is_last and self._is_being_written(self.log, one, offset):
                return  # it was zeros a moment ago
            words = "the file ends inside a record"
            if len(head) == 8:
                size, magic = _START.unpack(head)
                left = one.size_bytes - position
                is_blank = magic == BLANK_MAGIC
                if is_blank:
                    words = f"a blank end of {size} bytes, where {left} are left"
                    if size == left:
                        words = f"a blank end of {size} bytes, with sound messages behind it"
                elif magic not in (MAGIC_V1, MAGIC_V2):
                    words = f"no record begins here: the magic number is {magic}"
                elif size > left:
                    words = f"a record of {size} bytes, where {left} are left: it is cut"
                else:
                    data = file.pread(min(size, PIECE_BYTES) if size > 0 else 8, position)
                    if check_message_and_return_size(data, 0, False).success:
                        self._wrong_checksum(one, position, data)
                        return
                    words = f"the fields of a record of {size} bytes do not fit it"
        self._damaged(one, offset, words, is_last, is_blank=is_blank)

    def _damaged(
        self, one: LogFile, offset: int, words: str, is_last: bool, *, is_blank: bool = False
    ) -> None:
        rest = "reads nothing behind it" if is_last else "reads nothing more of this file"
        is_end = is_last and offset > self.known_end and self._is_tail(one)
        self._reporter.at(one.path).add(
            "RMQDISK-24",
            f"{words}; RocketMQ {rest}{self._words(one, is_blank=is_blank)}",
            position=offset - one.start,
            severity=Severity.WARNING if is_end else None,
            hint=LEFT_BEHIND if is_end else None,
        )

    def _wrong_checksum(self, one: LogFile, position: int, data: bytes) -> None:
        message = check_message_and_return_size(data, 0, False).message
        assert message is not None
        found = zlib.crc32(message.body) & CRC_MASK
        self._reporter.at(one.path).add(
            "RMQDISK-26",
            f"the body's checksum is {found}, the record says {message.body_crc}{self._words(one)}",
            position=position,
            expected=message.body_crc,
            actual=found,
        )

    def _zeros(self, one: LogFile, position: int, is_last: bool) -> None:
        """Judge a file whose records end in zeros: the last one may, if nothing follows."""
        if not is_last:
            self._reporter.at(one.path).add(
                "RMQDISK-27",
                "the records end here without a blank end, and a later file follows"
                f"{self._words(one)}",
                position=position,
            )
            return
        found = self._first_byte(one, position)
        if found is not None and not self._holds_more(one, one.start + position):
            behind = self._behind(one)
            is_cut = self._is_tail(one) and behind.sound.older > 0
            is_cut = is_cut and one.start + position > self.known_end
            self._reporter.at(one.path).add(
                "RMQDISK-27",
                f"zeros follow the last record, and other bytes from byte {found} on:"
                f" records that RocketMQ does not reach{self._words(one)}",
                position=position,
                actual=found,
                severity=Severity.WARNING if is_cut else None,
                hint=LEFT_BEHIND if is_cut else None,
            )

    def _first_byte(self, one: LogFile, position: int) -> int | None:
        """Return where the first byte that is not zero lies, from a position on; None: nowhere."""
        return first_byte_of(self._files, one.path, position, one.size_bytes)
