# SPDX-License-Identifier: Apache-2.0
"""One segment that is read by `pread` into private memory: its log and those indexes that exist.

The indexes are read as genuine entries (the zero tail of an untrimmed file is none) and only save
work: without an index file the log is scanned from its start, with the same answer.

In an index of a segment that is still written a truncation leaves old entries behind the last one
that counts; they are passed over.

Upstream: Kafka 4.3.1: LogSegment.translateOffset, findOffsetByTimestamp.
Laws: SEG-12, SEG-39.
Deviates: the largest timestamp of a segment is taken from index and log together, where upstream
  believes the last index entry or the modification time.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from segproof.closing import Closing, told_state
from segproof.errors import CorruptIndexError, CorruptRecordError, SegproofError, TooLargeError
from segproof.files import REAL_FILES, Files, holds_zeros
from segproof.hints import writes
from segproof.integers import INT64_MAX
from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import LogAsFound, LogOffsetPosition, TimestampAndOffset
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import TransactionIndex
from segproof.reading.file_names import name_in_segment
from segproof.reading.offset_entries import entries_in
from segproof.reading.partition_search import SegmentSearch
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.in_place import LogFates, place_log

Index = TypeVar("Index", OffsetIndex, TimeIndex)
Entry = TypeVar("Entry", OffsetPosition, TimestampOffset)
_Searched = tuple[Entry, int | None, int]
"""The entry found, its slot, and how many entries behind it were passed over."""
DAMAGE_HINT = "`segproof verify` tells what is wrong"
LOST_END = (
    "`segproof verify` tells whether the log has lost its end; until then keep the index, which"
    " shows what was there"
)
INDEX_BYTES_MAX = 64 << 20
"""Kafka's default limit of an index is 10 MiB; a damaged file may have any length."""


def open_index(kind: type[Index], path: str, base_offset: int, files: Files) -> Index | None:
    """Return an offset or time index that is read into memory, or None without a file.

    Raises: OSError; CorruptIndexError above INDEX_BYTES_MAX.
    """
    status = files.status(path)
    if status is not None and status.size_bytes > INDEX_BYTES_MAX:
        raise CorruptIndexError(
            f"an index of {status.size_bytes} bytes is not read into memory",
            path=path,
            expected=f"at most {INDEX_BYTES_MAX} bytes",
            actual=status.size_bytes,
            hint=writes("make it new in another directory with `segproof rebuild`"),
        )
    with suppress(FileNotFoundError):
        return kind(path, base_offset, files=files)
    return None


def start_position(
    path: str, base_offset: int, first_offset: int | None, first_ms: int | None, files: Files
) -> int:
    """Return the byte of a log where reading begins: a batch no later than the first wanted one.

    The indexes beside the log tell it, with a sound batch there that begins no later than they say.
    It is 0 where they are missing, or wrong; and if neither an offset nor a time is asked.
    """
    directory, name = os.path.split(path)
    is_asked = first_offset is not None or first_ms is not None
    if is_asked and name == name_in_segment(base_offset, ".log"):
        with (
            suppress(OSError, SegproofError),
            SegmentReader(directory, base_offset, files=files, is_last=True) as reader,
        ):
            return reader.start_position(first_offset, first_ms)
    return 0


class _CountedLog(LogAsFound):
    """A log that counts the batches that are read from it, and keeps the last of them."""

    batches_read = 0
    last_read: RecordBatch | None = None

    def _batch_at(self, position: int, limit: int) -> RecordBatch | None:
        batch = super()._batch_at(position, limit)
        if batch is not None:
            self.batches_read += 1
            self.last_read = batch
        return batch


