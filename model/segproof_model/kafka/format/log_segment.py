# SPDX-License-Identifier: Apache-2.0
"""The segment: a log, its offset, time and transaction index, and when to begin the next one.

Upstream: Kafka 4.4.0, LogSegment, FetchDataInfo, RollParams. Otherwise: log_segment_releases,
    log_segment_releases_before_2, log_segment_deviations.
Laws: SEG-1 to SEG-42, SEG-49.
Not covered: reading a log through a slice.
"""

from collections.abc import Iterator
from typing import NamedTuple

from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_file import (
    FileSlice,
    LogOffsetPosition,
    RecordFile,
    TimestampAndOffset,
)
from segproof_model.kafka.format.segment_entries import SegmentEntries
from segproof_model.kafka.format.segment_recovery import (
    LearnsEpochs,
    LearnsProducers,
    SegmentRecovery,
)
from segproof_model.kafka.format.time_index import TimestampOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn, TxnIndexSearchResult
from segproof_model.language.integers import INT32_MAX, INT64_MAX, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

COPY_BUFFER_BYTES = 1024 * 1024
"""A chunk of `append_from_file` stays below it, unless one batch alone is larger."""


class FetchDataInfo(NamedTuple):
    """What a read found."""

    fetch_offset_metadata: LogOffsetMetadata
    records: FileSlice | None
    """The slice of the log; None for no records."""
    first_entry_incomplete: bool = False
    """Whether fewer bytes were asked for than the first batch has."""
    aborted_transactions: tuple[AbortedTxn, ...] | None = None
    """Filled in by the log, not by the segment."""


class RollParams(NamedTuple):
    """What is about to be appended, and the limits."""

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size: int
    now: int


