# SPDX-License-Identifier: Apache-2.0
"""One record of magic 2, sequence numbers, and what control records say.

Upstream: Kafka 4.4.0, DefaultRecord, DefaultRecordBatch, ControlRecordType, EndTransactionMarker.
    Otherwise: record_releases.
Layout: varint length of the rest, int8 attributes (0), varlong timestamp - base timestamp, varint
    offset - base offset, varint length and key, varint length and value, varint count of headers,
    and for each varint length and key, varint length and value. A negative length is null.
Laws: BATCH-5, BATCH-6, BATCH-8, BATCH-16, BATCH-18, BATCH-19.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

from segproof_model.kafka.format.varint import (
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
)
from segproof_model.language.integers import INT32_MAX, int32_at, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released, refuse

NO_SEQUENCE = -1


class RecordHeader(NamedTuple):
    """A name and a value that a record carries beside its key."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record with what its batch says about it worked in."""

    offset: int
    timestamp: int
    """Milliseconds; -1 in magic 0, which has none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = NO_SEQUENCE


class RecordBase(NamedTuple):
    """What the header of a batch says about each of its records."""

    base_offset: int
    base_timestamp: int
    base_sequence: int
    log_append_time: int | None
    """The timestamp of every record, where the broker gives it."""


# --- sequence numbers ----------------------------------------------------------------------------


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number that follows `increment` later; 0 follows 2147483647 (BATCH-5).

    >>> increment_sequence(2147483646, 4)
    2
    """
    if sequence > wrap32(INT32_MAX - increment):
        return wrap32(increment - (INT32_MAX - sequence) - 1)
    return wrap32(sequence + increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number `decrement` earlier; 2147483647 comes before 0.

    >>> decrement_sequence(2, 4)
    2147483646
    """
    if sequence < decrement:
        return wrap32(INT32_MAX - (decrement - sequence) + 1)
    return wrap32(sequence - decrement)


# --- records -------------------------------------------------------------------------------------


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """Return the record as its batch holds it."""
    body = (
        b"\0"
        + encode_varlong(record.timestamp - base_timestamp)
        + encode_varint(record.offset - base_offset)
        + _sized(record.key)
        + _sized(record.value)
        + encode_varint(len(record.headers))
        + b"".join(_sized(header.key.encode()) + _sized(header.value) for header in record.headers)
    )
    return encode_varint(len(body)) + body


def decode_records(
    data: bytes, count: int, decode: Callable[[int, bool], tuple[Record, int]], is_whole: bool
) -> Iterator[Record]:
    """Yield `count` records. The last is yielded only if it ends where the data ends.

    `is_whole=False`: the data was cut by damage, so the last record is refused wherever it ends.
    `decode(position, is_last)` returns a record and the position behind it.
    """
    if count < 0:
        refuse(ErrorKind.INVALID_RECORD)
    position = 0
    for left in range(count - 1, -1, -1):
        record, position = decode(position, left == 0)
        if left == 0 and (position < len(data) or not is_whole):
            refuse(ErrorKind.INVALID_RECORD)
        yield record


def decode_record(data: bytes, position: int, base: RecordBase) -> tuple[Record, int]:
    """Return the record at `position` and the position behind it.

    An over-long varint of its length is an invalid argument, everything else that cannot be read
    an invalid record (BATCH-16).
    """
    size, start = decode_varint(data, position)
    if not 0 <= size <= len(data) - start:
        refuse(ErrorKind.INVALID_RECORD)
    try:
        return _decode_body(data[start : start + size], base), start + size
    except Refused:
        refuse(ErrorKind.INVALID_RECORD)


def _decode_body(body: bytes, base: RecordBase) -> Record:
    timestamp_delta, position = decode_varlong(body, 1)
    offset_delta, position = decode_varint(body, position)
    key, position = _decode_bytes(body, position)
    value, position = _decode_bytes(body, position)
    count, position = decode_varint(body, position)
    if not 0 <= count <= len(body) - position:
        refuse(ErrorKind.INVALID_RECORD)
    headers = []
    for _ in range(count):
        header_key, position = _decode_bytes(body, position)
        header_value, position = _decode_bytes(body, position)
        if header_key is None:
            refuse(ErrorKind.INVALID_RECORD)
        headers.append(RecordHeader(header_key.decode(errors="replace"), header_value))
    if position != len(body):
        refuse(ErrorKind.INVALID_RECORD)
    timestamp, sequence = base.log_append_time, base.base_sequence
    return Record(
        wrap64(base.base_offset + offset_delta),
        wrap64(base.base_timestamp + timestamp_delta) if timestamp is None else timestamp,
        key,
        value,
        tuple(headers),
        increment_sequence(sequence, offset_delta) if sequence >= 0 else NO_SEQUENCE,
    )


def _decode_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    size, start = decode_varint(body, position)
    if size > len(body) - start:
        refuse(ErrorKind.INVALID_RECORD)
    return (None, start) if size < 0 else (body[start : start + size], start + size)


def _sized(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


# --- control records -----------------------------------------------------------------------------


class ControlRecordTypes(Released):
    """The types of control records, which their keys name.

    >>> ControlRecordTypes().of_key(bytes.fromhex("00000001"))
    'COMMIT'
    """

    names: ClassVar[tuple[str, ...]] = (
        "ABORT",
        "COMMIT",
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    )
    """The name of each type number."""

    def of_key(self, key: bytes | None) -> str:
        """Return the type that the key of a control record names, or UNKNOWN (BATCH-19).

        A key below 4 bytes or a negative version is an invalid record.
        """
        if key is None or len(key) < 4 or _int16_at(key, 0) < 0:
            refuse(ErrorKind.INVALID_RECORD)
        number = _int16_at(key, 2)
        return self.names[number] if 0 <= number < len(self.names) else "UNKNOWN"


class EndTransactionMarker(NamedTuple):
    """What a control record that ends a transaction says."""

    control_type: str
    """ABORT or COMMIT."""
    coordinator_epoch: int


def end_transaction_marker(record: Record) -> EndTransactionMarker:
    """Return what the control record says about the end of a transaction (BATCH-19).

    Another type of control record is an invalid argument; a value below 6 bytes or a negative
    version is an invalid record.
    """
    control_type = ControlRecordTypes().of_key(record.key)
    if control_type not in ("ABORT", "COMMIT"):
        refuse(ErrorKind.INVALID_ARGUMENT)
    if record.value is None or len(record.value) < 6 or _int16_at(record.value, 0) < 0:
        refuse(ErrorKind.INVALID_RECORD)
    return EndTransactionMarker(control_type, int32_at(record.value, 2))


def _int16_at(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 2], "big", signed=True)
