# SPDX-License-Identifier: Apache-2.0
"""The segments of a partition directory as a release finds them, read through the model.

Nothing recovers or trims a file first: preallocated zero slots are entries, as they are for the
broker until it recovers the segment.

Upstream: Kafka, LogSegment and LocalLog, opened over existing files.
Laws: ABSIDX-4, SEG-12, SEG-35, SEG-39, SEG-40, SEG-49, LOG-1, LOG-6, LOG-15.
Not covered: a missing index, which a release rebuilds before it answers; logs beyond memory;
indexes above 64 MiB, which are refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

from segproof.errors import SegproofError, TooLargeError
from segproof.files import REAL_FILES, Files
from segproof.kafka.record_file import MAX_FILE_BYTES
from segproof.reading.partition_search import PartitionSearch, SegmentSearch, segment_base_offsets
from segproof.reading.segment_reader import INDEX_BYTES_MAX
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


class SegmentAsFound(SegmentSearch):
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
        super().__init__(directory, base_offset, files)
        self.release = release
        self._limit = limit

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
            entry = self.offset_index.lookup(target_offset)
        self._note_search(self.offset_index, ".index", target_offset, entry)
        return entry

    def first_batch_reaching(self, offset: int, start: OffsetPosition) -> LogOffsetPosition | None:
        """Return where the first batch is whose last offset is not below the offset (SEG-12)."""
        with answered(self.path(".log")):
            found = self.log.search_for_offset_with_size(offset, start.position)
            if found is not None:
                # Up to 3.9 the search answers with the last offset; the batch says its base.
                base_offset = next(self.log.batches(found.position)).base_offset
                found = found._replace(offset=base_offset)
        if self.steps.wanted:
            batches, _ = self.scan(start.position)
            if found is not None:
                batches = [each for each in batches if each.position <= found.position]
            self._note_scan(start.position, len(batches), found)
        return found

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

    # --- by timestamp

    def lookup_time_index(self, target_timestamp: int) -> TimestampOffset:
        """Return `TimeIndex.lookup`."""
        with answered(self.path(".timeindex")):
            entry = self.time_index.lookup(target_timestamp)
        self._note_search(self.time_index, ".timeindex", target_timestamp, entry)
        return entry

    def first_record_at(
        self, timestamp: int, starting_offset: int, start: OffsetPosition
    ) -> TimestampAndOffset | None:
        """Return the first record from an index entry on at or after timestamp and offset."""
        with answered(self.path(".log")):
            return self.log.search_for_timestamp(timestamp, start.position, starting_offset)

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

    def check_read_to_end(self, start: int) -> None:
        """Return: a release takes damage for the end of a log."""

    def _note_search(
        self, index: OffsetIndex | TimeIndex, suffix: str, target: int, entry: Any
    ) -> None:
        if self.steps.wanted:
            entries = entries_of(index)
            slot = entries.index(entry) if entry in entries else None
            self._note_index(suffix, target, len(entries), slot, entry)


class PartitionAsFound(PartitionSearch):
    """The segments of a directory in a release, and the answers across them.

    Raises: OSError if the directory can't be listed; SegproofError if it holds no log.
    """

    largest_timestamp_suffix = ".timeindex"

    def __init__(self, path: str, release: Release, *, files: Files = REAL_FILES) -> None:
        super().__init__(path)
        self.release = release
        self.base_offsets = segment_base_offsets(path, files=files)
        self._files = files
        self._segment: SegmentAsFound | None = None
        if not self.base_offsets:
            raise SegproofError("no log whose name is an offset", law="FILE-1", path=path)

    def segment(self, base_offset: int) -> SegmentAsFound:
        """Return a segment; the one before is given back, since each is read into memory."""
        if self._segment is None or self._segment.base_offset != base_offset:
            self._segment = SegmentAsFound(self.path, base_offset, self.release, files=self._files)
        self._segment.steps = self._steps
        return self._segment

    def _why_no_batch(self, target: int) -> str:
        return f"the release finds no batch that reaches offset {target}"
