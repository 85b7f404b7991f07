# SPDX-License-Identifier: Apache-2.0
"""What is in a file, one flat object for each entry, batch and record: the rows of `dump`.

Without a profile the implementation reads, and the zero tail of an untrimmed index is no entry.
Under a profile the model reads the file as found. The names of the fields are part of the command
line's contract.
"""

import errno
import os
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from segproof.counts import plural
from segproof.errors import CorruptIndexError, SegproofError
from segproof.files import REAL_FILES, Files, first_byte_of
from segproof.kafka.record_file import MAX_FILE_BYTES
from segproof.kafka.transaction_index import TransactionIndex
from segproof.reading.batch_rows import Row
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
from segproof.reading.record_blocks import RecordBlock, gathered
from segproof.reading.segment_reader import start_position
from segproof.tables.files_below import Unit
from segproof.tables.logs import LogReader
from segproof_harness.reading.log_file_rows import (
    LogPieces,
    Piece,
    Shown,
    pieces_under_release,
    rows_of_block,
    unread_of_log,
)
from segproof_harness.reading.partition_under_profile import (
    BATCH_LIMIT_BYTES,
    SegmentAsFound,
    answered,
    entries_of,
)
from segproof_harness.reading.row_range import RowRange
from segproof_model.language.behaviours import Release

HOLE_BYTES = 1 << 20
"""What follows a longer hole in an index is not shown; a piece is shorter."""
AS_USUAL = Shown()
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
    shown: Shown = AS_USUAL,
    files: Files = REAL_FILES,
    reader: LogReader | None = None,
) -> Generator[Row, None, bool]:
    """Yield the rows of a file, in the order of the file; return whether some may follow.

    The batches of a log come from `reader`, of `log_reader`, unless a release reads them.
    Raises: OSError if it can't be read; SegproofError where reading it fails, after the rows
    before the damage.
    """
    pieces, alone = _Pieces(file, shown, files, reader), -1
    for piece in pieces:
        if isinstance(piece, RecordBlock):
            is_told = piece.table["position"][0] == alone
            yield from rows_of_block(piece, shown.encoders, with_batches=not is_told)
        else:
            alone = piece.get("position", alone)
            yield piece
    return pieces.is_cut_short


def blocks_of(
    file: SegmentFile, shown: Shown, files: Files, reader: LogReader | None = None
) -> Generator[RecordBlock, None, bool]:
    """Yield the records of a log as blocks of bounded size, without the rows of batches; else as
    `rows_of`, without a release.
    """
    pieces = _Pieces(file, shown, files, reader)

    def blocks() -> Iterator[RecordBlock | Exception]:
        try:
            for piece in pieces:
                if isinstance(piece, RecordBlock):
                    yield piece
        except (OSError, SegproofError) as error:
            yield error  # behind what was gathered before it

    for found in gathered(blocks()):
        if not isinstance(found, RecordBlock):
            raise found
        yield found
    return pieces.is_cut_short


class _Pieces:
    """The wanted rows of a file; the records of a log in blocks, if the implementation reads it."""

    def __init__(
        self, file: SegmentFile, shown: Shown, files: Files, reader: LogReader | None
    ) -> None:
        self._file, self._shown, self._files, self._reader = file, shown, files, reader
        self.is_cut_short = False
        """Whether there may be more than was wanted."""

    def __iter__(self) -> Iterator[Piece]:
        left = self._shown.wanted.most
        for piece in self._in_range():
            if left is None:
                yield piece
                continue
            if isinstance(piece, RecordBlock):
                piece = piece.first(left)
                left -= len(piece.columns)
            elif not (self._shown.with_records and "magic" in piece):
                left -= 1
            yield piece
            if left == 0:
                self.is_cut_short = True
                return

    def _in_range(self) -> Iterator[Piece]:
        """Yield what has wanted offsets and times."""
        file, shown, files = self._file, self._shown, self._files
        if file.suffix != ".log":
            read = _entries_as_found if shown.release is None else _model_entries
            yield from filter(shown.wanted.takes_entry, read(file, shown, files))
        elif shown.release is None:
            reader = self._reader or log_reader(file, shown.wanted, files)
            self.is_cut_short = yield from LogPieces(file.path, reader, shown, files)
        else:
            batches = _model_batches(_segment_of(file, shown, files))
            self.is_cut_short = yield from pieces_under_release(batches, file.path, shown)


def log_reader(file: SegmentFile, wanted: RowRange, files: Files = REAL_FILES) -> LogReader:
    """Return what reads a log from the first batch that may be wanted. Raises: OSError."""
    unit = Unit(file.path, os.path.dirname(file.path), file.base_offset)
    first, first_ms = wanted.first_offset, wanted.first_ms
    start = start_position(file.path, file.base_offset, first, first_ms, files)
    return LogReader(unit, files, start=start, holds=True)


def _entries_as_found(file: SegmentFile, shown: Shown, files: Files) -> Iterator[Row]:
    if file.suffix in ENTRY_TYPES:
        yield from _genuine_entries(file, files)
        return
    if files.status(file.path) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file.path)
    with TransactionIndex(file.base_offset, file.path, files=files) as transactions:
        used = -(-_shown_end(file, files) // ENTRY_BYTES[".txnindex"])
        yield from map(_named, islice(transactions, used))


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


def _model_batches(segment: "_NamedSegment") -> Iterator[Any]:
    with answered(segment.path(".log")):
        yield from segment.log.batches()


def _model_entries(file: SegmentFile, shown: Shown, files: Files) -> Iterator[Row]:
    segment = _segment_of(file, shown, files)
    if file.suffix == ".index":
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


def _segment_of(file: SegmentFile, shown: Shown, files: Files) -> _NamedSegment:
    assert shown.release is not None
    return _NamedSegment(file, shown.release, shown.limit or BATCH_LIMIT_BYTES, files)


def _named(entry: Any) -> Row:
    row: Row = entry._asdict()
    return row


def _is_closed(file: SegmentFile, files: Files) -> bool:
    """Return whether a log has one behind it, or lies in tiered storage."""
    directory, name = os.path.split(file.path)
    if read_remote_name(name) is not None:
        return True
    return folder_of(directory or ".", files).last_log > file.base_offset


def unread_bytes(
    file: SegmentFile,
    release: Release | None,
    files: Files,
    reader: LogReader | None,
    *,
    size_before: int = 0,
) -> str:
    """Return in words which bytes at the end of the file are no rows; empty if none.

    `size_before` is its length before the rows were read: a log that was cut since is not short.

    These are zeros that a broker has preallocated, or a batch that it is writing now.
    `reader` is that of the rows of a log: it goes on where they end.
    Raises: SegproofError for other bytes, since rows may have been lost with them.
    """
    is_closed = _is_closed(file, files)  # asked first: a broker may close it now
    status = files.status(file.path)
    size = 0 if status is None else status.size_bytes
    if file.suffix == ".log":
        assert reader is not None
        is_ended = is_closed or raft_snapshot(file.path) is not None
        return unread_of_log(file.path, reader, files, size_before, is_closed=is_ended)
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
