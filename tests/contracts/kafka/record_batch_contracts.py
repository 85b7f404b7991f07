# SPDX-License-Identifier: Apache-2.0
"""Contracts of record batches: varints and zigzag, headers, attribute bits, sequences, records.

A kernel answers a status where the model answers an error kind; `_KINDS` pairs them.

Mirrors: model/segproof_model/kafka/format/{record_batch,legacy_record_batch,record,varint}.py,
impl/segproof/kernels/records.py.
"""

from typing import Any

from segproof.kafka import record as implementation
from segproof.kernels import records as kernels
from segproof_model.kafka.format import record, varint
from segproof_model.kafka.format.legacy_record_batch import LegacyRecordBatch
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language import integers
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

RECORDS = "segproof.kernels.records"

BATCH, MESSAGE = SEGPROOF.kind(RecordBatch), SEGPROOF.kind(LegacyRecordBatch)

_decode_varint = kernels.decode_varint.interpreted
_decode_varlong = kernels.decode_varlong.interpreted
_decode_int16 = kernels.decode_int16.interpreted
_decode_int32 = kernels.decode_int32.interpreted
_decode_int64 = kernels.decode_int64.interpreted
_add_int64 = kernels.add_int64.interpreted
_attribute_bit = kernels.attribute_bit.interpreted
_compression_code = kernels.compression_code.interpreted
_increment_sequence = kernels.increment_sequence.interpreted
_decrement_sequence = kernels.decrement_sequence.interpreted
_decode_batch_header: Any = kernels.decode_batch_header.interpreted
_next_record = kernels.next_record.interpreted
_plain_record = kernels.plain_record.interpreted
_short_varint = kernels.short_varint.interpreted

_KINDS = {
    kernels.OVERLONG: Raised(ErrorKind.INVALID_ARGUMENT),
    kernels.TRUNCATED: Raised(ErrorKind.INVALID_RECORD),
}
_BASE = record.RecordBase(0, 0, -1, None)


@contract(
    f"{RECORDS}:decode_varint",
    "BATCH-7",
    "any 6 raw bytes, ending after 0 to 6 of them",
    Mutant("raw %= 4294967296", "pass"),
    Mutant("range(5)", "range(6)"),
)
def varint_decode(data: bytes, end: int) -> bool:
    """Read a varint of up to five bytes, cut and over-long ones included.

    pre: len(data) == 6
    pre: 0 <= end <= 6
    post: _
    """
    found = _decode_varint(data, 0, end)
    expected = outcome_of(varint.decode_varint, data[:end], 0)
    return expected == (found if found[1] >= 0 else _KINDS[found[1]])


@contract(
    f"{RECORDS}:decode_varlong",
    "BATCH-7",
    "any 11 raw bytes, ending after 9 to 11 of them",
    Mutant("if index < 8:", "if index < 7:"),
)
def varlong_decode(data: bytes, end: int) -> bool:
    """Read a varlong of up to ten bytes, cut and over-long ones included.

    pre: len(data) == 11
    pre: 9 <= end <= 11
    post: _
    """
    found = _decode_varlong(data, 0, end)
    expected = outcome_of(varint.decode_varlong, data[:end], 0)
    return expected == (found if found[1] >= 0 else _KINDS[found[1]])


@contract(
    "segproof.kafka.record:encode_varint",
    "BATCH-6 BATCH-7",
    "every int32",
    Mutant("-2 * wrapped - 1", "-2 * wrapped", "_encode"),
)
def varint_encode(value: int) -> bool:
    """Write any int32 as the model does.

    pre: -(2**31) <= value < 2**31
    post: _
    """
    return implementation.encode_varint(value) == varint.encode_varint(value)


@contract(
    f"{RECORDS}:decode_varint",
    "BATCH-6 BATCH-7",
    "every int32",
    Mutant("-(raw // 2) - 1", "-(raw // 2)"),
)
def varint_round_trip(value: int) -> bool:
    """Read back what the model writes for any int32: zigzag undone.

    pre: -(2**31) <= value < 2**31
    post: _
    """
    data = varint.encode_varint(value)
    return _decode_varint(data, 0, len(data)) == (value, len(data))


