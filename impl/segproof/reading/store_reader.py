# SPDX-License-Identifier: Apache-2.0
"""Look keys and offsets up in a store of RocketMQ, read-only, step by step.

Index files are read by `pread` and never mapped or grown; each question reads a header, a slot and
the entries of one chain. Where the commit log is at hand each entry's message is read, and what has
another topic or key is left out, as clients do with a broker's answer; without it, or where the raw
answer is wanted, keys of equal hash are one key.

Beside a writer a question that meets something unsound in files that were changed a moment ago is
asked anew.

Upstream: RocketMQ 5.5.1: IndexService.queryOffset, IndexFile.selectPhyOffset, MQAdminImpl.
Laws: RMQIDX-16, RMQIDX-31 to RMQIDX-36, RMQIDX-40, RMQSVC-17, RMQSVC-19, RMQLOG-3, RMQDISK-33.
Not covered: the broker's limits of 32 and 64 answers, unless they are asked for.
"""

import os
import posixpath
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from segproof.commands import quoted, quoted_path
from segproof.counts import plural
from segproof.errors import CorruptIndexError, SegproofError
from segproof.files import REAL_FILES, File, Files, first_byte_of
from segproof.kernels.rocketmq_index import HEADER_BYTES
from segproof.processes import Meter, Progress
from segproof.reading.key_scan import scan_for_keys
from segproof.reading.live_writer import changed_recently, until_steady
from segproof.reading.lookup_answers import LookupStep, Steps
from segproof.reading.record_keys import keys_of, tag_key_of
from segproof.reading.store_layouts import check_whole
from segproof.reading.store_paths import Place, PlaceKind, place_of
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.geometry import GeometryAnswer, find_geometries, find_geometry
from segproof.rocketmq.index_header import StoredHeader
from segproof.rocketmq.index_table import (
    ENTRY,
    ENTRY_BYTES,
    SLOT_BYTES,
    Geometry,
    read_stored_header,
)
from segproof.rocketmq.key_hash import index_key_hash
from segproof.rocketmq.message import CRC_MASK, Message, dispatch_request_of

INT64_MAX = (1 << 63) - 1
INT64 = 1 << 64
NOT_FOUND = "no message has this key in this time"
NO_INDEX = "there is no index file"
ASKED_KINDS = (PlaceKind.STORE, PlaceKind.INDEX_FOLDER, PlaceKind.INDEX_FILE)
SHOWN_OFFSETS = 3
_INT32 = Struct(">i")


def index_file_paths(folder: str, files: Files) -> list[str]:
    """Return the index files in a folder, oldest first: RocketMQ loads each whose name is a number.

    Raises: OSError.
    """
    names = files.list_directory(folder)
    return [os.path.join(folder, name) for name in names if name.isascii() and name.isdigit()]


def index_files_of(place: Place, files: Files) -> list[str]:
    """Return the index files of a store, a folder of them, or one of them; else nothing.

    A folder `index` that can't be listed is itself among them: reading it tells why. Raises:
    OSError for `place` itself.
    """
    if place.kind is PlaceKind.INDEX_FOLDER:
        return index_file_paths(place.path, files)
    if place.kind is not PlaceKind.STORE:
        return [place.path] if place.kind is PlaceKind.INDEX_FILE else []
    if "index" not in files.list_directory(place.path):
        return []
    folder = posixpath.join(place.path, "index")
    try:
        return index_file_paths(folder, files)
    except OSError:
        return [folder]


def geometry_of(
    path: str, hash_slots: int | None, files: Files, option: str = "--hash-slots"
) -> Geometry | None:
    """Return the geometry of an index file that is read by itself, or None where it is not told.

    Raises: OSError; CorruptIndexError where the number of slots that was given does not fit, or
    where several fit.
    """
    answer = find_geometry(path, hash_slot_num=hash_slots, files=files)
    if hash_slots is not None and answer.geometry is None:
        raise CorruptIndexError(
            f"its length does not fit {hash_slots} slots", law="RMQDISK-1", path=path
        )
    if answer.origin == "ambiguous":
        raise slots_ambiguous(path, answer, option)
    return answer.geometry


def slots_ambiguous(path: str, answer: GeometryAnswer, option: str) -> CorruptIndexError:
    """Return the error for an index file that several numbers of slots fit."""
    slots = ", ".join(str(one.hash_slot_num) for one in answer.candidates)
    return CorruptIndexError(
        f"{len(answer.candidates)} numbers of slots fit the file ({slots}): which of them it has"
        " can't be told, and with a wrong one keys are not found",
        law="RMQDISK-2",
        path=path,
        hint=f"say how many it has (maxHashSlotNum of the broker) with {option}",
    )


