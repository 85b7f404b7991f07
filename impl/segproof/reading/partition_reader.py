# SPDX-License-Identifier: Apache-2.0
"""Offsets and timestamps looked up in the segments of a partition directory, read-only.

Beside a writer each question is answered from files that fit each other: where they do not, and
were changed a moment ago, it is asked again.

Upstream: Kafka 4.3.1: LocalLog.read; UnifiedLog.fetchOffsetByTimestamp.
Laws: LOG-1, LOG-6, LOG-15.
Not covered: the log start offset, high watermark and leader epochs, which lie outside the segments.
"""

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from segproof.closing import Closing
from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.findings import time_text
from segproof.hints import writes
from segproof.integers import INT64_MAX
from segproof.kafka.record_batch import RecordBatch
from segproof.reading.file_names import PACKED_SUFFIXES, holds_remote_segments, read_remote_name
from segproof.reading.live_writer import (
    PAUSES_SECONDS,
    changed_recently,
    pause,
    until_steady,
)
from segproof.reading.lookup_answers import OffsetAnswer, TimestampAnswer
from segproof.reading.packed_segments import with_unpacked
from segproof.reading.partition_search import PartitionSearch, segment_base_offsets
from segproof.reading.placed_lookups import placed_answer, placed_record
from segproof.reading.segment_reader import SegmentReader

Answer = TypeVar("Answer")
_OPEN_SEGMENTS_MAX = 8
"""A partition may have more segments than a process may open files; indexes lie in memory."""


def remote_logs(path: str, files: Files) -> dict[int, str]:
    """Return by base offset what the names of the logs of segments in tiered storage begin with.

    Raises: OSError if the directory can't be listed; SegproofError if two begin at one offset, or
    if a storage plugin has packed one.
    """
    names = files.list_directory(path)
    found: dict[int, str] = {}
    known = map(read_remote_name, names if holds_remote_segments(path, names) else ())
    for one in sorted(each for each in known if each is not None and not each.passing):
        if one.suffix in PACKED_SUFFIXES:
            raise SegproofError(
                "a storage plugin has packed this segment, and its files can't be read",
                path=os.path.join(path, one.stem + one.suffix),
                hint=writes("let the plugin fetch the segment's files, and look into these"),
            )
        if one.suffix == ".log":
            other = found.setdefault(one.base_offset, one.stem)
            if other != one.stem:
                raise overlap(*(os.path.join(path, stem + ".log") for stem in (other, one.stem)))
    return found


def overlap(one: str, other: str) -> SegproofError:
    """Return the error of two segments of tiered storage with the same offsets."""
    return SegproofError(
        f"this segment has offsets that {os.path.basename(other)} has too; the metadata of the"
        " cluster, which are not here, say which of them counts",
        path=one,
        hint=writes(
            "copy the files of each segment into a directory of its own, and look into that"
        ),
    )


