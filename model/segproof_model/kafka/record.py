# SPDX-License-Identifier: Apache-2.0
"""One record of magic 2, sequence numbers, and what control records say.

Upstream: Kafka, DefaultRecord, DefaultRecordBatch, ControlRecordType, EndTransactionMarker.
Layout: varint length of the rest, int8 attributes (0), varlong timestamp - base timestamp, varint
offset - base offset, varint length and key, varint length and value, varint count of headers, and
for each varint length and key, varint length and value. A negative length is null.
Laws: BATCH-5, BATCH-6, BATCH-8, BATCH-16, BATCH-18, BATCH-19.
Used by: record_batch, legacy_record.
"""

from dataclasses import dataclass

from segproof_model.kafka.varint import (
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
)
from segproof_model.language.integers import INT32_MAX, int32_at, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import NEWEST_KAFKA, Profile

INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
NULL_RECORD = Raised(ErrorKind.NULL)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
NO_SEQUENCE = -1

CONTROL_RECORD_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
"""The name of each type number; every other number is UNKNOWN."""
OLDER_CONTROL_RECORD_TYPES = {
    "0.11": CONTROL_RECORD_TYPES[:2],
    "2.8": (*CONTROL_RECORD_TYPES[:2], "QUORUM_REASSIGNMENT", "LEADER_CHANGE"),
    "3.4": CONTROL_RECORD_TYPES[:5],
}
"""The same up to the release from which the next ones hold, by the first such release."""


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """A name and a value that a record carries beside its key."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Record:
    """One record with what its batch says about it worked in."""

    offset: int
    timestamp: int
    """Milliseconds; -1 in magic 0, which has none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = NO_SEQUENCE


@dataclass(frozen=True, slots=True)
class Records:
    """What reading one record after another gives: some records, and the error that ended it."""

    records: tuple[Record, ...] = ()
    error: Raised | None = None


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """What a control record that ends a transaction says."""

    control_type: str
    """ABORT or COMMIT."""
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class RecordBase:
    """What the header of a batch says about each of its records."""

    base_offset: int
    base_timestamp: int
    base_sequence: int
    log_append_time: int | None
    """The timestamp of every record, where the broker gives it."""


class _MalformedError(Exception):
    """A record that cannot be read; stays inside this module."""


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number that follows `increment` later; 0 follows 2147483647.

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


def decode_record(
    data: bytes,
    position: int,
    base: RecordBase,
    too_long: Raised = INVALID_RECORD,
    negative: Raised = INVALID_RECORD,
) -> tuple[Record, int] | Raised:
    """Return the record at `position` and the position behind it.

    An over-long varint of its length raises invalid-argument, a record that is longer than what is
    left `too_long`, a negative length `negative`; everything else that cannot be read raises
    invalid-record (BATCH-16, -18).
    """
    length = decode_varint(data, position)
    if isinstance(length, Raised):
        return length
    size, start = length
    if size > len(data) - start:
        return too_long
    if size < 0:
        return negative
    try:
        return _decode_body(data[start : start + size], base), start + size
    except _MalformedError:
        return INVALID_RECORD


def decode_records(
    data: bytes, count: int, base: RecordBase, profile: Profile = NEWEST_KAFKA
) -> Records:
    """Read `count` records, which must fill `data` exactly."""
    if count < 0:
        return Records(error=INVALID_RECORD)
    records: list[Record] = []
    position = 0
    too_long = NULL_RECORD if profile.long_record_is_null else INVALID_RECORD
    while len(records) < count:
        is_last = len(records) + 1 == count
        found = decode_record(data, position, base, too_long)
        if found == NULL_RECORD and is_last and not _ends_with_length(data, position):
            found = INVALID_RECORD
        if isinstance(found, Raised):
            return Records(tuple(records), found)
        record, position = found
        if is_last and position < len(data):
            return Records(tuple(records), INVALID_RECORD)
        records.append(record)
    return Records(tuple(records))


