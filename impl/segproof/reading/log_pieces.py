# SPDX-License-Identifier: Apache-2.0
"""A log in pieces: sound batches, damage between them, and where sound batches go on behind it.

First all batches with a right checksum are found, wherever they lie. From the beginning of the log,
from an entry of the offset index, and back from the end of the log, sizes lead from batch to batch.
Elsewhere each byte may be the first one of a batch: magic, size, lengths and checksum together
decide. Nothing is looked for inside of a batch with a right checksum.

Then it is decided which of them belong where they lie. A disk may have written a block to a wrong
place, and the checksum does not cover the base offset (KIP-98). So the largest number of batches
whose offsets rise is *sound*; batches that sizes lead to come before those that stand alone between
damage, which may as well lie inside of a broken record's value. All others are *misplaced*.

Laws: BATCH-2, BATCH-3, BATCH-19, DUMP-6.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from segproof.files import ReadOnlyFile, holds_zeros
from segproof.integers import INT64_MAX
from segproof.kafka.batch_table import (
    BatchTable,
    check_batches,
    read_batch_headers,
)
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES
from segproof.reading.pieces import (
    Piece,
    PieceKind,
    are_between,
    piece_of,
)
from segproof.reading.restorable_batches import with_restorable
from segproof.reading.strangers import without_strangers
from segproof.stretches.kafka.batch_starts import starts_by_size
from segproof.stretches.kafka.facts import NO_ENTRIES, Entries
from segproof.stretches.kafka.header_rows import first_offsets, may_not_load
from segproof.stretches.kafka.mending import (
    BATCH_BYTES_MAX,
    behind_zeros,
    end_at,
    end_by_lengths,
    end_by_records,
    is_loadable,
)
from segproof.stretches.kafka.rising_chain import heaviest_chain
from segproof.stretches.kafka.single_batch import header_at, record_batch

Int64Array = NDArray[np.int64]
SEARCH_PIECE_BYTES = 1 << 20
"""Bytes that a search reads at once, at most."""
FIRST_SEARCH_BYTES = 8 << 10
"""Bytes that it reads first: mostly the next batch is near."""
WHOLE_BATCHES_MIN = 16
"""After so many batches that leave no offset out, none was compacted."""
MANY_BATCHES_MIN = 16
"""More batches than these, one behind the other, speak against one bit of another one."""
CRC_BYTES = 64 << 20
CRC_BYTES_OF_A_BYTE = 16
"""A search makes checksums of CRC_BYTES, and of so many bytes more for each byte searched."""


@dataclass(slots=True)
class _Run:
    """Batches one behind the other, whose offsets rise."""

    piece: Piece
    is_led_to: bool
    """Whether sizes lead to it from the beginning of the log or from an entry of the index."""
    last: Piece
    """Its last batch."""
    before_last: int
    """The last offset before that; -1 where it is the only one."""

    @classmethod
    def of(cls, kind: PieceKind, table: BatchTable, *, is_led_to: bool) -> "_Run":
        """Return the run of the batches of a table."""
        before_last = int(table["last_offset"][-2]) if len(table) > 1 else -1
        return cls(piece_of(kind, table), is_led_to, piece_of(kind, table[-1:]), before_last)

    def joined(self, other: "_Run") -> "_Run":
        """Return a run of both, where `other` follows."""
        is_longer = other.piece.batches > 1
        before_last = other.before_last if is_longer else self.piece.last_offset
        return _Run(self.piece.joined(other.piece), self.is_led_to, other.last, before_last)

    def without_odd_end(self) -> Iterator[Piece]:
        """Yield it in one piece, or without its last batch, which says a wrong base offset.

        So it does where nothing behind it speaks for it, where it is the only one that leaves
        offsets out, and where one bit makes the difference: compaction leaves no such log.
        """
        expected, last, whole = self.before_last + 1, self.last, self.piece
        is_whole = whole.records - last.records == expected - whole.first_offset
        jump = last.first_offset ^ expected
        if not (is_whole and whole.batches > WHOLE_BATCHES_MIN and jump.bit_count() == 1):
            yield self.piece
            return
        if self.piece.batches > 1:
            yield self.piece._replace(
                end=last.start,
                batches=self.piece.batches - 1,
                records=self.piece.records - last.records,
                last_offset=self.before_last,
            )
        yield last._replace(kind=PieceKind.MISPLACED)


class LogPieces:
    """The pieces of the bytes [start, end) of a log; iterate once. They touch, and leave no gap.

    `reached` is the last offset before `start`, `limit` the first offset that lies behind the log,
    such as the first one of the next segment. `next_offset` is that one, if it is known: what is
    restorable at the end of the log fits before it. `entries` are of the log's offset index.
    Memory: as `BatchScan`, and some hundred bytes for each place where batches begin behind damage,
    or where offsets do not rise. Cost: sound batches are read once, damaged bytes a few times.
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
        next_offset: int | None = None,
        entries: Entries = NO_ENTRIES,
    ) -> None:
        self._file = file
        self._start = start
        self._end = end
        self._reached = reached
        self._limit = limit
        self._next_offset = next_offset
        order = np.argsort(entries.positions, kind="stable")
        self._entries = Entries(entries.offsets[order], entries.positions[order])
        self._next_entry = 0
        """The first entry that was not looked at: each is looked at once, as places rise."""
        self._known: Piece | None = None
        """The last batch that an entry led to."""
        self._runs: list[_Run] = []
        self._zeros_from = end
        self._unsearched: list[Piece] = []
        self._torn_from = end
        """Where the last batch begins that the end of the log cuts off."""
        self._left = CRC_BYTES + CRC_BYTES_OF_A_BYTE * (end - start)
        """Of so many bytes more checksums are made in the search."""
        self._left_of_entries = self._left
        """The same, for batches that entries of the index lead to."""

    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces in order."""
        work_bytes = self._left
        yield from with_restorable(
            self._file, self.found(), reached=self._reached, limit=self._limit,
            next_offset=self._next_offset, work_bytes=work_bytes,
        )  # fmt: skip

    def found(self) -> list[Piece]:
        """Return the pieces in order. A batch that is restorable is still in a broken piece.

        Call this instead of an iteration: the log is searched once for each object.
        """
        self._find()
        return list(without_strangers(self._file, list(self._touching())))

    def _touching(self) -> Iterator[Piece]:
        """Yield the pieces in order, strangers too."""
        at, pieces = self._start, [*self._judged(), *self._unsearched]
        behind = [piece for piece in pieces if piece.start > self._torn_from]
        if {piece.kind for piece in behind} == {PieceKind.MISPLACED}:
            del pieces[-len(behind) :]  # they lie in a value of the torn batch
        for piece in pieces:
            if piece.start > at:
                yield Piece(PieceKind.BROKEN, at, piece.start)
            yield piece
            at = piece.end
        if at < self._zeros_from:
            yield Piece(PieceKind.BROKEN, at, self._zeros_from)
        if self._zeros_from < self._end:
            yield Piece(PieceKind.ZEROS, self._zeros_from, self._end)

    # --- all batches with a right checksum

    def _find(self) -> None:
        at, is_led_to = self._start, True
        while at < self._end:
            at = self._walk(at, is_led_to)
            if at < self._end and holds_zeros(self._file, at, self._end):
                self._zeros_from = at
                return
            if at < self._end:
                at, is_led_to = self._next(at)

    def _walk(self, at: int, is_led_to: bool) -> int:
        """Take batch after batch; return from where on no batch can be read, or the end.

        A batch with a wrong checksum is passed over if its size leads to one with a right one.
        """
        scan = check_batches(self._file, at, self._end)
        broken_from: int | None = None
        for rows in scan:
            table, number = rows.table, 0
            breaks = np.flatnonzero(np.diff(rows.crc_valid)) + 1
            for part_end in [*breaks.tolist(), len(table)]:
                part, number = table[number:part_end], part_end
                if not rows.crc_valid[part_end - 1]:
                    if broken_from is None:
                        broken_from = int(part["position"][0])
                    self._left -= 0 if is_led_to else int(part["size_bytes"].sum())
                    continue
                if broken_from is not None:
                    self._search_broken(broken_from, int(part["position"][0]))
                    broken_from = None
                self._take(part, is_led_to)
            if self._left < 0 and broken_from is not None:
                break
        return scan.end_position if broken_from is None else broken_from

    def _search_broken(self, start: int, end: int) -> None:
        """Take what lies in the bytes of broken batches."""
        while (found := self._search(start + 1, end)) is not None:
            if found.kind is PieceKind.UNSEARCHED:
                return
            self._take_one(found)
            start = found.end - 1

    def _take(self, table: BatchTable, is_led_to: bool) -> None:
        """Take batches with right checksums that follow each other, in runs."""
        firsts, lasts = first_offsets(table), table["last_offset"]
        odd = may_not_load(table)
        for row in np.flatnonzero(odd).tolist():
            odd[row] = not is_loadable(record_batch(self._file, table[row]))
        is_misplaced = (lasts < firsts) | are_between(table)
        odd |= is_misplaced
        is_new = np.ones(len(table), np.bool_)
        is_new[1:] = (firsts[1:] <= lasts[:-1]) | odd[1:] | odd[:-1]
        starts = np.flatnonzero(is_new).tolist()
        for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
            kind = PieceKind.SOUND
            if odd[start]:
                kind = PieceKind.MISPLACED if is_misplaced[start] else PieceKind.UNLOADABLE
            self._take_run(_Run.of(kind, table[start:end], is_led_to=is_led_to))

    def _take_run(self, run: _Run) -> None:
        last = self._runs[-1] if self._runs else None
        if (
            last is not None
            and last.is_led_to == run.is_led_to
            and last.piece.goes_on_in(run.piece)
        ):
            self._runs[-1] = last.joined(run)
        else:
            self._runs.append(run)

    def _take_one(self, piece: Piece) -> None:
        """Take a batch that stands alone."""
        self._take_run(_Run(piece, False, piece, -1))

    def _next(self, start: int) -> tuple[int, bool]:
        """Return where batches begin again behind a place that can't be read, or the end.

        And whether an entry of the index leads there.
        """
        known = self._known_batch(start)
        end = self._end if known is None else known.start
        if self._is_torn(start):
            self._torn_from = start
        at = start + 1
        while (found := self._search(at, end)) is not None:
            if found.kind is PieceKind.UNSEARCHED:
                if known is None:
                    self._unsearched.append(found)
                    self._zeros_from = self._end
                break
            following = self._batch_at(found.end)
            if following is not None or found.end == self._end:
                return found.start, False
            self._take_one(found)
            at = found.end
        return end, known is not None

    def _is_torn(self, start: int) -> bool:
        """Return whether a batch continues the log, and the log ends inside of it for certain.

        Its size leads behind the log, and so do the lengths in it, to the same byte: a wrong size
        has no such lengths. Of compressed records no length is known.
        """
        reached = self._runs[-1].piece.last_offset if self._runs else self._reached
        header, end = self._file.pread(BATCH_HEADER_BYTES, start), end_at(self._file, start)
        if len(header) < BATCH_HEADER_BYTES or end <= self._end:
            return False
        if BATCH["base_offset"].of(header) != reached + 1:
            return False
        if header[BATCH["magic"].place] < 2:
            return self._has_lengths(start)
        size, left = end - start, min(self._end - start, BATCH_BYTES_MAX)
        return end_by_records(self._file.pread(left, start)) == size

    def _known_batch(self, start: int) -> Piece | None:
        """Return the first batch behind `start` that an entry of the index leads to."""
        if self._known is not None and self._known.start > start:
            return self._known
        self._known = None
        offsets, positions = self._entries
        while self._next_entry < len(positions):
            number, self._next_entry = self._next_entry, self._next_entry + 1
            position = int(positions[number])
            if position <= start:
                continue
            end = end_at(self._file, position)
            if not position < end <= self._end:
                continue
            self._left_of_entries -= end - position
            if self._left_of_entries < 0:
                return None
            found = self._checked_at(position, end)
            if found is not None and found.first_offset <= offsets[number] <= found.last_offset:
                self._known = found
                return found
        return None

    def _search(self, start: int, end: int) -> Piece | None:
        """Return the first batch with a right checksum in [start, end).

        If too much looks like a batch, return the bytes that were not searched.
        """
        at, piece_bytes = start, FIRST_SEARCH_BYTES
        while at < end:
            data = self._file.pread(piece_bytes + BATCH_HEADER_BYTES - 1, at)
            for row in starts_by_size(data, min(piece_bytes, end - at), end - at):
                if not self._has_lengths(at + row):
                    continue
                if self._left < 0:
                    return Piece(PieceKind.UNSEARCHED, at + row, self._end)
                found = self._batch_at(at + row)
                if found is not None:
                    return found
                if self._left < 0:
                    return Piece(PieceKind.UNSEARCHED, at + row, self._end)
            at = behind_zeros(self._file, data, at + piece_bytes, end)
            piece_bytes = min(2 * piece_bytes, SEARCH_PIECE_BYTES)
        return None

    def _has_lengths(self, position: int) -> bool:
        """Return whether a message of magic 0 or 1 is as long as its key and its value say.

        Bytes of a magic 2 header look like the beginning of one with many megabytes.
        """
        is_new = self._file.pread(1, position + 16) == b"\2"
        return is_new or end_by_lengths(self._file, position) == end_at(self._file, position)

    def _batch_at(self, position: int) -> Piece | None:
        """Return the batch at a position, if it is sound; its checksum counts as searched."""
        end = end_at(self._file, position)
        if not position < end <= self._end:
            return None  # a wrong size costs no checksum
        self._left -= end - position
        return self._checked_at(position, end) if self._left >= 0 else None

    def _checked_at(self, position: int, end: int) -> Piece | None:
        table = header_at(self._file, position, end)
        found = None if table is None else piece_of(PieceKind.SOUND, table)
        if found is None or table is None or found.first_offset > found.last_offset:
            return None
        is_loaded = not may_not_load(table)[0] or is_loadable(record_batch(self._file, table[0]))
        return found if is_loaded else found._replace(kind=PieceKind.UNLOADABLE)

    # --- which of them belong where they lie

    def _judged(self) -> Iterator[Piece]:
        """Yield the batches that were found: those whose offsets rise are sound."""
        reaches = self._zeros_from
        for run in reversed(self._runs):  # sizes lead from it to the end of the log
            if run.piece.end != reaches:
                break
            run.is_led_to, reaches = True, run.piece.start
        self._runs = [*self._with_doubtful_ends()][::-1]
        runs = [part for run, bounds in zip(self._runs, self._bounds(), strict=True)
                for part in self._parts(run, *bounds)]  # fmt: skip
        weights = self._weights(runs)
        able = [number for number, run in enumerate(runs) if self._may_be_sound(run.piece)]
        chain = heaviest_chain(
            [runs[number].piece.first_offset for number in able],
            [runs[number].piece.last_offset for number in able],
            [weights[number] for number in able],
        )
        sound = {able[number] for number in chain}
        held: _Run | None = None
        for number, run in enumerate(runs):
            if number not in sound and run.piece.kind is PieceKind.SOUND:
                run.piece = run.piece._replace(kind=PieceKind.MISPLACED)
            if held is not None and held.piece.goes_on_in(run.piece):
                held = held.joined(run)
                continue
            if held is not None:
                yield from held.without_odd_end()
            held = run
        if held is not None:
            yield from held.without_odd_end()

    def _with_doubtful_ends(self) -> Iterator[_Run]:
        """Yield the runs from the last to the first.

        A last batch that a wrong bit of its base offset sets against many batches behind it is a
        run of its own, and that sizes lead to it no longer counts.
        """
        many: Piece | None = None
        befores = [self._reached, *(run.piece.last_offset for run in self._runs)]
        for run, before in zip(reversed(self._runs), befores[-2::-1], strict=True):
            piece, last = run.piece, run.last
            before = run.before_last if piece.batches > 1 else before
            is_sound = piece.kind is PieceKind.SOUND
            if is_sound and many is not None and self._is_against(last, before, many):
                table = self._headers_of(piece)
                yield _Run.of(PieceKind.SOUND, table[-1:], is_led_to=False)
                if len(table) > 1:
                    yield _Run.of(PieceKind.SOUND, table[:-1], is_led_to=run.is_led_to)
            else:
                yield run
            if is_sound and piece.batches > MANY_BATCHES_MIN:
                many = piece

    def _is_against(self, batch: Piece, before: int, many: Piece) -> bool:
        """Return whether a batch has offsets of many behind it, and one bit less makes it fit."""
        behind, reach = many.first_offset, batch.last_offset
        room = behind - (reach - batch.first_offset)
        bits = (1 << bit for bit in range(63) if batch.first_offset >> bit & 1)
        if reach < behind or not any(before < batch.first_offset - bit < room for bit in bits):
            return False
        firsts = first_offsets(self._headers_of(many))
        return int(np.count_nonzero(firsts <= reach)) > MANY_BATCHES_MIN

    def _headers_of(self, piece: Piece) -> BatchTable:
        return read_batch_headers(self._file, piece.start, piece.end).table

    def _weights(self, runs: list[_Run]) -> list[int]:
        """Return how much speaks for each run.

        That is that sizes lead to it; then its batches; then the runs before it and behind it,
        where no offset is left out between them.
        """
        goes_on = [
            one.piece.goes_on_in(other.piece)
            and one.piece.last_offset + 1 == other.piece.first_offset
            for one, other in pairwise(runs)
        ]
        begins = bool(runs) and runs[0].piece.first_offset == self._reached + 1
        return [
            (3 * run.piece.batches + before + behind) << 40 * run.is_led_to
            for run, before, behind in zip(
                runs, [begins, *goes_on], [*goes_on, False], strict=False
            )
        ]

    def _may_be_sound(self, piece: Piece) -> bool:
        is_sound = piece.kind is PieceKind.SOUND
        return is_sound and self._reached < piece.first_offset <= piece.last_offset < self._limit

    def _bounds(self) -> list[tuple[int, int]]:
        """Return for each run the highest offset before it, and the lowest one behind it."""
        pieces = [run.piece for run in self._runs]
        before = accumulate((one.last_offset for one in pieces), max, initial=self._reached)
        behind = [*accumulate((one.first_offset for one in reversed(pieces)), min,
                              initial=self._limit)]  # fmt: skip
        return list(zip(list(before)[:-1], behind[-2::-1], strict=True))

    def _parts(self, run: _Run, before: int, behind: int) -> Iterator[_Run]:
        """Yield a run in parts, some of them sound, others misplaced.

        That is the run itself, where nothing contradicts it.
        """
        piece = run.piece
        is_alone = before < piece.first_offset and piece.last_offset < behind
        if is_alone or piece.kind is not PieceKind.SOUND or piece.batches == 1:
            yield run
            return
        table = self._headers_of(piece)
        firsts, lasts = first_offsets(table), table["last_offset"]
        is_free = (before < firsts) & (lasts < behind)
        is_new = np.ones(len(table), np.bool_)
        is_new[1:] = (is_free[1:] != is_free[:-1]) | ~is_free[1:] & (firsts[1:] != lasts[:-1] + 1)
        starts = np.flatnonzero(is_new).tolist()
        for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
            yield _Run.of(PieceKind.SOUND, table[start:end], is_led_to=run.is_led_to)
