# SPDX-License-Identifier: Apache-2.0
"""Batches whose size or magic is wrong, and whose checksum proves them all the same.

The checksum of magic 2 covers a batch from its attributes on: size and magic lie before. So it is
tried over the bytes up to where the size leads, and up to each other place where the batch may end:
at the next piece of the log, behind as many records as it counts, before the next header or the
last zeros, and where a size with one other byte leads. Where it holds over exactly these bytes,
their size is right, and the magic is 2. A message of magic 0 or 1 ends where the lengths of its key
and its value lead, and its checksum covers these and the magic. No checksum covers the base offset:
it has to fit between the batches around. A wrong one comes back where exactly these offsets are
missing, and nothing else is broken between these batches.

Upstream: Kafka 4.3.1: DefaultRecordBatch, LegacyRecord.
Laws: BATCH-2, BATCH-3, BATCH-4, BATCH-12, BATCH-19.
Not covered: a compressed batch of magic 2 with several wrong bytes in its size, before a damage.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from segproof.checksums import crc32, crc32c
from segproof.errors import SegproofError, TooLargeError
from segproof.files import ReadOnlyFile, first_byte, holds_zeros
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.record import end_transaction_marker
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kernels import records as kernels
from segproof.layouts.kafka import (
    BATCH,
    BATCH_HEADER_BYTES,
    CHECKED_FROM,
    LEGACY_MIN_BYTES,
    LOG_OVERHEAD_BYTES,
    MESSAGE_0,
    MESSAGE_1,
    MESSAGE_CHECKED_FROM,
)
from segproof.reading.batch_starts import starts_by_offset
from segproof.reading.pieces import Piece, PieceKind, piece_of

_MAGIC_AT = BATCH["magic"].place
BATCH_BYTES_MAX = 16 << 20
"""A larger batch is not tried."""
GUESSED_BYTES_MAX = 1 << 20
"""So long batches may be whose end is guessed; Kafka's default limit."""
SEARCHED_BYTES = 1 << 20
"""So many bytes are searched at once for headers."""
TRIAL_BYTES = 512
"""A place where a batch may begin counts as so many bytes of work, at least."""
STARTS_MAX = 1 << 16
"""So many such places of a piece are looked at."""
HEADERS_TRIED = 8
"""Before so many of the next headers a batch may end."""
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
        starts = tried.starts(piece, reached, behind.next_offset(piece.end))
        while at < piece.end and not tried.is_through:
            place = bisect_right(starts, at)
            following = starts[place : place + HEADERS_TRIED]
            data = (
                tried.by_lengths(at, max(ends))
                or tried.by_size(at)
                or tried.by_guess(at, (piece.end, *ends, *following))
            )
            if data is None:
                said = tried.end_at(at)
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
            if base_offset is not None and base_offset + _last_delta(data) < limit:
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


