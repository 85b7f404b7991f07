# SPDX-License-Identifier: Apache-2.0
"""Appending to a log, and beginning new segments for it.

All that can refuse an append is asked before anything is changed: the records, their size, the
place of a new segment, the producers, the three indexes of the active segment. Only what a new
segment's indexes refuse, too small for one call, is known later: the new segment stays then.

Mirrors: segproof_model/kafka/broker/log_append.py, and local_log.py as far as it rolls.
Upstream: Kafka, UnifiedLog.append, roll; LocalLog.roll (4.3.1).
Laws: LOG-9 to LOG-12, LOG-21, PROD-11.
"""

from collections.abc import Sequence
from operator import index as to_int
from typing import NamedTuple

from segproof.errors import (
    InvalidArgumentError,
    InvalidProducerEpochError,
    RecordBatchTooLargeError,
    SegproofError,
)
from segproof.kafka.index_entries import Plan, segment_overflow
from segproof.kafka.log_files import DELETED_SUFFIX, replace_empty_segment
from segproof.kafka.log_segment import LogSegment, RollParams
from segproof.kafka.log_state import LogState
from segproof.kafka.log_validator import (
    LogAppendInfo,
    analyze,
    assign_offsets,
    check_last_offset,
    offsets_below_end,
)
from segproof.kafka.producer_append_info import NO_TRANSACTION_VERSION
from segproof.kafka.producer_snapshot import BatchMetadata, ProducerStateEntry
from segproof.kafka.producer_state import AppendOrigin, CompletedTxn, ProducerAppendInfo
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import scan_memory
from segproof.kafka.segment_recovery import aborted_txn
from segproof.kernels.log_rules import roll_base
from segproof.kernels.segment_rules import fits_segment

__all__ = ["AppendableLog"]


class _ProducerUpdate(NamedTuple):
    """What an append does to the producer state, once it counts."""

    infos: dict[int, ProducerAppendInfo]
    completed: list[CompletedTxn]
    duplicate: BatchMetadata | None
    """The batch in the log that is sent again; then nothing is appended."""