@contract(
    f"{RECORDS}:decode_int16",
    "BATCH-1",
    "any 9 raw bytes, int16, int32 and int64 at position 1",
    Mutant(">= 32768", "> 32768"),
    Mutant("buffer[position + 2] * 256", "buffer[position + 2] * 255", "decode_int32"),
)
def integer_decode(data: bytes) -> bool:
    """Read big-endian int16, int32 and int64.

    pre: len(data) == 9
    post: _
    """
    if _decode_int16(data, 1) != int.from_bytes(data[1:3], "big", signed=True):
        return False
    if _decode_int32(data, 1) != integers.int32_at(data, 1):
        return False
    return _decode_int64(data, 1) == integers.int64_at(data, 1)


@contract(
    f"{RECORDS}:add_int64",
    "BATCH-4",
    "every two int64",
    Mutant("> 9223372036854775807", ">= 9223372036854775807"),
)
def sum_wraps(one: int, other: int) -> bool:
    """Wrap the sum of two int64 at 64 bits.

    pre: -(2**63) <= one < 2**63
    pre: -(2**63) <= other < 2**63
    post: _
    """
    return _add_int64(one, other) == integers.wrap64(one + other)


@contract(
    f"{RECORDS}:attribute_bit",
    "BATCH-8 BATCH-19",
    "any 2 raw bytes of attributes, bits 3 to 6",
    Mutant("attributes //= 2", "attributes //= 4"),
)
def attribute_bits(attributes: bytes) -> bool:
    """Tell timestamp type, transactional, control and delete horizon from any attributes.

    pre: len(attributes) == 2
    post: _
    """
    batch = BATCH(_header(attributes, 21), 0, 61)
    stored = _decode_int16(attributes, 0)
    found = [_attribute_bit(stored, bit) == 1 for bit in (3, 4, 5, 6)]
    return found == [
        batch.timestamp_type == "LogAppendTime",
        batch.is_transactional,
        batch.is_control,
        batch.has_delete_horizon,
    ]


@contract(
    f"{RECORDS}:compression_code",
    "BATCH-18",
    "any 61 raw bytes of magic 2",
    Mutant("% 8", "% 4"),
)
def compression_codes(data: bytes) -> bool:
    """Tell the codec from any attributes; unknown ones are refused by the model.

    pre: len(data) == 61
    pre: data[16] == 2
    post: _
    """
    code = _compression_code(_decode_int16(data, 21))
    batch = BATCH(data, 0, 61)
    compression = outcome_of(lambda: batch.compression)
    if isinstance(compression, Raised):
        return 5 <= code <= 7
    return compression == ("none", "gzip", "snappy", "lz4", "zstd")[code]


@contract(
    f"{RECORDS}:increment_sequence",
    "BATCH-5",
    "every sequence of 31 bits, every int32 increment",
    Mutant("sequence) - 1", "sequence)"),
)
def sequence_increment(sequence: int, increment: int) -> bool:
    """Count a sequence on, by any int32.

    pre: 0 <= sequence < 2**31
    pre: -(2**31) <= increment < 2**31
    post: _
    """
    return _increment_sequence(sequence, increment) == record.increment_sequence(
        sequence, increment
    )


