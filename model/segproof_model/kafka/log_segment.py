# SPDX-License-Identifier: Apache-2.0
"""The segment: a log, its offset, time and transaction index, and when to begin the next one.

Mirrors: impl/segproof/kafka/log_segment.py.
Upstream: Kafka, LogSegment (since 1.1.1).
Laws: SEG-1 to SEG-49, FILE-3 to FILE-5.
Not covered: a `-future` directory whose files were moved away; reading a log through a slice.
Used by: log_segments, partition_log, the harness.

What can load an index, the largest timestamp or the first batch's returns a `Step`, also where it
only asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.kafka.compression import NO_CODECS, Codecs
from segproof_model.kafka.lazy_index import LazyIndex
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.offset_index import OffsetPosition
from segproof_model.kafka.producer_append_info import CompletedTxn
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.record_batch import BATCH_HEADER_BYTES, RecordBatch
from segproof_model.kafka.record_file import LogOffsetPosition, RecordFile, Scan, scan_memory
from segproof_model.kafka.segment_names import segment_file_name
from segproof_model.kafka.segment_parts import (
    FILE_NOT_FOUND,
    INVALID_ARGUMENT,
    UNMAPPED,
    run,
)
from segproof_model.kafka.segment_recovery import Recovered, recover
from segproof_model.kafka.segment_rolling import RollingSegment
from segproof_model.kafka.time_index import TimestampOffset
from segproof_model.kafka.transaction_index import (
    AbortedTxn,
    TransactionIndex,
    TxnIndexSearchResult,
)
from segproof_model.language.integers import INT32_MAX, INT64_MIN, wrap32
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

COPY_BUFFER_BYTES = 1024 * 1024
"""A chunk of `append_from_file` stays below it, unless one batch alone is larger."""


@dataclass(frozen=True, slots=True)
class FetchDataInfo:
    """What a read found."""

    fetch_offset_metadata: LogOffsetMetadata
    records: RecordFile | None
    """The slice of the log; None for no records."""
    first_entry_incomplete: bool = False
    """Whether fewer bytes were asked for than the first batch has."""
    aborted_transactions: tuple[AbortedTxn, ...] | None = None
    """Filled in by the log, not by the segment."""


class Appended(NamedTuple):
    """What one look at the indexes is about: a call of append, or one batch of it."""

    position: int
    """Where it begins in the log, in bytes."""
    size_bytes: int
    max_timestamp: int
    offset_of_max_timestamp: int
    index_key: int | Raised
    """The offset that an index entry gets; the first one of an old message may not be readable."""


@dataclass(frozen=True, slots=True)
class LogSegment(RollingSegment):
    """The state of a segment, and what it does.

    >>> from segproof_model.kafka.record_batch import Record, write_batch
    >>> segment = LogSegment.open("", 40, LogConfig()).after
    >>> batch = write_batch([Record(40, 1000, None, b"hello")], base_offset=40)
    >>> segment = segment.append(40, batch).after
    >>> segment.read_next_offset().outcome, segment.read(41, 100).outcome
    (41, None)
    """

    @classmethod
    def open(
        cls,
        dir: str,  # noqa: A002 - the name that Kafka gives it
        base_offset: int,
        config: LogConfig,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
        codecs: Codecs = NO_CODECS,
        now_ms: int = 0,
        modified_ms: int | None = None,
        roll_jitter_ms: int = 0,
    ) -> "Step[LogSegment | Directory]":
        """Open or create a segment; after a failure only the directory is left (FILE-4, SEG-49).

        `dir` is the name of a directory or empty; `modified_ms` tells of a log that exists when it
        was changed, otherwise now.
        """
        prefix = f"{dir}/" if dir else ""
        suffixes = [
            f"{kind}{file_suffix}" for kind in (".log", ".index", ".timeindex", ".txnindex")
        ]
        names = [prefix + segment_file_name(base_offset, suffix) for suffix in suffixes]
        log = RecordFile.open(
            names[0],
            True,
            file_already_exists,
            init_file_size,
            preallocate,
            directory=directory,
            profile=profile,
            codecs=codecs,
        )
        if isinstance(log.after, Directory):
            return Step(log.after, log.outcome)
        seen = log.after.directory
        max_size = config.segment_index_bytes
        is_new = names[0] not in directory or (preallocate and not file_already_exists)
        opened = cls(
            profile,
            seen,
            base_offset,
            config,
            log.after,
            LazyIndex.for_offset(names[1], base_offset, max_size, directory=seen, profile=profile),
            LazyIndex.for_time(names[2], base_offset, max_size, directory=seen, profile=profile),
            TransactionIndex.open(base_offset, names[3], directory=seen, profile=profile).after,
            created_ms=now_ms,
            now_ms=now_ms,
            modified_ms=now_ms if is_new or modified_ms is None else modified_ms,
            roll_jitter_ms=roll_jitter_ms,
        )
        return Step(opened) if profile.indexes_open_lazily else opened._loaded_at_once()

    def _loaded_at_once(self) -> "Step[LogSegment | Directory]":
        """Load both indexes and the largest timestamp, as the oldest releases do."""
        step = run(
            self,
            lambda one: one.ask_offset_index(lambda index: None),
            lambda one: one.load_maximum(),
        )
        failed = isinstance(step.outcome, Raised)
        return Step(step.after.directory, step.outcome) if failed else Step(step.after)

    # --- writing -------------------------------------------------------------------------------

    def append(
        self,
        largest_offset: int,
        records: bytes,
        largest_timestamp: int | None = None,
        shallow_offset_of_max_timestamp: int | None = None,
    ) -> Step[Self]:
        """Write batches behind the others, and index them (SEG-1 to SEG-10).

        Whatever indexing makes of them, the bytes stay; in segproof what fails writes nothing. The
        timestamp and its offset count where one call is indexed as a whole; not given, they are
        those of the first batch with the largest timestamp.
        """
        given = largest_timestamp, shallow_offset_of_max_timestamp
        return self.append_call(None, largest_offset, records, *given)

    def append_call(
        self,
        first_offset: int | None,
        largest_offset: int,
        records: bytes,
        largest_timestamp: int | None = None,
        shallow_offset_of_max_timestamp: int | None = None,
    ) -> Step[Self]:
        """Write batches as `append` does; where an index keeps the first offset of a call, the
        caller may say it. Not given, it is that of the first batch."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if not records:
            return Step(self)
        loaded = self.with_indexes_for_append()
        if isinstance(loaded.outcome, Raised):
            return loaded
        scan = scan_memory(records, codecs=self.log.codecs, profile=self.profile)
        given = largest_timestamp, shallow_offset_of_max_timestamp
        offsets = first_offset, largest_offset
        appended = list(self._appended(scan, len(records), offsets, *given))
        first = loaded.after
        look = next(iter(appended), None)
        is_first = self.profile.append_sets_rolling_timestamp and self.size == 0
        if is_first and isinstance(look, Appended):
            first = replace(first, rolling_based_timestamp=look.max_timestamp)
        step = run(
            first,
            lambda one: one.ensure_offset_in_range(largest_offset),
            lambda one: one._written(records),
            *(partial(type(self)._indexed, appended=one) for one in appended),
        )
        return loaded.after.unless_refused(step)

    def _appended(
        self,
        scan: Scan,
        size_bytes: int,
        offsets: tuple[int | None, int],
        largest_timestamp: int | None,
        offset_of_max_timestamp: int | None,
    ) -> Iterator[Appended | Raised]:
        """Tell what to index of a call: each batch up to an error, or the call as a whole.

        `offsets`: its first one, if that is told, and its largest. segproof refuses batches that
        can't be read before it looks at the indexes.
        """
        batches = [self._of_batch(batch, self.size) for batch in scan.batches]
        errors = [one for one in (*batches, scan.error) if isinstance(one, Raised)]
        if errors and self.profile.checks_before_changing:
            yield errors[0]
            return
        if self.profile.index_per_batch:
            yield from batches
            if scan.error is not None:
                yield scan.error
            return
        readable = [batch for batch in batches if isinstance(batch, Appended)]
        largest = TimestampOffset(-1, -1)
        if readable:
            best = max(readable, key=lambda batch: batch.max_timestamp)
            largest = TimestampOffset(best.max_timestamp, best.offset_of_max_timestamp)
        timestamp = largest.timestamp if largest_timestamp is None else largest_timestamp
        offset = largest.offset if offset_of_max_timestamp is None else offset_of_max_timestamp
        first_offset, largest_offset = offsets
        key: int | Raised = largest_offset
        if self.profile.index_key == "first_offset" and first_offset is not None:
            key = first_offset
        elif self.profile.index_key == "first_offset" and scan.batches:
            key = scan.batches[0].base_offset
            if isinstance(key, Raised) and not self.profile.checks_before_changing:
                key = largest_offset  # it is the caller's to say, who does not look into messages
        yield Appended(self.size, size_bytes, timestamp, offset, key)

    def _of_batch(self, batch: RecordBatch, position: int) -> Appended | Raised:
        """Tell what to index of one batch; `position`: of the call's first byte."""
        is_small = not batch.is_legacy and batch.size_bytes < BATCH_HEADER_BYTES
        if is_small and self.profile.small_batch_is_refused:
            return Raised(ErrorKind.CORRUPT_RECORD)
        max_timestamp, last_offset = batch.max_timestamp, batch.last_offset
        key = batch.base_offset if self.profile.index_key == "first_offset" else last_offset
        if isinstance(max_timestamp, Raised):
            return max_timestamp
        if isinstance(last_offset, Raised):
            return last_offset
        place = position + batch.position
        return Appended(place, batch.size_bytes, max_timestamp, last_offset, key)

    def _written(self, records: bytes) -> Step[Self]:
        step = self.with_log(self.log.append(records))
        if isinstance(step.outcome, Raised):
            return step
        return Step(replace(step.after, modified_ms=self.now_ms), step.outcome)

    def _indexed(self, appended: Appended | Raised) -> Step[Self]:
        """Keep a larger timestamp, and add the index entries that are due (SEG-4 to SEG-10)."""
        if isinstance(appended, Raised):
            return Step(self, appended)
        loaded = self.load_maximum()
        if isinstance(loaded.outcome, Raised):
            return loaded
        after = loaded.after.with_maximum(appended.max_timestamp, appended.offset_of_max_timestamp)
        if after.bytes_since_last_index_entry > after.config.index_interval_bytes:
            if isinstance(appended.index_key, Raised):
                return Step(after, appended.index_key)
            step = after.enter(appended.index_key, appended.position)
            if isinstance(step.outcome, Raised):
                return step
            after = replace(step.after, bytes_since_last_index_entry=0)
        count = after.bytes_since_last_index_entry + appended.size_bytes
        return Step(replace(after, bytes_since_last_index_entry=count))

    def append_from_file(self, records: RecordFile, start: int) -> Step[Self]:
        """Append the batches of another file from a position on, while an index can hold them.

        Return the number of bytes (SEG-42). An error leaves the chunks before it.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        source = replace(records, profile=self.profile)
        after, position, capacity = self, start, COPY_BUFFER_BYTES
        while position < start + source.size:
            step = after._append_chunk(source, position, capacity)
            if isinstance(step.outcome, Raised) or not isinstance(step.outcome, int):
                return step
            after = step.after
            if step.outcome == 0:
                break
            position += step.outcome
            capacity = max(capacity, step.outcome)
        return Step(after, position - start)

    def _append_chunk(self, records: RecordFile, position: int, capacity: int) -> Step[Self]:
        """Append as many batches in one call as stay below the capacity, but at least one.

        The largest timestamp of the call is that of the headers in the other file: the header of a
        batch that is too small for one goes on in the bytes of the next.
        """
        scan = records.batches(position)
        size, largest_offset, is_ended = 0, 0, False
        largest = TimestampOffset(INT64_MIN, INT64_MIN)
        asks_index = scan.batches and not self.profile.checks_before_changing
        step = self.ask_offset_index(lambda index: None) if asks_index else Step(self)
        if isinstance(step.outcome, Raised):
            return step
        for batch in scan.batches:
            last_offset = batch.last_offset
            if isinstance(last_offset, Raised):
                return Step(step.after, last_offset)
            fits = size == 0 or size + batch.size_bytes < capacity
            is_ended = not (self.can_hold(last_offset) and fits)
            if is_ended:
                break
            timestamp = INT64_MIN if self.profile.index_per_batch else batch.max_timestamp
            if isinstance(timestamp, Raised):
                return Step(step.after, timestamp)
            if timestamp > largest.timestamp:
                largest = TimestampOffset(timestamp, last_offset)
            size, largest_offset = size + batch.size_bytes, last_offset
        if scan.error is not None and not is_ended:
            return Step(step.after, scan.error)
        chunk = records.image[position : position + size]
        appended = step.after.append(largest_offset, chunk, *largest)
        failed = isinstance(appended.outcome, Raised)
        return appended if failed else Step(appended.after, size)

    def truncate_to(self, offset: int) -> Step[Self]:
        """Remove the batches from the first on that reaches the offset (SEG-31 to SEG-34).

        Return the number of bytes. The indexes are cut and grown even if there is none. In segproof
        an error of an index leaves all as it was.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        found = self.translate_offset(offset)
        if isinstance(found.outcome, Raised):
            return self.unless_refused(found)
        if found.outcome is None and self.profile.truncation_needs_match:
            return Step(found.after, 0)
        target = found.outcome[1] if isinstance(found.outcome, tuple) else self.size
        max_size = self.config.segment_index_bytes
        step = run(
            found.after,
            lambda one: (
                one.ask_time_index(lambda index: None)
                if one.profile.truncation_loads_indexes_first
                else Step(one)
            ),
            lambda one: Step(one) if one.profile.truncation_forgets_maximum else one.load_maximum(),
            lambda one: one.on_offset_index(lambda index: index.truncate_to(offset)),
            lambda one: one.on_time_index(lambda index: index.truncate_to(offset)),
            lambda one: one.with_txn_index(one.txn_index.truncate_to(offset)),
            lambda one: one.on_offset_index(lambda index: index.resize(max_size)),
            lambda one: one.on_time_index(lambda index: index.resize(max_size)),
            lambda one: (
                Step(one) if found.outcome is None else one.with_log(one.log.truncate_to(target))
            ),
        )
        if isinstance(step.outcome, Raised):
            return self.unless_refused(step)
        # What is left may be damaged: that is seen when it is read, and then it is cut already.
        ended = run(
            step.after._begun_again(),
            lambda one: one.load_maximum(),
            lambda one: one._with_largest_of_file(),
        )
        failed = isinstance(ended.outcome, Raised)
        return ended if failed else Step(ended.after, self.size - target)

    def _begun_again(self) -> Self:
        """Forget what counts bytes, and in an empty log also what counts time."""
        after = replace(self, bytes_since_last_index_entry=0)
        if after.size > 0:
            return after
        return replace(after, created_ms=self.now_ms, rolling_based_timestamp=None)

    def _with_largest_of_file(self) -> Step[Self]:
        """Take the largest timestamp from the time index and the batches behind its last entry."""
        if self.max_pair is None or self.max_pair.timestamp < 0:
            return Step(self)
        entry = self.ask_time_index(lambda index: index.last_entry)
        last = entry.outcome
        assert isinstance(last, TimestampOffset)
        entered = entry.after
        if self.profile.failed_reload_takes_entry:
            entered = replace(entered, max_pair=last)
        found = entered.indexed_place(last.offset)
        if not isinstance(found.outcome, OffsetPosition):
            return found
        largest = self.log.largest_timestamp_after(found.outcome.position)
        if isinstance(largest, Raised):
            return Step(found.after, largest)
        after = replace(found.after, max_pair=last)
        return Step(after.with_maximum(largest.timestamp, largest.offset))

    def recover(
        self,
        producer_state_manager: ProducerStateManager | None = None,
        leader_epoch_cache: LeaderEpochFileCache | None = None,
    ) -> Step[Recovered]:
        """Keep the valid batches at the beginning, and build every index anew (SEG-20 to -30).

        Return the number of bytes removed.
        """
        if self.is_refused:
            return Step(Recovered(self, producer_state_manager, leader_epoch_cache), UNMAPPED)
        return recover(self, producer_state_manager, leader_epoch_cache)

    # --- reading -------------------------------------------------------------------------------

    def translate_offset(self, offset: int, starting_file_position: int = 0) -> Step[Self]:
        """Return where the first batch is that reaches the offset, or None (SEG-12)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = self.indexed_place(offset)
        if not isinstance(step.outcome, OffsetPosition):
            return step
        position = max(step.outcome.position, starting_file_position)
        return Step(step.after, self.log.search_for_offset_with_size(offset, position))

    def read(
        self,
        start_offset: int,
        max_size: int,
        max_position: int | None = INT32_MAX,
        min_one_message: bool = False,
    ) -> Step[Self]:
        """Return the batches from the first that reaches the offset on (SEG-13 to SEG-18).

        None if no batch reaches it. `max_position` is exclusive, in bytes; None: not known, which
        gives no records.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        if max_size < 0:
            return Step(self, INVALID_ARGUMENT)
        step = self.translate_offset(start_offset)
        found = step.outcome
        if not isinstance(found, LogOffsetPosition):
            return step
        is_base = self.profile.search_answers_base_offset
        offset = found.offset if is_base else start_offset
        metadata = LogOffsetMetadata(offset, self.base_offset, found.position)
        adjusted = max(max_size, found.size_bytes) if min_one_message else max_size
        if adjusted == 0 or max_position is None:
            return Step(step.after, FetchDataInfo(metadata, None))
        room = max_position - found.position
        fetch_size = min(wrap32(room) if self.profile.read_size_wraps else room, adjusted)
        records = self.log.slice(found.position, fetch_size)
        if isinstance(records, Raised):
            return Step(step.after, records)
        return Step(step.after, FetchDataInfo(metadata, records, adjusted < found.size_bytes))

    def fetch_upper_bound_offset(
        self, start_offset_position: OffsetPosition, fetch_size: int
    ) -> Step[Self]:
        """Return the first indexed offset behind a fetch of this size, or None (SEG-19)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = self.ask_offset_index(
            lambda index: index.fetch_upper_bound_offset(start_offset_position, fetch_size)
        )
        found = step.outcome
        return Step(step.after, found.offset) if isinstance(found, OffsetPosition) else step

    def read_next_offset(self) -> Step[Self]:
        """Return the offset behind the last batch that is found from the last entry on (SEG-35).

        The base offset if there is none.
        """
        if self.is_refused:
            return Step(self, UNMAPPED)
        last = self.ask_offset_index(lambda index: index.last_offset)
        if not isinstance(last.outcome, int):
            return last
        step = last.after.read(last.outcome, self.size, self.size)
        if not isinstance(step.outcome, FetchDataInfo) or step.outcome.records is None:
            return Step(step.after, self.base_offset) if step.outcome is None else step
        scan = step.outcome.records.batches()
        if scan.error is not None:
            return Step(step.after, scan.error)
        return Step(step.after, scan.batches[-1].next_offset if scan.batches else self.base_offset)

    def has_overflow(self) -> Step[Self]:
        """Return whether the last offset is too far from the base for an index (SEG-41)."""
        step = self.read_next_offset()
        if not isinstance(step.outcome, int):
            return step
        beyond = step.outcome > self.base_offset and not self.can_hold(step.outcome - 1)
        return Step(step.after, beyond)

    def find_offset_by_timestamp(self, timestamp_ms: int, starting_offset: int) -> Step[Self]:
        """Return the first record at or after both the timestamp and the offset (SEG-39)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = self.ask_time_index(lambda index: index.lookup(timestamp_ms))
        entry = step.outcome
        if not isinstance(entry, TimestampOffset):
            return step
        has_start = self.profile.time_search_has_start
        offset = max(entry.offset, starting_offset) if has_start else entry.offset
        step = step.after.indexed_place(offset)
        if not isinstance(step.outcome, OffsetPosition):
            return step
        position = step.outcome.position
        return Step(
            step.after, self.log.search_for_timestamp(timestamp_ms, position, starting_offset)
        )

    # --- transactions, and the indexes as files ------------------------------------------------

    def update_txn_index(self, completed_txn: CompletedTxn, last_stable_offset: int) -> Step[Self]:
        """Enter a transaction into the index, if it was aborted."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        return self.enter_transaction(completed_txn, last_stable_offset)

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult | Raised:
        """Return the aborted transactions that meet [fetch, upper bound) (TXNIDX-10, -11)."""
        if self.is_refused:
            return UNMAPPED
        return self.txn_index.collect_aborted_txns(fetch_offset, upper_bound_offset)

    def resize_indexes(self, size: int) -> Step[Self]:
        """Give both indexes this many bytes."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        step = run(
            self,
            lambda one: one.with_indexes(),
            lambda one: one.on_offset_index(lambda index: index.resize(size)),
            lambda one: one.on_time_index(lambda index: index.resize(size)),
        )
        return self.unless_refused(step)

    def sanity_check(self, time_index_file_newly_created: bool) -> Step[Self]:
        """Raise an error for files that cannot be those of a segment (SEG-43)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.lazy_offset_index.name not in self.directory:
            return Step(self, FILE_NOT_FOUND)
        is_new = time_index_file_newly_created
        checks_all = not self.profile.sanity_checks_transactions_only
        step = run(
            self,
            lambda one: (
                one.ask_offset_index(lambda index: index.sanity_check())
                if checks_all
                else Step(one)
            ),
            lambda one: one.on_time_index(lambda index: index.resize(0)) if is_new else Step(one),
            lambda one: (
                one.ask_time_index(lambda index: index.sanity_check()) if checks_all else Step(one)
            ),
            lambda one: Step(one, one.txn_index.sanity_check()),
        )
        return self.unless_refused(step)
