# SPDX-License-Identifier: Apache-2.0
"""Reading many batches at once: header tables, checksums and record checks of whole segments.

A scan reads each byte once, through one reused buffer, by `pread`; its memory is constant, whatever
the file says. It ends like Kafka's scanner of files, and how it ended is a value, never lost.

Upstream: Kafka 4.3.1: FileLogInputStream, DefaultRecordBatch.ensureValid, LegacyRecord.
Laws: BATCH-1 to BATCH-4, BATCH-12, BATCH-14, BATCH-16, SCAN-1 to SCAN-7, SCAN-10.
Not covered: magic outside 0..2 ends a scan with an error, which upstream's file scanner accepts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from segproof.checksums import crc32, crc32c, crc32c_of_parts
from segproof.compression import Inflation
from segproof.errors import CorruptRecordError, SegproofError, TooLargeError
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kernels import records as kernels
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES, LOG_OVERHEAD_BYTES, MESSAGE_1

__all__ = [
    "BATCH_DTYPE",
    "SUMMARY_DTYPE",
    "BatchScan",
    "BatchTable",
    "CheckedBatches",
    "HeaderTable",
    "HeldBytes",
    "check_batches",
    "read_batch_headers",
    "stacked",
]

TRANSACTIONAL, CONTROL = 16, 32
"""Bits of the attributes of a batch of magic 2."""
BATCH_DTYPE = np.dtype(
    [
        ("position", np.int64),
        ("size_bytes", np.int64),
        ("base_offset", np.int64),
        ("last_offset", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("crc", np.uint32),
        ("partition_leader_epoch", np.int32),
        ("base_sequence", np.int32),
        ("record_count", np.int32),
        ("last_offset_delta", np.int32),
        ("producer_epoch", np.int16),
        ("attributes", np.int16),
        ("magic", np.int8),
    ],
    align=True,
)
"""One batch header. Positions count from the beginning of the file; timestamps are milliseconds.

Before magic 2 a header knows one offset, that of the last record: `base_offset` repeats it, which
is exact unless the message is compressed, and then `record_count` is -1 and the true base offset
takes reading the records (BATCH-12). `base_timestamp` repeats `max_timestamp` there, and producer
id, epochs and sequence are -1, as in a magic 2 batch without them.
"""

SUMMARY_DTYPE = np.dtype(
    [
        ("record_count", np.int64),
        ("last_offset", np.int64),
        ("max_timestamp", np.int64),
        ("offsets_rise", np.bool_),
    ]
)
"""What the records of one batch say: their number, the offset of the last one (-1: no record), the
largest timestamp, and whether the offsets rise and none is below the batch's base offset."""

BatchTable = NDArray[np.void]
"""An array of BATCH_DTYPE."""

CHUNK_BYTES = 2 << 20
"""Bytes read at once: they stay in the processor's cache until their checksums are made."""
HELD_BYTES = 4 << 20
"""Bytes read at once where they are decoded too: each piece of records costs some steps."""
MAX_BATCH_BYTES = 32 << 20
"""A larger batch is not held in memory: its checksum is made in pieces, its records not read."""
_HEADER_READ_BYTES = 4 << 10
_LARGE_BATCH_BYTES = 128 << 10
_ROWS, _HELD_ROWS = 1 << 12, 1 << 14
_KEPT_CHUNKS = 16
_KEPT_ROWS = 8192
"""So many chunks or batches share a table: a small table takes as long as one of thousands."""
RECORDS_OF_A_UNIT = 4
"""So many ordinary records are read in one unit of a kernel's work."""
_BATCHES_OF_A_UNIT = 8
"""So many headers are stepped over in one unit of a kernel's work."""

# A header at any byte of a buffer: stride 1 makes one gather of numpy read them all.
_RAW_BYTES = np.dtype((np.void, BATCH_HEADER_BYTES))
_SHARED_FIELDS = tuple(
    field.name for field in BATCH.fields if field.name in (BATCH_DTYPE.fields or ())
)


