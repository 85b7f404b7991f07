# SPDX-License-Identifier: Apache-2.0
"""Loading the directory of a log, with recovery where it is needed.

The directory is listed a few times, however many segments there are, its names are judged before
anything is changed, and no log is read but those that the laws name. A loaded log keeps one file
open for each segment, and the indexes of the last one; recovery syncs one snapshot for each.

Upstream: Kafka 4.3.1: LogLoader.
Laws: LOAD-4 to LOAD-16.
Not covered: what an I/O error leaves: upstream cuts a segment whose recovery met one to length 0,
    here it ends loading, and the segment keeps its bytes.
"""

import errno
import os
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from segproof.closing import undone_if_it_fails
from segproof.errors import (
    CorruptIndexError,
    IndexStateError,
    InvalidOffsetError,
    SegmentOffsetOverflowError,
)
from segproof.integers import INT64_MAX, in_range
from segproof.kafka.broker.crash_remains import CrashRemains
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.broker.producer_rebuild import rebuild_producer_state
from segproof.kafka.broker.segment_replacing import split_segment
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.segment_names import SWAP_SUFFIX, segment_file_name
from segproof.kafka.segments.log_segment import LogSegment

Answer = TypeVar("Answer")


class LoadedLog(NamedTuple):
    """What loading has found."""

    segments: LogSegments
    producers: ProducerStateManager
    epochs: LeaderEpochFileCache
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class _OverflowError(Exception):
    """A segment must be split before loading can go on."""

    def __init__(self, segment: LogSegment) -> None:
        super().__init__(segment)
        self.segment = segment


