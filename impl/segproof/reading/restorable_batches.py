# SPDX-License-Identifier: Apache-2.0
"""The restorable batches of a log: their size or magic is wrong, and fits once it is right.

`segproof.stretches.kafka.mending` proves size and magic. No checksum covers the base offset: it has
to fit between the batches around. A wrong one comes back where exactly these offsets are missing,
and nothing else is broken between these batches.

Upstream: Kafka 4.3.1: DefaultRecordBatch, LegacyRecord.
Laws: BATCH-2, BATCH-3, BATCH-4, BATCH-12, BATCH-19.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from segproof.files import ReadOnlyFile, holds_zeros
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.record_batch import read_batch
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES, MESSAGE_1
from segproof.reading.pieces import Piece, PieceKind, piece_of
from segproof.stretches.kafka.mending import HEADERS_TRIED, Trials, end_at, last_delta

_MAGIC_AT = BATCH["magic"].place
_PASSED_OVER = (PieceKind.BROKEN, PieceKind.MISPLACED, PieceKind.UNLOADABLE)
"""A batch with a wrong size may hold such pieces in its values."""
_WITHOUT_BATCHES = (PieceKind.BROKEN, PieceKind.ZEROS, PieceKind.UNSEARCHED)


def with_restorable(
    file: ReadOnlyFile,
    pieces: Sequence[Piece],
    *,
    reached: int,
    limit: int,
    next_offset: int | None,
    work_bytes: int,
) -> Iterator[Piece]:
    """Yield the pieces of a log again, with each restorable batch as a piece of its own.

    Such a piece has the right offsets. `reached`, `limit` and `next_offset` are as for `LogPieces`.
    Checksums are made of `work_bytes`; what is behind that stays broken. Raises: OSError.
    """
    tried, done = Trials(file, work_bytes), 0
    kept_to = pieces[0].start if pieces else 0
    behind = _Behind(pieces, next_offset)
    for piece, ends in zip(pieces, behind.ends, strict=True):
        if piece.end <= done:
            continue  # it lies in a restorable batch
        if piece.start < done:  # a part of it does
            kind = piece.kind if piece.kind in _WITHOUT_BATCHES else PieceKind.BROKEN
            piece = Piece(kind, done, piece.end)
        if piece.kind is PieceKind.SOUND:
            reached, kept_to = piece.last_offset, piece.end
        if piece.kind is not PieceKind.BROKEN:
            yield piece
            continue
        at = done = piece.start
        below = behind.next_offset(piece.end)
        # Without a batch after it, no more offsets are left out than the piece has bytes.
        below = reached + 2 + piece.size_bytes if below is None else below
        starts = tried.starts(piece.start, piece.end, reached, below)
        while at < piece.end and not tried.is_through:
            place = bisect_right(starts, at)
            following = starts[place : place + HEADERS_TRIED]
            data = (
                tried.by_lengths(at, max(ends))
                or tried.by_size(at)
                or tried.by_guess(at, (piece.end, *ends, *following))
            )
            if data is None:
                said = end_at(file, at)
                following += [said] if at + BATCH_HEADER_BYTES <= said else []
                at = min(following, default=piece.end)
                continue
            end = at + len(data)
            next_offset = behind.next_offset(end)
            base_offset = fitting_base_offset(data, reached, next_offset, lost_bytes=at - kept_to)
            if base_offset != BATCH["base_offset"].of(data) and not (
                kept_to == at and behind.begins_at(end)
            ):
                base_offset = None  # the missing offsets may be of what is broken beside it
            if base_offset is not None and base_offset + last_delta(data) < limit:
                if done < at:
                    yield Piece(PieceKind.BROKEN, done, at)
                yield (found := _piece(data, base_offset, at))
                done, reached = found.end, found.last_offset
                kept_to = end
            at = end
        if done < piece.end:
            is_end = piece.start < done and piece.end == pieces[-1].end
            is_zero = is_end and holds_zeros(file, done, piece.end)
            yield Piece(PieceKind.ZEROS if is_zero else PieceKind.BROKEN, done, piece.end)


class _Behind:
    """What lies behind a piece of a log."""

    def __init__(self, pieces: Sequence[Piece], next_offset: int | None) -> None:
        self._sound = [piece for piece in pieces if piece.kind is PieceKind.SOUND]
        self._next_offset = next_offset
        self.ends: list[tuple[int, int]] = []
        """For each piece how far a batch in it may reach: to the next sound batch, or over one that
        stands alone and may lie in a value of it."""
        near = far = pieces[-1].end if pieces else 0
        self._end = next(
            (one.end for one in reversed(pieces) if one.kind is not PieceKind.ZEROS), 0
        )
        for piece in reversed(pieces):
            self.ends.append((near, far))
            if piece.kind not in _PASSED_OVER:
                is_alone = piece.kind is PieceKind.SOUND and piece.batches == 1
                near, far = piece.start, near if is_alone else piece.start
        self.ends.reverse()

    def next_offset(self, position: int) -> int | None:
        """Return the first offset of the next sound batch from a position on, if it is known."""
        found = self._sound_from(position)
        return self._next_offset if found is None else found.first_offset

    def begins_at(self, position: int) -> bool:
        """Return whether the next sound batch begins at a position, or the log ends there."""
        found = self._sound_from(position)
        return position == (self._end if found is None else found.start)

    def _sound_from(self, position: int) -> Piece | None:
        place = bisect_left(self._sound, position, key=attrgetter("start"))
        return self._sound[place] if place < len(self._sound) else None


def _piece(data: bytes, base_offset: int, position: int) -> Piece:
    whole = base_offset.to_bytes(8, "big") + data[8:]
    found = piece_of(PieceKind.RESTORABLE, read_batch_headers(whole).table)
    return found._replace(start=position, end=position + len(data))


def fitting_base_offset(
    data: bytes, reached: int, following: int | None, *, lost_bytes: int = 0
) -> int | None:
    """Return the base offset of a batch behind the offset `reached` and before `following`.

    Where exactly its offsets are missing it has these. Else it has to fit as it is; without a sound
    batch behind it (None) no more offsets may be missing before it than `lost_bytes`, the bytes
    that are broken there. None: its base offset is not known. A compressed message of magic 0 or 1
    says its last offset, and keeps it.
    """
    base, delta = BATCH["base_offset"].of(data), last_delta(data)
    is_wrapper = data[_MAGIC_AT] < 2 and MESSAGE_1["attributes"].of(data) & 7 != 0
    first = read_batch(data).base_offset if is_wrapper else base
    if following is None:
        return base if reached < first <= reached + 1 + lost_bytes else None
    if not is_wrapper and reached + 1 + delta + 1 == following:
        return reached + 1
    return base if reached < first <= base + delta < following else None
