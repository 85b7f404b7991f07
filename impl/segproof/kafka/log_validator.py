# SPDX-License-Identifier: Apache-2.0
"""What a log asks of records before it takes them, and how a leader gives them their offsets.

Nothing here changes a log. `analyze` reads headers and checksums; `assign_offsets` reads every
record of what a client sends, and returns it with offset, epoch and timestamp stamped.

Upstream: Kafka 4.3.1: UnifiedLog.analyzeAndValidateRecords, LogValidator, LogAppendInfo.
Laws: LOG-10, LOG-21, BATCH-3, BATCH-14.
Not covered: a coordinator's batch without records that would get another codec: it is refused.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from segproof.checksums import crc32c
from segproof.errors import (
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    OffsetOrderError,
    RecordTooLargeError,
)
from segproof.integers import INT64_MAX, INT64_MIN
from segproof.kafka.batch_writing import write_batch
from segproof.kafka.log_config import LogConfig
from segproof.kafka.producer_append_info import AppendOrigin
from segproof.kafka.record import RecordColumns
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import scan_memory

_NO_TIMESTAMP = -1
_LOG_APPEND_TIME_BIT = 8
_KEPT_ATTRIBUTES = 0x77
"""Codec, transactional, control and delete horizon; the type of timestamp is made new."""
_OFFSET, _EPOCH, _CHECKSUM = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">I")
_ATTRIBUTES, _MAX_TIMESTAMP = struct.Struct(">h"), struct.Struct(">q")
_FIRST_CHECKED_BYTE = 21


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


def assign_offsets(
    records: bytes,
    batches: list[RecordBatch],
    info: LogAppendInfo,
    config: LogConfig,
    *,
    origin: AppendOrigin,
    leader_epoch: int,
    log_end_offset: int,
    now: int,
) -> tuple[LogAppendInfo, bytes]:
    """Return the records as one batch with offsets from `log_end_offset` on, and what it says then.

    Leader epoch and timestamps are stamped too; the checksum is made new only where bytes below it
    have changed. Written again, with `valid_bytes` as given, are messages of magic 0 and 1,
    which become one batch, what the topic wants with another codec, and a compressed batch whose
    records do not count from 0, as some old clients send it: newer releases fail on the latter.
    `now` is the time in ms since 1970.

    Raises: InvalidRecordError, InvalidTimestampError, RecordTooLargeError for what a leader
    refuses, CorruptRecordError for the checksum of a message inside another; InvalidArgumentError
    for what can't be written again: nothing, or a timestamp below -1.
    """
    first = batches[0]
    source = next((b.compression for b in reversed(batches) if b.compression != "none"), "none")
    if len(batches) > 1 and (first.magic >= 2 or source != "none"):
        raise InvalidRecordError("a leader takes one batch at a time", actual=len(batches))
    target = {"producer": source, "uncompressed": "none"}.get(
        config.compression_type, config.compression_type
    )
    columns = [_checked_records(batch, first.magic, config, origin, now) for batch in batches]
    count = sum(map(len, columns))
    check_last_offset(log_end_offset + count - 1)
    is_appended = config.message_timestamp_type == "LogAppendTime"
    largest = max((int(one.timestamps.max()) for one in columns if len(one)), default=-1)
    told = info._replace(
        first_offset=log_end_offset,
        last_offset=log_end_offset + count - 1,
        max_timestamp=now if is_appended else max(largest, _NO_TIMESTAMP),
        log_append_time=now if is_appended else _NO_TIMESTAMP,
    )
    is_kept = source == target or (source == "none" and first.is_control)
    if is_kept and (source, target) != ("none", "none"):
        is_kept = _counts_from_0(columns[0])
    if first.magic >= 2 and is_kept:
        return told, _stamped(records[: info.valid_bytes], first, told, leader_epoch, config)
    return told, _rewritten(batches, target, told, leader_epoch, config)


def _checked_records(
    batch: RecordBatch, magic: int, config: LogConfig, origin: AppendOrigin, now: int
) -> RecordColumns:
    """Return the records of a batch, if a leader takes each of them."""
    if batch.magic != magic:
        raise InvalidRecordError(
            "the messages are of different formats",
            position=batch.position,
            expected=f"magic {magic}",
            actual=batch.magic,
        )
    if origin == "client" and magic >= 2:
        _check_client_batch(batch)
    foreign = batch.check_inner_messages()
    columns = batch.record_columns()
    _check_records(batch, columns, foreign, config, now)
    return columns


def _check_client_batch(batch: RecordBatch) -> None:
    """Return if a client may send the batch. Raises: InvalidRecordError."""
    span, count = batch.last_offset - batch.base_offset + 1, batch.record_count or 0
    fault = None
    if span <= 0 or count <= 0 or span != count:
        fault = f"it has {count} records for {span} offsets"
    elif batch.is_control:
        fault = "a client may not write control records"
    elif batch.producer_id > -1 and batch.base_sequence < 0:
        fault = f"it has producer id {batch.producer_id}, but sequence {batch.base_sequence}"
    if fault is not None:
        raise InvalidRecordError(f"the batch is refused: {fault}", position=batch.position)


def _check_records(
    batch: RecordBatch,
    columns: RecordColumns,
    foreign: list[int],
    config: LogConfig,
    now: int,
) -> None:
    """Return if each record has a key where it must, and a timestamp near enough.

    `foreign` are the rows of another magic than the batch's, which no leader takes. A timestamp is
    told before what else is wrong, as long as its own record has nothing else.
    """
    is_foreign = np.zeros(len(columns), bool)
    is_foreign[foreign] = True
    keyless = (columns.key_lengths < 0) & config.is_compacted
    far = _far_timestamps(batch, columns, config, now) & ~is_foreign & ~keyless
    bad = np.flatnonzero(is_foreign | keyless | far)
    if not len(bad):
        return
    row = int(np.argmax(far)) if bool(far.any()) else int(bad[0])
    if bool(far[row]):
        raise InvalidTimestampError(
            "the timestamp of a record is too far from the clock, or not the producer's to set",
            position=batch.position,
            expected=f"{now - config.message_timestamp_before_max_ms} to "
            f"{now + config.message_timestamp_after_max_ms}, type CreateTime",
            actual=int(columns.timestamps[row]),
        )
    fault = "has no key, which a compacted topic needs"
    if bool(is_foreign[row]):
        fault = "is of another magic than the message that holds it"
    raise InvalidRecordError(f"record {row} {fault}", position=batch.position)


def _far_timestamps(
    batch: RecordBatch, columns: RecordColumns, config: LogConfig, now: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    timestamps = columns.timestamps
    is_checked = np.zeros(len(columns), bool)
    if config.message_timestamp_type == "CreateTime":
        is_checked = timestamps != _NO_TIMESTAMP
    # With Python's ints: a difference of two int64 need not be one.
    low = max(now - config.message_timestamp_before_max_ms, INT64_MIN)
    high = min(now + config.message_timestamp_after_max_ms, INT64_MAX)
    is_far = is_checked & ((timestamps < low) | (timestamps > high))
    if batch.timestamp_type == "LogAppendTime":
        is_far |= ~is_checked
    return is_far


def _counts_from_0(columns: RecordColumns) -> bool:
    """Return whether the offsets are those that a new header gives the records as they are."""
    return bool((columns.offsets == np.arange(len(columns))).all())


def _rewritten(
    batches: list[RecordBatch],
    compression: str,
    info: LogAppendInfo,
    leader_epoch: int,
    config: LogConfig,
) -> bytes:
    """Return one batch of magic 2 with the records of all, and this codec.

    Raises: RecordTooLargeError where it is larger than the topic allows.
    """
    first = batches[0]
    given = (record for batch in batches for record in batch.records())
    records = [
        replace(record, offset=offset) for offset, record in enumerate(given, info.first_offset)
    ]
    is_appended = config.message_timestamp_type == "LogAppendTime"
    data = write_batch(
        records,
        base_offset=info.first_offset,
        compression=compression,
        timestamp_type=config.message_timestamp_type,
        log_append_time=info.max_timestamp if is_appended else None,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        partition_leader_epoch=leader_epoch,
        is_transactional=first.is_transactional,
    )
    if len(data) > config.max_message_bytes:
        raise _too_large(len(data), config)
    return data


def _stamped(
    records: bytes,
    batch: RecordBatch,
    info: LogAppendInfo,
    leader_epoch: int,
    config: LogConfig,
) -> bytes:
    """Return the bytes of the one batch with what a leader writes into its header."""
    data = bytearray(records)
    _OFFSET.pack_into(data, 0, info.last_offset - (batch.last_offset - batch.base_offset))
    _EPOCH.pack_into(data, 12, leader_epoch)
    timestamp_type, max_timestamp = config.message_timestamp_type, info.max_timestamp
    if batch.timestamp_type != timestamp_type or batch.max_timestamp != max_timestamp:
        bit = _LOG_APPEND_TIME_BIT if timestamp_type == "LogAppendTime" else 0
        _ATTRIBUTES.pack_into(data, _FIRST_CHECKED_BYTE, batch.attributes & _KEPT_ATTRIBUTES | bit)
        _MAX_TIMESTAMP.pack_into(data, 35, max_timestamp)
        _CHECKSUM.pack_into(data, 17, crc32c(memoryview(data)[_FIRST_CHECKED_BYTE:]))
    return bytes(data)


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
