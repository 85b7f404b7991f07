# SPDX-License-Identifier: Apache-2.0
"""Record batches: what a log is made of, in all three formats, read lazily.

Upstream: Kafka 4.3.1: DefaultRecordBatch, AbstractLegacyRecordBatch, FileChannelRecordBatch.
Layout: BATCH of layouts/kafka.py. Attributes: bits 0-2 codec, 3 LogAppendTime,
  4 transactional, 5 control, 6 delete horizon.
Laws: BATCH-1 to BATCH-20, SCAN-10.
Not covered: conversion between formats; what the broker asks of a producer's batch.
"""

from array import array
from collections.abc import Iterator
from typing import NoReturn, Protocol

import numpy as np

from segproof.checksums import crc32, crc32c
from segproof.compression import UNCOMPRESSED_LIMIT_BYTES, codec_name, decompress
from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidRecordError,
    OutOfBoundsError,
    SegproofError,
    TooLargeError,
)
from segproof.kafka.batch_writing import LOG_APPEND_TIME_BIT, TIMESTAMP_TYPES
from segproof.kafka.legacy_record_batch import (
    check_inner_messages,
    legacy_blocks,
    legacy_offsets,
    legacy_times,
)
from segproof.kafka.record import Int64Array, Record, RecordColumns, increment_sequence
from segproof.kernels import records as kernels
from segproof.layouts.kafka import (
    BATCH,
    BATCH_HEADER_BYTES,
    CHECKED_FROM,
    HEADER_UP_TO_MAGIC_BYTES,
    LEGACY_MIN_BYTES,
    LOG_OVERHEAD_BYTES,
    MESSAGE_0,
    MESSAGE_1,
    MESSAGE_CHECKED_FROM,
)

_HEADERS_BYTES = (MESSAGE_0["attributes"].end, MESSAGE_1["timestamp"].end, BATCH_HEADER_BYTES)
"""Bytes of a header, by magic."""
_NO_SEQUENCE = -1
_ROWS_AT_ONCE = 1 << 12
_PIECE_BYTES = 1 << 20
"""Bytes of a batch whose checksum is made at a time."""
_MIN_RECORD_BYTES = 7

_FIELD_ENDS = tuple(
    BATCH[name].end
    for name in (
        "base_offset", "last_offset_delta", "magic", "attributes", "crc", "base_timestamp",
        "max_timestamp", "producer_id", "producer_epoch", "base_sequence",
        "partition_leader_epoch", "record_count", "last_offset_delta", "size",
    )
)  # fmt: skip
"""Where each field of `decode_batch_header` ends in a magic 2 header."""

_FAULTS = {
    kernels.RECORDS_OVERLONG_LENGTH: "the length of a record does not end",
    kernels.RECORDS_TRUNCATED: "the records end inside a length",
    kernels.RECORDS_BAD_LENGTH: "a record is longer than what is left of the batch",
    kernels.RECORDS_BAD_VARINT: "a varint does not end inside its record",
    kernels.RECORDS_BAD_HEADER_COUNT: "a record has more headers than bytes, or fewer than none",
    kernels.RECORDS_BAD_HEADER_KEY: "a record header has a null key",
    kernels.RECORDS_NOT_CONSUMED: "a record is longer than its fields",
    kernels.RECORDS_LEFT_OVER: "bytes are left behind the last record",
    kernels.RECORDS_NEGATIVE_COUNT: "the record count is negative",
}


class Source(Protocol):
    """What a batch is read from: a `File`, or bytes in memory."""

    def pread(self, size: int, position: int) -> bytes:
        """Return `size` bytes from `position`; fewer only at the end."""


