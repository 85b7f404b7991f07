# SPDX-License-Identifier: Apache-2.0
"""The log of a partition: a directory of segments that is appended to, read, cut and rolled.

Mirrors: segproof_model/kafka/partition_log.py under the profile `segproof`.
Upstream: Kafka, UnifiedLog, LocalLog (4.3.1).
Laws: LOG-1 to LOG-21, LOAD-1 to LOAD-17.
Not covered: remote storage, compaction, the verification of transactions by their coordinator, and
    writing the batches of a producer anew (see log_validator).
Used by: log_manager.
"""

import os
import random
from collections.abc import Callable, Sequence
from operator import index as to_int
from types import TracebackType
from typing import NamedTuple, Self

from segproof.errors import (
    InvalidArgumentError,
    OffsetOutOfRangeError,
    RecordBatchTooLargeError,
    SegproofError,
)
from segproof.files import REAL_FILES, Files
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_files import LogFiles, split_segment
from segproof.kafka.log_loader import load_log, rebuild_producer_state
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.log_retention import RULES
from segproof.kafka.log_segment import LogSegment
from segproof.kafka.log_state import LogState
from segproof.kafka.log_validator import (
    LogAppendInfo,
    analyze,
    assign_offsets,
    offsets_below_end,
)
from segproof.kafka.producer_append_info import NO_TRANSACTION_VERSION
from segproof.kafka.producer_snapshot import BatchMetadata
from segproof.kafka.producer_state import AppendOrigin, CompletedTxn, ProducerAppendInfo
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import scan_memory
from segproof.kafka.segment_recovery import segment_overflow
from segproof.kafka.segment_state import RollParams, now_ms
from segproof.kafka.write_format import NEWEST_FORMAT, WriteFormat
from segproof.kernels.log_rules import roll_base
from segproof.kernels.segment_rules import fits_segment

__all__ = ["LogAppendInfo", "PartitionLog"]


class _ProducerUpdate(NamedTuple):
    """What an append does to the producer state, once it counts."""

    infos: dict[int, ProducerAppendInfo]
    completed: list[CompletedTxn]
    duplicate: BatchMetadata | None
    """The batch in the log that is sent again; then nothing is appended."""


def _draw() -> int:
    return random.getrandbits(31)  # a jitter, not a secret


