# SPDX-License-Identifier: Apache-2.0
"""What a damaged file holds from its first to its last byte, in a few hundred columns.

A log is read once more, in the pieces that `verify` and `salvage` see. Of any other file only the
places are known at which a law is broken.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from segproof.files import Files, ReadOnlyFile
from segproof.integers import INT32_MAX
from segproof.kafka.segment_names import named_base_offset, offset_of_name
from segproof.reading.log_damage import LogDamage, summed_up
from segproof.reading.log_pieces import LogPieces
from segproof.reading.offset_entries import entries_in
from segproof.reading.pieces import Piece, PieceKind
from segproof.reading.store_pieces import Gap, StorePieces
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, named_offset
from segproof.stretches.rocketmq.message_blocks import MessageBlock

COLUMNS = 240
"""So many columns a file has. The smallest damage takes one of them."""
PIECES_MAX = 14
"""So many pieces are listed one by one; all of them are drawn and counted."""
WORST_FIRST = (
    PieceKind.BROKEN,
    PieceKind.UNLOADABLE,
    PieceKind.RESTORABLE,
    PieceKind.MISPLACED,
    PieceKind.UNSEARCHED,
    PieceKind.ZEROS,
    PieceKind.SOUND,
)
"""Where several kinds share a column, the first of them is drawn."""


@dataclass(slots=True)
class FileMap:
    """One file."""

    path: str
    size_bytes: int
    has_messages: bool = False
    """Whether it is a file of RocketMQ's commit log: its pieces hold messages, not batches."""
    start: int = 0
    """The offset in the commit log of its first byte."""
    columns: list[int] = field(default_factory=list)
    """For each column the place in WORST_FIRST of what is drawn. Empty: the file is no log."""
    pieces: list[Piece] = field(default_factory=list)
    """The first PIECES_MAX, by position in the file."""
    places: Counter[PieceKind] = field(default_factory=Counter)
    """How many pieces there are of each kind."""
    bytes_of: Counter[PieceKind] = field(default_factory=Counter)
    kept_batches: int = 0
    """Sound batches, or messages, before the place where a recovery cuts the log."""
    damage: LogDamage | None = None
    """From that place on; None where no recovery cuts the log."""

    def take(self, piece: Piece) -> None:
        """Take the next piece."""
        self.places[piece.kind] += 1
        self.bytes_of[piece.kind] += piece.size_bytes
        if len(self.pieces) < PIECES_MAX:
            self.pieces.append(piece)
        rank = WORST_FIRST.index(piece.kind)
        first, last = self.column(piece.start), self.column(piece.end - 1)
        for number in range(first, last + 1):
            self.columns[number] = min(self.columns[number], rank)

    def column(self, position: int) -> int:
        """Return the column of a byte."""
        return max(0, min(COLUMNS - 1, position * COLUMNS // max(1, self.size_bytes)))

    def runs(self) -> Iterator[tuple[PieceKind, int, int]]:
        """Yield the kind of the columns [first, behind) that are drawn as one."""
        first = 0
        for number in range(1, len(self.columns) + 1):
            if number == len(self.columns) or self.columns[number] != self.columns[first]:
                yield WORST_FIRST[self.columns[first]], first, number
                first = number


def read_file_map(path: str, cut: int | None, files: Files) -> FileMap:
    """Read what a file holds. A recovery cuts a log at the byte `cut`; None: it does not.

    Memory: as `LogPieces` and `StorePieces`, for any number of pieces. Raises: OSError.
    """
    status = files.status(path)
    told = FileMap(path, 0 if status is None else status.size_bytes)
    if not told.size_bytes:
        return told
    start = named_offset(os.path.basename(path))
    if path.endswith(".log"):
        with closing(files.open(path)) as file:
            base_offset = max(0, named_base_offset(path, ".log") or 0)
            _draw(told, _of_segment(file, told.size_bytes, base_offset, files), cut, base_offset)
    elif start is not None and os.path.basename(os.path.dirname(path)) == COMMIT_LOG:
        told.has_messages, told.start = True, start
        _draw(told, _of_log_file(path, start, told.size_bytes, files), cut, 0)
    return told


def _draw(told: FileMap, pieces: Iterable[Piece], cut: int | None, base_offset: int) -> None:
    told.columns = [len(WORST_FIRST) - 1] * COLUMNS

    def taken() -> Iterator[Piece]:
        for piece in pieces:
            told.take(piece)
            yield piece

    rest, reached = taken(), base_offset - 1
    for piece in rest:
        if cut is not None and piece.end > cut:
            told.damage = summed_up(chain([piece], rest), cut, reached)
        elif piece.kind is PieceKind.SOUND:
            told.kept_batches += piece.batches
            reached = piece.last_offset


def _of_segment(
    file: ReadOnlyFile, size_bytes: int, base_offset: int, files: Files
) -> Iterator[Piece]:
    names = files.list_directory(os.path.dirname(file.path) or ".")
    others = (offset_of_name(name, ".log") for name in names)
    later = [other for other in others if other is not None and other > base_offset]
    yield from LogPieces(
        file, 0, size_bytes, reached=base_offset - 1, limit=base_offset + INT32_MAX + 1,
        next_offset=min(later, default=None),
        entries=entries_in(file.path.removesuffix(".log") + ".index", base_offset, files),
    )  # fmt: skip


def _of_log_file(path: str, start: int, size_bytes: int, files: Files) -> Iterator[Piece]:
    """Yield the pieces of one file of a commit log, by position in the file."""
    store = os.path.dirname(os.path.dirname(path)) or "."
    size = CommitLog.open(store, files=files).mapped_file_size or size_bytes
    one = LogFile(start, path, min(size, size_bytes))
    joined: Piece | None = None
    for found in StorePieces(CommitLog(store, size, (one,), files), files):
        for piece in _pieces_of(found, start):
            is_sound = piece.kind is PieceKind.SOUND
            if is_sound and joined is not None and joined.end == piece.start:
                joined = joined.joined(piece)
                continue
            if joined is not None:
                yield joined
            joined = piece if is_sound else None
            if not is_sound:
                yield piece
    if joined is not None:
        yield joined


def _pieces_of(found: MessageBlock | Gap, start: int) -> Iterator[Piece]:
    if isinstance(found, Gap):
        yield Piece(PieceKind(found.kind.value), found.start - start, found.end - start)
        return
    is_odd = found.phy_offsets != found.lies_at
    borders = np.flatnonzero(np.diff(is_odd)) + 1
    for rows, places in zip(
        np.split(found.rows, borders), np.split(found.lies_at, borders), strict=True
    ):
        is_placed = rows[0, 2] == places[0]
        yield Piece(
            PieceKind.SOUND if is_placed else PieceKind.MISPLACED,
            int(places[0]) - start,
            int(places[-1] + rows[-1, 1]) - start,
            len(rows),
            len(rows),
            int(places[0]),
            int(places[-1]),
            int(rows[:, 3].min()),
            int(rows[:, 3].max()),
        )
