# SPDX-License-Identifier: Apache-2.0
"""Batches of magic 2 whose size or magic is wrong, and whose checksum proves them all the same.

The checksum covers a batch from its attributes on: size and magic lie before. So it is tried over
the bytes up to where the size leads, and over those up to the next piece of the log. Where it holds
over exactly these, their size is right, and the magic is 2. The base offset is not covered either:
it has to fit between the batches around. A wrong one comes back where exactly these offsets are
missing, and nothing else is broken between these batches.

Upstream: Kafka 4.3.1: DefaultRecordBatch.
Laws: BATCH-2, BATCH-3, BATCH-4, BATCH-12, BATCH-19.
Not covered: batches of magic 0 and 1; a batch whose end nothing shows, such as one before another
broken one.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter

from segproof.checksums import crc32c
from segproof.errors import SegproofError
from segproof.files import ReadOnlyFile
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.record import end_transaction_marker
from segproof.kafka.record_batch import BATCH_HEADER_BYTES, RecordBatch, read_batch
from segproof.kafka.record_file import LOG_OVERHEAD_BYTES
from segproof.kernels import records as kernels
from segproof.reading.pieces import Piece, PieceKind, piece_of

BATCH_BYTES_MAX = 16 << 20
"""A larger batch is not tried."""
CRC, COVERED = 17, 21
"""Where the checksum lies, and from where on it covers the batch."""
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
    tried, done = _Tried(file, work_bytes), 0
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
        while at < piece.end:
            said = tried.end_at(at)
            data = tried.batch_at(at, (said, piece.end, *ends))
            if data is None:
                if tried.is_through or not at + BATCH_HEADER_BYTES <= said < piece.end:
                    break
                at = said
                continue
            end = at + len(data)
            base_offset = fitting_base_offset(data, reached, behind.next_offset(end))
            if base_offset != kernels.decode_int64(data, 0) and not (
                kept_to == at and behind.begins_at(end)
            ):
                base_offset = None  # the missing offsets may be of what is broken beside it
            if base_offset is not None and base_offset + _last_delta(data) < limit:
                if done < at:
                    yield Piece(PieceKind.BROKEN, done, at)
                yield (found := _piece(data, base_offset, at))
                done, reached = found.end, found.last_offset
                kept_to = end
            at = end
        if done < piece.end:
            yield Piece(PieceKind.BROKEN, done, piece.end)


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


class _Tried:
    """Tries whether a batch is at a place."""

    def __init__(self, file: ReadOnlyFile, work_bytes: int) -> None:
        self._file = file
        self._left = work_bytes

    @property
    def is_through(self) -> bool:
        """Whether too much was tried."""
        return self._left < 0

    def end_at(self, position: int) -> int:
        """Return where a batch would end by its size field; -1 behind the end of the log."""
        header = self._file.pread(LOG_OVERHEAD_BYTES, position)
        if len(header) < LOG_OVERHEAD_BYTES:
            return -1
        return position + LOG_OVERHEAD_BYTES + kernels.decode_int32(header, 8)

    def batch_at(self, position: int, ends: Sequence[int]) -> bytes | None:
        """Return the batch up to the first of some ends for which its checksum holds.

        Without one, and of a batch that no broker loads, return None.
        """
        for end in dict.fromkeys(ends):
            size = end - position
            if self.is_through or not BATCH_HEADER_BYTES <= size <= BATCH_BYTES_MAX:
                continue
            self._left -= size
            whole = self._file.pread(size, position)
            if len(whole) == size and checksum_difference(whole) == 0:
                data = bytes(with_size_and_magic(whole))
                if agrees_with_records(data) and is_loadable(read_batch(data)):
                    return data
        return None


def _piece(data: bytes, base_offset: int, position: int) -> Piece:
    whole = base_offset.to_bytes(8, "big") + data[8:]
    found = piece_of(PieceKind.RESTORABLE, read_batch_headers(whole).table)
    return found._replace(start=position, end=position + len(data))


def checksum_difference(whole: bytes) -> int:
    """Return in which bits the checksum that a batch has differs from the right one."""
    return int.from_bytes(whole[CRC:COVERED], "big") ^ crc32c(memoryview(whole)[COVERED:])


def with_size_and_magic(whole: bytes) -> bytearray:
    """Return the bytes of a batch with the size that they have, and magic 2."""
    data = bytearray(whole)
    data[8:LOG_OVERHEAD_BYTES] = (len(whole) - LOG_OVERHEAD_BYTES).to_bytes(4, "big")
    data[16] = 2
    return data


def agrees_with_records(data: bytes) -> bool:
    """Return whether the records of a batch are as many, and their offsets as high, as it says."""
    try:
        count, last, rises, _ = read_batch(data).check_records()
    except SegproofError:
        return False
    delta = _last_delta(data)
    return rises and delta >= 0 and count <= last + 1 <= delta + 1


def end_by_records(data: bytes) -> int:
    """Return how long a batch is by its records, as many as its header counts; -1: not known.

    `data` begins with the batch, and may end inside of its last record or go on behind it.
    Compressed records say no length.
    """
    if len(data) <= BATCH_HEADER_BYTES or data[22] & 7:
        return -1
    count = kernels.decode_int32(data, 57)
    summary = array("q", bytes(8 * kernels.SUMMARY_ROW))
    kernels.summarise_records.announce(min(count, len(data)))
    kernels.summarise_records(data, BATCH_HEADER_BYTES, len(data), count, memoryview(summary), 0)
    status, at, seen = summary[:3]
    if status == kernels.RECORDS_BAD_LENGTH and seen == count - 1:
        length, body = kernels.decode_varint(data, at, len(data))
        return body + length
    return at if seen == count else -1


def _last_delta(data: bytes) -> int:
    return kernels.decode_int32(data, 23)


def fitting_base_offset(data: bytes, reached: int, following: int | None) -> int | None:
    """Return the base offset of a batch behind the offset `reached` and before `following`.

    Where exactly its offsets are missing it has these. Else it has to fit as it is; without a sound
    batch behind it (None) only one that goes on fits. None: its base offset is not known.
    """
    base, delta = kernels.decode_int64(data, 0), _last_delta(data)
    if following is None:
        return base if base == reached + 1 else None
    if reached + 1 + delta + 1 == following:
        return reached + 1
    return base if reached < base <= base + delta < following else None


def is_loadable(batch: RecordBatch) -> bool:
    """Return whether a broker loads a batch: the first record of a control one is a marker.

    Laws: BATCH-19.
    """
    if not batch.is_control:
        return True
    try:
        record = next(iter(batch.records()), None)
        if record is not None:
            end_transaction_marker(record)
    except SegproofError:
        return False
    return True
