# SPDX-License-Identifier: Apache-2.0
"""Loading the directory of a log: finishing what a crash has interrupted, recovery where needed.

The directory is listed a few times, however many segments there are, its names are judged before
anything is changed, and no log is read but those that the laws name. A loaded log keeps one file
open for each segment, and the indexes of the last one; recovery syncs one snapshot for each.

Mirrors: segproof_model/kafka/broker/log_loader.py and crash_remains.py.
Upstream: Kafka 4.3.1: LogLoader, UnifiedLog.rebuildProducerState.
Laws: LOAD-1 to LOAD-16, PROD-14.
Not covered: what an I/O error leaves: upstream cuts a segment whose recovery met one to length 0,
    here it ends loading, and the segment keeps its bytes.
"""

import errno
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from segproof.errors import (
    CorruptIndexError,
    InvalidOffsetError,
    NumberFormatError,
    SegmentOffsetOverflowError,
)
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.log_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    LogFiles,
    SegmentName,
    parse_name,
    split_segment,
)
from segproof.kafka.log_segment import LogSegment
from segproof.kafka.log_segments import LogSegments
from segproof.kafka.producer_state import CompletedTxn, ProducerAppendInfo, ProducerStateManager
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segment_names import segment_file_name
from segproof.numbers import INT32_MAX, INT64_MAX

__all__ = ["LoadedLog", "load_log", "rebuild_producer_state"]

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


def load_log(
    files: LogFiles, log_start_offset: int, recovery_point: int, last_shutdown_clean: bool
) -> LoadedLog:
    """Load a log. `log_start_offset` and `recovery_point` are those of the checkpoints.

    Raises: NumberFormatError for a foreign name, OSError and NumberFormatError for a broken
    checkpoint of epochs, before anything is changed; what recovery raises.
    """
    return _Loader(files, log_start_offset, recovery_point, last_shutdown_clean).load()


