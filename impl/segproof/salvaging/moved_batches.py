# SPDX-License-Identifier: Apache-2.0
"""Which misplaced batches of a log belong into a gap of the same log.

A disk may have written a block to a wrong place, of this log or of another file. Offsets alone do
not tell the two apart: a batch of another topic has an offset that fits into some gap by chance. So
a row of misplaced batches moves only if no sound batch has its offsets, nothing contradicts it, and
something besides its offsets speaks for the gap:

- sizes: the sizes of the batches that the block's borders cut lead from the batch before the gap to
  the row, and from the row to the batch after the gap; or they do so on one side, and the row moves
  by whole sectors of a disk;
- neighbours: only whole batches lie between the row and the gap, and it fills the gap exactly;
- a copy: the batch beside it is a copy of the kept one beside the gap;
- sequences: those of its producer are as far from the ones around the gap as the offsets are.

A leader epoch, a magic or a sequence that does not rise with the offsets contradicts it.

Laws: BATCH-3, BATCH-19.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from segproof.files import ReadOnlyFile
from segproof.integers import INT64_MAX
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES, LEGACY_MIN_BYTES, LOG_OVERHEAD_BYTES
from segproof.reading.pieces import Piece, PieceKind, first_offsets, piece_of
from segproof.reading.strangers import COMPARED_BATCHES, contradicts, sequences_agree

KEPT = (PieceKind.SOUND, PieceKind.RESTORABLE)
SECTOR_BYTES = 512
"""A disk writes a block to a wrong place at a multiple of this."""
_NO_PIECE = Piece(PieceKind.BROKEN, 0, 0)


def parted(file: ReadOnlyFile, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces, with those in parts that misplaced batches may lie between.

    A sound one ends at a gap in it that has offsets of misplaced ones. A misplaced one ends where
    its offsets pass a sound one.
    """
    odd = sorted(
        (one.first_offset, one.last_offset) for one in pieces if one.kind is PieceKind.MISPLACED
    )
    if not odd:
        return pieces
    odd_firsts = np.array([first for first, _ in odd])
    odd_reach = np.maximum.accumulate([-1, *(last for _, last in odd)])

    def parts(piece: Piece) -> Iterator[Piece]:
        table = read_batch_headers(file, piece.start, piece.end).table
        firsts, lasts = first_offsets(table), table["last_offset"]
        if piece.kind is PieceKind.SOUND:
            reach = odd_reach[np.searchsorted(odd_firsts, firsts[1:])]
            is_new = (firsts[1:] > lasts[:-1] + 1) & (reach > lasts[:-1])
        else:
            place = np.searchsorted(kept_firsts, firsts)
            is_free = (kept_reach[place] < firsts) & (
                np.append(kept_firsts, INT64_MAX)[place] > lasts
            )
            is_new = (np.diff(place) != 0) | (np.diff(is_free) != 0)
        ends = [*(np.flatnonzero(is_new) + 1).tolist(), len(table)]
        for start, end in pairwise([0, *ends]):
            yield piece_of(piece.kind, table[start:end])

    def all_parts(kind: PieceKind) -> list[Piece]:
        return [
            part
            for one in pieces
            for part in (parts(one) if one.kind is kind and one.batches > 1 else [one])
        ]

    pieces = all_parts(PieceKind.SOUND)
    kept = [one for one in pieces if one.kind in KEPT]
    kept_firsts = np.array([one.first_offset for one in kept], np.int64)
    kept_reach = np.array([-1, *(one.last_offset for one in kept)])
    return all_parts(PieceKind.MISPLACED)


def is_missing_elsewhere(held: Piece, pieces: Sequence[Piece], next_offset: int) -> bool:
    """Return whether the offsets of a batch are missing between two others, with bytes.

    `next_offset` is the one that its place says. Where one wrong bit would explain its offsets too,
    exactly these must be missing there.
    """
    kept = [one for one in pieces if one.kind in KEPT]
    is_bit = (held.first_offset ^ next_offset).bit_count() == 1
    for one, other in pairwise(kept):
        first, last = one.last_offset + 1, other.first_offset - 1
        is_here = one.end <= held.start < other.start
        if one.end < other.start and not is_here and first <= held.first_offset:
            is_exact = (first, last) == (held.first_offset, held.last_offset)
            if is_exact or (held.last_offset <= last and not is_bit):
                return True
    return False


