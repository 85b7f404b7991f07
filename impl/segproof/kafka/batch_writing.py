# SPDX-License-Identifier: Apache-2.0
"""Writing record batches of every format and codec.

Upstream: Kafka 4.3.1: MemoryRecordsBuilder, DefaultRecordBatch, MemoryRecords.
Layout: BATCH of layouts/kafka.py.
Laws: BATCH-1 to BATCH-9, BATCH-13, BATCH-15, BATCH-19, BATCH-20.
Not covered: a delete horizon, which only the log cleaner writes.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from segproof.checksums import crc32, crc32c
from segproof.compression import COMPRESSION_NAMES, compress
from segproof.errors import InvalidArgumentError
from segproof.integers import INT32_MAX
from segproof.kafka.record import Record, encode_varint, encode_varlong
from segproof.layouts.kafka import (
    BATCH,
    CHECKED_FROM,
    LOG_OVERHEAD_BYTES,
    MESSAGE_1,
    MESSAGE_CHECKED_FROM,
)

NO_TIMESTAMP = -1
TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")
LOG_APPEND_TIME_BIT = 8
_TRANSACTIONAL_BIT = 16
_CONTROL_BIT = 32

_FRAME = BATCH.struct("base_offset", "crc")
_CHECKED_HEADER = BATCH.struct("attributes")
_MESSAGE = MESSAGE_1.struct("offset", "crc")


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
) -> bytes:
    """Return the records as a batch; before magic 2 as messages, or as one wrapper of them.

    Offsets and timestamps (milliseconds) are those of the records; `log_append_time` replaces the
    timestamps under LogAppendTime. `last_offset` (inclusive) keeps an offset whose record is gone.

    Raises: InvalidArgumentError for what the format cannot say, and for records out of order.
    """
    if not records:
        raise _refused("a batch needs a record", "write_empty_batch writes an empty one")
    header = _Header(
        base_offset=base_offset,
        last_offset=records[-1].offset if last_offset is None else last_offset,
        base_timestamp=records[0].timestamp,
        max_timestamp=max(record.timestamp for record in records),
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )
    appended = log_append_time if timestamp_type == "LogAppendTime" and magic > 0 else None
    if appended is not None:
        header.max_timestamp = appended
    elif timestamp_type == "LogAppendTime" and magic > 0:
        raise _refused("LogAppendTime needs log_append_time")
    if compression not in COMPRESSION_NAMES:
        raise _refused(f"no codec {compression!r}", f"known: {', '.join(COMPRESSION_NAMES)}")
    _check_records(records, header)
    codec = COMPRESSION_NAMES.index(compression)
    if magic == 2:
        header.check()
        header.check_producer()
        block = b"".join(
            _encode_record(record, base_offset, header.base_timestamp) for record in records
        )
        return header.to_bytes(codec, len(records), compress(compression, block))
    if magic not in (0, 1):
        raise _refused(f"no magic {magic}", "0, 1 and 2 can be written")
    _check_legacy(records, magic, compression, header, last_offset)
    return _encode_messages(records, magic, codec, base_offset, appended)


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
) -> bytes:
    """Return a batch without records, as compaction leaves it of a producer's last.

    Both offsets are inclusive. The fields of a producer may be any: Kafka refuses a transaction
    without a producer id only where records are written. Raises: InvalidArgumentError for what the
    format cannot say. Laws: BATCH-15.
    """
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
    header.check()
    return header.to_bytes(0, 0, b"")


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
    """Return the control batch that ends a transaction; `control_type` is ABORT or COMMIT.

    Raises: InvalidArgumentError. Laws: BATCH-19.
    """
    if control_type not in ("ABORT", "COMMIT"):
        raise _refused(f"no transaction ends with {control_type!r}", "ABORT or COMMIT does")
    key = struct.pack(">hh", 0, ("ABORT", "COMMIT").index(control_type))
    value = struct.pack(">hi", 0, coordinator_epoch)
    return write_batch(
        [Record(offset, timestamp, key, value)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
    )


def _refused(message: str, hint: str | None = None) -> InvalidArgumentError:
    return InvalidArgumentError(message, hint=hint)


@dataclass(slots=True, kw_only=True)
class _Header:
    """The fields of a magic 2 batch that is being written."""

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

    def check(self) -> None:
        """Refuse what a header of magic 2 cannot say."""
        if self.timestamp_type not in TIMESTAMP_TYPES[1:]:
            raise _refused(f"magic 2 has no timestamp type {self.timestamp_type!r}")
        if not 0 <= self.last_offset - self.base_offset <= INT32_MAX:
            raise _refused(
                f"the last offset {self.last_offset} is not within 2^31 - 1 of the base offset "
                f"{self.base_offset}"
            )
        if self.base_timestamp < NO_TIMESTAMP:
            raise _refused(f"a timestamp may not be {self.base_timestamp}")

    def check_producer(self) -> None:
        """Refuse fields of a producer that Kafka writes no record with."""
        has_producer = self.producer_id != -1
        if self.is_transactional and not has_producer:
            raise _refused("a transactional batch needs a producer id")
        if has_producer and self.producer_epoch < 0:
            raise _refused("a batch with a producer id needs an epoch of 0 or more")
        if has_producer and self.base_sequence < 0 and not self.is_control:
            raise _refused("a batch with a producer id needs a base sequence of 0 or more")

    def to_bytes(self, codec: int, count: int, stored: bytes) -> bytes:
        """Return the batch with these records, which are compressed already."""
        attributes = (
            codec
            | (LOG_APPEND_TIME_BIT if self.timestamp_type == "LogAppendTime" else 0)
            | (_TRANSACTIONAL_BIT if self.is_transactional else 0)
            | (_CONTROL_BIT if self.is_control else 0)
        )
        delta = self.last_offset - self.base_offset
        try:
            checked = (
                _CHECKED_HEADER.pack(
                    attributes,
                    delta,
                    self.base_timestamp,
                    self.max_timestamp,
                    self.producer_id,
                    self.producer_epoch,
                    self.base_sequence,
                    count,
                )
                + stored
            )
            size = len(checked) + CHECKED_FROM - LOG_OVERHEAD_BYTES
            epoch = self.partition_leader_epoch
            return _FRAME.pack(self.base_offset, size, epoch, 2, crc32c(checked)) + checked
        except struct.error as error:
            raise _refused(f"a field does not fit into its bytes: {error}") from error


def _check_records(records: Sequence[Record], header: _Header) -> None:
    for one, following in pairwise(records):
        if one.offset >= following.offset:
            raise _refused(f"offset {following.offset} follows {one.offset}", "offsets must rise")
    if records[0].offset < header.base_offset or records[-1].offset > header.last_offset:
        raise _refused(
            f"the offsets {records[0].offset} to {records[-1].offset} are not within "
            f"{header.base_offset} to {header.last_offset}"
        )
    if any(record.timestamp < NO_TIMESTAMP for record in records):
        raise _refused("a timestamp below -1")


def _check_legacy(
    records: Sequence[Record],
    magic: int,
    compression: str,
    header: _Header,
    last_offset: int | None,
) -> None:
    """Refuse what magic 0 and 1 have no place for; magic 1 has no message without a time's type."""
    reasons = {
        "zstd": compression == "zstd",
        "a producer": header.producer_id != -1,
        "transactions": header.is_transactional,
        "control records": header.is_control,
        f"the timestamp type {header.timestamp_type!r}": (
            header.timestamp_type not in TIMESTAMP_TYPES[magic:]
        ),
        "a last offset without a record": last_offset is not None,
        "headers": any(record.headers for record in records),
    }
    for reason, is_asked in reasons.items():
        if is_asked:
            raise _refused(f"magic 0 and 1 have no place for {reason}", "magic 2 has")


