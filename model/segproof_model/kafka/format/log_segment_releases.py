# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with a segment and its lazy indexes, newest first.

Those before 2.0: log_segment_releases_before_2.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from segproof_model.kafka.format import lazy_index, log_segment, segment_recovery
from segproof_model.kafka.format.log_segment import FetchDataInfo
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_file import (
    NO_OFFSET,
    NO_TIMESTAMP,
    RecordFile,
)
from segproof_model.kafka.format.time_index import TimestampOffset
from segproof_model.language.behaviours import Behaviour, guarded, override, up_to
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refusal, refuse


class ClosingWritesLastEntry(Behaviour):
    """Closing a segment writes the time entry of the largest timestamp, if that is known."""

    laws = ("SEG-44",)
    releases = up_to("4.3.1")
    of_segproof = True

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def close(self) -> None:
            if self.has_entry_to_write():
                refusal(self.write_maximum)
            super().close()

        def has_entry_to_write(self) -> bool:
            """Return whether the largest timestamp is known."""
            return self.max_timestamp_and_offset_so_far is not None


class Told(NamedTuple):
    """What a caller of append knows of the records; what is None is taken from them."""

    first_offset: int | None = None
    largest_timestamp: int | None = None
    offset_of_max_timestamp: int | None = None


NOTHING_TOLD = Told()


def batches_until_error(records: MemoryRecords) -> list[RecordBatch]:
    """Return the batches of records before what can't be scanned."""
    found: list[RecordBatch] = []
    with suppress(Refused):
        for batch in records.batches():
            found.append(batch)
    return found


def maximum_of_call(
    segment: log_segment.LogSegment, records: MemoryRecords, told: Told
) -> TimestampOffset:
    """Return the largest timestamp of a call; what can't be read does not count."""
    found: list[TimestampOffset] = []
    for batch in batches_until_error(records):
        with suppress(Refused):
            found.append(segment.maximum_of(batch))
    best = max(
        found, key=lambda one: one.timestamp, default=TimestampOffset(NO_TIMESTAMP, NO_OFFSET)
    )
    timestamp, offset = told.largest_timestamp, told.offset_of_max_timestamp
    return TimestampOffset(
        best.timestamp if timestamp is None else timestamp,
        best.offset if offset is None else offset,
    )


class CallIsIndexedAsAWhole(Behaviour):
    """append looks once for the whole call whether an index entry is due, not at each batch."""

    laws = ("SEG-4", "SEG-5", "SEG-26")
    releases = up_to("4.0.0", but=("3.9.2",))

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def append(
            self, largest_offset: int, records: MemoryRecords, told: Told = NOTHING_TOLD
        ) -> None:
            if not records.data:
                return
            position = self.size
            self.ensure_offset_in_range(largest_offset)
            self.append_to_log(records)
            self.take_maximum(maximum_of_call(self, records, told))
            if self.bytes_since_last_index_entry > self.config.index_interval_bytes:
                self.enter_indexes(self.key_of_call(largest_offset, records, told), position)
                self.bytes_since_last_index_entry = 0
            self.bytes_since_last_index_entry += len(records.data)

        def key_of_call(self, largest_offset: int, records: MemoryRecords, told: Told) -> int:
            """Return the offset under which a call is indexed."""
            return largest_offset

        @override
        def append_chunk(self, source: RecordFile, position: int, capacity: int) -> int:
            """The largest timestamp is that of the headers in the other file."""
            size = largest_offset = 0
            largest = Told()
            for batch in self.appendable_batches(source, position, capacity):
                size, largest_offset = size + batch.size_bytes, batch.last_offset
                timestamp = batch.max_timestamp
                if largest.largest_timestamp is None or timestamp > largest.largest_timestamp:
                    largest = Told(None, timestamp, largest_offset)
            self.append(largest_offset, self.copied(source, position, size), largest)
            return size


class FirstAppendAgesSegment(Behaviour):
    """The first append keeps its largest timestamp for rolling, even if it fails."""

    laws = ("SEG-2", "SEG-36")
    releases = up_to("4.0.0", but=("3.9.2",))

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def append(self, largest_offset: int, records: MemoryRecords, *told: Any) -> None:
            if records.data and self.size == 0:
                first = maximum_of_call(self, records, *(told or (NOTHING_TOLD,)))
                self.rolling_based_timestamp = first.timestamp
            super().append(largest_offset, records, *told)


def append_told(
    segment: log_segment.LogSegment, largest_offset: int, records: MemoryRecords, told: Told
) -> None:
    """Append; a release that indexes a call as a whole is told what its caller knows."""
    release, whole = segment.release, CallIsIndexedAsAWhole
    asks = release is not None and release.has(whole)
    segment.append(largest_offset, records, *((told,) if asks else ()))


class CloseHidesErrors(Behaviour):
    """Closing a segment closes every part, and raises nothing."""

    laws = ("SEG-44",)
    releases = up_to("4.0.0")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def close_parts(self) -> None:
            for part in (self.lazy_offset_index, self.lazy_time_index, self.log, self.txn_index):
                refusal(part.close)


