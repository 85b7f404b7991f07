# SPDX-License-Identifier: Apache-2.0
"""What a log asks of records before it takes them, and how a leader gives them their offsets.

Nothing here changes a log. `analyze` reads headers and checksums; `LogValidator` reads every record
of what a client sends, and returns it with offset, epoch and timestamp stamped.

Upstream: Kafka 4.3.1: UnifiedLog.analyzeAndValidateRecords, LogValidator, LogAppendInfo.
Laws: LOG-10, LOG-21, BATCH-3, BATCH-14.
Not covered: a coordinator's batch without records that would get another codec: it is refused.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from segproof.checksums import crc32c
from segproof.counts import plural
from segproof.errors import (
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    OffsetOrderError,
    RecordTooLargeError,
)
from segproof.integers import INT64_MAX, INT64_MIN
from segproof.kafka.batch_writing import LOG_APPEND_TIME_BIT, write_batch
from segproof.kafka.log_config import LogConfig
from segproof.kafka.producer_append_info import AppendOrigin
from segproof.kafka.record import RecordColumns
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import scan_memory
from segproof.layouts.kafka import BATCH, CHECKED_FROM

_NO_TIMESTAMP = -1
_KEPT_ATTRIBUTES = 0x77
"""Codec, transactional, control and delete horizon; the type of timestamp is made new."""


class LogAppendInfo(NamedTuple):
    """What an append did, or what is known of records before they are appended."""

    first_offset: int = -1
    """-1: no records, or by replication records of a format that does not tell it."""
    last_offset: int = -1
    """Inclusive; -1: no records."""
    max_timestamp: int = -1
    """The largest one, ms since 1970; -1: none."""
    log_append_time: int = -1
    """The time by which the records were stamped, ms since 1970; -1: they keep their own."""
    log_start_offset: int = 0
    valid_bytes: int = 0
    """Bytes that were given and taken; behind them lie a part of a batch, or a later epoch's."""
    last_offset_of_first_batch: int = -1

    @property
    def first_or_last_offset_of_first_batch(self) -> int:
        """The first offset, or the best that is known of it."""
        return self.first_offset if self.first_offset >= 0 else self.last_offset_of_first_batch


def analyze(
    records: bytes,
    config: LogConfig,
    *,
    origin: AppendOrigin,
    leader_epoch: int,
    log_start_offset: int,
) -> tuple[LogAppendInfo, list[RecordBatch]]:
    """Check the batches, none of their records, and return what they say, and the batches to take.

    By replication a batch of a later epoch than the leader's ends them; from others, offsets need
    not rise, since they are given new ones. Behind the last whole batch a part of one may lie.

    Raises: CorruptRecordError for a wrong size or checksum; RecordTooLargeError, but not by
    replication; OffsetOrderError by replication; InvalidRecordError where a client's offsets do not
    begin with 0.
    """
    batches: list[RecordBatch] = []
    last_offset, largest, size = -1, _NO_TIMESTAMP, 0
    is_rising = True
    for batch in _taken(records, origin, leader_epoch):
        batches.append(batch)
        if origin == "client" and batch.magic >= 2 and batch.base_offset != 0:
            raise InvalidRecordError(
                "a client's batch begins with offset 0",
                position=batch.position,
                expected=0,
                actual=batch.base_offset,
            )
        is_rising &= last_offset < batch.last_offset
        last_offset = batch.last_offset
        _check_batch(batch, config, origin)
        largest = max(largest, batch.max_timestamp)
        size += batch.size_bytes
    if origin == "replication" and not is_rising:
        raise OffsetOrderError(
            "the offsets of the batches do not rise",
            law="LOG-21",
            actual=[batch.last_offset for batch in batches[:10]],
        )
    if not batches:
        return LogAppendInfo(log_start_offset=log_start_offset), []
    first = batches[0]
    info = LogAppendInfo(
        first.base_offset if first.magic >= 2 else -1,
        last_offset,
        largest,
        _NO_TIMESTAMP,
        log_start_offset,
        size,
        first.last_offset,
    )
    return info, batches


def _taken(records: bytes, origin: AppendOrigin, leader_epoch: int) -> Iterator[RecordBatch]:
    """Yield the batches up to the first one of a later epoch; those behind are still framed."""
    is_skipping = False
    for batch in scan_memory(records):
        is_skipping |= origin == "replication" and batch.partition_leader_epoch > leader_epoch
        if not is_skipping:
            yield batch


