# SPDX-License-Identifier: Apache-2.0
"""Look offsets and timestamps up in the segments of a partition directory, read-only.

The indexes are read as genuine entries (the zero tail of an untrimmed file is none) and only save
work: without an index file the log is scanned from its start, with the same answer. Nor are zeros
at the end of a log a batch, though a release that scans them before it recovers raises an error.

Beside a writer each question is answered from files that fit each other: where they do not, and
were changed a moment ago, it is asked anew. In the index of a segment that is still written a
truncation leaves old entries behind the last one that counts; they are passed over.

Upstream: Kafka 4.3.1: LogSegment.translateOffset, findOffsetByTimestamp; LocalLog.read;
  UnifiedLog.fetchOffsetByTimestamp.
Laws: SEG-12, SEG-39, LOG-1, LOG-6, LOG-15.
Deviates: the largest timestamp of a segment is taken from index and log together, where upstream
  believes the last index entry or the modification time.
Not covered: the log start offset, high watermark and leader epochs, which lie outside the segments.
"""

import os
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from time import sleep
from typing import Any, Self, TypeVar

from segproof.errors import CorruptIndexError, CorruptRecordError, SegproofError
from segproof.files import REAL_FILES, Files, holds_zeros
from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof.kafka.record_file import LogAsFound, LogOffsetPosition, TimestampAndOffset
from segproof.kafka.segment_names import segment_file_name
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import TransactionIndex
from segproof.lookup_answers import LookupStep, OffsetAnswer, TimestampAnswer
from segproof.recent_changes import PAUSES_SECONDS, changed_recently, until_steady
from segproof.verifying.log_checks import next_sound_batch

__all__ = [
    "INDEX_BYTES_MAX",
    "LookupStep",
    "OffsetAnswer",
    "PartitionReader",
    "SegmentReader",
    "TimestampAnswer",
    "segment_base_offsets",
    "segment_file_name",
]

Index = TypeVar("Index", OffsetIndex, TimeIndex)
Answer = TypeVar("Answer")
INT64_MAX = (1 << 63) - 1
_LOG_NAME = re.compile(r"(-?[0-9]{1,20})\.log")
_OPEN_SEGMENTS_MAX = 8
"""A partition may have more segments than a process may open files; indexes lie in memory."""
INDEX_BYTES_MAX = 64 << 20
"""Kafka's default limit of an index is 10 MiB; a damaged file may have any length."""


def segment_base_offsets(path: str, *, files: Files = REAL_FILES) -> list[int]:
    """Return the base offsets of the logs in a directory, ascending.

    Only names that Kafka itself writes count; `segproof.verify` reports the others.
    Raises: OSError if the directory can't be listed.
    """
    found = []
    for name in files.list_directory(path):
        match = _LOG_NAME.fullmatch(name)
        if match and segment_file_name(int(match[1]), ".log") == name and int(match[1]) < 1 << 63:
            found.append(int(match[1]))
    return sorted(found)