@contract(
    f"{RECORDS}:decrement_sequence",
    "BATCH-5",
    "every sequence and decrement of 31 bits, and back",
    Mutant("+ 1", "+ 0"),
)
def sequence_decrement(sequence: int, decrement: int) -> bool:
    """Count a sequence back, and forth again to where it was.

    pre: 0 <= sequence < 2**31
    pre: 0 <= decrement < 2**31
    post: _
    """
    back = _decrement_sequence(sequence, decrement)
    if back != record.decrement_sequence(sequence, decrement):
        return False
    return _increment_sequence(back, decrement) == sequence


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-4",
    "any raw bytes 0 to 7 of a header of magic 2, the others zero",
    Mutant(
        "offset = decode_int64(buffer, position)", "offset = decode_int64(buffer, position + 1)"
    ),
)
def header_decode_base_offset(data: bytes) -> bool:
    """Read the base offset of a batch of magic 2.

    pre: len(data) == 8
    post: _
    """
    return _reads_header([*data, *bytes(8), 2, *bytes(44)])


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-1",
    "any raw bytes 8 to 15 of a header of magic 2, the others zero",
    Mutant(
        "fields[10] = decode_int32(buffer, position + 12)",
        "fields[10] = decode_int32(buffer, position + 8)",
    ),
)
def header_decode_framing(data: bytes) -> bool:
    """Read size and leader epoch of a batch of magic 2.

    pre: len(data) == 8
    post: _
    """
    return _reads_header([*bytes(8), *data, 2, *bytes(44)])


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-1",
    "any raw bytes 17 to 22 of a header of magic 2, the others zero",
    Mutant(
        "checksum = decode_int32(buffer, position + 17)",
        "checksum = decode_int32(buffer, position + 12)",
    ),
)
def header_decode_checksum(data: bytes) -> bool:
    """Read checksum and attributes of a batch of magic 2.

    pre: len(data) == 6
    post: _
    """
    return _reads_header(_header(data, 17))


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-4",
    "any raw bytes 23 to 34 of a header of magic 2, the others zero",
    Mutant(
        "fields[5] = decode_int64(buffer, position + 27)",
        "fields[5] = decode_int64(buffer, position + 35)",
    ),
)
def header_decode_base_timestamp(data: bytes) -> bool:
    """Read last offset delta and base timestamp of a batch of magic 2.

    pre: len(data) == 12
    post: _
    """
    return _reads_header(_header(data, 23))


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-4",
    "any raw bytes 35 to 42 of a header of magic 2, the others zero",
    Mutant(
        "fields[6] = decode_int64(buffer, position + 35)",
        "fields[6] = decode_int64(buffer, position + 27)",
    ),
)
def header_decode_max_timestamp(data: bytes) -> bool:
    """Read the largest timestamp of a batch of magic 2.

    pre: len(data) == 8
    post: _
    """
    return _reads_header(_header(data, 35))


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-1",
    "any raw bytes 43 to 60 of a header of magic 2, the others zero",
    Mutant(
        "fields[9] = decode_int32(buffer, position + 53)",
        "fields[9] = decode_int32(buffer, position + 57)",
    ),
)
def header_decode_producer(data: bytes) -> bool:
    """Read producer id and epoch, base sequence and record count of a batch of magic 2.

    pre: len(data) == 18
    post: _
    """
    return _reads_header(_header(data, 43))


def _header(data: bytes, position: int) -> Any:
    """Return a header of magic 2 that is zero but for `data` at `position`, as a list of bytes.

    CrossHair takes ten times as long with bytes that are joined.
    """
    return [*bytes(16), 2, *bytes(position - 17), *data, *bytes(61 - position - len(data))]


def _reads_header(data: Any) -> bool:
    fields = [0] * kernels.HEADER_FIELDS
    _decode_batch_header(data, 0, fields)
    batch = BATCH(data, 0, 61)
    expected = [
        batch.base_offset, batch.last_offset, 2, batch.attributes, batch.crc, batch.base_timestamp,
        batch.max_timestamp, batch.producer_id, batch.producer_epoch, batch.base_sequence,
        batch.partition_leader_epoch, batch.record_count, integers.int32_at(data, 23),
        integers.int32_at(data, 8) + 12,
    ]  # fmt: skip
    return all(fields[number] == expected[number] for number in range(kernels.HEADER_FIELDS))


