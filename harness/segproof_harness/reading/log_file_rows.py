# SPDX-License-Identifier: Apache-2.0
"""What is in a log: a row for each batch, and its records as rows or as blocks, for `dump`.

The batches come from the reader of the tables, with their checksums made, and the records of
neighbouring ones are decoded together. Under a profile the model reads them, batch by batch. What
cannot be read is told by itself and costs its own rows only.
"""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.compression import Inflation
from segproof.counts import plural
from segproof.errors import CorruptRecordError, SegproofError, TooLargeError
from segproof.files import Files, holds_zeros
from segproof.kafka.batch_table import CONTROL
from segproof.kafka.record_file import LogAsFound
from segproof.reading import batch_rows
from segproof.reading.batch_rows import HIGHER, Row, batch_to_show, has_flag
from segproof.reading.record_blocks import RecordBlock, blocks_of_batch, record_blocks
from segproof.tables.logs import Headers, LogReader
from segproof.tables.options import FAIL, KEEP
from segproof.tables.schemas import TABLES
from segproof_harness.reading.partition_under_profile import answered
from segproof_harness.reading.row_range import ALL, RowRange
from segproof_harness.reports.bytes_as_text import BASE64, Encoders
from segproof_model.kafka.format.compression import BeyondLimitError
from segproof_model.language.behaviours import Release
from segproof_model.language.states import Refused

UNREADABLE = (SegproofError, Refused, BeyondLimitError)
"""How either package says that it cannot read something."""
field_of = partial(batch_rows.field_of, unreadable=UNREADABLE)
BATCH_NAMES = TABLES["batches"].own_names
batch_row = partial(batch_rows.batch_row, unreadable=UNREADABLE)
"""The same for the batches of either package."""
LARGE_RECORD_BYTES = 8 << 20
"""A larger record is not shown: as text it takes several times as much memory."""
MANY_HEADERS = 1 << 16
"""Nor is one with more headers."""
CUT_MEANWHILE = "SCAN-7"
"""The law that a log breaks which became shorter since it was opened."""
STEADY_SECONDS = 0.2
"""A batch at the end of a log that grows no more for so long is not being written."""
Tell = Callable[[SegproofError], None]
"""Takes what costs rows."""
Piece = Row | RecordBlock
"""A row of an entry, batch or record; or records of batches, whose rows come with them unless a
batch was read by itself: then its row comes before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is shown of a file, and what a batch with a wrong checksum means.

    `fail` raises it, `skip` leaves it out, `keep` shows it. With `skip` and `keep`, what is left
    out is told to `tell`: such a batch, records that can't be read, batches and records that are
    too large. Without `tell` these are raised. `limit` is how many bytes a record may have, and a
    batch have and inflate to; by default 8 MiB, 16 MiB and what `Inflation` allows; in a release
    `BATCH_LIMIT_BYTES`.
    """

    release: Release | None = None
    with_records: bool = False
    limit: int | None = None
    on_damage: str = KEEP
    tell: Tell | None = None
    encoders: Encoders = BASE64
    wanted: RowRange = ALL
    """The time of a batch is its largest timestamp. With records they are counted and judged by
    themselves, and a batch without a wanted record has no row."""

    @property
    def keeps(self) -> bool:
        """Whether a batch with a wrong checksum is shown."""
        return self.on_damage == KEEP

    def report(self, error: SegproofError) -> None:
        """Tell what costs rows. Raises: the error, if there is nobody to tell."""
        report(error, None if self.on_damage == FAIL else self.tell)


def report(error: SegproofError, tell: "Tell | None") -> None:
    """Tell what costs rows. Raises: the error, if there is nobody to tell."""
    if tell is None:
        raise error
    tell(error)


