# SPDX-License-Identifier: Apache-2.0
"""The laws of record batches.

`file` laws take the bytes of one whole batch, as a file holds it; `pure` laws take values to write
or damage. Those that read compressed records take the codecs.

Used by: the harness, verify, the generated pages.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from segproof_model.kafka.compression import GZIP, LZ4, NO_CODECS, ZSTD, Codecs, deflate, inflate
from segproof_model.kafka.legacy_record import encode_message, inner_messages
from segproof_model.kafka.record_batch import (
    EndTransactionMarker,
    Record,
    RecordBatch,
    RecordHeader,
    control_record_type,
    decode_varint,
    decode_varlong,
    decrement_sequence,
    encode_varint,
    encode_varlong,
    end_transaction_marker,
    increment_sequence,
    read_batch,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.language.integers import INT32_MAX, int32_at, int32_bytes, int64_at
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.registry import law

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)


@law(
    "BATCH-1",
    structure="record-batch",
    scope="file",
    source="Records, LegacyRecord, DefaultRecordBatch (since 0.11.0)",
)
def size_and_magic_are_in_place(data: bytes) -> bool:
    """The total size of a batch or message is 12 + the int32 at offset 8, and its magic is the
    byte at offset 16, in all three formats."""
    batch = read_batch(data)
    return (
        isinstance(batch, RecordBatch)
        and len(data) == batch.size_bytes == 12 + int32_at(data, 8)
        and batch.magic == data[16]
    )


@law("BATCH-2", structure="record-batch", scope="file", source="LegacyRecord.computeChecksum")
def legacy_checksum_is_right(data: bytes) -> bool:
    """The v0/v1 checksum is CRC-32 (IEEE) over bytes 16..end."""
    return data[16] >= 2 or int.from_bytes(data[12:16], "big") == zlib.crc32(data[16:])


@law("BATCH-3", structure="record-batch", scope="file", source="DefaultRecordBatch.computeChecksum")
def checksum_is_right(data: bytes) -> bool:
    """The v2 checksum is CRC-32C over bytes 21..end; changing baseOffset, length,
    partitionLeaderEpoch or the stored checksum never changes the computed one."""
    batch = read_batch(data)
    if isinstance(batch, Raised) or batch.is_legacy:
        return True
    outside = bytes(255 - byte for byte in data[:21]) + data[21:]
    return batch.crc == batch.crc_of(data) == batch.crc_of(outside)


@law("BATCH-4", structure="record-batch", scope="file", source="DefaultRecordBatch.lastOffset")
def last_offset_is_base_and_delta(data: bytes) -> bool:
    """In v2, last offset = baseOffset + lastOffsetDelta and next offset = last offset + 1."""
    batch = read_batch(data)
    if isinstance(batch, Raised) or batch.is_legacy or len(data) < 61:
        return True
    base, delta = int64_at(data, 0), int32_at(data, 23)
    last, following = batch.last_offset, batch.next_offset
    return (
        not isinstance(last, Raised)
        and not isinstance(following, Raised)
        and (last - base - delta) % 2**64 == 0
        and (following - last - 1) % 2**64 == 0
    )


@law("BATCH-5", structure="record-batch", scope="pure", source="incrementSequence (0.11.0 on)")
def sequences_wrap_to_zero(sequence: int, count: int) -> bool:
    """Sequence arithmetic wraps from 2147483647 to 0; for every s in [0, 2147483647] and n >= 0
    decrement(increment(s, n), n) = s."""
    later = increment_sequence(sequence, count)
    return (
        later == (sequence + count) % (INT32_MAX + 1)
        and decrement_sequence(later, count) == sequence
    )


@law("BATCH-6", structure="record-batch", scope="pure", source="DefaultRecord, LegacyRecord")
def records_survive_writing(
    records: Sequence[Record], magic: int, compression: str, codecs: Codecs
) -> bool:
    """Encoding and decoding records is the identity, and keeps null and empty apart for keys,
    values and header values."""
    data = write_batch(
        records,
        magic=magic,
        base_offset=records[0].offset,
        compression=compression,
        codecs=codecs,
    )
    if isinstance(data, Raised):
        return False
    found: list[Record] = []
    position = 0
    while position < len(data):
        batch = read_batch(data, position, codecs=codecs)
        some = batch if isinstance(batch, Raised) else batch.records()
        if isinstance(batch, Raised) or isinstance(some, Raised):
            return False
        found.extend(some)
        position += batch.size_bytes
    return found == [_as_kept(record, magic) for record in records]


def _as_kept(record: Record, magic: int) -> Record:
    timestamp = -1 if magic == 0 else record.timestamp
    return Record(record.offset, timestamp, record.key, record.value, record.headers)


@law("BATCH-7", structure="record-batch", scope="pure", source="ByteUtils.readVarint, readVarlong")
def varints_are_zigzag(value: int) -> bool:
    """varint is zigzag base-128, little-endian, at most 5 bytes (varlong 10); one byte more is an
    error."""
    encoded, encoded_long = encode_varint(value), encode_varlong(value)
    zigzag = sum(byte % 128 * 128**place for place, byte in enumerate(encoded_long))
    wide = value if -(2**31) <= value < 2**31 else None
    return (
        zigzag == (2 * value if value >= 0 else -2 * value - 1)
        and len(encoded) <= 5
        and len(encoded_long) <= 10
        and decode_varlong(encoded_long, 0) == (value, len(encoded_long))
        and (wide is None or decode_varint(encoded, 0) == (value, len(encoded)))
        and decode_varint(b"\x80" * 5 + encoded, 0) == INVALID_ARGUMENT
        and decode_varlong(b"\x80" * 10 + encoded, 0) == INVALID_ARGUMENT
    )


@law("BATCH-8", structure="record-batch", scope="pure", source="DefaultRecordBatch.RecordIterator")
def timestamps_follow_their_type(records: Sequence[Record], log_append_time: int) -> bool:
    """A v2 record's timestamp is baseTimestamp + delta under CreateTime and maxTimestamp under
    LogAppendTime."""
    base_offset = records[0].offset
    created = write_batch(records, base_offset=base_offset)
    appended = write_batch(
        records,
        base_offset=base_offset,
        timestamp_type="LogAppendTime",
        log_append_time=log_append_time,
    )
    given = [record.timestamp for record in records]
    return (
        _timestamps(created) == given
        and _timestamps(appended) == [log_append_time] * len(records)
        and isinstance(created, bytes)
        and int64_at(created, 27) == given[0]
        and int64_at(created, 35) == max(given)
    )


def _timestamps(data: bytes | Raised) -> list[int] | Raised:
    batch = data if isinstance(data, Raised) else read_batch(data)
    records = batch if isinstance(batch, Raised) else batch.records()
    return records if isinstance(records, Raised) else [record.timestamp for record in records]


@law("BATCH-9", structure="record-batch", scope="pure", source="DeepRecordsIterator (0.11.0 on)")
def inner_offsets_become_absolute(
    magic: int, wrapper_offset: int, inner_offsets: Sequence[int], codecs: Codecs
) -> bool:
    """A v0 wrapper's inner offsets are absolute; a v1 wrapper's inner offset i becomes wrapper
    offset - last inner offset + i, with base 0 when the wrapper offset is 0."""
    if magic == 1 and 0 != wrapper_offset < inner_offsets[-1]:
        return True
    base = wrapper_offset - inner_offsets[-1] if magic == 1 and wrapper_offset != 0 else 0
    records = _wrapper(magic, wrapper_offset, inner_offsets, codecs).records()
    return not isinstance(records, Raised) and [record.offset for record in records] == [
        base + offset for offset in inner_offsets
    ]


@law("BATCH-10", structure="record-batch", scope="pure", source="DeepRecordsIterator (0.11.0 on)")
def wrapper_offset_is_not_too_small(
    wrapper_offset: int, inner_offsets: Sequence[int], codecs: Codecs
) -> bool:
    """A v1 wrapper with 0 != wrapper offset < last inner offset raises the invalid-record error."""
    refused = _wrapper(1, wrapper_offset, inner_offsets, codecs).records() == INVALID_RECORD
    return refused == (0 != wrapper_offset < inner_offsets[-1])


def _wrapper(
    magic: int, wrapper_offset: int, inner_offsets: Sequence[int], codecs: Codecs
) -> RecordBatch:
    inner = b"".join(encode_message(magic, at, 0, 0, None, b"v") for at in inner_offsets)
    return _wrapping(magic, GZIP, wrapper_offset, inner, codecs)


def _wrapping(
    magic: int, codec: int, offset: int, inner: bytes | None, codecs: Codecs
) -> RecordBatch:
    value = None if inner is None else deflate(codec, inner, magic, codecs)
    assert not isinstance(value, Raised)
    data = encode_message(magic, offset, 0, codec, None, value)
    return RecordBatch(data, 0, len(data), codecs=codecs)


@law("BATCH-11", structure="record-batch", scope="pure", source="DeepRecordsIterator (2.1 on)")
def bad_wrappers_are_refused(magic: int, codec: int, inner: bytes | None, codecs: Codecs) -> bool:
    """A compressed v0/v1 wrapper with null value, no inner message, a compressed inner message or
    codec zstd raises the invalid-record error; an inner size < 14 raises the corrupt-record error;
    a partial inner tail is dropped silently."""
    outcome = _wrapping(magic, codec, 2**62, inner, codecs).records()
    if codec == ZSTD or inner is None:
        return outcome == INVALID_RECORD
    messages = inner_messages(inner)
    if isinstance(messages, Raised):
        return outcome == CORRUPT_RECORD
    if not messages or any(message.codec in (1, 2, 3, 4) for message in messages):
        return outcome == INVALID_RECORD or any(message.codec > 4 for message in messages)
    return isinstance(outcome, Raised) or len(outcome) == len(messages)


@law(
    "BATCH-12",
    structure="record-batch",
    scope="file",
    source="AbstractLegacyRecordBatch, FileLogInputStream.LegacyFileChannelRecordBatch",
)
def legacy_header_says_little(data: bytes) -> bool:
    """Without decompression a v0/v1 batch yields only its last offset and maximum timestamp."""
    # What is behind the header fields, a compressed value above all, is blanked.
    batch = read_batch(data[:26] + bytes(len(data[26:])), codecs=NO_CODECS)
    if isinstance(batch, Raised) or not batch.is_legacy:
        return True
    return (
        batch.last_offset == int64_at(data, 0)
        and batch.max_timestamp == (-1 if batch.magic == 0 else int64_at(data, 18))
        and batch.record_count is None
        and (batch.compression == "none" or isinstance(batch.base_offset, Raised))
    )


@dataclass(frozen=True, slots=True)
class Golden:
    """A batch whose bytes Kafka itself wrote, and how it is written."""

    data: bytes
    records: tuple[Record, ...]
    magic: int = 2
    timestamp_type: str = "CreateTime"
    log_append_time: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    partition_leader_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False


GOLDEN_BATCHES = (
    Golden(
        bytes.fromhex("000000000000000700000014a4cdab3a0000000000016b0000000568656c6c6f"),
        (Record(7, -1, b"k", b"hello"),),
        magic=0,
    ),
    Golden(
        bytes.fromhex(
            "00000000000000070000001c806a8245010000000000000003e8000000016b0000000568656c6c6f"
        ),
        (Record(7, 1000, b"k", b"hello"),),
        magic=1,
    ),
    Golden(
        bytes.fromhex(
            "00000000000000070000001b942da341010000000000000003e8ffffffff0000000568656c6c6f"
        ),
        (Record(7, 1000, None, b"hello"),),
        magic=1,
    ),
    Golden(
        bytes.fromhex(
            "000000000000000700000049ffffffff026b2efbb500000000000100000000000003e8000000"
            "00000003e9ffffffffffffffffffffffffffff0000000216000000010a68656c6c6f00160002"
            "02010a746865726500"
        ),
        (Record(7, 1000, None, b"hello"), Record(8, 1001, None, b"there")),
    ),
    Golden(
        bytes.fromhex(
            "00000000000000640000004c0000000402e8ce2ba70010000000030000000000001388000000"
            "0000001388000000000000003700030000000a0000000222000000046b6b0104046831027804"
            "683201100013060104767600"
        ),
        (
            Record(
                100,
                5000,
                b"kk",
                None,
                (RecordHeader("h1", b"x"), RecordHeader("h2", None)),
                sequence=10,
            ),
            Record(103, 4990, None, b"vv", sequence=13),
        ),
        producer_id=55,
        producer_epoch=3,
        base_sequence=10,
        partition_leader_epoch=4,
        is_transactional=True,
    ),
    Golden(
        bytes.fromhex(
            "000000000000006a000000420000000f028be5aead0030000000000000000000002328000000"
            "0000002328000000000000000a0000ffffffff000000012000000008000000000c0000000000"
            "4d00"
        ),
        (Record(106, 9000, bytes(4), bytes.fromhex("00000000004d")),),
        producer_id=10,
        producer_epoch=0,
        partition_leader_epoch=15,
        is_transactional=True,
        is_control=True,
    ),
    Golden(
        bytes.fromhex(
            "00000000000000050000003affffffff02132dd75e0008000000000000000000000001000000"
            "000001e240ffffffffffffffffffffffffffff00000001100000000261026200"
        ),
        (Record(5, 1, b"a", b"b"),),
        timestamp_type="LogAppendTime",
        log_append_time=123456,
    ),
)
"""Observed on 3.9.0: one of magic 0, two of magic 1, and of magic 2 plain, transactional, an abort
marker and LogAppendTime."""


@law("BATCH-13", structure="record-batch", scope="pure", source="MemoryRecordsBuilder (3.9.0)")
def golden_bytes_are_reproduced() -> bool:
    """The golden byte strings of 7.7 are produced and parsed exactly."""
    marker = write_end_transaction_marker(
        "ABORT",
        offset=106,
        timestamp=9000,
        producer_id=10,
        producer_epoch=0,
        coordinator_epoch=77,
        partition_leader_epoch=15,
    )
    return marker == GOLDEN_BATCHES[5].data and all(map(golden_holds, GOLDEN_BATCHES))


def golden_holds(golden: Golden) -> bool:
    """Return whether writing gives exactly these bytes, and reading them the records."""
    written = write_batch(
        golden.records,
        magic=golden.magic,
        base_offset=golden.records[0].offset,
        timestamp_type=golden.timestamp_type,
        log_append_time=golden.log_append_time,
        producer_id=golden.producer_id,
        producer_epoch=golden.producer_epoch,
        base_sequence=golden.base_sequence,
        partition_leader_epoch=golden.partition_leader_epoch,
        is_transactional=golden.is_transactional,
        is_control=golden.is_control,
    )
    batch = read_batch(golden.data)
    if golden.log_append_time is None:
        expected = golden.records
    else:
        timestamp = golden.log_append_time
        expected = tuple(replace(record, timestamp=timestamp) for record in golden.records)
    return (
        written == golden.data
        and isinstance(batch, RecordBatch)
        and batch.ensure_valid() is None
        and batch.records() == expected
    )


@law("BATCH-14", structure="record-batch", scope="pure", source="ensureValid (2.4 on)")
def only_size_and_checksum_count(data: bytes) -> bool:
    """ensure_valid raises the corrupt-record error exactly when the size is below 61 (v2) or 14
    (v0/v1), or the checksum differs; it never parses records."""
    batch = read_batch(data)
    if isinstance(batch, Raised):
        return True
    if batch.is_legacy:
        is_right = legacy_checksum_is_right(data[: batch.size_bytes])
    else:
        is_right = batch.size_bytes >= 61 and checksum_is_right(data[: batch.size_bytes])
    return batch.ensure_valid() == (None if is_right else CORRUPT_RECORD)


@law(
    "BATCH-15", structure="record-batch", scope="pure", source="DefaultRecordBatch.writeEmptyHeader"
)
def empty_batches_keep_their_place(
    base_offset: int, last_offset: int, max_timestamp: int, base_sequence: int
) -> bool:
    """An empty v2 batch (count 0, 61 bytes) is valid, keeps its offsets, sequence and
    maxTimestamp, and has baseTimestamp -1."""
    data = write_empty_batch(
        base_offset,
        last_offset,
        max_timestamp,
        producer_id=0,
        producer_epoch=0,
        base_sequence=base_sequence,
    )
    batch = data if isinstance(data, Raised) else read_batch(data)
    if isinstance(batch, Raised):
        return False
    kept = (batch.base_offset, batch.last_offset, batch.max_timestamp, batch.base_sequence)
    return (
        kept == (base_offset, last_offset, max_timestamp, base_sequence)
        and batch.size_bytes == 61
        and batch.base_timestamp == -1
        and batch.is_valid() is True
        and batch.records() == ()
    )


def with_records(count: int, stored: bytes, codec: int = 0) -> RecordBatch:
    """Return a batch of magic 2 which says that `stored` is `count` records."""
    header = write_empty_batch(0, 0, 0)
    assert isinstance(header, bytes)
    changed = header[:22] + bytes([codec]) + header[23:57] + int32_bytes(count) + stored
    data = changed[:8] + int32_bytes(len(changed) - 12) + changed[12:]
    return RecordBatch(data, 0, len(data))


def _framed(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


@law("BATCH-16", structure="record-batch", scope="pure", source="DefaultRecord.readFrom (3.6 on)")
def damaged_records_are_refused(key: bytes, excess: int) -> bool:
    """Iterating a v2 batch raises the invalid-record error when the count is negative, a declared
    length exceeds the rest, the header count is negative or exceeds the rest, a header key length
    is negative, a record does not consume its length, or bytes remain after the last record."""
    start = bytes(3) + encode_varint(len(key)) + key + encode_varint(-1)
    whole = _framed(start + encode_varint(0))
    damaged = (
        with_records(-excess, whole),
        with_records(1, encode_varint(len(whole) - 1 + excess) + whole[1:]),
        with_records(1, _framed(start + encode_varint(-excess))),
        with_records(1, _framed(start + encode_varint(excess))),
        with_records(1, _framed(start + encode_varint(1) + encode_varint(-excess) + b"\0")),
        with_records(1, _framed(start + encode_varint(0) + bytes(excess))),
        with_records(1, whole + bytes(excess)),
    )
    good = with_records(1, whole).records()
    return not isinstance(good, Raised) and all(
        batch.records() == INVALID_RECORD for batch in damaged
    )


@law("BATCH-17", structure="record-batch", scope="pure", source="DefaultRecordBatch.iterator")
def nothing_is_read_of_no_records(trailing: bytes) -> bool:
    """With count 0 nothing is read and trailing bytes are not noticed."""
    return with_records(0, trailing).records() == ()


@law("BATCH-18", structure="record-batch", scope="pure", source="ByteUtils, CompressionType.forId")
def two_errors_are_invalid_arguments(codec: int, rest: bytes) -> bool:
    """An over-long length varint of an uncompressed record and codec values 5..7 raise
    invalid-argument, not the invalid-record error."""
    unknown = with_records(1, rest, codec=5 + codec % 3)
    return (
        with_records(1, b"\xff" * 5 + rest).records() == INVALID_ARGUMENT
        and unknown.records() == INVALID_ARGUMENT
        and unknown.compression == INVALID_ARGUMENT
    )


@law(
    "BATCH-19",
    structure="record-batch",
    scope="pure",
    source="ControlRecordType, EndTransactionMarker",
)
def control_records_are_checked(key: bytes, value: bytes) -> bool:
    """A control batch has one record whose key is (int16 version, int16 type) and whose
    end-transaction value is (int16 version, int32 coordinator epoch); a key below 4 bytes, a value
    below 6 bytes or a negative version raises the invalid-record error."""
    marker = end_transaction_marker(Record(0, 0, key, value))
    if len(key) < 4 or key[0] >= 128:
        return control_record_type(key) == marker == INVALID_RECORD
    if key[2:4] not in (b"\0\0", b"\0\1"):
        return marker == INVALID_ARGUMENT
    if len(value) < 6 or value[0] >= 128:
        return marker == INVALID_RECORD
    name = "COMMIT" if key[3] else "ABORT"
    return marker == EndTransactionMarker(name, int32_at(value, 2))


@law("BATCH-20", structure="record-batch", scope="pure", source="Lz4BlockOutputStream (0.10.0 on)")
def lz4_checksum_depends_on_magic(data: bytes, magic: int, codecs: Codecs) -> bool:
    """Magic-0 LZ4 frames carry the historical header checksum; magic-1 and magic-2 frames carry
    the standard one."""
    frame = deflate(LZ4, data, magic, codecs)
    if isinstance(frame, Raised):
        return False
    hashed = frame[0:6] if magic == 0 else frame[4:6]
    return (
        frame[6] == codecs.xxhash32(hashed) >> 8 & 255
        and inflate(LZ4, frame, magic, codecs) == data
    )