class ReadableFile(Protocol):
    """The part of `File` that a scan uses."""

    def size(self) -> int:
        """Return the present length in bytes."""

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the bytes read, fewer only where the file ends."""


class _Bytes:
    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)

    def size(self) -> int:
        return len(self._data)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        part = self._data[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


class HeaderTable(NamedTuple):
    """The headers of a segment, and how the scan ended."""

    table: BatchTable
    """One row of BATCH_DTYPE for each batch, in file order."""
    end_position: int
    """Where the scan stopped: behind the last batch, in bytes from the beginning of the file."""
    error: SegproofError | None
    """Why it stopped, unless the range just ended."""


class CheckedBatches(NamedTuple):
    """Some batches in file order, with what was found out about each."""

    table: BatchTable
    """Rows of BATCH_DTYPE."""
    crc_valid: NDArray[np.bool_]
    """Whether the size is not too small and the checksum right (BATCH-14)."""
    summaries: NDArray[np.void] | None
    """Rows of SUMMARY_DTYPE, when the records are read too; all 0 where `errors` has the row."""
    errors: dict[int, SegproofError]
    """Row to the error that reading its records ended with."""
    held: "HeldBytes | None" = None
    """What the checksums were made of, if that was asked for and the batches are not too large."""


class HeldBytes(NamedTuple):
    """Bytes of a file, which the scan holds until it goes on."""

    data: memoryview
    start: int
    """Where they begin in the file."""


class _Summed(NamedTuple):
    """The batches of one chunk, before their headers are made a table."""

    headers: NDArray[np.void]
    """Their first bytes, without fields."""
    positions: NDArray[np.int64]
    sizes: NDArray[np.int64]
    sums: NDArray[np.int64]
    """The checksums of their bytes."""


class BatchScan:
    """A scan over the batches of [start, end), which yields `CheckedBatches`.

    After the iteration `end_position` and `error` say how it ended, as in `HeaderTable`.
    """

    def __init__(
        self,
        file: ReadableFile,
        start: int,
        end: int,
        *,
        deep: bool,
        limit: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        holds: bool = False,
    ) -> None:
        self._file = file
        self._end = end
        self._deep = deep
        self._holds = holds
        self._inflation = Inflation(limit)
        self._chunk_bytes = chunk_bytes
        # What is read at once is held anyway.
        self._max_batch_bytes = max(max_batch_bytes, chunk_bytes)
        self._allocate(max(min(chunk_bytes, end - start), 0))
        self._filled = 0
        self._rows = np.empty((_HELD_ROWS if holds else _ROWS, kernels.BATCH_ROW), np.int64)
        self._kept: list[_Summed] = []
        self.end_position = start
        """Where the scan is; after it, where it stopped."""
        self.error: SegproofError | None = None
        """Why it stopped, unless the range just ended."""

    @classmethod
    def in_place(cls, data: bytes | memoryview) -> Self:
        """Return a scan for `tables` which looks at the bytes where they are."""
        scan = cls(_Bytes(data), 0, len(data), deep=False, chunk_bytes=0)
        scan._chunk_bytes = scan._filled = len(data)
        scan._buffer = memoryview(data)
        count = max(len(data) - BATCH_HEADER_BYTES + 1, 0)
        scan._headers = np.ndarray((count,), _RAW_BYTES, scan._buffer, strides=(1,))
        return scan

    def __iter__(self) -> Iterator[CheckedBatches]:
        """Yield the batches, with their checksums made, in parts of thousands."""
        want = self._chunk_bytes
        while True:
            is_short = self._fill(want)
            position, status = 0, kernels.SCAN_FULL
            while status == kernels.SCAN_FULL:
                count, position, status = self._walk(position, whole=1)
                if count and not self._keep(count):
                    yield from self._kept_batches()
                    yield self._check(count)
            is_over = self._stopped(status, position, is_short)
            if is_over or self._has_kept_enough():
                yield from self._kept_batches()
            if is_over:
                return
            want = self._carry(position)
            if want > self._max_batch_bytes + BATCH_HEADER_BYTES:
                yield from self._kept_batches()
                yield self._oversized(want - BATCH_HEADER_BYTES)
                want = self._chunk_bytes

    def tables(self) -> Iterator[BatchTable]:
        """Yield header tables only; the bytes of large batches are not read."""
        want = self._chunk_bytes
        while True:
            is_short = self._fill(want)
            position, status = 0, kernels.SCAN_FULL
            while status == kernels.SCAN_FULL:
                count, position, status = self._walk(position, whole=0)
                if count:
                    yield self._table(count)
                    is_large = self._rows[count - 1, 1] >= _LARGE_BATCH_BYTES
                    want = _HEADER_READ_BYTES if is_large else self._chunk_bytes
            if self._stopped(status, position, is_short):
                return
            self._carry(position)

    # --- the buffer

    def _allocate(self, size: int) -> None:
        # 61 bytes more than are ever filled, so that a gather of headers stays inside.
        self._buffer = memoryview(bytearray(size + BATCH_HEADER_BYTES))
        # As bytes without fields, which are gathered fifteen times as fast.
        self._headers = np.ndarray((size + 1,), _RAW_BYTES, self._buffer, strides=(1,))

    def _grow(self, size: int) -> None:
        before = self._buffer[: self._filled]
        self._allocate(size)
        self._buffer[: self._filled] = before

    def _fill(self, want: int) -> bool:
        """Read until `want` bytes are in the buffer; return whether the file ended before.

        A buffer that had to grow is kept: the next batch is likely as large.
        """
        want = min(want, self._end - self.end_position)
        if want <= self._filled:
            return False
        if want > len(self._buffer) - BATCH_HEADER_BYTES:
            self._grow(want)
        count = self._file.pread_into(
            self._buffer[self._filled : want], self.end_position + self._filled
        )
        self._filled += count
        return self._filled < want

    def _walk(self, position: int, whole: int) -> tuple[int, int, int]:
        count, position, status = kernels.walk_batches(
            self._buffer,
            position,
            self._filled,
            self._end - self.end_position,
            whole,
            len(self._rows),
            self._rows.reshape(-1).data,
        )
        kernels.walk_batches.announce(count // _BATCHES_OF_A_UNIT)
        return count, position, status

    def _carry(self, position: int) -> int:
        """Move the unread tail to the front; return how many bytes the next batch asks for."""
        tail = max(self._filled - position, 0)
        if tail:
            self._buffer[:tail] = self._buffer[position : self._filled]
        self._filled = tail
        self.end_position += position
        if tail < BATCH_HEADER_BYTES:
            # Too little for the walk to have judged the size field.
            return self._chunk_bytes
        size_bytes = BATCH["size"].of(self._buffer) + LOG_OVERHEAD_BYTES
        return max(self._chunk_bytes, size_bytes + BATCH_HEADER_BYTES)

    def _stopped(self, status: int, position: int, is_short: bool) -> bool:
        """Note how the scan ends, if it does."""
        at = self.end_position + position
        message, law = "", ""
        if status == kernels.SCAN_BAD_SIZE:
            message, law = "a size field is below 14", "SCAN-2"
        elif status == kernels.SCAN_BAD_MAGIC:
            message, law = "the magic byte is not 0, 1 or 2", "SCAN-4"
        elif status == kernels.SCAN_MORE and is_short:
            message, law = "the file is shorter than it was", "SCAN-7"
        if message:
            self.error = CorruptRecordError(message, law=law, position=at)
        elif status == kernels.SCAN_SHORT_HEADER:
            self.error = SegproofError(
                "the file ends inside the header of a batch", law="SCAN-10", position=at
            )
        elif status == kernels.SCAN_MORE:
            return False
        self.end_position = at
        return True

    # --- the batches in it

    def _table(self, count: int) -> BatchTable:
        positions, sizes = self._rows[:count, 0], self._rows[:count, 1]
        if positions[-1] >= len(self._headers):
            # An old message, smaller than a header, ends a buffer without room behind it.
            self._grow(self._filled)
        return _table_of(self._headers[positions], positions + self.end_position, sizes)

    def _keep(self, count: int) -> bool:
        """Make the checksums of magic 2 batches, for one table of many chunks; False for others."""
        if self._deep or self._holds:
            return False
        positions, sizes = self._rows[:count, 0], self._rows[:count, 1]
        headers = self._headers[positions]
        if not bool((headers.view(BATCH.dtype)["magic"] == 2).all()):
            return False
        sums = crc32c_of_parts(self._buffer, positions + 21, positions + sizes)
        kept = _Summed(headers, positions + self.end_position, sizes.copy(), sums)
        self._kept.append(kept)
        return True

    def _has_kept_enough(self) -> bool:
        parts = len(self._kept)
        return parts >= _KEPT_CHUNKS or sum(len(part.sums) for part in self._kept) >= _KEPT_ROWS

    def _kept_batches(self) -> Iterator[CheckedBatches]:
        """Yield what was kept, if anything."""
        if not self._kept:
            return
        headers, positions, sizes, sums = map(np.concatenate, zip(*self._kept, strict=True))
        self._kept = []
        table = _table_of(headers, positions, sizes)
        crc_valid = (sums == table["crc"]) & (sizes >= BATCH_HEADER_BYTES)
        yield CheckedBatches(table, crc_valid, None, {})

    def _check(self, count: int) -> CheckedBatches:
        table = self._table(count)
        positions, sizes = self._rows[:count, 0], self._rows[:count, 1]
        if (table["magic"] == 2).all():
            sums = crc32c_of_parts(self._buffer, positions + 21, positions + sizes)
            crc_valid = sums == table["crc"]
            crc_valid &= sizes >= BATCH_HEADER_BYTES
        else:
            crc_valid = np.fromiter(map(self._is_valid, positions, sizes, table), np.bool_, count)
        if not self._deep:
            held = HeldBytes(self._buffer[: self._filled], self.end_position)
            return CheckedBatches(table, crc_valid, None, {}, held if self._holds else None)
        summaries, errors = self._read_records(count, table)
        return CheckedBatches(table, crc_valid, summaries, errors)

    def _is_valid(self, position: int, size_bytes: int, row: np.void) -> bool:
        end = position + size_bytes
        if row["magic"] == 2:
            made = crc32c(self._buffer[position + 21 : end])
            return size_bytes >= BATCH_HEADER_BYTES and made == int(row["crc"])
        return crc32(self._buffer[position + 16 : end]) == int(row["crc"])

    def _read_records(
        self, count: int, table: BatchTable
    ) -> tuple[NDArray[np.void], dict[int, SegproofError]]:
        """Read every record; compiled for plain batches, one by one for all others."""
        found = np.empty((count, kernels.SUMMARY_ROW), np.int64)
        # A record takes 7 bytes at least, whatever the counts claim.
        records = np.minimum(table["record_count"], table["size_bytes"] // 7)
        work = int(np.maximum(records, 1).sum()) // RECORDS_OF_A_UNIT
        kernels.summarise_batches.announce(work)
        kernels.summarise_batches(
            self._buffer, self._rows.reshape(-1).data, count, found.reshape(-1).data
        )
        summaries = np.zeros(count, SUMMARY_DTYPE)
        errors: dict[int, SegproofError] = {}
        summaries["record_count"] = found[:, 2]
        summaries["last_offset"] = np.where(found[:, 2] > 0, table["base_offset"] + found[:, 3], -1)
        is_appended = table["attributes"] & 8 != 0
        largest = np.where(
            is_appended, table["max_timestamp"], table["base_timestamp"] + found[:, 5]
        )
        summaries["max_timestamp"] = np.where(found[:, 2] > 0, largest, -1)
        summaries["offsets_rise"] = found[:, 4] != 0
        for row in np.flatnonzero(found[:, 0] != kernels.RECORDS_GOOD).tolist():
            position, size_bytes = self._rows[row].tolist()
            batch = read_batch(bytes(self._buffer[position : position + size_bytes]))
            batch.limit = self._inflation.limit_of(size_bytes)
            try:
                summaries[row] = _summary(batch)
            except SegproofError as error:
                error.position = int(table["position"][row])
                errors[row] = _without_frames(error)
                summaries[row] = 0
            self._inflation.count(size_bytes, batch.inflated_bytes)
        return summaries, errors

    def _oversized(self, size_bytes: int) -> CheckedBatches:
        """Check a batch that is too large for the buffer, in pieces, and step over it."""
        self._rows[0] = (0, size_bytes)
        table = self._table(1)
        is_legacy = bool(table["magic"][0] < 2)
        checksum = crc32 if is_legacy else crc32c
        made = checksum(self._buffer[16 if is_legacy else 21 : self._filled])
        position, end = self.end_position + self._filled, self.end_position + size_bytes
        while position < end:
            piece = self._buffer[: min(self._chunk_bytes, end - position)]
            count = self._file.pread_into(piece, position)
            if count == 0:
                break
            made = checksum(piece[:count], made)
            position += count
        self.end_position, self._filled = position, 0
        errors: dict[int, SegproofError] = {}
        if self._deep:
            errors[0] = TooLargeError(
                "the batch is too large to be read into memory",
                position=int(table["position"][0]),
                expected=f"at most {self._max_batch_bytes} bytes",
                actual=size_bytes,
            )
        summaries = np.zeros(1, SUMMARY_DTYPE) if self._deep else None
        crc_valid = np.array([made == int(table["crc"][0])])
        return CheckedBatches(table, crc_valid, summaries, errors)


def read_batch_headers(
    source: ReadableFile | bytes | memoryview, start: int = 0, end: int | None = None
) -> HeaderTable:
    """Return the headers of all batches in [start, end) of a file, or of bytes, as one table.

    `end` is by default the present size. Errors of the scan are in the result, not raised; OSError
    is. Cost: about 100 ns a batch beside reading; batches above 128 KiB are stepped over unread.
    Laws: SCAN-1 to SCAN-7, SCAN-10.
    """
    if isinstance(source, bytes | memoryview) and start == 0 and end is None:
        scan = BatchScan.in_place(source)
    else:
        scan = check_batches(source, start, end)
    tables = list(scan.tables()) or [np.empty(0, BATCH_DTYPE)]
    table = tables[0] if len(tables) == 1 else stacked(tables)
    return HeaderTable(table, scan.end_position, scan.error)


def check_batches(
    source: ReadableFile | bytes | memoryview,
    start: int = 0,
    end: int | None = None,
    *,
    deep: bool = False,
    limit: int | None = None,
    holds: bool = False,
) -> BatchScan:
    """Return a scan that checks each batch in [start, end) of a file, or of bytes.

    Sizes and checksums always; with `deep` every record too, decompressed to what
    `Inflation` allows under `limit`. With `holds` each part has the bytes that were checked, which
    stay as they are until the next part is asked for. Memory: the largest batch up to 32 MiB, and
    what it inflates to; larger batches are summed in pieces.
    Laws: BATCH-14, BATCH-16, SCAN-1 to SCAN-7, SCAN-10.
    """
    file = _Bytes(source) if isinstance(source, bytes | memoryview) else source
    end = file.size() if end is None else end
    chunk = HELD_BYTES if holds else CHUNK_BYTES
    return BatchScan(file, start, end, deep=deep, limit=limit, chunk_bytes=chunk, holds=holds)


def stacked(parts: Sequence[BatchTable]) -> BatchTable:
    """Concatenate as plain bytes: numpy would work out a common type, and copy field by field."""
    plain = [part.view((np.void, part.dtype.itemsize)) for part in parts]
    return np.concatenate(plain).view(parts[0].dtype)


def _table_of(
    headers: NDArray[np.void], positions: NDArray[np.int64], sizes: NDArray[np.int64]
) -> BatchTable:
    """Return the table of headers that were gathered as plain bytes."""
    raw = headers.view(BATCH.dtype)
    table = np.empty(len(raw), BATCH_DTYPE)
    table["position"] = positions
    table["size_bytes"] = sizes
    for name in _SHARED_FIELDS:
        table[name] = raw[name]
    table["last_offset"] = table["base_offset"] + table["last_offset_delta"]
    is_legacy = table["magic"] < 2
    if is_legacy.any():
        _correct_legacy(table, headers, is_legacy)
    return table


def _correct_legacy(
    table: BatchTable, headers: NDArray[np.void], is_legacy: NDArray[np.bool_]
) -> None:
    """Give the rows of magic 0 and 1, which were read as magic 2, their own fields."""
    own = headers[is_legacy].view(MESSAGE_1.dtype_within(BATCH_HEADER_BYTES))
    timestamps = np.where(own["magic"] == 1, own["timestamp"], -1)
    is_plain = own["attributes"] & 7 == 0
    values = {
        "last_offset": own["offset"],
        "base_timestamp": timestamps,
        "max_timestamp": timestamps,
        "crc": own["crc"],
        "attributes": own["attributes"],
        "record_count": np.where(is_plain, 1, -1),
        "last_offset_delta": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "partition_leader_epoch": -1,
    }
    for name, value in values.items():
        table[name][is_legacy] = value


def _without_frames(error: SegproofError) -> SegproofError:
    """Return the error without what would keep the bytes of the batch in memory with it."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _summary(batch: RecordBatch) -> tuple[int, int, int, bool]:
    """Return the SUMMARY_DTYPE row of one batch, read by itself; raise what reading it raises."""
    if batch.is_legacy:
        return _legacy_summary(batch)
    count, last_delta, rise, largest = batch.check_records()
    if count == 0:
        return 0, -1, -1, True
    if batch.timestamp_type == "LogAppendTime":
        max_timestamp = batch.max_timestamp
    else:
        max_timestamp = kernels.add_int64(batch.base_timestamp or 0, largest)
    return count, kernels.add_int64(batch.base_offset, last_delta), max_timestamp, rise


def _legacy_summary(message: RecordBatch) -> tuple[int, int, int, bool]:
    """Return the SUMMARY_DTYPE row of one message of magic 0 or 1; raise what reading it raises."""
    count, last, largest, rise = 0, -1, -1, True
    for block in message.record_blocks():
        offsets, timestamp = block.offsets, int(block.timestamps.max())
        rise = rise and bool((offsets[:-1] < offsets[1:]).all())
        rise = rise and (count == 0 or last < int(offsets[0]))
        largest = timestamp if count == 0 else max(largest, timestamp)
        last = int(offsets[-1])
        count += len(block)
    return count, last, largest, rise
