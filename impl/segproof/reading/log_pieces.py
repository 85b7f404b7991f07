# SPDX-License-Identifier: Apache-2.0
"""A log in pieces: sound batches, damage between them, and where sound batches go on behind it.

A batch is sound if its checksum is right, and if its offsets lie behind those of the sound batches
before it and before those of the sound batch behind it. The checksum does not cover the base offset
(KIP-98). So a batch with a right checksum may say wrong offsets: it is *misplaced*, a piece of its
own.

Behind damage an entry of the offset index shows for certain where a batch begins. Between the
damage and that entry, and where no entry leads to a sound batch, each byte may be the first one of
a batch: magic, size, checksum and offsets together decide. A record's value may hold a whole batch.
That batch is passed over if it lies in a sound one, or if its offsets do not fit between the
sound batches around it.

Laws: BATCH-2, BATCH-3, BATCH-19, DUMP-6.
"""

from collections.abc import Generator, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.errors import SegproofError
from segproof.files import ReadOnlyFile, holds_zeros
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.kafka.batch_table import BatchTable, CheckedBatches, check_batches, read_batch_headers
from segproof.kafka.record import end_transaction_marker
from segproof.kafka.record_batch import LEGACY_MIN_BYTES, RecordBatch
from segproof.kafka.record_file import HEADER_UP_TO_MAGIC_BYTES, LOG_OVERHEAD_BYTES
from segproof.reading.index_entries import EntryFile

Int64Array = NDArray[np.int64]
CONTROL = 32
"""The attribute bit of a control batch."""
SEARCH_PIECE_BYTES = 1 << 20
"""Bytes that a search reads at once, at most."""
FIRST_SEARCH_BYTES = 8 << 10
"""Bytes that it reads first: mostly the next batch is near."""
CRC_BYTES = 64 << 20
CRC_BYTES_OF_A_BYTE = 16
"""A search makes checksums of CRC_BYTES, and of so many bytes more for each byte searched."""


class PieceKind(StrEnum):
    """What a piece of a log holds."""

    SOUND = "sound"
    """Sound batches, one behind the other."""
    MISPLACED = "misplaced"
    """One batch with a right checksum whose offsets do not fit where it lies."""
    UNLOADABLE = "unloadable"
    """One control batch that is no marker of a transaction: no broker loads a log with it."""
    BROKEN = "broken"
    """Bytes in which there is no sound batch."""
    ZEROS = "zeros"
    """Zeros up to the end of the log: the tail of a preallocated file, or of one that lost data."""
    UNSEARCHED = "unsearched"
    """Bytes behind damage that were not searched: too much of them looks like batches."""


class Piece(NamedTuple):
    """Bytes [start, end) of a log, and what the headers of the batches in it say."""

    kind: PieceKind
    start: int
    end: int
    batches: int = 0
    records: int = 0
    """A compressed message of magic 0 or 1 counts as one record."""
    first_offset: int = -1
    """Of a compressed message of magic 0 or 1 only the last offset is known: it stands here too."""
    last_offset: int = -1
    min_timestamp: int = -1
    """In milliseconds, as `max_timestamp`; -1 where no batch has one."""
    max_timestamp: int = -1

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.start

    def joined(self, other: "Piece") -> "Piece":
        """Return a piece of both, where `other` follows."""
        earliest = [one.min_timestamp for one in (self, other) if one.min_timestamp >= 0]
        return self._replace(
            end=other.end,
            batches=self.batches + other.batches,
            records=self.records + other.records,
            last_offset=other.last_offset,
            min_timestamp=min(earliest, default=-1),
            max_timestamp=max(self.max_timestamp, other.max_timestamp),
        )


class Entries(NamedTuple):
    """The entries of an offset index, in their order."""

    offsets: Int64Array
    """As in the log, not relative to the base offset."""
    positions: Int64Array


NO_ENTRIES = Entries(np.empty(0, np.int64), np.empty(0, np.int64))
ENTRIES_MAX = 1 << 21
"""An index with more entries is not used: it would be of 16 MiB, and Kafka's has 10 by default."""


