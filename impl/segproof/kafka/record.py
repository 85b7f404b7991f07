# SPDX-License-Identifier: Apache-2.0
"""Records as values: one record, many records as columns, varints, sequences, control records.

Upstream: Kafka 4.3.1: Record, DefaultRecord, ByteUtils, ControlRecordType, EndTransactionMarker.
Layout of a control record: key int16 version, int16 type; the value that ends a transaction
  int16 version, int32 coordinator epoch.
Laws: BATCH-5, BATCH-6, BATCH-7, BATCH-19.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from segproof.errors import InvalidArgumentError, InvalidRecordError
from segproof.kernels import records as kernels

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

Int64Array = NDArray[np.int64]


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
    sequence: int = -1
    """-1 where the batch has no sequence."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """The records of one batch as arrays of one length; positions count from the start of `data`.

    `data[key_positions[i] : key_positions[i] + key_lengths[i]]` is the key of record i; length -1
    means null, and 0 an empty one. Values likewise.
    """

    data: memoryview
    """The decompressed records; nothing is copied out of it before it is asked for."""
    offsets: Int64Array
    timestamps: Int64Array
    """Milliseconds; -1 in magic 0."""
    sequences: Int64Array
    """-1 where the batch has no sequence."""
    key_positions: Int64Array
    key_lengths: Int64Array
    value_positions: Int64Array
    value_lengths: Int64Array
    header_positions: Int64Array
    """Position of the first header."""
    header_counts: Int64Array

    def __len__(self) -> int:
        return len(self.offsets)

    def keys(self) -> Iterator[bytes | None]:
        """Yield the keys, copied."""
        return self._slices(self.key_positions, self.key_lengths)

    def values(self) -> Iterator[bytes | None]:
        """Yield the values, copied."""
        return self._slices(self.value_positions, self.value_lengths)

    def headers(self, row: int) -> tuple[RecordHeader, ...]:
        """Return the headers of one record."""
        return tuple(
            RecordHeader(
                str(self.data[key : key + key_length], errors="replace"),
                self._slice(value, value_length),
            )
            for _, key, key_length, value, value_length in self._header_places(row)
        )

    def size_bytes(self, row: int, most_headers: int) -> int | None:
        """Return the bytes of key, value and headers; None for more headers than are walked."""
        count = int(self.header_counts[row])
        if count > most_headers:
            return None
        start = position = int(self.header_positions[row])
        for place in self._header_places(row):
            position = place[0]
        lengths = max(int(self.key_lengths[row]), 0) + max(int(self.value_lengths[row]), 0)
        return lengths + position - start

    def rows(self, chosen: "slice | NDArray[np.bool_]") -> "RecordColumns":
        """Return some of the rows; `data` stays whole."""
        kept = {
            each.name: getattr(self, each.name)[chosen]
            for each in fields(self)
            if each.name != "data"
        }
        return replace(self, **kept)

    def __iter__(self) -> Iterator[Record]:
        counts = self.header_counts.tolist()
        rows = zip(
            self.offsets.tolist(),
            self.timestamps.tolist(),
            self.keys(),
            self.values(),
            self.sequences.tolist(),
            strict=True,
        )
        for row, (offset, timestamp, key, value, sequence) in enumerate(rows):
            headers = self.headers(row) if counts[row] else ()
            yield Record(offset, timestamp, key, value, headers, sequence)

    def _header_places(self, row: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield what `next_header` says of each; to call what is compiled for one takes longer."""
        next_header = kernels.next_header.interpreted
        position = int(self.header_positions[row])
        for _ in range(int(self.header_counts[row])):
            place = next_header(self.data, position, len(self.data))
            yield place
            position = place[0]

    def _slices(self, positions: Int64Array, lengths: Int64Array) -> Iterator[bytes | None]:
        return map(self._slice, positions.tolist(), lengths.tolist())

    def _slice(self, position: int, length: int) -> bytes | None:
        return None if length < 0 else self.data[position : position + length].tobytes()


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """What a control record that ends a transaction says."""

    control_type: str
    """ABORT or COMMIT."""
    coordinator_epoch: int


def control_record_type(key: bytes | None) -> str:
    """Return the type that the key of a control record names, or UNKNOWN.

    Raises: InvalidRecordError for a key below 4 bytes or a negative version. Laws: BATCH-19.
    """
    if key is None or len(key) < 4 or kernels.decode_int16(key, 0) < 0:
        raise InvalidRecordError(
            "the key of a control record is not (int16 version >= 0, int16 type)",
            law="BATCH-19",
            expected="4 bytes or more",
            actual=key,
        )
    number = kernels.decode_int16(key, 2)
    if 0 <= number < len(CONTROL_RECORD_TYPES):
        return CONTROL_RECORD_TYPES[number]
    return "UNKNOWN"


def end_transaction_marker(record: Record) -> EndTransactionMarker:
    """Return what the control record says about the end of a transaction.

    Raises: InvalidArgumentError for another type of control record, InvalidRecordError for a value
    below 6 bytes or a negative version. Laws: BATCH-19.
    """
    control_type = control_record_type(record.key)
    if control_type not in ("ABORT", "COMMIT"):
        raise InvalidArgumentError(
            f"a control record of type {control_type} ends no transaction", law="BATCH-19"
        )
    value = record.value
    if value is None or len(value) < 6 or kernels.decode_int16(value, 0) < 0:
        raise InvalidRecordError(
            "the value of an end-transaction marker is not (int16 version >= 0, int32 epoch)",
            law="BATCH-19",
            expected="6 bytes or more",
            actual=value,
        )
    return EndTransactionMarker(control_type, kernels.decode_int32(value, 2))


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number `increment` later; 0 follows 2147483647. Laws: BATCH-5."""
    return kernels.increment_sequence(sequence, increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number `decrement` earlier; 2147483647 comes before 0. Laws: BATCH-5."""
    return kernels.decrement_sequence(sequence, decrement)


def encode_varint(value: int) -> bytes:
    """Return `value`, wrapped to 32 bits, as a zigzag varint of 1 to 5 bytes. Laws: BATCH-7."""
    return _encode(value, 1 << 32)


def encode_varlong(value: int) -> bytes:
    """Return `value`, wrapped to 64 bits, as a zigzag varlong of 1 to 10 bytes. Laws: BATCH-7."""
    return _encode(value, 1 << 64)


def _encode(value: int, modulus: int) -> bytes:
    wrapped = (value + modulus // 2) % modulus - modulus // 2
    rest = 2 * wrapped if wrapped >= 0 else -2 * wrapped - 1
    encoded = bytearray()
    while rest > 127:
        encoded.append(rest % 128 + 128)
        rest //= 128
    encoded.append(rest)
    return bytes(encoded)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the int32 at `position` and the position behind it.

    Raises: InvalidArgumentError for a fifth byte that announces another, InvalidRecordError where
    the data ends first. Laws: BATCH-7.
    """
    return _decoded(kernels.decode_varint, data, position)


def decode_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Return the int64 at `position` and the position behind it; errors as in `decode_varint`."""
    return _decoded(kernels.decode_varlong, data, position)


def _decoded(
    decode: Callable[[bytes, int, int], tuple[int, int]], data: bytes, position: int
) -> tuple[int, int]:
    value, after = decode(data, position, len(data))
    if after == kernels.OVERLONG:
        raise InvalidArgumentError("a varint does not end", law="BATCH-7", position=position)
    if after == kernels.TRUNCATED:
        raise InvalidRecordError("a varint is cut", law="BATCH-7", position=position)
    return value, after