def decode_inflated_records(
    data: bytes,
    count: int,
    base: RecordBase,
    profile: Profile = NEWEST_KAFKA,
    ended: Raised | None = None,
) -> Records:
    """Read the `count` records of an inflated block, which must fill it; the last one only counts
    if it does. `ended`: why nothing could be inflated behind `data`, which then is every error.

    A bad length, negative or an over-long varint, raises the error that the profile has for it;
    everything else that cannot be read raises invalid-record (BATCH-16, -18).
    """
    if count < 0:
        return Records(error=ended or INVALID_RECORD)
    bad_length = Raised(profile.inflated_length_kind)
    records: list[Record] = []
    position = 0
    while len(records) < count:
        found = decode_record(data, position, base, negative=bad_length)
        if isinstance(found, Raised):
            error = bad_length if found == INVALID_ARGUMENT else found
            return Records(tuple(records), ended or error)
        record, position = found
        is_last = len(records) + 1 == count
        if is_last and (ended is not None or position < len(data)):
            return Records(tuple(records), ended or INVALID_RECORD)
        records.append(record)
    return Records(tuple(records))


def _ends_with_length(data: bytes, position: int) -> bool:
    """Return whether nothing follows the length of the record at `position`."""
    length = decode_varint(data, position)
    return not isinstance(length, Raised) and length[1] == len(data)


def _decode_body(body: bytes, base: RecordBase) -> Record:
    timestamp_delta, position = _read(decode_varlong(body, 1))
    offset_delta, position = _read(decode_varint(body, position))
    key, position = _read_bytes(body, position)
    value, position = _read_bytes(body, position)
    count, position = _read(decode_varint(body, position))
    if count < 0 or count > len(body) - position:
        raise _MalformedError
    headers = []
    for _ in range(count):
        header_key, position = _read_bytes(body, position)
        header_value, position = _read_bytes(body, position)
        if header_key is None:
            raise _MalformedError
        headers.append(RecordHeader(header_key.decode(errors="replace"), header_value))
    if position != len(body):
        raise _MalformedError
    timestamp = wrap64(base.base_timestamp + timestamp_delta)
    sequence = NO_SEQUENCE
    if base.base_sequence >= 0:
        sequence = increment_sequence(base.base_sequence, offset_delta)
    return Record(
        wrap64(base.base_offset + offset_delta),
        timestamp if base.log_append_time is None else base.log_append_time,
        key,
        value,
        tuple(headers),
        sequence,
    )


def _read(found: tuple[int, int] | Raised) -> tuple[int, int]:
    if isinstance(found, Raised):
        raise _MalformedError
    return found


def _read_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    size, start = _read(decode_varint(body, position))
    if size > len(body) - start:
        raise _MalformedError
    return (None, start) if size < 0 else (body[start : start + size], start + size)


def _sized(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def control_record_type(key: bytes | None, profile: Profile = NEWEST_KAFKA) -> str | Raised:
    """Return the type that the key of a control record names, or UNKNOWN.

    A key below 4 bytes or a negative version raises invalid-record (BATCH-19).

    >>> control_record_type(bytes.fromhex("00000001"))
    'COMMIT'
    """
    if key is None or len(key) < 4 or _int16_at(key, 0) < 0:
        return INVALID_RECORD
    number = _int16_at(key, 2)
    known = OLDER_CONTROL_RECORD_TYPES.get(profile.control_record_types, CONTROL_RECORD_TYPES)
    if 0 <= number < len(known):
        return known[number]
    return "UNKNOWN"


def end_transaction_marker(record: Record) -> EndTransactionMarker | Raised:
    """Return what the control record says about the end of a transaction.

    Another type of control record raises invalid-argument; a value below 6 bytes or a negative
    version raises invalid-record (BATCH-19).
    """
    control_type = control_record_type(record.key)
    if isinstance(control_type, Raised):
        return control_type
    if control_type not in ("ABORT", "COMMIT"):
        return INVALID_ARGUMENT
    if record.value is None or len(record.value) < 6 or _int16_at(record.value, 0) < 0:
        return INVALID_RECORD
    return EndTransactionMarker(control_type, int32_at(record.value, 2))


def _int16_at(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 2], "big", signed=True)
