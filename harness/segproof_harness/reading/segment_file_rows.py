# SPDX-License-Identifier: Apache-2.0
"""What is in a file, one flat object for each entry, batch and record: the rows of `dump`.

Without a profile the implementation reads, and the zero tail of an untrimmed index is no entry.
Under a profile the model reads the file as found. The names of the fields are part of the command
line's contract.
"""

import errno
import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from segproof.compression import Inflation
from segproof.counts import plural
from segproof.errors import CorruptIndexError, CorruptRecordError, SegproofError, TooLargeError
from segproof.files import REAL_FILES, Files, first_byte_of, holds_zeros
from segproof.kafka.batch_table import check_batches
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import MAX_FILE_BYTES, LogAsFound
from segproof.kafka.transaction_index import TransactionIndex
from segproof.reading import batch_rows
from segproof.reading.batch_rows import HIGHER, Row, batch_to_show
from segproof.reading.file_names import (
    SEGMENT_SUFFIXES,
    SET_ASIDE_FILE,
    NameKind,
    SegmentFile,
    read_file_name,
    read_remote_name,
    segment_file,
)
from segproof.reading.folder_names import folder_of
from segproof.reading.index_entries import ENTRY_BYTES, ENTRY_TYPES, count_entries, genuine_entries
from segproof.reading.segment_reader import start_position
from segproof.tables.options import FAIL, KEEP
from segproof.tables.schemas import TABLES
from segproof.verifying.ends_beside import LogEnd, why_short
from segproof.verifying.log_offsets import LogOffsets, refuse_all
from segproof_harness.reading.partition_under_profile import (
    BATCH_LIMIT_BYTES,
    SegmentAsFound,
    answered,
    entries_of,
)
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
HOLE_BYTES = 1 << 20
"""What follows a longer hole in an index is not shown; a piece is shorter."""
CUT_MEANWHILE = "SCAN-7"
"""The law that a log breaks which became shorter since it was opened."""
STEADY_SECONDS = 0.2
"""A batch at the end of a log that grows no more for so long is not being written."""
Tell = Callable[[SegproofError], None]
"""Takes what costs rows."""
_RAFT_SNAPSHOT = re.compile(r"bootstrap\.checkpoint|([0-9]{20})-[0-9]{10}\.checkpoint", re.ASCII)


def set_aside(path: str) -> SegmentFile | None:
    """Return the file of batches that a salvage has set aside, by its name; None for any other."""
    begin, end = SET_ASIDE_FILE.split("{}")
    name = os.path.basename(path)
    return SegmentFile(path, 0, ".log") if name.startswith(begin) and name.endswith(end) else None


def raft_snapshot(path: str) -> SegmentFile | None:
    """Return a snapshot of the cluster's metadata, told by its name; None if it is none.

    It holds batches, as a log does.
    """
    match = _RAFT_SNAPSHOT.fullmatch(os.path.basename(path))
    return None if match is None else SegmentFile(path, int(match[1] or 0), ".log")


def raft_snapshots(directory: str, files: Files = REAL_FILES) -> list[SegmentFile]:
    """Return the snapshots of the cluster's metadata in a directory, by name. Raises: OSError."""
    names = sorted(files.list_directory(directory))
    found = (raft_snapshot(os.path.join(directory, name)) for name in names)
    return [each for each in found if each is not None]


def segment_files(directory: str, files: Files = REAL_FILES) -> Iterator[SegmentFile]:
    """Yield the files of a directory that can be dumped, by offset and then by kind."""
    found = [
        segment_file(os.path.join(directory, name)) for name in files.list_directory(directory)
    ]
    yield from sorted(
        (each for each in found if each is not None),
        key=lambda each: (each.base_offset, SEGMENT_SUFFIXES.index(each.suffix), each.path),
    )


def logs_and_indexes(directory: str, files: Files = REAL_FILES) -> Iterator[SegmentFile]:
    """Yield the same, but of logs only those that a broker reads, as `segproof.scan` does.

    A copy under another name, or a log that waits for its removal, would show records twice. What
    else holds records: `files_left_out`.
    """
    yield from filter(_is_read, segment_files(directory, files))


def _is_read(file: SegmentFile) -> bool:
    """Return whether a broker reads a file of this name, if it is a log."""
    name = os.path.basename(file.path)
    is_of_broker = read_file_name(name).kind is NameKind.SEGMENT
    return file.suffix != ".log" or is_of_broker or read_remote_name(name) is not None