class LogPieces:
    """The pieces of a log, read by the implementation from where a reader is."""

    def __init__(self, path: str, reader: LogReader, shown: Shown, files: Files) -> None:
        self._path, self._reader, self._shown, self._files = path, reader, shown, files
        self._wanted = shown.wanted
        self._inflation = Inflation(shown.limit)

    def __iter__(self) -> Generator[Piece, None, bool]:
        """Yield the pieces; return whether the log has later offsets than are wanted.

        Raises: OSError; SegproofError where the log cannot be read on, or was cut meanwhile.
        """
        pieces = self._records if self._shown.with_records else self._batches
        with LogAsFound.open(self._path, files=self._files) as log:
            for whole in self._reader.parts(log):
                headers = self._before_end(whole)
                yield from pieces(log, headers)
                if len(headers.table) < len(whole.table):
                    return True
            end = self._reader.end_position
            if log.file.size() < end:
                words = "the file is shorter than it was"
                raise CorruptRecordError(words, law=CUT_MEANWHILE, path=self._path, position=end)
        return False

    def _before_end(self, headers: Headers) -> Headers:
        """Return the batches before the first behind the wanted offsets: each later one is, too.

        A damaged batch tells nothing of those behind it.
        """
        if self._wanted.end_offset is None:
            return headers
        table, crc_valid, is_known, held = headers
        is_behind = (table["magic"] == 2) & (table["base_offset"] >= self._wanted.end_offset)
        for end in np.flatnonzero(is_behind & crc_valid)[:1].tolist():
            return Headers(table[:end], crc_valid[:end], is_known[:end], held)
        return headers

    def _batches(self, log: LogAsFound, headers: Headers) -> Iterator[Piece]:
        """Yield the rows of batches."""
        table, crc_valid = headers.table, headers.crc_valid
        is_alone = headers.unsaid(record_count=True, base_offset=True)
        is_alone |= ~(crc_valid | self._shown.keeps)
        start = 0
        for end in (*np.flatnonzero(is_alone).tolist(), len(table)):
            for row in batch_rows.batch_rows(table[start:end], crc_valid[start:end], BATCH_NAMES):
                if self._wanted.takes(row["base_offset"], row["last_offset"], row["max_timestamp"]):
                    yield row
            if end < len(table):
                yield from self._alone(log, headers, end)
            start = end + 1

    def _records(self, log: LogAsFound, headers: Headers) -> Iterator[Piece]:
        """Yield the records of batches."""
        table, crc_valid, _, held = headers
        is_shown, may_hold = crc_valid | self._shown.keeps, self._may_hold(headers)
        most_headers = self._shown.limit or MANY_HEADERS
        blocks = record_blocks(table, crc_valid, held, is_shown & may_hold, self._shown.limit)
        for piece in blocks:
            if not isinstance(piece, RecordBlock):
                rows = range(piece, piece + 1)
            elif piece.columns.header_counts.max(initial=0) > most_headers:
                first = int(np.searchsorted(table["position"], piece.table["position"][0]))
                rows = range(first, first + len(piece.table))
            else:
                block = _wanted_of(piece, self._wanted)
                if len(block.table):
                    yield block
                continue
            for row in rows:
                if may_hold[row] or not is_shown[row]:
                    yield from self._alone(log, headers, row)

    def _may_hold(self, headers: Headers) -> NDArray[np.bool_]:
        """Return which batches may hold a wanted record: those whose headers do not exclude it."""
        table, wanted = headers.table, self._wanted
        meets = np.ones(len(table), np.bool_)
        if wanted.first_offset is not None:
            meets &= table["last_offset"] >= wanted.first_offset
        if wanted.end_offset is not None:
            meets &= table["base_offset"] < wanted.end_offset
        if wanted.first_ms is not None:
            meets &= table["max_timestamp"] >= wanted.first_ms
        may_hold: NDArray[np.bool_] = meets | headers.unsaid(record_count=False, base_offset=True)
        return may_hold

    def _alone(self, log: LogAsFound, headers: Headers, row: int) -> Iterator[Piece]:
        """Yield the pieces of a batch that is read by itself."""
        batch = next(log.batches(int(headers.table["position"][row])), None)
        if batch is None:
            return  # the file was cut
        batch.limit = self._inflation.limit_of(batch.size_bytes)
        batch_to_show(batch, self._shown.limit)
        is_valid = bool(headers.crc_valid[row]) if headers.is_known[row] else None
        is_valid = field_of(batch, "is_valid") if is_valid is None else is_valid
        if is_valid and self._shown.with_records and batch.is_legacy:
            is_valid = _are_inner_valid(batch, self._shown.limit)
        table = headers.table[row : row + 1]

        def records() -> Iterator[RecordBlock | TooLargeError]:
            for block in blocks_of_batch(batch, table, np.array([is_valid is True])):
                yield from _small_enough(block, self._shown.limit)

        yield from pieces_of_batch(batch, is_valid, self._path, self._shown, records)
        self._inflation.count(batch.size_bytes, batch.inflated_bytes)


def _are_inner_valid(batch: Any, limit: int | None) -> bool:
    """Return whether no message that one of magic 0 or 1 holds has a wrong checksum."""
    try:
        batch.check_inner_messages(limit=limit)
    except CorruptRecordError:
        return False
    except SegproofError:
        pass  # reading its records tells it
    return True


