# SPDX-License-Identifier: Apache-2.0
"""The laws of record batches.

Those of a `state` take any batch that was read, damaged or not, in memory or in a file. Those of a
`log` take the bytes of batches that lie back to back. The others take what a function was given and
what it answered.
"""

import struct
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from segproof_model.kafka.format.compression import ZSTD, Codecs
from segproof_model.kafka.format.record import EndTransactionMarker, Record
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_releases import (
    InvalidBatchIsInvalidRecord,
    LongRecordIsNull,
    WrapperIsNotChecked,
    ZstdIsUnknown,
)
from segproof_model.language.integers import INT32_MAX, int32_at, int64_at, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.batch_bytes import (
    HEADER,
    Header,
    asked,
    entries_of,
    has_right_checksum,
    has_small_entry,
    header_of,
    inner_of,
    is_there,
    number_at,
    offsets_of,
    records_of,
    relative_offsets,
    stored_in,
    timestamps_in,
)
from segproof_model.laws.register import has, law

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
fields_of = attrgetter(*Header._fields)
WRAPPING = "DeepRecordsIterator, since 0.11.0"


# --- the header ----------------------------------------------------------------------------------


@law("BATCH-1", RecordBatch, "Records, LegacyRecord, DefaultRecordBatch, since 0.11.0")
def size_and_magic_are_in_place(state: Any) -> bool:
    """The total size of a batch or message is 12 + the int32 at offset 8, and its magic is the
    byte at offset 16, in all three formats; the other fields of v2 are where the layout says.
    """
    size, magic = int32_at(state.data, 8), int.from_bytes(state.data[16:17], "big", signed=True)
    head = header_of(state)
    is_as_long = (state.size_bytes - size - 12) % 2**32 == 0
    return is_as_long and state.magic == magic and (head is None or fields_of(state) == head)


@law("BATCH-2", RecordBatch, "LegacyRecord.computeChecksum")
def legacy_checksum_is_right(log: bytes) -> bool:
    """The v0/v1 checksum is CRC-32 (IEEE) over bytes 16..end."""
    return all(has_right_checksum(entry) for entry in entries_of(log) if entry[16] < 2)


@law("BATCH-3", RecordBatch, "DefaultRecordBatch.computeChecksum")
def checksum_is_right(log: bytes) -> bool:
    """The v2 checksum is CRC-32C over bytes 21..end: baseOffset, length, partitionLeaderEpoch and
    the stored checksum do not count.
    """
    return all(has_right_checksum(entry) for entry in entries_of(log) if entry[16] == 2)


@law("BATCH-4", RecordBatch, "DefaultRecordBatch.lastOffset")
def last_offset_is_base_and_delta(state: Any) -> bool:
    """In v2, last offset = baseOffset + lastOffsetDelta and next offset = last offset + 1."""
    head = header_of(state)
    if head is None:
        return True
    last = wrap64(head.base_offset + head.last_offset_delta)
    return (state.last_offset, state.next_offset) == (last, wrap64(last + 1))


@law("BATCH-5", RecordBatch, "DefaultRecordBatch.incrementSequence, since 0.11.0")
def sequences_wrap_to_zero(sequence: int, count: int, later: int, back: int) -> bool:
    """Sequence arithmetic wraps from 2147483647 to 0; for every s in [0, 2147483647] and n >= 0
    decrement(increment(s, n), n) = s.
    """
    return later == (sequence + count) % (INT32_MAX + 1) and back == sequence


@law("BATCH-12", RecordBatch, "AbstractLegacyRecordBatch, LegacyFileChannelRecordBatch")
def legacy_header_says_little(state: Any) -> bool:
    """Without decompression a v0/v1 batch yields only its last offset and maximum timestamp."""
    if not (state.is_legacy and is_there(state) and state.magic >= 0):
        return True
    # The bytes after the header fields, such as a compressed value, are blanked.
    data = state.data[:26] + bytes(max(0, state.size_bytes - 26))
    batch = type(state)(data, state.position, state.size_bytes, state.in_file)
    last_offset, codec, timestamp = struct.unpack_from(">q9xbq", data)
    known = (batch.last_offset, batch.max_timestamp, batch.record_count)
    is_hidden = isinstance(asked(batch, "base_offset"), Raised)
    return known == (last_offset, timestamp if batch.magic else -1, None) and (
        codec % 8 == 0 or is_hidden
    )