@contract(
    f"{RECORDS}:decode_batch_header",
    "BATCH-1 BATCH-12",
    "any 26 raw bytes of magic 0 or 1 with a timestamp from 0 on",
    Mutant("magic == 1:", "magic == 0:"),
)
def legacy_header_decode(data: bytes) -> bool:
    """Read the header of a message of magic 0 or 1.

    pre: len(data) == 26
    pre: data[16] <= 1 and data[18] < 128
    post: _
    """
    fields = [0] * kernels.HEADER_FIELDS
    _decode_batch_header(data, 0, fields)
    batch = MESSAGE(data, 0, 26)
    expected = [
        batch.last_offset, batch.magic, batch.attributes, batch.crc, batch.max_timestamp,
        batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.partition_leader_epoch,
    ]  # fmt: skip
    found = [fields[1], fields[2], fields[3], fields[4], fields[6], *fields[7:11]]
    return all(found[number] == expected[number] for number in range(len(expected)))


@contract(
    f"{RECORDS}:short_varint",
    "BATCH-7",
    "any 5 raw bytes",
    Mutant("position + 2", "position + 1"),
)
def short_varint_decode(data: bytes) -> bool:
    """Read a varint of one or two bytes, or leave it.

    pre: len(data) == 5
    post: _
    """
    found = _short_varint(data, 0)
    if found[1] == 0:
        return data[0] >= 128 and data[1] >= 128
    return outcome_of(varint.decode_varint, data, 0) == found


@contract(
    f"{RECORDS}:plain_record",
    "BATCH-6 BATCH-16",
    "a record of 8 bytes behind its length with deltas 1 and 2, all other raw bytes",
    Mutant("limit, timestamp_delta, offset_delta", "limit, offset_delta, timestamp_delta"),
    Mutant("at + 1 != limit", "at + 1 > limit"),
)
def plain_record_walk(data: bytes) -> bool:
    """Read a plain record by the short way as the model does, or leave it.

    pre: len(data) == 9
    pre: data[0] == 16 and data[2] == 2 and data[3] == 4
    post: _
    """
    found = _plain_record(data, 0, 9)
    if found[0] == 0:
        return True
    expected = outcome_of(record.decode_record, data, 0, _BASE)
    if isinstance(expected, Raised):
        return False
    one, after = expected
    return found == (after, one.timestamp, one.offset)


@contract(
    f"{RECORDS}:next_record",
    "BATCH-16 BATCH-18",
    "any 5 raw bytes: every length that cannot be a record's",
    Mutant("length > end - body", "length > end - body + 5"),
)
def record_length(data: bytes) -> bool:
    """Refuse a record whose length is cut, over-long, negative or more than what is left.

    pre: len(data) == 5
    post: _
    """
    found = _next_record(data, 0, 5)[0]
    expected = outcome_of(record.decode_record, data, 0, _BASE)
    if found == -kernels.RECORDS_OVERLONG_LENGTH:
        return expected == Raised(ErrorKind.INVALID_ARGUMENT)
    return found < 0 and expected == Raised(ErrorKind.INVALID_RECORD)


@contract(
    f"{RECORDS}:next_record",
    "BATCH-6 BATCH-16",
    "a record of 6 bytes behind its length with deltas 1 and 2, all other raw bytes",
    Mutant(
        "limit, timestamp_delta, offset_delta, key",
        "limit, offset_delta, timestamp_delta, key",
    ),
)
def record_walk(data: bytes) -> bool:
    """Read or refuse a record as the model does, whatever its bytes.

    pre: len(data) == 7
    pre: data[0] == 12 and data[2] == 2 and data[3] == 4
    post: _
    """
    found = _next_record(data, 0, 7)
    expected = outcome_of(record.decode_record, data, 0, _BASE)
    if isinstance(expected, Raised):
        overlong = found[0] == -kernels.RECORDS_OVERLONG_LENGTH
        return found[0] < 0 and overlong == (expected.kind == ErrorKind.INVALID_ARGUMENT)
    one, after = expected
    key = None if found[4] < 0 else data[found[3] : found[3] + found[4]]
    value = None if found[6] < 0 else data[found[5] : found[5] + found[6]]
    return (after, one.timestamp, one.offset, one.key, one.value, len(one.headers)) == (
        found[0], found[1], found[2], key, value, found[8],
    )  # fmt: skip
