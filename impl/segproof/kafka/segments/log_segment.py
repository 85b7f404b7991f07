# SPDX-License-Identifier: Apache-2.0
"""A segment: a stretch of a log, its record file with its three indexes.

Upstream: Kafka, LogSegment (4.3.1).
Laws: SEG-1 to SEG-49.
"""

from collections.abc import Callable
from operator import index as to_int
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segproof.closing import told_state
from segproof.errors import InvalidArgumentError, SegproofError
from segproof.integers import INT32_MAX, INT64_MAX, as_int64, make_tuple
from segproof.kafka import index_entries
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.offset_index import OffsetPosition
from segproof.kafka.producer_append_info import CompletedTxn
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_file import LogOffsetPosition, RecordFile, TimestampAndOffset
from segproof.kafka.segments import bulk_search
from segproof.kafka.segments.log_search import checked_start, find_batch_in, find_record_in
from segproof.kafka.segments.segment_files import SegmentFiles
from segproof.kafka.segments.segment_recovery import SegmentRecovery, append_aborted_txn
from segproof.kafka.time_index import TimestampOffset
from segproof.kafka.transaction_index import AbortedTxn, TxnIndexSearchResult
from segproof.kernels.segment_rules import fits_segment, read_size, roll_is_due, time_waited


class FetchDataInfo(NamedTuple):
    """What a read found."""

    fetch_offset_metadata: LogOffsetMetadata
    """The base offset of the first batch, and where it lies."""
    records: RecordFile | None
    """A slice of the log from that batch on; None: no bytes."""
    first_entry_incomplete: bool = False
    """Whether the size allowed is below that of the first batch."""
    aborted_transactions: tuple[AbortedTxn, ...] | None = None
    """The aborted transactions that meet the records, where they were asked for."""


class RollParams(NamedTuple):
    """What `should_roll` asks: limits of the log, and the records that are to be appended."""

    max_segment_ms: int
    max_segment_bytes: int
    max_timestamp_in_messages: int
    max_offset_in_messages: int
    messages_size: int
    """Bytes."""
    now: int
    """The wall clock in ms since 1970."""