class ReadAnswersOffsetAskedFor(Behaviour):
    """A read says that it begins at the offset that was asked for, not at the batch's."""

    laws = ("SCAN-17",)
    releases = up_to("3.9.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def read(self, start_offset: int, *arguments: Any, **named: Any) -> FetchDataInfo | None:
            found = super().read(start_offset, *arguments, **named)
            if found is None:
                return None
            metadata = found.fetch_offset_metadata._replace(message_offset=start_offset)
            return found._replace(fetch_offset_metadata=metadata)


class UnknownMaximumIsAValue(Behaviour):
    """A largest timestamp of -1 with offset -1 counts as unknown: the time index is asked again."""

    laws = ("SEG-8", "SEG-49")
    releases = up_to("3.6.2", since="3.4.1")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def read_max_timestamp_and_offset_so_far(self) -> TimestampOffset:
            if self.max_timestamp_and_offset_so_far == (-1, -1):
                self.max_timestamp_and_offset_so_far = None
            return super().read_max_timestamp_and_offset_so_far()


class TruncationLoadsIndexesLate(Behaviour):
    """Truncating a segment opens an index when that is cut, not both before."""

    laws = ("SEG-31",)
    releases = up_to("3.6.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def truncate_indexes(self, offset: int) -> None:
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            self.txn_index.truncate_to(offset)
            self.resize_indexes(self.config.segment_index_bytes)


class OverflowNamesMaximum(Behaviour):
    """The segment-overflow error names the largest timestamp, for which the time index is loaded,
    or made where there is none.
    """

    laws = ("SEG-2", "SEG-27")
    releases = up_to("3.6.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def ensure_offset_in_range(self, offset: int) -> None:
            if not self.can_convert_to_relative_offset(offset):
                self.read_max_timestamp_and_offset_so_far()
            super().ensure_offset_in_range(offset)


class FailedReloadTakesEntry(Behaviour):
    """After a truncation that leaves what can't be read, the last time entry's is the largest."""

    laws = ("SEG-34",)
    releases = up_to("3.6.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def read_largest_timestamp(self) -> TimestampOffset:
            self.max_timestamp_and_offset_so_far = self.time_index.last_entry
            return super().read_largest_timestamp()


class RecoveryKeepsOffsetOfMaximum(Behaviour):
    """Recovery forgets the largest timestamp, but not its offset."""

    laws = ("SEG-29",)
    releases = up_to("2.8.2")

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def begin(self) -> None:
            known = self.segment.max_timestamp_and_offset_so_far
            super().begin()
            if known is not None:
                forgotten = known._replace(timestamp=NO_TIMESTAMP)
                self.segment.max_timestamp_and_offset_so_far = forgotten


class ClosingLoadsIndexes(Behaviour):
    """Renaming, deleting and closing an index that is not loaded load it."""

    laws = ("LAZY-1", "LAZY-2", "SEG-45")
    releases = up_to("2.4.1")

    @guarded("rename_to delete_if_exists close close_handler", lazy_index.LazyIndex.get)
    class LazyIndex(lazy_index.LazyIndex[Any]):
        """A lazy index."""


class ClosingAsksForMaximum(Behaviour):
    """Closing a segment loads the largest timestamp to write its entry."""

    laws = ("SEG-44",)
    releases = up_to("2.4.1")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        def has_entry_to_write(self) -> bool:
            """Answer yes: closing writes the largest timestamp, even an unknown one."""
            return True


class EpochZeroIsPassedOver(Behaviour):
    """recover does not enter leader epoch 0 into the epoch cache."""

    laws = ("SEG-28",)
    releases = up_to("2.4.1", since="2.1.1")

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def learn_epoch(self, batch: RecordBatch) -> None:
            if batch.partition_leader_epoch != 0:
                super().learn_epoch(batch)


class IndexesOpenAtOnce(Behaviour):
    """Opening a segment opens both indexes, and reads the largest timestamp."""

    laws = ("FILE-4", "LAZY-1", "SEG-48", "SEG-49", "LOAD-5")
    releases = up_to("2.2.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.lazy_offset_index.get()
            self.read_max_timestamp_and_offset_so_far()


class SanityChecksIndexes(Behaviour):
    """sanity_check of a segment looks at the offset and the time index too."""

    laws = ("SEG-43", "LOAD-8", "LOAD-9", "LOAD-10", "LOAD-16", "LOAD-19")
    releases = up_to("2.2.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def sanity_check(self, time_index_file_newly_created: bool) -> None:
            if self.lazy_offset_index.name not in self.files:
                refuse(ErrorKind.FILE_NOT_FOUND)
            self.offset_index.sanity_check()
            if time_index_file_newly_created:
                self.time_index.resize(0)
            self.time_index.sanity_check()
            self.txn_index.sanity_check()
