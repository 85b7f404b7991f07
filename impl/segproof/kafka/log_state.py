# SPDX-License-Identifier: Apache-2.0
"""The state of an open log: where it begins and ends, what is replicated, stable and durable.

Mirrors: segproof_model/kafka/broker/read_bounds.py under the profile `segproof`.
Upstream: Kafka, UnifiedLog, LocalLog (4.3.1).
Laws: LOG-5 to LOG-8, LOG-15, LOG-16, PROD-10.
"""

import contextlib
from collections.abc import Iterator
from operator import index as to_int

from segproof.errors import IndexClosedError, OffsetOutOfRangeError
from segproof.kafka.leader_epoch_cache import EpochEntry, LeaderEpochFileCache
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_files import LogFiles
from segproof.kafka.log_loader import LoadedLog
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.log_reading import (
    LogView,
    collect_aborted_transactions,
    fetch_offset_by_timestamp,
    read_consistently,
    read_view,
    stable_offset_of,
)
from segproof.kafka.log_segment import FetchDataInfo
from segproof.kafka.log_segments import LogSegments
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_file import TimestampAndOffset
from segproof.kafka.transaction_index import AbortedTxn
from segproof.kernels.epochs import kept_from_end
from segproof.numbers import as_int64

__all__ = ["LogState"]