def _check_batch(batch: RecordBatch, config: LogConfig, origin: AppendOrigin) -> None:
    if origin != "replication" and batch.size_bytes > config.max_message_bytes:
        raise _too_large(batch.size_bytes, config, batch.position)
    batch.ensure_valid()


def _too_large(
    size_bytes: int, config: LogConfig, position: int | None = None
) -> RecordTooLargeError:
    return RecordTooLargeError(
        "a batch is larger than the topic allows",
        position=position,
        expected=f"at most {config.max_message_bytes} bytes",
        actual=size_bytes,
        hint="the option is max_message_bytes",
    )


class LogValidator:
    """What a leader does with the records of one call, which have passed `analyze`."""

    def __init__(
        self,
        records: bytes,
        batches: list[RecordBatch],
        info: LogAppendInfo,
        now_ms: int,
        config: LogConfig,
        leader_epoch: int,
        origin: AppendOrigin,
    ) -> None:
        """Take the bytes, what `analyze` says of them, and the time in ms since 1970."""
        self.records, self.batches, self.info, self.first = records, batches, info, batches[0]
        self.now_ms, self.config = now_ms, config
        self.leader_epoch, self.origin = leader_epoch, origin
        self.is_log_append_time = config.message_timestamp_type == "LogAppendTime"
        compressions = (batch.compression for batch in reversed(batches))
        self.source_compression = next((one for one in compressions if one != "none"), "none")
        """The codec of the last batch that has any."""
        self.target_compression = {
            "producer": self.source_compression,
            "uncompressed": "none",
        }.get(config.compression_type, config.compression_type)
        """The codec that the topic wants."""

    def validate_messages_and_assign_offsets(
        self, first_offset: int
    ) -> tuple[LogAppendInfo, bytes]:
        """Return the records as one batch with offsets from the first one on, and what it says.

        Leader epoch and timestamps are stamped too; the checksum is made new only where bytes below
        it have changed. Written again, with `valid_bytes` as given, are messages of magic 0 and 1,
        which become one batch, what the topic wants with another codec, and a compressed batch
        whose records do not count from 0, as some old clients send it: newer releases fail on the
        latter.

        Raises: InvalidRecordError, InvalidTimestampError, RecordTooLargeError for what a leader
        refuses, CorruptRecordError for the checksum of a message inside another;
        InvalidArgumentError for what can't be written again: nothing, or a timestamp below -1.
        """
        source, target = self.source_compression, self.target_compression
        is_legacy = self.first.is_legacy
        if len(self.batches) > 1 and (not is_legacy or source != "none"):
            raise InvalidRecordError("a leader takes one batch at a time", actual=len(self.batches))
        columns = [self._checked_records(batch) for batch in self.batches]
        last_offset = first_offset + sum(map(len, columns)) - 1
        check_last_offset(last_offset)
        largest = max((int(one.timestamps.max()) for one in columns if len(one)), default=-1)
        told = self.info._replace(
            first_offset=first_offset,
            last_offset=last_offset,
            max_timestamp=self.now_ms if self.is_log_append_time else max(largest, _NO_TIMESTAMP),
            log_append_time=self.now_ms if self.is_log_append_time else _NO_TIMESTAMP,
        )
        is_kept = source == target or (source == "none" and self.first.is_control)
        if is_kept and (source, target) != ("none", "none"):
            is_kept = _counts_from_0(columns[0])
        if is_kept and not is_legacy:
            return told, self._stamped(told)
        return told, self._rewritten(told)

    def _checked_records(self, batch: RecordBatch) -> RecordColumns:
        """Return the records of a batch, if a leader takes each of them."""
        if batch.magic != self.first.magic:
            raise InvalidRecordError(
                "the messages are of different formats",
                position=batch.position,
                expected=f"magic {self.first.magic}",
                actual=batch.magic,
            )
        if self.origin == "client" and not batch.is_legacy:
            _check_client_batch(batch)
        foreign = batch.check_inner_messages()
        columns = batch.record_columns()
        self._check_records(batch, columns, foreign)
        return columns

    def _check_records(
        self, batch: RecordBatch, columns: RecordColumns, foreign: list[int]
    ) -> None:
        """Return if each record has a key where it must, and a timestamp near enough.

        `foreign` are the rows of another magic than the batch's, which no leader takes. A timestamp
        is told before what else is wrong, as long as its own record has nothing else.
        """
        is_wrong = np.zeros(len(columns), bool)
        is_wrong[foreign] = True
        if self.config.is_compacted:
            is_wrong |= columns.key_lengths < 0
        # With Python's ints: a difference of two int64 need not be one.
        low = max(self.now_ms - self.config.message_timestamp_before_max_ms, INT64_MIN)
        high = min(self.now_ms + self.config.message_timestamp_after_max_ms, INT64_MAX)
        timestamps, is_stamped = columns.timestamps, batch.timestamp_type == "LogAppendTime"
        is_far = (timestamps < low) | (timestamps > high)
        is_far[slice(None) if self.is_log_append_time else timestamps == _NO_TIMESTAMP] = is_stamped
        is_far &= ~is_wrong
        if bool(is_far.any()):
            raise InvalidTimestampError(
                "the timestamp of a record is too far from the clock, or not the producer's to set",
                position=batch.position,
                expected=f"{low} to {high}, type CreateTime",
                actual=int(timestamps[np.argmax(is_far)]),
            )
        if bool(is_wrong.any()):
            row, fault = int(np.argmax(is_wrong)), "has no key, which a compacted topic needs"
            if row in foreign:
                fault = "is of another magic than the message that holds it"
            raise InvalidRecordError(f"record {row} {fault}", position=batch.position)

    def _rewritten(self, info: LogAppendInfo) -> bytes:
        """Return one batch of magic 2 with the records of all, and the topic's codec.

        Raises: RecordTooLargeError where it is larger than the topic allows.
        """
        first = self.first
        given = (record for batch in self.batches for record in batch.records())
        data = write_batch(
            [
                replace(record, offset=offset)
                for offset, record in enumerate(given, info.first_offset)
            ],
            base_offset=info.first_offset,
            compression=self.target_compression,
            timestamp_type=self.config.message_timestamp_type,
            log_append_time=info.max_timestamp if self.is_log_append_time else None,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=first.base_sequence,
            partition_leader_epoch=self.leader_epoch,
            is_transactional=first.is_transactional,
        )
        if len(data) > self.config.max_message_bytes:
            raise _too_large(len(data), self.config)
        return data

    def _stamped(self, info: LogAppendInfo) -> bytes:
        """Return the bytes of the one batch with what a leader writes into its header."""
        data, batch = bytearray(self.records[: self.info.valid_bytes]), self.first
        BATCH["base_offset"].put(data, info.last_offset - (batch.last_offset - batch.base_offset))
        BATCH["partition_leader_epoch"].put(data, self.leader_epoch)
        timestamp_type, max_timestamp = self.config.message_timestamp_type, info.max_timestamp
        if batch.timestamp_type != timestamp_type or batch.max_timestamp != max_timestamp:
            bit = LOG_APPEND_TIME_BIT if self.is_log_append_time else 0
            attributes = batch.attributes & _KEPT_ATTRIBUTES | bit
            BATCH["attributes"].put(data, attributes)
            BATCH["max_timestamp"].put(data, max_timestamp)
            BATCH["crc"].put(data, crc32c(memoryview(data)[CHECKED_FROM:]))
        return bytes(data)