class SegmentReader(SegmentSearch, Closing):
    """One segment: its log, and those of its indexes that exist. A context manager.

    Raises: OSError if the log or an existing index can't be read; SegproofError for a file too
    large to be one.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        base_offset: int,
        *,
        files: Files = REAL_FILES,
        is_last: bool = False,
        stem: str = "",
    ) -> None:
        super().__init__(os.fspath(directory), base_offset, files, stem)
        self.is_last = is_last
        """Whether a broker may be writing it, so that its indexes may have leftover entries."""
        self._sound: dict[tuple[int, int], bool] = {}
        self._fates: LogFates | None = None
        self.log = _CountedLog.open(self.path(".log"), files=files)
        try:
            self.offset_index = open_index(OffsetIndex, self.path(".index"), base_offset, files)
            """The offset index, or None without a file."""
            self.time_index = open_index(TimeIndex, self.path(".timeindex"), base_offset, files)
            """The time index, or None without a file."""
            self.transaction_index = TransactionIndex(
                base_offset, self.path(".txnindex"), files=files
            )
            """The transaction index; empty without a file."""
        except BaseException:
            self.log.close()
            raise

    def __repr__(self) -> str:
        size = f"{self.log.size_in_bytes()} bytes"
        state = told_state(size, is_open=self.log.is_open, writable=False)
        return f"SegmentReader({self.log.name!r}, {state})"

    def close(self) -> None:
        """Close all files."""
        self.transaction_index.close()
        if self.log.is_open:
            self.log.close()

    # --- by offset

    def lookup_offset_index(self, target_offset: int) -> OffsetPosition:
        """Return the index entry for the target; base offset and 0 without one."""
        searched = self._search_offsets(target_offset)
        self._note_search(self.offset_index, ".index", target_offset, searched)
        return searched[0]

    def first_batch_reaching(self, offset: int, start: OffsetPosition) -> LogOffsetPosition | None:
        """Return the first batch from an index entry on whose last offset is not below `offset`.

        Raises: CorruptIndexError if the entry points elsewhere than at a batch; CorruptRecordError
        where the log can't be scanned. Laws: SEG-12.
        """
        log, position = self.log, start.position
        self._check_entry(start)
        read_before = log.batches_read
        with self._naming_the_log():
            found = log.search_for_offset_with_size(offset, position)
        batches = log.batches_read - read_before
        if found is not None and log.last_read is not None:
            batches -= log.last_read.position > found.position  # the search reads one ahead
        self._note_scan(position, batches, found)
        return found

    def batches_from(self, offset: int) -> Iterator[RecordBatch]:
        """Yield the batches from the index entry for an offset on."""
        yield from self.log.batches(self._search_offsets(offset)[0].position)

    def check_read_to_end(self, start: int) -> None:
        """Refuse a log that a scan from `start` does not read to its end. Law: DUMP-6.

        Of the last segment the last batch may be torn: no sound one follows it.
        """
        position, reached = start, self.base_offset - 1
        for batch in self.log.batches(start):
            position, reached = batch.position + batch.size_bytes, batch.last_offset
        file, end = self.log.file, self.log.size_in_bytes()
        if holds_zeros(file, position, end):
            return
        open_log = partial(self._files.open, self.path(".log"))
        placed = place_log(LogSource(reached + 1, None, open_log, start=position, end=end))
        if placed.log.unreadable_bytes:
            raise OSError(errno.EIO, "the disk does not return a part of it", self.log.name)
        if self.is_last and placed.is_broken_from(position):
            return
        sound = placed.rows[placed.is_sound & (placed.rows["first"] > reached)]
        follows = ""
        if len(sound):
            follows = f"; sound batches follow, from byte {int(sound['start'][0])} on"
        raise CorruptRecordError(
            f"the log can't be read from here to its end at byte {end}{follows}",
            law="DUMP-6",
            path=self.log.name,
            position=position,
            hint=DAMAGE_HINT,
        )

    def fates(self, following: int | None) -> LogFates:
        """Return what becomes of the log's batches. It is placed once, without any other log.

        `following` is the base offset of the next segment. Raises: as `place_log`.
        """
        if self._fates is None:
            base, end = self.base_offset, self.log.size_in_bytes()
            source = LogSource(
                base, following, partial(self._files.open, self.path(".log")),
                lambda: entries_in(self.path(".index"), base, self._files), end=end,
            )  # fmt: skip
            self._fates = place_log(source)
        return self._fates

    # --- by timestamp

    def lookup_time_index(self, target_timestamp: int) -> TimestampOffset:
        """Return the time index's entry for the target; (-1, base offset) without one."""
        searched = self._search_times(target_timestamp)
        self._note_search(self.time_index, ".timeindex", target_timestamp, searched)
        return searched[0]

    def first_record_at(
        self, timestamp: int, starting_offset: int, start: OffsetPosition
    ) -> TimestampAndOffset | None:
        """Return the first record from an index entry on at or after timestamp and offset, or None.

        Raises: as `first_batch_reaching`, and what reading records raises. Laws: SEG-39.
        """
        log, position = self.log, start.position
        self._check_entry(start)
        read_before = log.batches_read
        with self._naming_the_log(), self._naming_damage():
            found = log.search_for_timestamp(timestamp, position, starting_offset)
        if self.steps.wanted:
            holder, batch = None, log.last_read
            if found is not None and batch is not None:
                holder = LogOffsetPosition(batch.base_offset, batch.position, batch.size_bytes)
            self._note_scan(position, log.batches_read - read_before, holder)
        return found

    @contextmanager
    def _naming_the_log(self) -> Iterator[None]:
        """Let an error of one batch name the log."""
        try:
            yield
        except SegproofError as error:
            error.path = error.path or self.log.name
            error.hint = error.hint or DAMAGE_HINT
            raise

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Let the checksum explain why records of a batch can't be read, if it is wrong."""
        try:
            yield
        except SegproofError as error:
            batch = self.log.last_read
            if batch is None or isinstance(error, TooLargeError) or batch.is_valid():
                raise
            raise CorruptRecordError(
                f"the checksum of the batch at byte {batch.position} is wrong: its records are"
                f" damaged, and can't be read: {error.message}",
                law="BATCH-14",
                position=batch.position,
                hint="`segproof verify` tells what is lost",
            ) from error

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of the segment's batches; -1 without any.

        The last entry of the time index counts, and every batch from there on: of a segment that
        is still written, or was not closed, the last batches are not in the index.
        """
        last = TimestampOffset(-1, self.base_offset)
        if self.time_index is not None:
            last = self.time_index.last_entry
            if self._may_have_leftovers(self.time_index):
                last = self._search_times(INT64_MAX)[0]
        start = self._search_offsets(last.offset)[0]
        self._check_entry(start)
        self.check_read_to_end(start.position)
        return max(last.timestamp, self.log.largest_timestamp_after(start.position).timestamp)

    # --- by either

    def start_position(self, first_offset: int | None, first_ms: int | None) -> int:
        """Return the byte of a sound batch no later than the first one of this offset and time.

        It is 0 where the indexes do not say. Raises: CorruptIndexError if offsets do not rise.
        """
        if self.offset_index is not None:
            self.offset_index.sanity_check()
        offset = self.base_offset if first_offset is None else first_offset
        if first_ms is not None:
            by_time = self._search_times(first_ms)[0]
            if self._is_of_a_batch(by_time):
                offset = max(offset, by_time.offset)
        entry = self._search_offsets(offset)[0]
        return entry.position if self._leads_to_batch(entry) else 0

    # --- the indexes

    def _search_offsets(self, target: int) -> _Searched[OffsetPosition]:
        missing = OffsetPosition(self.base_offset, 0)
        return self._search(self.offset_index, target, self._leads_to_batch, missing)

    def _search_times(self, target: int) -> _Searched[TimestampOffset]:
        missing = TimestampOffset(-1, self.base_offset)
        return self._search(self.time_index, target, self._is_of_a_batch, missing)

    def _search(
        self, index: Any, target: int, is_sound: Callable[[Entry], bool], missing: Entry
    ) -> _Searched[Entry]:
        """Return the last entry whose key is not above the target, or `missing`.

        With its slot, and how many entries were passed over: where a truncation may have left some,
        only one that fits the log counts. Going back takes steps that double: an earlier entry than
        the last sound one takes more of the log to be scanned, and gives the same answer.
        """
        slot = -1 if index is None else index.lookup_slot(target)
        if slot < 0:
            return missing, None, 0
        entry = index.entry(slot)
        if not self._may_have_leftovers(index) or is_sound(entry):
            return entry, slot, 0
        below = [number for number, each in enumerate(index) if each[0] <= target]
        step = 1
        while step <= len(below):
            entry = index.entry(below[-step])
            if is_sound(entry):
                return entry, below[-step], step - 1
            step *= 2
        return missing, None, len(below)

    def _note_search(self, index: Any, suffix: str, target: int, searched: _Searched[Any]) -> None:
        entry, slot, passed_over = searched
        entries = None if index is None else len(index)
        self._note_index(suffix, target, entries, slot, entry)
        if passed_over:
            self.steps.note("leftover-entries", self.path(suffix), passed_over=passed_over)

    def _may_have_leftovers(self, index: OffsetIndex | TimeIndex) -> bool:
        """Return whether a truncation may have left entries: only in a file with free slots."""
        return self.is_last and 0 < index.entries < index.max_entries

    def _leads_to_batch(self, entry: OffsetPosition) -> bool:
        """Return whether an entry points at a sound batch where its offset can lie."""
        known = self._sound.get(entry)
        if known is None:
            try:
                self._check_entry(entry)
                batch = next(self.log.batches(entry.position), None)
                known = entry.position == 0 or (batch is not None and batch.is_valid())
            except SegproofError:
                known = False
            self._sound[entry] = known
        return known

    def _is_of_a_batch(self, entry: TimestampOffset) -> bool:
        """Return whether the batch of the entry's offset has the entry's timestamp."""
        if entry.timestamp < 0:
            return True
        try:
            start = self._search_offsets(entry.offset)[0]
            self._check_entry(start)
            found = self.log.search_for_offset_with_size(entry.offset, start.position)
            batch = None if found is None else next(self.log.batches(found.position), None)
        except SegproofError:
            return False
        return batch is not None and batch.max_timestamp == entry.timestamp

    def _check_entry(self, entry: OffsetPosition) -> None:
        """Refuse an entry that does not point at a batch where its offset can lie."""
        if entry.position == 0:
            return
        if not 0 < entry.position < self.log.size_in_bytes():
            size = self.log.size_in_bytes()
            raise self._astray(entry, f"a log of {size} bytes", LOST_END * (entry.position >= size))
        batch = next(self.log.batches(entry.position), None)
        if batch is None:
            raise self._astray(entry, "the end of the log inside a batch")
        with self._naming_the_log():
            first = batch.base_offset  # of a compressed message by reading it
        if not self.base_offset <= first <= entry.offset:
            raise self._astray(entry, f"a batch that begins at offset {first}")

    def _astray(self, entry: OffsetPosition, found: str, hint: str = "") -> CorruptIndexError:
        return CorruptIndexError(
            f"the entry for offset {entry.offset} points to byte {entry.position} of the log, "
            f"where there is {found}",
            law="SEG-7",
            path=self.path(".index"),
            hint=hint
            or "`segproof verify` tells which entries are wrong; the index can be rebuilt",
        )