def rows_of(
    file: SegmentFile,
    *,
    release: Release | None = None,
    with_records: bool = False,
    limit: int | None = None,
    on_damage: str = KEEP,
    tell: Tell | None = None,
    encoders: Encoders = BASE64,
    wanted: RowRange = ALL,
    files: Files = REAL_FILES,
) -> Generator[Row, None, bool]:
    """Yield the rows of a file, in the order of the file; return whether some may follow.

    `on_damage` is what a batch with a wrong checksum means: `fail` raises, `skip` leaves it out,
    `keep` yields it. With `skip` and `keep`, what is left out is told to `tell`: such a batch,
    records that can't be read, batches and records that are too large. Without `tell` these are
    raised. `limit` is how many bytes a record may have, and a batch have and inflate to; by
    default 8 MiB, 16 MiB and what `Inflation` allows; in a release `BATCH_LIMIT_BYTES`.

    Only `wanted` rows are yielded. The time of a batch is its largest timestamp. With records they
    are counted and judged by themselves, and a batch without a wanted record has no row.

    Raises: OSError if it can't be read; SegproofError where reading it fails, after the rows
    before the damage.
    """
    if release is None:
        rows, records_of = _rows_as_found(file, limit, wanted, files), _record_rows
    else:
        rows, records_of = _model_rows(file, release, limit, files), _model_record_rows

    told = None if on_damage == FAIL else tell

    def records(batch: Any, is_valid: bool | None) -> Iterator[Row]:
        try:
            for shown in records_of(batch, limit, file.path, encoders):
                if isinstance(shown, dict):
                    yield shown
                else:
                    report(shown, told)
        except SegproofError as error:
            if error.law == CUT_MEANWHILE:
                raise
            if is_valid is False and not isinstance(error, TooLargeError):
                error = _unreadable(error)
            report(_placed(error, batch), told)

    left = wanted.most
    for row in rows:
        if isinstance(row, dict):
            shown_rows = iter((row,) if wanted.takes_entry(row) else ())
        elif _is_behind(row, wanted):
            return True
        else:
            is_valid = _is_valid(row, with_records=with_records, limit=limit)
            if is_valid is False and on_damage != KEEP:
                report(_wrong_checksum(row, file.path), told)
                continue
            shown_rows = _rows_of_batch(row, is_valid, wanted, records if with_records else None)
        for shown in shown_rows:
            yield shown
            if left is not None and not (with_records and "magic" in shown):
                left -= 1
                if left == 0:
                    return True
    return False


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


def report(error: SegproofError, tell: "Tell | None") -> None:
    """Tell what costs rows. Raises: the error, if there is nobody to tell."""
    if tell is None:
        raise error
    tell(error)


def _is_valid(batch: Any, *, with_records: bool, limit: int | None) -> bool | None:
    """Return whether size and checksum are right; None if that cannot be read.

    With records also the checksums of messages that one of magic 0 or 1 holds.
    """
    is_valid: bool | None = field_of(batch, "is_valid")
    if is_valid and with_records and batch.is_legacy and hasattr(batch, "check_inner_messages"):
        try:
            batch.check_inner_messages(limit=limit)
        except CorruptRecordError:
            return False
        except SegproofError:
            pass  # reading its records tells it
    return is_valid


def _wrong_checksum(batch: Any, path: str) -> SegproofError:
    return CorruptRecordError(
        f"a batch of {plural(batch.size_bytes, 'byte')} has a wrong checksum",
        law="BATCH-14",
        path=path,
        position=batch.position,
    )


def _batch_row(batch: Any, is_valid: bool | None) -> Row:
    """Return the row of a batch whose checksum was made already."""
    row = batch_row(batch, names=[name for name in BATCH_NAMES if name != "crc_valid"])
    row["crc_valid"] = is_valid
    return {name: row[name] for name in BATCH_NAMES}


def _is_behind(batch: Any, wanted: RowRange) -> bool:
    """Return whether a batch, and so each later one, lies behind the wanted offsets.

    A damaged batch tells nothing of those behind it.
    """
    if wanted.end_offset is None or batch.is_legacy:
        return False
    first = field_of(batch, "base_offset")
    return first is not None and first >= wanted.end_offset and bool(field_of(batch, "is_valid"))


def _rows_of_batch(
    batch: Any,
    is_valid: bool | None,
    wanted: RowRange,
    records: Callable[[Any, bool | None], Iterator[Row]] | None,
) -> Iterator[Row]:
    """Yield the row of a batch, and those of its records, as far as they are wanted."""
    if not wanted.is_bounded:
        yield _batch_row(batch, is_valid)
        yield from () if records is None else records(batch, is_valid)
        return
    last, timestamp = field_of(batch, "last_offset"), field_of(batch, "max_timestamp")
    first = None if wanted.end_offset is None else field_of(batch, "base_offset")
    if records is None:
        if wanted.takes(first, last, timestamp):
            yield _batch_row(batch, is_valid)
        return
    may_hold = replace(wanted, end_ms=None)  # its first records may be older than its timestamp
    if not may_hold.takes(first, last, timestamp):
        return
    is_first = True
    for record in records(batch, is_valid):
        if wanted.takes_entry(record):
            if is_first:
                yield _batch_row(batch, is_valid)
            is_first = False
            yield record