class _Loader:
    def __init__(
        self, files: LogFiles, log_start_offset: int, recovery_point: int, is_clean: bool
    ) -> None:
        self._files = files
        self._start = log_start_offset
        self._recovery_point = recovery_point
        self._is_clean = is_clean
        self._segments = LogSegments()
        self._names = self._listed()
        epochs = files.path("leader-epoch-checkpoint")
        self._epochs = LeaderEpochFileCache.open(epochs, files=files.files)
        self._producers = files.new_producer_state()
        self._recovered: ProducerStateManager | None = None
        """The producer state of the last recovery, which knows the snapshots that there are."""

    def load(self) -> LoadedLog:
        """Do all steps in upstream's order; close what was opened if one of them fails."""
        try:
            self._finish_swaps()
            self._until_nothing_overflows(self._load_segments)
            end, recovery_point = self._until_nothing_overflows(self._recover_log)
            if self._recovered is not None:
                self._files.sync()  # the names of the snapshots
            self._segments.active_segment.resize_indexes(self._files.config.segment_index_bytes)
            self._epochs.truncate_from_end(end)
            first = self._segments.base_offsets()[0]
            start = max(self._start, first)
            self._epochs.truncate_from_start(self._start)
            self._producers.remove_stray_snapshots(self._segments.base_offsets())
            rebuild_producer_state(
                self._producers,
                self._segments,
                start,
                end,
                self._files.time(),
                is_reloaded_clean=self._is_clean,
            )
        except BaseException as error:
            self._segments.close_handlers()
            self._files.close_pending()
            if isinstance(error, OSError) and error.errno == errno.EMFILE:
                raise self._too_many_files(error) from error
            raise
        return LoadedLog(self._segments, self._producers, self._epochs, start, end, recovery_point)

    def _too_many_files(self, error: OSError) -> OSError:
        segments = sum(kind == ".log" and not suffix for _, kind, suffix in self._names.values())
        text = f"too many open files: the log has {segments} segments, each of which keeps one open"
        return OSError(errno.EMFILE, f"{text}; raise the limit (ulimit -n)", error.filename)

    # --- files that a crash has left

    def _listed(self) -> dict[str, SegmentName]:
        """Return what the names say of the files that belong to the log, sorted by name."""
        folder = self._files.folder
        listed: dict[str, SegmentName] = {}
        for name in self._files.files.list_directory(folder or "."):
            try:
                found = parse_name(name, folder)
            except NumberFormatError:
                if self._is_regular(name):
                    raise
                continue
            if found is not None:
                listed[name] = found
        return listed

    def _with_suffix(self, suffix: str) -> list[str]:
        """Return the regular files with this suffix."""
        return [
            name
            for name, found in self._names.items()
            if found.suffix == suffix and self._is_regular(name)
        ]

    def _is_regular(self, name: str) -> bool:
        status = self._files.files.status(self._files.path(name))
        return status is not None and status.is_regular

    def _remove(self, name: str) -> None:
        self._files.files.remove(self._files.path(name))
        del self._names[name]

    def _finish_swaps(self) -> None:
        """Remove what is left of work that was not finished, and finish what can be.

        Laws: LOAD-1, LOAD-2, LOAD-3.
        """
        deleted, cleaned = self._with_suffix(DELETED_SUFFIX), self._with_suffix(CLEANED_SUFFIX)
        swaps = self._with_suffix(SWAP_SUFFIX)
        least = min((self._names[name].base_offset for name in cleaned), default=None)
        if least is not None:
            stale = [name for name in swaps if self._names[name].base_offset >= least]
            swaps = [name for name in swaps if name not in stale]
            # Without the `.cleaned` files, swap files that are not whole would count.
            for name in stale:
                self._remove(name)
            self._files.sync()
        for name in (*deleted, *cleaned):
            self._remove(name)
        if swaps:
            self._complete(swaps)
        if deleted or cleaned or swaps:
            self._files.sync()

    def _complete(self, swaps: list[str]) -> None:
        """Put the swap files in the place of the segments whose offsets they hold."""
        low, high = INT64_MAX, -INT64_MAX - 1
        for name in swaps:
            if self._names[name].kind == ".log":
                base_offset = self._names[name].base_offset
                segment = self._files.open_segment(base_offset, exists=True, suffix=SWAP_SUFFIX)
                try:
                    low = min(low, base_offset)
                    high = max(high, segment.read_next_offset())
                finally:
                    segment.close()
        # Reading it has made a missing index, whose name is a swap file's as well.
        self._names = self._listed()
        for name, (base_offset, _, suffix) in list(self._names.items()):
            if not suffix and low <= base_offset < high and self._is_regular(name):
                self._remove(name)
        for name in self._with_suffix(SWAP_SUFFIX):
            plain = name.removesuffix(SWAP_SUFFIX)
            self._files.files.rename(self._files.path(name), self._files.path(plain))
            self._names[plain] = self._names.pop(name)._replace(suffix="")

    # --- segments

    def _until_nothing_overflows(self, step: Callable[[], Answer]) -> Answer:
        """Do a step again after each segment that had to be split for it. Law: LOAD-6."""
        while True:
            try:
                return step()
            except _OverflowError as error:
                try:
                    _, removed = split_segment(self._files, self._segments, error.segment)
                except BaseException:
                    error.segment.close_handlers()  # it may not be among the loaded ones
                    raise
                self._files.mark_snapshots_deleted(self._producers, removed)
                self._recovered = None
                self._names = self._listed()

    def _load_segments(self) -> None:
        """Open every segment, the first one first. Laws: LOAD-4, LOAD-5, LOAD-10."""
        self._segments.close()
        self._segments.clear()
        kinds: dict[int, set[str]] = {}
        for base_offset, kind, suffix in self._names.values():
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
            for kind in kinds[base_offset] - {".snapshot"}:
                self._remove(segment_file_name(base_offset, kind))

    def _load_segment(
        self, base_offset: int, is_time_index_missing: bool, *, is_flushed: bool
    ) -> None:
        """Open a segment; recover it if its indexes need that, and nothing else will.

        Those that are not flushed are recovered when all are open, since what that cuts ends the
        log. Kafka does it here, and keeps the segments behind the cut: a hole. A flushed one whose
        batch is damaged is cut here as in Kafka, which leaves a hole too.
        """
        segment = self._files.open_segment(base_offset, exists=True)
        try:
            try:
                segment.sanity_check(is_time_index_missing)
            except (FileNotFoundError, CorruptIndexError):
                if is_flushed:
                    self._recover(segment)
        except BaseException as error:
            if not isinstance(error, _OverflowError):
                segment.close_handlers()
            raise
        self._segments.add(segment)

    def _recover(self, segment: LogSegment, later: tuple[LogSegment, ...] = ()) -> int:
        """Recover a segment, with the producers that the log before it knows; return bytes cut.

        Before any are, the `later` ones are removed.
        """
        known = self._recovered or self._files.new_producer_state()
        producers = self._recovered = known.begin_anew()
        base_offset, now = segment.base_offset, self._files.time()
        rebuild_producer_state(producers, self._segments, self._start, base_offset, now)
        try:
            truncated = segment.recover(
                producers, self._epochs, before_cut=lambda: self._delete(later)
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
            self._segments.add(self._files.open_segment(self._start))
            self._files.sync()
        if end is None:
            end = self._segments.active_segment.read_next_offset()
        return end, min(self._recovery_point, end)

    def _recover_unflushed(self) -> None:
        unflushed = self._segments.values(min(self._recovery_point, INT64_MAX), INT64_MAX)
        for place, segment in enumerate(unflushed):
            later = unflushed[place + 1 :]
            try:
                truncated = self._recover(segment, later)
            except InvalidOffsetError:
                self._delete(later)
                truncated = segment.truncate_to(segment.base_offset)
            if truncated > 0:
                # Behind the recovery, which may have written the first of them anew.
                self._files.mark_snapshots_deleted(self._producers, later)
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
        self._files.mark_deleted(removed)
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
        self._files.mark_deleted(tuple(left))


# --- producers


def rebuild_producer_state(
    producers: ProducerStateManager,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    now: int,
    *,
    is_reloaded_clean: bool = False,
) -> None:
    """Let the producer state be that of the log up to `last_offset`, exclusive. Law: PROD-14.

    From the newest snapshot on the log is read. Without any snapshot after a clean stop, there was
    never a producer. Snapshots are written at the bases of the last two segments, and at the end.

    Raises: what reading the log and appending to the producer state raise; OSError.
    """
    bases = segments.base_offsets()[-2:]
    if producers.latest_snapshot_offset() is None and is_reloaded_clean:
        for offset in (*bases, last_offset):
            producers.update_map_end_offset(offset)
            producers.take_snapshot()
        return
    was_empty = producers.is_empty and producers.map_end_offset >= last_offset
    producers.truncate_and_reload(log_start_offset, last_offset, now)
    if last_offset > producers.map_end_offset and not was_empty:
        _replay(producers, segments, bases, log_start_offset, last_offset)
    producers.update_map_end_offset(last_offset)
    producers.take_snapshot()


def _replay(
    producers: ProducerStateManager,
    segments: LogSegments,
    snapshot_bases: list[int],
    log_start_offset: int,
    last_offset: int,
) -> None:
    """Tell the producer state what the log holds from its end on, up to `last_offset`."""
    last = segments.floor_segment(last_offset)
    for segment in segments.values(producers.map_end_offset, last_offset):
        start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
        producers.update_map_end_offset(start)
        if segment.base_offset in snapshot_bases:
            producers.take_snapshot()
        limit = segment.size
        if segment is last:
            found = segment.translate_offset(last_offset)
            limit = limit if found is None else found.position
        info = segment.read(start, INT32_MAX, limit)
        if info is not None and info.records is not None:
            _load_records(producers, info.records)


def _load_records(producers: ProducerStateManager, records: RecordFile) -> None:
    infos: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTxn] = []
    for batch in records.batches():
        if batch.producer_id > -1:
            producer_id = batch.producer_id
            if producer_id not in infos:
                infos[producer_id] = producers.prepare_update(producer_id, "replication")
            txn = infos[producer_id].append(batch)
            if txn is not None:
                completed.append(txn)
    for info in infos.values():
        producers.update(info)
    for txn in completed:
        producers.complete_txn(txn)