class LogLoader:
    """What loads the log of a directory."""

    def __init__(self, directory: LogDirectory, log_start_offset: int) -> None:
        """List the directory. `log_start_offset` is the checkpoint's.

        Raises, with nothing changed: NumberFormatError for a foreign name, and for a broken
        checkpoint of epochs; OSError.
        """
        self._directory = directory
        self._start = log_start_offset
        self._recovery_point = 0
        self._is_clean = False
        self._segments = LogSegments()
        self._remains = CrashRemains(directory)
        epochs = directory.path("leader-epoch-checkpoint")
        self._epochs = self._read_epochs(epochs)
        self._producers = directory.new_producer_state()
        self._recovered: ProducerStateManager | None = None
        """The producer state of the last recovery, which knows the snapshots that there are."""

    def load(self, recovery_point: int, had_clean_shutdown: bool) -> LoadedLog:
        """Do all steps in upstream's order; close what was opened if one of them fails.

        `recovery_point` is the checkpoint's. Raises: what recovery raises.
        """
        self._recovery_point, self._is_clean = recovery_point, had_clean_shutdown
        try:
            self._remains.finish()
            self._until_nothing_overflows(self._load_segments)
            end, recovery_point = self._until_nothing_overflows(self._recover_log)
            if self._recovered is not None:
                self._directory.sync()  # the names of the snapshots
            self._segments.active_segment.resize_indexes(self._directory.config.segment_index_bytes)
            return self._loaded(end, recovery_point)
        except BaseException as error:
            self._segments.close_handlers()
            self._directory.close_pending()
            if isinstance(error, OSError) and error.errno == errno.EMFILE:
                raise self._too_many_files(error) from error
            raise

    def _loaded(self, end: int, recovery_point: int) -> LoadedLog:
        """Cut the epochs to the segments, make the producers' state, and return the log."""
        bases = self._segments.base_offsets()
        start = max(self._start, bases[0])
        self._epochs.truncate_from_end(end)
        self._epochs.truncate_from_start(self._start)
        if self._directory.writable:
            self._producers.remove_stray_snapshots(bases)
        rebuild_producer_state(
            self._producers, self._segments, start, end, self._directory.time(),
            is_reloaded_clean=self._is_clean,
        )  # fmt: skip
        return LoadedLog(self._segments, self._producers, self._epochs, start, end, recovery_point)

    def _read_epochs(self, path: str) -> LeaderEpochFileCache:
        """Return the epochs; those of a log that is read are changed in memory only."""
        files = self._directory.files
        if self._directory.writable:
            return LeaderEpochFileCache.open(path, create=True, files=files)
        epochs = LeaderEpochFileCache.in_memory()
        if files.status(path) is not None:
            epochs.assign_all(LeaderEpochFileCache.open(path, files=files).entries)
        return epochs

    def load_for_reading(self, had_clean_shutdown: bool) -> LoadedLog:
        """Open the log as it lies: nothing is recovered, written or removed.

        It ends behind the last whole batch of its last segment. Raises: FileNotFoundError without a
        segment, and for a segment without its offset index; IndexStateError for segments that a
        crash left half replaced; InvalidArgumentError for a log start behind the log end; what
        reading the last segment raises.
        """
        self._is_clean = had_clean_shutdown
        try:
            self._open_segments()
            end = self._segments.active_segment.read_next_offset()
            start = max(self._start, self._segments.base_offsets()[0])
            in_range(start, "the log start offset", 0, end, law="LOAD-12", path=self._directory.dir)
            return self._loaded(end, end)
        except BaseException:
            self._segments.close_handlers()
            raise

    def _open_segments(self) -> None:
        """Open every segment for reading."""
        folder, names = self._directory.dir, self._remains.names
        swaps = [name for name, found in names.items() if found.suffix == SWAP_SUFFIX]
        if swaps:
            raise IndexStateError(
                "a crash left segments half replaced",
                law="LOAD-2",
                path=os.path.join(folder, swaps[0]),
                hint="open the log, or a copy of it, with writable=True",
            )
        for base_offset, kind, suffix in names.values():
            if kind == ".log" and not suffix:
                segment = self._directory.new_segment(base_offset, True)
                self._segments.add(segment)
                segment.sanity_check(False)
        if self._segments.is_empty:
            raise FileNotFoundError(errno.ENOENT, "there is no segment of a log", folder)

    def _too_many_files(self, error: OSError) -> OSError:
        names = self._remains.names.values()
        segments = sum(kind == ".log" and not suffix for _, kind, suffix in names)
        text = f"too many open files: the log has {segments} segments, and each keeps one open"
        return OSError(errno.EMFILE, f"{text}; raise the limit (ulimit -n)", error.filename)

    # --- segments

    def _until_nothing_overflows(self, step: Callable[[], Answer]) -> Answer:
        """Do a step again after each segment that had to be split for it. Law: LOAD-6."""
        while True:
            try:
                return step()
            except _OverflowError as error:
                # It may not be among the loaded ones.
                with undone_if_it_fails(error.segment.close_handlers):
                    _, removed = split_segment(self._directory, self._segments, error.segment)
                self._directory.delete_producer_snapshots(self._producers, removed)
                self._recovered = None
                self._remains.read_names()

    def _load_segments(self) -> None:
        """Open every segment, the first one first. Laws: LOAD-4, LOAD-5, LOAD-10."""
        self._segments.close()
        self._segments.clear()
        kinds: dict[int, set[str]] = {}
        for base_offset, kind, suffix in self._remains.names.values():
            if not suffix:
                kinds.setdefault(base_offset, set()).add(kind)
        bases = sorted(base for base in kinds if ".log" in kinds[base])
        unflushed = set[int]()
        if not self._is_clean and self._recovery_point < INT64_MAX:
            unflushed.update(bases[max(0, bisect_right(bases, self._recovery_point) - 1) :])
        for base_offset in sorted(kinds):
            if ".log" in kinds[base_offset]:
                is_new = ".timeindex" not in kinds[base_offset]
                self._load_segment(base_offset, is_new, is_flushed=base_offset not in unflushed)
                continue
            lone = kinds[base_offset] - {".snapshot"}
            self._remains.remove(segment_file_name(base_offset, kind) for kind in lone)

    def _load_segment(
        self, base_offset: int, is_time_index_missing: bool, *, is_flushed: bool
    ) -> None:
        """Open a segment; recover it if its indexes need that, and nothing else will.

        Those that are not flushed are recovered when all are open, since what that cuts ends the
        log. Kafka does it here, and keeps the segments behind the cut: a hole. A flushed one whose
        batch is damaged is cut here as in Kafka, which leaves a hole too.
        """
        segment = self._directory.new_segment(base_offset, True)
        try:
            try:
                segment.sanity_check(is_time_index_missing)
            except (FileNotFoundError, CorruptIndexError):
                if is_flushed:
                    self._recover(segment, INT64_MAX)
        except BaseException as error:
            if not isinstance(error, _OverflowError):
                segment.close_handlers()
            raise
        self._segments.add(segment)

    def _recover(
        self, segment: LogSegment, recovery_point: int, later: tuple[LogSegment, ...] = ()
    ) -> int:
        """Recover a segment, with the producers that the log before it knows; return bytes cut.

        All below `recovery_point` was flushed. Before bytes are cut, the `later` ones are removed.
        """
        known = self._recovered or self._directory.new_producer_state()
        producers = self._recovered = known.forgetful_twin()
        base_offset, now = segment.base_offset, self._directory.time()
        rebuild_producer_state(producers, self._segments, self._start, base_offset, now)
        try:
            truncated = segment.recover(
                producers,
                self._epochs,
                flushed_end=recovery_point,
                before_cut=lambda: self._delete(later),
            )
        except SegmentOffsetOverflowError as error:
            raise _OverflowError(segment) from error
        # So that the next segment's recovery need not read this one again.
        producers.take_snapshot()
        segment.release_indexes()
        return truncated

    def _recover_log(self) -> tuple[int, int]:
        """Recover what was not flushed; return log end and recovery point.

        Laws: LOAD-7 to LOAD-9, LOAD-12, LOAD-13.
        """
        if not self._is_clean:
            self._recover_unflushed()
        end = self._end_if_not_below_start()
        if end is not None and self._is_clean:
            return end, end
        if self._segments.is_empty:
            self._segments.add(self._directory.new_segment(self._start))
            self._directory.sync()
        if end is None:
            end = self._segments.active_segment.read_next_offset()
        return end, min(self._recovery_point, end)

    def _recover_unflushed(self) -> None:
        unflushed = self._segments.values(min(self._recovery_point, INT64_MAX), INT64_MAX)
        for place, segment in enumerate(unflushed):
            later = unflushed[place + 1 :]
            try:
                truncated = self._recover(segment, self._recovery_point, later)
            except InvalidOffsetError:
                self._delete(later)
                truncated = segment.truncate_to(segment.base_offset)
            if truncated > 0:
                # After the recovery, which may have written the first of them again.
                self._directory.delete_producer_snapshots(self._producers, later)
                return

    def _end_if_not_below_start(self) -> int | None:
        """Return the log end; without segments, or below the log start, none is left. LOAD-12."""
        last = self._segments.last_segment()
        if last is None:
            return None
        end = last.read_next_offset()
        if end >= self._start:
            return end
        removed = self._segments.values()
        self._segments.clear()
        self._directory.delete_segment_files(removed)
        self._epochs.clear_and_flush()
        self._producers.truncate_fully_and_start_at(self._start)
        return None

    def _delete(self, segments: tuple[LogSegment, ...]) -> None:
        """Remove segments at the end, the last one first: a crash must leave no hole.

        The one before them is damaged still: the next recovery comes here again. Kafka cuts it
        first, and removes those behind it from the first one on.
        """
        left = [one for one in segments[::-1] if self._segments.contains(one.base_offset)]
        for segment in left:
            self._segments.remove(segment.base_offset)
        self._directory.delete_segment_files(tuple(left))