def slots_untold(path: str, option: str) -> CorruptIndexError:
    """Return the error for an index file that does not tell its slots; `option` tells them."""
    return CorruptIndexError(
        "no number of slots fits the file: its entries can't be found",
        law="RMQDISK-2",
        path=path,
        hint=f"say how many it has (maxHashSlotNum of the broker) with {option}",
    )


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """Where the messages of a key lie; an empty answer has a reason."""

    target: str
    """Topic, `#` and key."""
    phy_offsets: tuple[int, ...] = ()
    """Newest first."""
    reason: str | None = None
    """Why there is none, why some may be missing, or that some are damaged."""
    unreadable: tuple[int, ...] = ()
    """Offsets that entries of the key's hash lead to, where the log has no message to read."""
    damaged: tuple[int, ...] = ()
    """Those of `phy_offsets` whose message has a body with a wrong checksum."""
    steps: tuple[LookupStep, ...] = field(default=(), compare=False)
    misleading: tuple[int, ...] = ()
    """Offsets that entries of the key's hash lead to, whose message has no key of this hash."""
    damaged_bytes: int = 0
    """Where the whole log was read: bytes in which messages may be lost."""


class _Hit(NamedTuple):
    """One entry of a chain."""

    number: int
    """Its index."""
    key_hash: int
    phy_offset: int
    time: int
    """Milliseconds, as far as the index has them."""
    prev_index: int


@dataclass(slots=True)
class _Question:
    target: str
    begin: int
    end: int
    max_num: int
    is_raw: bool
    found: list[int] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    misleading: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)


