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
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

RECORDS = "segproof.kernels.records"

BATCH, MESSAGE = SEGPROOF.kind(RecordBatch), SEGPROOF.kind(LegacyRecordBatch)

_decode_varint = kernels.decode_varint.interpreted
_decode_varlong = kernels.decode_varlong.interpreted
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
    return found[:3] == (after, one.timestamp, one.offset)


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