def _check_client_batch(batch: RecordBatch) -> None:
    """Return if a client may send the batch. Raises: InvalidRecordError."""
    span, count = batch.last_offset - batch.base_offset + 1, batch.record_count or 0
    fault = None
    if span <= 0 or count <= 0 or span != count:
        fault = f"it has {plural(count, 'record')} for {plural(span, 'offset')}"
    elif batch.is_control:
        fault = "a client may not write control records"
    elif batch.producer_id > -1 and batch.base_sequence < 0:
        fault = f"it has producer id {batch.producer_id}, but sequence {batch.base_sequence}"
    if fault is not None:
        raise InvalidRecordError(f"the batch is refused: {fault}", position=batch.position)


def _counts_from_0(columns: RecordColumns) -> bool:
    """Return whether the offsets are those that a new header gives the records as they are."""
    return bool((columns.offsets == np.arange(len(columns))).all())


def check_last_offset(last_offset: int) -> None:
    """Return if another offset of 64 bits follows this one. Raises: InvalidArgumentError."""
    if last_offset >= INT64_MAX:
        raise InvalidArgumentError(
            "no offset of 64 bits would be left",
            expected=f"at most {INT64_MAX - 1}",
            actual=last_offset,
        )


def offsets_below_end(
    info: LogAppendInfo, batches: list[RecordBatch], log_end_offset: int
) -> OffsetOrderError | None:
    """Return the error for given offsets that do not continue the log, or None. Law: LOG-21."""
    if info.first_or_last_offset_of_first_batch >= log_end_offset:
        return None
    return OffsetOrderError(
        "the records begin below the end of the log",
        law="LOG-21",
        expected=f"an offset of at least {log_end_offset}",
        actual=[batch.base_offset for batch in batches[:1]],
    )