def pieces_under_release(
    batches: Iterator[Any], path: str, shown: Shown
) -> Generator[Piece, None, bool]:
    """Yield the rows of a log as the model reads its batches; return as `LogPieces` does."""
    for batch in batches:
        is_valid: bool | None = field_of(batch, "is_valid")
        end = shown.wanted.end_offset
        if end is not None and not batch.is_legacy and is_valid:
            first = field_of(batch, "base_offset")
            if first is not None and first >= end:
                return True
        records = partial(_model_records, batch, path, shown)
        yield from pieces_of_batch(batch, is_valid, path, shown, records)
    return False


def pieces_of_batch(
    batch: Any,
    is_valid: bool | None,
    path: str,
    shown: Shown,
    records: Callable[[], Iterator[Piece | TooLargeError]],
) -> Iterator[Piece]:
    """Yield the row of a batch of either package, and its records, as far as they are wanted."""
    wanted = shown.wanted
    if is_valid is False and not shown.keeps:
        words = f"a batch of {plural(batch.size_bytes, 'byte')} has a wrong checksum"
        shown.report(CorruptRecordError(words, law="BATCH-14", path=path, position=batch.position))
        return
    if wanted.is_bounded:
        last, timestamp = field_of(batch, "last_offset"), field_of(batch, "max_timestamp")
        first = None if wanted.end_offset is None else field_of(batch, "base_offset")
        # With records its first ones may be older than its timestamp.
        may_hold = replace(wanted, end_ms=None) if shown.with_records else wanted
        if not may_hold.takes(first, last, timestamp):
            return
    is_told = not (wanted.is_bounded and shown.with_records)
    if is_told:
        yield _row_of(batch, is_valid)
    if not shown.with_records:
        return
    for piece in _records_told(batch, is_valid, shown, records):
        if isinstance(piece, RecordBlock):
            piece = _wanted_of(piece, wanted)
            is_wanted = len(piece.table) > 0
        else:
            is_wanted = wanted.takes_entry(piece)
        if is_wanted:
            if not is_told:
                yield _row_of(batch, is_valid)
            is_told = True
            yield piece


def _records_told(
    batch: Any,
    is_valid: bool | None,
    shown: Shown,
    records: Callable[[], Iterator[Piece | TooLargeError]],
) -> Iterator[Piece]:
    """Yield the records of a batch; report those that are too large, and what ends them."""
    try:
        for piece in records():
            if isinstance(piece, TooLargeError):
                shown.report(piece)
            else:
                yield piece
    except SegproofError as error:
        if error.law == CUT_MEANWHILE:
            raise
        if is_valid is False and not isinstance(error, TooLargeError):
            error = _unreadable(error)
        shown.report(_placed(error, batch))


def _placed(error: SegproofError, batch: Any) -> SegproofError:
    """Return the error of a batch, with its place and the option that helps."""
    if isinstance(error, TooLargeError):
        error.position, error.hint = batch.position, HIGHER
    if error.position is None:
        error.position = batch.position
    return error


def _unreadable(error: SegproofError) -> SegproofError:
    """Return the error of records that can't be read, of a batch with a wrong checksum."""
    words = f"the checksum of the batch is wrong, and records of it cannot be read: {error.message}"
    return CorruptRecordError(words, law=error.law or "BATCH-14")


def _row_of(batch: Any, is_valid: bool | None) -> Row:
    """Return the row of a batch whose checksum was made already."""
    row = batch_row(batch, names=[name for name in BATCH_NAMES if name != "crc_valid"])
    row["crc_valid"] = is_valid
    return {name: row[name] for name in BATCH_NAMES}


def _wanted_of(block: RecordBlock, wanted: RowRange) -> RecordBlock:
    """Return the wanted records of a block, and the batches that have one."""
    if not wanted.is_bounded:
        return block
    offsets, timestamps = block.columns.offsets, block.columns.timestamps
    is_wanted = np.ones(len(offsets), np.bool_)
    if wanted.first_offset is not None:
        is_wanted &= offsets >= wanted.first_offset
    if wanted.end_offset is not None:
        is_wanted &= offsets < wanted.end_offset
    if wanted.first_ms is not None:
        is_wanted &= timestamps >= wanted.first_ms
    if wanted.end_ms is not None:
        is_wanted &= timestamps < wanted.end_ms
    return block.chosen(is_wanted)


