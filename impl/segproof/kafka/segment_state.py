# SPDX-License-Identifier: Apache-2.0
"""The state of a segment: how it is opened and closed, its largest timestamp, when it is rolled.

Mirrors: segproof_model/kafka/format/log_segment.py under the profile `segproof`.
Upstream: Kafka, LogSegment, RollParams (4.3.1).
Laws: FILE-3, FILE-4, SEG-36 to SEG-40, SEG-44, SEG-49.
Not covered: the `.deleted` file that a delete looks for beside a directory that was being moved.
"""

import contextlib
import os
from collections.abc import Callable
from operator import index as to_int
from types import TracebackType
from typing import NamedTuple, Self

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import REAL_FILES, Files
from segproof.kafka.lazy_index import LazyIndex
from segproof.kafka.log_config import LogConfig
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segment_files import SegmentFiles
from segproof.kafka.segment_names import segment_file_name
from segproof.kafka.segment_reading import ReadAhead
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import TransactionIndex
from segproof.kafka.write_format import NEWEST_FORMAT, WriteFormat
from segproof.kernels.segment_rules import fits_segment, roll_is_due, time_waited
from segproof.numbers import INT64_MAX, now_ms

__all__ = ["RollParams", "SegmentState"]


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


class SegmentState(SegmentFiles):
    """What a segment knows beside its files."""

    def __init__(
        self,
        log: RecordFile,
        lazy_indexes: tuple[LazyIndex[OffsetIndex], LazyIndex[TimeIndex]],
        txn_index: TransactionIndex,
        base_offset: int,
        config: LogConfig,
        *,
        files: Files,
        time: Callable[[], int],
        write_format: WriteFormat,
        roll_jitter_ms: int,
    ) -> None:
        super().__init__(log, *lazy_indexes, txn_index, files)
        self.base_offset = base_offset
        """The first offset that may lie in it."""
        self.config = config
        self.write_format = write_format
        self._is_batch_indexed = write_format.entries == "batch"
        self._is_first_offset_key = write_format.index_key == "first_offset"
        self.roll_jitter_ms = roll_jitter_ms
        """So much earlier than others it is rolled, in ms."""
        self._time = time
        self.created_ms = time()
        """The wall clock when it was opened, or became empty, in ms since 1970."""
        self.bytes_since_last_index_entry = 0
        """Bytes from the last indexed batch on, that included; 0 after opening."""
        self.rolling_based_timestamp: int | None = None
        """The largest timestamp of the first batch, once it was asked for."""
        self._max_pair: TimestampOffset | None = None
        self._released_pair: TimestampOffset | None = None
        """The last time entry when the indexes were released."""
        self._read_ahead = ReadAhead(config.index_interval_bytes)

    @classmethod
    def open(
        cls,
        dir: str | os.PathLike[str],  # noqa: A002 -- Kafka's name
        base_offset: int,
        config: LogConfig,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        *,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        write_format: WriteFormat = NEWEST_FORMAT,
        roll_jitter_ms: int = 0,
    ) -> Self:
        """Open the segment in a directory, or make its `.log`; the index files come when needed.

        With `preallocate` a new log has `init_file_size` bytes, none of which count. `time` tells
        the ms since 1970. The log is not read: the largest timestamp is that of the last time
        entry, until `recover` or `truncate_to` (SEG-49). Laws: FILE-3, FILE-4.

        Raises: OSError; SegproofError for a log above 2147483647 bytes; InvalidArgumentError for a
        base offset outside 64 bits.
        """
        base_offset, folder = to_int(base_offset), os.fspath(dir)
        if not -INT64_MAX - 1 <= base_offset <= INT64_MAX:
            raise InvalidArgumentError(f"base offset {base_offset} is outside 64 bits")

        def path(suffix: str) -> str:
            return os.path.join(folder, segment_file_name(base_offset, suffix) + file_suffix)

        log = RecordFile.open(
            path(".log"), True, file_already_exists, init_file_size, preallocate, files=files
        )
        try:
            txn_index = TransactionIndex(base_offset, path(".txnindex"), files=files)
        except BaseException:
            log.file.close()
            raise
        size = config.segment_index_bytes
        lazy_indexes = (
            LazyIndex.for_offset(path(".index"), base_offset, size, files=files),
            LazyIndex.for_time(path(".timeindex"), base_offset, size, files=files),
        )
        return cls(
            log,
            lazy_indexes,
            txn_index,
            base_offset,
            config,
            files=files,
            time=time,
            write_format=write_format,
            roll_jitter_ms=roll_jitter_ms,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self.size} bytes"
        return f"LogSegment({self.log.name!r}, {state})"

    # --- the largest timestamp

    @property
    def max_timestamp_so_far(self) -> int:
        """The largest timestamp in ms; -1 if none is known. Loads the last time entry if needed."""
        return self.max_pair_so_far().timestamp

    @property
    def offset_of_max_timestamp_so_far(self) -> int:
        """The last offset of the batch that has it first; loads as `max_timestamp_so_far`."""
        return self.max_pair_so_far().offset

    def max_pair_so_far(self) -> TimestampOffset:
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

    # --- the end

    def check_last_entry(self) -> None:
        """Return if `on_become_inactive_segment` would write the last time entry; else raise."""
        self.time_index.check_append(*self.max_pair_so_far(), True)

    def on_become_inactive_segment(self) -> None:
        """Write the last time entry and cut all files behind what they hold. Law: SEG-38.

        Raises: what `TimeIndex.maybe_append` raises, with nothing changed; IndexClosedError.
        """
        self._check_open()
        self.time_index.maybe_append(*self.max_pair_so_far(), True)
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()

    def release_indexes(self) -> None:
        """Close the indexes until they are needed again: each takes two open files.

        Only while nobody reads the segment. Indexes that were not trimmed stay open.
        """
        self._check_open()
        if self._lazy_time_index.is_loaded:
            self._released_pair = self.time_index.last_entry
        self._lazy_offset_index.release()
        self._lazy_time_index.release()

    def close(self) -> None:
        """Write the last time entry if it is known, cut and close all files; laws: SEG-44, LAZY-1.

        A second close does nothing. Raises: the first OSError, once all were closed.
        """
        if self._is_closed:
            return
        is_written = self._max_pair in (None, self._released_pair)
        if self._max_pair is not None and (self._lazy_time_index.is_loaded or not is_written):
            # Upstream only logs it: the entry can be made again from the log.
            with contextlib.suppress(SegproofError, OSError):
                self.time_index.maybe_append(*self._max_pair, True)
        self._close_files()
