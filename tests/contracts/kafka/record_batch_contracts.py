# SPDX-License-Identifier: Apache-2.0
"""Contracts of record batches: varints and zigzag, headers, attribute bits, sequences, records.

A kernel answers a status where the model answers an error kind; `_KINDS` pairs them.

Mirrors: model/segproof_model/kafka/format/{record_batch,legacy_record_batch,record,varint}.py,
impl/segproof/kernels/records.py.
"""

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
_next_record = kernels.next_record.interpreted
_plain_record = kernels.plain_record.interpreted

_BASE = record.RecordBase(0, 0, -1, None)


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
