# SPDX-License-Identifier: Apache-2.0
"""The rows of a partition while they are being decided, and what rules ask of them.

Laws: BATCH-3, EPOCH-1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from segproof.integers import INT64_MAX
from segproof.stretches.kafka.facts import (
    EDGE_BATCHES,
    Bools,
    Facts,
    Int64s,
    Part,
    Reach,
    Rows,
)

PIECES = 16
"""Pieces into which a stretch is cut whose offsets another stretch has too. The pieces that still
meet the other one are cut again: so of a million batches, those that meet are found in five rounds,
and each round reads headers only."""


KIND = ["epoch", "magic"]
"""What all batches of a leader share."""
SPARSE_PAIRS = 8
"""Of a compacted log more than one of so many batches has offsets left out before it. A few wrong
offsets or blocks leave fewer, but in a short log."""
RUN_MAX = 1 << 20
"""Batches of a run that count, at most. With entries a run weighs less than 2^21, so a sum over
2^42 batches is an int64."""


class Fate(IntEnum):
    """What becomes of a batch."""

    UNDECIDED = -1
    """No rule has decided so far."""
    KEPT = 0
    """The batch stays where it lies, byte for byte."""
    RESTORED = 1
    """The batch stays where it lies, and gets the base offset that its place states."""
    MOVED = 2
    """The batch goes to the place that its offsets state."""
    ASIDE = 3
    """The batch goes into a file of its own, which no broker reads."""
    INSIDE = 4
    """As ASIDE, but its bytes count as broken: mostly it is a part of a value of a batch that the
    log cuts off."""


KEPT_FATES = (Fate.KEPT, Fate.RESTORED, Fate.MOVED)


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that no kept batch has, where bytes are lost too."""

    before: int | None
    """The row before the gap in the order of offsets; None if nothing before it is kept."""
    after: int | None
    """The row after it; None at the end of the partition."""
    first_lost: int
    last_lost: int | None
    """None at the end of the partition, unless an index states how far the log went."""


@dataclass(frozen=True, slots=True)
class Hole:
    """The kept rows around some offsets, and what is missing between these rows."""

    before: int | None
    after: int | None
    first: int
    last: int
    """The missing offsets are [first, last]; without a row on one side, as far as logs can go."""


@dataclass(frozen=True, slots=True)
class Group:
    """Kept rows that touch, in the order of their offsets."""

    rows: list[int]
    is_at_damage: bool
    """Whether bytes are lost beside it."""


def parts_that_meet(rows: Rows) -> tuple[Part, ...]:
    """Return how stretches have to be cut, so that no other row begins or ends inside one.

    After that a stretch lies wholly before or after any other row in the order of offsets, or
    wholly inside a single batch's. So a rule decides all of its batches alike.
    """
    is_long = rows["batches"] > 1
    if not is_long.any():
        return ()
    values = np.concatenate([rows["first"], rows["last"]])
    order = np.argsort(values, kind="stable")
    values, is_of_long = values[order], np.tile(is_long, 2)[order]
    numbers = np.flatnonzero(is_long)
    starts = np.searchsorted(values, rows["first"][numbers], "left")
    ends = np.searchsorted(values, rows["last"][numbers], "right")
    met = np.flatnonzero(ends - starts > 2)  # two are its own
    parts = list[Part]()
    for number, start, end in zip(
        numbers[met].tolist(), starts[met].tolist(), ends[met].tolist(), strict=True
    ):
        own, batches = rows[number], int(rows["batches"][number])
        near = values[start:end]
        is_own = np.isin(near, (own["first"], own["last"]))
        longs = int(np.count_nonzero(is_of_long[start:end]))
        offsets = np.unique(near[~is_own])
        twice = [  # another row has the same first or last offset
            int(own[name]) for name in ("first", "last")
            if np.count_nonzero(near == own[name]) > 1
        ]  # fmt: skip
        pieces = min(PIECES, batches) if longs > 2 else 1
        parts.append(Part(number, tuple(sorted({*offsets.tolist(), *twice})), pieces=pieces))
    return tuple(parts)


