# SPDX-License-Identifier: Apache-2.0
"""The log of a partition: a directory of segments that is appended to, read, cut and rolled.

Upstream: Kafka, UnifiedLog, LocalLog (4.3.1).
Laws: LOG-1 to LOG-21, LOAD-1 to LOAD-17.
Not covered: remote storage, compaction, the verification of transactions by their coordinator.
"""

import os
import random
from collections.abc import Callable
from operator import index as to_int
from typing import Self

from segproof.closing import Closing, told_state
from segproof.counts import plural
from segproof.errors import InvalidArgumentError, OffsetOutOfRangeError
from segproof.files import REAL_FILES, Files
from segproof.integers import as_int64, in_range, now_ms
from segproof.kafka.broker.local_log import LocalLog
from segproof.kafka.broker.log_append import LogAppend
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_loader import LoadedLog, LogLoader
from segproof.kafka.broker.log_retention import RULES
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.broker.log_view import (
    collect_aborted_transactions,
    read_consistently,
    read_view,
    stable_offset_of,
)
from segproof.kafka.broker.offset_by_time import fetch_offset_by_timestamp
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.log_validator import LogAppendInfo
from segproof.kafka.producer_append_info import NO_TRANSACTION_VERSION, AppendOrigin
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_file import TimestampAndOffset
from segproof.kafka.segments.log_segment import FetchDataInfo, LogSegment
from segproof.kafka.transaction_index import AbortedTxn
from segproof.kafka.write_format import NEWEST_FORMAT, WriteFormat


def _draw() -> int:
    return random.getrandbits(31)  # a jitter, not a secret