class StoreReader:
    """The index files of a store, of a folder, or one file; and the commit log, if there is one.

    Raises: OSError if `path` can't be listed; SegproofError if it holds no index file or log.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        hash_slot_num: int | None = None,
        files: Files = REAL_FILES,
    ) -> None:
        self.path = os.fspath(path)
        self._files = files
        self._slots = hash_slot_num
        self._geometries: dict[str, GeometryAnswer] = {}
        self._steps = Steps()
        place = place_of(self.path, files)
        if place is None or place.kind not in ASKED_KINDS:
            raise SegproofError(
                "neither a store of RocketMQ nor index files of one",
                path=self.path,
                hint="name the directory that holds commitlog and index",
            )
        self.log: CommitLog | None = None
        """The commit log, or None where there is none."""
        if place.kind is PlaceKind.STORE:
            check_whole(self.path, files)
            log = CommitLog.open(self.path, files=files)
            self.log = log if log.log_files else None
        self._kind = place.kind

    def __repr__(self) -> str:
        log = "no commit log" if self.log is None else f"{len(self.log.log_files)} log files"
        return f"StoreReader({self.path!r}, {log}, read-only)"

    @property
    def steps(self) -> tuple[LookupStep, ...]:
        """The steps of the last question that was asked with `explain`, up to where it failed."""
        return self._steps.taken

    def index_paths(self) -> list[str]:
        """Return the index files, oldest first. Raises: OSError."""
        if self._kind is PlaceKind.INDEX_FILE:
            return [self.path]
        folder = self.path
        if self._kind is PlaceKind.STORE:
            if "index" not in self._files.list_directory(self.path):
                return []
            folder = os.path.join(self.path, "index")
        return index_file_paths(folder, self._files)

    def look_message(self, phy_offset: int) -> Message | None:
        """Return the record at an offset of the log, or None.

        Raises: SegproofError without a commit log; as `CommitLog.look_message`.
        """
        if self.log is None:
            raise SegproofError("there is no commit log here", path=self.path)
        return self.log.look_message(phy_offset)

    def damage_at(self, phy_offset: int) -> str | None:
        """Return in words what is wrong with the message at an offset; None for a sound one.

        Nothing is known of an offset that no file of the log has, such as that of a message that
        has expired. Raises: OSError.
        """
        if self.log is None:
            return None
        if phy_offset >= self.log.max_offset:  # a broker may have begun a file since
            self.log = CommitLog.open(self.path, files=self._files)
        if self.log.file_of(phy_offset) is None:
            return None
        message = self.log.look_message(phy_offset)
        if message is None:
            return f"the commit log has no message at offset {phy_offset}"
        if _is_body_sound(message):
            return None
        return f"the checksum of the body is wrong at offset {phy_offset}: the message is damaged"

    def unread_rests(self) -> tuple[str, int]:
        """Return in words which files of the log are longer than the others, and how many bytes of
        them no lookup reads; "" and 0 if none is. Raises: OSError.
        """
        words, size_bytes = [], 0

        def has_bytes(path: str, first: int, end: int) -> bool:
            return first_byte_of(self._files, path, first, end) is not None

        for one in () if self.log is None else self.log.log_files:
            status = self._files.status(one.path)
            length = 0 if status is None else status.size_bytes
            if length > one.size_bytes and has_bytes(one.path, one.size_bytes, length):
                size_bytes += length - one.size_bytes
                words.append(
                    f"{os.path.basename(one.path)} has {length} bytes, and those from byte"
                    f" {one.size_bytes} on are not read: `segproof salvage` reads them"
                )
        return "; ".join(words), size_bytes

    # --- by key

    def lookup_key(
        self,
        target: str,
        begin: int = 0,
        end: int = INT64_MAX,
        max_num: int = 64,
        *,
        raw: bool = False,
        explain: bool = False,
    ) -> KeyAnswer:
        """Return where the messages of a key lie whose time is in begin..end, both inclusive.

        With `raw` every entry of the key's hash counts, as a broker's index answers, and no message
        is read. Else `damaged` are the offsets of messages whose checksum is wrong.
        Raises: CorruptIndexError where a chain is damaged or a file does not tell its slots;
        OSError.
        """

        def ask() -> KeyAnswer:
            self._steps = Steps(explain)
            return self._ask(_Question(target, begin, end, max_num, raw))

        def may_change() -> bool:
            with suppress(OSError):
                return changed_recently(self.index_paths(), self._files)
            return True

        return until_steady(ask, may_change)

    def scan_keys(
        self,
        targets: Iterable[str],
        begin: int = 0,
        end: int = INT64_MAX,
        max_num: int = 64,
        *,
        on_progress: Progress | None = None,
        explain: bool = False,
    ) -> dict[str, KeyAnswer]:
        """Return where the messages of keys lie, found in the commit log alone, in one pass.

        No index is asked. Damage is passed over; the reason of each answer then says so. Times are
        those of the messages, in milliseconds, both inclusive; a message is told once.
        Raises: SegproofError without a commit log; OSError.
        """
        if self.log is None:
            raise SegproofError("there is no commit log here", path=self.path)
        log = CommitLog.open(self.path, files=self._files)
        size = sum(one.size_bytes for one in log.log_files)
        scan = scan_for_keys(
            log, targets, begin, end, max_num, self._files, Meter(on_progress, size).add
        )
        gaps, answers = scan.gaps, {}
        unread, unread_bytes = self.unread_rests()
        self._steps = steps = Steps(explain)
        steps.note("log", log.store_path, messages=scan.messages, files=len(log.log_files))
        for target, offsets in scan.phy_offsets.items():
            reason = None if offsets else "no offset is asked for" if max_num < 1 else NOT_FOUND
            if gaps.places:
                words = (
                    f"the commit log holds no sound message in {plural(gaps.size_bytes, 'byte')} at"
                    f" {plural(gaps.places, 'place')}: more messages"
                    " may have been there; `segproof verify` tells where"
                )
                reason = words if reason is None else f"{reason}; {words}"
            if unread:
                reason = unread if reason is None else f"{reason}; {unread}"
            answers[target] = KeyAnswer(
                target, offsets, reason, steps=steps.taken,
                damaged_bytes=gaps.size_bytes + unread_bytes,
            )  # fmt: skip
        return answers

    def _ask(self, question: _Question) -> KeyAnswer:
        key_hash = index_key_hash(question.target)
        self._steps.note("hash", self.path, key=question.target, key_hash=key_hash)
        if self.log is None and not question.is_raw:
            self._steps.note("no-log", self.path)
        paths = self.index_paths()
        for number, path in reversed(list(enumerate(paths))):
            if not self._one_file(question, path, key_hash, number == 0):
                break
        unreadable, damaged = tuple(question.unreadable), tuple(question.damaged)
        reason = _reason(question, bool(paths))
        if reason in (NOT_FOUND, NO_INDEX) and self.log is not None:
            reason = f"{reason}{self._unindexed(question.target, paths)}"
        if damaged:
            shown = f"the checksum of the body is wrong at {_shown(damaged)}: damaged"
            reason = shown if reason is None else f"{shown}; {reason}"
        found = tuple(question.found)
        if question.misleading:
            hint = self._scan_command(question.target)
            told = (
                "entries of its hash lead to messages without a key of this hash, at"
                f" {_shown(question.misleading)}: index and commit log do not belong together, or"
                f" one of them is damaged; `{hint}` reads the commit log instead, and `segproof"
                " verify` tells what is wrong"
            )
            reason = told if reason in (None, NOT_FOUND) else f"{told}; {reason}"
        return KeyAnswer(
            question.target, found, reason, unreadable, damaged, self.steps,
            tuple(question.misleading),
        )  # fmt: skip

    def _scan_command(self, target: str) -> str:
        return f"segproof lookup {quoted_path(self.path)} --key {quoted(target)} --scan"

    def _unindexed(self, target: str, paths: list[str]) -> str:
        """Return in words where else to look, if messages of the log are in no index file."""
        hint = f"`{self._scan_command(target)}` reads the commit log instead"
        for path in reversed(paths):
            with closing(self._files.open(path)) as file:
                header = _sound_header(file)
            if header.index_count > 1:
                break
        else:
            return f"{'; its files have no entry' if paths else ''}: {hint}"
        log, end = self.log, header.end_phy_offset
        if log is None or not self._is_followed(log, end):
            return ""
        return f"; the index ends with offset {end}, and the log goes on behind it: {hint}"

    def _is_followed(self, log: CommitLog, phy_offset: int) -> bool:
        """Return whether a message begins behind that at an offset."""
        last, log_file = log.check(phy_offset), log.file_of(phy_offset)
        if last.message is None or log_file is None:
            return False
        following = log.check(phy_offset + last.size)
        if following.success and following.size == 0:  # the blank end of a file
            following = log.check(log_file.start + log.mapped_file_size)
        return following.message is not None

    def _geometry(self, path: str) -> Geometry:
        if path not in self._geometries:
            folder = os.path.dirname(path) or "."
            names = [os.path.basename(one) for one in self.index_paths()]
            found = find_geometries(folder, names, hash_slot_num=self._slots, files=self._files)
            for name, answer in found.items():
                self._geometries[os.path.join(os.path.dirname(path), name)] = answer
        answer = self._geometries.get(path, GeometryAnswer(None, "unknown"))
        if answer.origin == "ambiguous":
            raise slots_ambiguous(path, answer, "--hash-slots")
        if answer.geometry is None:
            raise slots_untold(path, "--hash-slots")
        return answer.geometry

    def _one_file(self, question: _Question, path: str, key_hash: int, is_first: bool) -> bool:
        """Look into one file; return whether an older one is to be asked."""
        with closing(self._files.open(path)) as file:
            header = _sound_header(file)
            if header.index_count <= 1:
                self._steps.note("file", path, entries=0, taken="no: it has no entry")
                return True
            begin, end = header.begin_timestamp, header.end_timestamp
            is_matched = _is_time_matched(header, question.begin, question.end)
            self._steps.note(
                "file", path, entries=header.index_count - 1, begin_timestamp=begin,
                end_timestamp=end, taken="yes" if is_matched else "no: its times do not match",
            )  # fmt: skip
            if is_matched:
                self._chain(question, path, file, header, key_hash)
        if len(question.found) >= question.max_num:
            self._steps.note("end", path, why=f"{question.max_num} are found")
            return False
        if begin < question.begin and not is_first:
            self._steps.note("end", path, why="the file begins before the time asked for")
            return False
        return True

    def _chain(
        self, question: _Question, path: str, file: File, header: StoredHeader, key_hash: int
    ) -> None:
        geometry = self._geometry(path)
        slot = key_hash % geometry.hash_slot_num
        position = HEADER_BYTES + SLOT_BYTES * slot
        data = file.pread(SLOT_BYTES, position)
        head = _INT32.unpack(data)[0] if len(data) == SLOT_BYTES else 0
        self._steps.note("slot", path, slot=slot, slots=geometry.hash_slot_num, entry=head)
        if head == 0 or len(question.found) >= question.max_num:
            return
        for hit in _walk(path, file, header, geometry, head, position):
            why = self._why_not(question, hit, key_hash)
            self._steps.note(
                "entry", path, index=hit.number, key_hash=hit.key_hash, phy_offset=hit.phy_offset,
                time=hit.time, prev_index=hit.prev_index, taken=why or "yes",
            )  # fmt: skip
            if why is None:
                question.found.append(hit.phy_offset)
                if len(question.found) >= question.max_num:
                    return
            if hit.time < question.begin and hit.prev_index:
                self._steps.note("end", path, why="the chain is older than the time asked for")
                return

    def _why_not(self, question: _Question, hit: _Hit, key_hash: int) -> str | None:
        """Return why an entry is left out, or None if it is taken."""
        if hit.key_hash != key_hash:
            return "no: another hash in the same slot"
        if not question.begin <= hit.time <= question.end:
            return "no: not in the time asked for"
        if question.is_raw or self.log is None:
            return None
        if hit.phy_offset < self.log.min_offset:
            return "no: its message has expired"
        if hit.phy_offset >= self.log.max_offset:  # a broker may have begun a file since
            self.log = CommitLog.open(self.path, files=self._files)
        message = self.log.look_message(hit.phy_offset)
        if message is None:
            if hit.phy_offset not in question.unreadable:
                question.unreadable.append(hit.phy_offset)
            return "no: there is no message at its offset"
        request = dispatch_request_of(message)
        keys = [*keys_of(request), tag_key_of(request)]
        if question.target in keys:
            if not _is_body_sound(message) and hit.phy_offset not in question.damaged:
                question.damaged.append(hit.phy_offset)
            return None
        has_hash = any(key is not None and index_key_hash(key) == key_hash for key in keys)
        if has_hash:
            return "no: another key of the same hash"
        if hit.phy_offset not in question.misleading:
            question.misleading.append(hit.phy_offset)
        return "no: not a key of its message"


def _is_body_sound(message: Message) -> bool:
    return not message.body or zlib.crc32(message.body) & CRC_MASK == message.body_crc


def _reason(question: _Question, has_files: bool) -> str | None:
    """Return why there is no answer, or why some of it may be missing."""
    if offsets := question.unreadable:
        return (
            "entries of its hash lead to offsets where the commit log has no message:"
            f" {_shown(offsets)};"
            " --raw shows them, `segproof verify` tells what is damaged"
        )
    if question.found:
        return None
    if question.max_num < 1:
        return "no offset is asked for"
    return NOT_FOUND if has_files else NO_INDEX


def _shown(offsets: Sequence[int]) -> str:
    """Return the first offsets in words."""
    shown = ", ".join(map(str, offsets[:SHOWN_OFFSETS]))
    more = len(offsets) - SHOWN_OFFSETS
    return f"{shown} and {more} more" if more > 0 else shown


def _sound_header(file: File) -> StoredHeader:
    """Return the header of a file. Raises: CorruptIndexError where there is none, or no count."""
    header = read_stored_header(file)
    if header is None:
        raise CorruptIndexError("it is shorter than a header", law="RMQDISK-1", path=file.path)
    if header.index_count < 0:
        raise CorruptIndexError(
            f"the index count is {header.index_count}", law="RMQDISK-4", path=file.path, position=36
        )
    return header


def _is_time_matched(header: StoredHeader, begin: int, end: int) -> bool:
    """Return whether a file may hold messages of a time (RMQIDX-16)."""
    first, last = header.begin_timestamp, header.end_timestamp
    return (begin < first and end > last) or first <= begin <= last or first <= end <= last


def _walk(
    path: str, file: File, header: StoredHeader, geometry: Geometry, head: int, position: int
) -> Iterator[_Hit]:
    """Yield the entries of a chain; each leads to an earlier one, so there are few enough.

    Raises: CorruptIndexError where one does not.
    """
    index, below = head, min(header.index_count, geometry.index_num)
    while index:
        if not 0 < index < below:
            raise _corrupt(
                path, position, f"it leads to entry {index}, and 1 to {below - 1} may be"
            )
        position = geometry.position_of(index)
        data = file.pread(ENTRY_BYTES, position)
        if len(data) < ENTRY_BYTES:
            raise _corrupt(path, position, "the file ends here")
        key_hash, phy_offset, difference, previous = ENTRY.unpack(data)
        if difference < 0:
            raise _corrupt(path, position, f"the time difference is {difference}")
        time = (header.begin_timestamp + 1000 * difference + INT64 // 2) % INT64 - INT64 // 2
        yield _Hit(index, key_hash, phy_offset, time, previous)
        index, below = previous, index


def _corrupt(path: str, position: int, words: str) -> CorruptIndexError:
    return CorruptIndexError(
        f"a chain is damaged: {words}",
        law="RMQIDX-40",
        path=path,
        position=position,
        hint="`segproof verify` tells what else is wrong; the index can be rebuilt from the log",
    )