@law("BATCH-14", RecordBatch, "DefaultRecordBatch.ensureValid, since 2.4")
def only_size_and_checksum_count(state: Any) -> bool:
    """ensure_valid raises the corrupt-record error exactly when the size is below 61 (v2) or 14
    (v0/v1), or the checksum differs; it never parses records.
    """
    if not is_there(state):
        return True
    is_long = state.size_bytes >= HEADER.size or state.is_legacy
    is_right = is_long and has_right_checksum(state.data[: state.size_bytes])
    older = has(state, InvalidBatchIsInvalidRecord)
    error = None if is_right else INVALID_RECORD if older else CORRUPT_RECORD
    return outcome_of(state.is_valid) is is_right and outcome_of(state.ensure_valid) == error


@law("BATCH-15", RecordBatch, "DefaultRecordBatch.writeEmptyHeader")
def empty_batches_keep_their_place(kept: tuple[int, int, int, int], written: bytes) -> bool:
    """An empty v2 batch (count 0, 61 bytes) is valid, keeps its offsets, sequence and
    maxTimestamp, and has baseTimestamp -1.

    `kept` are base offset, last offset, maxTimestamp and base sequence.
    """
    head = Header._make(HEADER.unpack(written))
    is_empty = (head.magic, head.record_count, head.base_timestamp) == (2, 0, -1)
    last_offset = head.base_offset + head.last_offset_delta
    is_kept = kept == (head.base_offset, last_offset, head.max_timestamp, head.base_sequence)
    return is_empty and is_kept and entries_of(written) == [written] and has_right_checksum(written)


# --- records -------------------------------------------------------------------------------------


@law("BATCH-6", RecordBatch, "DefaultRecord, LegacyRecord")
def records_survive_writing(records: Sequence[Record], magic: int, found: Sequence[Record]) -> bool:
    """Encoding and decoding records is the identity, and keeps null and empty apart for keys,
    values and header values; magic 0 has no timestamps.
    """
    kept = [one._replace(sequence=-1) for one in records]
    return list(found) == [one if magic else one._replace(timestamp=-1) for one in kept]


@law("BATCH-7", RecordBatch, "ByteUtils.readVarint, readVarlong")
def varints_are_zigzag(data: bytes, bits: int, decoded: Any) -> bool:
    """varint is zigzag base-128, little-endian, at most 5 bytes (varlong 10); one byte more is an
    error.

    `decoded` is what is read at the beginning of `data`, or what was written as these bytes.
    """
    most = bits // 7 + 1
    if all(byte >= 128 for byte in data[:most]):
        return bool(decoded == (INVALID_ARGUMENT if len(data) >= most else INVALID_RECORD))
    return bool(decoded == number_at(data, 0, bits))


@law("BATCH-8", RecordBatch, "DefaultRecordBatch.RecordIterator")
def timestamps_follow_their_type(state: Any) -> bool:
    """A v2 record's timestamp is baseTimestamp + delta under CreateTime and maxTimestamp under
    LogAppendTime.
    """
    head, stored = header_of(state), stored_in(state)
    if stored is None or isinstance(records := records_of(state), Raised):
        return True
    distances = timestamps_in(stored, head.record_count) or []
    wanted = [wrap64(head.base_timestamp + distance) for distance in distances]
    if head.attributes & 8:
        wanted = [head.max_timestamp] * len(wanted)
    return [record.timestamp for record in records] == wanted


@law("BATCH-16", RecordBatch, "DefaultRecord.readFrom, since 3.6")
def damaged_records_are_refused(state: Any) -> bool:
    """Iterating a v2 batch raises the invalid-record error when the count is negative, a declared
    length exceeds the rest, the header count is negative or exceeds the rest, a header key length
    is negative, a record does not consume its length, or bytes remain after the last record.
    """
    stored = stored_in(state)
    if stored is None:
        return True
    records = records_of(state)
    if timestamps_in(stored, header_of(state).record_count) is not None:
        return not isinstance(records, Raised)
    kinds = (INVALID_RECORD, INVALID_ARGUMENT, Raised(ErrorKind.NULL))
    return records in kinds[: 3 if has(state, LongRecordIsNull) else 2]


@law("BATCH-17", RecordBatch, "DefaultRecordBatch.iterator")
def nothing_is_read_of_no_records(state: Any) -> bool:
    """With count 0 nothing is read and trailing bytes are not noticed."""
    head = header_of(state)
    return head is None or head.record_count != 0 or records_of(state) == []