class SegmentReader:
    """One segment: its log, and those of its indexes that exist.

    Raises: OSError if the log or an existing index can't be read; SegproofError for a file too
    large to be one.
    """

    def __init__(
        self,
        directory: str,
        base_offset: int,
        *,
        files: Files = REAL_FILES,
        is_last: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.is_last = is_last
        """Whether a broker may be writing it, so that its indexes may have leftover entries."""
        self.passed_over: dict[str, int] = {}
        """Of an index file: how many entries the last lookup passed over."""
        self._sound: dict[tuple[int, int], bool] = {}
        self._directory = directory
        self._files = files
        self.log = LogAsFound.open(self.path(".log"), mutable=False, files=files)
        try:
            self.offset_index = self._index(OffsetIndex, ".index")
            """The offset index, or None without a file."""
            self.time_index = self._index(TimeIndex, ".timeindex")
            """The time index, or None without a file."""
            self.transaction_index = TransactionIndex(
                base_offset, self.path(".txnindex"), writable=False, files=files
            )
            """The transaction index; empty without a file."""
        except BaseException:
            self.log.close()
            raise

    def _index(self, kind: type[Index], suffix: str) -> Index | None:
        path = self.path(suffix)
        status = self._files.status(path)
        if status is not None and status.size_bytes > INDEX_BYTES_MAX:
            raise CorruptIndexError(
                f"an index of {status.size_bytes} bytes is not read into memory",
                path=path,
                expected=f"at most {INDEX_BYTES_MAX} bytes",
                actual=status.size_bytes,
                hint="make it new with `segproof rebuild`, or remove it from a copy: the log is"
                " scanned then",
            )
        with suppress(FileNotFoundError):
            return kind(path, self.base_offset, writable=False, files=self._files)
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        self.transaction_index.close()
        if self.log.is_open:
            self.log.close()

    def path(self, suffix: str) -> str:
        """Return the path of one of the segment's files."""
        return os.path.join(self._directory, segment_file_name(self.base_offset, suffix))

    # --- by offset

    def lookup_offset_index(self, target_offset: int) -> OffsetPosition:
        """Return the index entry for the target; base offset and 0 without an index file."""
        if self.offset_index is None:
            return OffsetPosition(self.base_offset, 0)
        entry = self.offset_index.lookup(target_offset)
        if not self._may_have_leftovers(self.offset_index) or self._leads_to_batch(entry):
            return entry
        kept = _before(self.offset_index, target_offset, 0, self._leads_to_batch)
        self.passed_over[".index"] = kept[1]
        return kept[0] or OffsetPosition(self.base_offset, 0)

    def translate_offset(self, offset: int) -> LogOffsetPosition | None:
        """Return the first batch whose last offset is not below `offset`, or None.

        Laws: SEG-12.
        Raises: CorruptIndexError if the index points elsewhere than at a batch; CorruptRecordError
        where the log can't be scanned.
        """
        entry = self.lookup_offset_index(offset)
        self._check_entry(entry)
        return self.log.search_for_offset_with_size(offset, entry.position)

    def batches_scanned(self, start: int, found: LogOffsetPosition | None) -> int:
        """Return how many batches lie from `start` up to the found one, inclusive, or the end."""
        count = 0
        for batch in self.log.batches(start):
            count += 1
            if found is not None and batch.position >= found.position:
                break
        return count

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
        found, searched_to = next_sound_batch(file, position + 1, end, reached)
        if self.is_last and found is None and searched_to >= end:
            return
        follows = "" if found is None else f"; sound batches follow, from byte {found[0]} on"
        raise CorruptRecordError(
            f"the log can't be read from here to its end at byte {end}{follows}",
            law="DUMP-6",
            path=self.log.name,
            position=position,
            hint="`segproof verify` tells what is wrong",
        )

    def _may_have_leftovers(self, index: Index) -> bool:
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

    def _check_entry(self, entry: OffsetPosition) -> None:
        """Refuse an entry that does not point at a batch where its offset can lie."""
        if entry.position == 0:
            return
        if not 0 < entry.position < self.log.size_in_bytes():
            raise self._astray(entry, f"a log of {self.log.size_in_bytes()} bytes")
        batch = next(self.log.batches(entry.position), None)
        if batch is None:
            raise self._astray(entry, "the end of the log inside a batch")
        # Without reading a compressed message only its last offset is known.
        first = batch.last_offset if batch.is_legacy else batch.base_offset
        if first < self.base_offset or (first > entry.offset and not batch.is_legacy):
            raise self._astray(entry, f"a batch that begins at offset {first}")

    def _astray(self, entry: OffsetPosition, found: str) -> CorruptIndexError:
        return CorruptIndexError(
            f"the entry for offset {entry.offset} points to byte {entry.position} of the log, "
            f"where there is {found}",
            law="SEG-7",
            path=self.path(".index"),
            hint="`segproof verify` tells which entries are wrong; the index can be rebuilt",
        )

    # --- by timestamp

    def lookup_time_index(self, target_timestamp: int) -> TimestampOffset:
        """Return the time index's entry for the target; (-1, base offset) without an index."""
        if self.time_index is None:
            return TimestampOffset(-1, self.base_offset)
        entry = self.time_index.lookup(target_timestamp)
        if not self._may_have_leftovers(self.time_index) or self._is_of_a_batch(entry):
            return entry
        kept = _before(self.time_index, target_timestamp, 0, self._is_of_a_batch)
        self.passed_over[".timeindex"] = kept[1]
        return kept[0] or TimestampOffset(-1, self.base_offset)

    def _is_of_a_batch(self, entry: TimestampOffset) -> bool:
        """Return whether the batch of the entry's offset has the entry's timestamp."""
        if entry.timestamp < 0:
            return True
        try:
            found = self.translate_offset(entry.offset)
            batch = None if found is None else next(self.log.batches(found.position), None)
        except SegproofError:
            return False
        return batch is not None and batch.max_timestamp == entry.timestamp

    def find_offset_by_timestamp(
        self, timestamp: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record at or after the timestamp and the offset, or None.

        Laws: SEG-39. Raises: as `translate_offset`, and what reading records raises.
        """
        start = self.timestamp_search_start(timestamp, starting_offset)
        self._check_entry(start)
        return self.log.search_for_timestamp(timestamp, start.position, starting_offset)

    def timestamp_search_start(self, timestamp: int, starting_offset: int) -> OffsetPosition:
        """Return the offset index's entry from which a search for the timestamp begins."""
        entry = self.lookup_time_index(timestamp)
        return self.lookup_offset_index(max(entry.offset, starting_offset))

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of the segment's batches; -1 if there is none.

        The last entry of the time index counts, and every batch from there on: of a segment that
        is still written, or was not closed, the last batches are not in the index.
        """
        last = TimestampOffset(-1, self.base_offset)
        if self.time_index is not None:
            last = self.time_index.last_entry
            if self._may_have_leftovers(self.time_index):
                last = self.lookup_time_index(INT64_MAX)
        start = self.lookup_offset_index(last.offset)
        self._check_entry(start)
        self.check_read_to_end(start.position)
        return max(last.timestamp, self.log.largest_timestamp_after(start.position).timestamp)


Entry = TypeVar("Entry", OffsetPosition, TimestampOffset)


def _before(
    index: Any, target: int, key: int, is_sound: Callable[[Entry], bool]
) -> tuple[Entry | None, int]:
    """Return a sound entry whose key is not above the target, or None; how many it passed over.

    In steps that double, since a truncation may have left many: an earlier entry than the last
    sound one takes more of the log to be scanned, and gives the same answer.
    """
    entries: list[Entry] = list(index)
    below = [number for number, entry in enumerate(entries) if entry[key] <= target]
    step = 1
    while step <= len(below):
        entry = entries[below[-step]]
        if is_sound(entry):
            return entry, len(below) - below.index(below[-step]) - 1
        step *= 2
    return None, len(below)


class PartitionReader:
    """The segments of one partition directory. A context manager.

    `path` is the directory. The segments are those of the moment of opening, or of a later one:
    beside a writer a question that finds no answer in files that were changed a moment ago lists
    the directory anew. What was found is at most as old as the reader.

    Raises: OSError if the directory can't be listed; SegproofError if it holds no log.
    """

    def __init__(self, path: str | os.PathLike[str], *, files: Files = REAL_FILES) -> None:
        self.path = os.fspath(path)
        self._files = files
        self.base_offsets: list[int] = []
        """Base offsets of the segments, ascending."""
        self._readers: OrderedDict[int, SegmentReader] = OrderedDict()
        self._largest_timestamps: dict[int, int] = {}
        self._steps = _Steps(False)
        self._waits = list(PAUSES_SECONDS[::-1])
        """How long to wait before the next misses are believed, beside a writer."""
        until_steady(self._list, lambda: changed_recently([self.path], files))

    def _list(self) -> None:
        """List the directory, and forget what was seen of it before."""
        found = segment_base_offsets(self.path, files=self._files)
        if not found:
            raise SegproofError(
                "no log whose name is an offset",
                law="FILE-1",
                path=self.path,
                hint="name the directory of one partition, such as TOPIC-0",
            )
        self.close()
        self._largest_timestamps.clear()
        self.base_offsets = found

    def _is_changing(self) -> bool:
        """Return whether the directory, or its last log, changed a moment ago."""
        last = os.path.join(self.path, segment_file_name(self.base_offsets[-1], ".log"))
        return changed_recently((last, self.path), self._files)

    def _ask(self, ask: Callable[[], Answer], is_sure: Callable[[Answer], bool]) -> Answer:
        """Return an answer from files that fit each other.

        One that is not sure is asked for again while the files change: a writer may be in the
        middle of a step, such as making an index anew.
        """

        def once() -> Answer:
            answer = ask()
            while not is_sure(answer) and self._is_changing():
                is_last = not self._waits
                sleep(0 if is_last else self._waits.pop())
                self._list()
                answer = ask()
                if is_last:
                    break
            return answer

        def may_change() -> bool:
            changing, known = self._is_changing(), self.base_offsets
            with suppress(SegproofError, FileNotFoundError):
                self._list()
            return changing or self.base_offsets != known

        return until_steady(once, may_change)

    @property
    def steps(self) -> tuple[LookupStep, ...]:
        """The steps of the last question that was asked with `explain`, up to where it failed."""
        return self._steps.taken()

    def _begin_steps(self, wanted: bool) -> "_Steps":
        self._steps = _Steps(wanted)
        return self._steps

    def _is_batch(self, answer: OffsetAnswer) -> bool:
        """Return whether an answer is a batch with the right checksum, if files are changing."""
        if answer.batch_position is None or answer.segment_base_offset is None:
            return False
        if not self._is_changing():
            return True
        segment = self.segment(answer.segment_base_offset)
        batch = next(segment.log.batches(answer.batch_position), None)
        return batch is not None and batch.is_valid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        while self._readers:
            self._readers.popitem()[1].close()

    def segment(self, base_offset: int) -> SegmentReader:
        """Return the reader of a segment; it stays open until it was not used for a while."""
        reader = self._readers.pop(base_offset, None)
        if reader is None:
            is_last = base_offset == self.base_offsets[-1]
            reader = SegmentReader(self.path, base_offset, files=self._files, is_last=is_last)
        self._readers[base_offset] = reader
        if len(self._readers) > _OPEN_SEGMENTS_MAX:
            self._readers.popitem(last=False)[1].close()
        return reader

    def floor_segment(self, offset: int) -> int | None:
        """Return the greatest base offset that is not above `offset`, or None (LOG-1)."""
        place = bisect_right(self.base_offsets, offset)
        return self.base_offsets[place - 1] if place else None

    def lookup_offset(self, target: int, *, explain: bool = False) -> OffsetAnswer:
        """Return where the first batch lies whose last offset is not below `target`.

        The floor of the target picks the segment. Where its last batch ends before the target, the
        answer is the first batch of the next segment that has one. With `explain` the answer
        carries its steps.

        Laws: LOG-1, LOG-6, SEG-12. Raises: OSError, CorruptIndexError, CorruptRecordError.
        """
        return self._ask(lambda: self._lookup_offset(target, explain), self._is_batch)

    def _lookup_offset(self, target: int, explain: bool) -> OffsetAnswer:
        steps = self._begin_steps(explain)
        floor = self.floor_segment(target)
        facts: dict[str, int | str | None] = {"segments": len(self.base_offsets), "floor": floor}
        steps.add("segment", self.path, facts)
        if floor is None:
            reason = f"below the first segment, which begins at offset {self.base_offsets[0]}"
            return OffsetAnswer(target, reason=reason, steps=steps.taken())
        first: OffsetPosition | None = None
        for base_offset in self.base_offsets[self.base_offsets.index(floor) :]:
            segment = self.segment(base_offset)
            if base_offset != floor:
                steps.add("next-segment", segment.path(".log"), {"base_offset": base_offset})
            entry = segment.lookup_offset_index(target)
            first = first or entry
            steps.add_index(segment, target, entry)
            found = segment.translate_offset(target)
            steps.add_scan(segment, entry.position, found)
            if found is not None:
                return OffsetAnswer(target, base_offset, *entry, *found, steps=steps.taken())
            segment.check_read_to_end(entry.position)
        assert first is not None
        reason = f"no batch of the partition reaches offset {target}{self._told_end()}"
        return OffsetAnswer(target, floor, *first, reason=reason, steps=steps.taken())

    def _told_end(self) -> str:
        """Return in words where the last batch ends; nothing where that can't be read."""
        try:
            for base_offset in reversed(self.base_offsets):
                segment, last = self.segment(base_offset), None
                for batch in segment.log.batches(segment.lookup_offset_index(INT64_MAX).position):
                    last = batch
                if last is not None:
                    return f": the last one ends at {last.last_offset}"
        except SegproofError:
            return ""
        return ": it has none"

    def lookup_timestamp(self, target: int, *, explain: bool = False) -> TimestampAnswer:
        """Return the first record at or after the time `target`, in ms since 1970.

        The first segment whose largest timestamp is not below the target is searched, and no
        other one. With `explain` the answer carries its steps.

        Laws: LOG-15, SEG-39. Raises: OSError, CorruptIndexError, CorruptRecordError, and what
        reading records raises.
        """
        return self._ask(
            lambda: self._lookup_timestamp(target, explain), lambda one: one.offset is not None
        )

    def _lookup_timestamp(self, target: int, explain: bool) -> TimestampAnswer:
        steps = self._begin_steps(explain)
        base_offset = self._segment_reaching(target, steps)
        if base_offset is None:
            largest = max(self._largest_timestamps.values())
            known = "there is none" if largest < 0 else f"the largest is {largest}"
            reason = f"no segment has a timestamp of {target} or later: {known}"
            return TimestampAnswer(target, reason=reason, steps=steps.taken())
        segment = self.segment(base_offset)
        entry = segment.lookup_time_index(target)
        steps.add_time_index(segment, target, entry)
        start = segment.timestamp_search_start(target, self.base_offsets[0])
        steps.add_index(segment, max(entry.offset, self.base_offsets[0]), start)
        found = segment.find_offset_by_timestamp(target, self.base_offsets[0])
        if found is None:
            segment.check_read_to_end(start.position)
            reason = f"no record of segment {base_offset} has a timestamp of {target} or later"
            return TimestampAnswer(target, reason=reason, steps=steps.taken())
        if explain:
            holder = segment.log.search_for_offset_with_size(found.offset, start.position)
            steps.add_scan(segment, start.position, holder)
        return TimestampAnswer(target, found.timestamp, found.offset, steps=steps.taken())

    def _segment_reaching(self, target: int, steps: "_Steps") -> int | None:
        """Return the first segment whose largest timestamp is not below the target."""
        for base_offset in self.base_offsets:
            largest = self._largest_timestamps.get(base_offset)
            if largest is None:
                largest = self.segment(base_offset).largest_timestamp()
                self._largest_timestamps[base_offset] = largest
            path = os.path.join(self.path, segment_file_name(base_offset, ".log"))
            steps.add("largest-timestamp", path, {"timestamp": largest})
            if largest >= target:
                return base_offset
        return None


class _Steps:
    """Collects steps, if anybody wants them."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._taken: list[LookupStep] = []

    def taken(self) -> tuple[LookupStep, ...]:
        return tuple(self._taken)

    def add(self, action: str, path: str, facts: dict[str, int | str | None]) -> None:
        if self._wanted:
            self._taken.append(LookupStep(action, path, facts))

    def add_index(self, segment: SegmentReader, target: int, entry: OffsetPosition) -> None:
        if not self._wanted:
            return
        index = segment.offset_index
        slot = None
        if index is not None:
            slot = next((n for n, each in enumerate(index) if each == entry), None)
        facts: dict[str, int | str | None] = {
            "target": target,
            "entries": None if index is None else len(index),
            "slot": slot,
            "offset": entry.offset,
            "position": entry.position,
        }
        self.add("offset-index", segment.path(".index"), facts)
        self._add_leftovers(segment, ".index")

    def add_time_index(self, segment: SegmentReader, target: int, entry: TimestampOffset) -> None:
        if not self._wanted:
            return
        index = segment.time_index
        slot = None
        if index is not None:
            slot = next((n for n, each in enumerate(index) if each == entry), None)
        facts: dict[str, int | str | None] = {
            "target": target,
            "entries": None if index is None else len(index),
            "slot": slot,
            "timestamp": entry.timestamp,
            "offset": entry.offset,
        }
        self.add("time-index", segment.path(".timeindex"), facts)
        self._add_leftovers(segment, ".timeindex")

    def _add_leftovers(self, segment: SegmentReader, suffix: str) -> None:
        count = segment.passed_over.pop(suffix, 0)
        if count:
            self.add("leftover-entries", segment.path(suffix), {"passed_over": count})

    def add_scan(self, segment: SegmentReader, start: int, found: LogOffsetPosition | None) -> None:
        if not self._wanted:
            return
        facts: dict[str, int | str | None] = {
            "from_position": start,
            "batches": segment.batches_scanned(start, found),
            "batch_base_offset": None if found is None else found.offset,
            "batch_position": None if found is None else found.position,
            "batch_size": None if found is None else found.size_bytes,
        }
        self.add("scan", segment.path(".log"), facts)