class AppendableLog(LogState):
    """A log that is appended to and rolled."""

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
        must be written anew and can't be; what an index raises that takes no entry;
        IndexClosedError. OSError.
        """
        return self._append(records, to_int(leader_epoch), origin, transaction_version)

    def append_as_follower(self, records: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the offsets that they have.

        The first batch of a later epoch than the leader's, and what follows, is left out.
        Laws: LOG-9, LOG-10, LOG-11, LOG-21.

        Raises, with nothing changed: OffsetOrderError; CorruptRecordError,
        RecordBatchTooLargeError, SegmentOffsetOverflowError, InvalidTransactionStateError; what an
        index raises that takes no entry; IndexClosedError. OSError.
        """
        return self._append(records, to_int(leader_epoch), "replication", NO_TRANSACTION_VERSION)

    def _append(
        self, records: bytes, leader_epoch: int, origin: AppendOrigin, transaction_version: int
    ) -> LogAppendInfo:
        self._check_open()
        if not -(1 << 31) <= leader_epoch < 1 << 31:
            raise InvalidArgumentError(
                f"leader epoch {leader_epoch} is outside 32 bits", law="EPOCH-2", path=self.dir
            )
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
            check_last_offset(info.last_offset)
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
        self._check_epochs(batches)
        base = self._base_to_roll(len(data), info)
        update = self._check_producers(batches, origin, transaction_version)
        plan = self._plan(data, info, update, base)
        with self._offline_if_it_fails():
            self._assign_epochs(batches)
            if base is not None:
                self.roll(base)
        if update.duplicate is not None:
            self._publish(epochs=self._epochs.entries)
            known = update.duplicate
            return info._replace(
                first_offset=known.first_offset,
                last_offset=known.last_offset,
                log_append_time=known.timestamp,
            )
        segment = self.log_segments.active_segment
        self._append_to(segment, info.last_offset, data, plan)
        with self._offline_if_it_fails():
            # The end moves before the transaction index is touched (LOG-9).
            self._move_end(info.last_offset + 1, epochs=self._epochs.entries)
            self._update_producers(update, segment, info.last_offset + 1)
            self._keep_high_watermark_within()
            self._publish()
            if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
                self.flush()
        return info

    def _plan(
        self, data: bytes, info: LogAppendInfo, update: _ProducerUpdate, base: int | None
    ) -> Plan | None:
        """Return what the append enters into the active segment's indexes; None for a new one's.

        Raises what one of its three indexes, or the producer state, would refuse. What a new
        segment's refuse, too small for one call, is known when it is there.
        """
        segment, plan = self.log_segments.active_segment, None
        if base is not None:
            self._check_last_entry(base)
        elif update.duplicate is None:
            plan = segment.plan_append(info.last_offset, data)
            aborted = next((txn for txn in update.completed if txn.is_aborted), None)
            if aborted is not None:  # the entries of later ones have larger offsets
                segment.txn_index.check_append(aborted_txn(aborted, 0))
        self._producers.check_completed(update.infos.values(), update.completed)
        return plan

    def _append_to(
        self, segment: LogSegment, last_offset: int, data: bytes, plan: Plan | None
    ) -> None:
        """Append to the segment; where that fails, take back what was written.

        Else the next append would give its offsets a second time. If that fails too, the log is
        offline.
        """
        size = segment.size
        try:
            segment.append_planned(data, plan or segment.plan_append(last_offset, data))
        except BaseException as error:
            self._name_path(error)
            self._publish(epochs=self._epochs.entries)
            with self._offline_if_it_fails(BaseException):
                if segment.size > size:
                    segment.truncate_to(self.log_end_offset)
                elif isinstance(error, OSError):  # part of the bytes may be there
                    segment.log.truncate_to(size)
            raise

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

    def _check_epochs(self, batches: Sequence[RecordBatch]) -> None:
        """Return if every batch that has a place for its leader's epoch has one. Law: EPOCH-2.

        The offset at which an epoch may begin is none below 0 either.
        """
        for batch in batches:
            if batch.magic >= 2 and batch.base_offset < 0:
                raise InvalidArgumentError(
                    "a batch begins below offset 0",
                    law="EPOCH-2",
                    path=self.dir,
                    position=batch.position,
                    expected="at least 0",
                    actual=batch.base_offset,
                )
            if batch.magic >= 2 and batch.partition_leader_epoch < 0:
                raise InvalidArgumentError(
                    "the leader epoch of a batch is negative",
                    law="EPOCH-2",
                    path=self.dir,
                    position=batch.position,
                    expected="at least 0",
                    actual=batch.partition_leader_epoch,
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
            if origin != "replication" and known is not None:
                _check_fence(batch, known)
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
            else:
                self._epochs.assign(batch.partition_leader_epoch, batch.base_offset)

    # --- rolling

    def roll(self, expected_next_offset: int | None = None) -> int:
        """Begin a new segment; return its base offset, the greater of the expected and the end.

        An active segment with that base that is empty is replaced. The old segment, and a snapshot
        of the producers at the new base, are durable then. Laws: LOG-11, LOG-12.

        Raises, with nothing changed: SegproofError for a base that the active segment does not
        allow; what its time index raises that takes no last entry. OSError; the log is offline
        then.
        """
        self._check_open()
        base = max(to_int(expected_next_offset or 0), self.log_end_offset)
        self._check_roll(base)
        self._check_last_entry(base)
        with self._offline_if_it_fails():
            self._roll(base)
        return base

    def _roll(self, base: int) -> None:
        segments, active = self.log_segments.copy(), self.log_segments.active_segment
        is_flushed = base <= self.recovery_point
        if active.base_offset == base:
            replace_empty_segment(self._files, segments, active)
        else:
            self._files.remove_leftovers(base)
            active.on_become_inactive_segment()
            segments.add(self._files.open_segment(base))
        self._move_end(self.log_end_offset, segments=segments)
        self._producers.update_map_end_offset(base)
        self._producers.take_snapshot()
        self._keep_high_watermark_within()
        self._flush_up_to(base, base)
        if is_flushed:
            self._flush_inactive(active)

    def _flush_inactive(self, segment: LogSegment) -> None:
        """Make durable how a segment was ended whose records were durable before."""
        if not segment.has_suffix(DELETED_SUFFIX):
            segment.flush()
        self._files.sync()

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

    def _check_last_entry(self, base: int) -> None:
        """Return if the active segment takes the entry with which it ends, should it end."""
        active = self.log_segments.active_segment
        if active.base_offset != base:
            active.check_last_entry()


def _check_fence(batch: RecordBatch, known: ProducerStateEntry) -> None:
    """Return unless the transaction is one of a producer that a newer one has fenced off."""
    if batch.is_transactional and batch.producer_epoch < known.producer_epoch:
        raise InvalidProducerEpochError(
            f"producer {known.producer_id} is fenced off by a newer one",
            position=batch.position,
            expected=f"epoch {known.producer_epoch} or newer",
            actual=batch.producer_epoch,
        )