def _inserted(values: Int64s, places: Int64s, added: Int64s) -> Int64s:
    """Return values with others at rising places; for one place this takes no pass in Python."""
    at = int(places[0])
    if at == places[-1]:
        return np.concatenate([values[:at], added, values[at:]])
    return np.insert(values, places, added)


def other_epochs(facts: Facts) -> Bools:
    """Return the rows of an epoch that had other offsets, as the checkpoint of epochs states.

    A start of the log that is deleted raises the first offset of the first epoch. A checkpoint that
    contradicts as many bytes as it confirms is another log's. A begin that differs from the one in
    the log, where batches go on from the epoch before, is wrong.
    """
    rows = facts.rows
    if not facts.epochs or not len(rows):
        return np.zeros(len(rows), np.bool_)
    epochs, begins = np.array(facts.epochs, np.int64).T
    # Where sizes lead over the begin of an epoch, the log tells where it is.
    follows = (rows["last"][:-1] + 1 == rows["first"][1:]) & (
        rows["epoch"][1:] > rows["epoch"][:-1]
    )
    follows &= (rows["end"][:-1] == rows["start"][1:]) | (rows["log"][:-1] != rows["log"][1:])
    told = rows[1:][follows]
    at = np.searchsorted(epochs, told["epoch"])
    known = np.flatnonzero((at < len(epochs)) & (np.append(epochs, -1)[at] == told["epoch"]))
    is_wrong = begins[at[known]] != told["first"][known]
    is_right = np.isin(np.arange(len(epochs)), at[known][is_wrong], invert=True)
    epochs, begins = epochs[is_right], begins[is_right]
    if not len(epochs):
        return np.zeros(len(rows), np.bool_)
    ends = np.append(begins[1:], INT64_MAX)
    at = np.minimum(np.searchsorted(epochs, rows["epoch"]), len(epochs) - 1)
    is_known = (epochs[at] == rows["epoch"]) & (rows["magic"] == 2)
    is_other: Bools = (at > 0) & (rows["first"] < begins[at]) | (rows["last"] >= ends[at])
    is_other &= is_known
    sizes = rows["end"] - rows["start"]
    if sizes[is_other].sum() >= sizes[is_known & ~is_other].sum():
        return np.zeros_like(is_other)
    return is_other


