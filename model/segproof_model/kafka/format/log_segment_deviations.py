# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with a segment."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from segproof_model.kafka.format import log_segment, segment_recovery
from segproof_model.kafka.format.lazy_index import LazyIndex
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import BATCH_HEADER_BYTES, RecordBatch
from segproof_model.kafka.format.time_index import TimestampOffset
from segproof_model.language.behaviours import Behaviour, each, guarded, override
from segproof_model.language.integers import INT32_MAX, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refusal, refuse, undone_if_refused


@contextmanager
def undone_but_for_loading(segment: LogSegment) -> Iterator[None]:
    """Undo what an error leaves, but that indexes were loaded."""
    lazy: tuple[LazyIndex[Any], ...] = (segment.lazy_offset_index, segment.lazy_time_index)
    loaded: list[bool] = []
    try:
        with undone_if_refused(segment):
            try:
                yield
            finally:
                loaded = [one.index is not None for one in lazy]
    except Refused:
        for one, was_loaded in zip(lazy, loaded, strict=True):
            if was_loaded:
                refusal(one.get)
        raise


class FailedSegmentChangeIsUndone(Behaviour):
    """An operation on a segment that fails has changed nothing, but that indexes are loaded."""

    laws = ("SEG-10", "SEG-32", "SEG-46")
    of_segproof = True

    @each(
        "append truncate_files on_become_inactive_segment resize_indexes sanity_check"
        " change_file_suffixes set_last_modified",
        undone_but_for_loading,
    )
    class LogSegment(log_segment.LogSegment):
        """The segment."""


class BatchesAreReadFirst(Behaviour):
    """Batches that can't be read are refused before an index is changed."""

    laws = ("SEG-10", "SEG-23")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def append_to_log(self, records: MemoryRecords) -> None:
            super().append_to_log(records)
            for batch in records.batches():
                self.maximum_of(batch)

        def key_or(self, batch: RecordBatch, largest_offset: int) -> int:
            """Where a call's first offset is its key: one that can't be read is refused."""
            return self.key_of(batch)

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def index(self, batch: RecordBatch) -> None:
            self.segment.maximum_of(batch)
            if self.is_entry_due():
                self.segment.key_of(batch)
            super().index(batch)


class RecoveryEndsWhereOffsetsFall(Behaviour):
    """A recovery ends before a batch whose stored offset, which no checksum covers, is below the
    base of the segment or not above the last offset of the batch before, unless that one fits
    between the batches beside it.
    """

    laws = ("SEG-20", "SEG-27", "LOAD-6", "LOAD-9", "LOAD-17")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        flushed_end = 0
        """The offset below which all was flushed, if that is known."""

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        before: tuple[range, range]
        """The offsets of the two batches before; at first none, below the segment's base."""

        @override
        def begin(self) -> None:
            super().begin()
            self.before = no_batches(self.segment.base_offset)

        @override
        def checked(self, batch: RecordBatch) -> RecordBatch:
            batch = super().checked(batch)
            offsets = offsets_of(batch)
            if not self.is_flushed(self.before[1].stop) and is_torn(offsets.start, self.before):
                refuse(ErrorKind.CORRUPT_RECORD)
            self.before = self.before[1], offsets
            return batch

        def is_flushed(self, offset: int) -> bool:
            """Return whether what was appended at an offset is known to be flushed."""
            segment: Any = self.segment
            return bool(offset < segment.flushed_end)


def no_batches(base_offset: int) -> tuple[range, range]:
    """Return what lies before the first batch of a segment."""
    return range(base_offset, base_offset), range(base_offset, base_offset)


def offsets_of(batch: RecordBatch) -> range:
    """Return the offsets from the stored one to the last: of a message before magic 2 both are
    the last.
    """
    first = batch.last_offset if batch.is_legacy else batch.base_offset
    return range(first, batch.last_offset + 1)