def _sized(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def _encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\0",
        encode_varlong(record.timestamp - base_timestamp),
        encode_varint(record.offset - base_offset),
        _sized(record.key),
        _sized(record.value),
        encode_varint(len(record.headers)),
    ]
    for header in record.headers:
        parts += [_sized(header.key.encode()), _sized(header.value)]
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encode_messages(
    records: Sequence[Record], magic: int, codec: int, base_offset: int, appended: int | None
) -> bytes:
    """Return messages of magic 0 or 1, or one wrapper of them where there is a codec."""
    attributes = 0 if appended is None else LOG_APPEND_TIME_BIT
    relative_to = base_offset if codec and magic == 1 else 0
    timestamps = [record.timestamp if appended is None else appended for record in records]
    messages = b"".join(
        _encode_message(
            magic, record.offset - relative_to, timestamp, attributes, record.key, record.value
        )
        for record, timestamp in zip(records, timestamps, strict=True)
    )
    if not codec:
        return messages
    value = compress(COMPRESSION_NAMES[codec], messages, magic=magic)
    last = records[-1].offset
    return _encode_message(magic, last, max(timestamps), attributes | codec, None, value)


def _encode_message(
    magic: int, offset: int, timestamp: int, attributes: int, key: bytes | None, value: bytes | None
) -> bytes:
    body = b"".join(
        (
            bytes((magic, attributes)),
            struct.pack(">q", timestamp) if magic == 1 else b"",
            struct.pack(">i", -1 if key is None else len(key)),
            key or b"",
            struct.pack(">i", -1 if value is None else len(value)),
            value or b"",
        )
    )
    size = len(body) + MESSAGE_CHECKED_FROM - LOG_OVERHEAD_BYTES
    return _MESSAGE.pack(offset, size, crc32(body)) + body
