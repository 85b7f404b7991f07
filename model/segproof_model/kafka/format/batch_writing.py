# SPDX-License-Identifier: Apache-2.0
"""Writing record batches of every format.

Upstream: Kafka 4.4.0, MemoryRecordsBuilder, DefaultRecordBatch, MemoryRecords. Otherwise:
    record_releases.
Layout: see record_batch and legacy_record.
Laws: BATCH-1 to BATCH-9, BATCH-13, BATCH-15, BATCH-19, BATCH-20.
Not covered: a delete horizon, which only the log cleaner writes.
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
from segproof_model.kafka.format.legacy_record import NO_TIMESTAMP, encode_message
from segproof_model.kafka.format.record import Record, encode_record
from segproof_model.kafka.format.record_batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
)
from segproof_model.language.integers import INT32_MAX, int32_bytes, int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Released, refuse

TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")


@dataclass(frozen=True, kw_only=True)
class HeaderToWrite:
    """The fields of a batch that is being written; magic 0 and 1 have no place for most."""

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

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker gives the timestamps."""
        return self.timestamp_type == "LogAppendTime"

    def goes_together(self) -> bool:
        """Return whether one batch of magic 2 can say all of it (BATCH-13)."""
        return (
            self.timestamp_type in TIMESTAMP_TYPES[1:]
            and 0 <= self.last_offset - self.base_offset <= INT32_MAX
            and self.base_timestamp >= NO_TIMESTAMP
        )

    def may_have_records(self) -> bool:
        """Return whether the fields of a producer are such that records are written with them."""
        has_producer = self.producer_id != -1
        return (
            (has_producer or not self.is_transactional)
            and (not has_producer or self.producer_epoch >= 0)
            and (not has_producer or self.base_sequence >= 0 or self.is_control)
        )

    def holds(self, records: Sequence[Record]) -> bool:
        """Return whether there are records, in order, within the batch."""
        offsets = [self.base_offset - 1, *(record.offset for record in records), self.last_offset]
        return (
            bool(records)
            and all(one < two for one, two in pairwise(offsets[:-1]))
            and offsets[-2] <= self.last_offset
            and all(record.timestamp >= NO_TIMESTAMP for record in records)
        )

    def to_bytes(self, codec: int, count: int, stored: bytes) -> bytes:
        """Return the batch of magic 2 with these records."""
        attributes = (
            codec
            + LOG_APPEND_TIME_BIT * self.is_log_append_time
            + TRANSACTIONAL_BIT * self.is_transactional
            + CONTROL_BIT * self.is_control
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
        last_offset: int | None = None,
        compression: str = "none",
        timestamp_type: str = "CreateTime",
        log_append_time: int | None = None,
        codecs: Codecs = NO_CODECS,
        **fields: Any,
    ) -> bytes:
        """Return the records as a batch; before magic 2 as messages, or as one wrapper of them.

        `last_offset` keeps an offset whose record is gone; `fields` are more of `HeaderToWrite`.
        What the format cannot say is an invalid argument.
        """
        fields |= {"base_offset": base_offset, "timestamp_type": timestamp_type}
        header = header_of(records, last_offset, log_append_time, **fields)
        is_missing = header.is_log_append_time and magic > 0 and log_append_time is None
        is_known = magic in self.magics and compression in self.codec_names
        if is_missing or not is_known or not header.holds(records):
            refuse(ErrorKind.INVALID_ARGUMENT)
        codec = COMPRESSIONS.index(compression)
        if magic == 2:
            return batch_of(header, records, codec, codecs)
        if last_offset is not None or not self.legacy_can_say(magic, compression, records, header):
            refuse(ErrorKind.INVALID_ARGUMENT)
        return messages_of(header, records, magic, codec, codecs)

    def legacy_can_say(
        self, magic: int, compression: str, records: Sequence[Record], header: HeaderToWrite
    ) -> bool:
        """Return whether magic 0 and 1 have a place for all of it (BATCH-6)."""
        return (
            header.timestamp_type in (self.magic_1_types if magic else TIMESTAMP_TYPES)
            and compression != "zstd"
            and header.producer_id == -1
            and not (header.is_transactional or header.is_control)
            and not any(record.headers for record in records)
        )


def header_of(
    records: Sequence[Record], last_offset: int | None, log_append_time: int | None, **fields: Any
) -> HeaderToWrite:
    """Return a header with these fields; its timestamps, and a last offset, are the records'.

    Where the broker gives the timestamps its time is the largest.
    """
    timestamps = [record.timestamp for record in records] or [NO_TIMESTAMP]
    if last_offset is None:
        last_offset = records[-1].offset if records else 0
    header = HeaderToWrite(
        last_offset=last_offset,
        base_timestamp=timestamps[0],
        max_timestamp=max(timestamps),
        **fields,
    )
    if header.is_log_append_time and log_append_time is not None:
        return replace(header, max_timestamp=log_append_time)
    return header


def batch_of(header: HeaderToWrite, records: Sequence[Record], codec: int, codecs: Codecs) -> bytes:
    """Return the records as a batch of magic 2; without records any producer will do."""
    if not header.goes_together() or (records and not header.may_have_records()):
        refuse(ErrorKind.INVALID_ARGUMENT)
    base = header.base_offset, header.base_timestamp
    body = b"".join(encode_record(record, *base) for record in records)
    stored = body if codec == NONE else deflate(codec, body, 2, codecs)
    return header.to_bytes(codec, len(records), stored)


def messages_of(
    header: HeaderToWrite, records: Sequence[Record], magic: int, codec: int, codecs: Codecs
) -> bytes:
    """Return the records as messages, or as one wrapper of them where there is a codec."""
    attributes = LOG_APPEND_TIME_BIT if magic and header.timestamp_type != "CreateTime" else 0
    base = header.base_offset if codec != NONE and magic == 1 else 0
    messages, largest = b"", header.max_timestamp
    for offset, time, key, value, *_ in records:
        time = largest if header.is_log_append_time else time
        messages += encode_message(magic, offset - base, time, attributes, key, value)
    if codec == NONE:
        return messages
    value = deflate(codec, messages, magic, codecs)
    return encode_message(magic, header.last_offset, largest, attributes + codec, None, value)


write_batch = BatchWriter().write
"""Write a batch."""


def write_empty_batch(
    base_offset: int, last_offset: int, max_timestamp: int, **fields: Any
) -> bytes:
    """Return a batch without records, as compaction leaves it of a producer's last (BATCH-15).

    `fields` are more of `HeaderToWrite`.
    """
    header = HeaderToWrite(
        base_offset=base_offset, last_offset=last_offset, max_timestamp=max_timestamp, **fields
    )
    return batch_of(header, (), NONE, NO_CODECS)


def write_end_transaction_marker(
    control_type: str, *, offset: int, timestamp: int, coordinator_epoch: int, **fields: Any
) -> bytes:
    """Return the control batch that ends a transaction; `control_type` is ABORT or COMMIT.

    `fields` are more of `HeaderToWrite`: the producer's id and epoch at least.
    """
    if control_type not in ("ABORT", "COMMIT"):
        refuse(ErrorKind.INVALID_ARGUMENT)
    key = b"\0\0" + bytes([0, ("ABORT", "COMMIT").index(control_type)])
    record = Record(offset, timestamp, key, b"\0\0" + int32_bytes(coordinator_epoch))
    return write_batch(
        [record], base_offset=offset, is_transactional=True, is_control=True, **fields
    )
