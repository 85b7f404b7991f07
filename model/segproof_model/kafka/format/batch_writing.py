# SPDX-License-Identifier: Apache-2.0
"""Writing record batches of every format.

Mirrors: the writing functions of impl/segproof/kafka/record_batch.py.
Upstream: Kafka 4.4.0, MemoryRecordsBuilder, DefaultRecordBatch, MemoryRecords. Otherwise:
    record_releases.
Layout: see record_batch and legacy_record.
Laws: BATCH-1 to BATCH-9, BATCH-13, BATCH-15, BATCH-19, BATCH-20.
Not covered: a delete horizon, which only the log cleaner writes.
Used by: the log validator, the harness.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from segproof_model.kafka.format.compression import (
    COMPRESSIONS,
    NO_CODECS,
    NONE,
    Codecs,
    crc32c,
    deflate,
)
from segproof_model.kafka.format.legacy_record import (
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    encode_message,
)
from segproof_model.kafka.format.record import Record, encode_record
from segproof_model.kafka.format.record_batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
)
from segproof_model.language.integers import INT32_MAX, int32_bytes, int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Released, refuse

__all__ = [
    "BatchWriter",
    "HeaderToWrite",
    "write_batch",
    "write_empty_batch",
    "write_end_transaction_marker",
]

TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")


@dataclass(frozen=True, kw_only=True)
class HeaderToWrite:
    """The fields of a batch of magic 2 that is being written."""

    base_offset: int
    last_offset: int
    base_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP
    timestamp_type: str = "CreateTime"
    partition_leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False

    def can_be_written(self) -> bool:
        """Return whether the fields go together (BATCH-13)."""
        has_producer = self.producer_id != -1
        return (
            self.timestamp_type in TIMESTAMP_TYPES[1:]
            and 0 <= self.last_offset - self.base_offset <= INT32_MAX
            and self.base_timestamp >= NO_TIMESTAMP
            and (has_producer or not self.is_transactional)
            and (not has_producer or self.producer_epoch >= 0)
            and (not has_producer or self.base_sequence >= 0 or self.is_control)
        )

    def can_hold(self, records: Sequence[Record]) -> bool:
        """Return whether there are records, in order, within the batch."""
        offsets = [record.offset for record in records]
        return (
            bool(records)
            and all(one < next_one for one, next_one in pairwise(offsets))
            and self.base_offset <= offsets[0]
            and offsets[-1] <= self.last_offset
            and all(record.timestamp >= NO_TIMESTAMP for record in records)
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
        epoch, crc = int32_bytes(self.partition_leader_epoch), crc32c(checked).to_bytes(4, "big")
        framed = epoch + b"\x02" + crc + checked
        return int64_bytes(self.base_offset) + int32_bytes(len(framed)) + framed


class BatchWriter(Released):
    """Writes batches, as far as formats and codecs are known."""

    codec_names: ClassVar[tuple[str, ...]] = COMPRESSIONS
    """The codecs that are known."""
    magics: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """The formats that are written."""
    magic_1_types: ClassVar[tuple[str, ...]] = TIMESTAMP_TYPES[1:]
    """The types of timestamps that a message of magic 1 is written with; of magic 0 any."""

    def write(
        self,
        records: Sequence[Record],
        *,
        magic: int = 2,
        base_offset: int,
        compression: str = "none",
        last_offset: int | None = None,
        log_append_time: int | None = None,
        codecs: Codecs = NO_CODECS,
        **fields: Any,
    ) -> bytes:
        """Return the records as a batch; before magic 2 as messages, or as one wrapper of them.

        `last_offset` keeps an offset whose record is gone; `fields` are more of `HeaderToWrite`.
        What the format cannot say is an invalid argument.
        """
        header = HeaderToWrite(
            base_offset=base_offset,
            last_offset=records[-1].offset if records and last_offset is None else last_offset or 0,
            base_timestamp=records[0].timestamp if records else NO_TIMESTAMP,
            max_timestamp=max((record.timestamp for record in records), default=NO_TIMESTAMP),
            **fields,
        )
        is_given = header.timestamp_type == "LogAppendTime"
        if magic not in self.magics or compression not in self.codec_names:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if not header.can_hold(records) or (is_given and magic > 0 and log_append_time is None):
            refuse(ErrorKind.INVALID_ARGUMENT)
        codec = self.codec_names.index(compression)
        if magic == 2:
            if is_given and log_append_time is not None:
                header = replace(header, max_timestamp=log_append_time)
            return written(header, records, codec, codecs)
        can_be_kept = compression != "zstd" and last_offset is None
        if not (can_be_kept and self.legacy_can_say(magic, records, header)):
            refuse(ErrorKind.INVALID_ARGUMENT)
        if is_given and log_append_time is not None:
            records = [record._replace(timestamp=log_append_time) for record in records]
        is_create_time = header.timestamp_type == "CreateTime"
        return messages_written(records, magic, codec, base_offset, is_create_time, codecs)

    def legacy_can_say(self, magic: int, records: Sequence[Record], header: HeaderToWrite) -> bool:
        """Return whether magic 0 and 1 have a place for all of it (BATCH-6)."""
        return (
            header.timestamp_type in (self.magic_1_types if magic else TIMESTAMP_TYPES)
            and header.producer_id == -1
            and not header.is_transactional
            and not header.is_control
            and not any(record.headers for record in records)
        )


def written(header: HeaderToWrite, records: Sequence[Record], codec: int, codecs: Codecs) -> bytes:
    """Return the records as a batch of magic 2."""
    if not header.can_be_written():
        refuse(ErrorKind.INVALID_ARGUMENT)
    base = header.base_offset, header.base_timestamp
    body = b"".join(encode_record(record, *base) for record in records)
    stored = body if codec == NONE else deflate(codec, body, 2, codecs)
    return header.to_bytes(codec, len(records), stored)


def messages_written(
    records: Sequence[Record],
    magic: int,
    codec: int,
    base_offset: int,
    is_create_time: bool,
    codecs: Codecs,
) -> bytes:
    """Return the records as messages, or as one wrapper of them where there is a codec."""
    attributes = 0 if is_create_time or magic == 0 else TIMESTAMP_TYPE_BIT
    base = base_offset if codec != NONE and magic == 1 else 0
    messages = b"".join(
        encode_message(magic, offset - base, timestamp, attributes, key, value)
        for offset, timestamp, key, value, *_ in records
    )
    if codec == NONE:
        return messages
    largest_timestamp = max(record.timestamp for record in records)
    value, attributes = deflate(codec, messages, magic, codecs), attributes + codec
    return encode_message(magic, records[-1].offset, largest_timestamp, attributes, None, value)


write_batch = BatchWriter().write
"""Write a batch as the newest release does."""


def write_empty_batch(
    base_offset: int, last_offset: int, max_timestamp: int, **fields: Any
) -> bytes:
    """Return a batch without records, as compaction leaves it of a producer's last (BATCH-15).

    `fields` are more of `HeaderToWrite`.
    """
    header = HeaderToWrite(
        base_offset=base_offset, last_offset=last_offset, max_timestamp=max_timestamp, **fields
    )
    return written(header, (), NONE, NO_CODECS)


def write_end_transaction_marker(
    control_type: str,
    *,
    offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Return the control batch that ends a transaction; `control_type` is ABORT or COMMIT."""
    if control_type not in ("ABORT", "COMMIT"):
        refuse(ErrorKind.INVALID_ARGUMENT)
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