class PartitionLog(Closing):
    """The log of one partition, open for reading, or for writing where that was asked for.

    Made by `open`. Write: `append_as_leader`, `append_as_follower`, `truncate_to`,
    `truncate_fully_and_start_at`, `roll`, `split_overflowed_segment`. Read: `read`,
    `fetch_offset_by_timestamp`, `collect_aborted_transactions`. Bounds: `update_high_watermark`,
    `maybe_increment_log_start_offset`, `flush`. Removal: `delete_old_segments`,
    `delete_pending_files`, `delete`. One thread may write while any number read, without a lock.
    A change of a log that is open for reading raises ReadOnlyError.
    What can be refused beforehand has changed nothing. Once closed, all but another `close` and
    `delete_pending_files` raise IndexClosedError. So do they after an OSError inside a change that
    may be half done: the log is offline, closed as by `close_handlers`, and must be opened again
    with `last_shutdown_clean=False`. Only an append that could be taken back lets it go on.
    """

    def __init__(self, directory: LogDirectory, loaded: LoadedLog) -> None:
        self._log = LocalLog(directory, loaded)
        self._bounds = self._log.bounds

    @classmethod
    def open(
        cls,
        dir: str | os.PathLike[str],  # noqa: A002 -- Kafka's name
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        last_shutdown_clean: bool = True,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        write_format: WriteFormat = NEWEST_FORMAT,
        draw: Callable[[], int] = _draw,
    ) -> Self:
        """Load the log of a directory. Laws: LOAD-1 to LOAD-17.

        Without `writable` it is opened as it lies, and read up to its last whole batch: nothing is
        recovered, written or removed. With `writable=True` it may be changed, which recovery does
        already. With `create=True` it is writable, and a missing directory is made.
        `log_start_offset` and `recovery_point` are what the checkpoints of the log directory say.
        Where the last shutdown was not clean, all from the recovery point on is read, checked and
        indexed again. `time` tells the ms since 1970, `draw` a random number from 0 on.

        Raises: NumberFormatError for a file with a segment's suffix that has no offset as its name,
        and CorruptCheckpointError, with nothing changed; OSError; what recovery raises. For
        reading: FileNotFoundError without a segment, or without the offset index of one;
        IndexStateError for segments that a crash left half replaced.
        """
        start = in_range(log_start_offset, "log_start_offset", 0)
        point = in_range(recovery_point, "recovery_point", 0)
        directory = LogDirectory(
            os.fspath(dir),
            config,
            writable=writable or create,
            files=files,
            time=time,
            write_format=write_format,
            draw=draw,
        )
        if create:
            files.make_directory(directory.dir)
        loader = LogLoader(directory, start)
        if directory.writable:
            return cls(directory, loader.load(point, last_shutdown_clean))
        return cls(directory, loader.load_for_reading(last_shutdown_clean))

    # --- what it knows

    @property
    def dir(self) -> str:
        """The path of the directory."""
        return self._log.directory.dir

    @property
    def config(self) -> LogConfig:
        """The options."""
        return self._log.directory.config

    @property
    def writable(self) -> bool:
        """Whether the log may be changed."""
        return self._log.directory.writable

    def _check_writable(self) -> None:
        self._bounds.check_open()
        self._log.directory.check_writable()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or deleted, or taken offline by an I/O error."""
        return self._bounds.view.is_closed

    @property
    def log_segments(self) -> LogSegments:
        """The segments at this moment; a later change makes a new set."""
        return self._bounds.view.segments

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read, inclusive."""
        return self._bounds.view.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._bounds.view.log_end.message_offset

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        """The offset that the next record gets, and where it will lie."""
        return self._bounds.view.log_end

    @property
    def high_watermark(self) -> int:
        """Where what is replicated ends, exclusive."""
        return self._bounds.view.high_watermark.message_offset

    @property
    def last_stable_offset(self) -> int:
        """Up to where no transaction is undecided, exclusive; at most the high watermark."""
        return stable_offset_of(self._bounds.view)

    @property
    def recovery_point(self) -> int:
        """Up to which offset, exclusive, the log is durable."""
        return self._log.recovery_point

    @property
    def leader_epoch_cache(self) -> LeaderEpochFileCache:
        """At which offset each leader epoch began."""
        return self._log.epochs

    @property
    def producer_state_manager(self) -> ProducerStateManager:
        """What is known of producers and transactions."""
        return self._log.producers

    @property
    def size(self) -> int:
        """Bytes of all segments' logs."""
        return self._bounds.view.segments.size_in_bytes

    def __repr__(self) -> str:
        view = self._bounds.view
        state = told_state(
            plural(len(view.segments), "segment"),
            is_open=not view.is_closed,
            writable=self.writable,
        )
        offsets = f"offsets {view.log_start_offset} to {view.log_end.message_offset}"
        return f"{type(self).__name__}({self.dir!r}, {offsets}, {state})"

    # --- reading

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: str = "log_end",
        min_one_message: bool = True,
    ) -> FetchDataInfo:
        """Return the records from the batch that holds `start_offset` on.

        At most `max_length` bytes of one segment, and no byte beyond the bound of the isolation:
        `log_end`, `high_watermark`, or `txn_committed`, which also tells the aborted transactions.
        With `min_one_message` a first batch that is larger is given whole. No record is read:
        `records` is a slice of the log, or None. A truncation or a removal makes what it shows
        refuse to be read, or show what was there; take its bytes at once where one may come.

        Any number of threads may read beside the one that writes. Laws: LOG-5 to LOG-8.
        Raises: OffsetOutOfRangeError; InvalidArgumentError for a negative length or an unknown
        isolation; as `LogSegment.read`; IndexClosedError.
        """
        start_offset, max_length = to_int(start_offset), to_int(max_length)
        return read_consistently(
            self._bounds.current,
            lambda view: read_view(view, start_offset, max_length, isolation, min_one_message),
        )

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """Return the aborted transactions that meet [start_offset, upper_bound_offset).

        Raises: as `TransactionIndex.collect_aborted_txns`.
        """
        start_offset, upper_bound_offset = to_int(start_offset), to_int(upper_bound_offset)
        return read_consistently(
            self._bounds.current,
            lambda view: collect_aborted_transactions(view, start_offset, upper_bound_offset),
        )

    def fetch_offset_by_timestamp(self, target_timestamp: int) -> TimestampAndOffset | None:
        """Return the first record at or after a time in ms since 1970, or None.

        It is looked for in one segment, the first whose largest timestamp is not below the target.
        -1: the log end; -2 and -4: the log start; -3: the first record with the largest timestamp;
        -5: (-1, -1), since nothing is kept elsewhere.
        Laws: LOG-15, LOG-16. Raises: as `LogSegment.find_offset_by_timestamp`.
        """
        target_timestamp = as_int64(target_timestamp)
        return read_consistently(
            self._bounds.current,
            lambda view: fetch_offset_by_timestamp(view, target_timestamp),
        )

    # --- appending

    def append_as_leader(
        self,
        records: bytes,
        leader_epoch: int,
        *,
        origin: AppendOrigin = "client",
        transaction_version: int = NO_TRANSACTION_VERSION,
    ) -> LogAppendInfo:
        """Give one batch its offsets, stamp it, and append it.

        A client's batch begins with offset 0, and is refused unless its records are in order and
        continue its producer's sequence; one that its producer sends again is not appended, and its
        former offsets are returned. Part of a batch at the end is left out. A coordinator's markers
        need a `transaction_version`. Laws: LOG-9, LOG-10, LOG-11.

        Raises, with nothing changed: CorruptRecordError, InvalidRecordError, RecordTooLargeError,
        RecordBatchTooLargeError, InvalidTimestampError, InvalidProducerEpochError,
        OutOfOrderSequenceError, InvalidTransactionStateError; InvalidArgumentError for a batch that
        must be written again and can't be; what an index raises that takes no entry;
        IndexClosedError. OSError.
        """
        return LogAppend(self._log, records, leader_epoch, origin, transaction_version).append()

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the offsets that they have.

        The first batch of a later epoch than the leader's, and what follows, is left out.
        Laws: LOG-9, LOG-10, LOG-11, LOG-21.

        Raises, with nothing changed: OffsetOrderError; CorruptRecordError,
        RecordBatchTooLargeError, SegmentOffsetOverflowError, InvalidTransactionStateError; what an
        index raises that takes no entry; IndexClosedError. OSError.
        """
        return LogAppend(self._log, records, leader_epoch, "replication").append()

    def roll(self, expected_next_offset: int | None = None) -> int:
        """Begin a new segment; return its base offset, the greater of the expected and the end.

        An active segment with that base that is empty is replaced. The old segment, and a snapshot
        of the producers at the new base, are durable then. Laws: LOG-11, LOG-12.

        Raises, with nothing changed: SegproofError for a base that the active segment does not
        allow; what its time index raises that takes no last entry. OSError; the log is offline
        then.
        """
        self._check_writable()
        return self._log.roll(to_int(expected_next_offset or 0))

    # --- bounds that move

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, between log start and log end; return it. It may fall."""
        self._bounds.check_open()
        return self._bounds.update_high_watermark(to_int(high_watermark))

    def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
        """Raise the log start; return False for one that is not higher. No file is removed.

        Raises, with nothing changed: OffsetOutOfRangeError above the high watermark. OSError; the
        log is offline then.
        """
        self._check_writable()
        start = to_int(new_log_start_offset)
        if start > self.high_watermark:
            raise OffsetOutOfRangeError(
                "the log start cannot lie above the high watermark",
                path=self.dir,
                expected=f"at most {self.high_watermark}",
                actual=start,
            )
        if start <= self.log_start_offset:
            return False
        with self._log.offline_if_it_fails():
            log = self._log
            log.recovery_point = max(log.recovery_point, start)
            log.epochs.truncate_from_start(start)
            log.producers.on_log_start_offset_incremented(start)
            self._bounds.publish(log_start_offset=start, epochs=log.epochs.entries)
        return True

    def flush(self, force_flush_active_segment: bool = False) -> None:
        """Make the log durable up to its end, and the names of new segments.

        An empty active segment is left out unless that is forced. Raises: OSError; the log is
        offline then, for a second sync may succeed though the first one has lost the bytes. So may
        one after it is opened again, as long as the system was not: the bytes are read from memory.
        """
        self._bounds.check_open()
        with self._log.offline_if_it_fails():
            self._log.flush_up_to(self.log_end_offset, force_flush_active_segment)

    def remove_expired_producers(self) -> None:
        """Forget the producers that are silent for too long. Law: PROD-12."""
        self._bounds.check_open()
        self._log.producers.remove_expired_producers(self._log.directory.time())

    # --- cutting

    def truncate_to(self, target_offset: int) -> bool:
        """Cut the log before the batch that holds `target_offset`; return whether it ends above.

        Later segments are gone at once, their files after the delay. What is removed stays removed
        after a crash. Laws: LOG-13, LOG-14.

        Raises, with nothing changed: InvalidArgumentError for a negative offset. OSError; the log
        is offline then.
        """
        self._check_writable()
        target = to_int(target_offset)
        if target < 0:
            raise InvalidArgumentError(
                "a log is not cut at a negative offset", law="LOG-13", path=self.dir, actual=target
            )
        with self._log.offline_if_it_fails():
            return self._truncate_to(target)

    def _truncate_to(self, target: int) -> bool:
        log = self._log
        if target >= self.log_end_offset:
            log.epochs.truncate_from_end(self.log_end_offset)
            self._bounds.publish(epochs=log.epochs.entries)
            return False
        if self.log_segments.base_offsets()[0] > target:
            self.truncate_fully_and_start_at(target)
            return True
        log.truncate_to(target)
        log.epochs.truncate_from_end(target)
        log.rebuild_producer_state()
        self._bounds.update_high_watermark_with_log_end_offset()
        self._bounds.publish(epochs=log.epochs.entries)
        return True

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove everything, and begin with an empty segment at `new_offset`.

        The log start is that offset unless another one is given. Raises, with nothing changed:
        InvalidArgumentError for an offset outside 63 bits. OSError; the log is offline then.
        """
        self._check_writable()
        offset = in_range(new_offset, "new_offset", 0)
        start = offset if log_start_offset is None else log_start_offset
        start = in_range(start, "log_start_offset", 0)
        with self._log.offline_if_it_fails():
            self._log.truncate_fully_and_start_at(offset, start)

    # --- removing

    def delete_old_segments(self) -> int:
        """Remove the oldest segments: below the log start, beyond size or time; return how many.

        None of them holds an offset at or above the high watermark. The log start moves to the
        first one that stays. Laws: LOG-17, LOG-18. Raises: OSError; the log is offline then.
        """
        self._check_writable()
        with self._log.offline_if_it_fails():
            return self._delete_by_rules()

    def _delete_by_rules(self) -> int:
        count = 0
        for rule in RULES:
            removed = rule(self._bounds.view, self.config, self._log.directory.time())
            if not removed:
                continue
            if len(removed) == len(self.log_segments):
                self.roll()
            following = self.log_segments.higher_segment(removed[-1].base_offset)
            if following is None:
                raise OffsetOutOfRangeError("no segment would stay", law="LOG-17", path=self.dir)
            self.maybe_increment_log_start_offset(following.base_offset)
            self._log.remove_and_delete_segments(removed)
            count += len(removed)
        return count

    def delete_pending_files(self) -> int:
        """Remove the files of removed segments whose delay is over; return how many groups.

        A segment's files are one group, a snapshot is one. Raises: OSError; the others are tried.
        """
        return self._log.directory.delete_due_files(self._log.directory.time())

    def split_overflowed_segment(self, base_offset: int) -> list[LogSegment]:
        """Put segments in the place of one that holds offsets too far from its base; return them.

        Laws: LOG-19, LOG-20.
        Raises, with nothing changed: InvalidArgumentError for a segment that is not there, or has
        no such offset. OSError; the log is offline then.
        """
        self._check_writable()
        segment = self.log_segments.get(to_int(base_offset))
        if segment is None:
            raise InvalidArgumentError(
                "there is no segment with this base offset",
                law="LOG-20",
                path=self.dir,
                expected=self.log_segments.base_offsets(),
                actual=base_offset,
            )
        with self._log.offline_if_it_fails():
            return self._log.split(segment)

    # --- the end

    def close(self) -> None:
        """Write a snapshot of the producers, cut and close all files; a second close does nothing.

        A log that is open for reading is closed as `close_handlers` does.
        All from the recovery point on is recovered by the next `open`, unless that is told that the
        shutdown was clean. Raises: OSError, once everything is closed.
        """
        if not self.is_closed:
            end = self._log.close if self.writable else self._log.close_handlers
            end()

    def close_handlers(self) -> None:
        """Close all files as they are; nothing is written or cut. Raises: OSError."""
        if not self.is_closed:
            self._log.close_handlers()

    def delete(self) -> bool:
        """Remove the log with all its files; return whether its directory is gone too.

        The newest segment goes first, so what a crash leaves is the log up to some offset. Files
        that are not the log's stay, and the directory with them. Raises: OSError.
        """
        self._check_writable()
        return self._log.delete_all_files()