class LogSegment(SegmentFiles):
    """One segment of a log, open for reading, or for writing where that was asked for.

    Made by `open`. Write: `append`, `append_many`, `append_from_file`, `truncate_to`, `recover`,
    `on_become_inactive_segment`, `update_txn_index`. Read: `read`, `read_many`,
    `translate_offset`, `read_next_offset`, `find_offset_by_timestamp`,
    `find_offset_by_timestamp_many`, `collect_aborted_txns`, `largest_timestamp`. Roll:
    `should_roll`, `time_waited_for_roll`. Files: `flush`, `close`, `change_file_suffixes`,
    `delete_if_exists`.

    One writer, any number of readers. Indexes are opened when they are first needed. Once closed,
    everything but renaming and deleting raises IndexClosedError. A change of a segment that is open
    for reading raises ReadOnlyError.
    """

    def __repr__(self) -> str:
        is_open = not self._is_closed
        state = told_state(f"{self.size} bytes", is_open=is_open, writable=self.writable)
        return f"LogSegment({self.log.name!r}, {state})"

    # --- writing

    def append(
        self,
        largest_offset: int,
        records: bytes,
        largest_timestamp: int | None = None,
        shallow_offset_of_max_timestamp: int | None = None,
    ) -> None:
        """Append ready batches, whose largest offset is given, and index them.

        The caller knows that they continue the log. A batch gets an index entry if more than
        `index_interval_bytes` lie between the last indexed batch and it. Where by the write format
        an append gets at most one entry, that has the largest timestamp and its offset as given, by
        default those of the first batch with the largest timestamp; else they are not looked at.

        Laws: SEG-1 to SEG-6, SEG-8 to SEG-11. Raises, with nothing changed but that the indexes are
        open: SegmentOffsetOverflowError; InvalidArgumentError above 2147483647 bytes; what the
        scanner of records in memory raises; what an index raises that takes no entry;
        IndexClosedError.
        """
        if len(records):
            given = largest_timestamp, shallow_offset_of_max_timestamp
            self.append_planned(records, self.plan_append(largest_offset, records, *given))
        else:
            self._check_writable()

    def plan_append(
        self,
        largest_offset: int,
        records: bytes,
        largest_timestamp: int | None = None,
        shallow_offset_of_max_timestamp: int | None = None,
    ) -> index_entries.Plan:
        """Return what `append` would do, for `append_planned`; raise what it would raise."""
        self._check_writable()
        largest_offset = to_int(largest_offset)
        offset_index, time_index, before = self.offset_index, self.time_index, self._indexing()
        if not fits_segment(largest_offset, self.base_offset):
            raise index_entries.segment_overflow(largest_offset, self.base_offset, self.log.name)
        position = self.log.size_in_bytes()
        entries: list[index_entries.IndexEntry] = []
        if self._is_batch_indexed:
            try:
                plan = index_entries.plan_batches(records, position, before, entries)
            except SegproofError:
                index_entries.check_entries(offset_index, time_index, entries)
                raise
        else:
            given = largest_timestamp, shallow_offset_of_max_timestamp
            plan = index_entries.plan_append(records, position, before, largest_offset, given)
        if plan[0]:
            index_entries.check_entries(offset_index, time_index, plan[0])
        return plan

    def _indexing(self) -> index_entries.Indexing:
        pair = self.read_max_timestamp_and_offset_so_far()
        interval = self.config.index_interval_bytes
        state = interval, self.bytes_since_last_index_entry, pair, self._is_first_offset_key
        return make_tuple(index_entries.Indexing, state)

    def append_planned(self, records: bytes, plan: index_entries.Plan) -> None:
        """Append what was planned, with nothing done in between. Raises: OSError."""
        entries, since, pair = plan
        offset_index, time_index = self.offset_index, self.time_index
        self.log.append(records)
        self.bytes_since_last_index_entry, self._max_pair = since, pair
        for entry in entries:
            offset_index.append(entry.offset, entry.position)
            time_index.maybe_append(*entry.max_pair)

    def append_many(self, records: bytes) -> None:
        """Append ready batches, any number in one buffer, as if each had been one `append`.

        One write, and the index entries of all at once. Memory: about 160 bytes a batch beside the
        buffer. Laws: SEG-25, SEG-26.

        Raises, with nothing changed: what the first `append` that fails would raise;
        CorruptRecordError for a batch that is cut off.
        """
        self._check_writable()
        if not len(records):
            return
        offset_index, time_index = self.offset_index, self.time_index
        before = self._indexing()
        plan = index_entries.plan_many(records, self.log, offset_index, time_index, before)
        fits = index_entries.entries_fit(offset_index, time_index, plan)
        if not fits:
            index_entries.check_entries(offset_index, time_index, plan.rows())
        self.log.append(records)
        self.bytes_since_last_index_entry, self._max_pair = plan.bytes_since, plan.max_pair
        store = index_entries.store_entries if fits else index_entries.store_each
        store(offset_index, time_index, plan)

    def append_from_file(self, records: RecordFile, start: int) -> int:
        """Append the batches of another log from `start` on; return the bytes that were copied.

        Ends before the first batch whose last offset does not fit this segment. Each piece of at
        most 1 MiB, or one batch, is one append. Law: SEG-42. Raises: as `append` and
        `RecordFile.batches`; the pieces before stay.
        """
        self._check_writable()
        start = position = to_int(start)
        while position < start + records.size_in_bytes():
            largest_offset, size = index_entries.piece_of(records, position, self.base_offset)
            if not size:
                break
            self.append(largest_offset, records.file.pread(size, position))
            position += size
        return position - start

    def update_txn_index(self, completed_txn: CompletedTxn, last_stable_offset: int) -> None:
        """Add a completed transaction to the index if it was aborted.

        Raises: as `TransactionIndex.append`.
        """
        self._check_writable()
        append_aborted_txn(self.txn_index, completed_txn, to_int(last_stable_offset))

    def truncate_to(self, offset: int) -> int:
        """Cut the log before the batch that holds `offset`, or the first one behind it.

        Return the bytes removed. The indexes lose what lies from `offset` on and get their full
        size again, also where no byte is removed. Laws: SEG-31 to SEG-34.

        Raises, with nothing changed: InvalidArgumentError where an index would keep more than its
        full size; as `translate_offset` and `TransactionIndex.truncate_to`. CorruptRecordError and
        CorruptIndexError also where what is left is damaged; then it is cut already.
        """
        self._check_writable()
        offset = to_int(offset)
        found = self.translate_offset(offset)
        offset_index, time_index = self.offset_index, self.time_index
        try:
            index_entries.check_room_after_truncation(offset_index, time_index, offset)
        except InvalidArgumentError:
            self.txn_index.place_of_truncation(offset)  # what it raises would come before
            raise
        pair = self._max_pair = (
            self.read_max_timestamp_and_offset_so_far()
        )  # of the entries before they are cut
        self.txn_index.truncate_to(offset)
        offset_index.truncate_to(offset)
        time_index.truncate_to(offset)
        offset_index.resize(offset_index.max_index_size_bytes)
        time_index.resize(time_index.max_index_size_bytes)
        end = self.log.end if found is None else found.position
        try:
            if pair.timestamp >= 0:
                # Before the cut: a reader must not look for a batch that is gone.
                self._max_pair = self._read_largest_timestamp(end)
        finally:
            removed = 0 if found is None else self.log.truncate_to(end)
            if self.log.size_in_bytes() == 0:
                self.created_ms = self._time()
                self.rolling_based_timestamp = None
            self.bytes_since_last_index_entry = 0
        return removed

    def _read_largest_timestamp(self, end: int) -> TimestampOffset:
        """Return the last time entry, or what lies behind it, up to `end`, and is larger."""
        log, entry = self.log.slice(0, end), self.time_index.last_entry
        position = checked_start(self.offset_index, entry.offset, log)
        largest = log.largest_timestamp_after(position)
        if largest.timestamp > entry.timestamp:
            return TimestampOffset(largest.timestamp, largest.offset)
        return entry

    def recover(
        self,
        producer_state_manager: ProducerStateManager | None = None,
        leader_epoch_cache: LeaderEpochFileCache | None = None,
        *,
        flushed_end: int = 0,
        before_cut: Callable[[], None] = lambda: None,
    ) -> int:
        """Cut the log behind its last valid batch and make all indexes new; return bytes cut off.

        Each batch is told to the producer state and each new epoch to the cache, where they are
        given; without a producer state the transaction index stays empty. Ends at the first batch
        whose checksum or size is wrong, and behind a control batch that can't be read. Also before
        one that may be a torn append, as its stored offset is below the base offset or not above
        the last offset of the batch before: not where that one ends below `flushed_end`, as all
        below was flushed, and not if that one fits between the batches beside it, as its own offset
        is too high. `before_cut` is done once that is known, before the first byte goes.

        Memory: a buffer as large as the largest batch, up to 32 MiB, and 2 MiB.
        Laws: SEG-20 to SEG-30. Raises, with the log as it was and the indexes half made:
        SegmentOffsetOverflowError; what an index raises that has no room, or gets first offsets of
        old messages that do not rise; what the producer state raises; OSError. IndexClosedError.
        """
        self._check_writable()
        offset_index, time_index = self.offset_index, self.time_index
        offset_index.reset()
        time_index.reset()
        self.txn_index.reset()
        recovery = SegmentRecovery(
            self.log,
            offset_index,
            time_index,
            self.txn_index,
            self.config.index_interval_bytes,
            is_first_offset_key=self._is_first_offset_key,
            producer_state_manager=producer_state_manager,
            leader_epoch_cache=leader_epoch_cache,
            torn_from=to_int(flushed_end),
        )
        try:
            recovery.run()
        finally:
            self._max_pair = pair = recovery.max_pair
        if recovery.valid_bytes < self.log.size_in_bytes():
            before_cut()
        truncated = self.log.truncate_to(recovery.valid_bytes)
        offset_index.trim_to_valid_size()
        time_index.maybe_append(*pair, True)
        time_index.trim_to_valid_size()
        return truncated

    # --- reading

    def translate_offset(
        self, offset: int, starting_file_position: int = 0
    ) -> LogOffsetPosition | None:
        """Return the first batch whose last offset is not below `offset`, or None.

        Cost: a search of the index, one read of the log, and a look at each header from there.
        Laws: SEG-12. Raises: CorruptRecordError for a damaged log; CorruptIndexError where the
        index points outside of the log, as after a crash; IndexClosedError.
        """
        if self._is_closed:
            raise self._closed()
        offset = to_int(offset)
        index = self._lazy_offset_index.get()
        position = index.lookup(offset).position
        if not 0 <= position <= self.log.end:
            position = checked_start(index, offset, self.log)
        if position < starting_file_position:
            position = to_int(starting_file_position)
        return find_batch_in(self.log, position, offset, self._read_ahead)

    def read(
        self,
        start_offset: int,
        max_size: int,
        max_position: int | None = INT32_MAX,
        min_one_message: bool = False,
    ) -> FetchDataInfo | None:
        """Return the records from the batch that holds `start_offset` on, or None without one.

        At most `max_size` bytes, up to `max_position`, exclusive; None as position means that it
        is not known, and gives no records. With `min_one_message` a first batch that is larger than
        `max_size` is given whole. No record is read: `records` is a slice of the log.

        Laws: SEG-13 to SEG-18. Raises: InvalidArgumentError for a negative size and for a position
        before the batch; as `translate_offset`.
        """
        max_size = to_int(max_size)
        if max_size < 0:
            self._check_open()
            raise InvalidArgumentError(
                "the maximum size is negative", law="SEG-13", path=self.log.name, actual=max_size
            )
        found = self.translate_offset(start_offset)
        if found is None:
            return None
        _, start, batch_size = found
        metadata = LogOffsetMetadata(found.offset, self.base_offset, start)
        allowed = batch_size if min_one_message and batch_size > max_size else max_size
        if allowed == 0 or max_position is None:
            return FetchDataInfo(metadata, None)
        size = read_size(max_size, batch_size, min_one_message, max_position, start)
        if size < 0:
            raise InvalidArgumentError(
                "the maximum position lies before the batch",
                law="SEG-16",
                path=self.log.name,
                expected=f"at least {start}",
                actual=max_position,
            )
        return FetchDataInfo(metadata, self.log.slice(start, size), allowed < batch_size)

    def read_many(self, start_offsets: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return position and size in bytes of the batch that each read would begin with.

        `translate_offset` of each offset, in any order; -1 and -1 where there is no batch. Memory:
        a block of 512 KiB, and 64 bytes an offset.

        Raises: InvalidArgumentError unless the offsets are one row of integers; as
        `translate_offset`.
        """
        self._check_open()
        return bulk_search.read_many(self.log, self.offset_index, start_offsets, self._read_ahead)

    def fetch_upper_bound_offset(
        self, start_offset_position: OffsetPosition, fetch_size: int
    ) -> int | None:
        """Return the offset of the first index entry at or behind the end of a fetch, or None.

        Law: SEG-19. Raises: IndexClosedError.
        """
        self._check_open()
        found = self.offset_index.fetch_upper_bound_offset(start_offset_position, fetch_size)
        return None if found is None else found.offset

    def read_next_offset(self) -> int:
        """Return the offset behind the last batch, or the base offset without one. Law: SEG-35.

        Also the base offset where the index's last offset lies behind the log.
        Raises: as `translate_offset`.
        """
        self._check_open()
        found = self.translate_offset(self.offset_index.last_offset)
        next_offset = self.base_offset
        if found is not None:
            for batch in self.log.batches(found.position):
                next_offset = batch.next_offset
        return next_offset

    def has_overflow(self) -> bool:
        """Return whether the last offset can't be told from the base offset. Law: SEG-41."""
        next_offset = self.read_next_offset()
        is_beyond = next_offset > self.base_offset
        return is_beyond and not fits_segment(next_offset - 1, self.base_offset)

    def find_offset_by_timestamp(
        self, timestamp_ms: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record at or after both the timestamp and the offset, or None.

        Laws: SEG-39. Raises: CorruptRecordError, InvalidRecordError for a damaged log;
        CorruptIndexError as `translate_offset`; IndexClosedError.
        """
        if self._is_closed:
            raise self._closed()
        timestamp_ms, starting_offset = as_int64(timestamp_ms), as_int64(starting_offset)
        offset = self._lazy_time_index.get().lookup(timestamp_ms).offset
        index = self._lazy_offset_index.get()
        offset = offset if offset > starting_offset else starting_offset
        position = index.lookup(offset).position
        if not 0 <= position <= self.log.end:
            position = checked_start(index, offset, self.log)
        return find_record_in(self.log, position, timestamp_ms, starting_offset, self._read_ahead)

    def find_offset_by_timestamp_many(
        self, timestamps: ArrayLike, starting_offset: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `find_offset_by_timestamp` of each timestamp: (timestamps, offsets).

        Both are -1 where there is no record. Memory: a block of 512 KiB, and 80 bytes a timestamp;
        compressed batches are inflated one after the other.

        Raises: InvalidArgumentError unless the timestamps are one row of integers; as
        `find_offset_by_timestamp`.
        """
        self._check_open()
        return bulk_search.find_offset_by_timestamp_many(
            self.log,
            self.offset_index,
            self.time_index,
            timestamps,
            as_int64(starting_offset),
            self._read_ahead,
        )

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Return the aborted transactions that meet the offsets up to the upper bound, exclusive.

        Raises: as `TransactionIndex.collect_aborted_txns`.
        """
        self._check_open()
        return self.txn_index.collect_aborted_txns(fetch_offset, upper_bound_offset)

    # --- the largest timestamp

    @property
    def max_timestamp_so_far(self) -> int:
        """The largest timestamp in ms; -1 if none is known. Loads the last time entry if needed."""
        return self.read_max_timestamp_and_offset_so_far().timestamp

    @property
    def offset_of_max_timestamp_so_far(self) -> int:
        """The last offset of the batch that has it first; loads as `max_timestamp_so_far`."""
        return self.read_max_timestamp_and_offset_so_far().offset

    def read_max_timestamp_and_offset_so_far(self) -> TimestampOffset:
        """Return both of one moment; loads as `max_timestamp_so_far`.

        Only the writer keeps what is loaded: a reader would put it in the place of a newer one.
        """
        self._check_open()
        pair = self._max_pair
        return self.time_index.last_entry if pair is None else pair

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp, or without one the log's modification time, in ms (SEG-40)."""
        timestamp = self.max_timestamp_so_far
        return timestamp if timestamp >= 0 else self.last_modified

    @property
    def largest_record_timestamp(self) -> int | None:
        """The largest timestamp in ms, or None without one."""
        timestamp = self.max_timestamp_so_far
        return timestamp if timestamp >= 0 else None

    # --- rolling

    def _first_batch_timestamp(self) -> int:
        """Return the first batch's largest timestamp; -1 without a batch."""
        if self.rolling_based_timestamp is None:
            self._check_open()
            for batch in self.log.batches():
                self.rolling_based_timestamp = batch.max_timestamp
                break
        return -1 if self.rolling_based_timestamp is None else self.rolling_based_timestamp

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        """Return for how many ms the segment has waited to be rolled. Law: SEG-36.

        From the first batch's timestamp to the message's, or without one by the wall clock.
        """
        self._check_open()
        first = self._first_batch_timestamp()
        return time_waited(to_int(now), to_int(message_timestamp), first, self.created_ms)

    def get_first_batch_timestamp(self) -> int:
        """Return the first batch's largest timestamp in ms, or 2^63 - 1 without one."""
        self._check_open()
        timestamp = self._first_batch_timestamp()
        return timestamp if timestamp >= 0 else INT64_MAX

    def should_roll(self, roll_params: RollParams) -> bool:
        """Return whether a new segment is due before the records are appended. Law: SEG-37.

        For its size or age, for a full index, or for offsets that would not fit.
        """
        limit_ms, limit_bytes, timestamp, offset, size_bytes, now = roll_params
        waited = self.time_waited_for_roll(now, timestamp)
        return (
            roll_is_due(self.size, limit_bytes, size_bytes, waited, limit_ms, self.roll_jitter_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not fits_segment(to_int(offset), self.base_offset)
        )

    def check_last_entry(self) -> None:
        """Return if `on_become_inactive_segment` would write the last time entry; else raise."""
        self.time_index.check_append(*self.read_max_timestamp_and_offset_so_far(), True)

    def on_become_inactive_segment(self) -> None:
        """Write the last time entry and cut all files behind what they hold. Law: SEG-38.

        Raises: what `TimeIndex.maybe_append` raises, with nothing changed; IndexClosedError.
        """
        self._check_writable()
        self.time_index.maybe_append(*self.read_max_timestamp_and_offset_so_far(), True)
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()
