# SPDX-License-Identifier: Apache-2.0
"""The rows of a log while they are being decided, and what becomes of each in the end."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from segproof.integers import INT64_MAX
from segproof.rocketmq.message import BLANK_BYTES
from segproof.stretches.rocketmq.facts import (
    NO_TIME,
    Facts,
    Int64s,
    Range,
    Units,
    last_times,
    place_mark,
    place_marks,
    touch_in_claims,
)

Bools = NDArray[np.bool_]
EVERYWHERE: Range = (0, INT64_MAX)


class Fate(IntEnum):
    """What becomes of the messages of a row."""

    UNDECIDED = -1
    KEPT = 0
    """Kept where they lie."""
    RESTORED = 1
    """Kept where they lie; the offset that they say is put right."""
    MOVED = 2
    """Kept at the offset that they say."""
    COPY = 3
    """Left: the same messages are kept."""
    FILLER = 4
    """Left: an earlier salvage put them in the place of lost ones."""
    CUT = 5
    """Left: an earlier recovery has cut them off the log."""
    INSIDE = 6
    """Left: they are a part of the body of a broken message."""
    ASIDE = 7
    """Set aside: what is kept contradicts them, or nothing tells their place."""


KEEPING = (Fate.KEPT, Fate.RESTORED, Fate.MOVED)


class GapKind(StrEnum):
    """What lies where no message is kept."""

    BROKEN = "broken"
    """Bytes that are no message."""
    ZEROS = "zeros"
    """Zeros up to the end of a file: of the last one as it was made, else lost messages."""
    MISSING = "missing"
    """No file, or the end of a file that is too short."""
    UNSEARCHED = "unsearched"
    """Bytes behind damage that were not searched: too much of them looks like messages."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The offsets [start, end) of the log, in one file, where no message is kept."""

    kind: GapKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Placement:
    """What becomes of each row of some facts, and of each unit."""

    facts: Facts
    fates: NDArray[np.int8]
    rules: NDArray[np.int8]
    """For each row the index in RULES of the rule that decided."""
    offsets: Int64s
    """For each row the offset in the log that its first message gets, if it is kept."""
    begins: Int64s
    """For each file the offset at which it begins, by its messages; -1 if it has no place: where
    it begins none can, another one begins, or it has copies of kept messages alone."""
    kept: Int64s
    """The rows that are kept, in the order of their offsets."""
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a decision needs and the facts lack."""

    rows: tuple[int, ...] = ()
    """Rows of several messages: wanted is a row for each message."""
    units: tuple[Range, ...] = ()
    """Ranges of the log: wanted are all units that lead there. In order, apart from each other."""
    places: frozenset[int] = frozenset()
    """Places in queues, as `place_mark` gives them: wanted are the units there."""


class Taken:
    """The offsets of the log that messages have so far."""

    def __init__(self) -> None:
        self._starts = self._ends = self._rows = np.empty(0, np.int64)
        self._later: list[tuple[int, int, int]] = []

    def begin(self, starts: Int64s, ends: Int64s, rows: Int64s) -> None:
        """Add the first ranges, which do not overlap; once."""
        order = np.argsort(starts, kind="stable")
        self._starts, self._ends, self._rows = starts[order], ends[order], rows[order]

    def add(self, start: int, end: int, row: int) -> None:
        """Add one more range, which overlaps no other."""
        insort(self._later, (start, end, row))

    def over(self, start: int, end: int) -> list[int]:
        """Return the rows that have some of the offsets [start, end)."""
        first = int(np.searchsorted(self._ends, start, "right"))
        stop = int(np.searchsorted(self._starts, end, "left"))
        rows: list[int] = self._rows[first:stop].tolist()
        at = bisect_left(self._later, (start, -1, -1))
        at -= at > 0 and self._later[at - 1][1] > start
        while at < len(self._later) and self._later[at][0] < end:
            rows.append(self._later[at][2])
            at += 1
        return rows

    def rows_before(self, offset: int) -> Iterator[int]:
        """Yield the rows that end at an offset or before it, the last one first."""
        first = int(np.searchsorted(self._ends, offset, "right")) - 1
        later = bisect_left(self._later, (offset, -1, -1)) - 1
        while first >= 0 or later >= 0:
            if later < 0 or (first >= 0 and self._starts[first] > self._later[later][0]):
                yield int(self._rows[first])
                first -= 1
            else:
                yield self._later[later][2]
                later -= 1

    def rows_after(self, offset: int) -> Iterator[int]:
        """Yield the rows that begin at an offset or after it, the first one first."""
        first = int(np.searchsorted(self._starts, offset))
        later = bisect_left(self._later, (offset, -1, -1))
        while first < len(self._starts) or later < len(self._later):
            is_first = first < len(self._starts)
            if later == len(self._later) or (
                is_first and self._starts[first] < self._later[later][0]
            ):
                yield int(self._rows[first])
                first += 1
            else:
                yield self._later[later][2]
                later += 1

    def touches(self, start: int, end: int) -> bool:
        """Return whether a range ends at `start` or begins at `end`."""
        before, after = self.over(start - 1, start), self.over(end, end + 1)
        return bool(before) or self._begins(after, end)

    def _begins(self, rows: list[int], offset: int) -> bool:
        found = int(np.searchsorted(self._starts, offset))
        is_first = found < len(self._starts) and self._starts[found] == offset
        at = bisect_left(self._later, (offset, -1, -1))
        is_later = at < len(self._later) and self._later[at][0] == offset
        return bool(rows) and bool(is_first or is_later)


class Desk:
    """The rows of a log while they are being decided."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.rows, self.units = facts, facts.rows, facts.units
        self.rule = 0
        count = len(self.rows)
        self.sizes: Int64s = self.rows["end"] - self.rows["start"]
        self.said: Int64s = self.rows["said"].astype(np.int64)
        self.files: Int64s = self.rows["file"].astype(np.int64)
        self.fates = np.full(count, Fate.UNDECIDED, np.int8)
        self.rules = np.zeros(count, np.int8)
        self.offsets = self.said.copy()
        self.begins = np.array([one.start for one in facts.files], np.int64)
        self.in_step = np.ones(len(facts.files), np.bool_)
        """For each file, whether a file of the log can begin where it begins."""
        self.name_rule = 0
        """The rule that has settled where files begin."""
        self.settled: Int64s = np.empty(0, np.int64)
        """Where the files of the log begin, in order; known after `settle`."""
        self.taken = Taken()
        self._row_needs: set[int] = set()
        self._unit_needs: list[Range] = []
        self._place_needs: set[int] = set()
        self._ends = np.array([end for _, end in facts.known], np.int64)
        self._marks: NDArray[np.uint64] | None = None
        self._order: Int64s = np.empty(0, np.int64)
        self._set_runs()

    def _set_runs(self) -> None:
        """Find the runs: rows that touch and say one begin of their file."""
        one, two = self.rows[:-1], self.rows[1:]
        is_cut = (one["end"] != two["start"]) | ~touch_in_claims(one, two)
        firsts = np.flatnonzero(np.append(True, is_cut)) if len(self.rows) else np.empty(0, int)
        self.run_firsts: Int64s = firsts.astype(np.int64)
        self.run_stops: Int64s = np.append(firsts[1:], len(self.rows)).astype(np.int64)
        self.run_stops = self.run_stops[: len(firsts)]
        counts = self.rows["messages"].astype(np.int64)
        self.run_messages = np.add.reduceat(counts, firsts) if len(firsts) else counts
        self.run_of = np.repeat(np.arange(len(firsts)), self.run_stops - self.run_firsts)

    def settle(self, begins: Int64s, in_step: Bools) -> None:
        """Set where files begin, and where a file of the log can begin."""
        self.begins, self.in_step, self.name_rule = begins, in_step, self.rule
        self.settled = np.sort(begins[in_step & (begins >= 0)])

    # --- what is asked

    def lies(self) -> Int64s:
        """Return the offset at which each row lies, where its file begins by its messages."""
        return np.asarray(self.begins[self.files] + self.rows["start"])

    def claims(self) -> Int64s:
        """Return where each row says that its file begins."""
        return np.asarray(self.said - self.rows["start"])

    def times_of(self, first: int, stop: int) -> int:
        """Return the middle one of the last store times of the rows [first, stop); of two, the
        later one; -1 without one."""
        found = last_times(self.rows, np.array([first]), np.array([stop - 1]))[0]
        times = sorted(found[found != NO_TIME].tolist())
        return int(times[len(times) // 2]) if times else -1

    def evidence(self, start: int, end: int) -> Counter[int]:
        """Count by `Met` the units at hand that lead to [start, end)."""
        first, stop = np.searchsorted(self.units["offset"], [start, end])
        return Counter(self.units["met"][first:stop].tolist())

    def units_in(self, start: int, end: int) -> Units:
        """Return all units that lead to [start, end); note where they are not at hand."""
        at = int(np.searchsorted(self._ends, start, "right"))
        is_known = at < len(self._ends) and self.facts.known[at][0] <= start
        if not (is_known and end <= self._ends[at]):
            self._unit_needs.append((start, end))
        first, stop = np.searchsorted(self.units["offset"], [start, end])
        return self.units[first:stop]

    def unit_at(self, queue: int, number: int) -> Units:
        """Return the units at a place of a queue; note where they are not at hand."""
        if self._marks is None:
            marks = place_marks(self.units)
            self._order = np.argsort(marks, kind="stable")
            self._marks = marks[self._order]
        mark = place_mark(queue, number)
        if mark not in self.facts.asked and self.facts.known[:1] != (EVERYWHERE,):
            self._place_needs.add(mark)
        first = int(np.searchsorted(self._marks, np.uint64(mark)))
        stop = int(np.searchsorted(self._marks, np.uint64(mark), "right"))
        return self.units[self._order[first:stop]]

    def begins_of(self, offsets: Int64s) -> Int64s:
        """Return where the files begin in which offsets lie, those that are missing too."""
        size, begins = self.facts.file_bytes, self.settled
        if not len(begins):
            return offsets - offsets % size
        found = begins[np.maximum(np.searchsorted(begins, offsets, "right") - 1, 0)]
        is_in = (found <= offsets) & (offsets < found + size)
        return np.asarray(np.where(is_in, found, offsets - (offsets - begins[0]) % size))

    def file_begin(self, row: int) -> int | None:
        """Return where the file begins in which the offset that a row says lies, if that file has
        room for the row and for a blank end after it."""
        said = int(self.said[row])
        if not len(self.settled) or said < 0:
            return None
        begin = int(self.begins_of(self.said[row : row + 1])[0])
        has_room = said + int(self.sizes[row]) + BLANK_BYTES <= begin + self.facts.file_bytes
        return begin if begin >= 0 and has_room else None

    # --- what is decided

    def decide(self, rows: Int64s | list[int], fate: Fate) -> None:
        """Give rows a fate; those that are kept one by one get their offsets here."""
        self.fates[rows], self.rules[rows] = fate, self.rule

    def keep(self, row: int, fate: Fate, offset: int) -> None:
        """Keep a row at an offset."""
        self.decide([row], fate)
        self.offsets[row] = offset
        self.taken.add(offset, offset + int(self.sizes[row]), row)

    def undecided(self) -> Int64s:
        """Return the rows without a fate."""
        return np.flatnonzero(self.fates == Fate.UNDECIDED)

    def need(self, rows: Iterable[int]) -> None:
        """Ask for the messages of rows, as far as they are rows of several."""
        self._row_needs.update(row for row in rows if self.rows["messages"][row] > 1)

    def needs(self) -> Needs | None:
        """Return what the rules so far lack."""
        if not (self._row_needs or self._unit_needs or self._place_needs):
            return None
        ranges = list[Range]()
        for start, end in sorted(self._unit_needs):
            if ranges and start <= ranges[-1][1]:
                ranges[-1] = ranges[-1][0], max(ranges[-1][1], end)
            else:
                ranges.append((start, end))
        return Needs(tuple(sorted(self._row_needs)), tuple(ranges), frozenset(self._place_needs))

    def placement(self) -> Placement:
        """Return what was decided."""
        kept = np.flatnonzero(np.isin(self.fates, KEEPING))
        kept = kept[np.argsort(self.offsets[kept], kind="stable")].astype(np.int64)
        self.begins = np.where(self.in_step, self.begins, -1)
        self.begins[self._copies(kept)] = -1
        return Placement(
            self.facts, self.fates, self.rules, self.offsets, self.begins, kept,
            tuple(self._gaps(kept)),
        )  # fmt: skip

    def _copies(self, kept: Int64s) -> list[int]:
        """Return the files with nothing but copies of messages that are kept elsewhere, if no unit
        and no full last file tells that a file of their name was replaced."""
        found = np.unique(self.files[self.fates == Fate.COPY]).tolist()
        if not (found and len(kept)):
            return []
        owners = self.begins_of(self.offsets[kept[[0, -1]]])
        first, last = (int(one) for one in owners)
        ends = [one for one, begin in zip(self.facts.files, self.begins, strict=True)
                if begin == last]  # fmt: skip
        is_open = bool(ends) and ends[0].blank_from is None
        is_told, copies = self._is_led_into(last), list[int]()
        for number in filter(self._is_copy, found):
            begin = int(self.begins[number])
            is_sure = is_told or (begin > last and is_open)
            if first < begin < last or (is_sure and not self._is_led_into(begin)):
                copies.append(number)
        return copies

    def _is_led_into(self, begin: int) -> bool:
        return self.evidence(begin, begin + self.facts.file_bytes).total() > 0

    def _is_copy(self, number: int) -> bool:
        rows, one = np.flatnonzero(self.files == number), self.facts.files[number]
        starts, ends = self.rows["start"][rows], self.rows["end"][rows]
        is_filled = starts[0] == 0 and (starts[1:] == ends[:-1]).all()
        is_cut = any(at == ends[-1] and one.size < end for at, end in one.torn)
        is_filled = is_filled and (is_cut or ends[-1] in (one.blank_from, one.zeros_from))
        return bool(is_filled and (self.fates[rows] == Fate.COPY).all())

    # --- gaps

    def _gaps(self, kept: Int64s) -> Iterable[Gap]:
        placed = sorted(
            (int(self.begins[number]), number)
            for number in range(len(self.begins))
            if self.begins[number] >= 0
        )
        if not placed:
            return
        starts = self.offsets[kept]
        ends = starts + self.sizes[kept]
        last = max(placed[-1][0] + self.facts.files[placed[-1][1]].size, *ends[-1:].tolist(), 0)
        begins = np.append(min([placed[0][0], *starts[:1].tolist()]), ends)
        stops = np.append(starts, last)
        for at in np.flatnonzero(begins < stops).tolist():
            yield from self._between(int(begins[at]), int(stops[at]), placed)

    def _between(self, at: int, stop: int, placed: list[tuple[int, int]]) -> Iterable[Gap]:
        """Yield the gaps between two kept rows, file by file."""
        size = self.facts.file_bytes
        first = max(0, bisect_left(placed, (at - size + 1, -1)))
        for begin, number in placed[first:]:
            if begin >= stop:
                break
            if at < begin:
                yield Gap(GapKind.MISSING, at, begin)
            yield from self._in_file(max(at, begin), min(stop, begin + size), begin, number)
            at = max(at, min(stop, begin + size))
        if at < stop:
            yield Gap(GapKind.MISSING, at, stop)

    def _in_file(self, at: int, stop: int, begin: int, number: int) -> Iterable[Gap]:
        one, size = self.facts.files[number], self.facts.file_bytes
        is_to_end = stop == begin + min(size, one.size) or stop == begin + size
        if one.blank_from is not None and is_to_end:
            stop = min(stop, begin + one.blank_from)
        zeros_from = self._left_empty(number) if is_to_end else one.zeros_from
        unsearched = one.size if one.unsearched_from is None else one.unsearched_from
        marks = (
            (GapKind.BROKEN, begin + min(unsearched, zeros_from)),
            (GapKind.UNSEARCHED, begin + zeros_from),
            (GapKind.ZEROS, begin + one.size),
            (GapKind.MISSING, begin + size),
        )
        for kind, end in marks:
            if at < min(stop, end):
                yield Gap(kind, at, min(stop, end))
                at = min(stop, end)

    def _left_empty(self, number: int) -> int:
        """Return from where on a file has zeros, or messages that are kept elsewhere."""
        at = self.facts.files[number].zeros_from
        first = int(np.searchsorted(self.files, number))
        row = int(np.searchsorted(self.files, number, "right")) - 1
        while row >= first and self.rows["end"][row] == at and self._is_elsewhere(row):
            at = int(self.rows["start"][row])
            row -= 1
        return at

    def _is_elsewhere(self, row: int) -> bool:
        is_moved = self.offsets[row] != self.begins[self.files[row]] + self.rows["start"][row]
        return bool(self.fates[row] in (Fate.MOVED, Fate.COPY) and is_moved)