class _Kept(NamedTuple):
    """Batches that are kept, and the bytes that they take in the log once all are in place."""

    first_offset: int
    last_offset: int
    start: int
    end: int
    piece: Piece | None
    """None for what lies before the log, and after it."""


class _Header(NamedTuple):
    """What a batch says that a block's border has cut: no checksum holds."""

    first_offset: int
    last_offset: int
    size_bytes: int


class _Row(NamedTuple):
    """Misplaced batches, one after the other, whose offsets rise and fit into one gap."""

    pieces: list[Piece]
    table: BatchTable

    @property
    def first_offset(self) -> int:
        return self.pieces[0].first_offset

    @property
    def last_offset(self) -> int:
        return self.pieces[-1].last_offset

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return self.pieces[-1].end


def to_move_back(file: ReadOnlyFile, pieces: list[Piece], reached: int, limit: int) -> set[Piece]:
    """Return the misplaced pieces of a log that belong into a gap of it.

    `pieces` are those of the whole log, as `parted` returns them. `reached` is the last offset
    before the log, `limit` the first one after it. Raises: OSError.
    """
    return _Moves(file, pieces, reached, limit).found()


class _Moves:
    def __init__(self, file: ReadOnlyFile, pieces: list[Piece], reached: int, limit: int) -> None:
        self._file, self._pieces = file, pieces
        end = max((one.end for one in pieces if one.kind is not PieceKind.ZEROS), default=0)
        self._kept = [_Kept(reached, reached, 0, 0, None), _Kept(limit, limit, end, end, None)]
        self._kept += [
            _Kept(one.first_offset, one.last_offset, one.start, one.end, one)
            for one in pieces
            if one.kind in KEPT
        ]
        self._kept.sort(key=itemgetter(0, 1))

    def found(self) -> set[Piece]:
        found = set[Piece]()
        row: list[Piece] = []
        for piece in [*self._pieces, _NO_PIECE]:
            first, last = piece.first_offset, piece.last_offset
            is_able = piece.kind is PieceKind.MISPLACED and first <= last
            goes_on = is_able and row and row[-1].last_offset < first
            if row and not (goes_on and self._gap(row[0].first_offset, last)):
                if self._belongs(row):
                    found.update(row)
                row = []
            if is_able and self._gap(first, last):
                row.append(piece)
        return found

    def _gap(self, first: int, last: int) -> tuple[_Kept, _Kept] | None:
        """Return what is kept around offsets that no kept batch has; else None."""
        place = bisect_left(self._kept, (first, first), key=itemgetter(0, 1))
        if not 0 < place < len(self._kept):
            return None  # before or after the log
        before, after = self._kept[place - 1], self._kept[place]
        return (before, after) if before.last_offset < first and last < after.first_offset else None

    def _belongs(self, pieces: list[Piece]) -> bool:
        """Return whether a row belongs into the gap of its offsets; note it as kept there."""
        gap = self._gap(pieces[0].first_offset, pieces[-1].last_offset)
        if gap is None:
            return False
        tables = [read_batch_headers(self._file, one.start, one.end).table for one in pieces]
        row = _Row(pieces, np.concatenate(tables))
        before, after = gap
        start = self._start_by_sizes(row, before, after)
        earlier, later = self._table(before)[-COMPARED_BATCHES:], self._table(after)
        sequences = sequences_agree(earlier, row.table, later[:COMPARED_BATCHES])
        if sequences is False or contradicts(earlier, row.table, later):
            return False
        speaks = (
            start is not None
            or sequences
            or self._is_among_whole(row, before, after)
            or self._goes_on_with_copy(row, before, after)
        )
        if speaks:
            start = before.end if start is None else start
            place = _Kept(row.first_offset, row.last_offset, start, start + row.end - row.start,
                          pieces[0] if len(pieces) == 1 else None)  # fmt: skip
            insort(self._kept, place, key=itemgetter(0, 1))
        return bool(speaks)

    def _table(self, kept: _Kept) -> BatchTable:
        if kept.piece is None:
            return read_batch_headers(b"").table
        return read_batch_headers(self._file, kept.piece.start, kept.piece.end).table

    # --- sizes

    def _start_by_sizes(self, row: _Row, before: _Kept, after: _Kept) -> int | None:
        """Return where the row begins if sizes lead through the gap; else None."""
        size = row.end - row.start
        starts = {before.end: before.last_offset + 1}
        cut = self._header(before.end, before.last_offset, row.first_offset)
        if cut is not None:
            starts[before.end + cut.size_bytes] = cut.last_offset + 1
        ends = {after.start: after.first_offset}
        cut = self._header(row.end, row.last_offset, after.first_offset)
        if cut is not None:
            ends[after.start - cut.size_bytes] = cut.first_offset
        by_end = {end - size: (end, offset) for end, offset in ends.items()}
        for start, offset in starts.items():
            if start in by_end and before.end <= start != row.start:
                return start
            is_near = offset == row.first_offset and start + size <= after.start
            if is_near and self._is_whole_move(row, start):
                return start
        for start, (_, offset) in by_end.items():
            is_near = offset == row.last_offset + 1 and before.end <= start
            if is_near and self._is_whole_move(row, start):
                return start
        return None

    def _is_whole_move(self, row: _Row, start: int) -> bool:
        return start != row.start and (start - row.start) % SECTOR_BYTES == 0

    def _header(self, position: int, above: int, below: int) -> _Header | None:
        """Return what a batch says at a position if its offsets lie between two others."""
        data = self._file.pread(BATCH_HEADER_BYTES, position)
        if len(data) < LOG_OVERHEAD_BYTES:
            return None
        first = last = BATCH["base_offset"].of(data)
        size = LOG_OVERHEAD_BYTES + BATCH["size"].of(data)
        delta = BATCH["last_offset_delta"]
        if len(data) >= delta.end and BATCH["magic"].of(data) == 2:
            last += delta.of(data)
        is_between = above < first <= last < below
        return _Header(first, last, size) if is_between and size >= LEGACY_MIN_BYTES else None

    # --- neighbours

    def _is_among_whole(self, row: _Row, before: _Kept, after: _Kept) -> bool:
        """Return whether the misplaced batches from the row to the gap fill the gap exactly.

        Only whole batches lie there: they have changed places, and nothing is broken.
        """
        start, end = min(row.start, before.end), max(row.end, after.start)
        between = [one for one in self._pieces if one.start < end and start < one.end]
        if not all(one.batches for one in between):
            return False
        reached = before.last_offset
        for one in sorted(between, key=attrgetter("first_offset")):
            is_in = before.last_offset < one.first_offset <= one.last_offset < after.first_offset
            if one.kind is PieceKind.MISPLACED and is_in:
                if one.first_offset != reached + 1:
                    return False
                reached = one.last_offset
        return reached + 1 == after.first_offset

    def _goes_on_with_copy(self, row: _Row, before: _Kept, after: _Kept) -> bool:
        """Return whether a copy of the kept batch beside the gap lies beside the row."""
        for piece in self._pieces:
            if piece.kind is not PieceKind.MISPLACED:
                continue
            if piece.start == row.end and after.piece is not None:
                is_next = row.last_offset + 1 == piece.first_offset
                one = self._table(after)[:1]
                other = read_batch_headers(self._file, piece.start, piece.end).table[:1]
            elif piece.end == row.start and before.piece is not None:
                is_next = piece.last_offset + 1 == row.first_offset
                one = self._table(before)[-1:]
                other = read_batch_headers(self._file, piece.start, piece.end).table[-1:]
            else:
                continue
            if is_next and all(one[name] == other[name] for name in _OF_A_COPY):
                return True
        return False


_OF_A_COPY = ("crc", "size_bytes", "last_offset", "magic")