class PartitionLog(LogState):
    """The log of one partition, open for writing.

    Made by `open`. Write: `append_as_leader`, `append_as_follower`, `truncate_to`,
    `truncate_fully_and_start_at`, `roll`, `split_overflowed_segment`. Read: `read`,
    `fetch_offset_by_timestamp`, `collect_aborted_transactions`. Bounds: `update_high_watermark`,
    `maybe_increment_log_start_offset`, `flush`. Removal: `delete_old_segments`,
    `delete_pending_files`, `delete`. One thread may write while any number read, without a lock.
    What can be refused beforehand has changed nothing. Once closed, all but another `close` and
    `delete_pending_files` raise IndexClosedError.
    """

    @classmethod
    def open(
        cls,
        dir: str | os.PathLike[str],  # noqa: A002 -- Kafka's name
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        last_shutdown_clean: bool = True,
        *,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        write_format: WriteFormat = NEWEST_FORMAT,
        draw: Callable[[], int] = _draw,
    ) -> Self:
        """Load the log of a directory, which is made if it is missing. Laws: LOAD-1 to LOAD-17.

        `log_start_offset` and `recovery_point` are what the checkpoints of the log directory say.
        Where the last shutdown was not clean, all from the recovery point on is read, checked and
        indexed anew. `time` tells the ms since 1970, `draw` a random number from 0 on.

        Raises: NumberFormatError for a file with a segment's suffix that has no offset as its name,
        and CorruptCheckpointError, with nothing changed; OSError; what recovery raises.
        """
        start, point = to_int(log_start_offset), to_int(recovery_point)
        for name, offset in (("log_start_offset", start), ("recovery_point", point)):
            if not 0 <= offset < 1 << 63:
                raise InvalidArgumentError(f"{name} is {offset}, not from 0 to 2^63 - 1")
        log_files = LogFiles(
            os.fspath(dir), config, files=files, time=time, write_format=write_format, draw=draw
        )
        files.make_directory(log_files.folder)
        return cls(log_files, load_log(log_files, start, point, last_shutdown_clean))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

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
        would have to be written anew; IndexClosedError. OSError.
        """
        return self._append(records, to_int(leader_epoch), origin, transaction_version)

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the offsets that they have.

        The first batch of a later epoch than the leader's, and what follows, is left out.
        Laws: LOG-9, LOG-10, LOG-11, LOG-21.

        Raises, with nothing changed: OffsetOrderError; CorruptRecordError,
        RecordBatchTooLargeError, SegmentOffsetOverflowError, InvalidTransactionStateError;
        IndexClosedError. OSError.
        """
        return self._append(records, to_int(leader_epoch), "replication", NO_TRANSACTION_VERSION)

    def _append(
        self, records: bytes, leader_epoch: int, origin: AppendOrigin, transaction_version: int
    ) -> LogAppendInfo:
        self._check_open()
        info, batches = analyze(
            records,
            self.config,
            origin=origin,
            leader_epoch=leader_epoch,
            log_start_offset=self.log_start_offset,
        )
        if not batches:
            return info
        if origin == "replication":
            error = offsets_below_end(info, batches, self.log_end_offset)
            if error is not None:
                error.path = self.dir
                raise error
            data = records[: info.valid_bytes]
        else:
            info, data = assign_offsets(
                records,
                batches,
                info,
                self.config,
                origin=origin,
                leader_epoch=leader_epoch,
                log_end_offset=self.log_end_offset,
                now=self._files.time(),
            )
            batches = list(scan_memory(data))
        return self._append_valid(data, batches, info, origin, transaction_version)

    def _append_valid(
        self,
        data: bytes,
        batches: Sequence[RecordBatch],
        info: LogAppendInfo,
        origin: AppendOrigin,
        transaction_version: int,
    ) -> LogAppendInfo:
        """Append what is valid in itself, if size, place and producers allow it."""
        self._check_size(data)
        base = self._base_to_roll(len(data), info)
        update = self._check_producers(batches, origin, transaction_version)
        self._assign_epochs(batches)
        if base is not None:
            self.roll(base)
        if update.duplicate is not None:
            known = update.duplicate
            return info._replace(
                first_offset=known.first_offset,
                last_offset=known.last_offset,
                log_append_time=known.timestamp,
            )
        segment = self.log_segments.active_segment
        segment.append(info.last_offset, data)
        # The end moves before the transaction index is touched, which may fail (LOG-9).
        self._move_end(info.last_offset + 1)
        self._update_producers(update, segment, info.last_offset + 1)
        self._move_high_watermark_to_end()
        self._publish()
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return info

    def _check_size(self, data: bytes) -> None:
        if len(data) > self.config.segment_bytes:
            raise RecordBatchTooLargeError(
                "the records are larger than a segment may be",
                law="LOG-10",
                path=self.dir,
                expected=f"at most {self.config.segment_bytes} bytes",
                actual=len(data),
                hint="the option is segment_bytes",
            )

    def _base_to_roll(self, size_bytes: int, info: LogAppendInfo) -> int | None:
        """Return the base of the segment that is rolled before the append, or None for none.

        Raises: SegproofError where there can't be one; SegmentOffsetOverflowError.
        """
        config = self.config
        params = RollParams(
            config.max_segment_ms,
            config.segment_bytes,
            info.max_timestamp,
            info.last_offset,
            size_bytes,
            self._files.time(),
        )
        if not self.log_segments.active_segment.should_roll(params):
            return None
        base = roll_base(info.first_offset, info.last_offset, self.log_end_offset)
        self._check_roll(base)
        if not fits_segment(info.last_offset, base):
            raise segment_overflow(info.last_offset, base, self.dir)
        return base

    def _check_producers(
        self, batches: Sequence[RecordBatch], origin: AppendOrigin, transaction_version: int
    ) -> _ProducerUpdate:
        """Return what the batches do to the producer state; nothing is changed yet."""
        update = _ProducerUpdate({}, [], None)
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id <= -1:
                continue
            known = self._producers.last_entry(producer_id)
            if origin == "client" and known is not None:
                duplicate = known.find_duplicate_batch(batch)
                if duplicate is not None:
                    return _ProducerUpdate({}, [], duplicate)
            info = update.infos.get(producer_id)
            if info is None:
                info = self._producers.prepare_update(producer_id, origin)
                update.infos[producer_id] = info
            completed = info.append(batch, None, transaction_version)
            if completed is not None:
                update.completed.append(completed)
        return update

    def _update_producers(
        self, update: _ProducerUpdate, segment: LogSegment, end_offset: int
    ) -> None:
        """Let the appended batches count. Law: PROD-11."""
        for info in update.infos.values():
            self._producers.update(info)
        for completed in update.completed:
            stable = self._producers.last_stable_offset(completed)
            segment.update_txn_index(completed, stable)
            self._producers.complete_txn(completed)
        self._producers.update_map_end_offset(end_offset)

    def _assign_epochs(self, batches: Sequence[RecordBatch]) -> None:
        """Note where leader epochs begin; records of older formats, which have none, forget all."""
        for batch in batches:
            if batch.magic < 2:
                if len(self._epochs):
                    self._epochs.clear_and_flush()
            elif batch.partition_leader_epoch >= 0:
                self._epochs.assign(batch.partition_leader_epoch, batch.base_offset)

    # --- rolling

    def roll(self, expected_next_offset: int | None = None) -> int:
        """Begin a new segment; return its base offset, the greater of the expected and the end.

        An active segment with that base that is empty is replaced. The old segment, and a snapshot
        of the producers at the new base, are durable then. Laws: LOG-11, LOG-12.

        Raises, with nothing changed: SegproofError for a base that the active segment does not
        allow. OSError.
        """
        self._check_open()
        base = max(to_int(expected_next_offset or 0), self.log_end_offset)
        self._check_roll(base)
        segments, active = self.log_segments.copy(), self.log_segments.active_segment
        if active.base_offset == base:
            self._files.mark_deleted([active])
        else:
            self._files.remove_leftovers(base)
            active.on_become_inactive_segment()
        segments.add(self._files.open_segment(base))
        self._move_end(self.log_end_offset, segments=segments)
        self._producers.update_map_end_offset(base)
        self._producers.take_snapshot()
        self._move_high_watermark_to_end()
        self._flush_up_to(base, base)
        return base

    def _check_roll(self, base: int) -> None:
        """Return if a segment with this base may follow. Law: LOG-12."""
        segments = self.log_segments
        active = segments.active_segment
        is_replaced = active.base_offset == base and active.size == 0
        if (segments.contains(base) or base < active.base_offset) and not is_replaced:
            raise SegproofError(
                "a new segment cannot begin there",
                law="LOG-12",
                path=active.log.name,
                expected=f"more than {active.base_offset}",
                actual=base,
            )
        if base >= 1 << 63:
            raise InvalidArgumentError(f"base offset {base} is outside 64 bits", path=self.dir)

    # --- cutting

    def truncate_to(self, target_offset: int) -> bool:
        """Cut the log before the batch that holds `target_offset`; return whether it ends above.

        Later segments are gone at once, their files after the delay. What is removed stays removed
        after a crash. Laws: LOG-13, LOG-14.

        Raises, with nothing changed: InvalidArgumentError for a negative offset. OSError.
        """
        self._check_open()
        target = to_int(target_offset)
        if target < 0:
            raise InvalidArgumentError(
                "a log is not cut at a negative offset", law="LOG-13", path=self.dir, actual=target
            )
        if target >= self.log_end_offset:
            self._epochs.truncate_from_end(self.log_end_offset)
            return False
        if self.log_segments.base_offsets()[0] > target:
            self.truncate_fully_and_start_at(target)
            return True
        self._remove(self.log_segments.higher_segments(target))
        self._cut_active(target)
        self._epochs.truncate_from_end(target)
        self._rebuild_producer_state()
        self._move_high_watermark_to_end()
        self._publish()
        return True

    def _remove(self, removed: Sequence[LogSegment]) -> None:
        """Remove some segments at the beginning or the end, but not all."""
        if not removed:
            return
        segments = self.log_segments.copy()
        for segment in removed:
            segments.remove(segment.base_offset)
        if segments.active_segment is not self.log_segments.active_segment:
            end = min(removed[0].base_offset, self.log_end_offset)
            self._move_end(end, segments=segments, is_removal=True)
        else:
            self._publish(segments=segments, is_removal=True)
        self._files.mark_deleted(removed)
        self._files.mark_snapshots_deleted(self._producers, removed)

    def _cut_active(self, target: int) -> None:
        """Cut the active segment, which holds `target`; the end that readers see moves first."""
        before = self._view
        active = before.segments.active_segment
        found = active.translate_offset(target)
        position = active.size if found is None else found.position
        self._publish(
            log_end=LogOffsetMetadata(target, active.base_offset, position),
            log_start_offset=min(target, before.log_start_offset),
            is_removal=True,
        )
        try:
            active.truncate_to(target)
            active.log.flush()
        except BaseException:
            if active.size != position:
                end, start = before.log_end, before.log_start_offset
                self._publish(log_end=end, log_start_offset=start, is_removal=True)
            raise
        self._recovery_point = min(self._recovery_point, target)

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove everything, and begin anew with an empty segment at `new_offset`.

        The log start is that offset unless another one is given. Raises, with nothing changed:
        InvalidArgumentError for an offset outside 63 bits. OSError.
        """
        self._check_open()
        offset = to_int(new_offset)
        start = offset if log_start_offset is None else to_int(log_start_offset)
        for name, value in (("new_offset", offset), ("log_start_offset", start)):
            if not 0 <= value < 1 << 63:
                raise InvalidArgumentError(f"{name} is {value}, not from 0 to 2^63 - 1")
        removed = self.log_segments.values()
        segments = self.log_segments.copy()
        segments.clear()
        self._files.mark_deleted(removed)
        self._files.remove_leftovers(offset)
        segments.add(self._files.open_segment(offset))
        self._files.sync()
        end = LogOffsetMetadata(offset, offset, 0)
        self._producers.truncate_fully_and_start_at(offset)
        self._publish(
            segments=segments,
            log_start_offset=start,
            log_end=end,
            high_watermark=end,
            is_removal=True,
        )
        self._recovery_point = min(self._recovery_point, offset)
        self._epochs.clear_and_flush()
        self._rebuild_producer_state()
        self._set_high_watermark(end)

    def _rebuild_producer_state(self) -> None:
        view = self._view
        end = view.log_end.message_offset
        start, now = view.log_start_offset, self._files.time()
        rebuild_producer_state(self._producers, view.segments, start, end, now)

    # --- removing

    def delete_old_segments(self) -> int:
        """Remove the oldest segments: below the log start, beyond size or time; return how many.

        None of them holds an offset at or above the high watermark. The log start moves to the
        first one that stays. Laws: LOG-17, LOG-18. Raises: OSError.
        """
        self._check_open()
        count = 0
        for rule in RULES:
            removed = rule(self._view, self.config, self._files.time())
            if not removed:
                continue
            if len(removed) == len(self.log_segments):
                self.roll()
            following = self.log_segments.higher_segment(removed[-1].base_offset)
            if following is None:
                raise OffsetOutOfRangeError("no segment would stay", law="LOG-17", path=self.dir)
            self.maybe_increment_log_start_offset(following.base_offset)
            self._remove(removed)
            count += len(removed)
        return count

    def delete_pending_files(self) -> int:
        """Remove the files of removed segments whose delay is over; return how many groups.

        A segment's files are one group, a snapshot is one. Raises: OSError; the others are tried.
        """
        return self._files.remove_pending(self._files.time())

    def split_overflowed_segment(self, base_offset: int) -> list[LogSegment]:
        """Put segments in the place of one that holds offsets too far from its base; return them.

        Laws: LOG-19, LOG-20.
        Raises, with nothing changed: InvalidArgumentError for a segment that is not there, or has
        no such offset. OSError.
        """
        self._check_open()
        segments = self.log_segments.copy()
        segment = segments.get(to_int(base_offset))
        if segment is None:
            raise InvalidArgumentError(
                "there is no segment with this base offset",
                law="LOG-20",
                path=self.dir,
                expected=segments.base_offsets(),
                actual=base_offset,
            )
        is_active = segment is segments.active_segment
        new, removed = split_segment(self._files, segments, segment)
        if is_active:
            self._move_end(self.log_end_offset, segments=segments, is_removal=True)
        else:
            self._publish(segments=segments, is_removal=True)
        self._files.mark_snapshots_deleted(self._producers, removed)
        return new

    # --- the end

    def close(self) -> None:
        """Write a snapshot of the producers, cut and close all files; a second close does nothing.

        All from the recovery point on is recovered by the next `open`, unless that is told that the
        shutdown was clean. Raises: OSError, once everything is closed.
        """
        if self._view.is_closed:
            return
        try:
            self._producers.take_snapshot()
        finally:
            self._publish(is_removal=True, is_closed=True)
            self._files.close_pending()
            self.log_segments.close()

    def close_handlers(self) -> None:
        """Close all files as they are; nothing is written or cut. Raises: OSError."""
        if self._view.is_closed:
            return
        self._publish(is_removal=True, is_closed=True)
        self._files.close_pending()
        self.log_segments.close_handlers()

    def delete(self) -> bool:
        """Remove the log with all its files; return whether its directory is gone too.

        The newest segment goes first, so what a crash leaves is the log up to some offset. Files
        that are not the log's stay, and the directory with them. Raises: OSError.
        """
        self._check_open()
        self._publish(is_removal=True, is_closed=True)
        self._epochs.clear()
        for segment in reversed(self.log_segments.values()):
            segment.delete_if_exists()
        self._files.remove_pending()
        self._producers.truncate_fully_and_start_at(0)
        for name in ("leader-epoch-checkpoint", "partition.metadata"):
            self._files.files.remove(self._files.path(name))
        return self._files.files.remove_directory(self.dir)