class LogState:
    """What a log knows beside its files, and how it is read."""

    def __init__(self, files: LogFiles, loaded: LoadedLog) -> None:
        self._files = files
        self._producers = loaded.producers
        self._epochs = loaded.epochs
        self._recovery_point = max(loaded.recovery_point, loaded.log_start_offset)
        self._offline_cause: BaseException | None = None
        active = loaded.segments.active_segment
        end = LogOffsetMetadata(loaded.log_end_offset, active.base_offset, active.size)
        start = loaded.log_start_offset
        epochs = loaded.epochs.entries
        self._view = LogView(loaded.segments, start, end, LogOffsetMetadata(start), epochs)
        self._publish()

    # --- what it knows

    @property
    def dir(self) -> str:
        """The path of the directory."""
        return self._files.folder

    @property
    def config(self) -> LogConfig:
        """The options."""
        return self._files.config

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or deleted, or taken offline by an I/O error."""
        return self._view.is_closed

    @property
    def log_segments(self) -> LogSegments:
        """The segments at this moment; a later change makes a new set."""
        return self._view.segments

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read, inclusive."""
        return self._view.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._view.log_end.message_offset

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        """The offset that the next record gets, and where it will lie."""
        return self._view.log_end

    @property
    def high_watermark(self) -> int:
        """Where what is replicated ends, exclusive."""
        return self._view.high_watermark.message_offset

    @property
    def last_stable_offset(self) -> int:
        """Up to where no transaction is undecided, exclusive; at most the high watermark."""
        return stable_offset_of(self._view)

    @property
    def recovery_point(self) -> int:
        """Up to which offset, exclusive, the log is durable."""
        return self._recovery_point

    @property
    def leader_epoch_cache(self) -> LeaderEpochFileCache:
        """At which offset each leader epoch began."""
        return self._epochs

    @property
    def producer_state_manager(self) -> ProducerStateManager:
        """What is known of producers and transactions."""
        return self._producers

    @property
    def size(self) -> int:
        """Bytes of all segments' logs."""
        return self._view.segments.size_in_bytes

    def __repr__(self) -> str:
        view = self._view
        state = "closed" if view.is_closed else f"{len(view.segments)} segments"
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
            self._current,
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
            self._current,
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
            self._current,
            lambda view: fetch_offset_by_timestamp(view, target_timestamp),
        )

    # --- bounds that move

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, between log start and log end; return it. It may fall."""
        self._check_open()
        view, wanted = self._view, to_int(high_watermark)
        if wanted >= view.log_end.message_offset:
            self._set_high_watermark(view.log_end)
        else:
            self._set_high_watermark(LogOffsetMetadata(max(wanted, view.log_start_offset)))
        return self.high_watermark

    def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
        """Raise the log start; return False for one that is not higher. No file is removed.

        Raises, with nothing changed: OffsetOutOfRangeError above the high watermark. OSError; the
        log is offline then.
        """
        self._check_open()
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
        with self._offline_if_it_fails():
            self._recovery_point = max(self._recovery_point, start)
            self._epochs.truncate_from_start(start)
            self._producers.on_log_start_offset_incremented(start)
            self._publish(log_start_offset=start, epochs=self._epochs.entries)
        return True

    def flush(self, force_flush_active_segment: bool = False) -> None:
        """Make the log durable up to its end, and the names of new segments.

        An empty active segment is left out unless that is forced. Raises: OSError; the log is
        offline then, for a second sync may succeed though the first one has lost the bytes.
        """
        self._check_open()
        end = self.log_end_offset
        with self._offline_if_it_fails():
            self._flush_up_to(end + 1 if force_flush_active_segment else end, end)

    def _flush_up_to(self, offset: int, recovery_point: int) -> None:
        """Make durable what lies below `offset`, and let it be recovered no more."""
        before = self._recovery_point
        if offset <= before:
            return
        flushed = self._view.segments.values(before, offset)
        for segment in flushed:
            segment.flush()
        if any(segment.base_offset >= before for segment in flushed):
            self._files.sync()
        self._recovery_point = max(before, recovery_point)

    def remove_expired_producers(self) -> None:
        """Forget the producers that are silent for too long. Law: PROD-12."""
        self._check_open()
        self._producers.remove_expired_producers(self._files.time())

    # --- the end

    def close_handlers(self) -> None:
        """Close all files as they are; nothing is written or cut. Raises: OSError."""
        if self._view.is_closed:
            return
        self._publish(is_removal=True, is_closed=True)
        try:
            self._files.close_pending()
        finally:
            self.log_segments.close_handlers()

    # --- inside

    @contextlib.contextmanager
    def _offline_if_it_fails(self, error_type: type[BaseException] = OSError) -> Iterator[None]:
        """Take the log offline where a change ends half done, as Kafka does with a directory.

        What the files say then, and what is remembered of them, may differ: whatever is written
        from then on might be lost. Only loading, as after a crash, brings both together again.
        """
        try:
            yield
        except error_type as error:
            self._name_path(error)
            if not self._view.is_closed:
                self._offline_cause = error
                with contextlib.suppress(Exception):  # the first error tells more
                    self.close_handlers()
            raise

    def _name_path(self, error: BaseException) -> None:
        """Let an error of the system that names no file name the directory."""
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = self.dir

    def _publish(
        self,
        *,
        segments: LogSegments | None = None,
        log_start_offset: int | None = None,
        log_end: LogOffsetMetadata | None = None,
        high_watermark: LogOffsetMetadata | None = None,
        epochs: tuple[EpochEntry, ...] | None = None,
        is_removal: bool = False,
        is_closed: bool = False,
    ) -> None:
        """Let readers see another state, all of it at once.

        The epochs stay as they are unless others are given, or the end falls: so they never belong
        to another end than the one beside them.
        """
        view = self._view
        end = log_end or view.log_end
        if epochs is None:
            is_cut = end.message_offset < view.log_end.message_offset
            kept = kept_from_end(view.epochs, end.message_offset) if is_cut else None
            epochs = view.epochs[:kept]
        start = view.log_start_offset if log_start_offset is None else log_start_offset
        unstable = self._producers.first_unstable_offset()
        self._view = LogView(
            view.segments if segments is None else segments,
            start,
            end,
            high_watermark or view.high_watermark,
            epochs,
            -1 if unstable is None else max(unstable, start),
            view.removals + is_removal,
            view.is_closed or is_closed,
        )

    def _set_high_watermark(self, high_watermark: LogOffsetMetadata) -> None:
        self._producers.on_high_watermark_updated(high_watermark.message_offset)
        self._publish(high_watermark=high_watermark)

    def _keep_high_watermark_within(self) -> None:
        """Let a high watermark at the log end, or above it, be the log end.

        One below it may have had its place in a segment that is no more.
        """
        if self.high_watermark >= self.log_end_offset:
            self._set_high_watermark(self._view.log_end)
            return
        base = self._view.high_watermark.segment_base_offset
        if base >= 0 and not self.log_segments.contains(base):
            self._publish(high_watermark=LogOffsetMetadata(self.high_watermark))

    def _move_end(
        self,
        offset: int,
        *,
        segments: LogSegments | None = None,
        log_start_offset: int | None = None,
        epochs: tuple[EpochEntry, ...] | None = None,
        is_removal: bool = False,
    ) -> None:
        """Let the log end at `offset`, behind all bytes of the active segment."""
        active = (self._view.segments if segments is None else segments).active_segment
        self._publish(
            segments=segments,
            log_start_offset=log_start_offset,
            log_end=LogOffsetMetadata(offset, active.base_offset, active.size),
            epochs=epochs,
            is_removal=is_removal,
        )
        self._recovery_point = min(self._recovery_point, offset)

    def _current(self) -> LogView:
        view = self._view
        if view.is_closed:
            raise self._closed()
        return view

    def _check_open(self) -> None:
        if self._view.is_closed:
            raise self._closed()

    def _closed(self) -> IndexClosedError:
        if self._offline_cause is None:
            return IndexClosedError("the log is closed", law="ABSIDX-15", path=self.dir)
        return IndexClosedError(
            "the log is closed: an earlier I/O error took it offline",
            law="ABSIDX-15",
            path=self.dir,
            actual=str(self._offline_cause),
            hint="open it again with last_shutdown_clean=False",
        )