def _record_rows(
    batch: Any, limit: int | None, path: str, encoders: Encoders
) -> Iterator[Row | TooLargeError]:
    """Yield the rows of the records of a batch; of one that is too large why it is not shown."""
    is_control = bool(field_of(batch, "is_control"))
    for block in batch.record_blocks():
        room = limit or LARGE_RECORD_BYTES
        headers = limit or MANY_HEADERS
        if len(block.data) <= room and int(block.header_counts.max()) <= headers:
            yield from (record_row(each, encoders, is_control) for each in block)
            continue
        for row, offset in enumerate(block.offsets.tolist()):
            size = block.size_bytes(row, headers)
            if size is not None and size <= room:
                one = block.rows(row, row + 1)
                yield from (record_row(each, encoders, is_control) for each in one)
                continue
            count = int(block.header_counts[row])
            words = f"of {size} bytes" if size is not None else f"with {count} headers"
            most = f"at most {room} bytes and {headers} headers"
            yield _not_shown(offset, words, most, batch)


def _model_record_rows(
    batch: Any, limit: int | None, path: str, encoders: Encoders
) -> Iterator[Row | TooLargeError]:
    """Yield the same, as the model reads the batch."""
    headers = limit or MANY_HEADERS
    with answered(path):
        records = list(batch.records())
    for record in records:
        if (count := len(record.headers)) <= headers:
            yield record_row(record, encoders, bool(field_of(batch, "is_control")))
        else:
            most = f"at most {headers} headers"
            yield _not_shown(record.offset, f"with {count} headers", most, batch)


def _not_shown(offset: int, words: str, most: str, batch: Any) -> TooLargeError:
    return TooLargeError(
        f"the record of offset {offset}, {words}, is not shown",
        position=batch.position,
        expected=most,
        hint=HIGHER,
    )