class _Memory:
    """One batch in memory; its fields end where it ends."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def pread(self, size: int, position: int) -> bytes:
        start = position - self._position
        return self._data[start : start + size]


class RecordBatch:
    """A batch as it lies in memory or in a file; before magic 2, one message.

    Made by `read_batch` and by `RecordFile.batches`. Only offset, size and magic are known at
    first; the header is read when a field is asked for, the records when they are. A field beyond
    a batch in memory raises OutOfBoundsError, one beyond the end of the file SegproofError, the
    Kafka error (SCAN-10).
    """

    __slots__ = (
        "_fields",
        "_header",
        "_in_file",
        "_legacy_offsets",
        "_source",
        "inflated_bytes",
        "limit",
        "magic",
        "position",
        "size_bytes",
    )

    def __init__(
        self,
        source: Source,
        position: int,
        size_bytes: int,
        magic: int,
        *,
        in_file: bool,
        header: bytes = b"",
        limit: int = UNCOMPRESSED_LIMIT_BYTES,
    ) -> None:
        self.position = position
        """Where it begins, in bytes from the beginning of the file or of the data."""
        self.size_bytes = size_bytes
        """12 + its size field (BATCH-1)."""
        self.magic = magic
        """The format: 0, 1 or 2."""
        self._source = source
        self._in_file = in_file
        self.limit = limit
        """Bytes it may have in a file, and inflate to, where a question gives no limit."""
        self.inflated_bytes = 0
        """What its records have inflated to; the limit, where they could not be inflated."""
        self._fields: array[int] | None = None
        self._legacy_offsets: tuple[int, int] | None = None
        """Once known: of a compressed message it takes inflating it."""
        self._header = header
        """The first bytes, as far as a scanner has read them already."""

    def __repr__(self) -> str:
        where = f"position={self.position}, size_bytes={self.size_bytes}"
        return f"RecordBatch(magic={self.magic}, {where})"

    # --- the header

    @property
    def is_legacy(self) -> bool:
        """Whether it is a message of magic 0 or 1."""
        return self.magic < 2

    @property
    def base_offset(self) -> int:
        """The first offset; of a message, that of its first record, which must be read for it.

        Raises: as `records`, for a message; beyond the limit TooLargeError.
        """
        if not self.is_legacy:
            return self._first_offset_field()
        if self.compression == "none":
            self._read(1, self.size_bytes - 1)  # the file may have become shorter
            return self._field(0)
        return self.message_offsets[0]

    @property
    def message_offsets(self) -> tuple[int, int]:
        """The offsets of the first and the last message in a compressed one of magic 0 or 1.

        In magic 0 the messages state them themselves, under its checksum. Raises: as `base_offset`.
        """
        if self._legacy_offsets is None:
            self._legacy_offsets = legacy_offsets(*self._whole(None))
        return self._legacy_offsets

    @property
    def last_offset(self) -> int:
        """The last offset, also where compaction has removed its record. Laws: BATCH-4."""
        return self._first_offset_field() if self.is_legacy else self._field(1)

    @property
    def next_offset(self) -> int:
        """The offset behind the last one, wrapped at 64 bits."""
        return kernels.add_int64(self.last_offset, 1)

    @property
    def attributes(self) -> int:
        """The stored attributes, an int8 before magic 2, then an int16."""
        return self._field(3)

    @property
    def crc(self) -> int:
        """The stored checksum, 0 to 2^32 - 1."""
        return self._field(4)

    @property
    def compression(self) -> str:
        """The codec's name. Raises: InvalidArgumentError for codes 5 to 7 (BATCH-18)."""
        return codec_name(self.attributes & 7, self.position)

    @property
    def timestamp_type(self) -> str:
        """NoTimestampType (magic 0), CreateTime or LogAppendTime."""
        return TIMESTAMP_TYPES[0 if self.magic == 0 else 2 if self._flag(3) else 1]

    @property
    def base_timestamp(self) -> int | None:
        """What timestamps are relative to, or the delete horizon; None before magic 2."""
        return None if self.is_legacy else self._field(5)

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in milliseconds; -1 in magic 0."""
        return self._field(6)

    @property
    def partition_leader_epoch(self) -> int:
        """The leader's epoch; -1: unknown."""
        return -1 if self.is_legacy else self._field(10)

    @property
    def producer_id(self) -> int:
        """The producer's id; -1: no producer."""
        return -1 if self.is_legacy else self._field(7)

    @property
    def producer_epoch(self) -> int:
        """The producer's epoch; -1: no producer."""
        return -1 if self.is_legacy else self._field(8)

    @property
    def base_sequence(self) -> int:
        """The first sequence number; -1: no producer."""
        return _NO_SEQUENCE if self.is_legacy else self._field(9)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last offset; -1: no producer. Laws: BATCH-5."""
        base = self.base_sequence
        return base if base == _NO_SEQUENCE else increment_sequence(base, self._field(12))

    @property
    def record_count(self) -> int | None:
        """The stored count; None before magic 2, which does not store it. Laws: BATCH-12."""
        return None if self.is_legacy else self._field(11)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return not self.is_legacy and self._flag(4)

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record. Laws: BATCH-19."""
        return not self.is_legacy and self._flag(5)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the base timestamp says when tombstones may go; older releases ignore it."""
        return not self.is_legacy and self._flag(6)

    # --- the whole batch

    def is_valid(self) -> bool:
        """Return whether the size is not too small and the checksum is right.

        The batch is read in pieces, so its size costs no memory.

        Raises: SegproofError if the file has become shorter than the batch. Laws: BATCH-14.
        """
        made, stored = self._checksums()
        return made == stored and self.size_bytes >= self._smallest_bytes()

    def ensure_valid(self) -> None:
        """Return if the batch is valid; no record is looked at.

        Raises: CorruptRecordError otherwise. Laws: BATCH-14.
        """
        made, stored = self._checksums()
        smallest = self._smallest_bytes()
        if self.size_bytes < smallest:
            raise CorruptRecordError(
                f"a magic {self.magic} batch of {self.size_bytes} bytes",
                law="BATCH-14",
                position=self.position,
                expected=f"at least {smallest} bytes",
                actual=self.size_bytes,
            )
        if made != stored:
            raise CorruptRecordError(
                "the checksum of the batch is wrong",
                law="BATCH-2" if self.is_legacy else "BATCH-3",
                position=self.position,
                expected=made,
                actual=stored,
                hint="its bytes were changed after they were written",
            )

    def records(self, *, limit: int | None = None) -> Iterator[Record]:
        """Yield every record; raise where reading them fails.

        An uncompressed batch hands out the records before the bad one, a compressed magic 2 batch
        none. A batch in a file is read whole; more than `limit` bytes of it, or of what it inflates
        to, are refused, by default 64 MiB. Memory beside these is constant, whatever its count
        claims.

        Raises: InvalidRecordError, InvalidArgumentError, CorruptRecordError, OutOfBoundsError,
        TooLargeError, SegproofError. Laws: BATCH-8 to BATCH-11, BATCH-16 to BATCH-18.
        """
        for block in self.record_blocks(limit=limit):
            yield from block

    def record_blocks(
        self, rows_at_once: int = _ROWS_AT_ONCE, *, limit: int | None = None
    ) -> Iterator[RecordColumns]:
        """Yield the records of `records` as numpy arrays, in blocks of at most so many rows.

        No block is empty. The same records come before an error as there. Raises: as `records`.
        """
        if self.is_legacy:
            for block in legacy_blocks(*self._whole(limit), rows_at_once):
                self.inflated_bytes = len(block.data)
                yield block
        else:
            yield from self._blocks(limit, rows_at_once)

    def times(self, *, limit: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield (timestamp, offset) of every record; raise where reading them fails.

        Those of a message before magic 2 can be read where its key or value can't.
        Raises: as `records`.
        """
        if self.is_legacy:
            for timestamps, offsets in legacy_times(*self._whole(limit)):
                yield from zip(timestamps.tolist(), offsets.tolist(), strict=True)
            return
        for block in self._blocks(limit, _ROWS_AT_ONCE):
            yield from zip(block.timestamps.tolist(), block.offsets.tolist(), strict=True)

    def record_columns(self, *, limit: int | None = None) -> RecordColumns:
        """Return all records as numpy arrays: several times faster than `records`.

        Raises: as `records`, before anything is returned.
        """
        if self.is_legacy:
            (columns,) = legacy_blocks(*self._whole(limit), rows_at_once=None)
            return columns
        blocks = list(self._blocks(limit, None))
        if blocks:
            return blocks[0]
        return self._columns(memoryview(b""), np.empty((0, kernels.RECORD_ROW), np.int64))

    def check_inner_messages(self, *, limit: int | None = None) -> list[int]:
        """Check the messages inside a compressed one of magic 0 or 1, and return the rows of those
        whose magic is not its own; those are not checked. Without such messages: none.

        Raises: CorruptRecordError for a wrong checksum, which comes before what else is wrong with
        a message; else as `records`, where no message can be told.
        """
        if not self.is_legacy or self.compression == "none":
            return []
        return check_inner_messages(*self._whole(limit))

    def check_records(self, *, limit: int | None = None) -> tuple[int, int, bool, int]:
        """Read every record of a magic 2 batch, keep none, and return what they say together:

        count, last offset delta (-1: no record), whether the offset deltas rise from 0 or more,
        and the largest timestamp delta. Raises: as `records`.
        """
        return self._summary(*self._record_block(limit))

    # --- inside

    def _summary(self, count: int, data: memoryview, start: int) -> tuple[int, int, bool, int]:
        summary = array("q", bytes(8 * kernels.SUMMARY_ROW))
        kernels.summarise_records.announce(self._work(count, data))
        view = memoryview(summary)
        kernels.summarise_records(data, start, len(data), count, view, 0)
        if summary[0] != kernels.RECORDS_GOOD:
            self._raise_fault(summary[0], summary[1])
        return summary[2], summary[3], bool(summary[4]), summary[5]

    def _work(self, count: int, data: memoryview) -> int:
        """Return how many units of a kernel's work the records are: one may be all headers."""
        inflated = len(data) // 128 if self.attributes & 7 else 0
        return max(inflated, min(count, len(data) // _MIN_RECORD_BYTES))

    def _blocks(self, limit: int | None, rows_at_once: int | None) -> Iterator[RecordColumns]:
        """Yield the records of a magic 2 batch, in blocks of at most so many rows."""
        count, data, position = self._record_block(limit)
        if count > 0 and self.attributes & 7 and rows_at_once is not None:
            self._summary(count, data, position)
        kernels.walk_records.announce(self._work(count, data))
        most = len(data) // _MIN_RECORD_BYTES + 1
        capacity = min(count, most, rows_at_once or most)
        while True:
            rows = np.empty((max(capacity, 0), kernels.RECORD_ROW), np.int64)
            done, status, position = kernels.walk_records(
                data, position, len(data), count, capacity, rows.reshape(-1).data
            )
            count -= done
            if status != kernels.RECORDS_GOOD:
                if rows_at_once is not None and done:
                    yield self._columns(data, rows[:done])
                self._raise_fault(status, position)
            if done:
                yield self._columns(data, rows[:done])
            if count == 0:
                return

    def _record_block(self, limit: int | None) -> tuple[int, memoryview, int]:
        """Return the record count, the bytes that hold the records, and where they begin."""
        whole, limit = self._whole(limit)
        if len(whole) < BATCH_HEADER_BYTES:
            raise self._out_of_bounds(BATCH_HEADER_BYTES)
        count = BATCH["record_count"].of(whole)
        if count == 0:
            return 0, memoryview(b""), 0
        if self.compression == "none":
            return count, whole, BATCH_HEADER_BYTES
        self.inflated_bytes = limit
        data = decompress(self.compression, whole[BATCH_HEADER_BYTES:], limit=limit)
        self.inflated_bytes = len(data)
        return count, data, 0

    def _columns(self, data: memoryview, rows: Int64Array) -> RecordColumns:
        if self.attributes & LOG_APPEND_TIME_BIT:
            timestamps = np.full(len(rows), self._field(6), np.int64)
        else:
            timestamps = rows[:, 0] + np.int64(self._field(5))
        return RecordColumns(
            data,
            rows[:, 1] + np.int64(self._field(0)),
            timestamps,
            self._sequences(rows[:, 1]),
            *rows[:, 2:].T,
        )

    def _sequences(self, offset_deltas: Int64Array) -> Int64Array:
        base = self._field(9)
        if base < 0:
            return np.full(len(offset_deltas), _NO_SEQUENCE, np.int64)
        sequences = (offset_deltas + base) % np.int64(1 << 31)
        for row in np.flatnonzero(offset_deltas < 0).tolist():
            sequences[row] = increment_sequence(base, int(offset_deltas[row]))
        return sequences

    def _first_offset_field(self) -> int:
        """Return the first field, which a scanner has read even if the file ends in the header."""
        return BATCH["base_offset"].of(self._header or self._source.pread(8, self.position))

    def _field(self, index: int) -> int:
        fields = self._fields
        if fields is None:
            fields = self._load_header()
        if not self.is_legacy and _FIELD_ENDS[index] > len(self._header):
            raise self._out_of_bounds(_FIELD_ENDS[index])
        return fields[index]

    def _flag(self, bit: int) -> bool:
        return self.attributes >> bit & 1 == 1

    def _load_header(self) -> "array[int]":
        needed = _HEADERS_BYTES[self.magic]
        header = self._header
        if len(header) < needed:
            header = self._source.pread(needed, self.position)
        if self._in_file and len(header) < needed:
            raise SegproofError(
                "the file ends inside the header of a batch",
                law="SCAN-10",
                path=getattr(self._source, "path", None),
                position=self.position,
                expected=f"{needed} bytes",
                actual=len(header),
            )
        self._header = header
        fields = array("q", bytes(8 * kernels.HEADER_FIELDS))
        kernels.decode_batch_header(header.ljust(BATCH_HEADER_BYTES, b"\0"), 0, memoryview(fields))
        self._fields = fields
        return fields

    def _whole(self, limit: int | None) -> tuple[memoryview, int]:
        """Return the bytes of the batch, and what they may inflate to; the size may be a lie."""
        limit = self.limit if limit is None else limit
        if self._in_file and self.size_bytes > limit:
            raise TooLargeError(
                f"a batch of {self.size_bytes} bytes is not read into memory",
                path=getattr(self._source, "path", None),
                position=self.position,
                expected=f"at most {limit} bytes",
                actual=self.size_bytes,
                hint="`segproof verify` tells whether it is sound; a program can raise the limit",
            )
        return memoryview(self._read(self.size_bytes, 0)), limit

    def _read(self, size: int, start: int) -> bytes:
        """Return `size` bytes of the batch from `start`."""
        part = self._source.pread(size, self.position + start)
        if len(part) < size:
            raise SegproofError(
                "the file ends inside a batch",
                path=getattr(self._source, "path", None),
                position=self.position,
                expected=f"{self.size_bytes} bytes",
                actual=start + len(part),
                hint="it became shorter while it was read",
            )
        return part

    def _checksums(self) -> tuple[int, int]:
        """Return the checksum that the bytes make, and the stored one."""
        start, checksum = (
            (MESSAGE_CHECKED_FROM, crc32) if self.is_legacy else (CHECKED_FROM, crc32c)
        )
        part = self._read(min(self.size_bytes, _PIECE_BYTES), 0)
        stored = (MESSAGE_1 if self.is_legacy else BATCH)["crc"].of(part)
        made = checksum(memoryview(part)[start:])
        for at in range(len(part), self.size_bytes, _PIECE_BYTES):
            made = checksum(self._read(min(self.size_bytes - at, _PIECE_BYTES), at), made)
        return made, stored

    def _smallest_bytes(self) -> int:
        return LEGACY_MIN_BYTES if self.is_legacy else BATCH_HEADER_BYTES

    def _out_of_bounds(self, end: int) -> OutOfBoundsError:
        return OutOfBoundsError(
            "a header field lies behind the end of the batch",
            position=self.position,
            expected=f"at least {end} bytes",
            actual=self.size_bytes,
        )

    def _raise_fault(self, status: int, at: int) -> NoReturn:
        """Raise what a fault means; upstream wraps all that goes wrong while it inflates."""
        message = f"{_FAULTS[status]} (byte {at} of the records)"
        if status == kernels.RECORDS_OVERLONG_LENGTH and not self.attributes & 7:
            raise InvalidArgumentError(message, law="BATCH-18", position=self.position)
        raise InvalidRecordError(message, law="BATCH-16", position=self.position)


def read_batch(data: bytes, position: int = 0) -> RecordBatch:
    """Return the batch that begins at `position`; its fields and records are read on demand.

    Raises: CorruptRecordError for fewer bytes than its size says, a size below 14, or a magic
    outside 0..2. Laws: BATCH-1, SCAN-9.
    """
    available = len(data) - position
    if position < 0 or available < HEADER_UP_TO_MAGIC_BYTES:
        raise CorruptRecordError(
            "no batch has room here", position=position, expected="17 bytes", actual=available
        )
    size_bytes = BATCH["size"].of(data, position) + LOG_OVERHEAD_BYTES
    if size_bytes < LEGACY_MIN_BYTES or size_bytes > available:
        raise CorruptRecordError(
            "the size of the batch is wrong",
            law="BATCH-1",
            position=position,
            expected=f"14 to {available - LOG_OVERHEAD_BYTES}",
            actual=size_bytes - LOG_OVERHEAD_BYTES,
        )
    magic = data[position + BATCH["magic"].place]
    if magic > 2:
        raise CorruptRecordError(
            f"no magic {magic}", law="SCAN-9", position=position, expected="0, 1 or 2", actual=magic
        )
    whole = bytes(data[position : position + size_bytes])
    return RecordBatch(_Memory(whole, position), position, size_bytes, magic, in_file=False)