class LogSegment(SegmentEntries):
    """A segment.

    >>> from segproof_model.kafka.format.batch_writing import write_batch
    >>> from segproof_model.kafka.format.log_config import LogConfig
    >>> from segproof_model.kafka.format.record import Record
    >>> from segproof_model.language.files import Files
    >>> segment = LogSegment(Files(), "", 40, LogConfig())
    >>> data = write_batch([Record(40, 1000, None, b"hello")], base_offset=40)
    >>> segment.append(40, MemoryRecords(data))
    >>> segment.read_next_offset(), segment.max_timestamp_so_far, segment.read(41, 100)
    (41, 1000, None)
    """

    # --- writing -------------------------------------------------------------------------------

    def append(self, largest_offset: int, records: MemoryRecords) -> None:
        """Write batches behind the others, and index each of them (SEG-1 to SEG-10).

        Whatever indexing makes of them, the bytes stay.
        """
        if not records.data:
            return
        position = self.size
        self.ensure_offset_in_range(largest_offset)
        self.append_to_log(records)
        for batch in records.batches():
            self.take_maximum(self.maximum_of(batch))
            if self.bytes_since_last_index_entry > self.config.index_interval_bytes:
                self.enter_indexes(self.key_of(batch), position + batch.position)
                self.bytes_since_last_index_entry = 0
            self.bytes_since_last_index_entry += batch.size_bytes

    def append_to_log(self, records: MemoryRecords) -> None:
        """Write behind the last batch."""
        self.log.append(records.data)

    def append_from_file(self, records: RecordFile, start: int) -> int:
        """Append the batches of another file from a position on, while an index can hold them.

        Return the number of bytes (SEG-42). An error leaves the chunks before it.
        """
        position, capacity = start, COPY_BUFFER_BYTES
        while position < start + records.size:
            size = self.append_chunk(records, position, capacity)
            if size == 0:
                break
            position += size
            capacity = max(capacity, size)
        return position - start

    def append_chunk(self, source: RecordFile, position: int, capacity: int) -> int:
        """Append in one call the batches from a position on that belong into it."""
        size = largest_offset = 0
        for batch in self.appendable_batches(source, position, capacity):
            size, largest_offset = size + batch.size_bytes, batch.last_offset
        self.append(largest_offset, self.copied(source, position, size))
        return size

    def copied(self, source: RecordFile, position: int, size: int) -> MemoryRecords:
        """Return bytes of a file as records in memory."""
        data = source.image[position : position + size]
        return self.kind(MemoryRecords)(data, codecs=self.log.codecs)

    def appendable_batches(
        self, source: RecordFile, position: int, capacity: int
    ) -> Iterator[RecordBatch]:
        """Yield as many batches as stay below the capacity, but at least one."""
        size = 0
        for batch in source.batches(position):
            fits = size == 0 or size + batch.size_bytes < capacity
            if not (self.can_convert_to_relative_offset(batch.last_offset) and fits):
                return
            size += batch.size_bytes
            yield batch

    # --- reading -------------------------------------------------------------------------------

    def indexed_place(self, offset: int) -> int:
        """Return the position from which a search for the offset begins."""
        return self.offset_index.lookup(offset).position

    def translate_offset(
        self, offset: int, starting_file_position: int = 0
    ) -> LogOffsetPosition | None:
        """Return the place of the first batch that reaches the offset, or None (SEG-12)."""
        position = max(self.indexed_place(offset), starting_file_position)
        return self.log.search_for_offset_with_size(offset, position)

    def read(
        self,
        start_offset: int,
        max_size: int,
        max_position: int | None = INT32_MAX,
        min_one_message: bool = False,
    ) -> FetchDataInfo | None:
        """Return the batches from the first that reaches the offset on (SEG-13 to SEG-18).

        None if no batch reaches it. `max_position` is exclusive, in bytes; None: not known, which
        gives no records. (Java's default is the size. It is the same: a slice ends with the log.)
        """
        if max_size < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        found = self.translate_offset(start_offset)
        if found is None:
            return None
        metadata = LogOffsetMetadata(found.offset, self.base_offset, found.position)
        adjusted = max(max_size, found.size_bytes) if min_one_message else max_size
        if adjusted == 0 or max_position is None:
            return FetchDataInfo(metadata, None)
        fetch_size = min(self.room(max_position - found.position), adjusted)
        records = self.log.slice(found.position, fetch_size)
        return FetchDataInfo(metadata, records, adjusted < found.size_bytes)

    def room(self, size: int) -> int:
        """Return the room up to the largest position: cut to 32 bits (SEG-16)."""
        return wrap32(size)

    def fetch_upper_bound_offset(
        self, start_offset_position: OffsetPosition, fetch_size: int
    ) -> int | None:
        """Return the first indexed offset behind a fetch of this size, or None (SEG-19)."""
        found = self.offset_index.fetch_upper_bound_offset(start_offset_position, fetch_size)
        return None if found is None else found.offset

    def read_next_offset(self) -> int:
        """Return the offset behind the last batch that is found from the last entry on (SEG-35).

        The base offset if there is none.
        """
        found = self.read(self.offset_index.last_offset, self.size, self.size)
        if found is None or found.records is None:
            return self.base_offset
        batches = list(found.records.batches())
        return batches[-1].next_offset if batches else self.base_offset

    def has_overflow(self) -> bool:
        """Return whether the last offset is too far from the base for an index (SEG-41)."""
        next_offset = self.read_next_offset()
        is_used = next_offset > self.base_offset
        return is_used and not self.can_convert_to_relative_offset(next_offset - 1)

    def find_offset_by_timestamp(
        self, timestamp_ms: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record at or after both the timestamp and the offset (SEG-39)."""
        entry = self.time_index.lookup(timestamp_ms)
        position = self.indexed_place(max(entry.offset, starting_offset))
        return self.log.search_for_timestamp(timestamp_ms, position, starting_offset)

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Return the aborted transactions that meet [fetch, upper bound) (TXNIDX-10, -11)."""
        return self.txn_index.collect_aborted_txns(fetch_offset, upper_bound_offset)

    # --- cutting -------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove the batches from the first on that reaches the offset (SEG-31 to SEG-34).

        Return the number of bytes. The indexes are cut and grown even if there is none.
        """
        size = self.size
        self.truncate_files(offset)
        self.bytes_since_last_index_entry = 0
        if self.size == 0:
            self.created_ms, self.rolling_based_timestamp = self.files.now_ms, None
        removed = size - self.size
        # What is left may be damaged: that is seen when it is read, and then it is cut already.
        if self.max_timestamp_so_far >= 0:
            self.max_timestamp_and_offset_so_far = self.read_largest_timestamp()
        return removed

    def truncate_files(self, offset: int) -> None:
        """Cut the indexes, then the log."""
        found = self.translate_offset(offset)
        self.truncate_indexes(offset)
        if found is not None:
            self.log.truncate_to(found.position)

    def truncate_indexes(self, offset: int) -> None:
        """Cut the three indexes, both lazy ones loaded before, and give those all their room."""
        offset_index, time_index = self.offset_index, self.time_index
        offset_index.truncate_to(offset)
        time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        offset_index.resize(self.config.segment_index_bytes)
        time_index.resize(self.config.segment_index_bytes)

    def read_largest_timestamp(self) -> TimestampOffset:
        """Return the largest timestamp of the last time entry and the batches behind it."""
        last = self.time_index.last_entry
        found = self.log.largest_timestamp_after(self.indexed_place(last.offset))
        behind = TimestampOffset(found.timestamp, found.offset)
        return behind if behind.timestamp > last.timestamp else last

    def recover(
        self,
        producer_state_manager: LearnsProducers | None,
        leader_epoch_cache: LearnsEpochs | None,
    ) -> int:
        """Keep the valid batches at the beginning, and build every index anew (SEG-20 to -30).

        Return the number of bytes removed. What is learned of producers and epochs is told to the
        ones that are given.
        """
        recovery = self.kind(SegmentRecovery)(self, producer_state_manager, leader_epoch_cache)
        return recovery.recover()

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp, or if it is negative the log's time of modification (SEG-40)."""
        timestamp = self.max_timestamp_so_far
        return timestamp if timestamp >= 0 else self.last_modified

    @property
    def largest_record_timestamp(self) -> int | None:
        """The largest timestamp, or None if it is negative."""
        timestamp = self.max_timestamp_so_far
        return timestamp if timestamp >= 0 else None

    # --- when the next segment begins ----------------------------------------------------------

    def first_timestamp(self) -> int:
        """Return the kept timestamp for the age, or the first batch's largest; else -1."""
        if self.rolling_based_timestamp is None:
            first = next(self.log.batches(), None)
            if first is not None:
                self.rolling_based_timestamp = first.max_timestamp
        return -1 if self.rolling_based_timestamp is None else self.rolling_based_timestamp

    def get_first_batch_timestamp(self) -> int:
        """Return the timestamp that the age is counted from, or the largest 64-bit integer."""
        first = self.first_timestamp()
        return INT64_MAX if first < 0 else first

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        """Return the age in ms that a message with this timestamp gives the segment (SEG-36)."""
        first = self.first_timestamp()
        return self.milliseconds(message_timestamp - first if first >= 0 else now - self.created_ms)

    def milliseconds(self, duration: int) -> int:
        """Return the difference of two times: cut to 64 bits."""
        return wrap64(duration)

    def should_roll(self, roll_params: RollParams) -> bool:
        """Return whether what comes next belongs into a new segment (SEG-37).

        The indexes are loaded only if neither size nor age decides.
        """
        waited = self.time_waited_for_roll(roll_params.now, roll_params.max_timestamp_in_messages)
        is_old = waited > self.milliseconds(roll_params.max_segment_ms - self.roll_jitter_ms)
        return (
            self.size > roll_params.max_segment_bytes - roll_params.messages_size
            or (self.size > 0 and is_old)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.can_convert_to_relative_offset(roll_params.max_offset_in_messages)
        )

    def on_become_inactive_segment(self) -> None:
        """Write the last time entry, and cut what no entry and no batch uses (SEG-38)."""
        self.write_maximum()
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()
