# SPDX-License-Identifier: Apache-2.0
"""The segments of a partition directory as a release finds them, read through the model.

Nothing recovers or trims a file first: preallocated zero slots are entries, as they are for the
broker until it recovers the segment.

Upstream: Kafka, LogSegment and LocalLog, opened over existing files.
Laws: ABSIDX-4, SEG-12, SEG-35, SEG-39, SEG-40, SEG-49, LOG-1, LOG-6, LOG-15.
Not covered: a missing index, which a release rebuilds before it answers; logs beyond memory;
indexes above 64 MiB, which are refused.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

from segproof.errors import SegproofError, TooLargeError
from segproof.files import REAL_FILES, Files
from segproof.kafka.record_file import MAX_FILE_BYTES
from segproof.lookup import (
    INDEX_BYTES_MAX,
    LookupStep,
    OffsetAnswer,
    TimestampAnswer,
    segment_base_offsets,
    segment_file_name,
)
from segproof_harness.files.codecs import CODECS
from segproof_model.kafka.format.compression import BeyondLimitError
from segproof_model.kafka.format.offset_index import OffsetIndex, OffsetPosition
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_file import (
    LogOffsetPosition,
    RecordFile,
    TimestampAndOffset,
)
from segproof_model.kafka.format.time_index import TimeIndex, TimestampOffset
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files as ModelFiles
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refusal

S = TypeVar("S")

BATCH_LIMIT_BYTES = 3 << 20
"""What the records of a batch may take, stored and inflated, to be read under a profile: the model
makes an object of each record and header, of up to 40 times their bytes."""


class ModelRaisedError(SegproofError):
    """The release raises an error for this question."""

    def __init__(self, kind: ErrorKind, path: str) -> None:
        super().__init__(f"the release raises {kind}", path=path)


@dataclass(frozen=True, slots=True)
class FetchedBytes:
    """What `read` of a segment hands out, without the bytes."""

    offset: int
    """Base offset of the first batch."""
    position: int
    size_bytes: int
    first_entry_incomplete: bool


@contextmanager
def limited(path: str) -> Iterator[None]:
    """Name the file where a batch has more bytes than are read. Raises: TooLargeError."""
    try:
        yield
    except BeyondLimitError as error:
        raise TooLargeError(f"a batch whose records take {error} is not read", path=path) from error


@contextmanager
def answered(path: str) -> Iterator[None]:
    """Name the file that the release refuses to answer from. Raises: ModelRaisedError; as above."""
    with limited(path):
        try:
            yield
        except Refused as error:
            raise ModelRaisedError(error.kind, path) from error


def read_whole(path: str, limit: int, files: Files = REAL_FILES) -> bytes:
    """Return the bytes of a file. Raises: OSError; TooLargeError above `limit` bytes."""
    file = files.open(path)
    try:
        size = file.size()
        if size > limit:
            raise TooLargeError(
                f"a file of {size} bytes is not read into memory",
                path=path,
                expected=f"at most {limit} bytes",
                actual=size,
            )
        return file.pread(size, 0)
    finally:
        file.close()


def entries_of(index: OffsetIndex | TimeIndex) -> list[Any]:
    """Return every entry, with absolute offsets, in the order of the file."""
    return [index.stored(number) for number in range(index.entries)]


class SegmentAsFound:
    """One segment in a release. Its files are read when they are first needed.

    Raises, from each question: ModelRaisedError where the release raises; OSError.
    """

    def __init__(
        self,
        directory: str,
        base_offset: int,
        release: Release,
        *,
        limit: int = BATCH_LIMIT_BYTES,
        files: Files = REAL_FILES,
    ) -> None:
        self.base_offset = base_offset
        self.release = release
        self._directory = directory
        self._limit = limit
        self._files = files

    def path(self, suffix: str) -> str:
        """Return the path of one of the segment's files."""
        return os.path.join(self._directory, segment_file_name(self.base_offset, suffix))

    @cached_property
    def offset_index(self) -> OffsetIndex:
        """The offset index as opening the file finds it."""
        return self._opened(self.release.kind(OffsetIndex), ".index", self.base_offset)

    @cached_property
    def time_index(self) -> TimeIndex:
        """The time index as opening the file finds it."""
        return self._opened(self.release.kind(TimeIndex), ".timeindex", self.base_offset)

    @cached_property
    def transaction_index(self) -> TransactionIndex:
        """The transaction index; empty without a file."""
        return self._opened(self.release.kind(TransactionIndex), ".txnindex", self.base_offset)

    @cached_property
    def log(self) -> RecordFile:
        """The log, believed to its physical end."""
        codecs = replace(CODECS, limit_bytes=self._limit)
        return self._opened(self.release.kind(RecordFile), ".log", False, codecs=codecs)

    def _opened(self, kind: Callable[..., S], suffix: str, *arguments: Any, **named: Any) -> S:
        """Return what the release makes of a file; only a transaction index may be missing."""
        path, images = self.path(suffix), {}
        if suffix != ".txnindex" or self._files.status(path) is not None:
            limit = MAX_FILE_BYTES if suffix == ".log" else INDEX_BYTES_MAX
            images[path] = read_whole(path, limit, self._files)
        try:
            return kind(ModelFiles(images), path, *arguments, **named)
        except Refused as error:
            raise SegproofError("the release cannot open the file", path=path) from error

    def scan(self, position: int = 0) -> tuple[list[RecordBatch], ErrorKind | None]:
        """Return the batches from a position on, and the error that ends the scan, if one does.

        A damaged index leads anywhere.
        """
        found: list[RecordBatch] = []
        failed = refusal(partial(found.extend, self.log.batches(position)))
        return found, None if failed is None else failed.kind

    # --- by offset

    def lookup_offset_index(self, target_offset: int) -> OffsetPosition:
        """Return `OffsetIndex.lookup`."""
        with answered(self.path(".index")):
            return self.offset_index.lookup(target_offset)

    def translate_offset(self, offset: int) -> LogOffsetPosition | None:
        """Return where the first batch is whose last offset is not below the offset (SEG-12)."""
        entry = self.lookup_offset_index(offset)
        with answered(self.path(".log")):
            return self.log.search_for_offset_with_size(offset, entry.position)

    def read(self, start_offset: int, max_size_bytes: int) -> FetchedBytes | None:
        """Return what a read of at most so many bytes hands out (SEG-14 to SEG-17)."""
        found = self.translate_offset(start_offset)
        if found is None:
            return None
        size = min(self.log.size - found.position, max_size_bytes)
        with answered(self.path(".log")):
            base_offset = next(self.log.batches(found.position)).base_offset
        return FetchedBytes(base_offset, found.position, size, max_size_bytes < found.size_bytes)

    def read_next_offset(self) -> int:
        """Return the offset behind the last complete batch, as the index lets one find it.

        The base offset, if the index's last offset lies beyond the data (SEG-35).
        """
        found = self.translate_offset(self.offset_index.last_offset)
        if found is None:
            return self.base_offset
        batches, _ = self.scan(found.position)
        with answered(self.path(".log")):
            return batches[-1].next_offset

    def fetch_upper_bound_offset(self, position: int, size_bytes: int) -> OffsetPosition | None:
        """Return `OffsetIndex.fetch_upper_bound_offset` of a fetch of so many bytes (OFFIDX-15)."""
        fetched = OffsetPosition(self.base_offset, position)
        with answered(self.path(".index")):
            return self.offset_index.fetch_upper_bound_offset(fetched, size_bytes)

    # --- by timestamp

    def lookup_time_index(self, target_timestamp: int) -> TimestampOffset:
        """Return `TimeIndex.lookup`."""
        with answered(self.path(".timeindex")):
            return self.time_index.lookup(target_timestamp)

    def find_offset_by_timestamp(
        self, timestamp: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record at or after timestamp and offset (SEG-39)."""
        start = self.timestamp_search_start(timestamp, starting_offset)
        with answered(self.path(".log")):
            return self.log.search_for_timestamp(timestamp, start.position, starting_offset)

    def timestamp_search_start(self, timestamp: int, starting_offset: int) -> OffsetPosition:
        """Return the offset index's answer from which a search for the timestamp begins."""
        entry = self.lookup_time_index(timestamp)
        return self.lookup_offset_index(max(entry.offset, starting_offset))

    def max_timestamp_so_far(self) -> int:
        """Return the timestamp of the last entry as found; -1 without one (SEG-49)."""
        return self.time_index.last_entry.timestamp

    def largest_timestamp(self) -> int:
        """Return the same, or the modification time of the log where it is negative (SEG-40)."""
        found = self.max_timestamp_so_far()
        if found >= 0:
            return found
        status = self._files.status(self.path(".log"))
        return 0 if status is None else status.modified_ns // 1_000_000


class PartitionAsFound:
    """The segments of a directory in a release, and the answers across them.

    Raises: OSError if the directory can't be listed; SegproofError if it holds no log.
    """

    def __init__(self, path: str, release: Release, *, files: Files = REAL_FILES) -> None:
        self.path = path
        self.release = release
        self.base_offsets = segment_base_offsets(path, files=files)
        self._files = files
        self._segment: SegmentAsFound | None = None
        self._largest_timestamps: dict[int, int] = {}
        if not self.base_offsets:
            raise SegproofError("no log whose name is an offset", law="FILE-1", path=path)

    def segment(self, base_offset: int) -> SegmentAsFound:
        """Return a segment; the one before is given back, since each is read into memory."""
        if self._segment is None or self._segment.base_offset != base_offset:
            self._segment = SegmentAsFound(self.path, base_offset, self.release, files=self._files)
        return self._segment

    def lookup_offset(self, target: int, *, explain: bool = False) -> OffsetAnswer:
        """Return where a fetch from `target` begins (LOG-1, LOG-6)."""
        steps: list[LookupStep] = []
        at_or_above = [base for base in self.base_offsets if base > target]
        floors = self.base_offsets[: len(self.base_offsets) - len(at_or_above)]
        facts: dict[str, int | str | None] = {
            "segments": len(self.base_offsets),
            "floor": floors[-1] if floors else None,
        }
        steps.append(LookupStep("segment", self.path, facts))
        if not floors:
            reason = f"below the first segment, which begins at offset {self.base_offsets[0]}"
            return OffsetAnswer(target, reason=reason, steps=_taken(steps, explain))
        first: OffsetPosition | None = None
        for base_offset in [floors[-1], *at_or_above]:
            segment = self.segment(base_offset)
            entry = segment.lookup_offset_index(target)
            first = first or entry
            found = segment.translate_offset(target)
            if explain:
                steps += _offset_steps(segment, target, entry, found)
            if found is not None:
                # Up to 3.9 the search answers with the last offset; the batch says its base.
                base = segment.read(target, 0)
                offset = found.offset if base is None else base.offset
                return OffsetAnswer(
                    target,
                    base_offset,
                    *entry,
                    offset,
                    found.position,
                    found.size_bytes,
                    steps=_taken(steps, explain),
                )
        assert first is not None
        reason = f"the release finds no batch that reaches offset {target}"
        return OffsetAnswer(target, floors[-1], *first, reason=reason, steps=_taken(steps, explain))

    def lookup_timestamp(self, target: int, *, explain: bool = False) -> TimestampAnswer:
        """Return the first record at or after the time, in the segment that reaches it (LOG-15)."""
        steps: list[LookupStep] = []
        for base_offset in self.base_offsets:
            largest = self._largest_timestamp(base_offset)
            path = os.path.join(self.path, segment_file_name(base_offset, ".timeindex"))
            steps.append(LookupStep("largest-timestamp", path, {"timestamp": largest}))
            if largest < target:
                continue
            segment = self.segment(base_offset)
            found = segment.find_offset_by_timestamp(target, self.base_offsets[0])
            if explain:
                steps += _timestamp_steps(segment, target, self.base_offsets[0])
            if found is None:
                reason = f"no record of segment {base_offset} has a timestamp of {target} or later"
                return TimestampAnswer(target, reason=reason, steps=_taken(steps, explain))
            return TimestampAnswer(
                target, found.timestamp, found.offset, steps=_taken(steps, explain)
            )
        reason = f"no segment has a timestamp of {target} or later"
        return TimestampAnswer(target, reason=reason, steps=_taken(steps, explain))

    def _largest_timestamp(self, base_offset: int) -> int:
        if base_offset not in self._largest_timestamps:
            segment = SegmentAsFound(self.path, base_offset, self.release, files=self._files)
            self._largest_timestamps[base_offset] = segment.largest_timestamp()
        return self._largest_timestamps[base_offset]


def _taken(steps: list[LookupStep], explain: bool) -> tuple[LookupStep, ...]:
    return tuple(steps) if explain else ()


def _slot_of(entries: list[Any], entry: Any) -> int | None:
    return entries.index(entry) if entry in entries else None


def _offset_steps(
    segment: SegmentAsFound, target: int, entry: OffsetPosition, found: LogOffsetPosition | None
) -> Iterator[LookupStep]:
    entries = entries_of(segment.offset_index)
    facts: dict[str, int | str | None] = {
        "target": target,
        "entries": len(entries),
        "slot": _slot_of(entries, entry),
        "offset": entry.offset,
        "position": entry.position,
    }
    yield LookupStep("offset-index", segment.path(".index"), facts)
    scanned, _ = segment.scan(entry.position)
    if found is not None:
        scanned = [each for each in scanned if each.position <= found.position]
    facts = {
        "from_position": entry.position,
        "batches": len(scanned),
        "batch_position": None if found is None else found.position,
        "batch_size": None if found is None else found.size_bytes,
    }
    yield LookupStep("scan", segment.path(".log"), facts)


def _timestamp_steps(
    segment: SegmentAsFound, target: int, starting_offset: int
) -> Iterator[LookupStep]:
    entries = entries_of(segment.time_index)
    entry = segment.lookup_time_index(target)
    facts: dict[str, int | str | None] = {
        "target": target,
        "entries": len(entries),
        "slot": _slot_of(entries, entry),
        "timestamp": entry.timestamp,
        "offset": entry.offset,
    }
    yield LookupStep("time-index", segment.path(".timeindex"), facts)
    start = segment.timestamp_search_start(target, starting_offset)
    offsets = entries_of(segment.offset_index)
    yield LookupStep(
        "offset-index",
        segment.path(".index"),
        {
            "target": max(entry.offset, starting_offset),
            "entries": len(offsets),
            "slot": _slot_of(offsets, start),
            "offset": start.offset,
            "position": start.position,
        },
    )