class _Tried:
    """Tries whether a batch is at a place."""

    def __init__(self, file: ReadOnlyFile, work_bytes: int) -> None:
        self._file = file
        self._left = work_bytes
        self._left_of_guesses = work_bytes

    @property
    def is_through(self) -> bool:
        """Whether too much was tried."""
        return self._left < 0

    def starts(self, piece: Piece, above: int, below: int | None) -> list[int]:
        """Return where in a piece a batch may begin, rising, whatever its size and its magic.

        Its base offset lies between `above` and `below`; without the latter it leaves out no more
        offsets than the piece has bytes.
        """
        below = above + 2 + piece.size_bytes if below is None else below
        found = list[int]()
        at = piece.start
        while at < piece.end:
            data = self._file.pread(SEARCHED_BYTES + BATCH_HEADER_BYTES - 1, at)
            rows = starts_by_offset(data, min(SEARCHED_BYTES, piece.end - at), above, below)
            found += (rows[: STARTS_MAX - len(found)] + at).tolist()
            at = behind_zeros(self._file, data, at + SEARCHED_BYTES, piece.end)
        return found

    def end_at(self, position: int) -> int:
        """Return where a batch would end by its size field; -1 behind the end of the log."""
        header = self._file.pread(LOG_OVERHEAD_BYTES, position)
        if len(header) < LOG_OVERHEAD_BYTES:
            return -1
        return position + LOG_OVERHEAD_BYTES + BATCH["size"].of(header)

    def by_size(self, position: int) -> bytes | None:
        """Return the batch at a position, as its size says, if its checksum holds.

        Return None for a batch that no broker loads.
        """
        end = self.end_at(position)
        self._left -= TRIAL_BYTES
        if not BATCH_HEADER_BYTES <= end - position <= BATCH_BYTES_MAX:
            return None
        self._left -= end - position
        return _proved(self._file.pread(end - position, position), [end - position])

    def by_lengths(self, position: int, end: int) -> bytes | None:
        """Return the message of magic 0 or 1 at a position, if its checksum holds, with its size.

        It ends where its lengths lead, at `end` at most. Return None for one that can't be read.
        """
        size = end_by_lengths(self._file, position) - position
        if not LEGACY_MIN_BYTES <= size <= min(BATCH_BYTES_MAX, end - position):
            return None
        self._left -= TRIAL_BYTES + size
        data = bytes(with_size_and_magic(self._file.pread(size, position)))
        return data if data[_MAGIC_AT] < 2 and _agrees_with_messages(read_batch(data)) else None

    def by_guess(self, position: int, ends: Sequence[int]) -> bytes | None:
        """Return the batch up to the first end for which its checksum holds, as `by_size`.

        `ends` are some of its possible ends. Only what its last record says may lie behind them.
        """
        if self._left_of_guesses < 0:
            return None
        data = self._file.pread(min(max(ends) - position, GUESSED_BYTES_MAX), position)
        if len(data) < BATCH_HEADER_BYTES:
            return None
        told = end_by_records(data), *(end - position for end in ends)
        sizes = _rising(told, BATCH_BYTES_MAX)
        self._left_of_guesses -= TRIAL_BYTES + 2 * len(data) + max(sizes, default=0)
        found = _proved(self._file.pread(max(sizes, default=0), position), sizes)
        if found is not None:
            return found
        said, content = BATCH["size"].of(data), len(data.rstrip(b"\0"))
        places = (said & ~(255 << shift) | one << shift for shift in range(0, 32, 8)
                  for one in range(256))  # fmt: skip
        near = *(LOG_OVERHEAD_BYTES + one for one in places), *range(content, content + 9)
        return _proved(data, _rising(near, len(data)))


def behind_zeros(file: ReadOnlyFile, before: bytes, at: int, end: int) -> int:
    """Return from where on, in [at, end), a header may begin; zeros are none.

    `before` are the bytes that were searched last. If they are zeros, those that follow are passed
    over as fast as they are read, and holes at once.
    """
    if at >= end or before.count(0) != len(before):
        return at
    byte = first_byte(file, at, end + BATCH_HEADER_BYTES)
    return end if byte is None else max(at, byte - BATCH_HEADER_BYTES + 1)


def _rising(sizes: Iterable[int], most: int) -> list[int]:
    """Return the sizes that a batch may have, up to the largest, in their order."""
    return sorted({size for size in sizes if BATCH_HEADER_BYTES <= size <= most})


def _proved(data: bytes, sizes: Sequence[int]) -> bytes | None:
    """Return the batch that `data` begins with, of the first of rising sizes that is proved."""
    stored, made, at, whole = BATCH["crc"].of(data), 0, CHECKED_FROM, memoryview(data)
    for size in sizes:
        made = crc32c(whole[at:size], made)
        at = size
        if made != stored or len(data) < size:
            continue
        found = bytes(with_size_and_magic(data[:size]))
        if agrees_with_records(found) and is_loadable(read_batch(found)):
            return found
    return None


def _agrees_with_messages(message: RecordBatch) -> bool:
    """Return whether what a message of magic 0 or 1 wraps can be read, and its offsets rise."""
    try:
        message.check_inner_messages()
        return message.base_offset <= message.last_offset
    except SegproofError:
        return False