def _small_enough(block: RecordBlock, limit: int | None) -> Iterator[RecordBlock | TooLargeError]:
    """Yield the records of a batch; of one that is too large why it is not shown."""
    columns, room, headers = block.columns, limit or LARGE_RECORD_BYTES, limit or MANY_HEADERS
    if len(columns.data) <= room and int(columns.header_counts.max()) <= headers:
        yield block
        return
    start, end = 0, len(columns)
    lengths = np.maximum(columns.key_lengths, 0) + np.maximum(columns.value_lengths, 0)
    for row in np.flatnonzero((lengths > room) | (columns.header_counts > 0)).tolist():
        size = columns.size_bytes(row, headers)
        if size is not None and size <= room:
            continue
        if start < row:
            yield _some_of(block, start, row)
        count = int(columns.header_counts[row])
        words = f"of {size} bytes" if size is not None else f"with {count} headers"
        most = f"at most {room} bytes and {headers} headers"
        yield _not_shown(int(columns.offsets[row]), words, most, int(block.table["position"][0]))
        start = row + 1
    if start < end:
        yield _some_of(block, start, end)


def _some_of(block: RecordBlock, start: int, end: int) -> RecordBlock:
    """Return neighbouring records of a block of one batch."""
    columns = block.columns.rows(slice(start, end))
    return block._replace(counts=np.array([end - start]), columns=columns)


def _model_records(batch: Any, path: str, shown: Shown) -> Iterator[Row | TooLargeError]:
    """Yield the rows of the records of a batch, as the model reads it; likewise."""
    headers = shown.limit or MANY_HEADERS
    with answered(path):
        records = list(batch.records())
    for record in records:
        if (count := len(record.headers)) <= headers:
            yield record_row(record, shown.encoders, bool(field_of(batch, "is_control")))
        else:
            most = f"at most {headers} headers"
            yield _not_shown(record.offset, f"with {count} headers", most, batch.position)


def _not_shown(offset: int, words: str, most: str, position: int) -> TooLargeError:
    return TooLargeError(
        f"the record of offset {offset}, {words}, is not shown",
        position=position,
        expected=most,
        hint=HIGHER,
    )


def rows_of_block(block: RecordBlock, encoders: Encoders, *, with_batches: bool) -> Iterator[Row]:
    """Yield the rows of the records of a block, those of each batch behind its own row."""
    table, crc_valid, counts, columns = block
    records = iter(columns)
    batches = batch_rows.batch_rows(table, crc_valid, BATCH_NAMES)
    is_control = has_flag(table, CONTROL).tolist()
    for row, count, is_marker in zip(batches, counts.tolist(), is_control, strict=True):
        if with_batches:
            yield row
        for record in islice(records, count):
            yield record_row(record, encoders, is_marker)


def record_row(record: Any, encoders: Encoders = BASE64, is_control: bool = False) -> Row:
    """Return the row of a record of the model or of the implementation. Null becomes None."""
    if encoders.decode is not None:
        key, value = encoders.decode(record.key, record.value, is_control)
    else:
        key, value = encoders.key(record.key), encoders.value(record.value)
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": key,
        "value": value,
        "headers": [
            {"key": each.key, "value": encoders.header(each.value)} for each in record.headers
        ],
        "sequence": record.sequence,
    }


def unread_of_log(
    path: str, reader: LogReader, files: Files, size_before: int, *, is_closed: bool
) -> str:
    """Return in words which bytes at the end of a log are no rows; empty if none.

    Raises: SegproofError for other bytes than zeros, or a batch that is being written; and if the
    log, and the files beside it, show that it has lost batches, or has offsets twice.
    """
    size = -1
    while True:
        with LogAsFound.open(path, files=files) as log:
            for _ in reader.parts(log):
                pass
            end, before, size = reader.end_position, size, log.file.size()
            is_zeros = holds_zeros(log.file, end, size)
            if size >= size_before and (size <= end or (is_zeros and not is_closed)):
                reader.refuse_lost(log)
        if size <= end:
            return ""
        kind = "zero bytes" if is_zeros else "bytes"
        told = f"{size - end} {kind} behind the last whole batch"
        if is_zeros and not is_closed:
            return told
        if is_closed or size == before:
            hint = "`segproof verify` tells what they are"
            raise CorruptRecordError(told, law="DUMP-6", path=path, position=end, hint=hint)
        if before >= 0:
            return f"{told}: a batch that is being written"
        time.sleep(STEADY_SECONDS)
