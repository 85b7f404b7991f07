# SPDX-License-Identifier: Apache-2.0
"""Writing record batches of every format.

Mirrors: the writing functions of impl/segproof/kafka/record_batch.py.
Upstream: Kafka, MemoryRecordsBuilder, DefaultRecordBatch, MemoryRecords (3.9.0).
Layout: see record_batch and legacy_record.
Laws: BATCH-1 to BATCH-9, BATCH-13, BATCH-15, BATCH-19, BATCH-20.
Not covered: a delete horizon, which only the log cleaner writes.
Used by: record_batch, which offers these names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from segproof_model.kafka.compression import (
    COMPRESSIONS,
    NO_CODECS,
    NONE,
    Codecs,
    crc32c,
    deflate,
    is_known,
)
from segproof_model.kafka.legacy_record import NO_TIMESTAMP, encode_messages
from segproof_model.kafka.record import INVALID_ARGUMENT, Record, encode_record
from segproof_model.language.integers import INT32_MAX, int32_bytes, int64_bytes
from segproof_model.language.outcomes import Raised
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")
LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 8, 16, 32, 64


def write_batch(
    records: Sequence[Record],
    *,
    magic: int = 2,
    base_offset: int,
    compression: str = "none",
    timestamp_type: str = "CreateTime",
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    last_offset: int | None = None,
    codecs: Codecs = NO_CODECS,
    profile: Profile = NEWEST_KAFKA,
) -> bytes | Raised:
    """Return the records as a batch; before magic 2 as messages, or as one wrapper of them.

    `last_offset` keeps an offset whose record is gone. What the format cannot say raises
    invalid-argument.
    """
    header = _Header(
        base_offset=base_offset,
        last_offset=records[-1].offset if records and last_offset is None else last_offset or 0,
        base_timestamp=records[0].timestamp if records else NO_TIMESTAMP,
        max_timestamp=max((record.timestamp for record in records), default=NO_TIMESTAMP),
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )
    if timestamp_type == "LogAppendTime" and magic > 0:
        if log_append_time is None:
            return INVALID_ARGUMENT
        header = replace(header, max_timestamp=log_append_time)
    if (
        compression not in COMPRESSIONS
        or not is_known(COMPRESSIONS.index(compression), profile)
        or not _records_can_be_written(records, header)
        or not _magic_can_be_written(magic, header, profile)
        or (
            magic < 2
            and not _legacy_can_say(records, magic, compression, header, last_offset, profile)
        )
    ):
        return INVALID_ARGUMENT
    codec = COMPRESSIONS.index(compression)
    if magic < 2:
        appended = log_append_time if timestamp_type == "LogAppendTime" else None
        is_create_time = timestamp_type == "CreateTime"
        return encode_messages(records, magic, codec, base_offset, is_create_time, appended, codecs)
    body = b"".join(encode_record(record, base_offset, header.base_timestamp) for record in records)
    stored = body if codec == NONE else deflate(codec, body, 2, codecs)
    if isinstance(stored, Raised):
        return stored
    return header.to_bytes(codec, len(records), stored)


def write_empty_batch(
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    *,
    timestamp_type: str = "CreateTime",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes | Raised:
    """Return a batch without records, as compaction leaves it of a producer's last (BATCH-15)."""
    header = _Header(
        base_offset=base_offset,
        last_offset=last_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=max_timestamp,
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )
    return header.to_bytes(NONE, 0, b"") if header.can_be_written() else INVALID_ARGUMENT


def write_end_transaction_marker(
    control_type: str,
    *,
    offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int = -1,
) -> bytes | Raised:
    """Return the control batch that ends a transaction; `control_type` is ABORT or COMMIT."""
    if control_type not in ("ABORT", "COMMIT"):
        return INVALID_ARGUMENT
    key = b"\0\0" + bytes([0, ("ABORT", "COMMIT").index(control_type)])
    value = b"\0\0" + int32_bytes(coordinator_epoch)
    return write_batch(
        [Record(offset, timestamp, key, value)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The fields of a batch of magic 2 that is being written."""

    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    timestamp_type: str
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool

    def can_be_written(self) -> bool:
        """Whether the fields go together."""
        has_producer = self.producer_id != -1
        return (
            self.timestamp_type in TIMESTAMP_TYPES[1:]
            and 0 <= self.last_offset - self.base_offset <= INT32_MAX
            and self.base_timestamp >= NO_TIMESTAMP
            and (has_producer or not self.is_transactional)
            and (not has_producer or self.producer_epoch >= 0)
            and (not has_producer or self.base_sequence >= 0 or self.is_control)
        )

    def to_bytes(self, codec: int, count: int, stored: bytes) -> bytes:
        """Return the batch with these records."""
        attributes = (
            codec
            + (LOG_APPEND_TIME_BIT if self.timestamp_type == "LogAppendTime" else 0)
            + (TRANSACTIONAL_BIT if self.is_transactional else 0)
            + (CONTROL_BIT if self.is_control else 0)
        )
        checked = (
            attributes.to_bytes(2, "big")
            + int32_bytes(self.last_offset - self.base_offset)
            + int64_bytes(self.base_timestamp)
            + int64_bytes(self.max_timestamp)
            + int64_bytes(self.producer_id)
            + self.producer_epoch.to_bytes(2, "big", signed=True)
            + int32_bytes(self.base_sequence)
            + int32_bytes(count)
            + stored
        )
        framed = (
            int32_bytes(self.partition_leader_epoch)
            + b"\x02"
            + crc32c(checked).to_bytes(4, "big")
            + checked
        )
        return int64_bytes(self.base_offset) + int32_bytes(len(framed)) + framed


def _records_can_be_written(records: Sequence[Record], header: _Header) -> bool:
    """Return whether there are records, in order, within the batch."""
    offsets = [record.offset for record in records]
    return (
        bool(records)
        and all(one < next_one for one, next_one in zip(offsets, offsets[1:], strict=False))
        and header.base_offset <= offsets[0]
        and offsets[-1] <= header.last_offset
        and all(record.timestamp >= NO_TIMESTAMP for record in records)
    )


def _magic_can_be_written(magic: int, header: _Header, profile: Profile) -> bool:
    """Return whether the release writes this format, and the format these fields."""
    if magic == 2:
        return profile.magic_2_is_written and header.can_be_written()
    return magic in (0, 1)


def _legacy_can_say(
    records: Sequence[Record],
    magic: int,
    compression: str,
    header: _Header,
    last_offset: int | None,
    profile: Profile,
) -> bool:
    """Return whether magic 0 and 1 have a place for all of it."""
    first_type = magic if profile.timestamp_type_is_needed else 0
    return not (
        compression == "zstd"
        or header.producer_id != -1
        or header.is_transactional
        or header.is_control
        or header.timestamp_type not in TIMESTAMP_TYPES[first_type:]
        or last_offset is not None
        or any(record.headers for record in records)
    )