@law("BATCH-18", RecordBatch, "ByteUtils, CompressionType.forId")
def two_errors_are_invalid_arguments(state: Any) -> bool:
    """An over-long length varint of an uncompressed record and codec values 5..7 raise
    invalid-argument, not the invalid-record error.
    """
    head = header_of(state)
    if head is None or head.record_count <= 0:
        return True
    codec, length = head.attributes % 8, state.data[HEADER.size : state.size_bytes][:5]
    if codec > 4 and asked(state, "compression") != INVALID_ARGUMENT:
        return False
    is_long = codec == 0 and len(length) == 5 and min(length) >= 128
    return not (is_long or codec > 4) or records_of(state) == INVALID_ARGUMENT


# --- wrappers ------------------------------------------------------------------------------------


@law("BATCH-9", RecordBatch, WRAPPING)
def inner_offsets_become_absolute(state: Any) -> bool:
    """A v0 wrapper's inner offsets are absolute; a v1 wrapper's inner offset i becomes wrapper
    offset - last inner offset + i, with base 0 when the wrapper offset is 0.
    """
    offset, relative = int64_at(state.data, 0), relative_offsets(state)
    if not relative or (state.magic == 1 and 0 != offset < relative[-1]):
        return True
    base = offset - relative[-1] if state.magic == 1 and offset != 0 else 0
    return bool(offsets_of(state) == [wrap64(base + one) for one in relative])


@law("BATCH-10", RecordBatch, WRAPPING, unless=(WrapperIsNotChecked,))
def wrapper_offset_is_not_too_small(state: Any) -> bool:
    """A v1 wrapper with 0 != wrapper offset < last inner offset raises the invalid-record error."""
    offset, relative = int64_at(state.data, 0), relative_offsets(state)
    is_small = state.magic == 1 and bool(relative) and 0 != offset < relative[-1]
    return not is_small or offsets_of(state) == INVALID_RECORD


@law("BATCH-11", RecordBatch, WRAPPING, unless=(WrapperIsNotChecked, ZstdIsUnknown))
def bad_wrappers_are_refused(state: Any) -> bool:
    """A compressed v0/v1 wrapper with null value, no inner message, a compressed inner message or
    codec zstd raises the invalid-record error; an inner size < 14 raises the corrupt-record error;
    a partial inner tail is dropped silently.
    """
    inner = inner_of(state)
    if inner is None:
        return True
    if has_small_entry(inner):
        return bool(offsets_of(state) == CORRUPT_RECORD)
    codecs = [message[17] % 8 for message in entries_of(inner)]
    is_good = bool(codecs) and not any(codecs)
    is_unknown = max(codecs, default=0) > ZSTD
    return is_good or is_unknown or bool(offsets_of(state) == INVALID_RECORD)


@law("BATCH-20", RecordBatch, "Lz4BlockOutputStream, since 0.10.0")
def lz4_checksum_depends_on_magic(frame: bytes, magic: int, codecs: Codecs) -> bool:
    """Magic-0 LZ4 frames carry the historical header checksum; magic-1 and magic-2 frames carry
    the standard one.
    """
    return frame[6] == codecs.xxhash32(frame[0 if magic == 0 else 4 : 6]) >> 8 & 255


# --- control records, golden bytes ------------------------------------------------------------


@law("BATCH-19", RecordBatch, "ControlRecordType, EndTransactionMarker")
def control_records_are_checked(key: bytes, value: bytes, control_type: Any, marker: Any) -> bool:
    """A control batch has one record whose key is (int16 version, int16 type) and whose
    end-transaction value is (int16 version, int32 coordinator epoch); a key below 4 bytes, a value
    below 6 bytes or a negative version raises the invalid-record error.
    """
    if len(key) < 4 or key[0] >= 128:
        return bool(control_type == marker == INVALID_RECORD)
    name = {0: "ABORT", 1: "COMMIT"}.get(int.from_bytes(key[2:4], "big"))
    if name is None:
        return control_type not in ("ABORT", "COMMIT") and bool(marker == INVALID_ARGUMENT)
    is_short = len(value) < 6 or value[0] >= 128
    said = INVALID_RECORD if is_short else EndTransactionMarker(name, int32_at(value, 2))
    return bool(control_type == name and marker == said)


@law("BATCH-13", RecordBatch, "MemoryRecordsBuilder 3.9.0")
def golden_bytes_are_reproduced(golden: bytes, written: bytes, given: Any, read: Any) -> bool:
    """The golden byte strings of 7.7 are produced and parsed exactly.

    `given` are the records that were written, as they are to be read.
    """
    return written == golden and bool(read == given)