class Desk:
    """The rows of a partition, their fates so far, and those that are kept so far."""

    def __init__(self, facts: Facts) -> None:
        self.logs, self.rows = facts.logs, facts.rows
        count = len(self.rows)
        self.rule = 0
        """The index of the rule that is deciding."""
        self.asked: dict[int, Part] = {}
        """What a rule needs of the inside of stretches, by row. Its decisions count for nothing
        then: it is asked again."""
        self.fates = np.full(count, Fate.UNDECIDED, np.int8)
        self.rules = np.zeros(count, np.int8)
        self.firsts: Int64s = self.rows["first"].copy()
        self.spans: Int64s = self.rows["last"] - self.rows["first"]
        self.kept: Int64s = np.empty(0, np.int64)
        """Rows that are kept, in the order of their offsets."""
        self.kept_firsts: Int64s = np.empty(0, np.int64)
        """The first offset that each of them gets."""
        self._compacted: dict[int, bool] = {}
        """For each rule that has asked, whether the partition was compacted."""
        self.suspects: dict[int, int] = {}
        """Rows whose place states another base offset, and that offset."""
        self.copies: set[int] = set()
        """Rows that were set aside as copies of kept ones."""
        self.log_starts = np.cumsum([0, *(log.size for log in self.logs)])
        self.begins: Int64s = self.log_starts[self.rows["log"]] + self.rows["start"]
        """The position of each row among the bytes of all logs; they rise."""
        self._zeros_from = np.array([log.zeros_from for log in self.logs], np.int64)
        self._indexed_to = np.array([log.indexed_to for log in self.logs], np.int64)
        self.nexts = np.array(
            [-1 if log.next_base_offset is None else log.next_base_offset for log in self.logs],
            np.int64,
        )
        self.is_other_epoch = other_epochs(facts)
        """Rows that the checkpoint of leader epochs contradicts."""
        self.is_keyless: Bools = self.rows["is_keyless"].copy()
        """Rows after which no offset can be missing without a byte."""
        self._by_first = np.argsort(self.rows["first"], kind="stable")
        self._stated = self.rows["first"][self._by_first]
        self._joints = self._touching()

    # --- deciding

    def decide(self, rows: Int64s | list[int], fate: Fate) -> None:
        """Give rows their fate, by the rule that is at work."""
        rows = np.asarray(rows, np.int64)
        self.fates[rows], self.rules[rows] = fate, self.rule
        if fate in KEPT_FATES and len(rows):
            rows = rows[np.argsort(self.firsts[rows], kind="stable")]
            firsts = self.firsts[rows]
            places = np.searchsorted(self.kept_firsts, firsts, "right")
            self.kept = _inserted(self.kept, places, rows)
            self.kept_firsts = _inserted(self.kept_firsts, places, firsts)

    def restore(self, rows: list[int], firsts: list[int]) -> None:
        """Keep rows with other first offsets than they state."""
        self.firsts[rows] = firsts
        self._joints = self._touching()
        self.decide(rows, Fate.RESTORED)

    def set_aside(self, rows: Int64s | list[int]) -> None:
        """Set rows aside that were kept so far."""
        if not len(rows):
            return
        is_left = ~np.isin(self.kept, rows)
        self.kept, self.kept_firsts = self.kept[is_left], self.kept_firsts[is_left]
        self.decide(rows, Fate.ASIDE)

    def undecided(self) -> list[int]:
        """Return the rows without a fate, in their order."""
        return np.flatnonzero(self.fates == Fate.UNDECIDED).tolist()

    def undecided_in(self, hole: Hole) -> Int64s:
        """Return the rows without a fate whose offsets all lie in a hole, in the order of these."""
        bounds = np.searchsorted(self._stated, (hole.first, hole.last + 1)).tolist()
        inside = self._by_first[slice(*bounds)]
        is_left = self.fates[inside] == Fate.UNDECIDED
        found: Int64s = inside[is_left & (self.rows["last"][inside] <= hole.last)]
        return found

    # --- one row, and two

    def last(self, row: int) -> int:
        """Return the last offset of a row, with the base offset that it gets."""
        return int(self.firsts[row] + self.spans[row])

    def bytes_of(self, row: int) -> int:
        """Return the number of bytes of a row."""
        return int(self.rows["end"][row] - self.rows["start"][row])

    def content_of(self, row: int) -> tuple[int, int, int]:
        """Return checksum, bytes and first offset: equal for copies of a batch."""
        return int(self.rows["mark"][row]), self.bytes_of(row), int(self.rows["first"][row])

    def begin_of(self, row: int) -> int:
        """Return the position of a row among the bytes of all logs."""
        return int(self.begins[row])

    def end_of(self, row: int) -> int:
        """Return where a row ends among the bytes of all logs."""
        return self.begin_of(row) + self.bytes_of(row)

    def ends_log(self, rows: Int64s) -> Bools:
        """Return which rows end their log: only zeros follow, and the index goes no further."""
        own = self.rows[rows]
        ends: Bools = own["end"] >= self._zeros_from[own["log"]]
        ends &= self._indexed_to[own["log"]] <= (self.firsts + self.spans)[rows]
        return ends

    def _touching(self) -> Bools:
        """Return which rows touch the one after them, in one log or across the border of two."""
        one, two = self.rows[:-1], self.rows[1:]
        is_same: Bools = (one["log"] == two["log"]) & (one["end"] == two["start"])
        is_next: Bools = (one["log"] + 1 == two["log"]) & (two["start"] == 0)
        return np.append(is_same | is_next & self.ends_log(np.arange(len(one))), False)

    def touch(self, rows: Int64s, others: Int64s) -> Bools:
        """Return where no byte is lost between two rows, in one log or across the border of two."""
        touch: Bools = (rows + 1 == others) & self._joints[rows]
        return touch

    def touches(self, row: int, other: int) -> bool:
        """Return whether no byte is lost between two rows."""
        return row + 1 == other and bool(self._joints[row])

    @cached_property
    def is_led_from_begin(self) -> Bools:
        """Whether no byte is lost before a row in its log."""
        rows = self.rows
        is_first = np.append(True, rows["log"][1:] != rows["log"][:-1])[: len(rows)]
        is_lost = rows["start"] != np.where(
            is_first, 0, np.append(0, rows["end"][:-1])[: len(rows)]
        )
        lost = np.cumsum(is_lost)
        before = np.maximum.accumulate(np.where(is_first, lost - is_lost, 0))
        is_led: Bools = lost == before
        return is_led

    @cached_property
    def run_weights(self) -> Int64s:
        """How much is said for the batches around each row that touch and leave no offset out.

        All are of one epoch, and one may be there twice. If one of SPARSE_PAIRS leaves offsets out,
        compaction did it, and batches go on if their offsets rise. More batches are more, and
        entries that lead to them outweigh all. Of two runs that have each other's offsets the one
        of less weight is foreign.
        """
        rows, numbers = self.rows, np.arange(len(self.rows))
        goes_on = self.touch(numbers[:-1], numbers[1:])
        is_same = (rows["mark"][:-1] == rows["mark"][1:]) & (
            rows["first"][:-1] == rows["first"][1:]
        )
        apart = rows["first"][1:] - rows["last"][:-1] - 1
        leaps = int((goes_on & (apart > 0)).sum()) + int(rows["leaps"].sum())
        is_sparse = SPARSE_PAIRS * leaps > int(rows["batches"].sum())
        goes_on &= is_same | (apart == 0) | (is_sparse & (apart > 0))
        goes_on &= rows["epoch"][:-1] == rows["epoch"][1:]
        run = np.cumsum(np.append(True, ~goes_on)[: len(rows)]) - 1
        batches = np.minimum(np.bincount(run, rows["batches"]), RUN_MAX - 1)
        is_led = np.bincount(run, rows["led"]) > 0
        weights: Int64s = (batches + RUN_MAX * is_led).astype(np.int64)[run]
        return weights

    @cached_property
    def evidence(self) -> NDArray[np.int8]:
        """How good the evidence is that a row lies in its place.

        2: an index entry states its offset; 1: sizes or an index lead to it, and it is not below
        the name of its log; else 0. A name above all that lies in the log tells nothing, unless
        other logs that lie within their names have these offsets: two of them, or as many bytes.
        """
        rows = self.rows
        bases = np.array([log.base_offset for log in self.logs], np.int64)[rows["log"]]
        is_led, sizes = rows["reach"] > Reach.SEARCH, rows["end"] - rows["start"]
        is_named = (rows["first"] >= bases) & is_led
        has_named = np.bincount(rows["log"], is_named, len(self.logs)) > 0
        is_believed = is_named.copy()
        for log in np.unique(rows["log"][~has_named[rows["log"]]]).tolist():
            is_own = (rows["log"] == log) & is_led
            first = rows["first"].min(where=is_own, initial=INT64_MAX)
            last = rows["last"].max(where=is_own, initial=-1)
            takers = np.unique(
                rows["log"][is_named & (rows["first"] <= last) & (first <= rows["last"])]
            )
            is_less = sizes[is_named & np.isin(rows["log"], takers)].sum() < sizes[is_own].sum()
            is_believed |= is_own & bool(not len(takers) or (len(takers) == 1 and is_less))
        evidence: NDArray[np.int8] = is_believed.astype(np.int8)
        evidence[rows["is_indexed"]] = 2
        return evidence

    @cached_property
    def led_before(self) -> Int64s:
        """Before each row, and after the last one, the rows to which sizes or entries lead."""
        led: Int64s = np.cumsum(self.rows["reach"] > Reach.SEARCH)
        return np.append(0, led)

    # --- what is kept

    def is_end_broken(self) -> bool:
        """Return whether bytes are lost after all that stays where it lies."""
        row = int(self._staying().max())
        number, last = int(self.rows["log"][row]), self.last(int(self.kept[-1]))
        later = self.logs[number + 1 :]  # a broker's new log is empty
        is_at_end = not any(log.zeros_from or log.is_missing for log in later)
        is_at_end &= self.rows["end"][row] >= self._zeros_from[number]
        return not (is_at_end and self._indexed_to[number:].max() <= last)

    def is_begin_broken(self) -> bool:
        """Return whether bytes are lost before all that stays where it lies."""
        return self.begin_of(int(self._staying().min())) > 0

    def _staying(self) -> Int64s:
        """Return the kept rows that are not moved; all that are kept if no row stays."""
        staying = self.kept[self.fates[self.kept] != Fate.MOVED]
        return staying if len(staying) else self.kept

    def is_compacted(self) -> bool:
        """Return whether offsets are left out where no byte is lost.

        Those that an undecided batch elsewhere states do not count. A rule gets one answer: what it
        decided meanwhile does not count.
        """
        if self.rule not in self._compacted:
            self._compacted[self.rule] = self._leaves_out()
        return self._compacted[self.rule]

    def _leaves_out(self) -> bool:
        if self.rows["leaps"][self.kept].any():
            return True
        firsts, lasts = self.kept_firsts, (self.firsts + self.spans)[self.kept]
        stated = np.sort(self.rows["first"][self.undecided()])
        is_left_out = firsts[1:] != lasts[:-1] + 1
        is_left_out &= np.searchsorted(stated, firsts[1:]) == np.searchsorted(stated, lasts[:-1])
        return bool((is_left_out & self.touch(self.kept[:-1], self.kept[1:])).any())

    def fewest_bytes(self) -> int:
        """Return the fewest bytes that an offset has in any kept batch."""
        # What a compressed message of magic 0 or 1 spans is not known.
        is_known = self.rows["is_movable"][self.kept].all()
        return int(self.rows["least"][self.kept].min()) if is_known else 1

    def place_of(self, row: int) -> int:
        """Return the place of a kept row in `kept`."""
        place = int(np.searchsorted(self.kept_firsts, self.firsts[row], "left"))
        while self.kept[place] != row:
            place += 1
        return place

    def around(self, first: int, last: int) -> Hole | None:
        """Return what is missing around the offsets [first, last]; None if one of them is kept."""
        if not len(self.kept) or not 0 <= first <= last:
            return None
        place = int(np.searchsorted(self.kept_firsts, first, "right"))
        before = int(self.kept[place - 1]) if place else None
        after = int(self.kept[place]) if place < len(self.kept) else None
        begin = self.logs[0].base_offset
        begin = begin if begin <= first else 0
        begin = begin if before is None else self.last(before) + 1
        end = self.logs[-1].limit if after is None else int(self.firsts[after])
        return Hole(before, after, begin, end - 1) if begin <= first and last < end else None

    def holes(self, rows: Int64s) -> Int64s:
        """Return the place in `kept` of each row's offsets; -1 if one of them is kept.

        That is where `around` returns a hole, for many rows at once.
        """
        firsts, lasts = self.rows["first"][rows], self.rows["last"][rows]
        places = np.searchsorted(self.kept_firsts, firsts, "right")
        before = np.append(-1, (self.firsts + self.spans)[self.kept])[places]
        after = np.append(self.kept_firsts, self.logs[-1].limit)[places]
        is_missing = (before < firsts) & (firsts <= lasts) & (lasts < after)
        holes: Int64s = np.where(is_missing & (len(self.kept) > 0), places, -1)
        return holes

    def groups(self, *, is_joined: bool = False) -> list[Group]:
        """Return the kept rows in groups that touch, of one leader epoch and one magic.

        With `is_joined` epochs and magics may change in a group. A group ends where offsets are
        left out that no compaction took.
        """
        kinds = self.rows[KIND][self.kept]
        is_apart = ~self.touch(self.kept[:-1], self.kept[1:])
        is_border = is_apart | (kinds[1:] != kinds[:-1]) & (not is_joined)
        lasts = (self.firsts + self.spans)[self.kept]
        is_border |= self.is_keyless[self.kept[:-1]] & (self.kept_firsts[1:] > lasts[:-1] + 1)
        borders = (np.flatnonzero(is_border) + 1).tolist()
        ends = [self.is_begin_broken(), *is_apart.tolist(), self.is_end_broken()]
        return [
            Group(self.kept[start:end].tolist(), ends[start] or ends[end])
            for start, end in pairwise([0, *borders, len(self.kept)])
        ]

    # --- single batches

    def ask(self, part: Part) -> None:
        """Ask for batches at the begin and the end of a stretch."""
        known = self.asked.get(part.row, part)
        ends = max(part.head, known.head), max(part.tail, known.tail)
        self.asked[part.row] = replace(part, head=ends[0], tail=ends[1])

    def edge(self, rows: Int64s | list[int], *, is_end: bool) -> Rows:
        """Return the first or last EDGE_BATCHES batches of some rows, in the order of the rows.

        Batches inside of stretches are asked for; until then the rows of these are returned.
        """
        count, step = EDGE_BATCHES, -1 if is_end else 1
        near = np.array(rows[-count:] if is_end else rows[:count], np.int64)[::step]
        batches = self.rows["batches"][near].astype(np.int64)
        seen = np.cumsum(batches) - batches
        for place in np.flatnonzero((batches > 1) & (seen < count)).tolist():
            left = int(min(count - seen[place], batches[place]))
            row = int(near[place])
            self.ask(Part(row, tail=left) if is_end else Part(row, head=left))
        return self.rows_of(near[seen < count][::step])

    def rows_of(self, near: Int64s | list[int]) -> Rows:
        """Return rows with the offsets that they get."""
        found: Rows = self.rows[near]
        found["first"], found["last"] = self.firsts[near], self.firsts[near] + self.spans[near]
        found["is_keyless"] = self.is_keyless[near]
        return found

    def gaps(self) -> Iterator[Gap]:
        """Yield the offsets that no kept batch has, where bytes are lost too."""
        if not len(self.kept):
            return
        firsts, lasts = self.firsts[self.kept], (self.firsts + self.spans)[self.kept]
        begin, row = self.logs[0].base_offset, int(self.kept[0])
        if self.is_begin_broken() and begin < firsts[0]:
            yield Gap(None, row, begin, int(firsts[0]) - 1)
        is_gap = (firsts[1:] > lasts[:-1] + 1) & ~self.touch(self.kept[:-1], self.kept[1:])
        for place in np.flatnonzero(is_gap).tolist():
            lost = int(lasts[place]) + 1, int(firsts[place + 1]) - 1
            yield Gap(int(self.kept[place]), int(self.kept[place + 1]), *lost)
        if self.is_end_broken():
            indexed = int(self._indexed_to[self.rows["log"][self._staying().max()] :].max())
            known = indexed if indexed > lasts[-1] else None
            yield Gap(int(self.kept[-1]), None, int(lasts[-1]) + 1, known)