def _rows_as_found(
    file: SegmentFile, limit: int | None, wanted: RowRange, files: Files
) -> Iterator[Any]:
    if file.suffix == ".log":
        with LogAsFound.open(file.path, files=files) as log:
            inflation = Inflation(limit)
            start = _start_of(file, wanted, files)
            for batch in log.batches(start):
                batch.limit = inflation.limit_of(batch.size_bytes)
                yield batch_to_show(batch, limit)
                inflation.count(batch.size_bytes, batch.inflated_bytes)
    elif file.suffix in ENTRY_TYPES:
        yield from _genuine_entries(file, files)
    else:
        if files.status(file.path) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file.path)
        with TransactionIndex(file.base_offset, file.path, files=files) as transactions:
            used = -(-_shown_end(file, files) // ENTRY_BYTES[".txnindex"])
            yield from map(_named, islice(transactions, used))


def _start_of(file: SegmentFile, wanted: RowRange, files: Files) -> int:
    """Return the byte where reading a log begins."""
    first, first_ms = wanted.first_offset, wanted.first_ms
    return start_position(file.path, file.base_offset, first, first_ms, files)


def _shown_end(file: SegmentFile, files: Files) -> int:
    """Return where the first long hole of an index begins: nothing behind it is shown."""
    end = 0
    with closing(files.open(file.path)) as opened:
        for begin, behind in opened.data_ranges(0, opened.size()):
            if begin - end > HOLE_BYTES:
                break
            end = behind
    return end


def _genuine_entries(file: SegmentFile, files: Files) -> Iterator[Row]:
    """Yield the entries of an offset or time index but for the zero slots at its end.

    Raises: CorruptIndexError if they are too many for an index.
    """
    end = _shown_end(file, files)
    if end > MAX_FILE_BYTES:
        raise CorruptIndexError(
            "the file is too large for an index",
            path=file.path,
            expected=f"at most {MAX_FILE_BYTES} bytes",
            actual=end,
        )
    names = ENTRY_TYPES[file.suffix].names
    with closing(files.open(file.path)) as opened:
        for _, block in genuine_entries(opened, file.suffix, end):
            for entry in block.tolist():
                row = dict(zip(names or (), entry, strict=True))
                row["offset"] += file.base_offset
                yield row


def _model_rows(
    file: SegmentFile, release: Release, limit: int | None, files: Files
) -> Iterator[Any]:
    segment = _NamedSegment(file, release, limit or BATCH_LIMIT_BYTES, files)
    if file.suffix == ".log":
        with answered(file.path):
            yield from segment.log.batches()
    elif file.suffix == ".index":
        yield from map(_named, entries_of(segment.offset_index))
    elif file.suffix == ".timeindex":
        yield from map(_named, entries_of(segment.time_index))
    else:
        with answered(file.path):
            entries = segment.transaction_index.all_aborted_txns()
        yield from map(_named, entries)


class _NamedSegment(SegmentAsFound):
    """A segment of which one file is read, whatever was put behind its name."""

    def __init__(self, file: SegmentFile, release: Release, limit: int, files: Files) -> None:
        folder = os.path.dirname(file.path)
        super().__init__(folder, file.base_offset, release, limit=limit, files=files)
        self._path = file.path

    def path(self, suffix: str) -> str:
        """Return the path of the one file."""
        return self._path


def _named(entry: Any) -> Row:
    row: Row = entry._asdict()
    return row


def record_row(record: Any, encoders: Encoders = BASE64, is_control: bool = False) -> Row:
    """Return the row of a record, of either package; null as None."""
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


def _is_closed(file: SegmentFile, files: Files) -> bool:
    """Return whether a log has one behind it, or lies in tiered storage."""
    directory, name = os.path.split(file.path)
    if read_remote_name(name) is not None:
        return True
    return folder_of(directory or ".", files).last_log > file.base_offset


def unread_bytes(
    file: SegmentFile,
    release: Release | None,
    wanted: RowRange = ALL,
    files: Files = REAL_FILES,
    *,
    size_before: int = 0,
) -> str:
    """Return in words which bytes at the end of the file are no rows; empty if none.

    `size_before` is its length before the rows were read: a log that was cut since is not short.

    These are zeros that a broker has preallocated, or a batch that it is writing now.
    Where the wanted rows of a log begin later, nothing before them is read.
    Raises: SegproofError for other bytes, since rows may have been lost with them.
    """
    is_closed = _is_closed(file, files)  # asked first: a broker may close it now
    status = files.status(file.path)
    size = 0 if status is None else status.size_bytes
    if file.suffix == ".log":
        return _unread_of_log(file, wanted, files, size_before, is_closed=is_closed)
    entry_size = ENTRY_BYTES[file.suffix]
    shown = size if release is not None else _shown_end(file, files)
    if shown < size and first_byte_of(files, file.path, shown, size) is not None:
        raise CorruptIndexError(
            f"{size - shown} bytes from byte {shown} on, behind a hole, are not shown",
            path=file.path,
        )
    if partial := size % entry_size:
        raise CorruptIndexError(
            f"{plural(partial, 'byte')} behind the last whole entry",
            path=file.path,
            position=size - partial,
        )
    if release is None and file.suffix in ENTRY_TYPES:
        with closing(files.open(file.path)) as opened:
            shown = entry_size * count_entries(opened, file.suffix, shown)
    used = -(-shown // entry_size) * entry_size
    return f"{size - used} bytes of zeros behind the last entry" if size > used else ""


def _unread_of_log(
    file: SegmentFile, wanted: RowRange, files: Files, size_before: int, *, is_closed: bool
) -> str:
    """Return `unread_bytes` of a log. Raises: as it."""
    end = start = _start_of(file, wanted, files)
    size = -1
    last: RecordBatch | None = None
    while True:
        with LogAsFound.open(file.path, files=files) as log:
            for last in log.batches(end):
                end = last.position + last.size_bytes
            before, size = size, log.file.size()
            is_zeros = holds_zeros(log.file, end, size)
            is_ended = is_closed or raft_snapshot(file.path) is not None
            if size >= size_before and (size <= end or (is_zeros and not is_ended)):
                _refuse_lost(file, log, last, (start, end), files)
        if size <= end:
            return ""
        kind = "zero bytes" if is_zeros else "bytes"
        told = f"{size - end} {kind} behind the last whole batch"
        if is_zeros and not is_ended:
            return told
        if is_ended or size == before:
            hint = "`segproof verify` tells what they are"
            raise CorruptRecordError(told, law="DUMP-6", path=file.path, position=end, hint=hint)
        if before >= 0:
            return f"{told}: a batch that is being written"
        time.sleep(STEADY_SECONDS)


def _refuse_lost(
    file: SegmentFile,
    log: LogAsFound,
    last: RecordBatch | None,
    span: tuple[int, int],
    files: Files,
) -> None:
    """Raise CorruptRecordError if a log, and the files beside it, show that it has lost batches.

    Or that offsets are there twice. `span` is what was read of it, and `last` the batch at its end.
    """
    start, end = span
    offsets = LogOffsets(file.path, file.base_offset, None, files, start=start)
    for part in check_batches(log.file, start, end):
        offsets.take(part.table, part.crc_valid)
    errors = offsets.errors()
    known: int | None = None if end else file.base_offset - 1
    if last is not None:  # one that is damaged is told so
        known = field_of(last, "last_offset") if field_of(last, "is_valid") else None
    if known is not None:
        found = LogEnd(log.file, file.base_offset, known + 1, end, log.file.size())
        if error := why_short(found, None, files):
            errors.append(error)
    refuse_all(errors)