def end_by_lengths(file: ReadOnlyFile, position: int) -> int:
    """Return where a message of magic 0 or 1 ends by the lengths of its key and its value; or -1.

    Nothing of it but these and its magic is looked at.
    """
    magic = file.pread(1, position + _MAGIC_AT)
    if magic not in (b"\0", b"\1"):
        return -1
    at = position + (MESSAGE_1 if magic[0] else MESSAGE_0)["key_length"].place
    for _ in range(2):  # the key, then the value
        length = file.pread(4, at)
        if len(length) < 4:
            return -1
        at += 4 + max(0, int.from_bytes(length, "big", signed=True))
    return at


def _piece(data: bytes, base_offset: int, position: int) -> Piece:
    whole = base_offset.to_bytes(8, "big") + data[8:]
    found = piece_of(PieceKind.RESTORABLE, read_batch_headers(whole).table)
    return found._replace(start=position, end=position + len(data))


def checksum_difference(whole: bytes) -> int:
    """Return in which bits the checksum that a batch has differs from the right one."""
    return BATCH["crc"].of(whole) ^ crc32c(memoryview(whole)[CHECKED_FROM:])


def with_size_and_magic(whole: bytes) -> bytearray:
    """Return the bytes of a batch with the size that they have.

    A message of magic 0 or 1 has a checksum that holds; anything else gets magic 2.
    """
    data = bytearray(whole)
    BATCH["size"].put(data, len(whole) - LOG_OVERHEAD_BYTES)
    checked = data[MESSAGE_CHECKED_FROM:]
    if data[_MAGIC_AT] > 1 or crc32(checked) != MESSAGE_1["crc"].of(data):
        data[_MAGIC_AT] = 2
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
    if len(data) <= BATCH_HEADER_BYTES or BATCH["attributes"].of(data) & 7:
        return -1
    count = BATCH["record_count"].of(data)
    if not 0 <= count <= _last_delta(data) + 1:
        return -1
    summary = array("q", bytes(8 * kernels.SUMMARY_ROW))
    kernels.summarise_records.announce(min(count, len(data)))
    kernels.summarise_records(data, BATCH_HEADER_BYTES, len(data), count, memoryview(summary), 0)
    status, at, seen = summary[:3]
    if status == kernels.RECORDS_BAD_LENGTH and seen == count - 1:
        length, body = kernels.decode_varint(data, at, len(data))
        return body + length
    return at if seen == count else -1


def _last_delta(data: bytes) -> int:
    """Return how far the last offset of a batch lies behind the one that it says."""
    return 0 if data[_MAGIC_AT] < 2 else BATCH["last_offset_delta"].of(data)


def fitting_base_offset(
    data: bytes, reached: int, following: int | None, *, lost_bytes: int = 0
) -> int | None:
    """Return the base offset of a batch behind the offset `reached` and before `following`.

    Where exactly its offsets are missing it has these. Else it has to fit as it is; without a sound
    batch behind it (None) no more offsets may be missing before it than `lost_bytes`, the bytes
    that are broken there. None: its base offset is not known. A compressed message of magic 0 or 1
    says its last offset, and keeps it.
    """
    base, delta = BATCH["base_offset"].of(data), _last_delta(data)
    is_wrapper = data[_MAGIC_AT] < 2 and MESSAGE_1["attributes"].of(data) & 7 != 0
    first = read_batch(data).base_offset if is_wrapper else base
    if following is None:
        return base if reached < first <= reached + 1 + lost_bytes else None
    if not is_wrapper and reached + 1 + delta + 1 == following:
        return reached + 1
    return base if reached < first <= base + delta < following else None


def is_loadable(batch: RecordBatch) -> bool:
    """Return whether a broker loads a batch: the first record of a control one is a marker, and
    messages in a wrapper of magic 0 or 1 can be read.

    A wrapper that is too large to look into counts as loadable. Laws: BATCH-10, BATCH-11, BATCH-19.
    """
    try:
        if not batch.is_control:
            _ = batch.base_offset  # of a wrapper it is in the messages inside
            return True
        record = next(iter(batch.records()), None)
        if record is not None:
            end_transaction_marker(record)
    except TooLargeError:
        return True
    except SegproofError:
        return False
    return True