def entries_of(index: EntryFile, base_offset: int) -> Entries:
    """Return the genuine entries of an offset index that hold no negative number.

    `index` has found its end. Raises: OSError.
    """
    if not 0 < index.count <= ENTRIES_MAX:
        return NO_ENTRIES
    whole = np.concatenate([block for _, block in index.blocks()])
    offsets, positions = whole["offset"].astype(np.int64), whole["position"].astype(np.int64)
    usable = (offsets >= 0) & (positions >= 0)
    return Entries(offsets[usable] + base_offset, positions[usable])


class LogPieces:
    """The pieces of the bytes [start, end) of a log; iterate once. They touch, and leave no gap.

    `reached` is the last offset before `start`, `limit` the first offset that lies behind the log,
    such as the first one of the next segment. `entries` are of the log's offset index.
    Memory: as `BatchScan`. Cost: sound batches are read once, damaged bytes a few times.
    Raises: OSError.
    """

    def __init__(
        self,
        file: ReadOnlyFile,
        start: int,
        end: int,
        *,
        reached: int = -1,
        limit: int = INT64_MAX,
        entries: Entries = NO_ENTRIES,
    ) -> None:
        self._file = file
        self._start = start
        self._end = end
        self._limit = limit
        self._entries = entries
        self._sound: Piece | None = None
        """The sound batches so far that were not yielded, but for the last one."""
        self._last: Piece | None = None
        """The last one. If it leaves offsets out, the next sound batch may have some of these: then
        the last one is misplaced."""
        self._sure = reached
        """The last offset of the sound batches that no later batch makes doubtful."""
        self.reached = reached
        """The last offset of the sound batches so far."""

    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces in order."""
        at = self._start
        while at < self._end:
            at = yield from self._walk(at)
            if at < self._end:
                at = yield from self._gap(at)
        yield from self._ended()

    # --- batches one behind the other

    def _walk(self, at: int) -> Generator[Piece, None, int]:
        """Take batch after batch; return from where on no batch can be read, or the end.

        A batch with a wrong checksum is passed over if its size leads to a sound one.
        """
        scan = check_batches(self._file, at, self._end)
        broken_from: int | None = None
        for rows, behind in _with_following(scan):
            table, firsts = rows.table, _first_offsets(rows.table)
            doubted = np.flatnonzero(self._doubts(rows, firsts, behind))
            own = np.where(rows.crc_valid, firsts, -1)
            ahead_of = [*own.tolist(), *behind]
            number = 0
            while number < len(table):
                ahead = int(np.searchsorted(doubted, number))
                end = int(doubted[ahead]) if ahead < len(doubted) else len(table)
                if broken_from is None and number < end and int(firsts[number]) > self.reached:
                    yield from self._add(table[number:end])
                    number = end
                    continue
                row = table[number : number + 1]
                number += 1
                if not rows.crc_valid[number - 1]:
                    if broken_from is None:
                        broken_from = int(row["position"][0])
                    continue
                is_placed = self._is_placed(row, ahead_of[number : number + 2])
                if broken_from is not None:
                    yield from self._broken(broken_from, row, is_placed=is_placed)
                    broken_from = None
                if is_placed and not self._is_loadable(row):
                    yield from self._ended(int(firsts[number - 1]))
                    yield piece_of(PieceKind.UNLOADABLE, row)
                elif is_placed:
                    yield from self._add(row)
                else:
                    following = [one for one in ahead_of[number : number + 2] if one > self._sure]
                    yield from self._ended(following[0] if following else None)
                    yield piece_of(PieceKind.MISPLACED, row)
        return scan.end_position if broken_from is None else broken_from

    def _doubts(
        self, rows: CheckedBatches, firsts: Int64Array, following: list[int]
    ) -> NDArray[np.bool_]:
        """Return which batches must be looked at one by one: all others rise among themselves."""
        lasts = rows.table["last_offset"]
        doubts = ~rows.crc_valid | (lasts < firsts) | (lasts >= self._limit)
        doubts[:-1] |= (lasts[:-1] >= firsts[1:]) & rows.crc_valid[1:]
        doubts[1:] |= (firsts[1:] <= lasts[:-1]) & rows.crc_valid[:-1]
        for row in np.flatnonzero(_are_controls(rows.table)).tolist():
            doubts[row] |= not self._is_loadable(rows.table[row : row + 1])
        doubts[-1] |= 0 <= following[0] <= int(lasts[-1])
        return doubts

    def _is_placed(self, row: BatchTable, following: list[int]) -> bool:
        """Return whether the offsets of a batch fit, by what the next two begin with.

        -1 stands for one that is not sound, or not there. Where a batch and the next one claim the
        same offsets, the first is right if it continues the log and the others go on behind it.
        """
        first, last = int(_first_offsets(row)[0]), int(row["last_offset"][0])
        if not self._sure < first <= last < self._limit:
            return False
        if not self._sure < following[0] <= last:
            return True
        continues = first in (self._sure + 1, self.reached + 1)
        return continues and not following[0] < following[1] <= last

    def _is_loadable(self, row: BatchTable) -> bool:
        """Return whether a broker loads the batch: the first record of a control one is a marker.

        Laws: BATCH-19.
        """
        if not _are_controls(row)[0]:
            return True
        position, size = int(row["position"][0]), int(row["size_bytes"][0])
        batch = RecordBatch(self._file, position, size, 2, in_file=True)
        try:
            record = next(iter(batch.records()), None)
            if record is not None:
                end_transaction_marker(record)
        except SegproofError:
            return False
        return True

    def _broken(self, start: int, row: BatchTable, *, is_placed: bool) -> Iterator[Piece]:
        """Yield what lies between broken batches and a batch that their sizes lead to.

        Unless the broken one says the very offsets that are missing, sound batches may lie in it.
        """
        end, first = int(row["position"][0]), int(_first_offsets(row)[0])
        below = first if is_placed else self._limit
        yield from self._ended(first if is_placed else None)
        header = read_batch_headers(self._file, start, end).table
        is_whole = len(header) == 1 and (
            int(header["base_offset"][0]) == self.reached + 1
            and int(header["last_offset"][0]) == below - 1
        )
        found = [] if is_whole else list(self._batches_between(start + 1, end, below))
        yield from self._with_alone(start, end, found, below)

    # --- behind a place where no batch can be read

    def _gap(self, start: int) -> Generator[Piece, None, int]:
        """Yield what lies there; return where a sound batch begins again, or the end."""
        if holds_zeros(self._file, start, self._end):
            yield from self._ended()
            yield Piece(PieceKind.ZEROS, start, self._end)
            return self._end
        known = self._known_batch(start)
        end, below = (
            (self._end, self._limit) if known is None else (known.start, known.first_offset)
        )
        alone, resumed = list[Piece](), known
        for found in self._batches_between(start + 1, end, below):
            if found.kind is PieceKind.UNSEARCHED:
                if known is not None:
                    break
                yield from self._ended()
                yield from self._with_alone(start, found.start, alone, below)
                yield found
                return self._end
            if found.kind is PieceKind.SOUND and self._is_followed(found):
                resumed = found
                break
            alone.append(found)
        if resumed is not None:
            end, below = resumed.start, resumed.first_offset
        fitting = [one for one in alone if one.last_offset < below]
        following = fitting[0] if fitting else resumed
        yield from self._ended(None if following is None else following.first_offset)
        yield from self._with_alone(start, end, alone, below)
        return end

    def _known_batch(self, start: int) -> Piece | None:
        """Return the first sound batch behind `start` that an entry of the index leads to."""
        offsets, positions = self._entries
        left = CRC_BYTES + CRC_BYTES_OF_A_BYTE * (self._end - start)
        for number in np.flatnonzero((positions > start) & (offsets > self._sure)).tolist():
            position = int(positions[number])
            left -= max(0, self._end_at(position) - position)
            if left < 0:
                return None
            found = self.batch_at(position)
            is_sound = found is not None and found.kind is PieceKind.SOUND
            if (
                found is not None
                and is_sound
                and self._sure < found.first_offset <= offsets[number]
            ):
                return found
        return None

    def _is_followed(self, piece: Piece) -> bool:
        """Return whether a sound batch follows with later offsets, or the log ends."""
        following = self.batch_at(piece.end)
        if following is not None:
            return following.first_offset > piece.last_offset
        return holds_zeros(self._file, piece.end, self._end)

    def _with_alone(self, start: int, end: int, alone: list[Piece], below: int) -> Iterator[Piece]:
        """Yield [start, end), in which some batches stand alone.

        One that begins behind the next sound batch is no batch of this log, but part of a value.
        """
        for piece in alone:
            if piece.kind is PieceKind.UNSEARCHED or piece.first_offset >= below:
                continue
            if piece.start > start:
                yield Piece(PieceKind.BROKEN, start, piece.start)
            start = piece.end
            if piece.kind is PieceKind.UNLOADABLE:
                yield piece
            elif self._sure < piece.first_offset <= piece.last_offset < below:
                self.reached = self._sure = piece.last_offset
                yield piece
            else:
                yield piece._replace(kind=PieceKind.MISPLACED)
        if start < end:
            yield Piece(PieceKind.BROKEN, start, end)

    def _batches_between(self, start: int, end: int, below: int) -> Iterator[Piece]:
        """Yield each sound batch in [start, end), and none inside of another one.

        Their base offsets lie behind what is sure, and before `below`. If too much looks like a
        batch, the bytes that were not searched come last.
        """
        left, passed, piece_bytes = CRC_BYTES, start, FIRST_SEARCH_BYTES
        at = start
        while at < end:
            data = self._file.pread(piece_bytes + HEADER_UP_TO_MAGIC_BYTES - 1, at)
            left += len(data) * CRC_BYTES_OF_A_BYTE
            for row, size in _candidates(data, end - at, self._sure, below):
                if at + row < passed or not self._has_lengths(at + row, size):
                    continue
                left -= size
                if left < 0:
                    yield Piece(PieceKind.UNSEARCHED, at + row, end)
                    return
                found = self.batch_at(at + row)
                if found is not None:
                    yield found
                    passed = found.end
            at += piece_bytes
            piece_bytes = min(2 * piece_bytes, SEARCH_PIECE_BYTES)

    def _has_lengths(self, position: int, size: int) -> bool:
        """Return whether a message of magic 0 or 1 is as long as its key and its value say.

        Bytes of a magic 2 header look like the beginning of one with many megabytes.
        """
        header = self._file.pread(LEGACY_MIN_BYTES + 4, position)
        if len(header) <= LEGACY_MIN_BYTES or header[16] == 2:
            return True
        at = position + 18 + 8 * header[16]
        for _ in range(2):  # the key, then the value
            length = self._file.pread(4, at)
            at += 4 + max(0, int.from_bytes(length, "big", signed=True))
        return at == position + size

    def batch_at(self, position: int) -> Piece | None:
        """Return the batch at a position, if its checksum is right and its offsets rise."""
        end = self._end_at(position)
        if not position < end <= self._end:
            return None
        for rows in check_batches(self._file, position, end):
            found = piece_of(PieceKind.SOUND, rows.table)
            is_sound = bool(rows.crc_valid.all()) and found.first_offset <= found.last_offset
            if not is_sound or found.end != end:
                return None
            is_loadable = self._is_loadable(rows.table)
            return found if is_loadable else found._replace(kind=PieceKind.UNLOADABLE)
        return None

    def _end_at(self, position: int) -> int:
        """Return where a batch at a position would end, as its size field says; or -1."""
        header = self._file.pread(LOG_OVERHEAD_BYTES, position)
        if len(header) < LOG_OVERHEAD_BYTES:
            return -1
        return position + LOG_OVERHEAD_BYTES + int.from_bytes(header[8:], "big", signed=True)

    # --- what was found

    def _add(self, table: BatchTable) -> Iterator[Piece]:
        """Take batches that rise, and lie behind those that are sure."""
        first = int(_first_offsets(table[:1])[0])
        if first <= self.reached:
            yield from self._ended(first)
        for part in (table[:-1], table[-1:]):
            if len(part):
                if self._last is not None:
                    self._sound = _joined(self._sound, self._last)
                before, self._last = self.reached, piece_of(PieceKind.SOUND, part)
                self.reached = self._sure = self._last.last_offset
        if self._last is not None and self._last.first_offset > before + 1:
            self._sure = before

    def _ended(self, following: int | None = None) -> Iterator[Piece]:
        """Yield the sound batches so far, which end here, by what the next one begins with."""
        last, self._last = self._last, None
        is_sound = last is not None and (following is None or following > last.last_offset)
        if last is not None and is_sound:
            self._sound = _joined(self._sound, last)
            self._sure = self.reached
        if self._sound is not None:
            yield self._sound
            self._sound = None
        if last is not None and not is_sound:
            self.reached = self._sure
            yield last._replace(kind=PieceKind.MISPLACED)


def _joined(before: Piece | None, piece: Piece) -> Piece:
    return piece if before is None else before.joined(piece)


def _first_offsets(table: BatchTable) -> Int64Array:
    """Return the first offset of each batch; of a message of magic 0 or 1 its last one."""
    return np.where(table["magic"] == 2, table["base_offset"], table["last_offset"])


def _with_following(
    scan: Iterable[CheckedBatches],
) -> Iterator[tuple[CheckedBatches, list[int]]]:
    """Yield the parts of a scan, each with the first offsets of the two batches behind it.

    -1 stands for one that is not sound, or not there.
    """
    held: CheckedBatches | None = None
    for part in scan:
        if held is not None:
            first = np.where(part.crc_valid[:2], _first_offsets(part.table[:2]), -1)
            yield held, [*first.tolist(), -1][:2]
        held = part
    if held is not None:
        yield held, [-1, -1]


def piece_of(kind: PieceKind, table: BatchTable) -> Piece:
    """Return the piece of some batches that follow each other."""
    times = table["base_timestamp"][table["base_timestamp"] >= 0]
    return Piece(
        kind,
        int(table["position"][0]),
        int(table["position"][-1] + table["size_bytes"][-1]),
        len(table),
        _records(table),
        int(_first_offsets(table[:1])[0]),
        int(table["last_offset"][-1]),
        int(times.min()) if len(times) else -1,
        int(table["max_timestamp"].max()),
    )


def _are_controls(table: BatchTable) -> NDArray[np.bool_]:
    return np.asarray((table["magic"] == 2) & (table["attributes"] & CONTROL != 0))


def _records(table: BatchTable) -> int:
    """Return how many records the headers say, at most one for each offset."""
    offsets = np.maximum(table["last_offset_delta"].astype(np.int64), 0) + 1
    said = np.clip(table["record_count"], 0, offsets)
    return int(np.where(table["magic"] < 2, 1, said).sum())


def _candidates(data: bytes, room: int, reached: int, below: int) -> Iterator[tuple[int, int]]:
    """Yield where a batch may begin in `data`, and its size, by its first 17 bytes.

    `room` is how many bytes there are from the first of `data` on.
    """
    count = len(data) - HEADER_UP_TO_MAGIC_BYTES + 1
    if count <= 0:
        return
    # Each byte may be the first one of a batch.
    magics = np.frombuffer(data, np.uint8, count, HEADER_UP_TO_MAGIC_BYTES - 1)
    rows = np.flatnonzero(magics <= 2)
    sizes = np.ndarray((count,), ">i4", data, 8, (1,))[rows].astype(np.int64) + LOG_OVERHEAD_BYTES
    fits = (sizes >= LEGACY_MIN_BYTES) & (rows + sizes <= room)
    rows, sizes = rows[fits], sizes[fits]
    offsets = np.ndarray((count,), ">i8", data, 0, (1,))[rows].astype(np.int64)
    fits = (
        (offsets > reached) & (offsets < below) & (offsets <= min(reached + INT32_MAX, INT64_MAX))
    )
    yield from zip(rows[fits].tolist(), sizes[fits].tolist(), strict=True)