def is_torn(stored_offset: int, before: tuple[range, range]) -> bool:
    """Return whether a batch may have lost its stored offset: it is not above the batch before,
    which does not fit between the batches beside it.
    """
    earlier, last = before
    has_room = stored_offset - earlier.stop >= len(last)
    return stored_offset < last.stop and not has_room


class IndexesAreLoadedFirst(Behaviour):
    """A segment loads what it will index with before it begins, and for a question nothing."""

    laws = ("SEG-10", "SEG-42")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        def load_indexes(self) -> None:
            """Load both indexes."""
            self.lazy_offset_index.get()
            self.lazy_time_index.get()

        @override
        def append(self, largest_offset: int, records: MemoryRecords, *told: object) -> None:
            if records.data:
                self.load_indexes()
                self.read_max_timestamp_and_offset_so_far()
            super().append(largest_offset, records, *told)

        @override
        def resize_indexes(self, size: int) -> None:
            self.load_indexes()
            super().resize_indexes(size)

        @override
        def can_convert_to_relative_offset(self, offset: int) -> bool:
            return 0 <= wrap64(offset - self.base_offset) <= INT32_MAX

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def begin(self) -> None:
            self.segment.lazy_offset_index.get()
            self.segment.lazy_time_index.get()
            super().begin()


class TruncationAsksForMaximum(Behaviour):
    """Truncating a segment whose largest timestamp was not asked for asks for it before."""

    laws = ("SEG-34",)
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def truncate_indexes(self, offset: int) -> None:
            self.read_max_timestamp_and_offset_so_far()
            super().truncate_indexes(offset)


class NumbersOfSegmentDoNotWrap(Behaviour):
    """The room up to the largest position, and the age of a segment, are not cut to their bits."""

    laws = ("SEG-16", "SEG-36", "SEG-37")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def room(self, size: int) -> int:
            return size

        @override
        def milliseconds(self, duration: int) -> int:
            return duration


class SmallBatchIsRefused(Behaviour):
    """append refuses a batch that is smaller than its header."""

    laws = ("SEG-3", "BATCH-14")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def maximum_of(self, batch: RecordBatch) -> TimestampOffset:
            if not batch.is_legacy and batch.size_bytes < BATCH_HEADER_BYTES:
                refuse(ErrorKind.CORRUPT_RECORD)
            return super().maximum_of(batch)


class EntryOutsideIsCorrupt(Behaviour):
    """A search that an index entry sends outside of the log raises the corrupt-index error."""

    laws = ("SEG-7", "SEG-12")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def indexed_place(self, offset: int) -> int:
            position = super().indexed_place(offset)
            if not 0 <= position <= self.size:
                refuse(ErrorKind.CORRUPT_INDEX)
            return position


def check_open(segment: "ClosedSegmentIsClosed.LogSegment") -> None:
    """Refuse any use of a segment that was closed."""
    if segment.is_closed:
        refuse(ErrorKind.UNMAPPED)


class ClosedSegmentIsClosed(Behaviour):
    """Every use of a closed segment raises the unmapped error, but closing it again does
    nothing.
    """

    laws = ("SEG-44",)
    of_segproof = True

    @guarded(
        "append append_from_file truncate_to recover translate_offset read"
        " fetch_upper_bound_offset read_next_offset find_offset_by_timestamp update_txn_index"
        " collect_aborted_txns resize_indexes sanity_check read_max_timestamp_and_offset_so_far"
        " time_waited_for_roll get_first_batch_timestamp on_become_inactive_segment flush",
        check_open,
    )
    class LogSegment(log_segment.LogSegment):
        """The segment."""

        is_closed = False
        """Whether it was closed or deleted, were it with an error."""

        @override
        def close(self) -> None:
            if not self.is_closed:
                try:
                    super().close()
                finally:
                    self.is_closed = True

        @override
        def close_handlers(self) -> None:
            super().close_handlers()
            self.is_closed = True

        @override
        def delete_if_exists(self) -> None:
            try:
                super().delete_if_exists()
            finally:
                self.is_closed = True