class PartitionReader(PartitionSearch, Closing):
    """The segments of one partition directory. A context manager.

    `path` is the directory of a partition, or of segments in tiered storage that do not overlap and
    have their files side by side. The segments are those of the moment of opening, or of a later
    one: beside a writer a question that finds no answer in files that were changed a moment ago
    lists the directory again. An answer is never older than the reader.

    Raises: OSError if the directory can't be listed; SegproofError if it holds no log, or if
    records wait in a `.swap` log, which Kafka's next start puts in the place of others.
    """

    def __init__(self, path: str | os.PathLike[str], *, files: Files = REAL_FILES) -> None:
        super().__init__(os.fspath(path))
        self._files = with_unpacked(files)
        self._readers: OrderedDict[int, SegmentReader] = OrderedDict()
        self._waits = list(PAUSES_SECONDS[::-1])
        """How long to wait before the next misses are believed, beside a writer."""
        until_steady(self._list, lambda: changed_recently([self.path], files))

    def _list(self) -> None:
        """List the directory, and forget what was seen of it before."""
        found = segment_base_offsets(self.path, files=self._files)
        stems = {} if found else remote_logs(self.path, self._files)
        if not (found or stems):
            raise SegproofError(
                "no log whose name is an offset",
                law="FILE-1",
                path=self.path,
                hint="name the directory of one partition, such as TOPIC-0",
            )
        self.close()
        self._largest_timestamps.clear()
        self.base_offsets, self.stems = found or sorted(stems), stems
        self._is_checked = not stems

    def _check_remote(self) -> None:
        """Refuse segments of tiered storage that overlap: only a broker knows which one counts."""
        if self._is_checked:
            return
        for before, base_offset in pairwise(self.base_offsets):
            if self.segment(before).translate_offset(base_offset) is not None:
                raise overlap(self.path_of(before, ".log"), self.path_of(base_offset, ".log"))
        self._is_checked = True

    def _is_changing(self) -> bool:
        """Return whether the directory, or its last log, changed a moment ago."""
        last = self.path_of(self.base_offsets[-1], ".log")
        return not self.stems and changed_recently((last, self.path), self._files)

    def _ask(self, ask: Callable[[], Answer], is_sure: Callable[[Answer], bool]) -> Answer:
        """Return an answer from files that fit each other.

        One that is not sure is asked for again while the files change: a writer may be in the
        middle of a step, such as making an index anew.
        """

        def once() -> Answer:
            self._check_remote()
            answer = ask()  # files of tiered storage are not listed again: nothing writes there
            while not is_sure(answer) and self._is_changing():
                is_last = not self._waits
                pause(0 if is_last else self._waits.pop())
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

    def _is_batch(self, answer: OffsetAnswer) -> bool:
        """Return whether an answer is a batch with the right checksum, if files are changing."""
        if answer.batch_position is None or answer.segment_base_offset is None:
            return False
        if not self._is_changing():
            return True
        segment = self.segment(answer.segment_base_offset)
        batch = next(segment.log.batches(answer.batch_position), None)
        return batch is not None and batch.is_valid()

    def __repr__(self) -> str:
        segments = plural(len(self.base_offsets), "segment")
        return f"PartitionReader({self.path!r}, {segments}, read-only)"

    def close(self) -> None:
        """Close all files."""
        while self._readers:
            self._readers.popitem()[1].close()

    def segment(self, base_offset: int) -> SegmentReader:
        """Return the reader of a segment; it stays open until it was not used for a while."""
        reader = self._readers.pop(base_offset, None)
        if reader is None:
            is_last = base_offset == self.base_offsets[-1]
            stem = self.stems.get(base_offset, "")
            reader = SegmentReader(
                self.path, base_offset, files=self._files, is_last=is_last and not stem, stem=stem
            )
        self._readers[base_offset] = reader
        reader.steps = self._steps
        if len(self._readers) > _OPEN_SEGMENTS_MAX:
            self._readers.popitem(last=False)[1].close()
        return reader

    def lookup_offset(self, target: int, *, explain: bool = False) -> OffsetAnswer:
        """Return where the first batch lies whose last offset is not below `target`.

        The floor of the target picks the segment. Where its last batch ends before the target, the
        answer is the first batch of the next segment that has one. With `explain` the answer
        carries its steps. Of a batch with a wrong checksum `is_damaged` is true, and the reason
        tells it. So it is where the offsets of the log do not rise: the answer is the batch that a
        salvage keeps, and the reason names the one that a read finds first.

        Laws: LOG-1, LOG-6, SEG-12, BATCH-14.
        Raises: OSError, CorruptIndexError, CorruptRecordError.
        """
        search = super().lookup_offset

        def ask() -> OffsetAnswer:
            answer = search(target, explain=explain)
            if answer.segment_base_offset is None or answer.batch_position is None:
                return answer
            segment = self.segment(answer.segment_base_offset)
            answer = placed_answer(answer, segment, self._after(segment))
            if answer.is_damaged or answer.batch_position is None:
                return answer
            batch = next(segment.log.batches(answer.batch_position), None)
            reason = self._why_damaged(segment, batch)
            return answer if reason is None else replace(answer, reason=reason, is_damaged=True)

        return self._ask(ask, self._is_batch)

    def _after(self, segment: SegmentReader) -> int | None:
        """Return the base offset of the next segment; None after the last one."""
        place = bisect_right(self.base_offsets, segment.base_offset)
        return self.base_offsets[place] if place < len(self.base_offsets) else None

    def _why_damaged(self, segment: SegmentReader, batch: RecordBatch | None) -> str | None:
        """Return in words that the batch of an answer is damaged; None without damage."""
        if batch is None or batch.is_valid():
            return None
        name = os.path.basename(segment.path(".log"))
        return (
            f"the checksum of the batch at byte {batch.position} of {name} is wrong: its records"
            " are damaged; `segproof verify` tells what is lost"
        )

    def _why_no_batch(self, target: int) -> str:
        return f"no batch of the partition reaches offset {target}{self._told_end()}"

    def _told_end(self) -> str:
        """Return in words where the last batch ends; nothing where that can't be read."""
        try:
            for base_offset in reversed(self.base_offsets):
                segment, last = self.segment(base_offset), None
                for batch in segment.batches_from(INT64_MAX):
                    last = batch
                if last is not None:
                    return f": the last one ends at {last.last_offset}"
        except SegproofError:
            return ""
        return ": it has none"

    def lookup_timestamp(self, target: int, *, explain: bool = False) -> TimestampAnswer:
        """Return the first record at or after the time `target`, in ms since 1970.

        The first segment whose largest timestamp is not below the target is searched, and no
        other one. With `explain` the answer carries its steps. Of a record in a batch with a wrong
        checksum, or one that a salvage does not leave as it is, `is_damaged` is true, and the
        reason tells it. Where a batch's base offset is wrong, the offset is the right one.

        Laws: LOG-15, SEG-39, BATCH-14.
        Raises: OSError, CorruptIndexError, CorruptRecordError, and what reading records raises.
        """
        search = super().lookup_timestamp

        def ask() -> TimestampAnswer:
            answer = search(target, explain=explain)
            if answer.offset is None:
                return answer
            # The search has read the record's batch last, in the segment that it asked for last.
            *_, segment = self._readers.values()
            batch, following = segment.log.last_read, self._after(segment)
            answer = placed_record(answer, batch, segment, following)
            if answer.is_damaged:
                return answer
            reason = self._why_damaged(segment, batch)
            return answer if reason is None else replace(answer, reason=reason, is_damaged=True)

        return self._ask(ask, lambda one: one.offset is not None)

    def _why_no_timestamp(self, target: int) -> str:
        largest = max(self._largest_timestamps.values())
        known = "there is none" if largest < 0 else f"the largest is {time_text(largest)}"
        return f"{super()._why_no_timestamp(target)}: {known}"
